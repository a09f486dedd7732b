// Package code turns source code into blocks: one for each function, method and type, and one for each run of imports
// and statements between them. It owns which languages are known and how they are cut; how long a block may be is
// chunk's business. Its invariant: whatever the text, every line that isn't blank is in exactly one block, in order.
package code

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	sitter "github.com/smacker/go-tree-sitter"

	"github.com/kb-search/kb/worker/parse"
)

// Type is the document type of source code.
const Type = "code"

// Deadline is how long a grammar may take for a file. What takes longer is cut at blank lines.
const Deadline = 5 * time.Second

const (
	// smallClass is the number of lines below which a class is one block.
	smallClass = 30
	// manyStatements is the number of lines above which a run of statements is cut at blank lines, into blocks of at
	// least fewStatements lines.
	manyStatements, fewStatements = 30, 10
	// softLimit is the number of bytes above which a block without structure ends at the next blank line, wherever.
	softLimit = 32 << 10
)

var errDeadline = errors.New("parsing the source code took too long")

// Parse cuts a file's text, which must be valid UTF-8 with \n as line end. The extension says its language, with or
// without the dot. Text in a language without a grammar, text that a grammar can't make sense of and text that takes it
// longer than Deadline, or than ctx allows, is cut at blank lines. Blank text has no blocks. It is safe for concurrent
// use.
func Parse(ctx context.Context, extension, text string) parse.Document {
	doc := parse.Document{Type: Type, Text: text}
	f := newFile(text)
	lang := languages["."+strings.ToLower(strings.TrimPrefix(extension, "."))]
	if lang.grammar != nil && f.outline(ctx, lang.grammar) {
		doc.Blocks = f.blocks()
	} else {
		doc.Blocks = f.paragraphs(nil, 0, f.rows(), nil, 1)
	}

	return doc
}

// file is a text whose lines are given to units.
type file struct {
	text string
	// starts holds the offset of each line, and the text's length at the end.
	starts []int
	// owner is the index in units of the unit that a line belongs to.
	owner []int
	units []unit
	// doubt marks lines that the grammar is not sure of.
	doubt []bool
	// claimed is the row up to which lines belong to the last definition, claimer.
	claimed, claimer int
}

// unit is a definition, or the file itself.
type unit struct {
	path []string
	// whole says that the unit's lines are one block; else they are what is between the definitions in it.
	whole bool
	// space says that the unit is a namespace.
	space bool
	// outer is the path of what the unit is in.
	outer []string
	// row is the line with the unit's name, below its comments, and column the indentation of that.
	row, column int
}

func newFile(text string) *file {
	f := &file{text: text, starts: []int{0}, claimed: -1}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' && i+1 < len(text) {
			f.starts = append(f.starts, i+1)
		}
	}
	f.starts = append(f.starts, len(text))
	f.owner = make([]int, f.rows())
	f.doubt = make([]bool, f.rows())
	f.units = []unit{{}}

	return f
}

func (f *file) rows() int { return len(f.starts) - 1 }

// line returns a line with its line end.
func (f *file) line(row int) string { return f.text[f.starts[row]:f.starts[row+1]] }

// outline gives each line to its definition. It reports false when the grammar can't make sense of the text.
func (f *file) outline(ctx context.Context, g *grammar) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, Deadline, errDeadline)
	defer cancel()

	parser := sitter.NewParser()
	defer parser.Close()
	parser.SetLanguage(g.language())
	source := []byte(f.text)
	tree, err := parser.ParseCtx(ctx, nil, source)
	if err != nil {
		return false
	}
	defer tree.Close()

	root := tree.RootNode()
	cursor := sitter.NewTreeCursor(root)
	defer cursor.Close()
	w := walker{file: f, grammar: g, symbols: g.symbols(), source: source, cursor: cursor, broken: root.HasError()}
	if root.IsError() {
		f.markDoubt(0, f.rows()-1)
	}
	if cursor.GoToFirstChild() {
		w.walk(scope{}, 0)
		w.divide()
	}
	if w.broken {
		f.rescue(g)
	}

	return f.sure()
}

// sure reports whether most of the text is in definitions, or in lines that the grammar is sure of.
func (f *file) sure() bool {
	doubtful, total := 0, 0
	for row, id := range f.owner {
		if size := len(strings.TrimSpace(f.line(row))); size > 0 {
			total += size
			if f.doubt[row] && !f.units[id].whole {
				doubtful += size
			}
		}
	}

	return doubtful <= total/2
}

func (f *file) markDoubt(first, last int) {
	for row := first; row <= min(last, f.rows()-1); row++ {
		f.doubt[row] = true
	}
}

