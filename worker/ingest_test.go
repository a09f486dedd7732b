package worker_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker/job"
)

// long gives a text of several chunks that differs by name.
func long(name string) string {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "Line %d of the %s log tells of valve %d and pump %d.\n", i, name, i*7, i*3)
	}
	return b.String()
}

// failing gives an embedder that fails the first n times that it sees a word.
func failing(word string, n int64) *embedtest.Embedder {
	var seen atomic.Int64
	return &embedtest.Embedder{Fail: func(text string) error {
		if strings.Contains(text, word) && seen.Add(1) <= n {
			return errors.New("the model is away")
		}
		return nil
	}}
}

func TestIngest(t *testing.T) {
	t.Parallel()

	t.Run("DoneIsWholeAndRunningTwiceChangesNothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		b.start(t)
		row = b.wait(t, row)
		b.wantWhole(t, row)
		if *row.ChunkCount < 2 || row.Attempts != 1 || row.StartedAt == nil || row.Phase != nil || string(row.Timings) == "{}" {
			t.Errorf("got %+v", row)
		}
		document, err := db.New().DocumentGet(t.Context(), b.pool, db.DocumentGetParams{ProjectID: row.ProjectID, ID: *row.DocumentID})
		must(t, err)
		if document.UpdatedAt != nil || document.Title != "pump" || !slices.Equal(b.files(t, "documents/"), []string{document.StoredPath}) {
			t.Errorf("got %+v, originals %v", document, b.files(t, "documents/"))
		}
		eventually(t, "the statistics are folded", func() bool { return b.count(t, "SELECT count(*) FROM lexeme_deltas") == 0 })

		for range 3 {
			_, err = b.client.Insert(t.Context(), job.IngestArgs{}, nil)
			must(t, err)
		}
		second := b.wait(t, b.enqueue(t, db.DefaultProjectID, "copy.txt", long("pump")))
		if second.Status != db.JobStatusSkipped || *second.DocumentID != *row.DocumentID {
			t.Errorf("the same content again: %+v", second)
		}
		b.wantNothingStaged(t)
		b.wantWhole(t, row)
		if again := b.get(t, row); again.Attempts != 1 || !again.CompletedAt.Equal(*row.CompletedAt) {
			t.Errorf("the done job has changed: %+v", again)
		}
	})

	t.Run("FailingTwiceThenDoneAtTheThirdAttempt", func(t *testing.T) {
		t.Parallel()
		b := setup(t, failing("pump", 2))
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		b.start(t)
		row = b.wait(t, row)
		b.wantWhole(t, row)
		if row.Attempts != 3 {
			t.Errorf("%d attempts", row.Attempts)
		}
	})

	t.Run("ModelAwayUsesUpNoAttempt", func(t *testing.T) {
		t.Parallel()
		var away atomic.Bool
		away.Store(true)
		b := setup(t, &embedtest.Embedder{Fail: func(string) error {
			if away.Load() {
				return fmt.Errorf("ask the server: %w", embed.ErrUnavailable)
			}
			return nil
		}})
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		b.start(t)
		for n := range job.MaxAttempts + 2 {
			eventually(t, "the job is put off", func() bool {
				return b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'ingest' AND state = 'scheduled'") == 1
			})
			if got := b.get(t, row); got.Attempts != 0 || got.Status != db.JobStatusProcessing {
				t.Fatalf("after %d tries: %+v", n+1, got)
			}
			away.Store(n <= job.MaxAttempts)
			_, err := b.pool.Exec(t.Context(), "UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'ingest'")
			must(t, err)
		}
		row = b.wait(t, row)
		b.wantWhole(t, row)
		if row.Attempts != 1 {
			t.Errorf("%d attempts", row.Attempts)
		}
	})

	t.Run("ADocumentThatTheModelCannotTakeDoesNotBlockOthers", func(t *testing.T) {
		t.Parallel()
		b := setup(t, &embedtest.Embedder{Fail: func(text string) error {
			if strings.Contains(text, "pump") {
				return fmt.Errorf("ask the server: %w", embed.ErrUnavailable)
			}
			return nil
		}})
		bad := b.enqueue(t, db.DefaultProjectID, "pump.txt", "A pump.")
		good := b.enqueue(t, db.DefaultProjectID, "valve.txt", "A valve.")
		b.start(t)
		if row := b.wait(t, good); row.Status != db.JobStatusDone {
			t.Errorf("%+v", row)
		}
		if row := b.get(t, bad); row.Status != db.JobStatusFailed || row.Attempts != job.MaxAttempts {
			t.Errorf("%+v", row)
		}
	})

	t.Run("FailingThreeTimesLeavesNothingAndTheNextJobRuns", func(t *testing.T) {
		t.Parallel()
		b := setup(t, failing("pump", 1000))
		row, next := b.enqueue(t, db.DefaultProjectID, "pump.txt", "The pump is loud."), b.enqueue(t, db.DefaultProjectID, "valve.txt", "The valve is tight.")
		b.start(t)
		row, next = b.wait(t, row), b.wait(t, next)
		if row.Status != db.JobStatusFailed || deref(row.ErrorCode) != "internal" || row.Attempts != 3 || strings.Contains(*row.Error, "model is away") {
			t.Errorf("got %+v", row)
		}
		b.wantWhole(t, next)
		if left := b.files(t, ""); len(left) != 2 || left[1] != job.FailedPath(row.ID) {
			t.Errorf("files: %v, want the second document's original and the upload kept for another try", left)
		}
	})

	t.Run("StoringFailsForGood", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		_, err := b.pool.Exec(t.Context(), "ALTER TABLE tags ADD CONSTRAINT refuse CHECK (name <> 'kind:test')")
		must(t, err)
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		b.start(t)
		if row = b.wait(t, row); row.Status != db.JobStatusFailed {
			t.Errorf("got %+v", row)
		}
		b.wantNothing(t)
	})

	for name, test := range map[string]struct{ filename, content, code string }{
		"BinaryFails":            {"program.txt", "\x7fELF\x02\x01\x01", "binary"},
		"BlankFails":             {"blank.txt", " \u00a0\u200b\n", "empty"},
		"NoTokenFails":           {"´.txt", "\u0301\u0301", "empty"},
		"UnsupportedFails":       {"movie.mp4", "frames", "unsupported_type"},
		"FilesFailOnceForAll":    {"archive.json", "PK\x03\x04 rest", "unsupported_type"},
		"EmptyFileAtTheLastGate": {"empty.txt", "", "empty"},
	} {
		t.Run("AtTheFirstAttempt"+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, blind{fake()})
			row := b.enqueue(t, db.DefaultProjectID, test.filename, test.content)
			next := b.enqueue(t, db.DefaultProjectID, "good.txt", "A good text.")
			b.start(t)
			row, next = b.wait(t, row), b.wait(t, next)
			if row.Status != db.JobStatusFailed || deref(row.ErrorCode) != test.code || row.Attempts != 1 || deref(row.Error) == "" || row.DocumentID != nil {
				t.Errorf("got %+v, code %s, want %s", row, deref(row.ErrorCode), test.code)
			}
			b.wantWhole(t, next)
			b.wantNothingStaged(t)
		})
	}

	t.Run("AtTheFirstAttemptLostUploadFails", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", "The pump is loud.")
		must(t, b.bucket.Delete(t.Context(), row.StagingPath))
		b.start(t)
		if row = b.wait(t, row); row.Status != db.JobStatusFailed || deref(row.ErrorCode) != "upload_lost" || row.Attempts != 1 {
			t.Errorf("got %+v", row)
		}
		b.wantNothing(t)
	})
}

