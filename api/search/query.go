package search

import (
	"html"
	"regexp"
	"strings"
)

// words is a query as the lexical arm takes it.
type words struct {
	// text is what is looked for, phrases what must be there, excluded what must not.
	text              string
	phrases, excluded []string
}

// operator is a "quoted phrase", which may be excluded, or an excluded word, at the beginning of a word.
var operator = regexp.MustCompile(`(^|\s)(-?)"([^"]*)"|(^|\s)-([^\s"]\S*)`)

// readQuery takes the operators out of a query, if the request has any.
func readQuery(request Request) words {
	if !request.Operators {
		return words{text: head(request.Query)}
	}
	var w words
	rest := operator.ReplaceAllStringFunc(head(request.Query), func(match string) string {
		parts := operator.FindStringSubmatch(match)
		text := parts[3] + parts[5]
		switch {
		case !searchable(text):
			return match
		case parts[2] == "" && parts[5] == "":
			w.phrases = append(w.phrases, text)
			return " " + text + " "
		default:
			w.excluded = append(w.excluded, text)
			return " "
		}
	})
	w.text = strings.TrimSpace(rest)
	return w
}

// meaning is the text whose meaning is looked for: the query without its operators.
func meaning(request Request) string {
	if request.Operators {
		return readQuery(request).text
	}
	return request.Query
}

// The marks of a highlight, which no text holds: they are private to Unicode, and text that is stored has none of them left.
const (
	markStart = "\uE000"
	markStop  = "\uE001"
)

const highlightOptions = "StartSel=" + markStart + ", StopSel=" + markStop + ", MaxFragments=2, MaxWords=35, MinWords=15, FragmentDelimiter= … "

// Marked writes a highlight as HTML: escaped, with the words that were found in <mark>.
func Marked(highlight string) string {
	return strings.NewReplacer(markStart, "<mark>", markStop, "</mark>").Replace(html.EscapeString(highlight))
}
