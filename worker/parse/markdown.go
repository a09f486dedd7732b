package parse

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// blockParser finds Markdown's blocks and nothing inside them. The text of a block is its source, so links and emphasis
// need no parsing, and links, link definitions and table cells are where goldmark's time and memory can grow with the
// square of the input. Tables are found by splitTables.
var blockParser = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithParagraphTransformers(util.Prioritized(rawParagraphs{}, 100)),
)

// rawParagraphs replaces paragraphs so that their inline content is not parsed, which saves most of the memory. It
// leaves one that an underline makes a heading: the parser asks before it makes the heading, at the underline.
type rawParagraphs struct{}

// rawParagraph is a paragraph without inline nodes.
type rawParagraph struct{ ast.BaseBlock }

var kindRawParagraph = ast.NewNodeKind("RawParagraph")

func (*rawParagraph) Kind() ast.NodeKind              { return kindRawParagraph }
func (*rawParagraph) IsRaw() bool                     { return true }
func (n *rawParagraph) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

func (rawParagraphs) Transform(node *ast.Paragraph, reader text.Reader, _ parser.Context) {
	if line, _ := reader.PeekLine(); underline.Match(line) {
		return
	}
	raw := &rawParagraph{}
	raw.SetPos(node.Pos())
	node.Parent().ReplaceChild(node.Parent(), node, raw)
}

var (
	atxHeading = regexp.MustCompile(`^#{1,6}([ \t\n]|$)`)
	underline  = regexp.MustCompile(`^[ \t]*(=+|-+)[ \t]*\n?$`)
)

// parseMarkdown makes a block of each top-level block of a Markdown document. Headings become the Path of what follows
// them; those in quotes and lists are text. A document of headings only is its headings' text.
func parseMarkdown(doc *Document) {
	skip, metadata := frontMatter(doc.Text)
	doc.Metadata = metadata
	switch title := metadata["title"].(type) {
	case string:
		doc.Title = oneLine(title)
	case int64:
		doc.Title = strconv.FormatInt(title, 10)
	}
	if skip > 0 && metadata == nil {
		doc.Title = oneLine(lenientTitle(doc.Text[:skip]))
		doc.appendMarkdown(0, skip, Paragraph, nil)
	}

	m := markdown{doc: doc, skip: skip}
	m.walk(blockParser.Parse(text.NewReader(flatten(doc.Text[skip:]))))

	if len(doc.Blocks) == 0 && (m.headings || skip > 0) {
		if block, ok := trimmed(doc.Text, 0, len(doc.Text), Paragraph); ok {
			doc.Blocks = append(doc.Blocks, block)
		}
	}
}

// markdown walks a document's blocks.
type markdown struct {
	doc      *Document
	skip     int // Where the body begins in doc.Text.
	path     []string
	levels   []int // The levels of the headings in path.
	headings bool
	titled   bool
}

// walk cuts the source at the start of each top-level node, so that nothing gets lost between nodes.
func (m *markdown) walk(root ast.Node) {
	from := m.skip
	for node := root.FirstChild(); node != nil; node = node.NextSibling() {
		end := len(m.doc.Text)
		if next := node.NextSibling(); next != nil {
			end = max(from, m.lineStart(m.skip+next.Pos()))
		}
		if heading, ok := node.(*ast.Heading); ok {
			m.heading(heading, from, end)
		} else {
			m.block(node, from, end)
		}
		from = end
	}
}

// lineStart returns the start of the line that offset at is in.
func (m *markdown) lineStart(at int) int {
	return max(m.skip, strings.LastIndexByte(m.doc.Text[:max(at, m.skip)], '\n')+1)
}

func (m *markdown) heading(node *ast.Heading, from, end int) {
	m.headings = true
	source := m.doc.Text[from:end]
	lead := len(source) - len(strings.TrimLeft(source, " \t\n"))
	after := lineEnd(m.doc.Text, min(from+lead, end))
	if !atxHeading.MatchString(source[lead:min(len(source), lead+8)]) { // Underlined: the line behind the last line of its text.
		if n := node.Lines().Len(); n > 0 {
			after = lineEnd(m.doc.Text, m.lineStart(m.skip+node.Lines().At(n-1).Start))
			after = lineEnd(m.doc.Text, min(after, len(m.doc.Text)))
		}
	}

	var raw strings.Builder
	for i := range node.Lines().Len() {
		segment := node.Lines().At(i)
		raw.WriteString(m.doc.Text[m.skip+segment.Start : m.skip+segment.Stop])
		raw.WriteByte(' ')
	}
	title, long := headingText(raw.String())
	if node.Level == 1 && !m.titled && title != "" {
		m.titled = true
		if m.doc.Title == "" {
			m.doc.Title = title
		}
	}

	depth := len(m.levels)
	for depth > 0 && m.levels[depth-1] >= node.Level {
		depth--
	}
	// A new array each time: blocks keep the old one.
	m.path = append(make([]string, 0, depth+1), m.path[:depth]...)
	m.levels = m.levels[:depth]
	if title != "" {
		m.path = append(m.path, title)
		m.levels = append(m.levels, node.Level)
	}
	if long {
		m.doc.appendMarkdown(from, after, Paragraph, m.path)
	}
	m.doc.appendMarkdown(after, end, Paragraph, m.path)
}

func (m *markdown) block(node ast.Node, from, end int) {
	switch node.Kind() {
	case ast.KindThematicBreak:
	case ast.KindCodeBlock, ast.KindFencedCodeBlock:
		if block, ok := trimmed(m.doc.Text, from, end, Code); ok {
			block.Path = m.path
			m.doc.Blocks = append(m.doc.Blocks, block)
		}
	case kindRawParagraph, ast.KindParagraph:
		for _, part := range splitTables(m.doc.Text[from:end]) {
			m.doc.appendMarkdown(from+part.start, from+part.end, part.kind, m.path)
		}
	default:
		m.doc.appendMarkdown(from, end, Paragraph, m.path)
	}
}

// appendMarkdown appends text[start:end] without its comments, unless nothing is left.
func (doc *Document) appendMarkdown(start, end int, kind Kind, path []string) {
	block, ok := trimmed(doc.Text, start, end, kind)
	if !ok {
		return
	}
	if bare := withoutComments(block.Text); len(bare) < len(block.Text) {
		rest, ok := trimmed(bare, 0, len(bare), kind)
		if !ok {
			return
		}
		block.Text = rest.Text
	}
	block.Path = path
	if kind == Table {
		second := lineEnd(block.Text, lineEnd(block.Text, 0))
		block.Header = strings.TrimRight(block.Text[:second], "\n")
	}
	doc.Blocks = append(doc.Blocks, block)
}
