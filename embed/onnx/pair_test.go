package onnx

import (
	"slices"
	"testing"

	"github.com/kb-search/kb/embed"
)

// Each letter is a token: a is 3, b is 4. [CLS] is 1, [SEP] is 2.
const letters = `{
	"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
	"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
		"vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "##a": 3, "##b": 4}}}`

func TestPair(t *testing.T) {
	t.Parallel()
	tokenizer, err := newTokenizer([]byte(letters))
	if err != nil {
		t.Fatal(err)
	}
	r := &Reranker{model: embed.Model{Window: 16}, tokenizer: tokenizer}
	for name, test := range map[string]struct {
		query, passage string
		want           []int64
		begins         int
	}{
		"BothFit":       {"aa", "bb", []int64{1, 3, 3, 2, 4, 4, 2}, 4},
		"EmptyPassage":  {"aa", "", []int64{1, 3, 3, 2, 2}, 4},
		"EmptyQuery":    {"", "bb", []int64{1, 2, 4, 4, 2}, 2},
		"JustFits":      {"aaaa", "bbbbbbbbb", []int64{1, 3, 3, 3, 3, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2}, 6},
		"PassageIsCut":  {"aaaa", "bbbbbbbbba", []int64{1, 3, 3, 3, 3, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2}, 6},
		"QueryIsWhole":  {"aaaaaaaaa", "bbbbbbbbb", []int64{1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 4, 4, 4, 4, 2}, 11},
		"AQuarterStays": {"aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbb", []int64{1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 4, 4, 4, 4, 2}, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.pair(r.head(test.query), test.passage)
			if !slices.Equal(got.ids, test.want) || got.passage != test.begins {
				t.Errorf("got %v, the passage begins at %d", got.ids, got.passage)
			}
		})
	}
}
