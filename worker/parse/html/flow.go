package html

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html/atom"
)

const (
	maxIndent = 8        // Levels of lists that are indented.
	maxItems  = 32 << 10 // Bytes of a list's block, which ends at the next line.
)

// list is an open list.
type list struct {
	atom   atom.Atom
	number int // Of the next item.
}

// begin handles the start of an element that is part of the text.
func (c *converter) begin(t tag) {
	if block(t.atom) {
		c.flush()
	}
	switch t.atom {
	case atom.Title:
		c.title = true
	case atom.Ul, atom.Ol, atom.Dl, atom.Menu, atom.Dir:
		c.beginList(t)
	case atom.Li, atom.Dt, atom.Dd:
		c.beginItem(t.atom)
	case atom.Pre, atom.Xmp, atom.Listing, atom.Plaintext:
		c.layout()
		c.pre++
	case atom.Table:
		c.layout()
		c.flushItems()
		c.tables = append(c.tables, &table{layout: t.role == "presentation" || t.role == "none"})
	case atom.Td, atom.Th:
		c.beginCell(t)
	default:
		if level := headingLevel(t.atom); level > 0 {
			c.layout()
			c.flushItems()
			c.heading = level
		}
	}
}

// finish handles the end of an element that is part of the text.
func (c *converter) finish(a atom.Atom) {
	switch a {
	case atom.Title:
		c.title = false
		c.page.Title = strings.TrimSpace(c.page.Title)
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		c.endHeading()
	case atom.Pre, atom.Xmp, atom.Listing, atom.Plaintext:
		c.endCode()
	case atom.Ul, atom.Ol, atom.Dl, atom.Menu, atom.Dir:
		c.flush()
		c.marker = ""
		if c.lists = c.lists[:max(len(c.lists)-1, 0)]; len(c.lists) == 0 {
			c.flushItems()
		}
	case atom.Td, atom.Th:
		c.flush()
		c.endCell()
	case atom.Tr:
		c.flush()
		c.endRow()
	case atom.Table:
		c.flush()
		c.endTable()
	default:
		if block(a) {
			c.flush()
		}
	}
}

func (c *converter) voidElement(t tag) {
	switch t.atom {
	case atom.Br:
		switch {
		case c.pre > 0:
			c.code.WriteByte('\n')
		case c.heading > 0 || c.inCell():
			c.space = true
		default:
			c.inline.WriteByte('\n')
			c.space = false
		}
	case atom.Hr:
		c.flush()
	case atom.Img:
		c.text(t.alt)
	case atom.Meta:
		switch t.name {
		case "description":
			c.page.Description = t.content
		case "author":
			c.page.Author = t.content
		case "keywords":
			c.page.Keywords = t.content
		}
	}
}

// text appends text with its white space made single spaces, except in code.
func (c *converter) text(s string) {
	switch {
	case c.skip > 0:
		return
	case c.title:
		if len(c.page.Title) < 1000 {
			c.page.Title += s
		}

		return
	case c.pre > 0:
		c.code.WriteString(s)

		return
	}
	for s != "" {
		word := strings.IndexFunc(s, collapsed)
		if word != 0 {
			if word < 0 {
				word = len(s)
			}
			if c.space && c.inline.Len() > 0 {
				c.inline.WriteByte(' ')
			}
			c.space = false
			c.inline.WriteString(s[:word])
			s = s[word:]

			continue
		}
		c.space = c.inline.Len() > 0 && !strings.HasSuffix(c.inline.String(), "\n")
		s = strings.TrimLeftFunc(s, collapsed)
	}
}

// collapsed reports whether r is white space that browsers collapse, or the space that does not break.
func collapsed(r rune) bool { return r == '\u00a0' || r < 0x80 && unicode.IsSpace(r) }

// flush ends the line or paragraph under construction.
func (c *converter) flush() {
	if c.pre > 0 {
		if s := c.code.String(); s != "" && !strings.HasSuffix(s, "\n") {
			c.code.WriteByte('\n')
		}

		return
	}
	if c.heading > 0 {
		c.space = c.inline.Len() > 0

		return
	}
	text := strings.TrimSpace(c.inline.String())
	c.inline.Reset()
	c.space = false
	switch {
	case text == "":
	case c.inCell():
		c.cell(text)
	case len(c.lists) > 0:
		c.item(text)
	default:
		c.b.Paragraph(text)
	}
}

func (c *converter) endHeading() {
	text := strings.TrimSpace(c.inline.String())
	level := c.heading
	c.inline.Reset()
	c.space, c.heading = false, 0
	if level == 0 {
		return
	}
	if level == 1 && c.page.Heading == "" {
		c.page.Heading = text
	}
	c.b.Heading(level, text)
}

func (c *converter) endCode() {
	if c.pre--; c.pre > 0 {
		return
	}
	c.flushItems()
	c.b.Code(c.code.String())
	c.code.Reset()
}

func (c *converter) beginList(t tag) {
	l := list{atom: t.atom, number: 1}
	if n, err := strconv.Atoi(t.start); err == nil {
		l.number = n
	}
	c.lists = append(c.lists, l)
	c.marker = ""
}

func (c *converter) beginItem(a atom.Atom) {
	c.marker = "- "
	if len(c.lists) == 0 {
		return
	}
	switch l := &c.lists[len(c.lists)-1]; {
	case a == atom.Dt:
		c.marker = ""
	case a == atom.Dd:
		c.marker = "  "
	case l.atom == atom.Ol:
		c.marker = strconv.Itoa(l.number) + ". "
		l.number++
	}
}

// item appends a line of a list. Further lines of an item stand under its first.
func (c *converter) item(text string) {
	indent := strings.Repeat("  ", min(len(c.lists)-1, maxIndent))
	if c.marker == "" && c.items.Len() > 0 && c.lists[len(c.lists)-1].atom != atom.Dl {
		indent += "  "
	}
	if c.items.Len() > 0 {
		c.items.WriteByte('\n')
	}
	c.items.WriteString(indent + c.marker + strings.ReplaceAll(text, "\n", "\n"+indent+"  "))
	c.marker = ""
	if c.items.Len() >= maxItems {
		c.flushItems()
	}
}

// flushItems makes a block of the list's lines.
func (c *converter) flushItems() {
	if c.items.Len() > 0 {
		c.b.Paragraph(c.items.String())
		c.items.Reset()
	}
}
