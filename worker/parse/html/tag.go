package html

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// tag is a start tag with the attributes that matter.
type tag struct {
	atom   atom.Atom
	hidden bool

	alt, lang, role         string
	colspan, rowspan, start string
	name, content           string // Of a meta element.
}

func readTag(z *html.Tokenizer) tag {
	name, more := z.TagName()
	t := tag{atom: atom.Lookup(name)}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "hidden":
			t.hidden = !bytes.EqualFold(value, []byte("until-found"))
		case "style":
			t.hidden = t.hidden || displayNone(value)
		case "alt":
			t.alt = string(value)
		case "lang", "xml:lang":
			t.lang = string(value)
		case "role":
			t.role = string(value)
		case "colspan":
			t.colspan = string(value)
		case "rowspan":
			t.rowspan = string(value)
		case "start":
			t.start = string(value)
		case "name":
			t.name = strings.ToLower(string(value))
		case "content":
			t.content = string(value)
		}
	}
	if t.atom == atom.Html || t.atom == atom.Body {
		t.hidden = false // Pages that hide themselves show themselves by script.
	}

	return t
}

// displayNone reports whether an inline style hides its element.
func displayNone(style []byte) bool {
	compact := strings.ToLower(strings.Join(strings.Fields(string(style)), ""))
	for rule := range strings.SplitSeq(compact, ";") {
		if strings.TrimSuffix(rule, "!important") == "display:none" {
			return true
		}
	}

	return false
}
