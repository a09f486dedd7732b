package html

import (
	"strconv"
	"strings"
)

const (
	maxSpan    = 20 // Columns that a cell is counted for.
	maxColumns = 32 // Columns for which cells that span rows are kept in mind.
)

// table is an open table. One that holds headings, code or other tables is there for layout: its cells are no cells but
// text like any other.
type table struct {
	layout bool
	rows   [][]string
	row    []string
	carry  [maxColumns]int // For how many rows more a cell from above stands in the column.

	open    bool // Whether a cell is open.
	text    strings.Builder
	colspan int
	rowspan int
}

func (c *converter) table() *table {
	if len(c.tables) == 0 {
		return nil
	}

	return c.tables[len(c.tables)-1]
}

// inCell reports whether text belongs to a table's cell.
func (c *converter) inCell() bool {
	t := c.table()

	return t != nil && t.open && !t.layout
}

// cell appends text to the open cell.
func (c *converter) cell(text string) {
	t := c.table()
	if t.text.Len() > 0 {
		t.text.WriteByte('\n')
	}
	t.text.WriteString(text)
}

// layout makes the open table one for layout. What it holds so far becomes text.
func (c *converter) layout() {
	t := c.table()
	if t == nil || !t.open || t.layout {
		return
	}
	t.layout = true
	c.b.Table(t.rows)
	for _, text := range append(t.row, t.text.String()) {
		c.b.Paragraph(text)
	}
	t.rows, t.row = nil, nil
	t.text.Reset()
}

func (c *converter) beginCell(tag tag) {
	t := c.table()
	if t == nil {
		return
	}
	t.open = true
	t.colspan, t.rowspan = span(tag.colspan), span(tag.rowspan)
}

func span(value string) int {
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if err != nil || n < 1 {
		return 1
	}

	return n
}

func (c *converter) endCell() {
	t := c.table()
	if t == nil || !t.open {
		return
	}
	t.open = false
	if t.layout {
		return
	}
	t.skipCarried()
	for i := range min(t.colspan, maxSpan) {
		if column := len(t.row); column < maxColumns {
			t.carry[column] = t.rowspan - 1
		}
		if i == 0 {
			t.row = append(t.row, t.text.String())
		} else {
			t.row = append(t.row, "")
		}
	}
	t.text.Reset()
}

// skipCarried leaves the columns blank that cells from above reach into.
func (t *table) skipCarried() {
	for len(t.row) < maxColumns && t.carry[len(t.row)] > 0 {
		t.carry[len(t.row)]--
		t.row = append(t.row, "")
	}
}

func (c *converter) endRow() {
	t := c.table()
	if t == nil || t.layout {
		return
	}
	for column := len(t.row); column < maxColumns; column++ {
		t.carry[column] = max(t.carry[column]-1, 0)
	}
	if len(t.row) > 0 {
		t.rows = append(t.rows, t.row)
		t.row = nil
	}
}

func (c *converter) endTable() {
	t := c.table()
	if t == nil {
		return
	}
	c.endRow()
	c.tables = c.tables[:len(c.tables)-1]
	c.b.Table(t.rows)
}
