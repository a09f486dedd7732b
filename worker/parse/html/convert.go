package html

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/kb-search/kb/worker/parse/build"
)

// Page is what a page says about itself.
type Page struct {
	Title string
	// Heading is the first heading of level 1.
	Heading string
	Description,
	Author,
	Keywords,
	Lang string
}

// maxOpen is the number of open elements that are kept; deeper ones are only counted.
const maxOpen = 512

// Append converts the page to blocks and appends them to b. It stops early when b is full.
func Append(b *build.Builder, source string) Page {
	c := converter{b: b, open: map[atom.Atom]int{}}
	z := html.NewTokenizer(strings.NewReader(source))
	xml := isXHTML(source)
	z.AllowCDATA(xml)
	for !b.Full() {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			c.closeAll()

			return c.page
		case html.TextToken:
			c.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			e := readTag(z)
			closed := kind == html.SelfClosingTagToken
			if closed && xml {
				z.NextIsNotRawText()
			}
			c.start(e)
			if closed && (xml || !rawText(e.atom)) && !void(e.atom) {
				c.end(e.atom)
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			c.end(atom.Lookup(name))
		}
	}

	return c.page
}

// isXHTML reports whether a page is XML, where a tag can end itself.
func isXHTML(source string) bool {
	head := source[:min(len(source), 1024)]

	return strings.HasPrefix(strings.TrimLeft(head, "\ufeff \t\r\n"), "<?xml") || strings.Contains(head, `"http://www.w3.org/1999/xhtml"`)
}

// converter turns a stream of tags into blocks.
type converter struct {
	b    *build.Builder
	page Page

	stack  []element
	open   map[atom.Atom]int // How often an element is on the stack.
	deeper int               // Elements that are open above the stack.
	skip   int               // How many elements on the stack are left out.

	inline  strings.Builder // The paragraph, heading or line under construction.
	space   bool            // Whether white space is due before the next word.
	heading int             // The level of the open heading, 0 for none.
	title   bool            // Whether the page's title is open.
	pre     int
	code    strings.Builder

	lists  []list
	items  strings.Builder // The list's lines that stand in no block yet.
	marker string          // Of the next line.
	tables []*table
}

// element is an open element.
type element struct {
	atom   atom.Atom
	skip   bool
	deeper int // What converter.deeper was outside.
}

// start handles a start tag.
func (c *converter) start(t tag) {
	c.closeImplied(t.atom)
	skip := t.hidden || dropped(t.atom)
	switch {
	case void(t.atom):
		if !skip && c.skip == 0 {
			c.voidElement(t)
		}

		return
	case c.skip > 0:
	case skip:
		if block(t.atom) {
			c.flush()
		}
		c.skip++
		c.push(element{atom: t.atom, skip: true})

		return
	case !structural(t.atom):
		if t.atom == atom.Html {
			c.page.Lang = t.lang
		}

		return
	}
	if len(c.stack) >= maxOpen {
		if c.skip == 0 {
			c.flush()
		}
		c.deeper++

		return
	}
	if c.skip == 0 {
		c.begin(t)
	}
	c.push(element{atom: t.atom})
}

func (c *converter) push(e element) {
	e.deeper, c.deeper = c.deeper, 0
	c.stack = append(c.stack, e)
	c.open[e.atom]++
}

// end handles an end tag: it ends the innermost element of that name, and those in it. Only the parts of a table end what
// is outside a table's cell.
func (c *converter) end(a atom.Atom) {
	switch {
	case c.skip == 0 && !structural(a) || void(a):
		return
	case c.deeper > 0:
		if c.skip == 0 {
			c.flush()
		}
		c.deeper--

		return
	}
	if isHeading(a) && c.open[a] == 0 && c.heading > 0 {
		a = headings[c.heading-1] // <h2>…</h3>
	}
	if c.open[a] > 0 {
		c.closeTo(a, !tablePart(a))
	}
}

// closeTo ends the innermost open element of that name and those in it, unless it lies outside the cell.
func (c *converter) closeTo(a atom.Atom, inCell bool) bool {
	for i := len(c.stack) - 1; i >= 0; i-- {
		if c.stack[i].atom == a {
			for len(c.stack) > i {
				c.pop()
			}

			return true
		}
		if barrier := c.stack[i].atom; inCell && (barrier == atom.Td || barrier == atom.Th) || barrier == atom.Table {
			return false
		}
	}

	return false
}

func (c *converter) pop() {
	e := c.stack[len(c.stack)-1]
	c.stack = c.stack[:len(c.stack)-1]
	c.open[e.atom]--
	c.deeper = e.deeper
	switch {
	case e.skip:
		c.skip--
	case c.skip == 0:
		c.finish(e.atom)
	}
}

func (c *converter) closeAll() {
	for len(c.stack) > 0 {
		c.pop()
	}
	c.flush()
	c.flushItems()
}

// closeImplied ends the elements that a start tag ends although nobody wrote their end tags.
func (c *converter) closeImplied(a atom.Atom) {
	switch a {
	case atom.Li:
		c.closeUpTo([]atom.Atom{atom.Li}, atom.Ul, atom.Ol)
	case atom.Dt, atom.Dd:
		c.closeUpTo([]atom.Atom{atom.Dt, atom.Dd}, atom.Dl)
	case atom.Td, atom.Th:
		c.closeUpTo([]atom.Atom{atom.Td, atom.Th}, atom.Tr)
	case atom.Tr:
		c.closeUpTo([]atom.Atom{atom.Tr}, atom.Tbody, atom.Thead, atom.Tfoot)
	case atom.Tbody, atom.Thead, atom.Tfoot:
		c.closeUpTo([]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr})
	}
	if c.open[atom.P] > 0 && endsParagraph(a) {
		c.closeTo(atom.P, true)
	}
	if c.heading > 0 && c.skip == 0 && endsHeading(a) && c.inline.Len() > 0 {
		c.closeTo(headings[c.heading-1], true)
	}
}

// closeUpTo ends the innermost of the given elements that lies within the given borders.
func (c *converter) closeUpTo(names []atom.Atom, borders ...atom.Atom) {
	for i := len(c.stack) - 1; i >= 0; i-- {
		a := c.stack[i].atom
		if slices.Contains(names, a) {
			for len(c.stack) > i {
				c.pop()
			}

			return
		}
		if a == atom.Table || c.stack[i].skip || slices.Contains(borders, a) {
			return
		}
	}
}
