package pdf

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kb-search/kb/worker/parse"
)

const (
	headingRatio    = 1.15 // How much larger than the body's letters a heading's are.
	maxHeading      = 200  // Characters in a heading.
	maxBoldHeading  = 120
	maxHeadingLines = 3
	maxLevel        = 6
	minTableRows    = 3
	cellSeparator   = " | "
)

// paragraph is lines that belong together.
type paragraph struct {
	text  string
	kind  parse.Kind
	page  int
	lines int
	size  float64
	bold  bool
}

// assemble makes a document of pages.
func assemble(pages []page, about info) (parse.Document, error) {
	body, bodyBold := bodyStyle(pages)
	dropFurniture(pages, body)

	var paragraphs []paragraph
	for _, p := range pages {
		paragraphs = append(paragraphs, paragraphsOf(lines(p.segments), p.number)...)
	}
	switch {
	case len(paragraphs) == 0 && len(about.failed) > 0:
		return parse.Document{}, errCorrupt("The PDF is damaged: its pages can't be read.")
	case len(paragraphs) == 0:
		return parse.Document{}, errNoText()
	}

	doc := parse.Document{Type: Type, Title: about.title, Metadata: map[string]any{"pages": about.pages}}
	if len(about.failed) > 0 {
		doc.Metadata["pages_failed"] = about.failed
	}
	w := writer{doc: &doc}
	levels := levels(paragraphs, body, bodyBold)
	for i, p := range paragraphs {
		if levels[i] > 0 {
			w.heading(p, levels[i])
		} else {
			w.block(p)
		}
	}
	w.leave(0)
	doc.Text = w.text.String()

	return doc, nil
}

// bodyStyle returns the size that most letters have, and whether most of those are bold.
func bodyStyle(pages []page) (size float64, bold bool) {
	chars, boldChars := map[float64]int{}, map[float64]int{}
	for _, p := range pages {
		for _, s := range p.segments {
			chars[rounded(s.size)] += len(s.text)
			if s.bold {
				boldChars[rounded(s.size)] += len(s.text)
			}
		}
	}
	for s, n := range chars {
		if n > chars[size] || n == chars[size] && s < size {
			size = s
		}
	}

	return size, boldChars[size]*2 > chars[size]
}

func rounded(size float64) float64 { return math.Round(size*2) / 2 }

