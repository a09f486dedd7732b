package html

import "golang.org/x/net/html/atom"

var headings = []atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}

func isHeading(a atom.Atom) bool { return headingLevel(a) > 0 }

func headingLevel(a atom.Atom) int {
	for i, h := range headings {
		if a == h {
			return i + 1
		}
	}

	return 0
}

// void reports whether an element has no content and no end tag.
func void(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta,
		atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	default:
		return false
	}
}

// rawText reports whether the tokenizer takes an element's content for text up to its end tag.
func rawText(a atom.Atom) bool {
	switch a {
	case atom.Iframe, atom.Noembed, atom.Noframes, atom.Noscript, atom.Plaintext, atom.Script, atom.Style, atom.Textarea,
		atom.Title, atom.Xmp:
		return true
	default:
		return false
	}
}

// dropped reports whether an element's content is not part of the text.
func dropped(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Nav, atom.Iframe, atom.Noembed, atom.Noframes,
		atom.Object, atom.Audio, atom.Video, atom.Canvas, atom.Svg, atom.Select, atom.Datalist, atom.Textarea, atom.Annotation:
		return true
	default:
		return false
	}
}

// block reports whether an element stands on lines of its own.
func block(a atom.Atom) bool {
	switch a {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Caption, atom.Center, atom.Dd, atom.Details,
		atom.Dialog, atom.Dir, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Hr, atom.Legend, atom.Li,
		atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Summary, atom.Table, atom.Tbody,
		atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Ul, atom.Xmp, atom.Listing, atom.Plaintext:
		return true
	default:
		return false
	}
}

// structural reports whether it matters where an element ends.
func structural(a atom.Atom) bool { return block(a) || a == atom.Title }

func tablePart(a atom.Atom) bool {
	switch a {
	case atom.Table, atom.Tbody, atom.Td, atom.Tfoot, atom.Th, atom.Thead, atom.Tr, atom.Caption:
		return true
	default:
		return false
	}
}

// endsParagraph reports whether an element can't stand in a paragraph.
func endsParagraph(a atom.Atom) bool {
	return block(a) && !(tablePart(a) && a != atom.Table) && a != atom.Body && a != atom.Legend
}

// endsHeading reports whether an element in a heading means that its end tag is missing.
func endsHeading(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Pre, atom.Section, atom.Article, atom.Blockquote, atom.Main:
		return true
	default:
		return isHeading(a)
	}
}
