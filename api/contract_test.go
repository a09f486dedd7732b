package api_test

import (
	"net/http"
	"net/url"
	"os"
	"path"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// EnvContract names the variable that holds the path of the knowledge API's own OpenAPI document. It is not part of the
// repository; make contract sets it.
const EnvContract = "KB_KNOWLEDGE_CONTRACT"

// sharedSchemas stand for the documents that the contract refers to.
var sharedSchemas = map[string]string{
	"tags.yaml":             `{"TagBag": {"type": "object", "additionalProperties": {"type": "string"}}}`,
	"metadata.yaml":         `{"MetadataBag": {"type": "object", "additionalProperties": true}}`,
	"metadata-filters.yaml": `{"MetadataFilter": {"type": "object", "additionalProperties": true}}`,
	"errors.yaml": `{"ErrorResponse": {"type": "object", "required": ["error"], "additionalProperties": false, "properties": {"error": {"type": "object",
		"required": ["code", "message", "hint", "docs_url"], "properties": {"code": {"type": "string", "pattern": "^[A-Z_]+$"}, "message": {"type": "string"},
		"hint": {"type": "string"}, "docs_url": {"type": "string"}, "meta": {"type": "object"}}}}}}`,
}

// TestKnowledgeContract checks answers against the knowledge API's own schemas.
func TestKnowledgeContract(t *testing.T) {
	t.Parallel()
	contract := os.Getenv(EnvContract)
	if contract == "" {
		t.Skip("make contract CONTRACT=FILE checks the answers against the contract's own document")
	}
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	loader.ReadFromURIFunc = func(_ *openapi3.Loader, uri *url.URL) ([]byte, error) {
		if schemas, found := sharedSchemas[path.Base(uri.Path)]; found {
			return []byte(`{"openapi": "3.0.3", "info": {"title": "shared", "version": "1"}, "paths": {}, "components": {"schemas": ` + schemas + `}}`), nil
		}
		return os.ReadFile(uri.Path)
	}
	document, err := loader.LoadFromFile(contract)
	must(t, err)
	operation := document.Paths.Value("/api/v1/knowledge/search").Post
	check := func(t *testing.T, got answer, body string) {
		t.Helper()
		response := operation.Responses.Status(got.status)
		if response == nil {
			t.Fatalf("%s: the contract has no %d", body, got.status)
		}
		if err := response.Value.Content["application/json"].Schema.Value.VisitJSON(got.object(t), openapi3.MultiErrors()); err != nil {
			t.Errorf("%s: %d does not fit the contract: %v\n%.500s", body, got.status, err, got.body)
		}
	}

	ts := startTenants(t, config{})
	s := ts.a
	s.ingest(t, with(file("pump.md", "# Pump\n\nThe impeller of the pump is worn."), "path", "/plant/pump.md", "tags", "site:north", "metadata", `{"price": 3}`)...)
	s.ingest(t, note("Note", "A note without a path about the impeller.")...)
	store := s.store(t, "facts", `, "tags": {"site": "north"}`)
	s.remember(t, store, "The impeller was replaced in May.", "")
	s.remember(t, store, "Something else is tagged.", `, "tags": {"a": "b"}`)
	seen := map[int]int{}
	for _, body := range []string{
		`{"query": "impeller"}`, `{"query": "impeller", "rrf_k": 20, "recency_half_life_days": 0.5, "min_similarity": 0.5, "limit": 1000}`,
		`{"query": "???"}`, `{"tags": {"site": "north"}}`, `{"document_paths": ["/"]}`, `{"memory_store_ids": ["` + store + `"]}`, `{"metadata": {"price": {"in": [3]}}}`,
		`{"query": "impeller", "include_documents": false}`, `{"query": "impeller", "fusion": "blend", "explain": true, "highlight": true, "offset": 1}`,
		`{}`, `{"query": 1}`, `{"limit": 0}`, `{`, `{"query": "x", "project_id": "` + ts.projectB + `"}`,
	} {
		got := s.post(t, "/api/v1/knowledge/search", body)
		seen[got.status]++
		check(t, got, body)
	}
	unmetered := ts.as(mint(t, map[string]any{"prj": ts.projectA, "scope": "knowledge:SearchKnowledge"}))
	for _, caller := range []*server{unmetered, ts.as("nonsense")} {
		got := caller.post(t, "/api/v1/knowledge/search", `{"query": "impeller"}`)
		seen[got.status]++
		check(t, got, "refused")
	}
	if seen[http.StatusOK] != 9 || seen[http.StatusBadRequest] != 4 || seen[http.StatusForbidden] != 2 || seen[http.StatusUnauthorized] != 1 {
		t.Errorf("statuses %v", seen)
	}
}
