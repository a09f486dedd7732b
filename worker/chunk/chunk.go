// Package chunk cuts a parsed document into chunks that fit an embedding model's window. It is pure: no database, no
// network, no clock; how tokens are counted is the caller's. Its invariants: the enriched text of a chunk never takes
// more than Options.Size tokens, no chunk is blank, and together the chunks hold all of the document's text, in order.
//
// There is one idea in it. A section's text is cut into pieces: whole paragraphs, lines or records where they fit,
// sentences, words or characters where they don't (pieces.go). Each border between pieces has a price. Then pieces are
// joined to chunks of about equal size, so that the sum of prices is lowest (pack.go).
package chunk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kb-search/kb/worker/parse"
)

const (
	// DefaultMaxBytes is what Options.MaxBytes defaults to.
	DefaultMaxBytes = 8 << 10
	minSize         = 16
	minMaxBytes     = 256
)

// The strategies: what a chunk never reaches over, besides the end of the document.
const (
	// BySection keeps chunks within a section.
	BySection = "section"
	// ByPage keeps chunks within a section and a page, or slide.
	ByPage = "page"
)

// Options says how large chunks may be.
type Options struct {
	// Strategy is BySection or ByPage. Defaults to BySection.
	Strategy string
	// Size is the number of tokens that a chunk's enriched text may take: the model's window without special tokens.
	Size int
	// Overlap is the number of tokens at the end of a chunk that the next chunk of the same section repeats, at most.
	// Defaults to 0.
	Overlap int
	// MaxBytes limits the length of a chunk's text where tokens don't: one token can be a word of 5,000 letters.
	// Defaults to DefaultMaxBytes.
	MaxBytes int
	// Count returns the number of tokens in a text. It should be additive over pieces of a text cut at white space.
	Count func(string) int
}

// Validate reports all that is wrong with the options.
func (o Options) Validate() error {
	var errs []error
	if o.Size < minSize {
		errs = append(errs, fmt.Errorf("chunk size is %d tokens, must be at least %d", o.Size, minSize))
	}
	if o.Overlap < 0 || o.Overlap > o.Size/2 {
		errs = append(errs, fmt.Errorf("chunk overlap is %d tokens, must be between 0 and half of the size %d", o.Overlap, o.Size))
	}
	if o.MaxBytes != 0 && o.MaxBytes < minMaxBytes {
		errs = append(errs, fmt.Errorf("chunk limit is %d bytes, must be 0 (default) or at least %d", o.MaxBytes, minMaxBytes))
	}
	if o.Strategy != "" && o.Strategy != BySection && o.Strategy != ByPage {
		errs = append(errs, fmt.Errorf("chunk strategy is %q, must be %s or %s", o.Strategy, BySection, ByPage))
	}
	if o.Count == nil {
		errs = append(errs, errors.New("chunk needs a function that counts tokens"))
	}

	return errors.Join(errs...)
}

// Chunk is a stretch of a document that is embedded and found as one.
type Chunk struct {
	// Seq numbers a document's chunks from 0.
	Seq int
	// Text is the document's own text; in tables and data files the header comes first.
	Text string
	// Section holds the headings above, as in "Setup > Linux"; empty without headings.
	Section string
	// Page is the 1-indexed page on which the chunk begins, 0 where the source has no pages.
	Page int
	// Start and End are the chunk's byte range in the document's decoded text, a repeated header not included.
	Start, End int
	// Prefix is what goes before the text where it is embedded: title and section, cut to their share of the window.
	// The chunks of a section share one.
	Prefix string
}

// EnrichedText is what is embedded: title, section and text, a line each; empty ones are left out. Each text that is embedded
// for a chunk is built here. It is built anew each time, since the texts of all chunks of a
// large file twice over would take as much memory again.
func (c Chunk) EnrichedText() string {
	switch {
	case c.Prefix == "":
		return c.Text
	case c.Text == "":
		return c.Prefix
	default:
		return c.Prefix + "\n" + c.Text
	}
}

