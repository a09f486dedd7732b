package worker_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pgvector/pgvector-go"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/job"
)

// fact is a text to remember.
type fact struct {
	content   string
	expiresAt *time.Time
}

// remember stores facts in a new memory store. Without an embedder their vectors are due, as after a write while the model did
// not answer.
func (b *bundle) remember(t *testing.T, embedder embed.Embedder, facts []fact) {
	t.Helper()
	queries := db.New()
	store, err := queries.MemoryStoreInsert(t.Context(), b.pool, db.MemoryStoreInsertParams{
		ProjectID: db.DefaultProjectID, ID: db.NewID(), Name: "notes", Tags: []byte("{}"),
	})
	must(t, err)
	for _, f := range facts {
		row, err := queries.MemoryInsert(t.Context(), b.pool, db.MemoryInsertParams{
			ProjectID: store.ProjectID, StoreID: store.ID, ID: db.NewID(), Content: f.content, ContentHash: []byte(f.content),
			SourceType: db.MemorySourceManual, Tags: []byte("{}"), Metadata: []byte("{}"), ExpiresAt: f.expiresAt, EmbeddingDue: embedder == nil,
		})
		must(t, err)
		index := db.MemoryIndexParams{ProjectID: row.ProjectID, StoreID: row.StoreID, ID: row.ID, SpaceID: 1}
		if embedder != nil && embedder.CountTokens(f.content) > 0 {
			vectors, err := embedder.Embed(t.Context(), embed.Passage, []string{f.content})
			must(t, err)
			vector := pgvector.NewHalfVector(vectors[0])
			index.Vector, index.SpaceID = &vector, space(t, b, embedder.Space().Model).ID
		}
		must(t, queries.MemoryIndex(t.Context(), b.pool, index))
	}
}

func pumps(n int) (facts []fact) {
	for i := range n {
		facts = append(facts, fact{content: fmt.Sprintf("The pump number %d is loud.", i)})
	}
	return facts
}

func TestMemoriesAreEmbeddedOnceTheModelAnswersAgain(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	embedder := &embedtest.Embedder{Fail: func(string) error {
		if down.Load() {
			return errors.New("the model is down")
		}
		return nil
	}}
	b := setup(t, embedder)
	memories := pumps(70) // more than a batch
	b.remember(t, nil, memories)
	if n := b.count(t, "SELECT count(*) FROM memory_words WHERE tsv @@ to_tsquery('english', 'pump')"); n != len(memories) {
		t.Errorf("%d of %d memories are found by a word", n, len(memories))
	}
	if n := b.count(t, "SELECT count(*) FROM memories WHERE embedding_due"); n != len(memories) {
		t.Errorf("%d of %d vectors are due", n, len(memories))
	}
	w := b.start(t)
	eventually(t, "an upkeep without the model", func() bool {
		return b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'statistics' AND state = 'completed'") > 0
	})
	must(t, w.Stop(t.Context()))
	if n := b.count(t, "SELECT count(*) FROM memory_embeddings"); n != 0 {
		t.Errorf("%d vectors from nowhere", n)
	}
	down.Store(false)
	b.start(t)
	eventually(t, "no vector is due", func() bool { return b.count(t, "SELECT count(*) FROM memories WHERE embedding_due") == 0 })
	if n := b.count(t, "SELECT count(*) FROM memory_embeddings"); n != len(memories) {
		t.Errorf("%d vectors of %d memories", n, len(memories))
	}
}

func TestExpiredMemoriesAreDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t, fake())
	entries := pumps(140) // more than two batches
	soon, late := time.Now().Add(time.Minute), time.Now().Add(time.Hour)
	for i := range entries {
		entries[i].expiresAt = &soon
	}
	entries[0].expiresAt, entries[1].expiresAt = nil, &late
	b.remember(t, fake(), entries)
	for _, table := range []string{"memories", "memory_words", "memory_embeddings"} {
		_, err := b.pool.Exec(t.Context(), "UPDATE "+table+" SET expires_at = now() - interval '1 second' WHERE expires_at < now() + interval '30 minutes'")
		must(t, err)
	}
	w := b.start(t)
	eventually(t, "the upkeep", func() bool {
		return b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'statistics' AND state = 'completed'") > 0
	})
	must(t, w.Stop(t.Context()))
	for _, table := range []string{"memories", "memory_words", "memory_embeddings"} {
		if n := b.count(t, "SELECT count(*) FROM "+table); n != 2 {
			t.Errorf("%d rows in %s, want 2", n, table)
		}
	}
	must(t, db.FoldStatistics(t.Context(), b.pool, db.DefaultProjectID))
	if n := b.count(t, "SELECT n FROM corpus_stats WHERE store = 'memory'"); n != 2 {
		t.Errorf("the statistics count %d memories", n)
	}
	if n := b.count(t, `SELECT count(*) FROM (SELECT lexeme, count(*) AS df FROM memory_words CROSS JOIN LATERAL unnest(tsv) GROUP BY lexeme) AS w
		FULL JOIN (SELECT * FROM lexeme_stats WHERE df <> 0) AS s ON s.lexeme = w.lexeme WHERE s.df IS DISTINCT FROM w.df`); n != 0 {
		t.Errorf("%d words are counted otherwise than they are there", n)
	}
}

