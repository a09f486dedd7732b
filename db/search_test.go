package db_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pgvector/pgvector-go"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

const dimensions = 384

// corpus is a database of three projects of very different size: every chunk has the word common, one in a hundred a
// word of its hundred, and each project's first one the word needle.
type corpus struct {
	pool               *pgxpool.Pool
	space              int32
	large, small, tiny uuid.UUID
	vector             pgvector.HalfVector
}

func newCorpus(t testing.TB) *corpus {
	t.Helper()
	c := &corpus{pool: dbtest.New(t), large: db.NewID(), small: db.NewID(), tiny: db.NewID()}
	ctx := t.Context()
	must := func(sql string, args ...any) {
		t.Helper()
		if _, err := c.pool.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	must("SELECT setseed(0.5)")
	err := c.pool.QueryRow(ctx, `INSERT INTO embedding_spaces (model, precision, sha256, dimensions, active)
		VALUES ('m', 'int8', 'x', $1, true) RETURNING id`, dimensions).Scan(&c.space)
	if err != nil {
		t.Fatal(err)
	}
	for project, count := range map[uuid.UUID]int{c.large: 15000, c.small: 3800, c.tiny: 200} {
		must("INSERT INTO projects (id, name) VALUES ($1, $2)", project, project.String())
		must(`INSERT INTO documents (project_id, id, title, doc_type, tags, metadata, content_hash, original_filename, stored_path, size, chunk_count)
			SELECT $1, gen_random_uuid(), 'report ' || n, CASE WHEN n % 50 = 0 THEN 'note' ELSE 'data' END,
				CASE WHEN n % 20 = 0 THEN '{"odd": ""}'::jsonb ELSE '{}' END, jsonb_build_object('n', n), sha256(n::text::bytea), n::text, '', 1, 1
			FROM generate_series(1, $2::int) AS n`, project, count)
		must(`INSERT INTO chunks (project_id, document_id, id, seq, section, content, enriched_text)
			SELECT project_id, id, gen_random_uuid(), 0, '',
				CASE WHEN original_filename = '1' THEN 'needle ' ELSE '' END || 'common words of group' || (original_filename::int % 100), ''
			FROM documents WHERE project_id = $1`, project)
		must(`INSERT INTO chunk_words (project_id, document_id, chunk_id, length, tsv)
			SELECT v.project_id, v.document_id, v.id, search_length(v.tsv), v.tsv FROM (
				SELECT c.project_id, c.document_id, c.id, search_vector('english', d.title, c.content) AS tsv
				FROM chunks AS c JOIN documents AS d ON d.project_id = c.project_id AND d.id = c.document_id WHERE c.project_id = $1
			) AS v`, project)
		must(`INSERT INTO embeddings (project_id, document_id, chunk_id, space_id, embedding)
			SELECT c.project_id, c.document_id, c.id, $2, (SELECT array_agg(random() - 0.5 + c.seq * g) FROM generate_series(1, 384) AS g)::real[]::halfvec
			FROM chunks AS c WHERE c.project_id = $1`, project, c.space)
		must(`INSERT INTO corpus_stats SELECT project_id, 'document', count(*), sum(length) FROM chunk_words WHERE project_id = $1 GROUP BY 1`, project)
		must(`INSERT INTO lexeme_stats SELECT project_id, lexeme, count(*) FROM chunk_words, unnest(tsv) WHERE project_id = $1 GROUP BY 1, 2`, project)
	}
	must(fmt.Sprintf(`CREATE INDEX embeddings_space_%[1]d ON embeddings USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE space_id = %[1]d`, c.space))
	if err := db.Analyze(ctx, c.pool); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float32, dimensions)
	for i := range values {
		values[i] = random.Float32() - 0.5
	}
	c.vector = pgvector.NewHalfVector(values)
	return c
}

func (c *corpus) params(project uuid.UUID, query string) db.SearchParams {
	return db.SearchParams{
		ProjectIds: []uuid.UUID{project}, SpaceID: c.space, Query: query, QueryVector: &c.vector, UseLexical: true, UseSemantic: true,
		IncludeDocuments: true, DocumentFilter: json.RawMessage("{}"), MemoryFilter: json.RawMessage("{}"), MinSimilarity: -1,
		LexicalWeight: 1, SemanticWeight: 1, TopRankBonus: true, MaxWords: 64, RowBudget: 2000, RescoreDepth: 200, Depth: 100, ExactRows: 4000,
		K1: 1.2, B: 0.75, RrfK: 60, MaxResults: 10,
	}
}

