package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"gocloud.dev/blob"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

type eraseWorker struct {
	river.WorkerDefaults[job.EraseArgs]
	conn   db.Conn
	bucket *blob.Bucket
	logger *slog.Logger
}

// Work erases a project: its running jobs end, then its files and rows go. Two that work on one project do no harm.
func (w *eraseWorker) Work(ctx context.Context, turn *river.Job[job.EraseArgs]) error {
	project := turn.Args.ProjectID
	receipt, err := db.New().ErasureGet(ctx, w.conn, project)
	if err != nil {
		return fmt.Errorf("read the receipt of project %s: %w", project, err)
	}
	if receipt.CompletedAt != nil {
		return nil
	}
	files, err := w.eraseFiles(ctx, project)
	if err != nil {
		return err
	}
	erased, err := db.EraseProject(ctx, w.conn, project, map[string]int64{"files": files})
	if err != nil {
		return fmt.Errorf("erase project %s: %w", project, err)
	}
	// What a job that was running has written meanwhile.
	if _, err := w.eraseFolder(ctx, job.StoredFolder(project)); err != nil {
		return err
	}
	w.logger.InfoContext(ctx, "project erased", slog.String("project_id", project.String()), slog.Int64("documents", erased["documents"]), slog.Int64("files", files))
	return nil
}

// eraseFiles ends the project's jobs and deletes its uploads and originals.
func (w *eraseWorker) eraseFiles(ctx context.Context, project uuid.UUID) (int64, error) {
	jobs, err := db.New().JobCancelAll(ctx, w.conn, project)
	if err != nil {
		return 0, fmt.Errorf("cancel the jobs of project %s: %w", project, err)
	}
	for _, id := range jobs {
		for _, path := range []string{job.StagingPath(id), job.FailedPath(id)} {
			if err := job.DeleteFile(ctx, w.bucket, path); err != nil {
				return 0, err
			}
		}
	}
	return w.eraseFolder(ctx, job.StoredFolder(project))
}

func (w *eraseWorker) eraseFolder(ctx context.Context, folder string) (deleted int64, err error) {
	files := w.bucket.List(&blob.ListOptions{Prefix: folder})
	for {
		file, err := files.Next(ctx)
		if errors.Is(err, io.EOF) {
			return deleted, nil
		}
		if err != nil {
			return deleted, fmt.Errorf("list the originals in %s: %w", folder, err)
		}
		if err := job.DeleteFile(ctx, w.bucket, file.Key); err != nil {
			return deleted, err
		}
		deleted++
	}
}

// resumeErasures has somebody go on with projects whose erasure has ended in the middle.
func (w *statisticsWorker) resumeErasures(ctx context.Context) error {
	open, err := db.New().ErasureListIdle(ctx, w.conn)
	if err != nil {
		return fmt.Errorf("look for erasures that nobody works on: %w", err)
	}
	for _, project := range open {
		if _, err := river.ClientFromContext[pgx.Tx](ctx).Insert(ctx, job.EraseArgs{ProjectID: project}, nil); err != nil {
			return fmt.Errorf("enqueue the erasure of project %s: %w", project, err)
		}
	}
	return nil
}
