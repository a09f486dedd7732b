package office

import (
	"strings"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

var wordKind = build.Kind{Name: "Word document", Ext: ".docx"}

// Word reads a .docx file: paragraphs with the headings above them, lists, tables, text boxes, footnotes and endnotes, as
// they stand once tracked changes are accepted. Comments, running headers and footers, the table of contents and hidden
// text are left out. The error is a *parse.Error whose Code is "corrupt", "too_large", "password_required", "unsupported_type" or "empty".
func Word(data []byte) (parse.Document, error) {
	a, err := build.OpenArchive(data, wordKind)
	if err != nil {
		return parse.Document{}, err
	}
	main, err := mainPart(a, wordKind, "word/document.xml", "document")
	if err != nil {
		return parse.Document{}, err
	}
	related, err := relationships(a, wordKind, main)
	if err != nil {
		return parse.Document{}, err
	}
	known, err := readStyles(a, wordKind, target(related, "styles"))
	if err != nil {
		return parse.Document{}, err
	}

	w := word{b: build.New(parse.TypeDOCX), styles: known}
	if err := w.part(a, main); err != nil {
		return parse.Document{}, err
	}
	for _, kind := range []string{"footnotes", "endnotes"} {
		if part := target(related, kind); part != "" && a.Has(part) {
			w.notes = strings.ToUpper(kind[:1]) + kind[1:]
			if err := w.part(a, part); err != nil {
				return parse.Document{}, err
			}
		}
	}
	w.b.SetTitle(w.title)
	w.b.SetTitle(properties(a, wordKind, w.b))
	if !w.wrote {
		w.b.Paragraph(w.title)
	}

	return w.b.Document()
}
