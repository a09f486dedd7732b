package office

import (
	"encoding/xml"
	"regexp"
	"strconv"
	"strings"

	"github.com/kb-search/kb/worker/parse/build"
)

// style is what a Word style says that matters for text.
type style struct {
	name    string
	basedOn string
	outline int // The level of heading from 1; 0 where the style doesn't say, -1 where it says body text.
	list    int // The level of list from 1, 0 for none.
	hidden  bool
	title   bool
	toc     bool
}

// headingName matches the names of built-in heading styles. Word keeps them in English whatever its language; other
// programs write them as they like.
var headingName = regexp.MustCompile(`^(?:heading|überschrift|titre|título|titolo|kop|rubrik|overskrift|otsikko|nagłówek|nadpis|заголовок|标题|見出し|제목) ?([1-9])$`)

// listName matches the names of built-in styles of lists, whose level is in the name only.
var listName = regexp.MustCompile(`^list (?:bullet|number)(?: ([2-5]))?$`)

const maxStyleChain = 20

// styles maps the identifiers of styles to what they mean, with what they are based on already taken in.
type styles map[string]style

// readStyles reads the styles part, none where it is missing or damaged.
func readStyles(a *build.Archive, kind build.Kind, part string) (styles, error) {
	raw := styles{}
	if part == "" || !a.Has(part) {
		return raw, nil
	}
	var id string
	var s style
	open := false
	err := eachToken(a, kind, part, func(_ *build.Decoder, token xml.Token) error {
		switch t := token.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "style":
				id, s, open = build.Attr(t, "styleId"), style{}, true
			case "name":
				s.name = strings.ToLower(build.Line(build.Attr(t, "val")))
			case "basedOn":
				s.basedOn = build.Attr(t, "val")
			case "outlineLvl":
				s.outline = outlineLevel(build.Attr(t, "val"))
			case "numId":
				s.list = max(s.list, 1)
				if build.Attr(t, "val") == "0" {
					s.list = 0
				}
			case "ilvl":
				if n, err := strconv.Atoi(build.Attr(t, "val")); err == nil && n >= 0 && n < 9 {
					s.list = n + 1
				}
			case "vanish":
				s.hidden = isOn(build.Attr(t, "val"))
			}
		case xml.EndElement:
			if t.Name.Local == "style" && open {
				raw[id], open = s, false
			}
		}

		return nil
	})
	if err != nil {
		return nil, err
	}

	resolved := make(styles, len(raw))
	for id := range raw {
		resolved[id] = raw.resolve(id)
	}

	return resolved, nil
}

// outlineLevel reads a level of the outline: 0 to 8 are headings, 9 is body text.
func outlineLevel(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > 8 {
		return -1
	}

	return n + 1
}

// resolve takes in what a style is based on.
func (all styles) resolve(id string) style {
	var result style
	for range maxStyleChain {
		s, found := all[id]
		if !found {
			break
		}
		if result.outline == 0 {
			if result.outline = s.outline; result.outline == 0 {
				if m := headingName.FindStringSubmatch(s.name); m != nil {
					result.outline = int(m[1][0] - '0')
				}
			}
		}
		if result.list == 0 {
			result.list = s.list
			if m := listName.FindStringSubmatch(s.name); m != nil {
				level, _ := strconv.Atoi(m[1])
				result.list = max(level, 1)
			}
		}
		result.hidden = result.hidden || s.hidden
		result.title = result.title || s.name == "title"
		result.toc = result.toc || strings.HasPrefix(s.name, "toc ")
		if id == s.basedOn {
			break
		}
		id = s.basedOn
	}

	return result
}
