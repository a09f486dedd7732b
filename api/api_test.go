package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/kb-search/kb/api"
	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/job"
	"github.com/kb-search/kb/worker/parse/pdf"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// config is what a test wants of its server; the zero value is an open server with a worker and the fake model.
type config struct {
	Embedder embed.Embedder
	// Configured is the embedder of KB_MODEL, when it is not the one that made the stored vectors.
	Configured embed.Embedder
	// On is a server whose database and files this one takes over.
	On        *server
	Converter worker.Converter
	NoWorker  bool
	Key       string
	// Secret makes the server take tokens; see mint.
	Secret  string
	Origins []string
	// Knowledge has the defaults of knowledge searches.
	Knowledge api.Knowledge
	MaxUpload int64
	// Settings are those of searches; nil for the default ones. LogQueries keeps the texts of searches.
	Settings   *search.Settings
	Reranking  search.Reranking
	LogQueries bool
}

// server is the whole of kb behind HTTP, put together as cmd/kb does.
type server struct {
	url    string
	client *http.Client
	pool   *pgxpool.Pool
	bucket *blob.Bucket
	key    string
	api    *api.Server
	// ingester is the one that a worker of the test takes.
	ingester *worker.Ingester
	worker   *worker.Worker
}

func start(t testing.TB, c config) *server {
	t.Helper()
	if c.Embedder == nil {
		c.Embedder = embedtest.New()
	}
	if c.MaxUpload == 0 {
		c.MaxUpload = 100 << 20
	}
	pool, bucket := storage(t, c.On)
	spaces, configured := openSpaces(t, pool, c.Embedder, c.Configured)
	reader := pdf.New(pdf.Options{CacheDir: filepath.Join(dbtest.CacheDir(), "pdfium")})
	t.Cleanup(func() { _ = reader.Close() })
	ingester := worker.NewIngester(spaces, worker.Reader{PDF: reader, Converter: c.Converter, Logger: slog.New(slog.DiscardHandler)}, job.Chunking{})
	jobs, err := job.NewInserter(pool)
	must(t, err)
	logger := slog.New(noErrors{slog.DiscardHandler, t})
	var tokens *auth.Tokens
	if c.Secret != "" {
		tokens, err = auth.NewTokens(t.Context(), auth.TokenOptions{Secret: c.Secret})
		must(t, err)
	}
	settings := search.DefaultSettings()
	if c.Settings != nil {
		settings = *c.Settings
	}
	handler := api.New(api.Options{
		Conn: pool, Bucket: bucket, Jobs: jobs, Searcher: search.New(pool, spaces, settings, c.Reranking, logger), LogQueries: c.LogQueries,
		Memories: memory.NewWriter(pool, spaces, slog.New(slog.DiscardHandler)),
		Reviser:  worker.NewReviser(pool, bucket, ingester), CheckChunking: ingester.CheckChunking, FileTypes: job.Types{Images: c.Converter != nil}, ConfiguredSpace: configured,
		Device: embed.Device{Name: embed.DeviceCPU, Reason: "a test"}, Database: "external", APIKey: c.Key, Tokens: tokens, Origins: c.Origins, Knowledge: c.Knowledge, MaxUploadBytes: c.MaxUpload, SearchTimeout: 10 * time.Second, Logger: logger,
	})
	t.Cleanup(handler.Close)
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	started := &server{url: listener.URL, client: listener.Client(), pool: pool, bucket: bucket, key: c.Key, api: handler, ingester: ingester}
	if !c.NoWorker {
		started.work(t)
	}
	return started
}

func storage(t testing.TB, on *server) (*pgxpool.Pool, *blob.Bucket) {
	t.Helper()
	if on != nil {
		return on.pool, on.bucket
	}
	pool := dbtest.New(t)
	bucket, err := fileblob.OpenBucket(t.TempDir(), &fileblob.Options{Metadata: fileblob.MetadataDontWrite, NoTempDir: true})
	must(t, err)
	t.Cleanup(func() { _ = bucket.Close() })
	return pool, bucket
}

// openSpaces registers the embedding spaces of the embedder that made the stored vectors, and of the one that is configured
// now; nil stands for the same. It gives the number of the latter.
func openSpaces(t testing.TB, pool *pgxpool.Pool, embedder, configured embed.Embedder) (*worker.Spaces, int32) {
	t.Helper()
	embedders := []embed.Embedder{embedder}
	if configured != nil {
		embedders = append(embedders, configured)
	}
	var id int32
	for _, e := range embedders {
		space := e.Space()
		stored, err := db.EnsureSpace(t.Context(), pool, db.EmbeddingSpaceInsertParams{
			Model: space.Model, Precision: space.Precision, Sha256: space.SHA256, Dimensions: int32(space.Dimensions),
		})
		must(t, err)
		id = stored.ID
	}
	return worker.NewSpaces(pool, func(_ context.Context, space embed.Space) (embed.Embedder, error) {
		for _, e := range embedders {
			if e.Space() == space {
				return e, nil
			}
		}
		return nil, fmt.Errorf("no embedder for %v", space)
	}), id
}

