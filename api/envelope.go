package api

import (
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// family is the form in which a part of the API speaks of errors.
type family int

const (
	// familyE has flat errors: Error.
	familyE family = iota
	// familyK, the knowledge API and what belongs to it, has them in an envelope.
	familyK
)

var pathsOfK = []string{"knowledge", "memory-stores", "memories", "projects", "policies", "api-keys", "users"}

func familyOf(path string) family {
	rest, _ := strings.CutPrefix(path, "/api/v1/")
	first, _, _ := strings.Cut(rest, "/")
	if slices.Contains(pathsOfK, first) {
		return familyK
	}
	return familyE
}

// envelope is an error in the form of the knowledge API.
type envelope struct {
	_      struct{}      `additionalProperties:"true"`
	Detail envelopeError `json:"error"`
	status int
}

type envelopeError struct {
	_       struct{}       `additionalProperties:"true"`
	Code    string         `json:"code" doc:"A stable code for programs" example:"VALIDATION_FAILED"`
	Message string         `json:"message" doc:"What is wrong and what to change"`
	Hint    string         `json:"hint" doc:"What usually helps"`
	DocsURL string         `json:"docs_url" doc:"Where the code is explained"`
	Meta    map[string]any `json:"meta,omitempty" doc:"Details; field names the part of the request that is meant"`
}

func (e *envelope) Error() string { return e.Detail.Message }

// GetStatus implements huma.StatusError.
func (e *envelope) GetStatus() int { return e.status }

// in gives the error in the form of a family.
func (e *Error) in(f family) huma.StatusError {
	if f == familyE {
		return e
	}
	code := codeOf(e.Code)
	meta := e.meta
	if e.Field != "" {
		meta = map[string]any{"field": e.Field}
		maps.Copy(meta, e.meta)
	}
	return &envelope{status: e.status, Detail: envelopeError{
		Code: code, Message: e.Message, Hint: hintOf(e.Code, e.status), DocsURL: errorCatalogPath + "#" + strings.ToLower(code), Meta: meta,
	}}
}

// codesOfK are the codes of the knowledge API that are spelt otherwise than in capitals.
var codesOfK = map[string]string{
	"invalid_request": "VALIDATION_FAILED", "not_found": "RESOURCE_NOT_FOUND", "internal": "INTERNAL_ERROR", "duplicate": "NAME_CONFLICT",
	"authentication_required": "UNAUTHORIZED", "invalid_api_key": "UNAUTHORIZED", "invalid_token": "UNAUTHORIZED",
}

func codeOf(code string) string {
	if spelt, known := codesOfK[code]; known {
		return spelt
	}
	return strings.ToUpper(code)
}

// explained are the codes with what usually helps. A code that is not among them is explained by its status.
var explained = map[string]string{
	"authentication_required": "Send the header Authorization: Bearer with a token or an API key.",
	"invalid_api_key":         "Ask an admin for a key that is neither expired nor revoked.",
	"invalid_token":           "Get a new token from the issuer; check its audience, its key and the clocks.",
	"forbidden":               "Ask an admin for a policy that allows the action.",
	"project_required":        "Add the header X-Project-Id or the parameter project_id.",
	"invalid_request":         "Change the part of the request that field names, as the message says.",
	"not_found":               "Check the id and the project; what a caller may not see answers like what is not there.",
	"version_conflict":        "Read the resource again, and repeat the change on the version that it has now.",
	"name_conflict":           "Choose another name.",
	"in_use":                  "Detach it from all keys and subjects first.",
	"too_large":               "Send less, or in parts.",
	"reserved_path":           "Choose a path outside /.system.",
	"reserved_tag_key":        "Choose a tag key that does not begin with system.",
	"timeout":                 "Try again, or ask for less.",
	"unavailable":             "Try again in a moment.",
	"internal":                "Tell the operator the X-Request-Id of the answer.",

	"memory_already_invalidated": "Nothing is left to do; read the memory to see what took its place.",
}

func hintOf(code string, status int) string {
	switch {
	case explained[code] != "":
		return explained[code]
	case status == http.StatusNotFound:
		return explained["not_found"]
	case status >= http.StatusInternalServerError:
		return explained["unavailable"]
	default:
		return explained["invalid_request"]
	}
}

const errorCatalogPath = "/docs/error-codes"

var errorCatalog = template.Must(template.New("codes").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>kb: error codes</title>
<h1>Error codes</h1>
<dl>{{range $code, $hint := .}}
<dt id="{{$code}}"><code>{{$code}}</code></dt><dd>{{$hint}}</dd>{{end}}
</dl></html>
`))

// registerErrorCatalog serves the page that docs_url names.
func (s *Server) registerErrorCatalog(mux *http.ServeMux) {
	codes := map[string]string{}
	for _, code := range slices.Sorted(maps.Keys(explained)) {
		id := strings.ToLower(codeOf(code))
		codes[id] = strings.TrimSpace(codes[id] + " " + explained[code])
	}
	mux.HandleFunc("GET "+errorCatalogPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := errorCatalog.Execute(w, codes); err != nil {
			_, _ = fmt.Fprintln(w, "The page can't be written.")
		}
	})
}
