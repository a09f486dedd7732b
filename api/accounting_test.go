package api_test

import (
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.jetify.com/typeid"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/db"
)

// call is how one operation is called; its path comes from the OpenAPI document. Names in braces stand for ids.
type call struct {
	query, body, contentType string
	form                     []part
	// empty is the status for a caller who is allowed nothing, denied for one who is denied only this, fine for one who is
	// allowed it; 0 stands for what is usual.
	empty, denied, fine int
	// also is a second action that the operation asks for.
	also string
}

// calls has one row for each operation that asks who calls. An operation without a row fails the accounting tests.
var calls = map[string]call{
	"getStatus": {empty: 403}, "getReindex": {empty: 403}, "startReindex": {}, "cancelReindex": {fine: 409}, "rollbackReindex": {fine: 409},
	"createJob": {form: note("Fresh", "A fresh note of {marker}.")}, "listJobs": {}, "getJob": {}, "cancelJob": {fine: 409}, "retryJob": {},
	"listDocuments": {}, "getDocument": {}, "deleteDocument": {}, "downloadDocument": {}, "downloadDocumentVersion": {}, "listDocumentVersions": {},
	"getDocumentVersion": {}, "updateNote": {body: `{"title": "Changed"}`},
	"listTags": {}, "describeTag": {body: `{"description": "What {marker} means"}`}, "changeDocumentTags": {body: `{"add": ["more"]}`}, "getDocumentTags": {},
	"mergeDocumentTags": {body: `{"a": "b"}`},
	"search":            {body: `{"query": "{marker}"}`}, "searchKnowledge": {body: `{"query": "{marker}", "memory_store_ids": ["{memory_store_id}"], "document_ids": ["{document_id}"], "why": ["{document_id}"]}`, empty: 403, also: "embeddings:CreateEmbeddings"},
	// Only who has searched may rate.
	"createSearchFeedback": {body: `{"search_id": "{search_id}", "result_id": "{document_id}", "rating": "up"}`, fine: 404}, "getSearchFeedback": {},
	"listProjects": {}, "createProject": {body: `{"name": "made by {marker}"}`}, "getProject": {}, "updateProject": {body: `{"name": "renamed {marker}"}`},
	"deleteProject": {}, "getProjectErasure": {}, "getProjectUsage": {},
	"listPolicies": {}, "createPolicy": {body: `{"name": "p {marker}", "document": {"statement": [{"effect": "Allow", "action": "*"}]}}`}, "getPolicy": {},
	"updatePolicy": {body: `{"name": "q {marker}", "document": {"statement": [{"effect": "Allow", "action": "*"}]}}`}, "deletePolicy": {},
	"getUserPolicies": {}, "putUserPolicies": {body: `{"policy_ids": []}`},
	"listApiKeys": {}, "createApiKey": {body: `{"name": "k"}`}, "getApiKey": {}, "updateApiKey": {body: `{"name": "k2"}`}, "rotateApiKey": {}, "revokeApiKey": {},
	"listMemoryStores": {}, "createMemoryStore": {body: `{"name": "s"}`}, "getMemoryStore": {}, "updateMemoryStore": {body: `{"name": "s2"}`},
	"deleteMemoryStore": {}, "getMemoryStoreTags": {}, "replaceMemoryStoreTags": {body: `{"a": "b"}`}, "mergeMemoryStoreTags": {body: `{"a": "b"}`},
	"listMemoryAssertions": {}, "exportMemories": {}, "importMemories": {body: `{"content": "imported"}`, contentType: "application/x-ndjson"},
	"listMemories": {query: "memory_store_id={memory_store_id}", empty: 404, denied: 200}, "createMemory": {body: `{"memory_store_id": "{memory_store_id}", "content": "new"}`},
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
		d.OperationID == "getProjectErasure" || d.OperationID == "getSearchFeedback"
}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// try calls an operation with ids in the places of their names.
func (s *server) try(t *testing.T, d documented, ids map[string]string) answer {
	t.Helper()
	return s.tryNaming(t, d, ids, "", "")
}

// tryNaming does the same, and names a project in the header or in the query.
func (s *server) tryNaming(t *testing.T, d documented, ids map[string]string, where, project string) answer {
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
	query := fill(row.query)
	var headers []string
	switch where {
	case "header":
		headers = []string{"X-Project-Id", project}
	case "query":
		query += "&project_id=" + project
	}
	path := fill(d.path) + "?" + strings.TrimPrefix(query, "&")
	if row.form != nil {
		parts := slices.Clone(row.form)
		for i := range parts {
			parts[i].value = fill(parts[i].value)
		}
		body, contentType := form(t, parts)
		return s.do(t, d.method, path, body, append(headers, "Content-Type", contentType)...)
	}
	var body io.Reader
	contentType := "application/json"
	if row.body != "" {
		body = strings.NewReader(fill(row.body))
	}
	if row.contentType != "" {
		contentType = row.contentType
	}
	return s.do(t, d.method, path, body, append(headers, "Content-Type", contentType)...)
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
	ids["search_id"] = as.ask(t, marker, "").SearchID
	as.post(t, "/api/v1/search/feedback", `{"search_id": "`+ids["search_id"]+`", "result_id": "`+document+`", "rating": "down", "comment": "text of `+marker+`"}`).want(t, 201)
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

// rowsOf gives all rows of a project, so that two moments can be compared.
func (s *server) rowsOf(t *testing.T, project string) map[string]string {
	t.Helper()
	parsed, err := typeid.FromString(project)
	must(t, err)
	id, err := uuid.FromBytes(parsed.UUIDBytes())
	must(t, err)
	rows, err := s.pool.Query(t.Context(), `SELECT c.table_name::text FROM information_schema.columns AS c
		JOIN information_schema.tables AS t USING (table_schema, table_name)
		WHERE c.table_schema = current_schema() AND c.column_name = 'project_id' AND t.table_type = 'BASE TABLE'`)
	must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if !slices.Contains(tables, "documents") || !slices.Contains(tables, "memories") {
		t.Fatalf("only %v belong to projects", tables)
	}
	all := map[string]string{}
	for _, table := range tables {
		var text string
		must(t, s.pool.QueryRow(t.Context(), "SELECT coalesce(string_agg(r::text, E'\n' ORDER BY r::text), '') FROM "+table+" AS r WHERE project_id = $1", id).Scan(&text))
		all[table] = text
	}
	return all
}

// wantSameRows checks that nothing of a project was changed.
func wantSameRows(t *testing.T, before, after map[string]string) {
	t.Helper()
	for table, rows := range after {
		if rows != before[table] {
			t.Errorf("%s was changed from\n%.1000s\nto\n%.1000s", table, before[table], rows)
		}
	}
}
