package maintenance

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// TestOracleReadsAsTheAnalysisDoes holds the oracle, which knows neither stems nor stop words, to the product's text analysis: for
// each keyword of the queries both must find the same documents.
func TestOracleReadsAsTheAnalysisDoes(t *testing.T) {
	t.Parallel()

	set := smallSet(t)
	oracle := newOracle(newWriter(MinDocuments, DefaultSeed).records())
	tx := dbtest.Tx(t)
	if _, err := tx.Exec(t.Context(), "CREATE TEMP TABLE pages (id text, title text, body text) ON COMMIT DROP"); err != nil {
		t.Fatal(err)
	}
	rows := pgx.CopyFromSlice(len(set.Documents), func(i int) ([]any, error) {
		return []any{set.Documents[i].ID, set.Documents[i].Title, set.Documents[i].Text}, nil
	})
	if _, err := tx.CopyFrom(t.Context(), pgx.Identifier{"pages"}, []string{"id", "title", "body"}, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "CREATE TEMP TABLE vectors ON COMMIT DROP AS SELECT id, search_vector('english', title, body) AS tsv FROM pages"); err != nil {
		t.Fatal(err)
	}
	find := func(query string) []string {
		t.Helper()
		found, err := tx.Query(t.Context(), "SELECT id FROM vectors WHERE tsv @@ ("+query+") ORDER BY id")
		if err != nil {
			t.Fatal(query, err)
		}
		ids, err := pgx.CollectRows(found, pgx.RowTo[string])
		if err != nil {
			t.Fatal(query, err)
		}
		return ids
	}
	keywords := map[string]bool{}
	for _, query := range set.Queries {
		for _, keyword := range query.Keywords {
			keywords[keyword] = true
		}
	}
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		u := parseUnits([]string{keyword})[0]
		strict, loose := tsquery(u)
		for stage, pair := range map[string][2][]string{
			"strict": {find(strict), names(keep(oracle.pages, func(p page) bool { return p.holds(u) }))},
			"loose":  {find(loose), names(keep(oracle.pages, func(p page) bool { return p.touches(u) }))},
		} {
			if !slices.Equal(pair[0], pair[1]) {
				t.Errorf("%q, %s: the analysis finds %d documents, the oracle %d", keyword, stage, len(pair[0]), len(pair[1]))
			}
		}
	}
}

// TestAskedWordsShareNoStem covers what the queries of one seed may not: a word that queries are made of is no stop word, and
// stemming makes no other word of the corpus equal to it.
func TestAskedWordsShareNoStem(t *testing.T) {
	t.Parallel()

	asked := map[string]bool{}
	add := func(texts ...string) {
		for _, text := range texts {
			for _, w := range parseWords(text) {
				asked[w.whole] = true
			}
		}
	}
	for _, f := range families {
		for _, part := range f.parts {
			add(part.en)
		}
	}
	for _, symptom := range symptoms {
		add(symptom.en)
	}
	for _, p := range parameters {
		add(p.name.en, p.unit)
	}
	add(foreignEnglish...)
	add(nonsenseEnglish...)
	all := maps.Clone(asked)
	for _, r := range newWriter(MinDocuments, DefaultSeed).records() {
		for _, w := range parseWords(r.title + "\n" + r.body) {
			all[w.whole] = true
		}
	}
	words := slices.Sorted(maps.Keys(all))
	rows, err := dbtest.Tx(t).Query(t.Context(), "SELECT coalesce((ts_lexize('english_stem', word))[1], '') FROM unnest($1::text[]) WITH ORDINALITY AS w (word, n) ORDER BY n", words)
	if err != nil {
		t.Fatal(err)
	}
	stems, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	byStem := map[string][]string{}
	for i, word := range words {
		byStem[stems[i]] = append(byStem[stems[i]], word)
		if asked[word] && stems[i] == "" {
			t.Errorf("%s is a stop word", word)
		}
	}
	for stem, same := range byStem {
		if stem != "" && len(same) > 1 && slices.ContainsFunc(same, func(word string) bool { return asked[word] }) {
			t.Errorf("%v are the same to the search", same)
		}
	}
}

// tsquery spells a keyword for PostgreSQL, so that all of it must match, and so that anything may.
func tsquery(u unit) (strict, loose string) {
	var every, some []string
	lexeme := func(text string) string { return "plainto_tsquery('english', '" + text + "')" }
	for _, run := range u.runs {
		every = append(every, "phraseto_tsquery('english', analyze_text('"+run+"'))")
		characters := []rune(run)
		for i := range len(characters) - 1 {
			some = append(some, lexeme(string(characters[i:i+2])))
		}
	}
	for _, w := range u.words {
		parts := make([]string, len(w.parts))
		for i, part := range w.parts {
			parts[i] = lexeme(part)
		}
		every = append(every, "("+lexeme(w.whole)+" || ("+strings.Join(parts, " && ")+"))")
		some = append(append(some, lexeme(w.whole)), parts...)
	}
	return strings.Join(every, " && "), strings.Join(some, " || ")
}

func names(pages []page) []string {
	var ids []string
	for _, p := range pages {
		ids = append(ids, p.id)
	}
	return ids
}
