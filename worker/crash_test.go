package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker/job"
)

func TestCrash(t *testing.T) {
	t.Parallel()

	// died makes a job look as a process leaves it that died silently at its nth attempt.
	died := func(t *testing.T, b *bundle, row db.Job, attempt int) {
		t.Helper()
		id := b.riverJob(t, rivertype.JobStateRunning)
		_, err := b.pool.Exec(t.Context(), `UPDATE jobs SET status = 'processing', river_job_id = $2, attempts = $3, phase = 'embed',
			started_at = now() - interval '10 minutes', heartbeat_at = now() - interval '5 minutes' WHERE id = $1`, row.ID, id, attempt)
		must(t, err)
	}

	t.Run("TheJobIsGivenBackAndDoneOnce", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		died(t, b, row, 1)
		next := b.enqueue(t, db.DefaultProjectID, "valve.txt", long("valve"))
		b.start(t)
		row, next = b.wait(t, row), b.wait(t, next)
		b.wantWhole(t, row)
		b.wantWhole(t, next)
		if row.Attempts != 2 || next.Attempts != 1 || row.CompletedAt.After(*next.CompletedAt) {
			t.Errorf("attempts %d and %d, ended %v and %v", row.Attempts, next.Attempts, row.CompletedAt, next.CompletedAt)
		}
	})

	t.Run("ALivingProcessKeepsItsJob", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		died(t, b, row, 1)
		_, err := b.pool.Exec(t.Context(), "UPDATE jobs SET heartbeat_at = now() - interval '10 seconds'")
		must(t, err)
		rescued, err := db.New().JobRescue(t.Context(), b.pool, 30)
		must(t, err)
		if row = b.get(t, row); rescued != 0 || row.Status != db.JobStatusProcessing {
			t.Errorf("%d rescued, %+v", rescued, row)
		}
	})

	t.Run("AFileThatKillsThreeTimesHasFailed", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		died(t, b, row, job.MaxAttempts)
		b.start(t)
		if row = b.wait(t, row); row.Status != db.JobStatusFailed || deref(row.ErrorCode) != "interrupted" {
			t.Errorf("got %+v", row)
		}
		b.wantNothing(t)
		b.wantNothingStaged(t)
	})

	t.Run("ATurnThatDiedBeforeItTookAJobUpIsGivenBack", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		b.riverJob(t, rivertype.JobStateRunning)
		b.start(t)
		if row = b.wait(t, row); row.Attempts != 1 {
			t.Errorf("%d attempts", row.Attempts)
		}
		b.wantWhole(t, row)
	})

	t.Run("UpkeepRunsAgainAndAgain", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		b.start(t)
		done := func() int {
			return b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'statistics' AND state = 'completed'")
		}
		eventually(t, "the first upkeep", func() bool { return done() == 1 })
		_, err := b.client.Insert(t.Context(), job.StatisticsArgs{}, nil)
		must(t, err)
		eventually(t, "the second upkeep", func() bool { return done() == 2 })
	})

	t.Run("AConnectionLostWhileStoringLeavesNoHalfDocument", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		lock, err := b.pool.Begin(t.Context())
		must(t, err)
		defer func() { _ = lock.Rollback(context.Background()) }()
		_, err = lock.Exec(t.Context(), "LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
		must(t, err)
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		b.start(t)
		waiting := "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%INSERT INTO tags%' AND pid <> pg_backend_pid()"
		eventually(t, "the store waits for the lock", func() bool { return b.count(t, "SELECT count(*) "+waiting) == 1 })
		if n := b.count(t, "SELECT count(pg_terminate_backend(pid)) "+waiting); n != 1 {
			t.Fatalf("%d connections ended", n)
		}
		must(t, lock.Rollback(t.Context()))
		row = b.wait(t, row)
		b.wantWhole(t, row)
		if row.Attempts != 2 {
			t.Errorf("%d attempts", row.Attempts)
		}
	})

	t.Run("AShutdownInTheMiddleIsTakenUpAgain", func(t *testing.T) {
		t.Parallel()
		embedder := &embedtest.Embedder{Block: make(chan struct{})} // holds its job for ever
		b := setup(t, embedder)
		row := b.enqueue(t, db.DefaultProjectID, "pump.txt", long("pump"))
		first := b.start(t)
		eventually(t, "the job embeds", func() bool { return embedder.Calls() > 0 })
		started := time.Now()
		must(t, first.Stop(t.Context()))
		if took := time.Since(started); took > 15*time.Second {
			t.Errorf("stopping took %s", took)
		}
		if row = b.get(t, row); row.Status != db.JobStatusProcessing {
			t.Errorf("got %+v", row)
		}
		b.wantNothing(t)

		second := setup(t, fake())
		second.pool, second.bucket = b.pool, b.bucket
		second.start(t)
		row = b.wait(t, row)
		b.wantWhole(t, row)
		// A stop of the worker is no fault of the file, so its attempt does not count.
		if row.Attempts != 1 {
			t.Errorf("%d attempts", row.Attempts)
		}
	})
}
