package code

import (
	"regexp"
	"strings"

	"github.com/kb-search/kb/worker/parse"
)

// header finds a definition by its first line.
type header struct {
	// line matches it; its groups are the name, or one of several.
	line *regexp.Regexp
	// types matches a line with a type's definition, whose members are indented more.
	types *regexp.Regexp
}

func newHeader(line, types string) header {
	h := header{line: regexp.MustCompile(line)}
	if types != "" {
		h.types = regexp.MustCompile(types)
	}

	return h
}

var (
	goHeader     = newHeader(`^(?:func (?:\([^)]*\) ?)?|type )(\w+)`, ``)
	pythonHeader = newHeader(`^\s*(?:(?:async +)?def|class) +(\w+)`, `^\s*class\b`)
	scriptHeader = newHeader(`^\s*(?:export +)?(?:default +)?(?:declare +)?(?:abstract +)?(?:async +)?(?:function\b *\*? *|class +|interface +|enum +)([\w$]+)`,
		`^[^(]*\b(?:class|interface|enum) `)
	javaHeader = newHeader(`^\s*(?:(?:public|protected|private|static|final|abstract|sealed|synchronized|default|native) +)*(?:(?:class|@?interface|enum|record) +(\w+)|(?:<[^>]*> *)?[\w<>\[\],.?]+ +(\w+) *\([^;=]*\{\s*$)`,
		`^[^(]*\b(?:class|interface|enum|record) `)
	rustHeader = newHeader(`^\s*(?:pub(?:\([^)]*\))? +)?(?:(?:const|async|unsafe|extern(?: +"[^"]*")?) +)*(?:fn|struct|enum|union|trait|impl(?:<[^>]*>)?(?: +[\w:<>]+ +for)?|macro_rules!) +(\w+)`,
		`^[^(]*\b(?:impl|trait)\b`)
	cHeader      = newHeader(`^(?:(?:class|struct|union|enum(?: +class)?) +(\w+)[^;]*|[A-Za-z_][\w:<>,*& ]*[ *&]((?:\w+::)*~?\w+) *\([^;]*)$`, ``)
	csharpHeader = newHeader(`^\s*(?:(?:public|protected|private|internal|static|sealed|abstract|partial|readonly|override|virtual|async|new|unsafe) +)*(?:(?:class|interface|enum|record(?: +(?:struct|class))?|struct) +(\w+)|[\w<>\[\],.?]+ +(\w+) *\([^;=]*\)\s*\{?\s*$)`,
		`^[^(]*\b(?:class|interface|record|struct) `)
	rubyHeader = newHeader(`^\s*(?:def +(?:self\.)?|class +|module +)([\w:?!]+)`, `^\s*(?:class|module)\b`)
	phpHeader  = newHeader(`^\s*(?:(?:public|protected|private|static|final|abstract|readonly) +)*(?:function +&?|class +|interface +|trait +|enum +)(\w+)`,
		`^[^(]*\b(?:class|interface|trait|enum) `)
	bashHeader = newHeader(`^(?:function +([\w:.-]+)|([\w:.-]+) *\(\))`, ``)
	sqlHeader  = newHeader(`(?i)^create +(?:or +replace +)?(?:(?:temp|temporary|unlogged|unique|materialized|global|local) +)*(?:table|view|function|procedure|type|trigger|index|schema|sequence|package(?: +body)?)(?: +concurrently)?(?: +if +not +exists)? +([\w."$]+)`, ``)
)

var (
	// notNames are words that a call or a statement looks like a definition with.
	notNames = regexp.MustCompile(`^(?:if|for|while|switch|return|else|do|case|new|throw|catch|using|lock|await|sizeof|delete)$`)
	// notHeader begins a line that only looks like a definition in a language without a word for functions.
	notHeader = regexp.MustCompile(`^\s*(?:return|else|new|throw|case|goto|await|using|typedef)\b`)
	lead      = regexp.MustCompile(`^\s*(?://|#(?:[^a-z]|$)|/\*|\*|--|@\w|\[\w)`)
)

// rescue finds definitions by their lines where the grammar is not sure. A definition that swallowed others ends where
// a line at its own column or further out begins one.
func (f *file) rescue(g *grammar) {
	type outer struct {
		indent int
		name   string
	}
	var types []outer                            // Rescued types that the line is in.
	given := append([]int(nil), f.owner...)      // By unit, as the grammar has it.
	current, base, inType := -1, given[0], false // The last rescued unit, the unit whose lines it takes, and if it is a type.
	for row, id := range given {
		line := strings.TrimRight(f.line(row), "\n")
		if id != base {
			base, current = id, -1
		}
		if parse.Blank(line) {
			f.take(row, current)

			continue
		}
		column := indent(line)
		for len(types) > 0 && types[len(types)-1].indent >= column {
			types = types[:len(types)-1]
		}
		u := f.units[base]
		within := current < 0 && u.whole && column > u.column || current >= 0 && !inType && column > f.units[current].column
		var found string
		if f.doubt[row] && !within && !(u.whole && row <= u.row) {
			found = g.header.find(line)
		}
		if found == "" {
			if before := f.owner[max(0, row-1)]; f.doubt[row] && current < 0 && !u.whole && f.units[before].whole && column > f.units[before].column {
				current = before // The body of what the grammar saw only the first line of.
			}
			f.take(row, current)

			continue
		}

		path := u.path
		if u.whole {
			path = u.outer
		}
		for _, t := range types {
			path = join(path, t.name)
		}
		f.units = append(f.units, unit{path: join(path, qualified(found)...), whole: true, row: row, column: column})
		current = len(f.units) - 1
		f.take(row, current)
		for above := row - 1; above > u.row && given[above] == base && lead.MatchString(f.line(above)); above-- {
			f.take(above, current)
		}
		if inType = g.header.types != nil && g.header.types.MatchString(line); inType {
			types = append(types, outer{column, found})
		}
	}
}

// take gives a line to a rescued unit, if there is one.
func (f *file) take(row, id int) {
	if id >= 0 {
		f.owner[row] = id
	}
}

// find returns the name of what a line defines, or nothing.
func (h header) find(line string) string {
	const most = 400
	if len(line) > most || notHeader.MatchString(line) {
		return ""
	}
	for i, group := range h.line.FindStringSubmatch(line) {
		if i > 0 && group != "" && !notNames.MatchString(group) {
			return group
		}
	}

	return ""
}
