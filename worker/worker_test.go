package worker_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/goleak"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/job"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bundle is a database, a storage and an ingester; workers are started on it as a test needs them.
type bundle struct {
	pool *pgxpool.Pool
	// dir is the folder that bucket keeps its files in.
	dir      string
	bucket   *blob.Bucket
	ingester *worker.Ingester
	client   *river.Client[pgx.Tx]
	workers  int
}

func setup(t *testing.T, embedder embed.Embedder) *bundle {
	t.Helper()
	pool := dbtest.New(t)
	dir := t.TempDir()
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite, NoTempDir: true})
	must(t, err)
	t.Cleanup(func() { _ = bucket.Close() })
	ingester := worker.NewIngester(spaces(t, pool, embedder), worker.Reader{}, job.Chunking{})
	client, err := job.NewInserter(pool)
	must(t, err)
	return &bundle{pool: pool, dir: dir, bucket: bucket, ingester: ingester, client: client}
}

// setupOn gives an ingester with another embedder of the same space, on the database of a bundle.
func setupOn(t *testing.T, b *bundle, embedder embed.Embedder) *worker.Ingester {
	t.Helper()
	return worker.NewIngester(spaces(t, b.pool, embedder), worker.Reader{}, job.Chunking{})
}

// spaces registers the space of each embedder, the first one's as the active one.
func spaces(t *testing.T, pool *pgxpool.Pool, embedders ...embed.Embedder) *worker.Spaces {
	t.Helper()
	for _, embedder := range embedders {
		space := embedder.Space()
		_, err := db.EnsureSpace(t.Context(), pool, db.EmbeddingSpaceInsertParams{
			Model: space.Model, Precision: space.Precision, Sha256: space.SHA256, Dimensions: int32(space.Dimensions),
		})
		must(t, err)
	}
	return worker.NewSpaces(pool, func(_ context.Context, space embed.Space) (embed.Embedder, error) {
		for _, embedder := range embedders {
			if embedder.Space() == space {
				return embedder, nil
			}
		}
		return nil, fmt.Errorf("no embedder for %v", space)
	})
}

// start starts a worker that stops when the test ends, if the test has not stopped it before.
func (b *bundle) start(t *testing.T) *worker.Worker {
	t.Helper()
	w, err := worker.New(worker.Options{Pool: b.pool, Bucket: b.bucket, Ingest: b.ingester, Workers: b.workers, RetryKeep: 72 * time.Hour, SearchKeep: 48 * time.Hour, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	must(t, w.Start(context.WithoutCancel(t.Context())))
	t.Cleanup(func() { _ = w.Stop(context.Background()) })
	return w
}

// enqueue does what an upload does: the staged file, the job and its turn.
func (b *bundle) enqueue(t *testing.T, project uuid.UUID, filename, content string) db.Job {
	t.Helper()
	id, hash := db.NewID(), sha256.Sum256([]byte(content))
	must(t, b.bucket.WriteAll(t.Context(), job.StagingPath(id), []byte(content), nil))
	var row db.Job
	must(t, db.InTx(t.Context(), b.pool, func(tx pgx.Tx) (err error) {
		row, err = db.New().JobInsert(t.Context(), tx, db.JobInsertParams{
			ProjectID: project, ID: id, Filename: filename, Tags: []byte(`{"kind":"test"}`),
			Metadata: []byte("{}"), Chunking: []byte("{}"), OnConflict: job.ConflictDuplicate, ContentHash: hash[:], Size: int64(len(content)),
			StagingPath: job.StagingPath(id),
		})
		if err != nil {
			return err
		}
		_, err = b.client.InsertTx(t.Context(), tx, job.IngestArgs{}, nil)
		return err
	}))
	return row
}

func (b *bundle) project(t *testing.T, name string) uuid.UUID {
	t.Helper()
	project, err := db.New().ProjectInsert(t.Context(), b.pool, db.ProjectInsertParams{ID: db.NewID(), Name: name, TextConfig: "pg_catalog.english"})
	must(t, err)
	return project.ID
}

func (b *bundle) get(t *testing.T, row db.Job) db.Job {
	t.Helper()
	row, err := db.New().JobGet(t.Context(), b.pool, db.JobGetParams{ProjectID: row.ProjectID, ID: row.ID})
	must(t, err)
	return row
}

// wait waits until a job has ended.
func (b *bundle) wait(t *testing.T, row db.Job) db.Job {
	t.Helper()
	eventually(t, fmt.Sprintf("job %s ends", row.Filename), func() bool {
		row = b.get(t, row)
		return row.Status != db.JobStatusQueued && row.Status != db.JobStatusProcessing
	})
	return row
}

// count counts rows: the number that a statement gives.
func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	must(t, b.pool.QueryRow(t.Context(), sql, args...).Scan(&n))
	return n
}

// files lists the keys in the storage below a prefix.
func (b *bundle) files(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	for list := b.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		object, err := list.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return keys
		}
		must(t, err)
		keys = append(keys, object.Key)
	}
}

