package chunk

import (
	"strings"

	"github.com/kb-search/kb/worker/parse"
)

// piece is a stretch of a block's text that fits into a chunk.
type piece struct {
	block *parse.Block
	// start and end are the piece's range in block.Text.
	start, end int
	// at is where the piece begins in the texts of all blocks that wait, laid end to end.
	at     int
	tokens int
	// price is what it costs to end a chunk behind the piece.
	price float64
}

// The prices of ending a chunk at a border, between 0 (nothing is torn apart) and 1 (as bad as a chunk more).
const (
	priceBlock    = 0
	priceSentence = 0.06
	priceIndent   = 0.05 // For each level that the next line is indented.
	priceClosing  = 0.2  // More when the next line closes a bracket.
	priceLead     = 0.3  // More behind a colon: what it announces comes next.
	priceLine     = 0.12
	priceClause   = 0.15
	priceWord     = 0.4
	priceRune     = 0.5
	pricePart     = 0.7
	priceChop     = 1
)

// cutter finds the first piece of a text that isn't empty. It returns the length of the piece, where the next one
// begins, and the price of ending a chunk between the two. What is between is white space.
type cutter func(text string) (length, next int, price float64)

// The ways to cut each kind of block, coarse to fine. Whatever is too long after the last one is chopped.
var cutters = map[parse.Kind][]cutter{
	parse.Paragraph: {cutParagraph, cutSentence, cutWord, cutPart},
	parse.Code:      {cutLine, cutWord, cutPart},
	parse.Table:     {cutLine, cutWord, cutPart},
	parse.Record:    {cutLine, cutSentence, cutWord, cutPart},
}

// cut cuts block.Text[start:] into pieces: records where the block says where they begin, else as its kind says.
func (s *splitter) cut(block *parse.Block, start int) {
	finer, known := cutters[block.Kind]
	if !known {
		finer = cutters[parse.Paragraph]
	}
	for i, from := range block.Breaks {
		end := len(block.Text)
		if i+1 < len(block.Breaks) {
			end = block.Breaks[i+1]
		}
		if from = max(from, start); from < end {
			end = from + len(strings.TrimRight(block.Text[from:end], "\n"))
			s.refine(block, from, end, priceBlock, finer, false)
		}
	}
	if len(block.Breaks) == 0 {
		s.refine(block, start, len(block.Text), priceBlock, finer, false)
	}
}

// refine pushes block.Text[start:end] as one piece if it fits, else it cuts it by the first of finer and refines what
// comes out by the rest. price is the price of ending a chunk at end; large means that it is known not to fit.
func (s *splitter) refine(block *parse.Block, start, end int, price float64, finer []cutter, large bool) {
	if s.ctx.Err() != nil {
		return
	}
	text := block.Text[start:end]
	if !large {
		if tokens, fits := s.measure(text); fits {
			s.push(piece{block: block, start: start, end: end, tokens: tokens, price: price})

			return
		}
	}
	if len(finer) == 0 {
		s.chop(block, start, end, price)

		return
	}
	for at := 0; at < len(text); {
		length, next, between := finer[0](text[at:])
		if at+next >= len(text) {
			between = price
		}
		s.refine(block, start+at, start+at+length, between, finer[1:], length == len(text))
		at += next
	}
}

// chop cuts a single word that is too long for a chunk, at character borders.
func (s *splitter) chop(block *parse.Block, start, end int, price float64) {
	for start < end && s.ctx.Err() == nil {
		step := runeBorder(block.Text[start:end], s.bytes)
		tokens, fits := s.measure(block.Text[start : start+step])
		for !fits && step > 1 {
			shorter := runeBorder(block.Text[start:start+step], step/2)
			if shorter == step {
				break // A single character; whatever it counts for, it can't be cut.
			}
			step = shorter
			tokens, fits = s.measure(block.Text[start : start+step])
		}
		between := float64(priceChop)
		if start+step == end {
			between = price
		}
		s.push(piece{block: block, start: start, end: start + step, tokens: tokens, price: between})
		start += step
	}
}

// measure counts a text's tokens and reports whether it fits into a chunk. It doesn't count what is too long anyway. A
// text counts for at least one token, which bounds the number of pieces in a chunk.
func (s *splitter) measure(text string) (int, bool) {
	if len(text) > s.bytes {
		return s.room + 1, false
	}
	tokens := max(s.Count(text), 1)

	return tokens, tokens <= s.room
}

// push adds a piece to those that wait. When many wait they are packed, so that memory does not grow with the text; the
// chunk that ends there is as large as the others, so nothing is lost by it.
func (s *splitter) push(p piece) {
	if parse.Blank(p.text()) {
		return
	}
	if last := p.block.Text[p.end-1]; last == ':' || strings.HasSuffix(p.text(), "：") {
		p.price += priceLead
	}
	p.at = s.length + p.start
	s.pieces = append(s.pieces, p)
	s.tokens += p.tokens
	const soft, hard = 64, 128
	if s.tokens > soft*s.room && p.price <= priceSentence || s.tokens > hard*s.room {
		s.pack()
	}
}

func (p piece) text() string { return p.block.Text[p.start:p.end] }

// halve cuts a piece in two, at white space if there is some near the middle. It reports false for a single character.
func (p piece) halve() (piece, piece, bool) {
	text := p.text()
	middle := runeBorder(text, len(text)/2)
	if middle == len(text) {
		return p, p, false
	}
	left, right := p, p
	if space := strings.LastIndexAny(text[:middle], " \t\n"); space > len(text)/4 {
		middle = space
	}
	left.end = p.start + middle
	right.start = p.start + middle
	right.at += middle
	left.tokens, right.tokens = p.tokens/2, p.tokens-p.tokens/2

	return left, right, true
}
