package office

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/kb-search/kb/worker/parse/build"
)

// paragraphProperties reads the properties of the open paragraph.
func (w *word) paragraphProperties(d *build.Decoder) error {
	p := w.paragraph()
	if p == nil {
		return d.Skip()
	}
	listed, level := false, 0

	err := eachProperty(d, func(e xml.StartElement) {
		value := build.Attr(e, "val")
		switch e.Name.Local {
		case "pStyle":
			p.style = w.styles[value]
		case "outlineLvl":
			p.outline = outlineLevel(value)
		case "numId":
			if listed = value != "0"; !listed {
				p.list = -1
			}
		case "ilvl":
			level, _ = strconv.Atoi(value)
		}
	})
	if listed {
		p.list = min(max(level, 0), maxIndent) + 1
	}

	return err
}

// runProperties reads the properties of a run: whether it is hidden.
func (w *word) runProperties(d *build.Decoder) error {
	p := w.paragraph()
	if p == nil {
		return d.Skip()
	}

	return eachProperty(d, func(e xml.StartElement) {
		switch value := build.Attr(e, "val"); e.Name.Local {
		case "vanish":
			p.hidden = isOn(value)
		case "rStyle":
			p.hidden = p.hidden || w.styles[value].hidden
		}
	})
}

// tableProperties reads the properties of a cell or row.
func (w *word) tableProperties(d *build.Decoder) error {
	return eachProperty(d, func(e xml.StartElement) {
		if w.tables != 1 {
			return
		}
		switch e.Name.Local {
		case "gridSpan":
			w.table.span, _ = strconv.Atoi(build.Attr(e, "val"))
		case "gridBefore":
			n, _ := strconv.Atoi(build.Attr(e, "val"))
			w.table.pad(n)
		case "del":
			w.table.deleted = true
		}
	})
}

// eachProperty calls f for each start tag up to the end of the element whose start was the last token, except what it
// was before a tracked change.
func eachProperty(d *build.Decoder, f func(xml.StartElement)) error {
	for depth := 1; depth > 0; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if strings.HasSuffix(t.Name.Local, "Change") {
				if err := d.Skip(); err != nil {
					return err
				}

				continue
			}
			depth++
			f(t)
		case xml.EndElement:
			depth--
		}
	}

	return nil
}
