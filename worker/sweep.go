package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"gocloud.dev/blob"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

// idLength is the length of an id in a file's name.
const idLength = 36

// grace is how old a staged upload must be before the sweep looks at it: its job row comes after it.
const grace = time.Hour

type sweepWorker struct {
	river.WorkerDefaults[job.SweepArgs]
	conn   db.Conn
	bucket *blob.Bucket
	keep   time.Duration
	// searchKeep is how long answered searches are kept; 0 keeps them.
	searchKeep time.Duration
	logger     *slog.Logger
}

// searchBatch is how many searches one statement forgets.
const searchBatch = 5000

// Work deletes what a dead process has left in the staging area, and kept uploads and searches whose time is over.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[job.SweepArgs]) error {
	now := time.Now()
	staged, err := w.older(ctx, job.StagingFolder, now.Add(-grace))
	if err != nil {
		return err
	}
	if staged, err = w.withoutJob(ctx, staged); err != nil {
		return err
	}
	kept, err := w.older(ctx, job.FailedFolder, now.Add(-w.keep))
	if err != nil {
		return err
	}
	paths := append(staged, kept...)
	for _, path := range paths {
		if err := job.DeleteFile(ctx, w.bucket, path); err != nil {
			return err
		}
	}
	if len(paths) > 0 {
		w.logger.InfoContext(ctx, "uploads swept", slog.Int("staged", len(staged)), slog.Int("kept", len(kept)))
	}
	return w.purgeSearches(ctx, now)
}

// purgeSearches forgets the searches whose time is over, with their feedback.
func (w *sweepWorker) purgeSearches(ctx context.Context, now time.Time) error {
	for w.searchKeep > 0 {
		purged, err := db.New().SearchPurge(ctx, w.conn, db.SearchPurgeParams{Before: now.Add(-w.searchKeep), MaxRows: searchBatch})
		if err != nil {
			return fmt.Errorf("forget searches: %w", err)
		}
		if purged < searchBatch {
			break
		}
	}
	return nil
}

// older lists the files of a folder that were written before a time.
func (w *sweepWorker) older(ctx context.Context, folder string, before time.Time) ([]string, error) {
	var paths []string
	files := w.bucket.List(&blob.ListOptions{Prefix: folder})
	for {
		file, err := files.Next(ctx)
		if errors.Is(err, io.EOF) {
			return paths, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the uploads in %s: %w", folder, err)
		}
		if file.ModTime.Before(before) {
			paths = append(paths, file.Key)
		}
	}
}

// withoutJob picks the staged files that no queued or processing job is about.
func (w *sweepWorker) withoutJob(ctx context.Context, paths []string) ([]string, error) {
	ids := make([]uuid.UUID, 0, len(paths))
	named := make(map[string]uuid.UUID, len(paths))
	for _, path := range paths {
		// A file of another name is not kb's to delete. What stands behind an id is a file that was being written.
		name := strings.TrimPrefix(path, job.StagingFolder)
		if id, err := uuid.Parse(name[:min(len(name), idLength)]); err == nil {
			named[path] = id
			ids = append(ids, id)
		}
	}
	open, err := db.New().JobListOpenOf(ctx, w.conn, ids)
	if err != nil {
		return nil, fmt.Errorf("look for the jobs of staged uploads: %w", err)
	}
	maps.DeleteFunc(named, func(_ string, id uuid.UUID) bool { return slices.Contains(open, id) })
	return slices.Collect(maps.Keys(named)), nil
}
