package docling

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

const (
	secret   = "s3cret-key"
	pdfBytes = "%PDF-1.7 not read by anyone"
	onePage  = `{"schema_name": "DoclingDocument", "version": "1.10.0", "name": "a", "body": {"self_ref": "#/body", "children": [{"$ref": "#/texts/0"}],
		"content_layer": "body", "name": "_root_", "label": "unspecified"}, "groups": [], "texts": [{"self_ref": "#/texts/0",
		"parent": {"$ref": "#/body"}, "children": [], "content_layer": "body", "label": "text", "prov": [{"page_no": 1, "bbox": {"l": 72.0,
		"t": 720.1, "r": 200.5, "b": 700.0, "coord_origin": "BOTTOMLEFT"}, "charspan": [0, 12]}], "orig": "Hello there.", "text": "Hello there."}],
		"pages": {"1": {"size": {"width": 612.0, "height": 792.0}, "image": {"mimetype": "image/png", "uri": "data:image/png;base64,AAAA"}, "page_no": 1}}}`
)

// outcome writes an answer to a conversion as docling-serve does.
func outcome(status, document, problems string) string {
	return fmt.Sprintf(`{"document": {"filename": "a.pdf", "md_content": null, "json_content": %s, "html_content": null, "text_content": null,
		"doctags_content": null}, "status": %q, "errors": %s, "processing_time": 1.25, "timings": {}, "confidence": null}`, document, status, problems)
}

// serve is a docling-serve whose answers a test sets; by default a task is pending, then started, then done.
type serve struct {
	*httptest.Server

	submit, poll, result, convert http.HandlerFunc
	polls                         atomic.Int32

	mu       sync.Mutex
	requests []string
	keys     []string
	form     map[string][]string
	file     string
}

func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func taskBody(status string) string {
	return fmt.Sprintf(`{"task_id": "b7c1/2", "task_type": "convert", "task_status": %q, "task_position": 1, "task_meta": null,
		"error_message": null, "failure": null}`, status)
}

func newServe(t *testing.T) *serve {
	t.Helper()
	s := &serve{submit: reply(200, taskBody("pending")), result: reply(200, outcome("success", onePage, "[]")), convert: reply(404, `{"detail": "Not Found"}`)}
	s.poll = func(w http.ResponseWriter, r *http.Request) {
		status := "started"
		if s.polls.Load() > 1 {
			status = "success"
		}
		reply(200, taskBody(status))(w, r)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /base/v1/convert/file/async", func(w http.ResponseWriter, r *http.Request) { s.upload(r); s.submit(w, r) })
	mux.HandleFunc("POST /base/v1/convert/file", func(w http.ResponseWriter, r *http.Request) { s.upload(r); s.convert(w, r) })
	mux.HandleFunc("GET /base/v1/status/poll/{id}", func(w http.ResponseWriter, r *http.Request) { s.polls.Add(1); s.poll(w, r) })
	mux.HandleFunc("GET /base/v1/result/{id}", func(w http.ResponseWriter, r *http.Request) { s.result(w, r) })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		s.keys = append(s.keys, r.Header.Get("X-Api-Key"))
		s.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)

	return s
}

func (s *serve) upload(r *http.Request) {
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.form = r.MultipartForm.Value
	for _, header := range r.MultipartForm.File["files"] {
		file, err := header.Open()
		if err != nil {
			return
		}
		data, _ := io.ReadAll(file)
		_ = file.Close()
		s.file = header.Filename + "=" + string(data)
	}
}

func (s *serve) client(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	opt := Options{URL: s.URL + "/base/", Key: secret, Timeout: 10 * time.Second, PollWait: 10 * time.Millisecond, HTTP: s.Client()}
	if change != nil {
		change(&opt)
	}
	client, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}

	return client
}

func (s *serve) convertPDF(t *testing.T) (parse.Document, error) {
	t.Helper()
	doc, err := s.client(t, nil).Convert(t.Context(), "a.pdf", []byte(pdfBytes))
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error holds the key: %v", err)
	}
	if err == nil {
		if err := check(doc); err != nil {
			t.Error(err)
		}
	}

	return doc, err
}

// code says in one word what kind of error it is.
func code(err error) string {
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, ErrUnreachable):
		return "unreachable"
	default:
		return buildtest.Code(err)
	}
}

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}

	return data
}
