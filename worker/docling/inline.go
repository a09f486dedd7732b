package docling

import (
	"strings"
	"unicode/utf8"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

// content returns an item's text and its page. It may stand in an inline group below the item.
func (w *walker) content(n *node, depth int) (int, string) {
	if !parse.Blank(n.Text) {
		return n.page(), n.Text
	}
	for _, r := range n.Children {
		group := w.doc.find(r)
		if group == nil || w.seen[group] || group.list != "groups" || group.Label != "inline" || !group.visible() {
			continue
		}
		w.seen[group] = true
		page, text := w.inline(group, depth+1)
		w.children(group, depth+1, 0)
		if !parse.Blank(text) {
			return max(page, n.page()), text
		}
	}

	return n.page(), n.Orig
}

// inline joins the texts of a group that are one sentence. What is no text is left to be visited.
func (w *walker) inline(group *node, depth int) (int, string) {
	if depth > maxDepth {
		return 0, ""
	}
	page := group.page()
	var b strings.Builder
	for _, r := range group.Children {
		n := w.doc.find(r)
		if n == nil || w.seen[n] || w.owned[n] || n.list != "texts" && n.list != "groups" {
			continue
		}
		w.seen[n] = true
		if !n.visible() {
			continue
		}
		of, piece := w.inlinePiece(n, depth+1)
		if page == 0 {
			page = of
		}
		piece = build.Line(piece)
		if b.Len() > 0 && piece != "" && !closes(piece) && !opens(b.String()) {
			b.WriteByte(' ')
		}
		b.WriteString(piece)
	}

	return page, b.String()
}

func (w *walker) inlinePiece(n *node, depth int) (int, string) {
	if n.list == "groups" {
		return w.inline(n, depth)
	}

	return w.content(n, depth)
}

// closes reports whether a piece begins with what no space stands before.
func closes(piece string) bool {
	r, size := utf8.DecodeRuneInString(piece)
	next, _ := utf8.DecodeRuneInString(piece[size:])

	return strings.ContainsRune(",;:!?)]}%", r) || r == '.' && (size == len(piece) || next == ' ')
}

// opens reports whether a sentence ends with what no space stands behind.
func opens(sentence string) bool {
	r, _ := utf8.DecodeLastRuneInString(sentence)

	return strings.ContainsRune("([{", r)
}
