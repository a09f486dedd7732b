package db_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

func (c *corpus) ladder(project uuid.UUID, keywords ...string) db.SearchLadderParams {
	return db.SearchLadderParams{
		ProjectID: project, SpaceID: c.space, Keywords: append([]string{}, keywords...), QueryVector: &c.vector, UseVector: true, TryStrict: true, TryLoose: true,
		DocumentFilter: json.RawMessage("{}"), MaxWords: 64, RowBudget: 2000, RescoreDepth: 200, Depth: 200, ExactRows: 4000, StrictMaxHits: 8,
		TitleBoost: 3, RrfWindow: 50, VectorWeight: 0.5, K1: 1.2, B: 0.75, MaxResults: 10, Facets: []string{}, FacetBuckets: 20,
	}
}

// executed names the CTEs of a plan below which a table was really read.
func (n node) executed() []string {
	var parts []string
	n.walk(func(part node) {
		if !strings.HasPrefix(part.Part, "CTE ") {
			return
		}
		part.walk(func(scan node) {
			if name := strings.TrimPrefix(part.Part, "CTE "); scan.Table != "" && scan.Loops > 0 && !slices.Contains(parts, name) {
				parts = append(parts, name)
			}
		})
	})
	slices.Sort(parts)
	return parts
}

// testLadderPlan shows that a stage that is not needed is not executed: nothing below it has run, by the plan's actual loops.
func testLadderPlan(t *testing.T, c *corpus) {
	filtered := func(p db.SearchLadderParams) db.SearchLadderParams {
		p.DocumentsFiltered, p.DocumentFilter = true, json.RawMessage(`{"doc_type": "note"}`)
		return p
	}
	for name, test := range map[string]struct {
		params db.SearchLadderParams
		status string
		// parts are those that may read tables, beside the statistics.
		parts []string
	}{
		"Strict":                 {c.ladder(c.large, "needle", "common"), "strict_hit", []string{"passage", "scored", "strict"}},
		"TooMany":                {c.ladder(c.large, "common", "group7"), "too_many", []string{"strict", "summary"}},
		"Loose":                  {c.ladder(c.large, "needle", "zebra"), "loose_hit", []string{"loose", "passage", "recalled", "scored", "strict"}},
		"LooseFiltered":          {filtered(c.ladder(c.large, "group50", "zebra")), "loose_hit", []string{"loose", "passage", "recalled", "scored", "strict"}},
		"VectorOnlyOfALargeOne":  {c.ladder(c.large, "zebra"), "vector_only", []string{"loose", "strict", "walked"}},
		"VectorOnlyOfASmallOne":  {c.ladder(c.tiny, "zebra"), "vector_only", []string{"loose", "nearest", "strict"}},
		"NothingWithoutAVector":  {func() db.SearchLadderParams { p := c.ladder(c.tiny, "zebra"); p.UseVector = false; return p }(), "no_hit", []string{"loose", "strict"}},
		"BrowsingWithoutKeyword": {filtered(c.ladder(c.tiny)), "strict_hit", []string{"browsed", "passage", "scored"}},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := db.New().SearchLadder(t.Context(), c.pool, test.params)
			if err != nil || rows[0].Status != test.status {
				t.Fatalf("%v, %v", rows, err)
			}
			allowed := append([]string{"corpus", "language", "query_word", "unit", "word", "scope"}, test.parts...)
			executed := explainSQL(t, c.pool, db.SearchLadderSQL, test.params.Args()).executed()
			for _, part := range executed {
				if !slices.Contains(allowed, part) {
					t.Errorf("%s has read a table; executed are %v", part, executed)
				}
			}
			if stage := map[string]string{"strict_hit": "passage", "too_many": "strict", "loose_hit": "recalled"}[test.status]; stage != "" && !slices.Contains(executed, stage) {
				t.Errorf("%s has not run: %v", stage, executed)
			}
		})
	}
}

