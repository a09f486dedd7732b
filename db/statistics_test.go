package db_test

import (
	"fmt"
	"testing"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

// TestFoldStatistics folds as many words as a large document has, known and unknown ones, up and down. A statement that looks
// for each word among all of them does not end within the test's patience.
func TestFoldStatistics(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	const words = 30_000
	add := func(from, to, df int) {
		t.Helper()
		_, err := pool.Exec(t.Context(), `INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
			SELECT $1, 'document', $4::int, 10 * $4::int, array_agg('word' || i), array_agg($4::int) FROM generate_series($2::int, $3::int) AS i`, db.DefaultProjectID, from, to, df)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.FoldStatistics(t.Context(), pool, db.DefaultProjectID); err != nil {
			t.Fatal(err)
		}
	}
	want := func(total, distinct int) {
		t.Helper()
		var got string
		err := pool.QueryRow(t.Context(), `SELECT format('%s words, %s in all, n %s, length %s',
			(SELECT count(*) FROM lexeme_stats WHERE df > 0), (SELECT coalesce(sum(df), 0) FROM lexeme_stats),
			(SELECT sum(n) FROM corpus_stats), (SELECT sum(total_length) FROM corpus_stats))`).Scan(&got)
		n := total / words
		if expected := fmt.Sprintf("%d words, %d in all, n %d, length %d", distinct, total, n, 10*n); err != nil || got != expected {
			t.Errorf("got %s, %v; want %s", got, err, expected)
		}
	}
	add(1, words, 1)
	want(words, words)
	add(1, words, 1) // the same words again
	want(2*words, words)
	add(words/2+1, words/2+words, 1) // half of them known
	want(3*words, words+words/2)
	add(1, words, -1) // a document goes
	want(2*words, words+words/2)
	add(1, words, -1)
	want(words, words)
}
