package db_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db/dbtest"
)

func lexemes(t *testing.T, tx pgx.Tx, text string) []string {
	t.Helper()
	var found []string
	err := tx.QueryRow(t.Context(), "SELECT tsvector_to_array(to_tsvector('english', analyze_text($1)))", text).Scan(&found)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAnalyzeText(t *testing.T) {
	t.Parallel()

	for _, row := range []struct {
		name, text string
		holds      []string
		not        []string
	}{
		{"ChineseBecomesPairs", "报错怎么解决", []string{"报错", "错怎", "怎么", "么解", "解决"}, []string{"报错怎么解决"}},
		{"OneChineseCharacterStays", "水 is water", []string{"水", "water"}, nil},
		{"CodeInsideChineseIsAWord", "编译报错CXX0014怎么解决", []string{"cxx0014", "编译", "解决"}, []string{"错c"}},
		{"KoreanAndJapaneseBecomePairs", "번역을 ダッシュボード", []string{"번역", "역을", "ダッ", "ード"}, nil},
		{"CharactersBeyondTheFirstPlane", "𠀀𠀁𠀂", []string{"𠀀𠀁", "𠀁𠀂"}, nil},
		{"HyphenBeforeADigitIsNoMinus", "E-1234", []string{"1234", "e1234"}, []string{"-1234"}},
		{"CodesHaveAJoinedForm", "CVE-2026-2332", []string{"cve20262332", "2332", "2026"}, nil},
		{"HyphenatedWordsAreNotSplitTwice", "state-of-the-art", []string{"state-of-the-art", "state", "art"}, nil},
		{"PathsHaveParts", "src/utils/parser.ts", []string{"src/utils/parser.ts", "src", "util", "parser", "ts"}, nil},
		{"AddressesHaveParts", "mail desk@example.com", []string{"desk@example.com", "desk", "exampl"}, nil},
		{"LinksHaveAHost", "https://example.com/docs/setup?step=2", []string{"example.com", "doc", "setup"}, nil},
		{"SnakeCaseHasPartsAndAWhole", "refresh_token_rotation", []string{"refresh", "token", "rotat", "refreshtokenrot"}, nil},
		{"CamelCaseHasPartsAndAWhole", "getUserById", []string{"getuserbyid", "get", "user", "id"}, nil},
		{"AbbreviationsInCamelCase", "HTTPServer", []string{"httpserver", "http", "server"}, nil},
		{"LanguagesKeepTheirSigns", "C++ and C#", []string{"cplusplus", "csharp"}, nil},
		{"DecimalsStayWhole", "3.5 mm", []string{"3.5"}, []string{"3", "5"}},
		{"AccentsFold", "café CAFE\u0301 Málaga", []string{"cafe", "malaga"}, []string{"café"}},
		{"InvisibleCharactersVanish", "data\u200bbase soft\u00adware", []string{"databas", "softwar"}, nil},
		{"CompatibilityFormsFold", "ﬁle ＡＢＣ１２３", []string{"file", "abc123"}, nil},
		{"NothingOfPunctuation", "??!@# … --", nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()

			found := lexemes(t, dbtest.Tx(t), row.text)
			for _, want := range row.holds {
				if !slices.Contains(found, want) {
					t.Errorf("%q has %q, not %q", row.text, found, want)
				}
			}
			for _, never := range row.not {
				if slices.Contains(found, never) {
					t.Errorf("%q has %q, and should not have %q", row.text, found, never)
				}
			}
			if row.holds == nil && len(found) > 0 {
				t.Errorf("%q has %q", row.text, found)
			}
		})
	}
}

func TestWordQueryMatchesItsLexemeOnly(t *testing.T) {
	t.Parallel()

	tx := dbtest.Tx(t)
	for _, lexeme := range []string{"pump", "it's", `a\b`, `\`, `'`, "a & b", "!x", "x:*", "(", "é", "水", "水泵", `"q"`, "<->"} {
		var finds, other bool
		err := tx.QueryRow(t.Context(), `SELECT array_to_tsvector(ARRAY[$1::text]) @@ word_query($1), array_to_tsvector(ARRAY['x', 'a', 'b']) @@ word_query($1)`, lexeme).
			Scan(&finds, &other)
		if err != nil || !finds || other {
			t.Errorf("%q: finds itself %t, another %t, %v", lexeme, finds, other, err)
		}
	}
}

// The default parser is quadratic in words joined by some characters: 50 kB of a_a_a cost it 32 seconds.
func TestAnalyzeTextIsLinear(t *testing.T) {
	t.Parallel()

	for _, unit := range []string{"a_", "a-", "a.", "a/", "a@", "a:", "a+", "a&", "aB", "a1-", "战国", "a\\", "é", "\u200b", "a b_"} {
		tx, err := dbtest.Tx(t).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SET LOCAL statement_timeout = '5s'"); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		_, err = tx.Exec(t.Context(), "SELECT search_vector('english', '', $1)", strings.Repeat(unit, 8192/len(unit)))
		if err != nil {
			t.Errorf("%q repeated: %v after %s", unit, err, time.Since(started))
		}
	}
}

func TestTermFrequencyCountsTheWord(t *testing.T) {
	t.Parallel()

	tx := dbtest.Tx(t)
	for _, count := range []int{1, 2, 3, 5, 10, 20} {
		var frequency float64
		err := tx.QueryRow(t.Context(),
			"SELECT term_frequency(ts_rank('{1,1,1,1}', search_vector('english', 'kiln', $1), 'kiln'))", strings.Repeat("kiln glaze ", count-1)).Scan(&frequency)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(frequency-float64(count)) > 0.15*float64(count) {
			t.Errorf("%d times the word reads as %.2f", count, frequency)
		}
	}
}