func TestLadder(t *testing.T) {
	t.Parallel()

	c := newCorpus(t)
	run := func(t *testing.T, params db.SearchLadderParams) []db.SearchLadderRow {
		t.Helper()
		rows, err := db.New().SearchLadder(t.Context(), c.pool, params)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}

	t.Run("Plan", func(t *testing.T) { testLadderPlan(t, c) })

	t.Run("PagesReachWhatTheBudgetLeavesUnranked", func(t *testing.T) {
		// 200 documents have the common word, one of them the needle: a budget of 100 rows ranks few of them.
		params := c.ladder(c.tiny, "needle", "common", "zebra")
		params.TryStrict, params.RowBudget, params.MaxResults = false, 100, 7
		seen := map[uuid.UUID]bool{}
		for skip := 0; skip < 210; skip += 7 {
			params.Skip = int32(skip)
			for _, row := range run(t, params) {
				if row.TotalMatches != 200 {
					t.Fatalf("%d in all", row.TotalMatches)
				}
				if !row.Found {
					continue
				}
				if seen[row.DocumentID] {
					t.Fatalf("a document is on two pages")
				}
				if len(seen) == 0 && !strings.Contains(row.Content, "needle") {
					t.Errorf("first is %s", row.Content)
				}
				seen[row.DocumentID] = true
			}
		}
		if len(seen) != 200 {
			t.Errorf("the pages have %d of 200 documents", len(seen))
		}
	})

	t.Run("AWordBeyondTheRankedOnesFindsItsDocument", func(t *testing.T) {
		keywords := []string{"group7"}
		for i := range 100 {
			keywords = append(keywords, fmt.Sprintf("group%d", i))
		}
		params := c.ladder(c.tiny, keywords...)
		params.TryStrict, params.MaxWords = false, 5
		if rows := run(t, params); rows[0].TotalMatches != 200 {
			t.Errorf("%d of 200 documents have one of 100 words", rows[0].TotalMatches)
		}
	})

	t.Run("OtherProjectsStayOut", func(t *testing.T) {
		for _, params := range []db.SearchLadderParams{c.ladder(c.tiny, "needle"), c.ladder(c.tiny, "common", "zebra"), c.ladder(c.tiny, "zebra"), c.ladder(c.tiny)} {
			params.MaxResults, params.StrictMaxHits = 100, 10_000
			for _, row := range run(t, params) {
				var project uuid.UUID
				if err := c.pool.QueryRow(t.Context(), "SELECT project_id FROM documents WHERE id = $1", row.DocumentID).Scan(&project); err != nil || project != c.tiny {
					t.Fatalf("a document of project %s, %v", project, err)
				}
			}
		}
	})

	t.Run("KeywordsApartInADocument", func(t *testing.T) {
		// Strict is about documents: its keywords may stand in different chunks.
		var document uuid.UUID
		err := c.pool.QueryRow(t.Context(), `SELECT document_id FROM chunks WHERE project_id = $1 AND content LIKE 'needle%'`, c.tiny).Scan(&document)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := c.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		for i, sql := range []string{
			`INSERT INTO chunks (project_id, document_id, id, seq, section, content, enriched_text) VALUES ($1, $2, $3, 1, '', 'haystack', '')`,
			`INSERT INTO chunk_words (project_id, document_id, chunk_id, length, tsv) VALUES ($1, $2, $3, 1, search_vector('english', '', 'haystack'))`,
		} {
			if _, err := tx.Exec(t.Context(), sql, c.tiny, document, uuid.UUID{15: 1}); err != nil {
				t.Fatal(i, err)
			}
		}
		for _, keywords := range [][]string{{"needle", "haystack"}, {"haystack needle"}} {
			rows, err := db.New().SearchLadder(t.Context(), tx, c.ladder(c.tiny, keywords...))
			if err != nil || len(rows) != 1 || rows[0].Status != "strict_hit" || rows[0].DocumentID != document || rows[0].Passages != 2 {
				t.Errorf("%q: %+v, %v", keywords, rows, err)
			}
		}
	})
}

