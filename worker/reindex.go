package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/worker/job"
)

// reindexBatch is how many chunks or memories are embedded between two signs of progress.
const reindexBatch = 64

type reindexWorker struct {
	river.WorkerDefaults[job.ReindexArgs]
	conn   db.Conn
	spaces *Spaces
	logger *slog.Logger
}

// Work takes up the running reindex and brings it to its end. One that is interrupted goes on where it was.
func (w *reindexWorker) Work(ctx context.Context, _ *river.Job[job.ReindexArgs]) error {
	row, err := db.New().ReindexClaim(ctx, w.conn, silence.Seconds())
	if db.Kind(err) == db.KindNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("take up the reindex: %w", err)
	}
	log := w.logger.With(slog.String("reindex_id", row.ID.String()), slog.Int("space", int(row.SpaceID)))
	log.InfoContext(ctx, "reindex", slog.Int64("done", row.Done), slog.Int64("total", row.Total))
	started := time.Now()
	err = w.run(ctx, row)
	ctx = context.WithoutCancel(ctx)
	switch {
	case errors.Is(err, errEnded):
		log.InfoContext(ctx, "reindex cancelled")
		return nil
	case errors.Is(err, context.Canceled):
		return errors.Join(err, db.New().ReindexRelease(ctx, w.conn, row.ID))
	case errors.Is(err, embed.ErrUnavailable):
		log.WarnContext(ctx, "reindex put off until the model answers", slog.Any("error", err))
		if err := db.New().ReindexRelease(ctx, w.conn, row.ID); err != nil {
			return fmt.Errorf("give the reindex back: %w", err)
		}
		return river.JobSnooze(modelPause)
	case err != nil && db.Kind(err) == db.KindRetry:
		log.WarnContext(ctx, "reindex put off", slog.Any("error", err))
		return err
	case err != nil:
		log.ErrorContext(ctx, "reindex failed", slog.Any("error", err))
		return w.finish(ctx, row.ID, db.ReindexStateFailed, "An error of the server's own; the operator finds it in the log under this reindex's id.")
	}
	if err := w.finish(ctx, row.ID, db.ReindexStateDone, ""); err != nil {
		return err
	}
	log.InfoContext(ctx, "reindex done", slog.Duration("took", time.Since(started)))
	return w.dropOld(ctx)
}

func (w *reindexWorker) finish(ctx context.Context, id uuid.UUID, state db.ReindexState, message string) error {
	params := db.ReindexFinishParams{ID: id, State: state}
	if message != "" {
		params.Error = &message
	}
	if _, err := db.New().ReindexFinish(ctx, w.conn, params); err != nil && db.Kind(err) != db.KindNotFound {
		return fmt.Errorf("end the reindex as %s: %w", state, err)
	}
	return nil
}

func (w *reindexWorker) run(ctx context.Context, row db.Reindex) error {
	stored, err := w.spaces.Get(ctx, row.SpaceID)
	if err != nil {
		return err
	}
	var blank []uuid.UUID
	if row.CursorStore == nil {
		if blank, err = w.walk(ctx, row, stored); err != nil {
			return err
		}
		row.CursorProject = nil
	}
	unseen, err := w.walkMemories(ctx, row, stored, db.MemoryNextParams{
		CursorProject: deref(row.CursorProject), CursorStore: deref(row.CursorStore), CursorMemory: deref(row.CursorMemory), Renew: row.Renew,
	})
	if err != nil {
		return err
	}
	blank = append(blank, unseen...)
	for {
		switched, err := db.SwitchSpace(ctx, w.conn, row.SpaceID, blank)
		if err != nil || switched {
			return err
		}
		// Documents or memories came in during the walk.
		missing, err := db.New().ReindexMissing(ctx, w.conn, db.ReindexMissingParams{SpaceID: row.SpaceID, Blank: blank, MaxResults: reindexBatch})
		if err != nil {
			return fmt.Errorf("look for chunks without a vector: %w", err)
		}
		chunks := make([]db.ReindexNextRow, len(missing))
		for i, m := range missing {
			chunks[i] = db.ReindexNextRow(m)
		}
		unseen, err := w.embed(ctx, stored, chunks)
		if err != nil {
			return err
		}
		blank = append(blank, unseen...)
		if err := w.advance(ctx, db.ReindexAdvanceParams{ID: row.ID, Done: int64(len(chunks))}); err != nil {
			return err
		}
		if unseen, err = w.walkMemories(ctx, row, stored, db.MemoryNextParams{Blank: blank}); err != nil {
			return err
		}
		blank = append(blank, unseen...)
	}
}

