package office

import (
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

// maxTitle is how long a slide's title may be; what follows is text.
const maxTitle = 500

// noPlaceholder says that a shape is a text box.
const noPlaceholder = "none"

// start handles a start tag. Elements that are not named here, such as groups, are walked through.
func (s *slide) start(d *build.Decoder, e xml.StartElement) error {
	switch e.Name.Local {
	case "AlternateContent":
		s.taken = append(s.taken, false)
	case "Choice", "Fallback":
		if n := len(s.taken); n > 0 {
			if s.taken[n-1] {
				return d.Skip()
			}
			s.taken[n-1] = true
		}
	case "sp", "graphicFrame":
		s.placeholder = noPlaceholder
	case "ph":
		s.placeholder = build.Attr(e, "type") // Absent for a body.
	case "tbl":
		s.endShape()
		s.table = &grid{}
	case "tc":
		if s.table != nil {
			s.table.span, _ = strconv.Atoi(build.Attr(e, "gridSpan"))
			if isSet(e, "hMerge") {
				s.table.merged = true
			}
		}
	case "p":
		s.open, s.level, s.bare = true, 0, false
		s.text.Reset()
	case "pPr":
		s.level, _ = strconv.Atoi(build.Attr(e, "lvl"))
	case "buNone":
		s.bare = true
	case "fld":
		if build.Attr(e, "type") == "slidenum" {
			return d.Skip()
		}
	case "t":
		s.inText = s.open
	case "br":
		s.text.WriteByte('\n')
	case "extLst":
		return d.Skip()
	}

	return nil
}

func isSet(e xml.StartElement, attr string) bool {
	value := build.Attr(e, attr)

	return value == "1" || value == "true"
}

func (s *slide) end(name string) {
	switch name {
	case "AlternateContent":
		if n := len(s.taken); n > 0 {
			s.taken = s.taken[:n-1]
		}
	case "t":
		s.inText = false
	case "p":
		if s.open {
			s.open = false
			s.paragraph(strings.TrimSpace(build.Clean(s.text.String())))
		}
	case "tc":
		if s.table != nil {
			s.table.endCell()
		}
	case "tr":
		if s.table != nil {
			s.table.endRow()
		}
	case "tbl":
		if s.table != nil {
			s.shapes = append(s.shapes, shape{rows: s.table.rows})
			s.table = nil
		}
	case "sp", "graphicFrame":
		s.endShape()
		s.placeholder = noPlaceholder
	}
}

// paragraph takes in a paragraph of the open shape.
func (s *slide) paragraph(text string) {
	if parse.Blank(text) {
		return
	}
	if s.table != nil {
		s.table.write(text)

		return
	}
	marker := "- "
	switch s.placeholder {
	case "sldNum", "dt", "ftr", "hdr", "sldImg":
		return
	case "title", "ctrTitle":
		if s.notes {
			return
		}
		if len(s.title) < maxTitle {
			s.title = strings.TrimSpace(s.title + " " + build.Line(text))

			return
		}
	case "subTitle":
		marker = ""
	case noPlaceholder:
		if s.level == 0 && !s.diagram {
			marker = ""
		}
		if s.notes {
			return
		}
	}
	if s.notes || s.bare {
		marker = ""
	}
	writeItem(&s.lines, max(s.level, 0), marker, text)
}

// endShape makes a shape of the lines read.
func (s *slide) endShape() {
	if s.lines.Len() > 0 {
		s.shapes = append(s.shapes, shape{text: s.lines.String()})
		s.lines.Reset()
	}
}
