package parse

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// decode turns a file's bytes into clean text: valid UTF-8, \n as the only line end, no byte-order mark, no control
// characters but tab and line end, no terminal colours. It refuses what is not text and what holds nothing visible.
func decode(data []byte) (string, error) {
	text, marked := decodeMarked(data)
	if !marked {
		if what := binaryKind(data); what != "" {
			return "", &Error{Code: "binary", Message: "the file is not text but " + what}
		}
		text = decodeUnmarked(data)
	}

	text, controls := clean(text)
	if total := len(text) + controls; controls >= 8 && controls > total/20 {
		return "", &Error{Code: "binary", Message: fmt.Sprintf("the file is not text: %d of about %d characters are control characters",
			controls, total)}
	}
	if Blank(text) {
		return "", errEmpty()
	}

	return text, nil
}

func errEmpty() *Error {
	return &Error{Code: "empty", Message: "the file holds no text, only white space or nothing at all"}
}

// decodeMarked decodes what begins with a byte-order mark.
func decodeMarked(data []byte) (string, bool) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return decodeUTF8(data[3:]), true
	case bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")) && len(data)%4 == 0:
		return decodeUTF32(data[4:], binary.LittleEndian), true
	case bytes.HasPrefix(data, []byte("\x00\x00\xfe\xff")):
		return decodeUTF32(data[4:], binary.BigEndian), true
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return decodeUTF16(data[2:], binary.LittleEndian), true
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return decodeUTF16(data[2:], binary.BigEndian), true
	default:
		return "", false
	}
}

// decodeUnmarked decodes what has no byte-order mark: UTF-16 is known by its pattern of NUL bytes.
func decodeUnmarked(data []byte) string {
	sample := data[:min(len(data), 8<<10)&^1]
	var zeros [2]int
	for i, b := range sample {
		if b == 0 {
			zeros[i&1]++
		}
	}
	// In Western text nearly every second byte is 0 in UTF-16; a few per cent on the other side are chance.
	half := len(sample) / 2
	switch {
	case half >= 2 && zeros[1] > half*2/5 && zeros[0] <= half/20:
		return decodeUTF16(data, binary.LittleEndian)
	case half >= 2 && zeros[0] > half*2/5 && zeros[1] <= half/20:
		return decodeUTF16(data, binary.BigEndian)
	default:
		return decodeUTF8(data)
	}
}

// decodeUTF8 decodes UTF-8 with errors: when errors outnumber the characters that only UTF-8 can spell, the text is
// taken for Windows-1252, else each bad byte becomes U+FFFD.
func decodeUTF8(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}

	var good, bad int
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			good++
		}
		i += size
	}
	if bad > good {
		if text, err := charmap.Windows1252.NewDecoder().Bytes(data); err == nil {
			return string(text)
		}
	}

	return strings.ToValidUTF8(string(data), "\uFFFD")
}

func decodeUTF16(data []byte, order binary.ByteOrder) string {
	var b strings.Builder
	b.Grow(len(data))
	for i := 0; i+1 < len(data); i += 2 {
		r := rune(order.Uint16(data[i:]))
		if utf16.IsSurrogate(r) && i+3 < len(data) {
			if pair := utf16.DecodeRune(r, rune(order.Uint16(data[i+2:]))); pair != unicode.ReplacementChar {
				r = pair
				i += 2
			}
		}
		b.WriteRune(r) // A lone surrogate becomes U+FFFD.
	}

	return b.String()
}

func decodeUTF32(data []byte, order binary.ByteOrder) string {
	var b strings.Builder
	b.Grow(len(data) / 2)
	for i := 0; i+3 < len(data); i += 4 {
		r := order.Uint32(data[i:])
		if r > unicode.MaxRune {
			r = unicode.ReplacementChar
		}
		b.WriteRune(rune(r))
	}

	return b.String()
}
