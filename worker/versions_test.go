package worker_test

import (
	"testing"

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