// TestKeywordQuery is what a keyword asks of a text.
func TestKeywordQuery(t *testing.T) {
	t.Parallel()

	pool := dbtest.New(t)
	for _, test := range []struct {
		keyword, text string
		fits          bool
	}{
		{"E-1234", "alarm E-1234", true}, {"E-1234", "alarm E1234", true}, {"E-1234", "alarm e 1234", true}, {"E1234", "alarm E-1234", true},
		{"E-1234", "alarm E-1235", false}, {"E-1234", "alarm 1234", false}, {"E-1234", "E-12345", false},
		{"T-100", "a T-100", true}, {"T-100", "a hundred is 100", false}, {"T_100", "only 100", false}, {"T_100", "T_100", true}, {"T_100", "a T100", true},
		{"SRVO-062", "SRVO-062 alarm", true}, {"SRVO-062", "srvo 062", true}, {"0x80070005", "error 0x80070005 again", true},
		{"src/utils/parser.ts", "see src/utils/parser.ts", true}, {"src/utils/parser.ts", "the parser in utils of src is ts", true}, {"src/utils/parser.ts", "src utils", false},
		{"getUserById", "call getUserById", true}, {"getUserById", "getuserbyid", true}, {"getUserById", "get the user id", true}, {"getUserById", "get user", false},
		{"C++", "written in C++", true}, {"C++", "written in C", false}, {"C#", "in C#", true}, {"AT&T", "by AT&T", true},
		{"3.5", "version 3.5", true}, {"3.5", "3 and 5", false}, {"3.5", "35", false},
		{"foo-bar", "a foo-bar", true}, {"foo-bar", "foo and bar", true}, {"foo-bar", "foo", false},
		{"报错怎么", "这个报错怎么解决", true}, {"报错怎么", "怎么报错", false}, {"水", "水泵", true}, {"主轴E-12报警", "E-12 的主轴，报警", true}, {"主轴E-12报警", "主轴报警", false},
		{"worn bearing", "the bearing is worn", true}, {"worn bearing", "a bearing", false}, {"running", "it runs", true}, {"ＡＢＣ", "abc", true}, {"café", "cafe", true},
	} {
		var fits bool
		err := pool.QueryRow(t.Context(), `SELECT count(*) > 0 AND bool_and(search_vector('english', '', $2) @@ match) FROM keyword_parts('english', $1)`, test.keyword, test.text).Scan(&fits)
		if err != nil || fits != test.fits {
			t.Errorf("%q in %q: %t, %v", test.keyword, test.text, fits, err)
		}
	}
	for _, itself := range []string{"E-1234.5", "AB-12/CD", "6ES7-400/HF", "SRVO-062.1", "ISO-9001.2015", "a_b-1", "x.com/a-1", "E-1234", "foo-bar-2", "v1.2.3-rc4", "-40", "10.0.0.1", "0x80070005", "user@host.org"} {
		var holds bool
		err := pool.QueryRow(t.Context(), `SELECT count(*) > 0 AND bool_and(search_vector('english', '', 'It says ' || $1 || ' here.') @@ match) FROM keyword_parts('english', $1)`, itself).Scan(&holds)
		if err != nil || !holds {
			t.Errorf("a text with %s does not hold it, %v", itself, err)
		}
	}
	for _, nothing := range []string{"", " ", "the of", "?!", "—", "'", "\\"} {
		var parts int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM keyword_parts('english', $1)`, nothing).Scan(&parts); err != nil || parts != 0 {
			t.Errorf("%q: %d, %v", nothing, parts, err)
		}
	}
}

func BenchmarkLadder(b *testing.B) {
	c := newCorpus(b)
	for name, params := range map[string]db.SearchLadderParams{
		"Strict": c.ladder(c.large, "needle", "common"), "TooMany": c.ladder(c.large, "common", "group7"), "Loose": c.ladder(c.large, "group7", "zebra"),
		"VectorOnly": c.ladder(c.large, "zebra"), "Browse": c.ladder(c.large),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := db.New().SearchLadder(b.Context(), c.pool, params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFacets counts three facets over 15,000 documents, beside a bare count of the same rows.
func BenchmarkFacets(b *testing.B) {
	c := newCorpus(b)
	if _, err := c.pool.Exec(b.Context(), `UPDATE documents SET metadata = jsonb_build_object('project', 'p' || (n % 12), 'equipment', 'e' || (n % 60),
		'error_codes', jsonb_build_array('c' || (n % 500), 'd' || (n % 7)))
		FROM (SELECT id AS document, row_number() OVER () AS n FROM documents) AS numbered WHERE id = document`); err != nil {
		b.Fatal(err)
	}
	if err := db.Analyze(b.Context(), c.pool); err != nil {
		b.Fatal(err)
	}
	b.Run("Facets", func(b *testing.B) {
		for b.Loop() {
			rows, err := db.New().SearchLadder(b.Context(), c.pool, c.ladder(c.large))
			if err != nil || rows[0].Status != "too_many" || len(rows[0].Facets) < 100 {
				b.Fatal(fmt.Sprint(rows, err))
			}
		}
	})
	b.Run("Count", func(b *testing.B) {
		for b.Loop() {
			var n int
			if err := c.pool.QueryRow(b.Context(), "SELECT count(*) FROM documents WHERE project_id = $1", c.large).Scan(&n); err != nil {
				b.Fatal(err)
			}
		}
	})
}
