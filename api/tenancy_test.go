package api_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// takesProject says whether a request may name its project.
func (d documented) takesProject() bool {
	for _, parameter := range d.Parameters {
		if parameter.Name == "X-Project-Id" {
			return true
		}
	}
	return false
}

// textsOf gives what stands only in answers about the things of a marker.
func textsOf(ids map[string]string) []string {
	texts := []string{ids["document_id"], ids["job_id"], ids["memory_id"], ids["memory_store_id"], ids["key_id"]}
	for _, before := range []string{"Title ", "text of ", "memory of ", "store ", "key ", "tag-"} {
		texts = append(texts, before+ids["marker"])
	}
	return texts
}

// wantNothingOf checks that an answer shows nothing of a tenant, neither in its body nor in its headers.
func (a answer) wantNothingOf(t *testing.T, who string, ids map[string]string, echoed ...string) {
	t.Helper()
	var header bytes.Buffer
	must(t, a.header.Write(&header))
	for _, text := range textsOf(ids) {
		if strings.Contains(header.String(), text) || bytes.Contains(a.body, []byte(text)) && !strings.Contains(strings.Join(echoed, " "), text) {
			t.Errorf("%s sees %q: %.300s", who, text, a.body)
		}
	}
}

// wantSame checks that one answer can't be told from another.
func (a answer) wantSame(t *testing.T, who string, other answer) {
	t.Helper()
	if a.status != other.status || a.status >= 400 && !bytes.Equal(a.body, other.body) {
		t.Errorf("%s: %d %.300s for another's, %d %.300s for nothing's", who, a.status, a.body, other.status, other.body)
	}
}

func TestTwoTenants(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	a := ts.things(t, ts.a, ts.projectA, "alphamarker")
	b := ts.things(t, ts.b, ts.projectB, "betamarker")
	ts.stopWorker(t) // its upkeep folds statistics
	admin := ts.as(mint(t, map[string]any{"role": "admin", "prj": ts.projectB}))
	before := ts.rowsOf(t, ts.projectA)
	for _, d := range ts.operations(t) {
		t.Run(d.OperationID, func(t *testing.T) {
			global := strings.HasPrefix(d.action(), "policies:") // policies belong to no project
			for name, caller := range map[string]*server{"a member": ts.b, "an admin": admin} {
				unknown := made(t, a)
				theirs := caller.try(t, d, a)
				var echoed []string
				if d.OperationID == "searchKnowledge" {
					echoed = append(echoed, a["document_id"]) // why names what was asked about
				}
				if !global {
					theirs.wantNothingOf(t, name, a, echoed...)
				}
				if d.OperationID != "createJob" && d.OperationID != "createProject" && !global { // the second is a duplicate
					theirs.wantSame(t, name, caller.try(t, d, unknown))
				}
				if names := strings.Contains(d.path, "_id}") || strings.Contains(d.path, "{name}"); names && !global {
					want := http.StatusNotFound
					if d.adminOnly() && (name == "a member" || strings.HasPrefix(d.action(), "projects:")) {
						want = http.StatusForbidden // an admin of one project administers no projects
					}
					if theirs.status != want {
						t.Errorf("%s: %d, want %d: %.300s", name, theirs.status, want, theirs.body)
					}
				}
			}
			if !d.takesProject() {
				return
			}
			for _, where := range []string{"header", "query"} {
				caller, want := ts.b, http.StatusNotFound
				if d.adminOnly() {
					caller = admin
				}
				theirs, nothing := caller.tryNaming(t, d, b, where, ts.projectA), caller.tryNaming(t, d, b, where, made(t, a)["project_id"])
				theirs.wantSame(t, where, nothing)
				if d.OperationID == "searchKnowledge" {
					// It may search several projects, so what it may search none of is forbidden; it knows no parameter.
					want = map[string]int{"header": http.StatusForbidden, "query": http.StatusBadRequest}[where]
				}
				if theirs.status != want {
					t.Errorf("%d for another's project in the %s: %.300s", theirs.status, where, theirs.body)
				}
			}
		})
	}
	wantSameRows(t, before, ts.rowsOf(t, ts.projectA))
}

// TestIDsInTheBody sends ids of another tenant where the path can't show them.
func TestIDsInTheBody(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	a := ts.things(t, ts.a, ts.projectA, "alphamarker")
	b := ts.things(t, ts.b, ts.projectB, "betamarker")
	ts.stopWorker(t)
	unknown := made(t, a)
	before := ts.rowsOf(t, ts.projectA)
	send := func(t *testing.T, method, path, body string) {
		t.Helper()
		fill := func(ids map[string]string) string {
			return placeholder.ReplaceAllStringFunc(body, func(name string) string { return ids[strings.Trim(name, "{}")] })
		}
		theirs := ts.b.do(t, method, path, strings.NewReader(fill(a)), "Content-Type", "application/json")
		theirs.wantSame(t, body, ts.b.do(t, method, path, strings.NewReader(fill(unknown)), "Content-Type", "application/json"))
		theirs.wantNothingOf(t, body, a)
		if theirs.status < 400 && !strings.HasSuffix(path, "/search") {
			t.Errorf("%s %s: %d", method, body, theirs.status)
		}
	}
	const knowledge, memories = "/api/v1/knowledge/search", "/api/v1/memories"
	send(t, http.MethodPost, knowledge, `{"query": "alphamarker", "project_id": "{project_id}"}`)
	send(t, http.MethodPost, knowledge, `{"query": "alphamarker", "document_ids": ["{document_id}"]}`)
	send(t, http.MethodPost, knowledge, `{"query": "alphamarker", "memory_store_ids": ["{memory_store_id}"]}`)
	send(t, http.MethodPost, memories, `{"memory_store_id": "{memory_store_id}", "content": "mine"}`)
	send(t, http.MethodPost, memories+"/batch", `{"memory_store_id": "{memory_store_id}", "memories": [{"content": "mine"}]}`)
	send(t, http.MethodPost, memories, `{"memory_store_id": "`+b["memory_store_id"]+`", "content": "mine", "supersedes": "{memory_id}"}`)
	send(t, http.MethodPost, memories, `{"memory_store_id": "`+b["memory_store_id"]+`", "content": "mine", "project_id": "{project_id}"}`)
	send(t, http.MethodPost, "/api/v1/memory-stores", `{"name": "mine", "project_id": "{project_id}"}`)
	send(t, http.MethodPatch, memories+"/"+b["memory_id"], `{"content": "mine", "project_id": "{project_id}"}`)

	mixed := ts.b.post(t, knowledge, `{"query": "text", "document_ids": ["`+a["document_id"]+`", "`+b["document_id"]+`"]}`)
	mixed.wantNothingOf(t, "a mixed search", a)
	if mixed.status == http.StatusOK && !bytes.Contains(mixed.body, []byte(b["document_id"])) {
		t.Errorf("a mixed search neither refuses nor gives the caller's own: %s", mixed.body)
	}
	wantSameRows(t, before, ts.rowsOf(t, ts.projectA))
}