// Heading is what stands above the text in the enriched text: the title and, unless it is the same, the section.
func Heading(title, section string) string {
	switch {
	case section == "" || section == title:
		return title
	case title == "":
		return section
	default:
		return title + "\n" + section
	}
}

// Split cuts a document into chunks. A title or section that is too long for its share of the window is cut in the
// enriched text only. What takes no token at all, such as lone accents, makes no chunk. It panics if opt is invalid. It
// calls Count a few times per piece of text, so the time it takes grows with the length of the document; when ctx ends, it
// stops with ctx's error.
func Split(ctx context.Context, doc parse.Document, title string, opt Options) ([]Chunk, error) {
	if err := opt.Validate(); err != nil {
		panic("chunk: " + err.Error())
	}
	if opt.MaxBytes == 0 {
		opt.MaxBytes = DefaultMaxBytes
	}

	s := splitter{Options: opt, ctx: ctx, title: title}
	for i := range doc.Blocks {
		block := &doc.Blocks[i]
		switch {
		case i == 0 || !slices.Equal(block.Path, doc.Blocks[i-1].Path):
			s.flush()
			s.enter(block.Path)
		case opt.Strategy == ByPage && block.Page != doc.Blocks[i-1].Page:
			s.flush()
		}
		s.add(block)
	}
	s.flush()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cut into chunks: %w", context.Cause(ctx))
	}

	return s.chunks, nil
}

// splitter is the state of one Split.
type splitter struct {
	Options

	// ctx is looked at for each piece; once it has ended, nothing more is cut.
	ctx    context.Context //nolint:containedctx // It lives as long as the call of Split that it belongs to.
	title  string
	chunks []Chunk

	// The section that is being cut.
	section string
	// heading is the title and the section as the enriched text has them.
	heading string
	// sectionRoom is the number of tokens that the section leaves for text; room and bytes are what a header leaves of
	// that and of MaxBytes for a single piece or chunk.
	sectionRoom, room, bytes int
	header                   string

	// pieces waits to be packed; previous is what the chunk before them was made of.
	pieces, previous []piece
	tokens           int
	length           int
}

// enter begins a section.
func (s *splitter) enter(path []string) {
	s.section = strings.Join(path, " > ")
	s.heading = Heading(s.shorten(s.title, path))
	s.sectionRoom = s.Size - s.Count(s.heading)
	s.setHeader("")
}

// setHeader begins a stretch of text each chunk of which has a header.
func (s *splitter) setHeader(header string) {
	s.header, s.room, s.bytes = header, s.sectionRoom, s.MaxBytes
	if header != "" {
		s.room -= s.Count(header)
		s.bytes -= len(header) + 1
	}
}

// add cuts a block into pieces.
func (s *splitter) add(block *parse.Block) {
	header := block.Header
	if block.Kind == parse.Table {
		if _, fits := s.measure(block.Text); fits && s.header == "" {
			header = "" // The whole table goes into one chunk, perhaps with the text around it.
		}
	}
	// A header that leaves too little room is text like any other: it is at the start of its first block.
	if len(header) > s.MaxBytes/4 || header != "" && s.Count(header) > s.sectionRoom/2 {
		header = ""
	}
	if header != s.header || header != "" && block.Kind == parse.Table {
		s.flush()
		s.setHeader(header)
	}

	start := 0
	if rest, found := strings.CutPrefix(block.Text, header+"\n"); header != "" && found {
		start = len(block.Text) - len(rest)
	}
	if start > 0 && parse.Blank(block.Text[start:]) || block.Text == strings.TrimRight(header, " \t") {
		s.setHeader("") // A table without rows, or of rows that nobody can see, is its header.
		start = 0
	}
	s.cut(block, start)
	s.length += len(block.Text) + len(separator)
}
