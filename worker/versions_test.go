package worker_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker/job"
)

// TestVersionRaces has somebody change or delete a document while its next version is embedded.
func TestVersionRaces(t *testing.T) {
	t.Parallel()

	// begin stores a document at a path and gives it, with the job of its next version, which is being embedded until the
	// test closes the channel.
	begin := func(t *testing.T) (b *bundle, document db.Document, next db.Job, goOn chan struct{}) {
		t.Helper()
		b = setup(t, fake())
		at := func(row db.Job) {
			t.Helper()
			_, err := b.pool.Exec(t.Context(), "UPDATE jobs SET path = '/pump.txt', on_conflict = $2 WHERE id = $1", row.ID, job.ConflictVersion)
			must(t, err)
		}
		first := b.enqueue(t, db.DefaultProjectID, "pump.txt", "The pump is loud.")
		at(first)
		w := b.start(t)
		first = b.wait(t, first)
		must(t, w.Stop(t.Context()))
		document, err := db.New().DocumentGet(t.Context(), b.pool, db.DocumentGetParams{ProjectID: first.ProjectID, ID: *first.DocumentID})
		must(t, err)

		goOn = make(chan struct{})
		blocked := &embedtest.Embedder{Block: goOn}
		b.ingester = setupOn(t, b, blocked)
		next = b.enqueue(t, db.DefaultProjectID, "pump.txt", "The pump is quiet.")
		at(next)
		b.start(t)
		eventually(t, "the next version is embedded", func() bool { return blocked.Calls() > 0 })
		return b, document, next, goOn
	}

	t.Run("ADeletedDocumentStaysDeleted", func(t *testing.T) {
		t.Parallel()
		b, document, next, goOn := begin(t)
		must(t, db.New().ChunkDeleteByDocument(t.Context(), b.pool, db.ChunkDeleteByDocumentParams{ProjectID: document.ProjectID, DocumentID: document.ID}))
		_, err := db.New().DocumentDelete(t.Context(), b.pool, db.DocumentDeleteParams{ProjectID: document.ProjectID, ID: document.ID})
		must(t, err)
		close(goOn)
		if next = b.wait(t, next); next.Status != db.JobStatusFailed || deref(next.ErrorCode) != "document_deleted" {
			t.Errorf("got %s, code %s", next.Status, deref(next.ErrorCode))
		}
		if n := b.count(t, "SELECT count(*) FROM documents"); n != 0 {
			t.Errorf("%d documents", n)
		}
	})

	t.Run("AChangedDocumentGetsItsVersionOnTop", func(t *testing.T) {
		t.Parallel()
		b, document, next, goOn := begin(t)
		_, err := b.pool.Exec(t.Context(), "UPDATE documents SET version = version + 1, tags = '{\"kept\": \"\"}' WHERE id = $1", document.ID)
		must(t, err)
		close(goOn)
		if next = b.wait(t, next); next.Status != db.JobStatusDone || *next.DocumentID != document.ID || next.Attempts != 2 {
			t.Errorf("got %+v", next)
		}
		got, err := db.New().DocumentGet(t.Context(), b.pool, db.DocumentGetParams{ProjectID: document.ProjectID, ID: document.ID})
		must(t, err)
		if got.Version != 3 || b.count(t, "SELECT count(*) FROM chunks") != 1 {
			t.Errorf("version %d", got.Version)
		}
	})
}

// TestPathRaces has another transaction take the path of a job that has found it free, and commit while the job stores its
// document.
func TestPathRaces(t *testing.T) {
	t.Parallel()

	race := func(t *testing.T, conflict string) (b *bundle, first db.Document, second db.Job) {
		t.Helper()
		b = setup(t, fake())
		path := "/pump.txt"
		tx, err := b.pool.Begin(t.Context())
		must(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		insert(t, tx, path)
		second = b.enqueue(t, db.DefaultProjectID, "pump.txt", "The pump is quiet.")
		_, err = b.pool.Exec(t.Context(), "UPDATE jobs SET path = $2, on_conflict = $3 WHERE id = $1", second.ID, path, conflict)
		must(t, err)
		b.start(t)
		eventually(t, "the job waits for the path", func() bool {
			return b.count(t, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INSERT INTO documents%'") > 0
		})
		must(t, tx.Commit(t.Context()))
		first, err = db.New().DocumentGetByPath(t.Context(), b.pool, db.DocumentGetByPathParams{ProjectID: db.DefaultProjectID, Path: path})
		must(t, err)
		return b, first, b.wait(t, second)
	}

	t.Run("ADuplicateTakesTheNextPath", func(t *testing.T) {
		t.Parallel()
		b, first, second := race(t, job.ConflictDuplicate)
		b.wantWhole(t, second)
		got, err := db.New().DocumentGet(t.Context(), b.pool, db.DocumentGetParams{ProjectID: first.ProjectID, ID: *second.DocumentID})
		must(t, err)
		if got.ID == first.ID || deref(got.Path) != "/pump (2).txt" || second.Attempts != 1 {
			t.Errorf("it stands at %s after %d attempts", deref(got.Path), second.Attempts)
		}
	})

	t.Run("AVersionGoesOnTop", func(t *testing.T) {
		t.Parallel()
		b, first, second := race(t, job.ConflictVersion)
		b.wantWhole(t, second)
		if *second.DocumentID != first.ID || second.Attempts != 1 || b.count(t, "SELECT max(version) FROM documents") != 2 {
			t.Errorf("got %+v", second)
		}
	})

	t.Run("ARejectedOneFails", func(t *testing.T) {
		t.Parallel()
		_, _, second := race(t, job.ConflictReject)
		if second.Status != db.JobStatusFailed || deref(second.ErrorCode) != "path_taken" {
			t.Errorf("got %s, code %s", second.Status, deref(second.ErrorCode))
		}
	})
}

// insert stores a document without chunks at a path.
func insert(t *testing.T, tx pgx.Tx, path string) {
	t.Helper()
	_, err := db.New().DocumentInsert(t.Context(), tx, db.DocumentInsertParams{
		ProjectID: db.DefaultProjectID, ID: db.NewID(), Title: "pump", Path: &path, DocType: "data", Tags: []byte("{}"), Metadata: []byte("{}"),
		Chunking: []byte("{}"), ContentHash: []byte{1}, OriginalFilename: "pump.txt", StoredPath: "documents/x",
	})
	must(t, err)
}
