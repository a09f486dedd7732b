// Package build holds what the parsers of web pages, office files, books and mail share: a Builder that makes a document
// of blocks in reading order, an Archive that opens a ZIP container within limits, and a Decoder that reads XML within
// limits. What the parts of a format mean is left to the parsers. Its invariant: whatever it is fed, a Builder's document
// keeps the rules of package parse, and reading an archive takes memory bounded by the constants here.
package build

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kb-search/kb/worker/parse"
)

const (
	maxText    = 64 << 20 // Bytes of text in a document.
	maxTitle   = 500
	maxValue   = 2000 // Bytes of a value in the metadata.
	maxHeading = 200
	softLimit  = 32 << 10 // A table's block ends at the next row.

	cellSeparator  = " | "
	blockSeparator = "\n\n"
)

// Builder makes a document. The zero value is not usable; call New. It is not safe for concurrent use.
type Builder struct {
	doc  parse.Document
	text strings.Builder
	page int
	full bool

	path []string
	open []section // The headings of path.

	rows      strings.Builder // The table's rows that stand in no block yet.
	rowCount  int             // Of the whole table.
	header    string
	tablePage int
}

// section is a heading that text may follow.
type section struct {
	title string
	level int
	page  int
	used  bool // Whether a block stands under the heading.
}

// New returns a builder of a document of the given type.
func New(docType string) *Builder {
	return &Builder{doc: parse.Document{Type: docType}}
}

// SetTitle sets the document's title unless it has one or the title is blank.
func (b *Builder) SetTitle(title string) {
	if title = Line(title); b.doc.Title == "" && !parse.Blank(title) {
		b.doc.Title = shorten(title, maxTitle)
	}
}

// Title returns the document's title, empty when there is none yet.
func (b *Builder) Title() string { return b.doc.Title }

// SetMetadata sets a value that the file says about itself, unless the value is blank or was set before.
func (b *Builder) SetMetadata(key, value string) {
	if value = Line(value); !parse.Blank(value) {
		b.setMetadata(key, shorten(value, maxValue))
	}
}

// SetMetadataList is SetMetadata for several values.
func (b *Builder) SetMetadataList(key string, values []string) {
	var list []string
	for _, value := range values {
		if value = Line(value); !parse.Blank(value) {
			list = append(list, shorten(value, maxValue))
		}
	}
	if len(list) > 0 {
		b.setMetadata(key, list)
	}
}

func (b *Builder) setMetadata(key string, value any) {
	if b.doc.Metadata == nil {
		b.doc.Metadata = map[string]any{}
	}
	if _, found := b.doc.Metadata[key]; !found {
		b.doc.Metadata[key] = value
	}
}

// SetPage sets the 1-indexed page of what follows.
func (b *Builder) SetPage(page int) {
	b.EndTable()
	b.page = page
}

// Full reports whether the document has more text than a document may have. Parsers then stop; Document says why.
func (b *Builder) Full() bool { return b.full }

// Heading begins a section; level counts from 1, the outermost. A heading with nothing under it becomes text, lest it be
// lost, and one too long for a path stands in it shortened and is text as well.
func (b *Builder) Heading(level int, title string) {
	b.EndTable()
	title = Line(title)
	if parse.Blank(title) {
		return
	}
	depth := len(b.open)
	for depth > 0 && b.open[depth-1].level >= level {
		depth--
	}
	b.enter(depth, level, title)
}

// EndSections ends all sections.
func (b *Builder) EndSections() {
	b.EndTable()
	b.leave(0)
}

// Section returns the innermost heading of what follows, empty where there is none.
func (b *Builder) Section() string {
	if len(b.path) == 0 {
		return ""
	}

	return b.path[len(b.path)-1]
}

// Enter begins a section that headings do not end, only Leave does.
func (b *Builder) Enter(title string) {
	b.EndTable()
	b.enter(len(b.open), 0, Line(title))
}

// Leave ends the section that the last Enter began, and those in it.
func (b *Builder) Leave() {
	b.EndTable()
	for depth := len(b.open) - 1; depth >= 0; depth-- {
		if b.open[depth].level == 0 {
			b.leave(depth)

			return
		}
	}
}

