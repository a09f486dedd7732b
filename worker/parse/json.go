package parse

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// minifiedLine is the average line length from which JSON counts as minified.
	minifiedLine = 200
	// maxIndent is the depth from which lines are indented no further, so that output grows with input only.
	maxIndent = 16
)

// parseJSON indents minified JSON, so that it can be split at line ends. What is not valid JSON is left as it is.
func parseJSON(doc *Document) {
	if minified(doc.Text) {
		if indented, ok := indentJSON(doc.Text); ok {
			doc.Text = indented
		}
	}
	doc.Text = unescapeJSON(doc.Text)
	doc.Blocks = lines(nil, doc.Text, 0, Record)
}

func minified(s string) bool {
	breaks := strings.Count(strings.TrimSpace(s), "\n")

	return breaks == 0 || len(s)/breaks > minifiedLine
}

// indentJSON lays out one or more JSON values as json.Indent does with two spaces, except that depth stops counting at
// maxIndent, and that nothing is indented when that would make more than three times the input. It reports false when s
// is not valid JSON. Unlike encoding/json it has no depth limit: it keeps one byte a level.
func indentJSON(s string) (string, bool) {
	size := measure{}
	if !layoutJSON(s, &size, "  ") {
		return "", false
	}
	indent := "  "
	if size.n > 3*len(s)+1<<10 {
		indent, size.n = "", 0
		layoutJSON(s, &size, indent)
	}
	var b strings.Builder
	b.Grow(size.n)
	layoutJSON(s, &b, indent)

	return b.String(), true
}

// sink is what layoutJSON needs of a strings.Builder.
type sink interface {
	WriteString(s string) (int, error)
}

// measure counts what is written to it.
type measure struct{ n int }

func (m *measure) WriteString(s string) (int, error) {
	m.n += len(s)

	return len(s), nil
}

// layoutJSON writes s, one value or member a line, and reports whether it is valid.
func layoutJSON(s string, out sink, indent string) bool {
	var open []byte // The brackets that are open.
	indents := "\n" + strings.Repeat(indent, maxIndent)
	newline := func() {
		_, _ = out.WriteString(indents[:1+len(indent)*min(len(open), maxIndent)])
	}
	const (
		wantValue = iota
		wantFirst // A value or the end of the array that was just opened.
		wantKey
		wantFirstKey
		wantColon
		wantNext // A comma or a closing bracket; between top-level values nothing at all.
	)
	want := wantValue

	for i := 0; i < len(s); {
		c := s[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			i++

			continue
		}
		if want == wantNext && len(open) == 0 {
			newline()
			want = wantValue
		}
		size := 1
		switch {
		case c == '}' || c == ']':
			if len(open) == 0 || open[len(open)-1] != c-2 || want == wantValue || want == wantKey || want == wantColon {
				return false
			}
			open = open[:len(open)-1]
			if want == wantNext {
				newline()
			}
			want = wantNext
		case c == ',' && want == wantNext:
			want = wantValue
			if open[len(open)-1] == '{' {
				want = wantKey
			}
			_, _ = out.WriteString(",")
			newline()
			i++

			continue
		case c == ':' && want == wantColon:
			want = wantValue
			_, _ = out.WriteString(": ")
			i++

			continue
		case want == wantColon || want == wantNext:
			return false
		default:
			if want == wantFirst || want == wantFirstKey {
				newline()
			}
			key := want == wantKey || want == wantFirstKey
			want = wantNext
			switch {
			case c == '"':
				if size = stringLen(s[i:]); size == 0 {
					return false
				}
				if key {
					want = wantColon
				}
			case key:
				return false
			case c == '{' || c == '[':
				open = append(open, c)
				want = wantFirst
				if c == '{' {
					want = wantFirstKey
				}
			default:
				if size = scalarLen(s[i:]); size == 0 {
					return false
				}
			}
		}
		_, _ = out.WriteString(s[i : i+size])
		i += size
	}

	return len(open) == 0 && want == wantNext
}

// stringLen returns the length of the JSON string that s begins with, or 0 when it isn't one.
func stringLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return 0
		case c == '\\':
			i++
			if i == len(s) || !strings.ContainsRune(`"\/bfnrtu`, rune(s[i])) {
				return 0
			}
			if s[i] == 'u' {
				if _, ok := hex4(s[i+1:]); !ok {
					return 0
				}
			}
		}
	}

	return 0
}

// scalarLen returns the length of the JSON number, true, false or null that s begins with, or 0 when it isn't one.
func scalarLen(s string) int {
	end := 0
	for end < len(s) && !strings.ContainsRune(" \t\r\n,:[]{}\"", rune(s[end])) {
		end++
	}
	word := s[:end]
	if word == "true" || word == "false" || word == "null" || number(word) {
		return end
	}

	return 0
}

// number reports whether s is a number by JSON's grammar.
func number(s string) bool {
	digits := func() bool {
		rest := strings.TrimLeft(s, "0123456789")
		found := len(rest) < len(s)
		s = rest

		return found
	}
	s = strings.TrimPrefix(s, "-")
	if strings.HasPrefix(s, "0") {
		s = s[1:]
	} else if !digits() {
		return false
	}
	if rest, found := strings.CutPrefix(s, "."); found {
		if s = rest; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}

	return s == ""
}

// unescapeJSON spells characters that JSON wrote as \u00fc, so that words can be found. Controls, quotes and
// backslashes stay escaped, so valid JSON stays valid and means the same.
func unescapeJSON(s string) string {
	next := strings.Index(s, `\u`)
	if next < 0 {
		return s
	}

	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		next = strings.IndexByte(s[i:], '\\')
		if next < 0 || i+next+1 >= len(s) {
			b.WriteString(s[i:])

			break
		}
		b.WriteString(s[i : i+next])
		i += next
		r, size := escaped(s[i:])
		if r >= 0 {
			b.WriteRune(r)
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}

	return b.String()
}

// escaped reads the escape that s begins with. It returns -1 for one that should stay, and its length.
func escaped(s string) (rune, int) {
	if s[1] != 'u' {
		_, size := utf8.DecodeRuneInString(s[1:])

		return -1, 1 + size
	}
	r, ok := hex4(s[2:])
	if !ok {
		return -1, 2
	}
	if utf16.IsSurrogate(r) {
		if len(s) >= 12 && s[6:8] == `\u` {
			if low, ok := hex4(s[8:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
		}

		return -1, 6
	}
	if r == '"' || r == '\\' || unclean(r) || r == '\t' || r == '\n' {
		return -1, 6
	}

	return r, 6
}

// hex4 reads four hexadecimal digits.
func hex4(s string) (rune, bool) {
	if len(s) < 4 || strings.ContainsAny(s[:4], "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:4], 16, 16)

	return rune(n), err == nil
}
