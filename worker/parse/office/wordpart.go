package office

import (
	"encoding/xml"
	"io"
	"strings"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

const (
	maxIndent = 8        // Levels of lists that are indented.
	maxItems  = 32 << 10 // Bytes of a list's block, which ends at the next line.
	maxSpan   = 20       // Columns that a cell is counted for.
)

// word turns the streams of a document's parts into blocks.
type word struct {
	b      *build.Builder
	styles styles

	title string
	wrote bool   // Whether there is text besides the title.
	notes string // The heading of the notes that are being read, empty in the body.

	open   []*wordParagraph // Several where text boxes stand within paragraphs.
	inText bool
	taken  []bool          // For each open AlternateContent, whether one of its branches was read.
	items  strings.Builder // The list's lines that stand in no block yet.
	table  *grid           // The outermost open table.
	tables int             // How many tables are open.
}

// wordParagraph is an open paragraph.
type wordParagraph struct {
	text    strings.Builder
	style   style
	outline int // As in style, from the paragraph's own properties.
	list    int // The same; -1 says that it is in no list.
	hidden  bool
}

// part reads the body, the footnotes or the endnotes.
func (w *word) part(a *build.Archive, part string) error {
	err := eachToken(a, wordKind, part, func(d *build.Decoder, token xml.Token) error {
		switch t := token.(type) {
		case xml.StartElement:
			return w.start(d, t)
		case xml.EndElement:
			w.end(t.Name.Local)
		case xml.CharData:
			if w.inText {
				w.write(string(t))
			}
		}
		if w.b.Full() {
			return io.EOF
		}

		return nil
	})
	w.flushItems()

	return err
}

// start handles a start tag. Elements that are not named here are walked through.
func (w *word) start(d *build.Decoder, e xml.StartElement) error {
	switch e.Name.Local {
	case "del", "moveFrom", "instrText", "delText", "delInstrText", "sectPr", "tblPr", "tblPrEx", "tblGrid", "sdtPr", "sdtEndPr",
		"rt", "fldData", "binData":
		return d.Skip()
	case "AlternateContent":
		w.taken = append(w.taken, false)
	case "Choice", "Fallback":
		if n := len(w.taken); n > 0 {
			if w.taken[n-1] {
				return d.Skip()
			}
			w.taken[n-1] = true
		}
	case "footnote", "endnote":
		if kind := build.Attr(e, "type"); kind != "" && kind != "normal" {
			return d.Skip() // The lines that set notes apart.
		}
	case "p":
		w.open = append(w.open, &wordParagraph{})
	case "pPr":
		return w.paragraphProperties(d)
	case "r":
		if p := w.paragraph(); p != nil {
			p.hidden = false
		}
	case "rPr":
		return w.runProperties(d)
	case "t":
		w.inText = true
	case "tab", "ptab":
		w.write("\t")
	case "br", "cr":
		w.write("\n")
	case "noBreakHyphen":
		w.write("-")
	default:
		return w.startTable(d, e)
	}

	return nil
}

func (w *word) startTable(d *build.Decoder, e xml.StartElement) error {
	switch e.Name.Local {
	case "tbl":
		if w.tables++; w.tables == 1 {
			w.flushItems()
			w.table = &grid{}
		}
	case "trPr", "tcPr":
		return w.tableProperties(d)
	}

	return nil
}

func (w *word) end(name string) {
	switch name {
	case "AlternateContent":
		if n := len(w.taken); n > 0 {
			w.taken = w.taken[:n-1]
		}
	case "p":
		if n := len(w.open); n > 0 {
			p := w.open[n-1]
			w.open = w.open[:n-1]
			w.emit(p)
		}
	case "t":
		w.inText = false
	case "tc":
		if w.tables == 1 {
			w.table.endCell()
		}
	case "tr":
		if w.tables == 1 {
			w.table.endRow()
		}
	case "tbl":
		if w.tables == 0 {
			return
		}
		if w.tables--; w.tables == 0 {
			w.startNotes(len(w.table.rows) > 0)
			w.b.Table(w.table.rows)
			w.table = nil
		}
	}
}

// paragraph returns the innermost open paragraph, nil where there is none.
func (w *word) paragraph() *wordParagraph {
	if len(w.open) == 0 {
		return nil
	}

	return w.open[len(w.open)-1]
}

func (w *word) write(s string) {
	if p := w.paragraph(); p != nil && !p.hidden && !p.style.hidden {
		p.text.WriteString(s)
	}
}

// emit makes a block, a heading, a line of a list or part of a cell of a paragraph.
func (w *word) emit(p *wordParagraph) {
	text := strings.TrimSpace(build.Clean(p.text.String()))
	if parse.Blank(text) || p.style.toc {
		return
	}
	outline, level := p.style.outline, p.style.list
	if p.outline != 0 {
		outline = p.outline
	}
	if p.list != 0 {
		level = p.list
	}
	switch {
	case w.tables > 0:
		w.wrote = true
		w.table.write(text)

		return
	case w.notes == "" && p.style.title && w.title == "":
		w.title = text

		return
	}
	w.wrote = true
	w.startNotes(true)
	switch {
	case outline > 0 && w.notes == "":
		w.flushItems()
		w.b.Heading(outline, text)
	case level > 0:
		w.item(level, text)
	default:
		w.flushItems()
		w.b.Paragraph(text)
	}
}

// startNotes begins the section of the notes once there is one.
func (w *word) startNotes(found bool) {
	if found && w.notes != "" && w.notes != w.b.Section() {
		w.b.Heading(1, w.notes)
	}
}

func (w *word) item(level int, text string) {
	writeItem(&w.items, level-1, "- ", text)
	if w.items.Len() >= maxItems {
		w.flushItems()
	}
}

// writeItem appends a line of a list; further lines of the text stand below its first.
func writeItem(b *strings.Builder, level int, marker, text string) {
	indent := strings.Repeat("  ", min(level, maxIndent))
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString(indent + marker + strings.ReplaceAll(text, "\n", "\n"+indent+strings.Repeat(" ", len(marker))))
}

func (w *word) flushItems() {
	if w.items.Len() > 0 {
		w.b.Paragraph(w.items.String())
		w.items.Reset()
	}
}
