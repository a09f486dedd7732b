package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"go.jetify.com/typeid"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/db"
)

// call is how one operation is called; its path comes from the OpenAPI document. Names in braces stand for ids.
type call struct {
	query, body, contentType string
	form                     []part
	// empty is the status for a caller who is allowed nothing; 0 stands for what is usual.
	empty int
}

// calls has one row for each operation that asks who calls. An operation without a row fails the accounting tests.
var calls = map[string]call{
	"getStatus": {empty: 403}, "getReindex": {empty: 403}, "startReindex": {}, "cancelReindex": {}, "rollbackReindex": {},
	"createJob": {form: note("Fresh", "A fresh note of {marker}.")}, "listJobs": {}, "getJob": {}, "cancelJob": {}, "retryJob": {},
	"listDocuments": {}, "getDocument": {}, "deleteDocument": {}, "downloadDocument": {}, "downloadDocumentVersion": {}, "listDocumentVersions": {},
	"getDocumentVersion": {}, "updateNote": {body: `{"title": "Changed"}`},
	"listTags": {}, "describeTag": {body: `{"description": "What {marker} means"}`}, "changeDocumentTags": {body: `{"add": ["more"]}`}, "getDocumentTags": {},
	"mergeDocumentTags": {body: `{"a": "b"}`},
	"search":            {body: `{"query": "{marker}"}`}, "searchKnowledge": {body: `{"query": "{marker}", "memory_store_ids": ["{memory_store_id}"], "document_ids": ["{document_id}"], "why": ["{document_id}"]}`, empty: 403},
	"listProjects": {}, "createProject": {body: `{"name": "made by {marker}"}`}, "getProject": {}, "updateProject": {body: `{"name": "renamed {marker}"}`},
	"deleteProject": {}, "getProjectErasure": {}, "getProjectUsage": {},
	"listPolicies": {}, "createPolicy": {body: `{"name": "p {marker}", "document": {"statement": [{"effect": "Allow", "action": "*"}]}}`}, "getPolicy": {},
	"updatePolicy": {body: `{"name": "q {marker}", "document": {"statement": [{"effect": "Allow", "action": "*"}]}}`}, "deletePolicy": {},
	"getUserPolicies": {}, "putUserPolicies": {body: `{"policy_ids": []}`},
	"listApiKeys": {}, "createApiKey": {body: `{"name": "k"}`}, "getApiKey": {}, "updateApiKey": {body: `{"name": "k2"}`}, "rotateApiKey": {}, "revokeApiKey": {},
	"listMemoryStores": {}, "createMemoryStore": {body: `{"name": "s"}`}, "getMemoryStore": {}, "updateMemoryStore": {body: `{"name": "s2"}`},
	"deleteMemoryStore": {}, "getMemoryStoreTags": {}, "replaceMemoryStoreTags": {body: `{"a": "b"}`}, "mergeMemoryStoreTags": {body: `{"a": "b"}`},
	"listMemoryAssertions": {}, "exportMemories": {}, "importMemories": {body: `{"content": "imported"}`, contentType: "application/x-ndjson"},
	"listMemories": {query: "memory_store_id={memory_store_id}", empty: 404}, "createMemory": {body: `{"memory_store_id": "{memory_store_id}", "content": "new"}`},
	"createMemories": {body: `{"memory_store_id": "{memory_store_id}", "memories": [{"content": "new"}]}`}, "getMemory": {},
	"updateMemory": {body: `{"content": "changed"}`}, "patchMemory": {body: `{"content": "changed"}`}, "deleteMemory": {}, "retractMemory": {},
	"getMemoryTags": {}, "replaceMemoryTags": {body: `{"a": "b"}`}, "mergeMemoryTags": {body: `{"a": "b"}`},
}

// documented is an operation of the OpenAPI document.
type documented struct {
	method, path string
	*huma.Operation
}

func (d documented) action() string {
	action, _ := d.Extensions["x-iam-action"].(string)
	return action
}

func (d documented) isRead() bool {
	return d.method == http.MethodGet || d.OperationID == "search" || d.OperationID == "searchKnowledge"
}

// operations gives all operations that ask who calls, and checks that the table has them all.
func (s *server) operations(t *testing.T) []documented {
	t.Helper()
	var operations []documented
	for path, item := range s.api.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "PUT": item.Put, "POST": item.Post, "DELETE": item.Delete, "PATCH": item.Patch} {
			if op == nil || op.OperationID == "getHealth" {
				continue
			}
			d := documented{method, path, op}
			if !auth.KnownAction(d.action()) {
				t.Errorf("%s has the action %q, which no policy can name", op.OperationID, d.action())
			}
			if _, there := calls[op.OperationID]; !there {
				t.Errorf("%s has no row", op.OperationID)
				continue
			}
			operations = append(operations, d)
		}
	}
	if len(operations) != len(calls) {
		t.Errorf("%d operations, %d rows", len(operations), len(calls))
	}
	slices.SortFunc(operations, func(a, b documented) int { return strings.Compare(a.OperationID, b.OperationID) })
	return operations
}