// node is one step of a plan as EXPLAIN (FORMAT JSON) has it.
type node struct {
	Type  string `json:"Node Type"`
	Index string `json:"Index Name"`
	Table string `json:"Relation Name"`
	// Part is "CTE name" on the top of a CTE.
	Part string `json:"Subplan Name"`
	// Filter is what is looked at in rows that an index has given.
	Filter string  `json:"Filter"`
	Rows   float64 `json:"Actual Rows"`
	Loops  float64 `json:"Actual Loops"`
	Plans  []node  `json:"Plans"`
}

func (n node) walk(visit func(node)) {
	visit(n)
	for _, child := range n.Plans {
		child.walk(visit)
	}
}

// rows counts what the executed nodes of a kind gave.
func (n node) rows(matches func(node) bool) float64 {
	var total float64
	n.walk(func(n node) {
		if matches(n) {
			total += n.Rows * n.Loops
		}
	})
	return total
}

func (n node) uses(index string) bool {
	return n.rows(func(n node) bool { return n.Index == index && n.Loops > 0 }) > 0
}

func explain(t *testing.T, pool *pgxpool.Pool, params db.SearchParams) node {
	t.Helper()
	return explainSQL(t, pool, db.SearchSQL, params.Args())
}

func explainSQL(t *testing.T, pool *pgxpool.Pool, sql string, args []any) node {
	t.Helper()
	var output []byte
	err := pool.QueryRow(t.Context(), "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+sql, args...).Scan(&output)
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan node `json:"Plan"`
	}
	if err := json.Unmarshal(output, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

func TestSearchPlan(t *testing.T) {
	t.Parallel()

	c := newCorpus(t)
	hnsw := fmt.Sprintf("embeddings_space_%d", c.space)
	chunkRows := func(n node) bool { return n.Table == "chunk_words" && strings.Contains(n.Type, "Heap Scan") }

	t.Run("LargeScopeWalksTheVectorIndex", func(t *testing.T) {
		plan := explain(t, c.pool, c.params(c.large, "needle group7"))
		if !plan.uses(hnsw) || !plan.uses("chunk_words_tsv") {
			t.Errorf("the plan uses %s: %t, chunk_words_tsv: %t", hnsw, plan.uses(hnsw), plan.uses("chunk_words_tsv"))
		}
	})

	t.Run("SmallScopeIsComparedOneByOne", func(t *testing.T) {
		for _, project := range []uuid.UUID{c.small, c.tiny} {
			plan := explain(t, c.pool, c.params(project, "needle"))
			if plan.uses(hnsw) {
				t.Errorf("a small project walks the index of all")
			}
		}
	})

	t.Run("NoArmReadsAWholeTable", func(t *testing.T) {
		for _, query := range []string{"needle", "common", "group7 common", "absent"} {
			explain(t, c.pool, c.params(c.large, query)).walk(func(n node) {
				if n.Type == "Seq Scan" && n.Loops > 0 && (n.Table == "chunk_words" || n.Table == "embeddings" || n.Table == "lexeme_stats") {
					t.Errorf("%q reads all of %s", query, n.Table)
				}
			})
		}
	})

	t.Run("RareWordReadsItsRowsOnly", func(t *testing.T) {
		if rows := explain(t, c.pool, c.params(c.large, "needle")).rows(chunkRows); rows != 1 {
			t.Errorf("needle reads %.0f rows", rows)
		}
		if rows := explain(t, c.pool, c.params(c.large, "group7")).rows(chunkRows); rows != 150 {
			t.Errorf("group7 reads %.0f rows", rows)
		}
	})

	t.Run("CommonWordStaysWithinTheBudget", func(t *testing.T) {
		for _, query := range []string{"common", "common words report", "needle common words"} {
			if rows := explain(t, c.pool, c.params(c.large, query)).rows(chunkRows); rows > 2000 {
				t.Errorf("%q reads %.0f rows", query, rows)
			}
		}
	})

	t.Run("UnusedArmIsNotExecuted", func(t *testing.T) {
		params := c.params(c.large, "needle")
		params.UseSemantic = false
		if explain(t, c.pool, params).uses(hnsw) {
			t.Error("lexical search walks the vector index")
		}
		params = c.params(c.large, "needle")
		params.UseLexical = false
		if explain(t, c.pool, params).uses("chunk_words_tsv") {
			t.Error("semantic search reads the text index")
		}
	})
}

func TestSearch(t *testing.T) {
	t.Parallel()

	c := newCorpus(t)
	run := func(t *testing.T, params db.SearchParams) []db.SearchRow {
		t.Helper()
		rows, err := db.New().Search(context.WithoutCancel(t.Context()), c.pool, params)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}

	t.Run("RareWordIsFirst", func(t *testing.T) {
		params := c.params(c.large, "common words with a needle")
		params.UseSemantic = false
		rows := run(t, params)
		if len(rows) != 1 || !strings.Contains(rows[0].Content, "needle") || rows[0].LexicalRank != 1 {
			t.Errorf("%d rows", len(rows))
		}
	})

	t.Run("FilterNeverShortensThePage", func(t *testing.T) {
		for _, project := range []uuid.UUID{c.large, c.small, c.tiny} {
			for _, limit := range []int32{1, 5, 10, 50, 100} {
				params := c.params(project, "qwxzv plimth")
				params.MaxResults = limit
				if rows := run(t, params); len(rows) != int(limit) {
					t.Errorf("limit %d without a filter gives %d rows", limit, len(rows))
				}
				params.DocumentsFiltered, params.DocumentFilter = true, json.RawMessage(`{"doc_type": "note", "tags": {"odd": ""}}`)
				matching := map[uuid.UUID]int{c.large: 150, c.small: 38, c.tiny: 2}[project]
				if rows := run(t, params); len(rows) != min(int(limit), matching) {
					t.Errorf("limit %d with %d matching gives %d rows", limit, matching, len(rows))
				}
			}
		}
	})

	t.Run("LongerPageBeginsWithTheShorter", func(t *testing.T) {
		long := c.params(c.large, "group7 common")
		long.MaxResults = 100
		rows := run(t, long)
		for _, limit := range []int32{1, 7, 50} {
			params := c.params(c.large, "group7 common")
			params.MaxResults = limit
			for i, row := range run(t, params) {
				if row.ID != rows[i].ID || row.TotalMatches != rows[i].TotalMatches {
					t.Fatalf("limit %d differs at %d", limit, i)
				}
			}
		}
	})

	t.Run("OtherProjectsStayOut", func(t *testing.T) {
		params := c.params(c.tiny, "common words report group7")
		params.MaxResults = 100
		for _, row := range run(t, params) {
			var project uuid.UUID
			err := c.pool.QueryRow(t.Context(), "SELECT project_id FROM chunks WHERE id = $1", row.ID).Scan(&project)
			if err != nil || project != c.tiny {
				t.Fatalf("a chunk of project %s, %v", project, err)
			}
		}
	})

	t.Run("ScoreIsTheSumOfItsParts", func(t *testing.T) {
		for _, row := range run(t, c.params(c.small, "needle group7")) {
			want := row.LexicalRrf + row.SemanticRrf + row.Bonus
			if diff := row.Score - want; diff > 1e-12 || diff < -1e-12 {
				t.Errorf("score %v, parts %v", row.Score, want)
			}
			best := max(row.LexicalRank, row.SemanticRank)
			if row.LexicalRank > 0 && row.SemanticRank > 0 {
				best = min(row.LexicalRank, row.SemanticRank)
			}
			bonus := map[bool]float64{true: 0.02}[best <= 3]
			if best == 1 {
				bonus = 0.05
			}
			if row.Bonus != bonus {
				t.Errorf("best rank %d has a bonus of %v", best, row.Bonus)
			}
		}
	})

	t.Run("ChunksWithoutWordsDoNotDivideByZero", func(t *testing.T) {
		tx, err := c.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		for _, stats := range []string{"n = 1, total_length = 0", "n = 0, total_length = 0", "n = -1, total_length = 5"} {
			if _, err := tx.Exec(t.Context(), "UPDATE corpus_stats SET "+stats); err != nil {
				t.Fatal(err)
			}
			rows, err := db.New().Search(t.Context(), tx, c.params(c.tiny, "needle common"))
			if err != nil || len(rows) != 10 {
				t.Errorf("%s: %d rows, %v", stats, len(rows), err)
			}
		}
	})

	t.Run("WordsThatStatisticsDoNotKnowAreFound", func(t *testing.T) {
		if _, err := c.pool.Exec(t.Context(), "DELETE FROM lexeme_stats WHERE project_id = $1", c.tiny); err != nil {
			t.Fatal(err)
		}
		params := c.params(c.tiny, "needle common")
		params.UseSemantic = false
		rows := run(t, params)
		if len(rows) != 10 || !strings.Contains(rows[0].Content, "needle") {
			t.Errorf("%d rows", len(rows))
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	c := newCorpus(b)
	filtered := c.params(c.large, "needle group7 common")
	filtered.DocumentsFiltered, filtered.DocumentFilter = true, json.RawMessage(`{"doc_type": "note", "tags": {"odd": ""}}`)
	for name, params := range map[string]db.SearchParams{
		"Large": c.params(c.large, "needle group7 common"), "Small": c.params(c.small, "needle group7 common"), "Filtered": filtered,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := db.New().Search(b.Context(), c.pool, params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