// levels returns for each paragraph the level of heading that it is, from 1, or 0: first by size, bold text of the
// body's size last.
func levels(paragraphs []paragraph, body float64, bodyBold bool) []int {
	levels := make([]int, len(paragraphs))
	sizes := map[float64]bool{}
	for i, p := range paragraphs {
		chars := utf8.RuneCountInString(p.text)
		if p.kind != parse.Paragraph || p.lines > maxHeadingLines || chars > maxHeading || !strings.ContainsFunc(p.text, unicode.IsLetter) ||
			strings.Contains(p.text, ellipsis) {
			continue
		}
		large := p.size >= headingRatio*body
		bold := p.bold && !bodyBold && chars <= maxBoldHeading && p.size >= 0.95*body &&
			!strings.ContainsAny(p.text[len(p.text)-1:], ".,;:") && !item.MatchString(p.text)
		switch {
		case large:
			sizes[rounded(p.size)] = true
			levels[i] = 1
		case bold:
			sizes[0] = true
			levels[i] = 1
		}
	}

	var ranks []float64
	for size := range sizes {
		ranks = append(ranks, size)
	}
	slices.SortFunc(ranks, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, p := range paragraphs {
		if levels[i] == 0 {
			continue
		}
		size := 0.0
		if p.size >= headingRatio*body {
			size = rounded(p.size)
		}
		levels[i] = min(maxLevel, slices.Index(ranks, size)+1)
	}

	return levels
}

// writer appends blocks to a document.
type writer struct {
	doc  *parse.Document
	text strings.Builder

	path   []string
	open   []paragraph // The headings of path.
	levels []int
	used   []bool // Whether a block stands under the heading.
}

// heading begins a section.
func (w *writer) heading(p paragraph, level int) {
	depth := len(w.levels)
	for depth > 0 && w.levels[depth-1] >= level {
		depth--
	}
	w.leave(depth)
	w.path = append(slices.Clone(w.path), p.text) // A new array: blocks keep the old one.
	w.open = append(w.open, p)
	w.levels = append(w.levels, level)
	w.used = append(w.used, false)
}

// leave ends all sections but the outer ones. A heading with nothing under it becomes text, lest it be lost.
func (w *writer) leave(depth int) {
	for n := len(w.open); n > depth; n-- {
		p, used := w.open[n-1], w.used[n-1]
		w.path, w.open, w.levels, w.used = w.path[:n-1:n-1], w.open[:n-1], w.levels[:n-1], w.used[:n-1]
		if !used {
			w.block(p)
		}
	}
}

func (w *writer) block(p paragraph) {
	for i := range w.used {
		w.used[i] = true
	}
	if w.text.Len() > 0 {
		w.text.WriteString("\n\n")
	}
	start := w.text.Len()
	w.text.WriteString(p.text)
	block := parse.Block{Kind: p.kind, Text: p.text, Path: w.path, Page: p.page, Start: start, End: w.text.Len()}
	if len(block.Path) == 0 {
		block.Path = nil
	}
	if p.kind == parse.Table {
		block.Header, _, _ = strings.Cut(p.text, "\n")
	}
	w.doc.Blocks = append(w.doc.Blocks, block)
}

// paragraphsOf joins a page's lines.
func paragraphsOf(lines []line, number int) []paragraph {
	leading := leading(lines)
	var paragraphs []paragraph
	for start := 0; start < len(lines); {
		if n := tableRows(lines[start:]); n >= minTableRows {
			paragraphs = append(paragraphs, table(lines[start:start+n], number))
			start += n

			continue
		}
		end := start + 1
		for end < len(lines) && continues(lines[start], lines[end-1], lines[end], leading) && tableRows(lines[end:]) < minTableRows {
			end++
		}
		p := paragraph{kind: parse.Paragraph, page: number, lines: end - start, size: lines[start].size, bold: lines[start].bold}
		p.text = join(lines[start:end])
		if !parse.Blank(p.text) {
			paragraphs = append(paragraphs, p)
		}
		start = end
	}

	return paragraphs
}

// leading returns the usual distance from line to line, in sizes of the letters.
func leading(lines []line) float64 {
	var gaps []float64
	for i := 1; i < len(lines); i++ {
		gap := (lines[i-1].y0 - lines[i].y0) / max(lines[i].size, 1)
		if gap > 0.5 && gap < 3 && sameSize(lines[i-1].size, lines[i].size) {
			gaps = append(gaps, gap)
		}
	}
	if len(gaps) == 0 {
		return 1.3
	}
	slices.Sort(gaps)

	// Where half of the lines are paragraphs of their own, the lower third still are lines within one.
	return gaps[len(gaps)/3]
}

func sameSize(a, b float64) bool { return math.Abs(a-b) <= 0.05*max(a, b) }

var (
	item        = regexp.MustCompile(`^([•◦▪‣·–*-]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])\s`)
	sentenceEnd = regexp.MustCompile(`[.!?:。！？：]["'”’)\]]*$`)
)

// continues reports whether next belongs to the paragraph that begins with first and so far ends with last.
func continues(first, last, next line, leading float64) bool {
	indent := 0.9 * next.size
	begins, _ := utf8.DecodeRuneInString(next.text)
	switch {
	case last.vertical != next.vertical:
		return false
	case last.vertical:
		return true
	case !sameSize(last.size, next.size) || last.bold != next.bold:
		return false
	case last.hyphen:
		return true
	case next.y0 >= last.y0: // In the next column.
		return !sentenceEnd.MatchString(last.text) && unicode.IsLower(begins)
	case last.y0-next.y0 > max(1.25*leading, leading+0.2)*next.size:
		return false
	case item.MatchString(next.text) || strings.Contains(last.text, ellipsis):
		return false
	case next.x0 > last.x0+indent && math.Abs(next.x0+next.x1-last.x0-last.x1) > next.size && !(first.y0 == last.y0 && item.MatchString(first.text)):
		return false // The first line of a paragraph is indented; so are the second of a list item and centred ones.
	case sentenceEnd.MatchString(last.text) && last.right-last.x1 > 0.25*(last.right-last.x0):
		return false
	}

	return true
}

// join makes one line of many.
func join(lines []line) string {
	var b strings.Builder
	for i, l := range lines {
		text := l.text
		if i+1 < len(lines) {
			after, _ := utf8.DecodeRuneInString(lines[i+1].text)
			switch {
			case l.hyphen:
			case brokenWord(text) && unicode.IsLower(after):
				text = text[:len(text)-1]
			case !wordless(text, after):
				text += " "
			}
		}
		b.WriteString(text)
	}

	return b.String()
}

// brokenWord reports whether text ends in a letter and a hyphen.
func brokenWord(text string) bool {
	before, found := strings.CutSuffix(text, "-")
	last, _ := utf8.DecodeLastRuneInString(before)

	return found && unicode.IsLetter(last)
}

// wordless reports whether both sides of a line's end are of a script that has no spaces.
func wordless(text string, after rune) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	scripts := []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana}

	return (unicode.In(last, scripts...) || strings.ContainsRune("。、，！？：；」』）", last)) &&
		(unicode.In(after, scripts...) || strings.ContainsRune("「『（", after))
}

// tableRows counts the lines from the first on whose cells stand below each other.
func tableRows(lines []line) int {
	n := 0
	for n < len(lines) && len(lines[n].cells) > 1 {
		if n > 0 && !aligned(lines[n-1].cells, lines[n].cells) {
			break
		}
		n++
	}

	return n
}

// aligned reports whether two cells of a row and most of all begin or end where cells of the row above do.
func aligned(above, row []segment) bool {
	matches := 0
	for _, cell := range row {
		tolerance := 0.4 * cell.height()
		for _, other := range above {
			if math.Abs(cell.x0-other.x0) < tolerance || math.Abs(cell.x1-other.x1) < tolerance ||
				math.Abs(cell.x0+cell.x1-other.x0-other.x1) < tolerance {
				matches++

				break
			}
		}
	}

	return matches >= 2 && matches*3 >= len(row)*2 && len(row)*2 >= len(above)
}

func table(lines []line, number int) paragraph {
	var rows []string
	for _, l := range lines {
		var cells []string
		for _, cell := range l.cells {
			cells = append(cells, cell.text)
		}
		rows = append(rows, strings.Join(cells, cellSeparator))
	}

	return paragraph{text: strings.Join(rows, "\n"), kind: parse.Table, page: number, lines: len(rows)}
}
