package onnx

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// class is what the normaliser does with an ASCII character.
type class uint8

const (
	letter class = iota
	upper
	space
	punctuation
	dropped
)

// normalizer cuts text into BERT's words, in one pass that holds no more than a word: drop control characters, set
// Chinese characters apart, decompose and drop accents, lower-case, split at white space, set punctuation apart. Each
// step looks at one character only, which is why a pass can stop anywhere. (Decomposing a whole text would also sort
// runs of marks; those marks are dropped here anyway.)
type normalizer struct {
	clean, chinese, strip, lower bool
	ascii                        [utf8.RuneSelf]class
}

func newNormalizer(clean, chinese, strip, lower bool) normalizer {
	n := normalizer{clean: clean, chinese: chinese, strip: strip, lower: lower}
	for i := range n.ascii {
		r := rune(i)
		switch {
		case clean && isDropped(r):
			n.ascii[i] = dropped
		case unicode.IsSpace(r):
			n.ascii[i] = space
		case isPunctuation(r):
			n.ascii[i] = punctuation
		case lower && 'A' <= r && r <= 'Z':
			n.ascii[i] = upper
		}
	}
	return n
}

// words calls yield for each word of text until it returns false. A word of more than limit characters comes with fits
// false and without its end. The bytes are valid during the call only.
func (n *normalizer) words(text string, limit int, yield func(word []byte, fits bool) bool) {
	var (
		word       = make([]byte, 0, 128)
		encoded    [utf8.UTFMax]byte
		decomposed [64]byte
		runes      int
		stopped    bool
	)
	flush := func() {
		if runes > 0 && !stopped {
			stopped = !yield(word, runes <= limit)
		}
		word, runes = word[:0], 0
	}
	add := func(r rune) {
		apart := isPunctuation(r)
		if apart {
			flush()
		}
		if runes++; runes <= limit {
			word = utf8.AppendRune(word, r)
		}
		if apart {
			flush()
		}
	}
	for _, r := range text {
		if stopped {
			return
		}
		if r < utf8.RuneSelf {
			switch n.ascii[r] {
			case letter, upper:
				if runes++; runes <= limit {
					if n.ascii[r] == upper {
						r += 'a' - 'A'
					}
					word = append(word, byte(r))
				}
			case space:
				flush()
			case punctuation:
				add(r)
			case dropped:
			}
			continue
		}
		if n.clean && isDropped(r) {
			continue
		}
		if unicode.IsSpace(r) {
			flush()
			continue
		}
		apart := n.chinese && isChinese(r)
		if apart {
			flush()
		}
		if n.strip {
			single := utf8.AppendRune(encoded[:0], r)
			for _, d := range string(norm.NFD.Append(decomposed[:0], single...)) {
				if !unicode.Is(unicode.Mn, d) {
					n.lowered(d, add)
				}
			}
		} else {
			n.lowered(r, add)
		}
		if apart {
			flush()
		}
	}
	flush()
}

// lowered adds r in lower case, as the full mapping of a lone character has it: no rule for a final sigma.
func (n *normalizer) lowered(r rune, add func(rune)) {
	switch {
	case !n.lower:
		add(r)
	case r == 'İ':
		add('i')
		add('\u0307')
	default:
		add(unicode.ToLower(r))
	}
}

// isDropped reports the characters that clean_text removes: control, format, private use, and the replacement character,
// which also stands for bytes that are no UTF-8. (unicode.C would take unassigned ones too.)
func isDropped(r rune) bool {
	if r == '\t' || r == '\n' || r == '\r' {
		return false
	}
	return r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// isPunctuation reports ASCII symbols too: BERT sets them all apart.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.Is(unicode.P, r)
}

// isChinese reports BERT's Chinese blocks. One bound is Hugging Face's (2B920, where Unicode says 2B820).
func isChinese(r rune) bool {
	switch {
	case 0x4E00 <= r && r <= 0x9FFF, 0x3400 <= r && r <= 0x4DBF, 0x20000 <= r && r <= 0x2A6DF,
		0x2A700 <= r && r <= 0x2B73F, 0x2B740 <= r && r <= 0x2B81F, 0x2B920 <= r && r <= 0x2CEAF,
		0xF900 <= r && r <= 0xFAFF, 0x2F800 <= r && r <= 0x2FA1F:
		return true
	}
	return false
}