func TestReindexTakesMemoriesAlong(t *testing.T) {
	t.Parallel()
	reindex := func(t *testing.T, b *bundle, space int32, renew bool, prepare string, args ...any) {
		t.Helper()
		row, err := db.New().ReindexInsert(t.Context(), b.pool, db.ReindexInsertParams{ID: db.NewID(), SpaceID: space, Renew: renew})
		must(t, err)
		if prepare != "" {
			_, err = b.pool.Exec(t.Context(), prepare, args...)
			must(t, err)
		}
		_, err = b.client.Insert(t.Context(), job.ReindexArgs{}, nil)
		must(t, err)
		w := b.start(t)
		eventually(t, "the reindex ends", func() bool {
			row, err = db.New().ReindexGetLast(t.Context(), b.pool)
			must(t, err)
			return row.State != db.ReindexStateRunning
		})
		must(t, w.Stop(t.Context()))
		if row.State != db.ReindexStateDone || row.Done != row.Total {
			t.Fatalf("the reindex is %s (%v), %d of %d", row.State, deref(row.Error), row.Done, row.Total)
		}
	}
	vectors := func(t *testing.T, b *bundle, space int32) int {
		t.Helper()
		return b.count(t, "SELECT count(*) FROM memory_embeddings WHERE space_id = $1", space)
	}
	entries := append(pumps(70), fact{content: "\u200b"}) // more than a batch, and one in which no model sees anything

	// two gives a bundle whose memories are in the first of two spaces.
	two := func(t *testing.T, next *embedtest.Embedder) (b *bundle, first, second db.EmbeddingSpace) {
		t.Helper()
		b = setup(t, fake())
		b.remember(t, fake(), entries)
		both := spaces(t, b.pool, fake(), next)
		b.ingester = worker.NewIngester(both, worker.Reader{}, job.Chunking{})
		return b, space(t, b, "fake"), space(t, b, "next")
	}

	t.Run("ANewSpaceTakesOverWithAllOfThem", func(t *testing.T) {
		t.Parallel()
		b, first, second := two(t, &embedtest.Embedder{Model: "next", Dimensions: 128})
		reindex(t, b, second.ID, false, "")
		if vectors(t, b, first.ID) != 70 || vectors(t, b, second.ID) != 70 || !space(t, b, "next").Active {
			t.Errorf("%d and %d vectors, active %v", vectors(t, b, first.ID), vectors(t, b, second.ID), space(t, b, "next").Active)
		}
	})

	t.Run("AModelThatIsAwayPutsItOff", func(t *testing.T) {
		t.Parallel()
		var calls atomic.Int32
		b, _, second := two(t, &embedtest.Embedder{Model: "next", Dimensions: 128, Fail: func(string) error {
			if calls.Add(1) == 1 {
				return fmt.Errorf("ask the server: %w", embed.ErrUnavailable)
			}
			return nil
		}})
		_, err := db.New().ReindexInsert(t.Context(), b.pool, db.ReindexInsertParams{ID: db.NewID(), SpaceID: second.ID})
		must(t, err)
		_, err = b.client.Insert(t.Context(), job.ReindexArgs{}, nil)
		must(t, err)
		w := b.start(t)
		eventually(t, "the reindex is put off", func() bool {
			return b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'reindex' AND state = 'scheduled'") == 1
		})
		_, err = b.pool.Exec(t.Context(), "UPDATE river_job SET state = 'available', scheduled_at = now() WHERE kind = 'reindex'")
		must(t, err)
		eventually(t, "the reindex ends", func() bool {
			row, err := db.New().ReindexGetLast(t.Context(), b.pool)
			must(t, err)
			return row.State == db.ReindexStateDone
		})
		must(t, w.Stop(t.Context()))
	})

	t.Run("ARenewalMakesEachVectorAnew", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		b.remember(t, fake(), entries)
		_, err := b.pool.Exec(t.Context(), "UPDATE memory_embeddings SET embedding = (SELECT array_agg(1)::vector::halfvec FROM generate_series(1, 384))")
		must(t, err)
		reindex(t, b, space(t, b, "fake").ID, true, "")
		if n := b.count(t, "SELECT count(*) FROM memory_embeddings WHERE l2_norm(embedding) < 1.1"); n != 70 {
			t.Errorf("%d of 70 vectors are new", n)
		}
	})

	t.Run("AnInterruptedOneGoesOnBehindItsLastMemory", func(t *testing.T) {
		t.Parallel()
		next := &embedtest.Embedder{Model: "next"}
		b, _, second := two(t, next)
		// As a process leaves it that died after the first 64 memories.
		reindex(t, b, second.ID, true, `WITH done AS (
			INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, embedding)
			SELECT project_id, store_id, id, $1, (SELECT array_agg(1)::vector::halfvec FROM generate_series(1, 384))
			FROM memories ORDER BY project_id, store_id, id LIMIT 64 RETURNING project_id, store_id, memory_id)
			UPDATE reindexes SET done = 64, (cursor_project, cursor_store, cursor_memory) =
				(SELECT project_id, store_id, memory_id FROM done ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT 1)`, second.ID)
		if next.Texts() != 6 || vectors(t, b, second.ID) != 70 {
			t.Errorf("%d texts embedded, %d vectors", next.Texts(), vectors(t, b, second.ID))
		}
	})

	t.Run("AMemoryThatChangesMeanwhileKeepsItsOwnVector", func(t *testing.T) {
		t.Parallel()
		next := &embedtest.Embedder{Model: "next"}
		b, _, second := two(t, next)
		var once atomic.Bool
		next.Fail = func(text string) error { // While the old text is embedded.
			if once.CompareAndSwap(false, true) {
				_, err := b.pool.Exec(t.Context(), "UPDATE memories SET content = 'Valves open at noon', version = version + 1 WHERE content = $1", text)
				return err
			}
			return nil
		}
		reindex(t, b, second.ID, false, "")
		want, err := fake().Embed(t.Context(), embed.Passage, []string{"Valves open at noon"})
		must(t, err)
		if n := b.count(t, `SELECT count(*) FROM memory_embeddings AS e JOIN memories AS m ON m.id = e.memory_id
			WHERE m.content = 'Valves open at noon' AND e.space_id = $1 AND e.embedding <=> $2::real[]::halfvec < 0.001`, second.ID, want[0]); n != 1 {
			t.Errorf("the changed memory has %d vectors of its text", n)
		}
		if vectors(t, b, second.ID) != 70 {
			t.Errorf("%d vectors", vectors(t, b, second.ID))
		}
	})
}

// space gives the space of a model.
func space(t *testing.T, b *bundle, model string) db.EmbeddingSpace {
	t.Helper()
	all, err := db.New().EmbeddingSpaceList(t.Context(), b.pool)
	must(t, err)
	for _, stored := range all {
		if stored.Model == model {
			return stored
		}
	}
	t.Fatalf("no space of %s", model)
	return db.EmbeddingSpace{}
}
