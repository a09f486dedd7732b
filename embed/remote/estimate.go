package remote

import (
	"unicode"
	"unicode/utf8"
)

// kinds of characters that a token can have several of, and the others.
const (
	single = iota
	lower
	upper
)

// longWord is the length past which a word is more likely a key or a digest, of which tokens hold fewer letters.
const longWord = 20

// estimate says how many tokens a text has at most, for any usual tokenizer: the server has it, not kb. It is meant to be too
// high, by a third to a half for prose: three small ASCII letters are a token, two capitals, any other character is one or
// more. It is additive over pieces of a text cut where unicode.IsSpace says so, and 0 for a text without a character that
// can be seen.
func estimate(text string) int {
	total := 0
	scan(text, func(_, tokens int, seen bool) bool {
		if seen {
			total += tokens
		}
		return true
	})
	return total
}

// cut returns the beginning of text that has at most limit tokens by the estimate.
func cut(text string, limit int) string {
	total, end := 0, len(text)
	scan(text, func(at, tokens int, _ bool) bool {
		if total += tokens; total > limit {
			end = at
			return false
		}
		return true
	})
	return text[:end]
}

// scan calls yield with the place of each character that begins a token and with the tokens that it begins, until yield
// returns false. seen is false in words of control and format characters alone, which some models take for nothing.
func scan(text string, yield func(at, tokens int, seen bool) bool) {
	var (
		kind, run int
		inWord    int // characters of the word so far
		seen      bool
	)
	for at, r := range text {
		if unicode.IsSpace(r) {
			inWord, kind = 0, single
			continue
		}
		begins := inWord == 0
		if begins {
			seen = wordIsSeen(text[at:])
		}
		inWord++
		letters := 3
		if inWord > longWord {
			letters = 2
		}
		tokens := 0
		switch before := kind; {
		case 'a' <= r && r <= 'z':
			kind = lower
			if before == single || before == upper && run > 1 {
				run = 0
			}
			if run%letters == 0 {
				tokens = 1
			}
			run++
		case 'A' <= r && r <= 'Z':
			kind = upper
			if before != upper {
				run = 0
			}
			if run%2 == 0 {
				tokens = 1
			}
			run++
		default:
			kind, run = single, 0
			tokens = cost(r)
			if begins && !unicode.IsDigit(r) {
				tokens++ // the mark of a word's beginning
			}
		}
		if tokens > 0 && !yield(at, tokens, seen) {
			return
		}
	}
}

// wordIsSeen reports whether the word that text begins with has more than control and format characters.
func wordIsSeen(text string) bool {
	for _, r := range text {
		if unicode.IsSpace(r) {
			return false
		}
		if r != utf8.RuneError && !unicode.In(r, unicode.Cc, unicode.Cf) {
			return true
		}
	}
	return false
}

// cost is the tokens of a character that is no ASCII letter. Rare ones are taken apart into their bytes.
func cost(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return 1
	case r < 0x10000 && unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Han, unicode.Hiragana, unicode.Katakana,
		unicode.Arabic, unicode.Hebrew, unicode.Thai, unicode.Devanagari):
		return 1
	case r < 0x10000:
		return 2
	default:
		return utf8.RuneLen(r)
	}
}