func (d documented) adminOnly() bool {
	module, _, _ := strings.Cut(d.action(), ":")
	return module == "policies" || module == "api-keys" || module == "projects" && !d.isRead() || d.action() == "status:Reindex" ||
		d.OperationID == "getProjectErasure"
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// try calls an operation with ids in the places of their names.
func (s *server) try(t *testing.T, d documented, ids map[string]string) answer {
	t.Helper()
	fill := func(text string) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string {
			value, there := ids[strings.Trim(name, "{}")]
			if !there {
				t.Fatalf("%s: nothing for %s", d.OperationID, name)
			}
			return value
		})
	}
	row := calls[d.OperationID]
	path := fill(d.path)
	if row.query != "" {
		path += "?" + fill(row.query)
	}
	if row.form != nil {
		parts := slices.Clone(row.form)
		for i := range parts {
			parts[i].value = fill(parts[i].value)
		}
		body, contentType := form(t, parts)
		return s.do(t, d.method, path, body, "Content-Type", contentType)
	}
	var body io.Reader
	contentType := "application/json"
	if row.body != "" {
		body = strings.NewReader(fill(row.body))
	}
	if row.contentType != "" {
		contentType = row.contentType
	}
	return s.do(t, d.method, path, body, "Content-Type", contentType)
}

// things makes one of everything in a project, each with a marker in its text, and gives their ids.
func (ts *tenants) things(t *testing.T, as *server, project, marker string) map[string]string {
	t.Helper()
	done := as.ingest(t, with(note("Title "+marker, "First text of "+marker+"."), "tags", "tag-"+marker)...)
	document := done["document_id"].(string)
	as.patch(t, "/api/v1/notes/"+document, `{"text": "Second text of `+marker+`."}`).want(t, 200)
	store := as.store(t, "store "+marker, "")
	ids := map[string]string{
		"document_id": document, "version": "1", "job_id": done["job_id"].(string), "name": "tag-" + marker, "memory_store_id": store, "marker": marker,
		"memory_id": as.remember(t, store, "A memory of "+marker+".", "")["id"].(string), "project_id": project, "subject": "user-" + marker,
	}
	ids["key_id"] = ts.admin.post(t, "/api/v1/api-keys", `{"name": "key `+marker+`", "project_id": "`+project+`"}`).want(t, 201).object(t)["id"].(string)
	ids["policy_id"] = ts.admin.post(t, "/api/v1/policies", `{"name": "policy `+marker+`", "document": {"statement": [{"effect": "Deny", "action": "*"}]}}`).want(t, 201).object(t)["id"].(string)
	return ids
}

// made gives ids of the same form that are of nothing.
func made(t *testing.T, ids map[string]string) map[string]string {
	t.Helper()
	other := maps.Clone(ids)
	for name, id := range ids {
		if parsed, err := typeid.FromString(id); err == nil && strings.HasSuffix(name, "_id") {
			random := db.NewID()
			fresh, err := typeid.FromUUIDBytesWithPrefix(parsed.Prefix(), random[:])
			must(t, err)
			other[name] = fresh.String()
		}
	}
	other["name"] = "tag-that-is-not-there"
	return other
}

