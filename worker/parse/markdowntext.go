package parse

import (
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxColumns and maxMarkers limit how deep lists and quotes nest; see flatten.
	maxColumns = 64
	maxMarkers = 32
	// maxHeading is the length from which a heading is text rather than a name.
	maxHeading = 300
	// maxTicks is the longest run of backticks that counts as the start of code within a line.
	maxTicks = 8
)

// flatten returns a copy of source, equal in length and lines, in which no line has more than maxColumns of indentation
// or maxMarkers list and quote marks: what is beyond is overwritten by letters. goldmark's time grows with the product
// of depth and length, so thousands of nested lists would keep it busy for hours; only the outermost matters here.
func flatten(source string) []byte {
	flat := []byte(source)
	for at := 0; at < len(flat); {
		end := lineEnd(source, at)
		markers := 0
		for i := at; i < end; i++ {
			c := flat[i]
			mark := c == '>' || strings.IndexByte("-*+.)", c) >= 0 && i+1 < len(flat) && strings.IndexByte(" \t\n", flat[i+1]) >= 0
			if mark {
				markers++
			}
			if !mark && c != ' ' && c != '\t' && (c < '0' || c > '9') {
				break
			}
			if i-at >= maxColumns && (c == ' ' || c == '\t') || markers > maxMarkers && mark {
				flat[i] = 'x'
			}
		}
		at = end
	}

	return flat
}

var (
	inlineMarkdown   = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	headingAttribute = regexp.MustCompile(`\s*\{[#.:][^{}]*\}\s*$`)
)

// headingText returns a heading as its reader sees it, on one line. It reports true for one that was too long for a
// heading and had to be cut.
func headingText(raw string) (string, bool) {
	raw = headingAttribute.ReplaceAllString(raw, "")
	raw = oneLine(withoutComments(raw))
	if len(raw) > maxHeading {
		return strings.TrimSpace(strings.ToValidUTF8(raw[:maxHeading], "")) + "…", true
	}
	if !strings.ContainsAny(raw, "*_`[]<>\\&!~") {
		return raw, false
	}

	var b strings.Builder
	source := []byte("# " + raw)
	_ = ast.Walk(inlineMarkdown.Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Text:
			value := n.Value(source)
			if node.Parent().Kind() != ast.KindCodeSpan {
				value = []byte(html.UnescapeString(string(util.UnescapePunctuations(value))))
			}
			b.Write(value)
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(source))
		}

		return ast.WalkContinue, nil
	})
	if plain, _ := clean(oneLine(b.String())); !Blank(plain) {
		return plain, false
	}

	return raw, false
}

// oneLine makes each run of white space a single space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// withoutComments takes HTML comments out of Markdown, except those in code. A comment that is never closed stays.
func withoutComments(s string) string {
	if !strings.Contains(s, "<!--") {
		return s
	}

	var b strings.Builder
	var unclosed [maxTicks + 1]bool // The lengths of backtick runs that are known to have no partner.
	closed := true
	from := 0
	for i := 0; i < len(s); {
		switch {
		case s[i] == '\\':
			i += 2
		case s[i] == '`':
			n := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
			i += n
			if n > maxTicks || unclosed[n] {
				continue
			}
			if end := ticks(s[i:], n); end >= 0 {
				i += end + n
			} else {
				unclosed[n] = true
			}
		case closed && strings.HasPrefix(s[i:], "<!--"):
			end := strings.Index(s[i+2:], "-->") // <!--> is a comment too.
			if closed = end >= 0; !closed {
				i++

				continue
			}
			b.WriteString(s[from:i])
			i += 2 + end + len("-->")
			from = i
		default:
			i++
		}
	}
	b.WriteString(s[min(from, len(s)):])

	return b.String()
}

// ticks returns the offset of the first run of exactly n backticks, or -1.
func ticks(s string, n int) int {
	for i := 0; i < len(s); {
		next := strings.IndexByte(s[i:], '`')
		if next < 0 {
			return -1
		}
		i += next
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if run == n {
			return i
		}
		i += run
	}

	return -1
}

// part is a stretch of a paragraph's source.
type part struct {
	start, end int
	kind       Kind
}

var delimiterRow = regexp.MustCompile(`^ {0,3}(\|[ \t]*)?:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)

// splitTables splits a paragraph at its GFM table, if it has one: a header row, a delimiter row with as many cells,
// and the rest of the paragraph as rows.
func splitTables(s string) []part {
	header, at := -1, 0
	for at < len(s) {
		end := lineEnd(s, at)
		line := strings.TrimRight(s[at:end], " \t\n")
		if header >= 0 && strings.Contains(line, "-") && delimiterRow.MatchString(line) {
			head := strings.TrimSpace(s[header:at])
			if strings.Contains(head, "|") && cells(head) == cells(strings.TrimSpace(line)) {
				return []part{{0, header, Paragraph}, {header, len(s), Table}}
			}
		}
		header, at = at, end
	}

	return []part{{0, len(s), Paragraph}}
}

// cells counts the cells of a table row.
func cells(row string) int {
	row = strings.TrimPrefix(row, "|")
	if strings.HasSuffix(row, "|") && !strings.HasSuffix(row, `\|`) {
		row = row[:len(row)-1]
	}

	return strings.Count(row, "|") - strings.Count(row, `\|`) + 1
}
