package docling

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

const (
	maxGap    = 32      // Blank cells in a row that are kept to hold the columns in place.
	maxHeader = 4 << 10 // Bytes of a header of several rows.
)

// shape is what a table's blocks are made of: rows that are a line each, the first of them headers.
type shape struct{ lines, header int }

// table takes a table with its captions, description and footnotes.
func (w *walker) table(n *node, depth int) {
	w.attached(n.Captions, depth)
	w.describe(n)
	rows, header := w.rows(n, depth)
	if len(rows) > 0 {
		w.startAt(n.page())
		w.build.Table(rows)
		if len(rows) > 1 && columns(rows) > 1 { // Others become paragraphs.
			w.tables = append(w.tables, shape{lines: len(rows), header: header})
		}
	}
	w.attached(n.Footnotes, depth)
}

// rows puts a table's cells in rows without blank ones, and says how many rows at its head are headers. A cell that spans
// several places has its text in the first of them.
func (w *walker) rows(n *node, depth int) ([][]string, int) {
	if n.Data == nil {
		return nil, 0
	}
	cells := slices.Clone(n.Data.Cells)
	slices.SortStableFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Column, b.Column))
	})
	var rows [][]string
	header, counting := 0, true
	for start := 0; start < len(cells); {
		end := start
		var row []string
		blank, head, next := true, false, 0
		for ; end < len(cells) && cells[end].Row == cells[start].Row; end++ {
			c := cells[end]
			for range min(max(c.Column-next, 0), maxGap) {
				row = append(row, "")
			}
			next = max(next, c.Column) + 1
			text := w.cellText(c, depth)
			blank = blank && parse.Blank(text)
			head = head || c.ColumnHeader
			row = append(row, text)
		}
		start = end
		if blank {
			continue
		}
		if counting = counting && head; counting {
			header++
		}
		rows = append(rows, row)
	}

	return rows, header
}

func (w *walker) cellText(c cell, depth int) string {
	text := build.Line(c.Text)
	n := w.doc.find(c.Ref)
	if !parse.Blank(text) || n == nil || w.seen[n] || n.list != "texts" && n.list != "groups" {
		return text
	}
	w.seen[n] = true
	if !n.visible() {
		return text
	}
	_, text = w.inlinePiece(n, depth+1)

	return build.Line(text)
}

// columns counts the places up to the last cell that is not blank.
func columns(rows [][]string) int {
	count := 0
	for _, row := range rows {
		for i, text := range row {
			if !parse.Blank(text) {
				count = max(count, i+1)
			}
		}
	}

	return count
}

// setHeaders gives tables the headers that have several rows; the builder takes the first row for the header.
func setHeaders(doc *parse.Document, tables []shape) {
	i := 0
	for _, t := range tables {
		for i < len(doc.Blocks) && doc.Blocks[i].Kind != parse.Table {
			i++
		}
		first := i
		for left := t.lines; left > 0 && i < len(doc.Blocks) && doc.Blocks[i].Kind == parse.Table; i++ {
			left -= strings.Count(doc.Blocks[i].Text, "\n") + 1
		}
		if first == len(doc.Blocks) || t.header < 2 {
			continue
		}
		lines := strings.SplitAfterN(doc.Blocks[first].Text, "\n", t.header+1)
		if len(lines) <= t.header {
			continue // Nothing but headers.
		}
		header := strings.TrimSuffix(strings.Join(lines[:t.header], ""), "\n")
		for k := first; k < i && len(header) <= maxHeader; k++ {
			doc.Blocks[k].Header = header
		}
	}
}