// blind is a model that, like the real ones, sees no token in lone accents.
type blind struct{ *embedtest.Embedder }

func (b blind) CountTokens(text string) int {
	if strings.Trim(text, "´\u0301\n ") == "" {
		return 0
	}
	return b.Embedder.CountTokens(text)
}

func TestOrder(t *testing.T) {
	t.Parallel()

	t.Run("FirstInFirstOut", func(t *testing.T) {
		t.Parallel()
		b := setup(t, failing("text 2", 1)) // a retried job keeps its place
		var rows []db.Job
		var want []string
		for i := range 6 {
			rows = append(rows, b.enqueue(t, db.DefaultProjectID, fmt.Sprintf("%d.txt", i), fmt.Sprintf("This is text %d.", i)))
			want = append(want, fmt.Sprintf("%d.txt", i))
		}
		b.start(t)
		for i := range rows {
			rows[i] = b.wait(t, rows[i])
			b.wantWhole(t, rows[i])
		}
		if got := order(rows...); !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	})

	t.Run("ProjectsTakeTurns", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		many, one := b.project(t, "many"), b.project(t, "one")
		var rows []db.Job
		for i := range 5 {
			rows = append(rows, b.enqueue(t, many, fmt.Sprintf("a%d.txt", i), fmt.Sprintf("This is text %d.", i)))
		}
		rows = append(rows, b.enqueue(t, one, "b.txt", "This is text 1."))
		b.start(t)
		for i := range rows {
			rows[i] = b.wait(t, rows[i])
			if rows[i].Status != db.JobStatusDone {
				t.Errorf("got %+v", rows[i])
			}
		}
		if got, want := order(rows...), []string{"a0.txt", "b.txt", "a1.txt", "a2.txt", "a3.txt", "a4.txt"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if n := b.count(t, "SELECT count(*) FROM documents WHERE stored_path LIKE 'documents/' || project_id || '/%'"); n != 6 {
			t.Errorf("%d originals lie in the folder of their project, want 6", n)
		}
	})

	t.Run("TwoProcessesShareTheWorkAndTakeNothingTwice", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		b.workers = 4
		var rows []db.Job
		for p := range 24 {
			project := b.project(t, fmt.Sprintf("p%d", p))
			for i := range 2 {
				rows = append(rows, b.enqueue(t, project, fmt.Sprintf("%d-%d.txt", p, i), fmt.Sprintf("This is text %d of %d.", i, p)))
			}
		}
		b.start(t)
		b.start(t)
		for _, row := range rows {
			if row = b.wait(t, row); row.Status != db.JobStatusDone || row.Attempts != 1 {
				t.Errorf("%s: %s after %d attempts: %s", row.Filename, row.Status, row.Attempts, deref(row.Error))
			}
		}
	})
}
