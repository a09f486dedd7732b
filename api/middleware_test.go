package api_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb"
	"github.com/kb-search/kb/api"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true, Key: "secret"})
	gate := &api.Gate{}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		gate.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if got := get("/api/v1/health"); got.Code != 503 || strings.TrimSpace(got.Body.String()) != `{"status":"starting"}` {
		t.Errorf("health before: %d %s", got.Code, got.Body)
	}
	if got := get("/api/v1/jobs"); got.Code != 503 || !strings.Contains(got.Body.String(), `"code":"starting"`) || got.Header().Get("Retry-After") == "" {
		t.Errorf("jobs before: %d %s", got.Code, got.Body)
	}
	gate.Open(s.api)
	if got := get("/api/v1/health"); got.Code != 200 || strings.TrimSpace(got.Body.String()) != `{"status":"healthy"}` {
		t.Errorf("health after, without a key: %d %s", got.Code, got.Body)
	}
	if got := get("/api/v1/jobs"); got.Code != 401 {
		t.Errorf("jobs after, without a key: %d %s", got.Code, got.Body)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	s.ingest(t, note("Pump", "The pump is loud.")...)
	s.ingest(t, file("valves.md", "# Valves\n\nThe valve is tight.")...)
	got := s.get(t, "/api/v1/status").want(t, 200).object(t)
	for field, want := range map[string]any{"version": kb.Version(), "model_name": "fake", "embedding_dim": 384.0, "device": "cpu"} {
		if got[field] != want {
			t.Errorf("%s is %v, want %v", field, got[field], want)
		}
	}
	database, queue := got["database"].(map[string]any), got["queue"].(map[string]any)
	byType := database["documents_by_type"].(map[string]any)
	if byType["note"] != 1.0 || byType["markdown"] != 1.0 || database["documents"] != 2.0 || database["chunks"] != 2.0 || database["size_bytes"].(float64) < 1e5 {
		t.Errorf("database: %v", database)
	}
	if database["source"] != "external" || !strings.Contains(database["version"].(string), ".") || !strings.HasPrefix(database["vector_version"].(string), "0.") {
		t.Errorf("database: %v", database)
	}
	if gpu := got["gpu"].(map[string]any); gpu["available"] != false || gpu["reason"] != "a test" {
		t.Errorf("gpu: %v", gpu)
	}
	if rerank := got["rerank"].(map[string]any); rerank["enabled"] != false || rerank["loaded"] != false || len(rerank) != 4 {
		t.Errorf("rerank: %v", rerank)
	}
	if spaces := got["embedding_spaces"].([]any); len(spaces) != 1 || spaces[0].(map[string]any)["active"] != true || spaces[0].(map[string]any)["configured"] != true {
		t.Errorf("spaces: %v", spaces)
	}
	if queue["queued"] != 0.0 || queue["processing"] != 0.0 {
		t.Errorf("queue: %v", queue)
	}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true, Key: "secret"})

	for _, test := range []struct {
		name, header, short string
		status              int
	}{
		{"MissingKey", "", "authentication required", 401},
		{"WrongKey", "Bearer other", "invalid api key", 401},
		{"KeyWithMore", "Bearer secret2", "invalid api key", 401},
		{"EmptyKey", "Bearer ", "invalid api key", 401},
		{"OtherScheme", "Basic secret", "invalid api key", 401},
		{"BareKey", "secret", "invalid api key", 401},
		{"RightKey", "Bearer secret", "", 200},
		{"SchemeInAnyCase", "bearer secret", "", 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := s.do(t, http.MethodGet, "/api/v1/status", nil, "Authorization", test.header).want(t, test.status)
			if test.status == 401 {
				got.wantError(t, 401, map[string]any{"error": test.short})
				if got.header.Get("WWW-Authenticate") == "" {
					t.Error("no WWW-Authenticate")
				}
			}
		})
	}

	// Every operation of the document refuses a caller without a key, health excepted.
	t.Run("EveryOperationButHealthNeedsTheKey", func(t *testing.T) {
		t.Parallel()
		operations := 0
		for path, item := range s.api.OpenAPI().Paths {
			for method, op := range map[string]*huma.Operation{
				"GET": item.Get, "PUT": item.Put, "POST": item.Post, "DELETE": item.Delete, "PATCH": item.Patch,
			} {
				if op == nil {
					continue
				}
				operations++
				want := 401
				if op.OperationID == "getHealth" {
					want = 200
				}
				s.do(t, method, strings.NewReplacer("{", "", "}", "").Replace(path), nil, "Authorization", "").want(t, want)
				if documented := op.Responses["401"] != nil; documented != (want == 401) {
					t.Errorf("%s: 401 documented: %v", op.OperationID, documented)
				}
			}
		}
		if operations < 9 {
			t.Errorf("%d operations", operations)
		}
	})

	t.Run("OffWithoutAConfiguredKey", func(t *testing.T) {
		t.Parallel()
		open := start(t, config{NoWorker: true})
		open.do(t, http.MethodGet, "/api/v1/status", nil, "Authorization", "Bearer whatever").want(t, 200)
		open.get(t, "/api/v1/status").want(t, 200)
	})
}