// walk embeds all chunks behind the cursor and gives the ids of those in which the model sees nothing.
func (w *reindexWorker) walk(ctx context.Context, row db.Reindex, stored embed.Stored) (blank []uuid.UUID, err error) {
	next := db.ReindexNextParams{
		CursorProject: deref(row.CursorProject), CursorDocument: deref(row.CursorDocument), CursorChunk: deref(row.CursorChunk),
		Renew: row.Renew, SpaceID: row.SpaceID, MaxResults: reindexBatch,
	}
	for {
		chunks, err := db.New().ReindexNext(ctx, w.conn, next)
		if err != nil {
			return nil, fmt.Errorf("read the next chunks: %w", err)
		}
		if len(chunks) == 0 {
			return blank, nil
		}
		unseen, err := w.embed(ctx, stored, chunks)
		if err != nil {
			return nil, err
		}
		blank = append(blank, unseen...)
		last := chunks[len(chunks)-1]
		next.CursorProject, next.CursorDocument, next.CursorChunk = last.ProjectID, last.DocumentID, last.ID
		err = w.advance(ctx, db.ReindexAdvanceParams{
			ID: row.ID, Done: int64(len(chunks)), CursorProject: &last.ProjectID, CursorDocument: &last.DocumentID, CursorChunk: &last.ID,
		})
		if err != nil {
			return nil, err
		}
	}
}

// walkMemories embeds the memories that next describes and gives the ids of those in which the model sees nothing.
func (w *reindexWorker) walkMemories(ctx context.Context, row db.Reindex, stored embed.Stored, next db.MemoryNextParams) (blank []uuid.UUID, err error) {
	return embedMemories(ctx, w.conn, stored, next, func(last db.MemoryNextRow, count int) error {
		return w.advance(ctx, db.ReindexAdvanceParams{
			ID: row.ID, Done: int64(count), CursorProject: &last.ProjectID, CursorStore: &last.StoreID, CursorMemory: &last.ID,
		})
	})
}

func (w *reindexWorker) advance(ctx context.Context, params db.ReindexAdvanceParams) error {
	rows, err := db.New().ReindexAdvance(ctx, w.conn, params)
	if err != nil {
		return fmt.Errorf("write the progress: %w", err)
	}
	if rows == 0 {
		return errEnded
	}
	return nil
}

// embed stores the vectors of some chunks and gives the ids of those in which the model sees nothing.
func (w *reindexWorker) embed(ctx context.Context, stored embed.Stored, chunks []db.ReindexNextRow) (blank []uuid.UUID, err error) {
	params := db.EmbeddingUpsertManyParams{SpaceID: stored.ID}
	var texts []string
	for _, c := range chunks {
		if stored.CountTokens(c.EnrichedText) == 0 {
			blank = append(blank, c.ID)
			continue
		}
		texts = append(texts, c.EnrichedText)
		params.ProjectIds = append(params.ProjectIds, c.ProjectID)
		params.DocumentIds = append(params.DocumentIds, c.DocumentID)
		params.ChunkIds = append(params.ChunkIds, c.ID)
	}
	vectors, err := stored.Embed(ctx, embed.Passage, texts)
	if err != nil {
		return nil, fmt.Errorf("embed %d chunks: %w", len(texts), err)
	}
	for _, vector := range vectors {
		params.Vectors = append(params.Vectors, vectorText(vector))
	}
	err = db.New().EmbeddingUpsertMany(ctx, w.conn, params)
	for db.Kind(err) == db.KindReference { // A chunk was deleted between the statement's look and its check.
		err = db.New().EmbeddingUpsertMany(ctx, w.conn, params)
	}
	if err != nil {
		return nil, fmt.Errorf("store %d vectors: %w", len(vectors), err)
	}
	return blank, nil
}

// dropOld deletes the vectors of all spaces but the active one and the one to go back to.
func (w *reindexWorker) dropOld(ctx context.Context) error {
	spaces, err := db.New().EmbeddingSpaceList(ctx, w.conn)
	if err != nil {
		return fmt.Errorf("list the embedding spaces: %w", err)
	}
	previous, err := db.New().EmbeddingSpaceGetPrevious(ctx, w.conn)
	if err != nil && db.Kind(err) != db.KindNotFound {
		return fmt.Errorf("read the previous embedding space: %w", err)
	}
	for _, space := range spaces {
		if space.Active || space.ID == previous.ID || space.ActivatedAt == nil {
			continue
		}
		if err := db.DropSpace(ctx, w.conn, space.ID); err != nil {
			return err
		}
	}
	return nil
}

// deref gives what a pointer points to, or nothing.
func deref[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}
