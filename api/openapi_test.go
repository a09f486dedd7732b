package api_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

// operation finds the documented operation that a request goes to; nil for none.
func (s *server) operation(method, path string) *huma.Operation {
	parts := strings.Split(path, "/")
	for template, item := range s.api.OpenAPI().Paths {
		names := strings.Split(template, "/")
		fits := len(names) == len(parts)
		for i := 0; fits && i < len(names); i++ {
			fits = names[i] == parts[i] || strings.HasPrefix(names[i], "{") && parts[i] != ""
		}
		if fits {
			return map[string]*huma.Operation{"GET": item.Get, "PUT": item.Put, "POST": item.Post, "DELETE": item.Delete, "PATCH": item.Patch}[method]
		}
	}
	return nil
}

// wantDocumented checks an answer against the OpenAPI document: its status is there, and its body fits the schema. Every
// request of these tests passes through it.
func (s *server) wantDocumented(t testing.TB, method, path string, a answer) {
	t.Helper()
	operation := s.operation(method, path)
	if operation == nil || a.status == 415 || a.status == 204 && operation.Responses["204"] != nil { // 415 is before any operation, as 405 is
		return
	}
	response := operation.Responses[strconv.Itoa(a.status)]
	if response == nil {
		t.Errorf("%s answers %d, which is not documented: %s", operation.OperationID, a.status, a.body)
		return
	}
	media := response.Content["application/json"]
	if media == nil && (strings.HasPrefix(operation.OperationID, "downloadDocument") || operation.OperationID == "exportMemories") {
		return
	}
	if media == nil {
		t.Errorf("%s: %d has no JSON in the document: %v", operation.OperationID, a.status, response.Content)
		return
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: %d comes as %s", operation.OperationID, a.status, got)
	}
	var value any
	must(t, json.Unmarshal(a.body, &value))
	var result huma.ValidateResult
	huma.Validate(s.api.OpenAPI().Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, value, &result)
	for _, problem := range result.Errors {
		t.Errorf("%s: %d does not fit its schema: %v", operation.OperationID, a.status, problem)
	}
	if header := response.Headers["X-Total-Count"]; header != nil && a.header.Get("X-Total-Count") == "" {
		t.Errorf("%s without X-Total-Count", operation.OperationID)
	}
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})

	t.Run("ListsAreNeverNull", func(t *testing.T) {
		t.Parallel()
		for name, schema := range s.api.OpenAPI().Components.Schemas.Map() {
			for field, property := range schema.Properties {
				if property.Type == huma.TypeArray && property.Nullable {
					t.Errorf("%s.%s may be null", name, field)
				}
			}
		}
	})

	t.Run("ListsTakeLimitAndCursor", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/api/v1/jobs", "/api/v1/documents"} {
			operation := s.operation("GET", path)
			names := map[string]bool{}
			for _, parameter := range operation.Parameters {
				names[parameter.Name] = true
			}
			headers := operation.Responses["200"].Headers
			if !names["limit"] || !names["cursor"] || headers["X-Total-Count"] == nil || headers["Link"] == nil {
				t.Errorf("%s: parameters %v, headers %v", path, names, headers)
			}
		}
	})

	t.Run("EveryFieldIsExplained", func(t *testing.T) {
		t.Parallel()
		for name, schema := range s.api.OpenAPI().Components.Schemas.Map() {
			for field, property := range schema.Properties {
				if property.Description == "" && property.Ref == "" && name != "FormFile" { // huma's own, which no operation shows
					t.Errorf("%s.%s has no description", name, field)
				}
			}
		}
	})
}