// work starts a worker.
func (s *server) work(t testing.TB) {
	t.Helper()
	w, err := worker.New(worker.Options{
		Pool: s.pool, Bucket: s.bucket, Ingest: s.ingester, RetryKeep: time.Hour, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	must(t, w.Start(context.WithoutCancel(t.Context())))
	s.worker = w
	t.Cleanup(func() { s.stopWorker(t) })
}

// stopWorker stops the worker, if it runs.
func (s *server) stopWorker(t testing.TB) {
	t.Helper()
	must(t, s.worker.Stop(context.Background()))
}

// noErrors fails the test for whatever is logged as an error: a panic, an internal error.
type noErrors struct {
	slog.Handler
	t testing.TB
}

func (h noErrors) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (h noErrors) WithAttrs([]slog.Attr) slog.Handler               { return h }
func (h noErrors) Handle(_ context.Context, record slog.Record) error {
	var b strings.Builder
	record.Attrs(func(a slog.Attr) bool { b.WriteString(" " + a.String()); return true })
	h.t.Errorf("the server logged an error: %s%s", record.Message, b.String())
	return nil
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request and reads the answer, which is never an error of the server's own. Headers come in pairs.
func (s *server) do(t testing.TB, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	must(t, err)
	if s.key != "" {
		request.Header.Set("Authorization", "Bearer "+s.key)
	}
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := s.client.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	must(t, err)
	a := answer{status: response.StatusCode, header: response.Header, body: read}
	if a.status >= http.StatusInternalServerError || a.status >= 400 && !json.Valid(read) {
		t.Errorf("%s %.80s: %d %s", method, path, a.status, read)
	}
	s.wantDocumented(t, method, request.URL.Path, a)
	return a
}

func (s *server) get(t testing.TB, path string) answer {
	t.Helper()
	return s.do(t, http.MethodGet, path, nil)
}

func (s *server) put(t testing.TB, path, body string) answer {
	t.Helper()
	return s.do(t, http.MethodPut, path, strings.NewReader(body), "Content-Type", "application/json")
}

func (s *server) post(t testing.TB, path, body string) answer {
	t.Helper()
	return s.do(t, http.MethodPost, path, strings.NewReader(body), "Content-Type", "application/json")
}

// part is one part of a multipart form; with a filename it is a file.
type part struct{ name, filename, value string }

func note(title, text string) []part { return []part{{"note", "", text}, {"title", "", title}} }
func file(filename, content string) []part {
	return []part{{"file", filename, content}}
}

func form(t testing.TB, parts []part) (body *bytes.Buffer, contentType string) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, p := range parts {
		header := textproto.MIMEHeader{}
		header.Set("Content-Disposition", fmt.Sprintf("form-data; name=%q", p.name))
		if p.filename != "" {
			header.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename="%s"`, p.name, strings.ReplaceAll(p.filename, `\`, `\\`)))
			header.Set("Content-Type", "application/octet-stream")
		}
		in, err := w.CreatePart(header)
		must(t, err)
		_, err = io.WriteString(in, p.value)
		must(t, err)
	}
	must(t, w.Close())
	return body, w.FormDataContentType()
}

func (s *server) upload(t testing.TB, parts ...part) answer {
	t.Helper()
	body, contentType := form(t, parts)
	return s.do(t, http.MethodPost, "/api/v1/jobs", body, "Content-Type", contentType)
}

// ingest uploads and waits until the job is done.
func (s *server) ingest(t testing.TB, parts ...part) map[string]any {
	t.Helper()
	accepted := s.upload(t, parts...)
	if accepted.status != http.StatusAccepted {
		t.Fatalf("upload %.60v: %d %s", parts, accepted.status, accepted.body)
	}
	ended := s.wait(t, accepted.object(t)["job_id"].(string))
	if ended["status"] != "done" {
		t.Fatalf("upload %.60v: %v", parts, ended)
	}
	return ended
}

// wait waits until a job has ended.
func (s *server) wait(t testing.TB, jobID string) map[string]any {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		got := s.get(t, "/api/v1/jobs/"+jobID).want(t, http.StatusOK).object(t)
		if got["status"] != "queued" && got["status"] != "processing" {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %v", got)
		}
	}
}

// document gets the document of a done job.
func (s *server) document(t testing.TB, done map[string]any) map[string]any {
	t.Helper()
	return s.get(t, "/api/v1/documents/"+done["document_id"].(string)).want(t, http.StatusOK).object(t)
}

func (s *server) count(t testing.TB, table string) (n int) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("got %d, want %d: %.500s", a.status, status, a.body)
	}
	return a
}

func (a answer) object(t testing.TB) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal(a.body, &object); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return object
}

func (a answer) names(t testing.TB) (names []string) {
	t.Helper()
	must(t, json.Unmarshal(a.body, &names))
	return names
}

func (a answer) list(t testing.TB) (list []map[string]any) {
	t.Helper()
	if err := json.Unmarshal(a.body, &list); err != nil || list == nil {
		t.Fatalf("not a list: %v: %s", err, a.body)
	}
	return list
}

// wantError checks the status and the fields of an error.
func (a answer) wantError(t testing.TB, status int, fields map[string]any) {
	t.Helper()
	got := a.want(t, status).object(t)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if got[name] != fields[name] {
			t.Errorf("%s is %v, want %v: %s", name, got[name], fields[name], a.body)
		}
	}
	for _, name := range []string{"error", "code", "message"} {
		if text, _ := got[name].(string); text == "" {
			t.Errorf("an error without %s: %s", name, a.body)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
