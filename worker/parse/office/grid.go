package office

import "strings"

// grid collects the cells of a table.
type grid struct {
	rows    [][]string
	row     []string
	cell    strings.Builder
	span    int  // Of the open cell, in columns.
	merged  bool // Whether the open cell is part of the one to its left, which counts its columns.
	deleted bool // Whether the open row is deleted by a tracked change.
}

// write appends a paragraph to the open cell.
func (g *grid) write(text string) {
	if g.cell.Len() > 0 {
		g.cell.WriteByte('\n')
	}
	g.cell.WriteString(text)
}

// pad appends blank cells.
func (g *grid) pad(n int) {
	for range min(n, maxSpan) {
		g.row = append(g.row, "")
	}
}

func (g *grid) endCell() {
	if !g.merged {
		g.row = append(g.row, g.cell.String())
		g.pad(g.span - 1)
	}
	g.cell.Reset()
	g.span, g.merged = 0, false
}

func (g *grid) endRow() {
	if len(g.row) > 0 && !g.deleted {
		g.rows = append(g.rows, g.row)
	}
	g.row, g.deleted = nil, false
}