func TestRequestForm(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})

	for _, test := range []struct {
		name, method, path, body string
		status                   int
		fields                   map[string]any
	}{
		{"UnknownPath", "GET", "/api/v1/nothing", "", 404, map[string]any{"error": "not found"}},
		{"Root", "GET", "/", "", 404, map[string]any{"error": "not found"}},
		{"PathWithSlashAtItsEnd", "GET", "/api/v1/jobs/", "", 404, map[string]any{"error": "not found"}},
		{"WrongMethod", "DELETE", "/api/v1/search", "", 405, map[string]any{"error": "method not allowed"}},
		{"WrongMethodOnAnID", "PATCH", "/api/v1/jobs/job_1", "", 405, map[string]any{"error": "method not allowed"}},
		{"UnknownBodyField", "POST", "/api/v1/search", `{"query":"a","limit":5}`, 400, map[string]any{"field": "body.limit"}},
		{"FieldInAnotherCase", "POST", "/api/v1/search", `{"Query":"a"}`, 400, map[string]any{"error": "invalid request"}},
		{"QueryMissing", "POST", "/api/v1/search", `{}`, 200, nil}, // a structured search without keywords
		{"QueryOfAnotherType", "POST", "/api/v1/search", `{"query":7}`, 400, map[string]any{"field": "body.query"}},
		{"QueryNull", "POST", "/api/v1/search", `{"query":null}`, 200, nil},
		{"TopAsText", "POST", "/api/v1/search", `{"query":"a","top":"5"}`, 400, map[string]any{"field": "body.top"}},
		{"TopWithAFraction", "POST", "/api/v1/search", `{"query":"a","top":1.5}`, 400, map[string]any{"field": "body.top"}},
		{"TopBelowOne", "POST", "/api/v1/search", `{"query":"a","top":0}`, 400, map[string]any{"field": "body.top"}},
		{"TopNegative", "POST", "/api/v1/search", `{"query":"a","top":-1}`, 400, map[string]any{"field": "body.top"}},
		{"TopBeyondAnyNumber", "POST", "/api/v1/search", `{"query":"a","top":1e400}`, 400, map[string]any{"error": "invalid request"}},
		{"TopBeyondAnInteger", "POST", "/api/v1/search", `{"query":"a","top":99999999999999999999}`, 400, map[string]any{"error": "invalid request"}},
		{"TagsAsText", "POST", "/api/v1/search", `{"query":"a","tags":"x"}`, 400, map[string]any{"field": "body.tags"}},
		{"MinScoreNegative", "POST", "/api/v1/search", `{"query":"a","min_score":-1}`, 400, map[string]any{"field": "body.min_score"}},
		{"BothArmsAlone", "POST", "/api/v1/search", `{"query":"a","fts_only":true,"vec_only":true}`, 400, map[string]any{"field": "body.vec_only"}},
		{"BlankQuery", "POST", "/api/v1/search", `{"query":"  \t\n "}`, 400, map[string]any{"field": "body.query"}},
		{"EmptyQuery", "POST", "/api/v1/search", `{"query":""}`, 400, map[string]any{"field": "body.query"}},
		{"BrokenJSON", "POST", "/api/v1/search", `{"query":`, 400, map[string]any{"error": "invalid request"}},
		{"NoObject", "POST", "/api/v1/search", `[]`, 400, map[string]any{"error": "invalid request"}},
		{"NoBody", "POST", "/api/v1/search", ``, 400, map[string]any{"error": "invalid request"}},
		{"DeepNesting", "POST", "/api/v1/search", strings.Repeat("[", 100_000), 400, map[string]any{"error": "invalid request"}},
		{"BodyOverAMebibyte", "POST", "/api/v1/search", `{"query":"` + strings.Repeat("a", 1<<20) + `"}`, 413, map[string]any{"error": "too large"}},
		{"UnknownQueryParameter", "GET", "/api/v1/jobs?stauts=done", "", 400, map[string]any{"field": "query.stauts"}},
		{"UnknownStatus", "GET", "/api/v1/jobs?status=lost", "", 400, map[string]any{"field": "query.status"}},
		{"LimitBelowOne", "GET", "/api/v1/documents?limit=0", "", 400, map[string]any{"field": "query.limit"}},
		{"LimitAsText", "GET", "/api/v1/documents?limit=ten", "", 400, map[string]any{"field": "query.limit"}},
		{"CursorMadeUp", "GET", "/api/v1/documents?cursor=abc", "", 400, map[string]any{"field": "query.cursor"}},
		{"CursorOfAnotherYear", "GET", "/api/v1/jobs?cursor=%00", "", 400, map[string]any{"field": "query.cursor"}},
		{"NULInATag", "GET", "/api/v1/documents?tags=%00", "", 200, nil},
		{"InvalidUTF8InATag", "GET", "/api/v1/documents?tags=%ff", "", 200, nil},
		{"NULInAType", "GET", "/api/v1/documents?type=a%00b", "", 200, nil},
		{"NULInADocType", "POST", "/api/v1/search", `{"query":"a","doc_type":"a\u0000b","tags":["\u0000","a\u0000b"]}`, 200, nil},
		{"MalformedDocumentID", "GET", "/api/v1/documents/doc_%00", "", 404, map[string]any{"error": "not found"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := s.do(t, test.method, test.path, strings.NewReader(test.body), "Content-Type", "application/json").want(t, test.status)
			if test.status >= 400 {
				got.wantError(t, test.status, test.fields)
			}
			if test.status == 405 && got.header.Get("Allow") == "" {
				t.Error("no Allow")
			}
		})
	}

	t.Run("UPL04CompressedBodyIsRefused", func(t *testing.T) {
		t.Parallel()
		locked := start(t, config{NoWorker: true, Key: "secret"})
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, err := io.Copy(w, io.LimitReader(zeros{}, 50<<20))
		must(t, err)
		must(t, w.Close())
		headers := []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}
		for range 3 {
			got := locked.do(t, http.MethodPost, "/api/v1/search", bytes.NewReader(packed.Bytes()), headers...)
			got.wantError(t, 415, map[string]any{"error": "unsupported media type"})
		}
		got := locked.do(t, http.MethodPost, "/api/v1/search", bytes.NewReader(packed.Bytes()), append(slices.Clone(headers), "Authorization", "")...)
		got.wantError(t, 401, map[string]any{"error": "authentication required"})
		locked.upload(t, file("big.json.gz", packed.String())...).wantError(t, 422, map[string]any{"code": "unsupported_type"})
	})

	t.Run("AnswersCarryARequestID", func(t *testing.T) {
		t.Parallel()
		if a, b := s.get(t, "/api/v1/health"), s.get(t, "/nothing"); a.header.Get("X-Request-Id") == "" || a.header.Get("X-Request-Id") == b.header.Get("X-Request-Id") {
			t.Errorf("%v, %v", a.header, b.header)
		}
	})
}

func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	broken := api.New(api.Options{Logger: slog.New(slog.DiscardHandler)}) // no database: its handlers panic
	w := httptest.NewRecorder()
	broken.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/status", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"code":"internal"`) || strings.Contains(w.Body.String(), "nil pointer") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