// holdsNothing says whether a list, a search or a page is empty.
func holdsNothing(t *testing.T, a answer) bool {
	t.Helper()
	var value any
	must(t, json.Unmarshal(a.body, &value))
	switch v := value.(type) {
	case []any:
		return len(v) == 0 && (a.header.Get("X-Total-Count") == "" || a.header.Get("X-Total-Count") == "0")
	case map[string]any:
		for name, member := range v {
			if list, isList := member.([]any); isList && len(list) > 0 && name != "embedding_spaces" {
				return false
			}
			if name == "total" && member != 0.0 || name == "total_matches" && member != 0.0 {
				return false
			}
			if object, isObject := member.(map[string]any); isObject && name == "database" && (object["documents"] != 0.0 || object["chunks"] != 0.0) {
				return false
			}
		}
		return true
	}
	return false
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	shared := ts.things(t, ts.a, ts.projectA, "shared")
	nobody := ts.as(mint(t, map[string]any{"prj": ts.projectA}))
	for i, d := range ts.operations(t) {
		t.Run(d.OperationID, func(t *testing.T) {
			if got := ts.as("").try(t, d, shared); got.status != http.StatusUnauthorized {
				t.Errorf("without a token: %d %s", got.status, got.body)
			}
			denied := ts.as(mint(t, map[string]any{"prj": ts.projectA, "policy": map[string]any{"statement": []any{
				map[string]any{"effect": "Allow", "action": "*"}, map[string]any{"effect": "Deny", "action": d.action()},
			}}}))
			everything := ts.as(mint(t, map[string]any{"prj": ts.projectA, "policy": allow([]string{"*"})}))
			want := calls[d.OperationID].empty
			switch {
			case want != 0 && d.isRead():
			case !d.isRead() || d.adminOnly():
				want = http.StatusForbidden
			case strings.Contains(d.path, "{"):
				want = http.StatusNotFound
			default:
				want = http.StatusOK
			}
			for name, caller := range map[string]*server{"allowed nothing": nobody, "denied this": denied} {
				got := caller.try(t, d, shared)
				emptyList := d.isRead() && !strings.Contains(d.path, "{") && got.status == http.StatusOK && holdsNothing(t, got)
				if got.status != want && !emptyList || got.status == http.StatusOK && !holdsNothing(t, got) {
					t.Errorf("%s: %d, want %d: %.300s", name, got.status, want, got.body)
				}
			}

			ids := ts.things(t, ts.a, ts.projectA, fmt.Sprintf("own%d", i))
			caller := ts.as(mint(t, map[string]any{"prj": ts.projectA, "policy": allow([]string{d.action(), "embeddings:CreateEmbeddings"})}))
			if d.adminOnly() {
				if got := everything.try(t, d, ids); got.status != http.StatusForbidden {
					t.Errorf("admin only, but %d for a caller who is none", got.status)
				}
				caller = ts.as(mint(t, map[string]any{"role": "admin"}))
				if !strings.Contains(d.path, "projects") && strings.HasPrefix(d.action(), "api-keys:") {
					caller = ts.as(mint(t, map[string]any{"role": "admin", "prj": ts.projectA}))
				}
			}
			if d.OperationID == "deleteProject" {
				ids["project_id"] = ts.admin.post(t, "/api/v1/projects", `{"name": "to be deleted"}`).want(t, 201).object(t)["id"].(string)
			}
			got := caller.try(t, d, ids)
			fine := got.status < 300 || got.status == http.StatusConflict || slices.Contains([]string{"getReindex", "getProjectErasure"}, d.OperationID) && got.status == http.StatusNotFound
			if !fine {
				t.Errorf("allowed this: %d %.300s", got.status, got.body)
			}
		})
	}
}

func TestTwoTenants(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	a := ts.things(t, ts.a, ts.projectA, "alphamarker")
	b := ts.things(t, ts.b, ts.projectB, "betamarker")
	ts.stopWorker(t) // its upkeep folds statistics
	admin := ts.as(mint(t, map[string]any{"role": "admin", "prj": ts.projectB}))
	parsed, err := typeid.FromString(ts.projectA)
	must(t, err)
	projectA, err := uuid.FromBytes(parsed.UUIDBytes())
	must(t, err)
	before, err := db.CountProject(t.Context(), ts.pool, projectA)
	must(t, err)
	for _, d := range ts.operations(t) {
		t.Run(d.OperationID, func(t *testing.T) {
			for name, caller := range map[string]*server{"a member": ts.b, "an admin": admin} {
				foreign := maps.Clone(a)
				foreign["marker"] = "somemarker " + name
				if d.OperationID == "search" || d.OperationID == "searchKnowledge" {
					foreign["marker"] = "alphamarker"
				}
				unknown := made(t, foreign)
				theirs, nothing := caller.try(t, d, foreign), caller.try(t, d, unknown)
				if theirs.status != nothing.status && d.OperationID != "createJob" && d.OperationID != "createProject" {
					t.Errorf("%s: %d for another's, %d for nothing's: %s, %s", name, theirs.status, nothing.status, theirs.body, nothing.body)
				}
				if theirs.status >= 400 && theirs.status == nothing.status && !bytes.Equal(theirs.body, nothing.body) {
					t.Errorf("%s: two bodies: %s, %s", name, theirs.body, nothing.body)
				}
				if name == "a member" && strings.Contains(d.path, "_id}") && theirs.status < 400 {
					t.Errorf("%d: %s", theirs.status, theirs.body)
				}
				if d.OperationID != "search" && bytes.Contains(theirs.body, []byte("alphamarker")) || bytes.Contains(theirs.body, []byte(`"Title alphamarker"`)) {
					t.Errorf("%s sees another's: %s", name, theirs.body)
				}
				own := ts.as(ts.b.key).try(t, d, withProjectOf(b, foreign["marker"]))
				if bytes.Contains(own.body, []byte(a["document_id"])) || bytes.Contains(own.body, []byte("Title alphamarker")) {
					t.Errorf("%s sees another's among its own: %s", name, own.body)
				}
				header := caller.do(t, d.method, "/api/v1/documents", nil, "X-Project-Id", ts.projectA)
				if d.method == http.MethodGet && header.status != http.StatusNotFound {
					t.Errorf("%d for another's project", header.status)
				}
			}
		})
	}
	after, err := db.CountProject(t.Context(), ts.pool, projectA)
	must(t, err)
	if !maps.Equal(before, after) {
		t.Errorf("alpha had %v, has %v", before, after)
	}
}

// withProjectOf gives ids with another marker.
func withProjectOf(ids map[string]string, marker string) map[string]string {
	other := maps.Clone(ids)
	other["marker"] = marker
	return other
}
