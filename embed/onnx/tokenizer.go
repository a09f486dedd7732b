package onnx

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// Tokenizer is BERT's WordPiece over the vocabulary of a tokenizer.json. It gives the token ids of Hugging Face's
// tokenizers for the same file, with two deliberate differences: the file's truncation and padding are ignored (the
// caller's limit rules), and a special token written in the text, such as "[SEP]", is ordinary text, so that no
// document can inject one. It is safe for concurrent use.
type Tokenizer struct {
	normalizer

	// initial has the tokens that start a word, continuing those that go on with one, without their "##".
	initial, continuing map[string]int64
	// longest is the length of the longest token in bytes.
	longest int
	// maxWord is the number of characters past which a word is one unknown token.
	maxWord       int
	cls, sep, unk int64
}

// tokenizerFile is the part of a tokenizer.json that WordPiece needs.
type tokenizerFile struct {
	Normalizer struct {
		Type               string `json:"type"`
		CleanText          *bool  `json:"clean_text"`
		HandleChineseChars *bool  `json:"handle_chinese_chars"`
		StripAccents       *bool  `json:"strip_accents"`
		Lowercase          *bool  `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	Model struct {
		Type                    string           `json:"type"`
		UnkToken                string           `json:"unk_token"`
		ContinuingSubwordPrefix string           `json:"continuing_subword_prefix"`
		MaxInputCharsPerWord    int              `json:"max_input_chars_per_word"`
		Vocab                   map[string]int64 `json:"vocab"`
	} `json:"model"`
}

// LoadTokenizer reads a tokenizer.json. It fails for any kind of tokenizer but BERT's WordPiece.
func LoadTokenizer(path string) (*Tokenizer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer: %w", err)
	}
	t, err := newTokenizer(data)
	if err != nil {
		return nil, fmt.Errorf("load tokenizer %s: %w", path, err)
	}
	return t, nil
}

func newTokenizer(data []byte) (*Tokenizer, error) {
	var file tokenizerFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	kind := file.Normalizer.Type + ", " + file.PreTokenizer.Type + ", " + file.Model.Type
	if kind != "BertNormalizer, BertPreTokenizer, WordPiece" {
		return nil, fmt.Errorf("its parts are %q, only BERT's WordPiece can be read: have a server run this model and set "+
			"KB_EMBEDDER_URL, or KB_RERANKER_URL for a reranker", kind)
	}
	orTrue := func(b *bool) bool { return b == nil || *b }
	lower := orTrue(file.Normalizer.Lowercase)
	strip := lower // what the format says for null
	if file.Normalizer.StripAccents != nil {
		strip = *file.Normalizer.StripAccents
	}
	t := &Tokenizer{
		normalizer: newNormalizer(orTrue(file.Normalizer.CleanText), orTrue(file.Normalizer.HandleChineseChars), strip, lower),
		initial:    make(map[string]int64, len(file.Model.Vocab)),
		continuing: make(map[string]int64, len(file.Model.Vocab)/4),
		maxWord:    file.Model.MaxInputCharsPerWord,
	}
	if t.maxWord <= 0 {
		t.maxWord = 100
	}
	prefix := file.Model.ContinuingSubwordPrefix
	for token, id := range file.Model.Vocab {
		if rest, ok := strings.CutPrefix(token, prefix); ok && rest != "" {
			t.continuing[rest] = id
		}
		t.initial[token] = id
		t.longest = max(t.longest, len(token))
	}
	for name, id := range map[string]*int64{"[CLS]": &t.cls, "[SEP]": &t.sep, file.Model.UnkToken: &t.unk} {
		var ok bool
		if *id, ok = file.Model.Vocab[name]; !ok {
			return nil, fmt.Errorf("its vocabulary has no %q", name)
		}
	}
	return t, nil
}

// Encode returns the ids of text between [CLS] and [SEP], at most limit of them in all: the end of a longer text is cut,
// and what lies behind the cut is not read. A limit of 0 or less is none; one below 2 still leaves the two special
// tokens.
func (t *Tokenizer) Encode(text string, limit int) []int64 {
	return t.encode(limit, text)
}

// encode reads several pieces of text one after the other; each begins a new word.
func (t *Tokenizer) encode(limit int, pieces ...string) []int64 {
	ids := make([]int64, 1, 64)
	ids[0] = t.cls
	for _, piece := range pieces {
		t.words(piece, t.maxWord, func(word []byte, fits bool) bool {
			ids = t.appendPieces(ids, word, fits)
			return limit <= 0 || len(ids) < limit-1
		})
	}
	if limit > 0 && len(ids) > max(limit-1, 1) {
		ids = ids[:max(limit-1, 1)]
	}
	return append(ids, t.sep)
}

// Count returns the number of tokens that text takes without [CLS] and [SEP], however long it is. It is additive over
// pieces of a text cut at white space, that is where unicode.IsSpace says so but for \v, \f and U+0085: BERT's tokenizer
// drops those three.
func (t *Tokenizer) Count(text string) int {
	n := 0
	var ids []int64
	t.words(text, t.maxWord, func(word []byte, fits bool) bool {
		ids = t.appendPieces(ids[:0], word, fits)
		n += len(ids)
		return true
	})
	return n
}

// Blank reports whether text takes no token.
func (t *Tokenizer) Blank(text string) bool {
	blank := true
	t.words(text, t.maxWord, func([]byte, bool) bool {
		blank = false
		return false
	})
	return blank
}

// appendPieces appends the ids of one word: the longest token that starts it, then the longest that goes on, and so on;
// one unknown token when that leads nowhere.
func (t *Tokenizer) appendPieces(ids []int64, word []byte, fits bool) []int64 {
	if !fits {
		return append(ids, t.unk)
	}
	start := len(ids)
	vocab := t.initial
	for len(word) > 0 {
		end := min(len(word), t.longest)
		for end > 0 {
			if end == len(word) || utf8.RuneStart(word[end]) {
				if id, ok := vocab[string(word[:end])]; ok {
					ids = append(ids, id)
					break
				}
			}
			end--
		}
		if end == 0 {
			return append(ids[:start], t.unk)
		}
		word, vocab = word[end:], t.continuing
	}
	return ids
}
