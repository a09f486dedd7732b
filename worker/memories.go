package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

// memoryBatch is how many memories are embedded, or deleted, in one statement.
const memoryBatch = 64

// errLater ends work that goes on at the next upkeep.
var errLater = errors.New("the rest waits for the next upkeep")

// purgeMemories deletes the memories that have expired.
func (w *statisticsWorker) purgeMemories(ctx context.Context) error {
	for {
		purged, err := db.New().MemoryPurge(ctx, w.conn, memoryBatch)
		if err != nil {
			return fmt.Errorf("delete expired memories: %w", err)
		}
		if purged < memoryBatch {
			return nil
		}
	}
}

// embedDue makes the vectors of memories that were stored while the model did not answer. A model that still does not is no
// error: the next upkeep asks again.
func (w *statisticsWorker) embedDue(ctx context.Context) error {
	stored, err := w.spaces.Current(ctx)
	if err == nil {
		started := time.Now()
		_, err = embedMemories(ctx, w.conn, stored, db.MemoryNextParams{OnlyDue: true, Renew: true}, func(db.MemoryNextRow, int) error {
			if time.Since(started) > upkeep {
				return errLater
			}
			return nil
		})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, errLater) && db.Kind(err) != db.KindNotFound {
		w.logger.WarnContext(ctx, "memories wait for their vectors", slog.Any("error", err))
	}
	return nil
}

// embedMemories puts the vectors of the memories that next describes into a space, batch by batch, and gives the ids of those in
// which the model sees nothing. It calls done after each batch, with the last memory and the size; an error of done ends it.
func embedMemories(
	ctx context.Context, conn db.Conn, stored embed.Stored, next db.MemoryNextParams, done func(last db.MemoryNextRow, count int) error,
) (blank []uuid.UUID, err error) {
	next.SpaceID, next.MaxResults = stored.ID, memoryBatch
	for {
		memories, err := db.New().MemoryNext(ctx, conn, next)
		if err != nil {
			return nil, fmt.Errorf("read the next memories: %w", err)
		}
		if len(memories) == 0 {
			return blank, nil
		}
		unseen, err := embedMemoryBatch(ctx, conn, stored, memories)
		if err != nil {
			return nil, err
		}
		blank = append(blank, unseen...)
		last := memories[len(memories)-1]
		if err := done(last, len(memories)); err != nil {
			return nil, err
		}
		next.CursorProject, next.CursorStore, next.CursorMemory = last.ProjectID, last.StoreID, last.ID
	}
}

func embedMemoryBatch(ctx context.Context, conn db.Conn, stored embed.Stored, memories []db.MemoryNextRow) (blank []uuid.UUID, err error) {
	params := db.MemoryEmbeddingUpsertManyParams{SpaceID: stored.ID, Vectors: make([]string, len(memories))}
	var texts []string
	var seen []int
	for i, m := range memories {
		params.ProjectIds = append(params.ProjectIds, m.ProjectID)
		params.StoreIds = append(params.StoreIds, m.StoreID)
		params.MemoryIds = append(params.MemoryIds, m.ID)
		params.Versions = append(params.Versions, m.Version)
		if stored.CountTokens(m.Content) == 0 {
			blank = append(blank, m.ID)
			continue
		}
		texts = append(texts, m.Content)
		seen = append(seen, i)
	}
	vectors, err := stored.Embed(ctx, embed.Passage, texts)
	if err != nil {
		return nil, fmt.Errorf("embed %d memories: %w", len(texts), err)
	}
	for i, vector := range vectors {
		params.Vectors[seen[i]] = vectorText(vector)
	}
	if err := db.New().MemoryEmbeddingUpsertMany(ctx, conn, params); err != nil {
		return nil, fmt.Errorf("store %d vectors of memories: %w", len(vectors), err)
	}
	return blank, nil
}