// add gives lines to a new unit. Lines that a definition has claimed already stay with it: what begins where another
// ends can't be told apart by lines, so both are one, named for what they have in common.
func (f *file) add(u unit, first, last int) int {
	last = min(last, f.rows()-1)
	if first <= f.claimed {
		owner := &f.units[f.claimer]
		owner.path = common(owner.path, u.path)
		f.paint(f.claimer, f.claimed+1, last)
		f.claimed = max(f.claimed, last)

		return f.claimer
	}
	f.units = append(f.units, u)
	id := len(f.units) - 1
	f.paint(id, first, last)
	if u.whole {
		f.claimed, f.claimer = last, id
	}

	return id
}

func (f *file) paint(id, first, last int) {
	for row := first; row <= last; row++ {
		f.owner[row] = id
	}
}

func common(a, b []string) []string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}

	return a[:n:n]
}

// blocks makes blocks of the lines as they were given to units.
func (f *file) blocks() []parse.Block {
	type run struct{ first, end, id int }
	var runs []run
	for row := 0; row < f.rows(); {
		r := run{first: row, id: f.owner[row]}
		for row < f.rows() && f.owner[row] == r.id {
			row++
		}
		r.end = row
		if n := len(runs); n > 0 && !f.units[r.id].whole {
			// What closes an outer element, and blank lines, stay with what is before.
			closing := f.closing(r.first, r.end)
			runs[n-1].end = closing
			if closing == r.end {
				continue
			}
			r.first = closing
			if f.units[r.id].space && r.end-r.first <= 2 && !f.units[runs[n-1].id].whole {
				runs[n-1].end = r.end // The line that opens a namespace says too little to stand alone.

				continue
			}
		}
		runs = append(runs, r)
	}

	var blocks []parse.Block
	for _, r := range runs {
		u := f.units[r.id]
		if u.whole {
			blocks = f.block(blocks, r.first, r.end, u.path)
		} else if r.end-r.first > manyStatements {
			blocks = f.paragraphs(blocks, r.first, r.end, u.path, fewStatements)
		} else {
			blocks = f.block(blocks, r.first, r.end, u.path)
		}
	}

	return blocks
}

// closing returns the row behind the lines from first on that are blank or close brackets.
func (f *file) closing(first, end int) int {
	for row := first; row < end; row++ {
		line := strings.TrimSpace(f.line(row))
		word, _, _ := strings.Cut(line, " ")
		if line != "" && !strings.ContainsAny(line[:1], "}])") && word != "end" && word != "#endif" {
			return row
		}
	}

	return end
}

// block appends a block of lines, without blank lines around them.
func (f *file) block(blocks []parse.Block, first, end int, path []string) []parse.Block {
	for first < end && parse.Blank(f.line(first)) {
		first++
	}
	if first >= end {
		return blocks
	}
	start := f.starts[first]
	text := strings.TrimRightFunc(f.text[start:f.starts[end]], unicode.IsSpace)

	return append(blocks, parse.Block{Kind: parse.Code, Text: text, Path: path, Start: start, End: start + len(text)})
}

// paragraphs appends blocks of at least least lines that end at blank lines, where an outer element begins. Without
// such places it cuts at any blank line, and at last at any line, so that blocks don't grow with the text.
func (f *file) paragraphs(blocks []parse.Block, first, end int, path []string, least int) []parse.Block {
	outer := -1
	for row := first; row < end; row++ {
		if line := f.line(row); !parse.Blank(line) && (outer < 0 || indent(line) < outer) {
			outer = indent(line)
		}
	}
	from, blank := first, false
	for row := first; row < end; row++ {
		line := f.line(row)
		if parse.Blank(line) {
			blank = true

			continue
		}
		size := f.starts[row] - f.starts[from]
		begins := indent(line) <= outer && !strings.ContainsAny(line[:1], "}])")
		if row-from >= least && blank && begins || blank && size >= softLimit || size >= 2*softLimit {
			blocks = f.block(blocks, from, row, path)
			from = row
		}
		blank = false
	}

	return f.block(blocks, from, end, path)
}

func indent(line string) int {
	return len(line) - len(strings.TrimLeft(line, " \t"))
}

// name makes a name of source text: one line, not long.
func name(s string) string {
	const limit = 80
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}

	return s
}

// join returns path with names appended; path itself is shared.
func join(path []string, names ...string) []string {
	path = slices.Clone(path)
	for _, n := range names {
		if n = name(n); n != "" {
			path = append(path, n)
		}
	}

	return path
}