// wantWhole checks that a done job's document is there once, whole: its chunks numbered from 0, each with a vector.
func (b *bundle) wantWhole(t *testing.T, row db.Job) {
	t.Helper()
	if row.Status != db.JobStatusDone || row.DocumentID == nil || row.ChunkCount == nil {
		t.Fatalf("job %s is %s (error %v), document %v, chunks %v", row.Filename, row.Status, deref(row.Error), row.DocumentID, row.ChunkCount)
	}
	if n := b.count(t, "SELECT count(*) FROM documents WHERE content_hash = $1", row.ContentHash); n != 1 {
		t.Errorf("%d documents of the content, want 1", n)
	}
	chunks, err := db.New().ChunkListByDocument(t.Context(), b.pool, db.ChunkListByDocumentParams{ProjectID: row.ProjectID, DocumentID: *row.DocumentID})
	must(t, err)
	for i, c := range chunks {
		if int(c.Seq) != i {
			t.Errorf("chunk %d has seq %d", i, c.Seq)
		}
	}
	if len(chunks) == 0 || len(chunks) != int(*row.ChunkCount) {
		t.Errorf("%d chunks, the job says %d", len(chunks), *row.ChunkCount)
	}
	if n := b.count(t, "SELECT count(*) FROM embeddings WHERE document_id = $1", *row.DocumentID); n != len(chunks) {
		t.Errorf("%d vectors for %d chunks", n, len(chunks))
	}
	if staged := b.files(t, job.StagingPath(row.ID)); len(staged) > 0 {
		t.Errorf("staged files are left: %v", staged)
	}
}

// wantNothing checks that nothing of any document is in the database or among the originals.
func (b *bundle) wantNothing(t *testing.T) {
	t.Helper()
	for _, table := range []string{"documents", "chunks", "embeddings", "tags", "lexeme_deltas", "lexeme_stats"} {
		if n := b.count(t, "SELECT count(*) FROM "+table); n != 0 {
			t.Errorf("%d rows in %s, want none", n, table)
		}
	}
	if kept := b.files(t, "documents/"); len(kept) > 0 {
		t.Errorf("originals without a document: %v", kept)
	}
}

func (b *bundle) riverJob(t *testing.T, state rivertype.JobState) int64 {
	t.Helper()
	var id int64
	must(t, b.pool.QueryRow(t.Context(), "UPDATE river_job SET state = $1, attempt = 1, attempted_at = now() - interval '5 minutes' WHERE kind = 'ingest' RETURNING id", state).Scan(&id))
	return id
}

// wantNothingStaged waits until the uploads of ended jobs have gone: they go just after the end.
func (b *bundle) wantNothingStaged(t *testing.T) {
	t.Helper()
	eventually(t, "nothing is staged", func() bool { return len(b.files(t, "staging/")) == 0 })
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute: %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// order gives the names of jobs in the order in which they ended.
func order(rows ...db.Job) (names []string) {
	slices.SortFunc(rows, func(a, b db.Job) int { return a.CompletedAt.Compare(*b.CompletedAt) })
	for _, row := range rows {
		names = append(names, row.Filename)
	}
	return names
}

func fake() *embedtest.Embedder { return embedtest.New() }
