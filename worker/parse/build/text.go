package build

import (
	"strings"
	"unicode/utf8"

	"github.com/kb-search/kb/worker/parse"
)

// maxGap is the number of blank cells in a row that are kept to hold the columns in place.
const maxGap = 32

// Clean takes out of text what doesn't belong in it: invalid UTF-8, control characters, byte-order marks, soft hyphens.
// Line ends become \n, and spaces that don't break become spaces.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, unclean) < 0 {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")

	return strings.Map(func(r rune) rune {
		switch {
		case !unclean(r):
			return r
		case r == '\r' || r == '\u2028' || r == '\u2029':
			return '\n'
		case r == '\f' || r == '\v' || r >= 0x1c && r <= 0x1f || r == '\u00a0':
			return ' '
		default:
			return -1
		}
	}, s)
}

func unclean(r rune) bool {
	switch {
	case r < 0x20:
		return r != '\t' && r != '\n'
	case r < 0x7f:
		return false
	case r < 0xa0:
		return r != 0x85
	default:
		return r == '\u00a0' || r == '\u00ad' || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffe' || r == '\uffff'
	}
}

// Line is Clean for what stands on one line: each run of white space becomes a space.
func Line(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// tidy takes blank lines from the start of text and white space from its lines' ends, and leaves at most one blank line
// between lines.
func tidy(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	blank := 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\u0085")
		if line == "" {
			blank++

			continue
		}
		if b.Len() > 0 {
			b.WriteString(strings.Repeat("\n", min(blank, 1)+1))
		}
		blank = 0
		b.WriteString(line)
	}

	return b.String()
}

// shorten cuts s to about limit bytes.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}

	return strings.TrimSpace(s[:limit]) + "…"
}

// trimCells returns cells without the blank ones at the end.
func trimCells(cells []string) []string {
	for len(cells) > 0 && parse.Blank(cells[len(cells)-1]) {
		cells = cells[:len(cells)-1]
	}

	return cells
}

// rowText joins a row's cells, empty when all are blank. A long run of blank cells is shortened.
func rowText(cells []string) string {
	cells = trimCells(cells)
	if len(cells) == 0 {
		return ""
	}
	var b strings.Builder
	gap := 0
	for i, cell := range cells {
		text := ""
		if cell != "" {
			text = Line(cell)
		}
		if gap++; text != "" {
			gap = 0
		}
		if gap > maxGap {
			continue
		}
		if i > 0 {
			b.WriteString(cellSeparator)
		}
		b.WriteString(text)
	}

	return b.String()
}
