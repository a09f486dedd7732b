package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

// embedBatch is how many texts go to the model at once.
const embedBatch = 64

// A write waits so long for the model: at first, and for each text. Past it the memory is stored without its vector.
const (
	firstPatience = 3 * time.Second
	patience      = 200 * time.Millisecond
)

var errPatience = errors.New("the model took too long for a write")

// errStale is what was made before the transaction and does not fit what is found in it; make it again.
var errStale = errors.New("the memory store, or the embedding space, has changed meanwhile")

// draft is a text with what is made of it before the transaction opens.
type draft struct {
	content string
	hash    []byte
	// vector is nil for a text that the store has already, for one in which the model sees nothing, and while it is due.
	vector *pgvector.HalfVector
	// due is a text that the model did not answer for.
	due bool
	// known is a text that the store has already: it is not embedded, since it will be skipped.
	known bool
}

// embed gives those drafts their vectors that the store does not know. A model that does not answer, or not soon, is no error: the texts
// are stored, and a job makes their vectors.
func (w *Writer) embed(ctx context.Context, stored embed.Stored, drafts []*draft) error {
	byHash := map[string][]*draft{}
	var texts []*draft
	for _, d := range drafts {
		d.vector = nil
		if d.due = !d.known && stored.CountTokens(d.content) > 0; !d.due {
			continue
		}
		same := byHash[string(d.hash)]
		if len(same) == 0 {
			texts = append(texts, d)
		}
		byHash[string(d.hash)] = append(same, d)
	}
	for batch := range slices.Chunk(texts, embedBatch) {
		contents := make([]string, len(batch))
		for i, d := range batch {
			contents[i] = d.content
		}
		within, cancel := context.WithTimeoutCause(ctx, firstPatience+time.Duration(len(batch))*patience, errPatience)
		vectors, err := stored.Embed(within, embed.Passage, contents)
		cancel()
		if ctx.Err() != nil {
			return fmt.Errorf("embed %d memories: %w", len(batch), context.Cause(ctx))
		}
		if err != nil {
			w.logger.WarnContext(ctx, "memories stored without their vectors", slog.Any("error", err))
			return nil
		}
		for i, d := range batch {
			vector := pgvector.NewHalfVector(vectors[i])
			for _, same := range byHash[string(d.hash)] {
				same.vector, same.due = &vector, false
			}
		}
	}
	return nil
}

// holdSpace keeps the active embedding space from changing until the end of the transaction. errStale means that it is not the
// one that was embedded for.
func holdSpace(ctx context.Context, tx pgx.Tx, stored embed.Stored) error {
	if err := db.New().EmbeddingSpaceShare(ctx, tx); err != nil {
		return fmt.Errorf("hold the active embedding space: %w", err)
	}
	active, err := db.New().EmbeddingSpaceGetActive(ctx, tx)
	if err != nil {
		return fmt.Errorf("read the active embedding space: %w", err)
	}
	if active.ID != stored.ID {
		return errStale
	}
	return nil
}
