package parse

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SignatureOLE is what the containers of old office documents begin with, and of encrypted new ones.
const SignatureOLE = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// signatures are the first bytes of common files that are not text, and what to call them.
var signatures = []struct{ prefix, name string }{
	{"%PDF-", "a PDF document"},
	{"PK\x03\x04", "a ZIP archive or an office document"},
	{"PK\x05\x06", "an empty ZIP archive"},
	{"\x89PNG\r\n", "a PNG image"},
	{"\xff\xd8\xff", "a JPEG image"},
	{"GIF87a", "a GIF image"},
	{"GIF89a", "a GIF image"},
	{"\x1f\x8b", "gzip-compressed data"},
	{"BZh91AY&SY", "bzip2-compressed data"},
	{"\xfd7zXZ\x00", "xz-compressed data"},
	{"\x28\xb5\x2f\xfd", "zstd-compressed data"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"Rar!\x1a\x07", "a RAR archive"},
	{"\x7fELF", "a program"},
	{"\xca\xfe\xba\xbe", "a program"},
	{"\xcf\xfa\xed\xfe", "a program"},
	{"\x00asm", "a program"},
	{"MZ\x90\x00", "a program"},
	{SignatureOLE, "an old office document"},
	{"SQLite format 3\x00", "a database"},
	{"OggS\x00", "an audio or video file"},
	{"ID3\x03", "an audio file"},
	{"ID3\x04", "an audio file"},
}

// binaryKind names what data is when its first bytes give it away, else it is empty.
func binaryKind(data []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.prefix)) {
			return s.name
		}
	}

	return ""
}

// clean takes out what doesn't belong in text and returns how many control characters that were, as a measure of
// whether it was text at all. Terminal colours are not counted.
func clean(s string) (string, int) {
	first := strings.IndexFunc(s, unclean)
	if first < 0 {
		return s, 0
	}

	controls := 0
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:first])
	for i := first; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case !unclean(r):
			b.WriteString(s[i : i+size])
		case r == '\r':
			if i+1 == len(s) || s[i+1] != '\n' {
				b.WriteByte('\n')
			}
		case r == '\f' || r == '\v' || r >= 0x1c && r <= 0x1f:
			b.WriteByte(' ') // Form feeds and separators stand between words.
		case r == 0x1b:
			if n := colour(s[i:]); n > 0 {
				size = n
			} else {
				controls++
			}
		case r != '\ufeff':
			controls++
		}
		i += size
	}

	return b.String(), controls
}

// unclean reports whether r can't stay in text as it is: controls (but tab and line feed) and byte-order marks.
func unclean(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\t' && r != '\n'
	case r < 0xa0:
		return r >= 0x7f && r != 0x85
	default:
		return r == '\ufeff'
	}
}

// colour returns the length of the terminal control sequence (ESC [ parameters letter) that s begins with, or 0.
func colour(s string) int {
	if len(s) < 3 || s[1] != '[' {
		return 0
	}
	for i := 2; i < min(len(s), 32); i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return 0
		}
	}

	return 0
}

// Blank reports whether s holds nothing that a reader would see: it is empty, or only white space, control and format
// characters (zero-width space, direction marks) and fillers.
func Blank(s string) bool {
	for _, r := range s {
		if !invisible(r) {
			return false
		}
	}

	return true
}

func invisible(r rune) bool {
	if r < 0x7f {
		return r <= ' '
	}
	switch r {
	case 0x034f, 0x115f, 0x1160, 0x2800, 0x3164, 0xffa0: // Joiner, Hangul fillers, blank Braille cell.
		return true
	}

	return unicode.IsSpace(r) || unicode.Is(unicode.C, r) || unicode.Is(unicode.Variation_Selector, r)
}
