package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db/dbtest"
)

// killPoint is a step of an ingestion in which the server is killed.
type killPoint struct {
	name string
	// trigger stops the server in the statement, or the commit, that fires it.
	trigger string
	// cutOff says that the upload has no answer yet.
	cutOff bool
	// lands says that PostgreSQL ends what it was asked for, after the death of who asked. Else it is rolled back.
	lands bool
	// long takes a file of more chunks than are embedded at once.
	long bool
}

// killPoints go along an upload and its job in the order of their steps.
var killPoints = []killPoint{
	{name: "BeforeTheJobRowIsThere", trigger: before("INSERT ON jobs", "true"), cutOff: true},
	{name: "BeforeTheJobHasATurn", trigger: before("INSERT ON river_job", "NEW.kind = 'ingest'"), cutOff: true},
	{name: "WhileTheUploadCommitsInVain", trigger: atCommit("INSERT ON jobs", "true"), cutOff: true},
	{name: "WhileTheUploadCommitsUnheard", trigger: atCommit("INSERT ON jobs", "true"), cutOff: true, lands: true},

	{name: "BeforeTheTurnBegins", trigger: before("UPDATE ON river_job", "NEW.kind = 'ingest' AND NEW.state = 'running'")},
	{name: "BeforeTheJobIsTakenUp", trigger: before("UPDATE ON jobs", "NEW.status = 'processing' AND OLD.status = 'queued'")},
	{name: "WhileTakingUpCommitsUnheard", trigger: atCommit("UPDATE ON jobs", "NEW.status = 'processing' AND OLD.status = 'queued'"), lands: true},
	{name: "BeforeTheFirstChunkIsEmbedded", trigger: before("UPDATE ON jobs", "NEW.phase = 'embed' AND NEW.done = 0")},
	{name: "HalfWayThroughTheChunks", trigger: before("UPDATE ON jobs", "NEW.done > 0"), long: true},

	{name: "BeforeTheDocumentRowIsThere", trigger: before("INSERT ON documents", "true")},
	{name: "BeforeTheChunksAreThere", trigger: before("INSERT ON chunks", "true")},
	{name: "BeforeTheWordsAreThere", trigger: before("INSERT ON chunk_words", "true")},
	{name: "BeforeTheStatisticsHearOfThem", trigger: before("INSERT ON lexeme_deltas", "true")},
	{name: "BeforeTheVectorsAreThere", trigger: before("INSERT ON embeddings", "true")},
	{name: "BeforeTheTagsAreThere", trigger: before("INSERT ON tags", "true")},
	{name: "BeforeTheJobIsDone", trigger: before("UPDATE ON jobs", "NEW.status = 'done'")},
	{name: "WhileTheDocumentCommitsInVain", trigger: atCommit("UPDATE ON jobs", "NEW.status = 'done'")},
	{name: "WhileTheDocumentCommitsUnheard", trigger: atCommit("UPDATE ON jobs", "NEW.status = 'done'"), lands: true},

	{name: "BeforeTheWordsAreCounted", trigger: before("DELETE ON lexeme_deltas", "true")},
	{name: "WhileTheWordsAreCounted", trigger: before("INSERT ON lexeme_stats", "true")},
	{name: "BeforeTheChunksAreCounted", trigger: before("INSERT ON corpus_stats", "true")},
	{name: "WhileTheCountCommitsInVain", trigger: atCommit("INSERT ON corpus_stats", "true")},
	{name: "WhileTheCountCommitsUnheard", trigger: atCommit("INSERT ON corpus_stats", "true"), lands: true},
	{name: "BeforeTheTurnEnds", trigger: before("UPDATE ON river_job", "NEW.kind = 'ingest' AND NEW.state = 'completed'")},
}

func before(event, when string) string {
	return "CREATE TRIGGER hold BEFORE " + event + " FOR EACH ROW WHEN (" + when + ") EXECUTE FUNCTION hold()"
}

func atCommit(event, when string) string {
	return "CREATE CONSTRAINT TRIGGER hold AFTER " + event + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (" + when + ") EXECUTE FUNCTION hold()"
}

// TestKill kills the server between any two steps of an ingestion and starts it again on the same data: nothing is lost,
// nothing is there twice, nothing is left behind. PostgreSQL lives on, as an external one does.
func TestKill(t *testing.T) {
	t.Parallel()

	turns := make(chan struct{}, 3) // each server holds a model in memory
	for _, point := range killPoints {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()

			turns <- struct{}{}
			defer func() { <-turns }()
			newKilled(t, point).run(t)
		})
	}
}

// killed is a server that is killed in the middle of one upload.
type killed struct {
	point   killPoint
	dir     string
	address string
	// conn looks into the database from outside, and holds the lock that stops the server.
	conn *pgx.Conn
	// word stands in no other text.
	word    string
	content []byte
	hash    []byte
}

