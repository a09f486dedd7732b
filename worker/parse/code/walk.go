package code

import (
	"strings"

	sitter "github.com/smacker/go-tree-sitter"
)

// maxDepth bounds how deep definitions are looked for.
const maxDepth = 40

// walker finds a tree's definitions. It looks only into nodes that can hold some, so its time grows with their number.
type walker struct {
	*file
	*grammar

	symbols []role
	source  []byte
	cursor  *sitter.TreeCursor
	// broken says that the text has a syntax error somewhere. Then where a class ends is a guess, and even a small one
	// is cut.
	broken bool
	// packages holds the rows at which packages after the first begin, and packageUnits their units.
	packages, packageUnits []int
}

// scope is where a walk is: the unit that holds its nodes and what the first definition in it takes with it.
type scope struct {
	unit int
	// lead is the row at which the first definition begins when wrapped is set, because of what is around it.
	lead    int
	wrapped bool
}

// walk visits the cursor's node and its siblings.
func (w *walker) walk(at scope, depth int) {
	lead, leadEnd, previousEnd := -1, -2, -1
	for {
		node := w.cursor.CurrentNode()
		first, last := rows(node)
		r := w.role(node)
		if r == comment {
			if lead < 0 || first > leadEnd+1 {
				lead = first
			}
			if leadEnd = last; first <= previousEnd && lead == first {
				lead, leadEnd = -1, -2 // It stands behind something on the same line.
			}
		} else {
			start := first
			if lead >= 0 && first <= leadEnd+1 {
				start = lead
			}
			lead, leadEnd = -1, -2
			if at.wrapped {
				start = min(start, at.lead)
			}
			if w.visit(node, r, &at, start, last, depth) {
				at.wrapped = false
			}
			previousEnd = last
		}
		if !w.cursor.GoToNextSibling() {
			return
		}
	}
}

func (w *walker) role(node *sitter.Node) role {
	if node.IsError() {
		return open
	}
	if symbol := int(node.Symbol()); symbol < len(w.symbols) {
		return w.symbols[symbol]
	}

	return other
}

// visit gives a node's lines to a unit, if it is a definition or holds some. It reports whether it found one.
func (w *walker) visit(node *sitter.Node, r role, at *scope, start, last, depth int) bool {
	if node.IsError() {
		first, last := rows(node)
		w.markDoubt(first, last)
	}
	before := len(w.units)
	path := w.units[at.unit].path
	if r == pack && has(node, "body") {
		r = space
	}
	if r == function && first(node) == "internal_module" {
		r = open // A namespace in TypeScript is an expression.
	}
	switch r {
	case pack:
		w.enterPackage(node, at, start, depth)

		return false
	case open, wrap:
		if value := node.ChildByFieldName("value"); r == wrap && callable(value) { // export default in JavaScript.
			u := w.unit(node, path, []string{"default"})
			u.whole = true
			w.add(u, start, last)

			return true
		}
		inner := *at
		if inner.wrapped = r == wrap || at.wrapped; inner.wrapped {
			inner.lead = start
		}
		w.descend(inner, depth)
	case space:
		if !has(node, "body") {
			return false
		}
		start = max(start, w.claimed+1)
		u := w.unit(node, path, w.names(node))
		u.space = true
		id := w.add(u, start, last)
		w.descend(scope{unit: id}, depth)
	case class, function:
		names := w.names(node)
		if len(names) == 0 || r == class && !w.hasBody(node) {
			return false
		}
		u := w.unit(node, path, names)
		u.whole = r == function || start <= w.claimed || last-start+1 < smallClass && !w.broken
		id := w.add(u, start, last)
		if node.HasError() {
			w.markDoubt(start, last)
		}
		if !u.whole {
			w.descend(scope{unit: id}, depth)
		}

		return true
	default:
		return false
	}

	return len(w.units) > before
}

func (w *walker) descend(at scope, depth int) {
	if depth < maxDepth && w.cursor.GoToFirstChild() {
		w.walk(at, depth+1)
		w.cursor.GoToParent()
	}
}

// enterPackage makes a package's name part of the path of what follows.
func (w *walker) enterPackage(node *sitter.Node, at *scope, start, depth int) {
	path := join(nil, w.names(node)...)
	if len(w.units) == 1 && len(w.units[0].path) == 0 {
		w.units[0].path = path
	} else {
		w.units = append(w.units, w.unit(node, nil, path))
		at.unit = len(w.units) - 1
		w.packages = append(w.packages, start)
		w.packageUnits = append(w.packageUnits, at.unit)
	}
	w.descend(*at, depth)
}

// divide gives the file's own lines to the later packages in it.
func (w *walker) divide() {
	next, current := 0, 0
	for row, id := range w.owner {
		for next < len(w.packages) && w.packages[next] <= row {
			current = w.packageUnits[next]
			next++
		}
		if id == 0 {
			w.owner[row] = current
		}
	}
}

func rows(node *sitter.Node) (first, last int) {
	first = int(node.StartPoint().Row)
	end := node.EndPoint()
	last = int(end.Row)
	if end.Column == 0 && last > first { // The node ends with its last line's line end.
		last--
	}

	return first, last
}

// first returns the type of a node's first named child.
func first(node *sitter.Node) string {
	if child := node.NamedChild(0); child != nil {
		return child.Type()
	}

	return ""
}

// unit makes a unit of a node.
func (w *walker) unit(node *sitter.Node, outer, names []string) unit {
	row, _ := rows(node)

	return unit{path: join(outer, names...), outer: outer, row: row, column: indent(w.line(min(row, w.rows()-1)))}
}

func has(node *sitter.Node, field string) bool { return node.ChildByFieldName(field) != nil }

// content returns the text of a node, cut to what a name may be long.
func (w *walker) content(node *sitter.Node) string {
	if node == nil {
		return ""
	}
	start, end := int(node.StartByte()), int(node.EndByte())
	end = min(end, len(w.source), start+400)

	return strings.ToValidUTF8(string(w.source[start:end]), "")
}