func (b *Builder) enter(depth, level int, title string) {
	b.leave(depth)
	name := shorten(title, maxHeading)
	b.path = append(slices.Clone(b.path), name) // A new array: blocks keep the old one.
	b.open = append(b.open, section{title: title, level: level, page: b.page})
	if len(name) < len(title) {
		b.add(parse.Paragraph, title, "", b.page)
	}
}

// leave ends all sections but the outer ones.
func (b *Builder) leave(depth int) {
	for n := len(b.open); n > depth; n-- {
		last := b.open[n-1]
		b.path, b.open = b.path[:n-1:n-1], b.open[:n-1]
		if !last.used {
			b.add(parse.Paragraph, last.title, "", last.page)
		}
	}
}

// Paragraph appends running text; blank text is left out.
func (b *Builder) Paragraph(text string) {
	b.EndTable()
	b.add(parse.Paragraph, tidy(Clean(text)), "", b.page)
}

// Code appends text whose white space matters.
func (b *Builder) Code(text string) {
	b.EndTable()
	b.add(parse.Code, tidy(Clean(text)), "", b.page)
}

// Row appends a row to the table under construction; the first one is its header. Cells become one line each. A row of
// blank cells is left out. Whatever is not a row ends the table.
func (b *Builder) Row(cells []string) {
	line := rowText(cells)
	if line == "" || b.full {
		return
	}
	if b.rowCount == 0 {
		b.header, b.tablePage = line, b.page
	}
	if b.rows.Len() > 0 {
		b.rows.WriteByte('\n')
	}
	b.rows.WriteString(line)
	b.rowCount++
	if b.rows.Len() >= softLimit && b.rowCount > 1 {
		b.flushRows()
	}
}

// EndTable ends the table under construction, if there is one. A table of a single row is a paragraph.
func (b *Builder) EndTable() {
	if b.rowCount == 0 {
		return
	}
	b.flushRows()
	b.rowCount, b.header = 0, ""
}

func (b *Builder) flushRows() {
	text := b.rows.String()
	b.rows.Reset()
	if b.rowCount == 1 {
		b.add(parse.Paragraph, text, "", b.tablePage)
	} else if text != "" {
		b.add(parse.Table, text, b.header, b.tablePage)
	}
}

// Table appends a table. One of a single column is layout: its rows become paragraphs, which keep their line ends.
func (b *Builder) Table(rows [][]string) {
	b.EndTable()
	columns := 0
	rows = slices.DeleteFunc(rows, func(row []string) bool { return len(row) == 0 })
	for _, row := range rows {
		columns = max(columns, len(trimCells(row)))
	}
	for _, row := range rows {
		if columns == 1 {
			b.Paragraph(row[0])
		} else {
			b.Row(row)
		}
	}
	b.EndTable()
}

// add appends a block.
func (b *Builder) add(kind parse.Kind, text, header string, page int) {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	if parse.Blank(text) || b.full {
		return
	}
	if b.text.Len()+len(text) > maxText {
		b.full = true

		return
	}
	for i := range b.open {
		b.open[i].used = true
	}
	if b.text.Len() > 0 {
		b.text.WriteString(blockSeparator)
	}
	start := b.text.Len()
	b.text.WriteString(text)
	block := parse.Block{Kind: kind, Path: b.path, Header: header, Page: page, Start: start, End: b.text.Len()}
	if len(block.Path) == 0 {
		block.Path = nil
	}
	b.doc.Blocks = append(b.doc.Blocks, block)
}

// Document returns what was built; the builder can't be used afterwards. The error is a *parse.Error whose Code is
// "too_large" or "empty".
func (b *Builder) Document() (parse.Document, error) {
	b.EndSections()
	switch {
	case b.full:
		return parse.Document{}, TooLarge("The file holds more than 64 MiB of text; split it into smaller files.")
	case len(b.doc.Blocks) == 0:
		return parse.Document{}, &parse.Error{Code: "empty", Message: "The file holds no text; send one that does."}
	}
	b.doc.Text = b.text.String()
	for i := range b.doc.Blocks {
		block := &b.doc.Blocks[i]
		block.Text = b.doc.Text[block.Start:block.End]
	}

	return b.doc, nil
}
