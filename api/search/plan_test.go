package search

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kb-search/kb/db"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	vector := make([]float32, 384)
	for name, test := range map[string]struct {
		request           Request
		vector            []float32
		lexical, semantic bool
		filtered          bool
		limit             int32
	}{
		"HybridUsesBothArms":         {Request{Limit: 10}, vector, true, true, false, 10},
		"WithoutAVectorWordsAlone":   {Request{Limit: 10}, nil, true, false, false, 10},
		"LexicalLeavesTheVectorOut":  {Request{Limit: 10, Mode: Lexical}, vector, true, false, false, 10},
		"SemanticLeavesTheWordsOut":  {Request{Limit: 10, Mode: Semantic}, vector, false, true, false, 10},
		"TagsFilter":                 {Request{Limit: 10, DocumentFilter: db.DocumentFilter{Tags: map[string]string{"a": ""}}}, vector, true, true, true, 10},
		"NoTagsDoNot":                {Request{Limit: 10, DocumentFilter: db.DocumentFilter{Tags: map[string]string{}}}, vector, true, true, false, 10},
		"NoIDsFilter":                {Request{Limit: 10, DocumentFilter: db.DocumentFilter{IDs: db.UUIDs{}}}, vector, true, true, true, 10},
		"DocTypeFilters":             {Request{Limit: 10, DocumentFilter: db.DocumentFilter{DocType: "note"}}, vector, true, true, true, 10},
		"ALimitAboveTheLargestIsCut": {Request{Limit: 100_000}, vector, true, true, false, MaxLimit},
		"ALimitBelowOneIsOne":        {Request{Limit: -1}, vector, true, true, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := plan(test.request, DefaultSettings(), 7, test.vector)
			if err != nil {
				t.Fatal(err)
			}
			if got.UseLexical != test.lexical || got.UseSemantic != test.semantic || got.DocumentsFiltered != test.filtered || got.MaxResults != test.limit {
				t.Errorf("got %+v", got)
			}
			if (got.QueryVector != nil) != (test.vector != nil) || got.SpaceID != 7 || got.Depth != DefaultSettings().Depth {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ query, want string }{
		"AShortQueryStays":     {"change oil", "change oil"},
		"NULAndBrokenBytesGo":  {"a\x00b\xffc", "a b c"},
		"CutBetweenWords":      {strings.Repeat("word ", 1000), strings.TrimSpace(strings.Repeat("word ", 819))},
		"CutInsideALongWord":   {strings.Repeat("a", 5000), strings.Repeat("a", maxQueryBytes)},
		"CutBetweenCharacters": {"a" + strings.Repeat("é", 5000), "a" + strings.Repeat("é", (maxQueryBytes-1)/2)},
		"AWordAtTheStartOnly":  {"a " + strings.Repeat("b", 5000), "a " + strings.Repeat("b", maxQueryBytes-2)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := head(test.query); got != test.want {
				t.Errorf("got %d bytes %.40q, want %d bytes %.40q", len(got), got, len(test.want), test.want)
			}
		})
	}
}

func FuzzHead(f *testing.F) {
	for _, seed := range []string{"", "a\x00", "\xff\xfe", strings.Repeat("é ", 3000), strings.Repeat("\xf0\x9f\x9a", 2000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := head(query)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("%.40q gives %.40q, which PostgreSQL refuses", query, got)
		}
	})
}

func TestSearchable(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]bool{"a": true, "7": true, "今": true, "½": true, "??!@#": false, "🚀": false, "\u200b": false, "": false, "\u0301": false} {
		if got := searchable(query); got != want {
			t.Errorf("%q: got %v", query, got)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	all, some, none := db.SearchRow{HasAllWords: true, HasAnyWord: true}, db.SearchRow{HasAnyWord: true}, db.SearchRow{}
	for name, test := range map[string]struct {
		rows   []db.SearchRow
		want   Status
		banner bool
	}{
		"NoRows":               {nil, NoHit, false},
		"NoWordInAny":          {[]db.SearchRow{none, none}, VectorOnly, true},
		"SomeWordInSome":       {[]db.SearchRow{none, some}, LooseHit, true},
		"AllWordsInTheLastRow": {[]db.SearchRow{none, some, all}, StrictHit, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := status(test.rows); got != test.want || (DefaultSettings().banner(got) != "") != test.banner {
				t.Errorf("got %s, banner %q", got, DefaultSettings().banner(got))
			}
		})
	}
}
