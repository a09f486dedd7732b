package docling

import (
	"errors"
	"strings"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

const (
	maxDepth  = 500 // Of nodes in each other; deeper ones are left out.
	maxLevel  = 20  // Of headings.
	maxIndent = 8   // Of lists in each other.
)

// walker goes through a document in reading order. Each node is taken once, so that cycles end.
type walker struct {
	doc   *document
	build *build.Builder
	seen  map[*node]bool
	// owned holds captions and footnotes, which come with their table or picture and not where they stand.
	owned map[*node]bool
	// insidePictures says to take the text in pictures too.
	insidePictures bool

	page   int
	list   []string // The lines of the list under construction.
	tables []shape
}

// convert makes blocks of a document. The error is a *parse.Error whose Code is "no_text_layer" or "too_large".
func (d *document) convert(f file, problems []string) (parse.Document, error) {
	doc, err := d.walk(f, problems, false)
	if parseCode(err) == "empty" {
		// What docling takes for one large picture may be a scan of a page.
		doc, err = d.walk(f, problems, true)
	}
	switch parseCode(err) {
	case "empty":
		return parse.Document{}, f.errNoText()
	case "too_large":
		return parse.Document{}, f.errTooLarge()
	}

	return doc, err
}

func (d *document) walk(f file, problems []string, insidePictures bool) (parse.Document, error) {
	w := &walker{
		doc: d, build: build.New(f.kind), insidePictures: insidePictures,
		seen: map[*node]bool{&d.Body: true}, owned: map[*node]bool{},
	}
	for _, list := range d.lists {
		for _, n := range list {
			for _, refs := range [][]ref{n.Captions, n.Footnotes} {
				for _, r := range refs {
					if owned := d.find(r); owned != nil && owned != n {
						w.owned[owned] = true
					}
				}
			}
		}
	}
	w.build.SetMetadataList("docling_errors", problems)
	w.children(&d.Body, 0, 0)
	w.endList()
	doc, err := w.build.Document()
	if err != nil {
		return parse.Document{}, err
	}
	setHeaders(&doc, w.tables)

	return doc, nil
}

// children takes what a node holds; lists is the number of lists around it.
func (w *walker) children(n *node, depth, lists int) {
	if depth > maxDepth {
		return
	}
	for _, r := range n.Children {
		if w.build.Full() {
			return
		}
		child := w.doc.find(r)
		if child == nil || w.seen[child] || w.owned[child] {
			continue
		}
		w.seen[child] = true
		w.visit(child, depth+1, lists)
	}
}

func (w *walker) visit(n *node, depth, lists int) {
	switch {
	case !n.visible():
	case n.list == "tables":
		w.table(n, depth)

		return // Its children are the captions and what the cells refer to.
	case n.list == "pictures":
		w.picture(n, depth)
		if !w.insidePictures {
			return
		}
	case n.list != "groups":
		w.text(n, depth, lists)
	case n.Label == "inline":
		page, text := w.inline(n, depth)
		w.paragraph(page, text)
	case n.Label == "list" || n.Label == "ordered_list":
		if lists == 0 {
			w.endList()
			defer w.endList()
		}
		lists++
	}
	w.children(n, depth, lists)
}

// text takes an item of text by its label.
func (w *walker) text(n *node, depth, lists int) {
	page, text := w.content(n, depth)
	switch n.Label {
	case "title":
		w.startAt(page)
		w.build.SetTitle(text)
		w.build.Heading(1, text)
	case "section_header":
		w.startAt(page)
		w.build.Heading(min(max(n.Level, 1), maxLevel)+1, text)
	case "list_item":
		w.item(page, lists, marker(n), text)
	case "checkbox_selected":
		w.item(page, lists, "- [x]", text)
	case "checkbox_unselected":
		w.item(page, lists, "- [ ]", text)
	case "code":
		w.attached(n.Captions, depth)
		w.startAt(page)
		w.build.Code(text)
		w.attached(n.Footnotes, depth)
	default:
		w.paragraph(page, text)
		w.graph(n)
	}
}

// graph takes the cells of a form, whose text is in no node.
func (w *walker) graph(n *node) {
	if n.Graph == nil {
		return
	}
	lines := make([]string, 0, len(n.Graph.Cells))
	for _, cell := range n.Graph.Cells {
		lines = append(lines, build.Line(cell.Text))
	}
	w.paragraph(n.page(), strings.Join(lines, "\n"))
}

// startAt ends a list and begins what is no list. A page of 0 is that of the text before.
func (w *walker) startAt(page int) {
	w.endList()
	if page > 0 {
		w.page = page
	}
	w.build.SetPage(w.page)
}

func (w *walker) paragraph(page int, text string) {
	if !parse.Blank(text) {
		w.startAt(page)
		w.build.Paragraph(text)
	}
}

// item adds a line to the list under construction. A list that goes on on another page is a block of its own.
func (w *walker) item(page, lists int, marker, text string) {
	text = build.Line(text)
	if parse.Blank(text) {
		return
	}
	if page > 0 && page != w.page || len(w.list) == 0 {
		w.startAt(page)
	}
	indent := strings.Repeat("  ", min(max(lists-1, 0), maxIndent))
	w.list = append(w.list, indent+marker+" "+text)
}

func (w *walker) endList() {
	if len(w.list) > 0 {
		w.build.Paragraph(strings.Join(w.list, "\n"))
		w.list = nil
	}
}

func marker(n *node) string {
	if mark := build.Line(n.Marker); n.Enumerated && !parse.Blank(mark) {
		return mark
	}

	return "-"
}

// attached takes captions or footnotes.
func (w *walker) attached(refs []ref, depth int) {
	for _, r := range refs {
		n := w.doc.find(r)
		if n == nil || w.seen[n] || n.list != "texts" {
			continue
		}
		w.seen[n] = true
		if n.visible() {
			w.paragraph(w.content(n, depth))
		}
	}
}

// picture takes what is said about a picture.
func (w *walker) picture(n *node, depth int) {
	w.attached(n.Captions, depth)
	w.describe(n)
	w.attached(n.Footnotes, depth)
}

func (w *walker) describe(n *node) {
	if n.Meta != nil && n.Meta.Description != nil && !parse.Blank(n.Meta.Description.Text) {
		w.paragraph(n.page(), n.Meta.Description.Text)

		return // Annotations are the older place for the same.
	}
	for _, a := range n.Annotations {
		if a.Kind == "description" {
			w.paragraph(n.page(), a.Text)
		}
	}
}

// parseCode returns the code of a *parse.Error, empty for any other error.
func parseCode(err error) string {
	var own *parse.Error
	if errors.As(err, &own) {
		return own.Code
	}

	return ""
}
