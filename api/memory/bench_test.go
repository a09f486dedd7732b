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

	"github.com/google/uuid"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
)

// BenchmarkWrite writes new texts into one store of a thousand and of a hundred thousand memories and gives the median of a
// write, the model's own time aside. Vectors of rank 384 are random, which is the worst there is for the index; those of
// rank 32 lie together about as a model's do.
func BenchmarkWrite(b *testing.B) {
	for _, rank := range []int{32, 384} {
		for _, memories := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("Rank%d/Memories%d", rank, memories), func(b *testing.B) {
				embedder := newRandomVectors(rank)
				s := setup(b, embedder)
				fill(b, s, embedder, memories)
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
}

// fill puts memories into the store; the vector index is built behind them.
func fill(b *testing.B, s *bundle, embedder embed.Embedder, memories int) {
	b.Helper()
	space, err := s.spaces.Current(b.Context())
	must(b, err)
	s.exec(b, fmt.Sprintf("DROP INDEX memory_embeddings_space_%d", space.ID))
	for batch := range slices.Chunk(slices.Repeat([]int{0}, memories), 1000) {
		ids, contents, vectors := make([]uuid.UUID, len(batch)), make([]string, len(batch)), make([]string, len(batch))
		for i := range batch {
			ids[i] = db.NewID()
			contents[i] = "The valve " + ids[i].String() + " opens at noon."
		}
		embedded, err := embedder.Embed(b.Context(), embed.Passage, contents)
		must(b, err)
		for i, vector := range embedded {
			vectors[i] = spell(vector)
		}
		s.exec(b, `INSERT INTO memories (project_id, store_id, id, content, content_hash, created_at, updated_at)
			SELECT $1, $2, v.id, v.content, sha256(v.content::bytea), now(), now() FROM unnest($3::uuid[], $4::text[]) AS v (id, content)`,
			s.store.ProjectID, s.store.ID, ids, contents)
		s.exec(b, `INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, embedding)
			SELECT $1, $2, v.id, $3, v.vector::halfvec FROM unnest($4::uuid[], $5::text[]) AS v (id, vector)`,
			s.store.ProjectID, s.store.ID, space.ID, ids, vectors)
	}
	s.exec(b, `INSERT INTO memory_words (project_id, store_id, memory_id, length, tsv)
		SELECT v.project_id, v.store_id, v.id, search_length(v.tsv), v.tsv
		FROM (SELECT project_id, store_id, id, search_vector('english', '', content) AS tsv FROM memories OFFSET 0) AS v`)
	conn, err := s.pool.Acquire(b.Context())
	must(b, err)
	defer conn.Release()
	_, err = conn.Exec(b.Context(), "SET maintenance_work_mem = '1GB'")
	must(b, err)
	_, err = db.EnsureSpace(b.Context(), conn, spaceParams(space))
	must(b, err)
	must(b, db.Analyze(b.Context(), s.pool))
}

// spell writes a vector as pgvector reads it.
func spell(vector []float32) string {
	text := []byte{'['}
	for i, x := range vector {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendFloat(text, float64(x), 'g', 5, 32)
	}
	return string(append(text, ']'))
}

// randomVectors gives each text a random vector, in a space that base spans.
type randomVectors struct {
	*embedtest.Embedder

	base [][]float32
}

func newRandomVectors(rank int) randomVectors {
	r := randomVectors{Embedder: fake(), base: make([][]float32, rank)}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range r.base {
		r.base[i] = make([]float32, r.Space().Dimensions)
		for j := range r.base[i] {
			r.base[i][j] = float32(random.NormFloat64())
		}
	}
	return r
}

func (r randomVectors) Embed(_ context.Context, _ embed.Kind, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		hash := fnv.New64a()
		hash.Write([]byte(text))
		random := rand.New(rand.NewPCG(hash.Sum64(), 0))
		vector := make([]float32, r.Space().Dimensions)
		for _, direction := range r.base {
			weight := float32(random.NormFloat64())
			for j := range vector {
				vector[j] += weight * direction[j]
			}
		}
		var squares float64
		for _, x := range vector {
			squares += float64(x) * float64(x)
		}
		for j := range vector {
			vector[j] /= float32(math.Sqrt(squares))
		}
		vectors[i] = vector
	}
	return vectors, nil
}
