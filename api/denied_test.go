package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestDeniedDocument tries to see a document, and a memory, that a policy keeps from the caller, through every endpoint.
func TestDeniedDocument(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	s := ts.a
	const word = "zanzibarite" // stands in the denied document only
	done := s.ingest(t, with(file("secret-name.md", "# Secret Title\n\nThe ore "+word+" is in the vault."), "path", "/secret/plan.md", "tags", "hush:yes")...)
	secret := done["document_id"].(string)
	secretNote := s.ingest(t, with(note("Secret Note Title", "A note about "+word+"."), "path", "/secret/note", "tags", "hush:yes")...)["document_id"].(string)
	s.patch(t, "/api/v1/notes/"+secretNote, `{"text": "A note about `+word+`, changed."}`).want(t, 200)
	s.ingest(t, with(file("open.md", "# Open\n\nThe ore is in the yard."), "path", "/open/plan.md", "tags", "hush:no")...)
	s.put(t, "/api/v1/tags/hush:yes/description", `{"description": "Hushed up"}`).want(t, 200)
	// A failed next version has no document of its own, and none of its tags.
	failed := s.upload(t, with(file("secret-name.pdf", "%PDF-1.4 broken"), "path", "/secret/plan.md")...).want(t, 202).object(t)["job_id"].(string)
	if ended := s.wait(t, failed); ended["status"] != "failed" {
		t.Fatal(ended)
	}
	store := s.store(t, "mixed", "")
	secretMemory := s.remember(t, store, "Remember the "+word+" ore.", `, "tags": {"hush": "yes"}`)["id"].(string)
	s.remember(t, store, "Remember the yard.", "")

	onPath, onTag := map[string]any{"resource": []string{"srn:*:document:/secret/*"}}, map[string]any{"condition": map[string]any{"StringEquals": map[string]any{"soat:ResourceTag/hush": "yes"}}}
	onID := map[string]any{"resource": []string{"srn:" + ts.projectA + ":document:" + secret, "srn:*:document:" + secretNote}}
	memoryToo := map[string]any{"effect": "Deny", "action": "*", "resource": []string{"srn:*:memory:" + secretMemory}}
	policy := func(actions []string, on map[string]any) map[string]any {
		deny := map[string]any{"effect": "Deny", "action": actions}
		for name, value := range on {
			deny[name] = value
		}
		return map[string]any{"statement": []any{map[string]any{"effect": "Allow", "action": "*"}, deny, memoryToo}}
	}
	callers := map[string]*server{}
	for _, actions := range [][]string{{"*"}, {"documents:*"}, {"documents:GetDocument"}, {"knowledge:*", "documents:*"}} {
		for name, on := range map[string]map[string]any{"path": onPath, "tag": onTag, "id": onID} {
			callers[strings.Join(actions, " and ")+" by "+name] = ts.as(mint(t, map[string]any{"prj": ts.projectA, "policy": policy(actions, on)}))
		}
	}
	stored := ts.admin.post(t, "/api/v1/policies", fmt.Sprintf(`{"name": "no secrets", "document": {"statement": [{"effect": "Allow", "action": "*"},
		{"effect": "Deny", "action": "documents:*", "resource": "srn:*:document:/secret/*"}, {"effect": "Deny", "action": "*", "resource": "srn:*:memory:%s"}]}}`, secretMemory)).want(t, 201).object(t)["id"].(string)
	key := ts.admin.post(t, "/api/v1/api-keys", `{"name": "k", "project_id": "`+ts.projectA+`", "policy_ids": ["`+stored+`"]}`).want(t, 201).object(t)["key"].(string)
	callers["a key"] = ts.as(key)
	ts.admin.put(t, "/api/v1/users/dora/policies", `{"policy_ids": ["`+stored+`"]}`).want(t, 200)
	callers["a subject"] = ts.as(mint(t, map[string]any{"sub": "dora", "prj": ts.projectA}))
	unscoped := ts.as(mint(t, map[string]any{"sub": "dora"}))

	for name, caller := range callers {
		t.Run(name, func(t *testing.T) {
			hidden := func(t *testing.T, what string, got answer, status int) {
				t.Helper()
				if got.status != status {
					t.Errorf("%s: %d, want %d: %.200s", what, got.status, status, got.body)
				}
				var header bytes.Buffer
				must(t, got.header.Write(&header))
				for _, text := range []string{word, "Secret", "secret-name", "/secret/", "hush:yes", "Hushed", secret, secretNote, secretMemory} {
					if bytes.Contains(got.body, []byte(text)) || strings.Contains(header.String(), text) {
						t.Errorf("%s shows %q: %.300s", what, text, got.body)
					}
				}
			}
			for _, id := range []string{secret, secretNote} {
				for _, path := range []string{"", "/file", "/versions", "/versions/1", "/versions/1/file", "/tags"} {
					hidden(t, "get"+path, caller.get(t, "/api/v1/documents/"+id+path), 404)
				}
				hidden(t, "delete", caller.do(t, http.MethodDelete, "/api/v1/documents/"+id, nil), 404)
				hidden(t, "tags", caller.put(t, "/api/v1/documents/"+id+"/tags", `{"add": ["x"]}`), 404)
				hidden(t, "tags", caller.patch(t, "/api/v1/documents/"+id+"/tags", `{"x": "y"}`), 404)
				hidden(t, "note", caller.patch(t, "/api/v1/notes/"+id, `{"title": "x"}`), 404)
			}
			for _, job := range []string{done["job_id"].(string), failed} {
				hidden(t, "job", caller.get(t, "/api/v1/jobs/"+job), 404)
				hidden(t, "cancel", caller.post(t, "/api/v1/jobs/"+job+"/cancel", ""), 404)
				hidden(t, "retry", caller.post(t, "/api/v1/jobs/"+job+"/retry", ""), 404)
			}
			hidden(t, "memory", caller.get(t, "/api/v1/memories/"+secretMemory), 404)
			hidden(t, "memory", caller.put(t, "/api/v1/memories/"+secretMemory, `{"content": "x"}`), 404)
			hidden(t, "supersede", caller.post(t, "/api/v1/memories", `{"memory_store_id": "`+store+`", "content": "x", "supersedes": "`+secretMemory+`"}`), 404)

			documents := caller.get(t, "/api/v1/documents")
			hidden(t, "list", documents, 200)
			if documents.header.Get("X-Total-Count") != "1" {
				t.Errorf("the total is %s", documents.header.Get("X-Total-Count"))
			}
			hidden(t, "list by tag", caller.get(t, "/api/v1/documents?tags=hush%3Ayes"), 200)
			hidden(t, "list by path", caller.get(t, "/api/v1/documents?path_prefix=%2Fsecret"), 200)
			jobs := caller.get(t, "/api/v1/jobs")
			hidden(t, "jobs", jobs, 200)
			if jobs.header.Get("X-Total-Count") != "1" {
				t.Errorf("%s jobs", jobs.header.Get("X-Total-Count"))
			}
			hidden(t, "tags", caller.get(t, "/api/v1/tags"), 200)
			hidden(t, "describe", caller.put(t, "/api/v1/tags/hush:yes/description", `{"description": "x"}`), 404)
			status := caller.get(t, "/api/v1/status").want(t, 200).object(t)["database"].(map[string]any)
			if status["documents"] != 1.0 || status["chunks"] != 1.0 {
				t.Errorf("status counts %v", status)
			}
			if found := caller.ask(t, "ore", ""); found.TotalMatches != 1 || found.Results[0].Title != "Open" {
				t.Errorf("search: %+v", found)
			}
			hidden(t, "search", caller.post(t, "/api/v1/search", `{"query": "ore vault", "explain": true}`), 200)
			for _, body := range []string{
				`{}`, `{"keywords": ["ore"], "facets": ["owner", "doc_type"]}`, `{"keywords": ["vault", "yard"]}`, `{"query_text": "vault", "mode": "vector_only", "explain": true}`,
				`{"tags": ["hush:yes"]}`, `{"keywords": ["ore"], "tuning": null, "mode": "loose"}`,
			} {
				got := caller.post(t, "/api/v1/search", body)
				hidden(t, body, got, 200)
				if total := got.object(t)["total_matches"]; total != map[bool]float64{true: 0, false: 1}[strings.Contains(body, "hush:yes")] {
					t.Errorf("%s: %v in all", body, total)
				}
			}
			hidden(t, "exact search", caller.post(t, "/api/v1/search", `{"query": "ore", "tags": ["hush:no"]}`), 200)
			for _, body := range []string{
				`{"query": "ore vault", "limit": 100, "explain": true, "highlight": true}`, `{"query": "ore", "fusion": "blend"}`, `{"document_paths": ["/"]}`,
				`{"tags": {"hush": "yes"}}`, `{"query": "ore", "tags": {"hush": "yes"}}`, `{"memory_store_ids": ["` + store + `"]}`,
			} {
				hidden(t, body, caller.post(t, "/api/v1/knowledge/search", body), 200)
			}
			why := caller.know(t, `{"query": "ore", "why": ["`+secret+`"], "document_paths": ["/open/"], "explain": true}`)
			if why["why"].([]any)[0].(map[string]any)["step"] != "not_found" || len(why["explain"].(map[string]any)["removed"].(map[string]any)["filters"].(map[string]any)) != 0 {
				t.Errorf("%v", why)
			}
			if total := caller.get(t, "/api/v1/memories?memory_store_id="+store).want(t, 200).object(t)["total"]; total != 1.0 {
				t.Errorf("%v memories", total)
			}
			hidden(t, "assertions", caller.get(t, "/api/v1/memory-stores/"+store+"/assertions"), 200)
			hidden(t, "export", caller.raw(t, http.MethodGet, "/api/v1/memory-stores/"+store+"/export?include_invalidated=true", nil, "Authorization", "Bearer "+caller.key), 200)

			hidden(t, "the same content", caller.upload(t, file("copy.md", "# Secret Title\n\nThe ore "+word+" is in the vault.")...), 409)
			overwritten := caller.upload(t, with(file("x.md", "# Mine now"), "path", "/secret/plan.md")...)
			hidden(t, "the same path", overwritten, 403)
			// Who may write to the path learns that it is taken, as two documents can't stand there, and no more.
			taken := http.StatusConflict
			if !strings.HasSuffix(name, "by tag") && !strings.HasSuffix(name, "by id") {
				taken = http.StatusForbidden
			}
			hidden(t, "the same path, if free", caller.upload(t, with(file("x.md", "# Mine now"), "path", "/secret/plan.md", "on_conflict", "reject")...), taken)
		})
	}
	t.Run("without a project", func(t *testing.T) {
		for _, body := range []string{`{"query": "ore vault"}`, `{"document_paths": ["/"]}`} {
			if got := unscoped.post(t, "/api/v1/knowledge/search", body).want(t, 200); bytes.Contains(got.body, []byte(word)) {
				t.Errorf("%s", got.body)
			}
		}
	})
	if got := s.get(t, "/api/v1/documents/"+secret).want(t, 200).object(t); got["version"] != 1.0 || got["title"] != "Secret Title" {
		t.Errorf("somebody changed it: %v", got)
	}
}
