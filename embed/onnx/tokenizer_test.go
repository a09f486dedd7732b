package onnx_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kb-search/kb/embed/onnx"
)

// smallTokenizer has a vocabulary that can be read in a test.
func smallTokenizer(t *testing.T, normalizer string) *onnx.Tokenizer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	file := `{
		"truncation": {"max_length": 3}, "padding": {"strategy": {"Fixed": 9}},
		"normalizer": ` + normalizer + `, "pre_tokenizer": {"type": "BertPreTokenizer"},
		"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 10,
			"vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##aff": 4, "##able": 5, "unable": 6, "[": 7, "]": 8, "sep": 9,
				"中": 10, "é": 11, "e": 12, "i": 13, "E": 14, "a": 15, "##a": 16}}}`
	if err := os.WriteFile(path, []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	tokenizer, err := onnx.LoadTokenizer(path)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

func TestEncode(t *testing.T) {
	t.Parallel()
	uncased := smallTokenizer(t, `{"type": "BertNormalizer", "lowercase": true, "strip_accents": null}`)
	cased := smallTokenizer(t, `{"type": "BertNormalizer", "lowercase": false, "strip_accents": null}`)
	accents := smallTokenizer(t, `{"type": "BertNormalizer", "lowercase": true, "strip_accents": false}`)
	chinese := smallTokenizer(t, `{"type": "BertNormalizer", "lowercase": true, "handle_chinese_chars": false}`)
	for name, test := range map[string]struct {
		tokenizer *onnx.Tokenizer
		text      string
		limit     int
		want      []int64
	}{
		"LongestPieceFirst":             {uncased, "unaffable", 0, []int64{1, 3, 4, 5, 2}},
		"WholeWordWins":                 {uncased, "unable", 0, []int64{1, 6, 2}},
		"NoPieceIsUnknownAsAWhole":      {uncased, "unaffx", 0, []int64{1, 0, 2}},
		"FileTruncationAndPaddingRest":  {uncased, "a a a a", 0, []int64{1, 15, 15, 15, 15, 2}},
		"LimitCutsTheEnd":               {uncased, "unaffable", 4, []int64{1, 3, 4, 2}},
		"LimitKeepsSpecialTokens":       {uncased, "unaffable", 1, []int64{1, 2}},
		"EmptyHasSpecialTokensOnly":     {uncased, "", 0, []int64{1, 2}},
		"TenCharactersFit":              {uncased, "aaaaaaaaaa", 0, []int64{1, 15, 16, 16, 16, 16, 16, 16, 16, 16, 16, 2}},
		"ElevenCharactersAreUnknown":    {uncased, "aaaaaaaaaaa", 0, []int64{1, 0, 2}},
		"SpecialTokenInTextIsText":      {uncased, "[SEP]", 0, []int64{1, 7, 9, 8, 2}},
		"ChineseStandsApart":            {uncased, "a中a", 0, []int64{1, 15, 10, 15, 2}},
		"ChineseTogetherWhenOff":        {chinese, "a中a", 0, []int64{1, 0, 2}},
		"NullStripAccentsFollowsLower":  {uncased, "É", 0, []int64{1, 12, 2}},
		"NullStripAccentsFollowsCased":  {cased, "É E", 0, []int64{1, 0, 14, 2}},
		"AccentsKept":                   {accents, "É", 0, []int64{1, 11, 2}},
		"DottedCapitalI":                {uncased, "İ", 0, []int64{1, 13, 2}},
		"DottedCapitalIWithAccentsKept": {accents, "İ", 0, []int64{1, 0, 2}},
		"ControlCharactersJoin":         {uncased, "un\u200dable\x00", 0, []int64{1, 6, 2}},
		"BrokenBytesJoin":               {uncased, "un\xff\xefable", 0, []int64{1, 6, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.tokenizer.Encode(test.text, test.limit); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestLoadTokenizerErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, want string }{
		"NotJSON":      {`x`, "invalid character"},
		"NotWordPiece": {`{"model": {"type": "Unigram"}}`, "KB_EMBEDDER_URL"},
		"NoSpecialTokens": {`{"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
			"model": {"type": "WordPiece", "unk_token": "[UNK]"}}`, "vocabulary has no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "tokenizer.json")
			if err := os.WriteFile(path, []byte(test.file), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := onnx.LoadTokenizer(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
}

// A limit must spare the rest of a huge text, whatever it is made of.
func TestEncodeReadsTheHeadOnly(t *testing.T) {
	t.Parallel()
	tokenizer := realTokenizer(t)
	for name, unit := range map[string]string{"Words": "some words ", "OneLineOfJSON": `{"a":1},`, "Chinese": "知识库"} {
		text := strings.Repeat(unit, 5<<20/len(unit))
		start := time.Now()
		whole := len(tokenizer.Encode(text, 0))
		full := time.Since(start)
		head := full
		for range 5 { // the best of five: other tests share the processor
			start = time.Now()
			if got := len(tokenizer.Encode(text, 256)); got != 256 {
				t.Errorf("%s: %d ids", name, got)
			}
			head = min(head, time.Since(start))
		}
		if head > full/20 {
			t.Errorf("%s: the first 256 ids took %v, all %d took %v", name, head, whole, full)
		}
	}
}

func FuzzTokenizer(f *testing.F) {
	tokenizer := realTokenizer(f)
	for _, c := range parityCases(f) {
		f.Add(c.Text, "more", uint8(len(c.IDs)/2))
	}
	f.Fuzz(func(t *testing.T, first, second string, limit uint8) {
		ids := tokenizer.Encode(first, 0)
		for i, id := range ids {
			special := id == 101 || id == 102
			if id < 0 || id >= 30522 || special != (i == 0 || i == len(ids)-1) {
				t.Fatalf("id %d at %d of %d", id, i, len(ids))
			}
		}
		count := tokenizer.Count(first)
		if count != len(ids)-2 || tokenizer.Blank(first) != (count == 0) {
			t.Errorf("counted %d, encoded %d, blank %v", count, len(ids)-2, tokenizer.Blank(first))
		}
		for _, between := range []string{" ", "\n", "\u3000"} {
			if sum := count + tokenizer.Count(second); tokenizer.Count(first+between+second) != sum {
				t.Errorf("%d tokens apart, %d together", sum, tokenizer.Count(first+between+second))
			}
		}
		cut := tokenizer.Encode(first, int(limit))
		if limit > 0 && len(cut) > max(int(limit), 2) {
			t.Errorf("%d ids for a limit of %d", len(cut), limit)
		}
		if head := cut[:len(cut)-1]; !slices.Equal(head, ids[:len(head)]) || len(cut) < min(len(ids), max(int(limit), 2)) {
			t.Errorf("limit %d gave %v of %v", limit, cut, ids)
		}
	})
}

func BenchmarkTokenizer(b *testing.B) {
	tokenizer := realTokenizer(b)
	var text strings.Builder
	for _, c := range parityCases(b) {
		text.WriteString(c.Text)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		tokenizer.Count(text.String())
	}
}
