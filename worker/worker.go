// Package worker runs the jobs that the API enqueues: ingestion and the upkeep of statistics, on River, in the database
// that holds the data. It knows no HTTP. Its invariant: whatever happens to the process, a job ends once, and its document
// exists whole or not at all.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"gocloud.dev/blob"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

const (
	// heartbeat is how often a working process says that it lives; silence is how long it may say nothing.
	heartbeat = 5 * time.Second
	silence   = 30 * time.Second
	// upkeep is how often statistics are folded, jobs of dead processes given back, and memories forgotten or embedded.
	upkeep = 15 * time.Second
	// sweep is how often uploads that nobody will ask for are deleted.
	sweep = time.Hour
	// softStop is how long a running job may go on after Stop before it is cancelled.
	softStop = 10 * time.Second
)

// Options are what a worker stands on.
type Options struct {
	Pool    *pgxpool.Pool
	Bucket  *blob.Bucket
	Ingest  *Ingester
	Workers int
	// RetryKeep is how long the upload of a failed or cancelled job is kept for another try.
	RetryKeep time.Duration
	// SearchKeep is how long answered searches are kept; 0 keeps them.
	SearchKeep time.Duration
	Logger     *slog.Logger
}

// Worker takes jobs up until it is stopped.
type Worker struct {
	client *river.Client[pgx.Tx]
}

// New prepares a worker; Start starts it.
func New(opts Options) (*Worker, error) {
	workers := river.NewWorkers()
	ingest := &ingestWorker{conn: opts.Pool, bucket: opts.Bucket, ingester: opts.Ingest, logger: opts.Logger}
	river.AddWorker(workers, ingest)
	river.AddWorker(workers, &statisticsWorker{conn: opts.Pool, spaces: opts.Ingest.spaces, logger: opts.Logger})
	river.AddWorker(workers, &reindexWorker{conn: opts.Pool, spaces: opts.Ingest.spaces, logger: opts.Logger})
	river.AddWorker(workers, &eraseWorker{conn: opts.Pool, bucket: opts.Bucket, logger: opts.Logger})
	river.AddWorker(workers, &sweepWorker{conn: opts.Pool, bucket: opts.Bucket, keep: opts.RetryKeep, searchKeep: opts.SearchKeep, logger: opts.Logger})
	client, err := river.NewClient(riverpgxv5.New(opts.Pool), &river.Config{
		Queues: map[string]river.QueueConfig{
			job.QueueIngest:      {MaxWorkers: max(opts.Workers, 1)},
			job.QueueReindex:     {MaxWorkers: 1},
			job.QueueErase:       {MaxWorkers: 1},
			job.QueueMaintenance: {MaxWorkers: 1},
		},
		Workers:           workers,
		Logger:            opts.Logger,
		FetchCooldown:     5 * time.Millisecond,
		FetchPollInterval: time.Second,
		PeriodicJobs:      []*river.PeriodicJob{periodic(upkeep, job.StatisticsArgs{}), periodic(sweep, job.SweepArgs{})},
		// A document takes as long as it takes; a process that died is noticed by its silence, not by a time limit.
		JobTimeout:           -1,
		RescueStuckJobsAfter: 24 * time.Hour,
		SoftStopTimeout:      softStop,
		// A retried ingestion is waiting for a database that went away, not for a file to get better.
		RetryPolicy: retryPolicy{},
	})
	if err != nil {
		return nil, fmt.Errorf("make the worker: %w", err)
	}
	return &Worker{client: client}, nil
}

// resumeReindex has somebody go on with a reindex that nobody works on.
func (w *statisticsWorker) resumeReindex(ctx context.Context) error {
	idle, err := db.New().ReindexIdle(ctx, w.conn, silence.Seconds())
	if err != nil {
		return fmt.Errorf("look for a reindex that nobody works on: %w", err)
	}
	if !idle {
		return nil
	}
	if _, err := river.ClientFromContext[pgx.Tx](ctx).Insert(ctx, job.ReindexArgs{}, nil); err != nil {
		return fmt.Errorf("enqueue the reindex: %w", err)
	}
	return nil
}

func periodic(every time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(every), func() (river.JobArgs, *river.InsertOpts) { return args, nil },
		&river.PeriodicJobOpts{RunOnStart: true})
}

// Start starts taking jobs up. It works on until ctx ends or Stop is called.
func (w *Worker) Start(ctx context.Context) error {
	if err := w.client.Start(ctx); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	return nil
}

// Stop takes no further job up and waits for the running ones; those that take longer than ten seconds are interrupted
// and taken up again by the next worker.
func (w *Worker) Stop(ctx context.Context) error {
	if err := w.client.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("stop the worker: %w", err)
	}
	return nil
}

type retryPolicy struct{}

func (retryPolicy) NextRetry(row *rivertype.JobRow) time.Time {
	return time.Now().Add(min(time.Duration(row.Attempt)*time.Second, 30*time.Second))
}

type statisticsWorker struct {
	river.WorkerDefaults[job.StatisticsArgs]
	conn   db.Conn
	spaces *Spaces
	logger *slog.Logger
}

// Work gives back the jobs of dead processes, deletes expired memories, folds what writes and deletions have left, and makes the
// vectors that are due.
func (w *statisticsWorker) Work(ctx context.Context, _ *river.Job[job.StatisticsArgs]) error {
	rescued, err := db.New().JobRescue(ctx, w.conn, silence.Seconds())
	if err != nil {
		return fmt.Errorf("give jobs back: %w", err)
	}
	if rescued > 0 {
		w.logger.WarnContext(ctx, "jobs of dead processes given back", slog.Int64("jobs", rescued))
	}
	if err := w.resumeReindex(ctx); err != nil {
		return err
	}
	if err := w.resumeErasures(ctx); err != nil {
		return err
	}
	if err := w.purgeMemories(ctx); err != nil {
		return err
	}
	projects, err := db.New().StatisticsPending(ctx, w.conn)
	if err != nil {
		return fmt.Errorf("look for pending statistics: %w", err)
	}
	for _, project := range projects {
		if err := db.FoldStatistics(ctx, w.conn, project); err != nil {
			return err
		}
	}
	return w.embedDue(ctx)
}