func newKilled(t *testing.T, point killPoint) *killed {
	t.Helper()
	k := &killed{point: point, dir: t.TempDir(), address: dbtest.URL(t), word: strings.ToLower(point.name)}
	sections := 3
	if point.long {
		sections = 40
	}
	k.content = killText(k.word, sections)
	hash := sha256.Sum256(k.content)
	k.hash = hash[:]
	conn, err := pgx.Connect(t.Context(), k.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	k.conn = conn
	return k
}

// killText gives a Markdown file whose sections are about a chunk long each.
func killText(word string, sections int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# The %s manual\n", word)
	for i := range sections {
		fmt.Fprintf(&b, "\n## Part %d\n\n", i)
		for j := range 12 {
			fmt.Fprintf(&b, "Valve %d of line %d opens at %d bar, says the %s manual. ", j, i, i*12+j, word)
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func (k *killed) run(t *testing.T) {
	s := serve(t, k.dir, "KB_DATABASE_URL="+k.address)
	s.ready(t)
	told := k.kill(t, s)
	k.hourPasses(t)

	s = serve(t, k.dir, "KB_DATABASE_URL="+k.address)
	s.ready(t)
	if k.point.cutOff {
		var err error
		if told, err = k.upload(s); err != nil {
			t.Fatal(err)
		}
		if told.status != http.StatusAccepted && (told.status != http.StatusConflict || told.JobID+told.DocumentID == "") {
			t.Fatalf("sent again, the upload got %+v", told)
		}
	}
	k.wantEnded(t)
	document := k.wantDone(t, s, told)
	k.wantWhole(t, s, document)
	k.wantFound(t, s, document)
	k.wantOriginal(t, s, document)
	k.wantCounted(t)
	again, err := k.upload(s)
	if err != nil || again.status != http.StatusConflict || again.DocumentID != document {
		t.Errorf("sent once more, the upload got %+v, %v; want 409 and %s", again, err, document)
	}
	k.wantNothingStaged(t)
}

// kill uploads the file, kills the server in the middle, and gives what the caller was told. No connection of the dead
// server is left then.
func (k *killed) kill(t *testing.T, s *server) (told uploadAnswer) {
	t.Helper()
	k.exec(t, `CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN coalesce(NEW, OLD); END'`)
	k.exec(t, k.point.trigger)
	k.exec(t, "SELECT pg_advisory_lock(4711)")
	unlock := func() { _, _ = k.conn.Exec(context.Background(), "SELECT pg_advisory_unlock_all()") }
	defer unlock()

	type outcome struct {
		told uploadAnswer
		err  error
	}
	outcomes := make(chan outcome, 1)
	go func() {
		told, err := k.upload(s)
		outcomes <- outcome{told, err}
	}()
	if !k.point.cutOff {
		got := <-outcomes
		if told = got.told; got.err != nil || told.status != http.StatusAccepted {
			t.Fatalf("the upload got %+v, %v", told, got.err)
		}
	}
	waiting := "FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = 4711 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	answered := func() bool { return len(outcomes) > 0 }
	if !eventually(patience, func() bool { return answered() || k.count(t, "SELECT count(*) "+waiting) > 0 }) || answered() {
		t.Fatal("the server does not come to the point where it is to be killed")
	}
	if code := s.signal(syscall.SIGKILL); code != -1 {
		t.Fatalf("kill -9 gave %d", code)
	}
	if k.point.cutOff {
		if got := <-outcomes; got.err == nil {
			t.Fatalf("the upload was not cut off: %+v", got.told)
		}
	}
	if !k.point.lands {
		k.exec(t, "SELECT pg_terminate_backend(pid) "+waiting)
		if !k.reaches(t, 0, "SELECT count(*) "+waiting) {
			t.Fatal("a connection does not end")
		}
	}
	unlock()
	if !k.reaches(t, 0, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()") {
		t.Fatal("the dead server still has connections")
	}
	k.exec(t, "DROP FUNCTION hold() CASCADE")
	return told
}

// hourPasses makes all that the dead server has left an hour older: its signs of life, its lead in River, its files.
func (k *killed) hourPasses(t *testing.T) {
	t.Helper()
	k.exec(t, "UPDATE jobs SET heartbeat_at = heartbeat_at - interval '1 hour', started_at = started_at - interval '1 hour', created_at = created_at - interval '1 hour'")
	k.exec(t, "UPDATE river_job SET attempted_at = attempted_at - interval '1 hour', created_at = created_at - interval '1 hour'")
	k.exec(t, "UPDATE river_leader SET elected_at = elected_at - interval '1 hour', expires_at = expires_at - interval '1 hour'")
	then := time.Now().Add(-time.Hour)
	for _, folder := range []string{"staging", "documents"} {
		for _, name := range k.files(t, folder) {
			if err := os.Chtimes(filepath.Join(k.dir, name), then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// wantEnded waits until no job is open.
func (k *killed) wantEnded(t *testing.T) {
	t.Helper()
	if k.reaches(t, 0, "SELECT count(*) FROM jobs WHERE status IN ('queued', 'processing')") {
		return
	}
	var jobs, turns string
	err := k.conn.QueryRow(t.Context(), `SELECT
		(SELECT string_agg(format('%s, attempts %s, turn %s', status, attempts, coalesce(river_job_id::text, 'none')), '; ') FROM jobs),
		(SELECT string_agg(format('turn %s is %s', id, state), '; ') FROM river_job WHERE kind = 'ingest')`).Scan(&jobs, &turns)
	if err != nil {
		t.Fatal(err)
	}
	t.Fatalf("a job does not end: %s (%s)", jobs, turns)
}

// wantDone checks that the one job is done, that it is what the caller was told of, and gives its document.
func (k *killed) wantDone(t *testing.T, s *server, told uploadAnswer) (document string) {
	t.Helper()
	var jobs []struct {
		JobID      string  `json:"job_id"`
		Status     string  `json:"status"`
		Error      *string `json:"error"`
		DocumentID *string `json:"document_id"`
		Attempts   int     `json:"attempts"`
	}
	s.get(t, "/api/v1/jobs", &jobs)
	if len(jobs) != 1 || jobs[0].Status != "done" || jobs[0].DocumentID == nil || jobs[0].Attempts > 2 {
		t.Fatalf("want one job, done: %+v", jobs)
	}
	document = *jobs[0].DocumentID
	if told.JobID != "" && told.JobID != jobs[0].JobID || told.DocumentID != "" && told.DocumentID != document {
		t.Errorf("the caller was told of %+v, the job is %s and the document %s", told, jobs[0].JobID, document)
	}
	return document
}

// wantWhole checks that the document is there once, with all that belongs to it.
func (k *killed) wantWhole(t *testing.T, s *server, document string) {
	t.Helper()
	var documents []struct{}
	if s.get(t, "/api/v1/documents", &documents); len(documents) != 1 {
		t.Errorf("%d documents are listed, want 1", len(documents))
	}
	var got struct {
		ContentHash string   `json:"content_hash"`
		ChunkCount  int      `json:"chunk_count"`
		Version     int      `json:"version"`
		HasFile     bool     `json:"has_file"`
		Tags        []string `json:"tags"`
		Chunks      []struct {
			Seq  int    `json:"seq"`
			Text string `json:"text"`
		} `json:"chunks"`
	}
	s.get(t, "/api/v1/documents/"+document, &got)
	least := 2
	if k.point.long {
		least = 17
	}
	if got.ContentHash != hex.EncodeToString(k.hash) || got.ChunkCount < least || got.Version != 1 || !got.HasFile || len(got.Chunks) != got.ChunkCount {
		t.Errorf("want at least %d chunks of version 1, got %+v", least, got)
	}
	for i, c := range got.Chunks {
		if c.Seq != i || !strings.Contains(c.Text, k.word) {
			t.Errorf("chunk %d is %+v", i, c)
		}
	}
	if want := []string{k.word, "kind:manual"}; !slices.Equal(slices.Sorted(slices.Values(got.Tags)), slices.Sorted(slices.Values(want))) {
		t.Errorf("tags %q, want %q", got.Tags, want)
	}
	if n := k.count(t, "SELECT count(*) FROM documents WHERE content_hash = $1", k.hash); n != 1 {
		t.Errorf("%d documents have the content, want 1", n)
	}
	for _, table := range []string{"chunks", "chunk_words", "embeddings"} {
		if n := k.count(t, "SELECT count(*) FROM "+table); n != got.ChunkCount {
			t.Errorf("%d rows in %s, want %d", n, table, got.ChunkCount)
		}
	}
	var tags []struct {
		Name          string `json:"name"`
		DocumentCount int    `json:"document_count"`
	}
	s.get(t, "/api/v1/tags", &tags)
	if len(tags) != 2 || tags[0].DocumentCount != 1 || tags[1].DocumentCount != 1 {
		t.Errorf("want two tags of one document each: %+v", tags)
	}
}

// wantFound checks that both arms of a search find the document.
func (k *killed) wantFound(t *testing.T, s *server, document string) {
	t.Helper()
	for _, arm := range []string{"fts_only", "vec_only"} {
		response, err := http.Post("http://"+s.addr+"/api/v1/search", "application/json", strings.NewReader(fmt.Sprintf(`{"query": %q, %q: true}`, k.word, arm)))
		if err != nil {
			t.Fatal(err)
		}
		var found struct {
			Results []struct {
				DocumentID string `json:"document_id"`
			} `json:"results"`
		}
		err = json.NewDecoder(response.Body).Decode(&found)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("the search got %d, %v", response.StatusCode, err)
		}
		if len(found.Results) == 0 || found.Results[0].DocumentID != document {
			t.Errorf("the search with %s found %+v, want %s", arm, found, document)
		}
	}
}

// wantOriginal checks that the file comes back as it was sent, and that no other original is kept.
func (k *killed) wantOriginal(t *testing.T, s *server, document string) {
	t.Helper()
	response, err := http.Get("http://" + s.addr + "/api/v1/documents/" + document + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	got, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Equal(got, k.content) {
		t.Errorf("the original is %d, %d bytes, %v; want the %d bytes that were sent", response.StatusCode, len(got), err, len(k.content))
	}
	var path string
	if err := k.conn.QueryRow(t.Context(), "SELECT stored_path FROM documents").Scan(&path); err != nil {
		t.Fatal(err)
	}
	if kept := k.files(t, "documents"); !slices.Equal(kept, []string{path}) {
		t.Errorf("originals %q, want %q alone", kept, path)
	}
}

// wantCounted checks that the statistics are those of the chunks that are stored.
func (k *killed) wantCounted(t *testing.T) {
	t.Helper()
	if !k.reaches(t, 0, "SELECT count(*) FROM lexeme_deltas") {
		t.Error("changes of the statistics are never taken in")
	}
	var n, length, wantN, wantLength int
	err := k.conn.QueryRow(t.Context(), `SELECT s.n, s.total_length, w.n, w.total_length
		FROM (SELECT coalesce(sum(n), 0) AS n, coalesce(sum(total_length), 0) AS total_length FROM corpus_stats) AS s,
			(SELECT count(*) AS n, sum(length) AS total_length FROM chunk_words) AS w`).Scan(&n, &length, &wantN, &wantLength)
	if err != nil {
		t.Fatal(err)
	}
	if n != wantN || length != wantLength {
		t.Errorf("the statistics count %d chunks of %d words, stored are %d of %d", n, length, wantN, wantLength)
	}
	wrong := k.count(t, `SELECT count(*)
		FROM (SELECT lexeme, df FROM lexeme_stats WHERE df > 0) AS s
		FULL JOIN (SELECT lexeme, count(*) AS df FROM chunk_words, unnest(tsvector_to_array(tsv)) AS lexeme GROUP BY 1) AS w USING (lexeme)
		WHERE s.df IS DISTINCT FROM w.df`)
	if wrong > 0 {
		t.Errorf("the statistics are wrong about %d words", wrong)
	}
}

// wantNothingStaged waits until the staging area is empty. All jobs have ended, so nobody needs what is in it: neither
// what an upload left that was cut off before its row was there, nor what a job left that was killed after its commit.
func (k *killed) wantNothingStaged(t *testing.T) {
	t.Helper()
	var staged []string
	if !eventually(patience, func() bool { staged = k.files(t, "staging"); return len(staged) == 0 }) {
		t.Errorf("files stay in the staging area: %q", staged)
	}
}

// uploadAnswer is what the caller of an upload was told.
type uploadAnswer struct {
	status     int
	JobID      string `json:"job_id"`
	DocumentID string `json:"document_id"`
	Message    string `json:"message"`
}

func (k *killed) upload(s *server) (uploadAnswer, error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "manual.md")
	if err != nil {
		return uploadAnswer{}, err
	}
	_, _ = part.Write(k.content)
	_ = w.WriteField("tags", "kind:manual,"+k.word)
	_ = w.Close()
	response, err := http.Post("http://"+s.addr+"/api/v1/jobs", w.FormDataContentType(), &form)
	if err != nil {
		return uploadAnswer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	told := uploadAnswer{status: response.StatusCode}
	return told, json.NewDecoder(response.Body).Decode(&told)
}

// files lists the files in a folder of the data folder, by their keys in the storage.
func (k *killed) files(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(k.dir), folder, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func (k *killed) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := k.conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
}

// count gives the number that a statement gives.
func (k *killed) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := k.conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%v: %s", err, sql)
	}
	return n
}

// reaches waits until a statement gives a number.
func (k *killed) reaches(t *testing.T, want int, sql string) bool {
	t.Helper()
	return eventually(patience, func() bool { return k.count(t, sql) == want })
}

// patience is more than two rounds of the worker's upkeep, which comes each 15 seconds.
const patience = 35 * time.Second

// eventually waits until something is so, and says whether it came to be in time.
func eventually(limit time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
