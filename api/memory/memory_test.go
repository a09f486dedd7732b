package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker"
)

func TestMain(m *testing.M) {
	code := dbtest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bundle is a database of its own with one memory store, and a writer.
type bundle struct {
	pool   *pgxpool.Pool
	spaces *worker.Spaces
	writer *memory.Writer
	store  db.MemoryStore
}

// setup makes a bundle whose active space is that of the first embedder.
func setup(t testing.TB, embedders ...embed.Embedder) *bundle {
	t.Helper()
	pool, err := db.Open(t.Context(), dbtest.URL(t), 16)
	must(t, err)
	t.Cleanup(pool.Close)
	for _, embedder := range embedders {
		_, err := db.EnsureSpace(t.Context(), pool, spaceParams(embedder))
		must(t, err)
	}
	spaces := worker.NewSpaces(pool, func(_ context.Context, space embed.Space) (embed.Embedder, error) {
		for _, embedder := range embedders {
			if embedder.Space() == space {
				return embedder, nil
			}
		}
		return nil, fmt.Errorf("no embedder for %v", space)
	})
	b := &bundle{pool: pool, spaces: spaces, writer: memory.NewWriter(pool, spaces, slog.New(slog.DiscardHandler))}
	b.store = b.addStore(t, db.MemoryStoreInsertParams{Deduplicate: true})
	return b
}

func spaceParams(embedder embed.Embedder) db.EmbeddingSpaceInsertParams {
	space := embedder.Space()
	return db.EmbeddingSpaceInsertParams{
		Model: space.Model, Precision: space.Precision, Sha256: space.SHA256, Dimensions: int32(space.Dimensions),
	}
}

func (b *bundle) addStore(t testing.TB, params db.MemoryStoreInsertParams) db.MemoryStore {
	t.Helper()
	params.ProjectID, params.ID, params.Name, params.Tags = db.DefaultProjectID, db.NewID(), "notes", []byte("{}")
	store, err := db.New().MemoryStoreInsert(t.Context(), b.pool, params)
	must(t, err)
	return store
}

func (b *bundle) options() memory.Options { return optionsOf(b.store) }

func optionsOf(store db.MemoryStore) memory.Options {
	return memory.Options{
		ProjectID: store.ProjectID, StoreID: store.ID, Author: memory.Author{Mechanism: db.MemoryMechanismApi, Principal: "tester"},
	}
}

// write writes a text that is expected to have an outcome.
func (b *bundle) write(t *testing.T, content string, want db.MemoryOutcome) memory.Result {
	t.Helper()
	result, err := b.writer.Write(t.Context(), b.options(), memory.Entry{Content: content})
	must(t, err)
	if result.Outcome != want {
		t.Fatalf("%q was %s (similarity %v), want %s", content, result.Outcome, value(result.Similarity), want)
	}
	return result
}

func (b *bundle) get(t *testing.T, id uuid.UUID) db.Memory {
	t.Helper()
	row, err := db.New().MemoryGet(t.Context(), b.pool, db.MemoryGetParams{ProjectID: db.DefaultProjectID, ID: id})
	must(t, err)
	return row
}

func (b *bundle) count(t *testing.T, what string, args ...any) (n int) {
	t.Helper()
	must(t, b.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+what, args...).Scan(&n))
	return n
}

func (b *bundle) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), sql, args...)
	must(t, err)
}

// found counts the memories that a look-up by a word finds, as the lexical arm of a search looks.
func (b *bundle) found(t *testing.T, word string) int {
	t.Helper()
	return b.count(t, `memory_words WHERE project_id = $1 AND tsv @@ to_tsquery('english', $2)
		AND (expires_at IS NULL OR expires_at > now())`, db.DefaultProjectID, word)
}

// outcomes gives the outcomes of all assertions, oldest first.
func (b *bundle) outcomes(t *testing.T) (outcomes []string) {
	t.Helper()
	rows, err := db.New().MemoryAssertionList(t.Context(), b.pool, db.MemoryAssertionListParams{
		ProjectID: db.DefaultProjectID, StoreID: b.store.ID, MaxResults: 10_000,
	})
	must(t, err)
	for _, row := range slices.Backward(rows) {
		outcomes = append(outcomes, string(row.Outcome))
	}
	return outcomes
}

// wantConsistent checks that words, vectors and statistics are exactly those of the valid memories.
func (b *bundle) wantConsistent(t *testing.T) {
	t.Helper()
	must(t, db.FoldStatistics(t.Context(), b.pool, db.DefaultProjectID))
	for _, check := range []struct{ what, wrong string }{
		{"words of the valid memories", `
			(SELECT project_id, store_id, id, expires_at, search_vector('english', '', content) AS tsv FROM memories WHERE invalidated_at IS NULL) AS m
			FULL JOIN memory_words AS w ON w.project_id = m.project_id AND w.store_id = m.store_id AND w.memory_id = m.id
			WHERE w.tsv IS DISTINCT FROM m.tsv OR w.expires_at IS DISTINCT FROM m.expires_at OR w.length <> search_length(m.tsv)`},
		{"vectors of the valid memories", `
			(SELECT project_id, store_id, id, expires_at FROM memories WHERE invalidated_at IS NULL AND NOT embedding_due) AS m
			FULL JOIN (SELECT e.* FROM memory_embeddings AS e JOIN embedding_spaces AS s ON s.id = e.space_id AND s.active) AS e
				ON e.project_id = m.project_id AND e.store_id = m.store_id AND e.memory_id = m.id
			WHERE m.id IS NULL OR e.memory_id IS NULL OR e.expires_at IS DISTINCT FROM m.expires_at`},
		{"document frequencies", `
			(SELECT lexeme, count(*) AS df FROM memory_words CROSS JOIN LATERAL unnest(tsv) GROUP BY lexeme) AS w
			FULL JOIN (SELECT * FROM lexeme_stats WHERE df <> 0) AS s ON s.lexeme = w.lexeme
			WHERE s.df IS DISTINCT FROM w.df`},
		{"lengths", `
			(SELECT count(*) AS n, coalesce(sum(length), 0) AS total_length FROM memory_words) AS w
			CROSS JOIN (SELECT coalesce(sum(n), 0) AS n, coalesce(sum(total_length), 0) AS total_length FROM corpus_stats WHERE store = 'memory') AS s
			WHERE (s.n, s.total_length) <> (w.n, w.total_length)`},
		{"history", `memories WHERE superseded_by IS NOT NULL AND invalidated_at IS NULL OR invalidated_at IS NOT NULL AND embedding_due`},
	} {
		if n := b.count(t, check.wrong); n != 0 {
			t.Errorf("%s: %d differences", check.what, n)
		}
	}
}

// activate makes an embedder's space the active one.
func (b *bundle) activate(t *testing.T, embedder embed.Embedder) {
	t.Helper()
	b.exec(t, "UPDATE embedding_spaces SET active = false WHERE active")
	b.exec(t, "UPDATE embedding_spaces SET active = true WHERE model = $1", embedder.Space().Model)
}

// text has n words, of which the last is its own: two texts of n words have a cosine of (n-1)/n.
func text(n int, last string) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("word%d", i)
	}
	words[n-1] = last
	return strings.Join(words, " ")
}

func object(t *testing.T, encoded json.RawMessage) (decoded map[string]any) {
	t.Helper()
	must(t, json.Unmarshal(encoded, &decoded))
	return decoded
}

func value(pointer *float64) float64 {
	if pointer == nil {
		return -1
	}
	return *pointer
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fake() *embedtest.Embedder { return embedtest.New() }
