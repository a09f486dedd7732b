package office

import (
	"encoding/xml"
	"strings"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

var slidesKind = build.Kind{Name: "PowerPoint presentation", Ext: ".pptx"}

// Slides reads a .pptx file in the order of the presentation, hidden slides included: each slide is a page and a section
// under its title, with its speaker notes last. Texts of placeholders are lists. The error is a *parse.Error with the codes
// of Word.
func Slides(data []byte) (parse.Document, error) {
	a, err := build.OpenArchive(data, slidesKind)
	if err != nil {
		return parse.Document{}, err
	}
	main, err := mainPart(a, slidesKind, "ppt/presentation.xml", "presentation")
	if err != nil {
		return parse.Document{}, err
	}
	parts, err := slideParts(a, main)
	if err != nil {
		return parse.Document{}, err
	}

	b := build.New(parse.TypePPTX)
	if title := properties(a, slidesKind, b); !generic(title) {
		b.SetTitle(title)
	}
	for i, part := range parts {
		if err := addSlide(a, b, part, i+1); err != nil {
			return parse.Document{}, err
		}
	}

	return b.Document()
}

// generic reports whether a title is what PowerPoint calls a new presentation.
func generic(title string) bool {
	return len(title) < 40 && strings.Contains(strings.ToLower(title), "powerpoint")
}

// slideParts returns the slides' parts in the order of the presentation.
func slideParts(a *build.Archive, main string) ([]string, error) {
	list, err := relationships(a, slidesKind, main)
	if err != nil {
		return nil, err
	}
	byID := map[string]string{}
	for _, r := range list {
		if r.kind == "slide" && a.Has(r.target) {
			byID[r.id] = r.target
		}
	}
	var parts []string
	err = eachElement(a, slidesKind, main, func(e xml.StartElement) error {
		if e.Name.Local != "sldId" {
			return nil
		}
		for _, attr := range e.Attr {
			if part := byID[attr.Value]; attr.Name.Local == "id" && attr.Name.Space != "" && part != "" {
				parts = append(parts, part)
				delete(byID, attr.Value) // Each slide stands in a presentation once.
			}
		}

		return nil
	})

	return parts, err
}

// addSlide appends a slide and its notes.
func addSlide(a *build.Archive, b *build.Builder, part string, page int) error {
	if b.Full() {
		return nil
	}
	list, err := relationships(a, slidesKind, part)
	if err != nil {
		return err
	}
	s := slide{}
	if err := s.read(a, part); err != nil {
		return err
	}
	for _, r := range list {
		if r.kind == "diagramData" && a.Has(r.target) {
			s.diagram = true
			if err := s.read(a, r.target); err != nil {
				return err
			}
			s.endShape()
		}
	}
	b.SetPage(page)
	b.EndSections() // A slide without a title does not belong to the one before.
	b.SetTitle(s.title)
	b.Heading(1, s.title)
	s.write(b)

	for _, r := range list {
		if r.kind == "notesSlide" && a.Has(r.target) {
			notes := slide{notes: true}
			if err := notes.read(a, r.target); err != nil {
				return err
			}
			notes.write(b)
		}
	}

	return nil
}

// slide collects what stands on a slide: the title has to be known before the rest can be written.
type slide struct {
	notes   bool // Whether this is the page of notes.
	diagram bool // Whether a diagram's data is being read.

	title  string
	shapes []shape
	taken  []bool // For each open AlternateContent, whether one of its branches was read.

	placeholder string // Of the open shape, "none" where it is none.
	lines       strings.Builder
	table       *grid
	inText      bool
	open        bool // Whether a paragraph is open.
	text        strings.Builder
	level       int
	bare        bool // Whether the open paragraph has no bullet.
}

// shape is a text or a table.
type shape struct {
	text string
	rows [][]string
}

func (s *slide) read(a *build.Archive, part string) error {
	return eachToken(a, slidesKind, part, func(d *build.Decoder, token xml.Token) error {
		switch t := token.(type) {
		case xml.StartElement:
			return s.start(d, t)
		case xml.EndElement:
			s.end(t.Name.Local)
		case xml.CharData:
			if s.inText {
				s.text.Write(t)
			}
		}

		return nil
	})
}

// write appends the shapes.
func (s *slide) write(b *build.Builder) {
	for _, shape := range s.shapes {
		b.Paragraph(shape.text)
		b.Table(shape.rows)
	}
}
