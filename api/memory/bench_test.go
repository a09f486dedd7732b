package memory_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
)

// BenchmarkWrite writes new texts into one store of a thousand and of a hundred thousand memories and gives the median of a
// write, the model's own time aside. The vectors are random: for the index the worst there is.
func BenchmarkWrite(b *testing.B) {
	for _, memories := range []int{1_000, 100_000} {
		b.Run(strconv.Itoa(memories), func(b *testing.B) {
			s := setup(b, randomVectors{fake()})
			fill(b, s, memories)
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				started := time.Now()
				result, err := s.writer.Write(b.Context(), s.options(), memory.Entry{Content: fmt.Sprintf("The pump number %d is loud at night.", i)})
				took = append(took, time.Since(started))
				if err != nil || result.Outcome != db.MemoryOutcomeCreated {
					b.Fatal(result.Outcome, err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// fill puts memories with random vectors into the store; the vector index is built behind them.
func fill(b *testing.B, s *bundle, memories int) {
	b.Helper()
	space, err := s.spaces.Current(b.Context())
	must(b, err)
	s.exec(b, fmt.Sprintf("DROP INDEX memory_embeddings_space_%d", space.ID))
	s.exec(b, `INSERT INTO memories (project_id, store_id, id, content, content_hash, created_at, updated_at)
		SELECT $1, $2, gen_random_uuid(), v.content, sha256(v.content::bytea), now(), now()
		FROM (SELECT 'Fact ' || i || ' of the valves in hall ' || i % 100 AS content FROM generate_series(1, $3::int) AS i) AS v`,
		s.store.ProjectID, s.store.ID, memories)
	s.exec(b, `INSERT INTO memory_words (project_id, store_id, memory_id, length, tsv)
		SELECT v.project_id, v.store_id, v.id, search_length(v.tsv), v.tsv
		FROM (SELECT project_id, store_id, id, search_vector('english', '', content) AS tsv FROM memories OFFSET 0) AS v`)
	s.exec(b, `INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, embedding)
		SELECT m.project_id, m.store_id, m.id, $1, (
			SELECT array_agg(random() - 0.5 + g * 0 * length(m.content)) FROM generate_series(1, 384) AS g
		)::real[]::halfvec
		FROM memories AS m`, space.ID)
	conn, err := s.pool.Acquire(b.Context())
	must(b, err)
	defer conn.Release()
	_, err = conn.Exec(b.Context(), "SET maintenance_work_mem = '1GB'")
	must(b, err)
	_, err = db.EnsureSpace(b.Context(), conn, spaceParams(space))
	must(b, err)
	must(b, db.Analyze(b.Context(), s.pool))
}

// randomVectors gives each text a vector of its own that is near to no other.
type randomVectors struct{ *embedtest.Embedder }

func (r randomVectors) Embed(_ context.Context, _ embed.Kind, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		hash := fnv.New64a()
		hash.Write([]byte(text))
		random := rand.New(rand.NewPCG(hash.Sum64(), 0))
		vectors[i] = make([]float32, r.Space().Dimensions)
		var squares float64
		for j := range vectors[i] {
			x := random.NormFloat64()
			vectors[i][j] = float32(x)
			squares += x * x
		}
		for j := range vectors[i] {
			vectors[i][j] /= float32(math.Sqrt(squares))
		}
	}
	return vectors, nil
}
