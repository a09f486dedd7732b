package chunk

import (
	"math"
	"strings"

	"github.com/kb-search/kb/worker/parse"
)

// separator stands between the texts of two blocks in one chunk, newline between those of two blocks of records.
const separator, newline = "\n\n", "\n"

// flush packs what waits and ends the stretch: the next chunk repeats nothing of it.
func (s *splitter) flush() {
	s.pack()
	s.previous, s.length = nil, 0
}

// pack joins the waiting pieces to chunks. Each chunk costs 1, the square of its distance from the mean size, and the
// price of the border that it ends at; the cheapest way to join is found by looking, for each piece, at all chunks that
// could end behind it.
func (s *splitter) pack() {
	pieces := s.pieces
	if len(pieces) == 0 {
		return
	}
	room := s.room - s.Overlap
	if s.Overlap > 0 && s.tokens <= s.room && span(pieces) <= s.bytes {
		room = s.room // A single chunk repeats nothing.
	}
	room = max(room, 1)
	mean := float64(s.tokens) / math.Ceil(float64(s.tokens)/float64(room))

	cost := make([]float64, len(pieces)+1)
	from := make([]int, len(pieces)+1)
	for end := 1; end <= len(pieces); end++ {
		cost[end] = math.Inf(1)
		price := pieces[end-1].price
		if end == len(pieces) {
			price = 0
		}
		tokens := 0
		for start := end - 1; start >= 0; start-- {
			tokens += pieces[start].tokens
			if start < end-1 && (tokens > room || span(pieces[start:end]) > s.bytes) {
				break
			}
			off := (float64(tokens) - mean) / float64(room)
			if c := cost[start] + 1 + off*off + price; c < cost[end] {
				cost[end], from[end] = c, start
			}
		}
	}

	var ends []int
	for end := len(pieces); end > 0; end = from[end] {
		ends = append(ends, end)
	}
	start := 0
	for i := len(ends) - 1; i >= 0; i-- {
		s.emit(pieces[start:ends[i]])
		start = ends[i]
	}
	s.previous = append([]piece(nil), s.previous...) // Its array is used again.
	s.pieces, s.tokens = pieces[:0], 0
}

// span returns the length of the text that pieces make.
func span(pieces []piece) int {
	last := pieces[len(pieces)-1]

	return last.at + last.end - last.start - pieces[0].at
}

// emit makes a chunk of pieces, with the overlap before them. If it doesn't fit after all, because the pieces count for
// more together than alone, it is cut in two.
func (s *splitter) emit(pieces []piece) {
	repeated := s.overlap(pieces)
	chunk := s.chunk(append(repeated, pieces...))
	if len(repeated) > 0 && !s.fits(chunk) {
		chunk = s.chunk(pieces)
	}
	if !s.fits(chunk) {
		if len(pieces) > 1 {
			s.emit(pieces[:len(pieces)/2])
			s.emit(pieces[len(pieces)/2:])

			return
		}
		if left, right, ok := pieces[0].halve(); ok {
			s.emit([]piece{left})
			s.emit([]piece{right})

			return
		}
	}
	if len(pieces) == 1 && parse.Blank(pieces[0].text()) || s.Count(chunk.EnrichedText()) == 0 {
		return // Nothing that a reader or the model would see.
	}
	chunk.Seq = len(s.chunks)
	s.chunks = append(s.chunks, chunk)
	s.previous = pieces
}

func (s *splitter) fits(chunk Chunk) bool {
	return len(chunk.Text) <= s.MaxBytes && s.Count(chunk.EnrichedText()) <= s.Size
}

// chunk joins pieces. Within a block their text is the block's, with the white space between them.
func (s *splitter) chunk(pieces []piece) Chunk {
	var parts []string
	if s.header != "" {
		parts = append(parts, s.header, newline)
	}
	for i := 0; i < len(pieces); {
		j := i + 1
		for j < len(pieces) && pieces[j].block == pieces[i].block {
			j++
		}
		if i > 0 {
			if pieces[i].block.Kind == parse.Record && pieces[i-1].block.Kind == parse.Record {
				parts = append(parts, newline)
			} else {
				parts = append(parts, separator)
			}
		}
		parts = append(parts, pieces[i].block.Text[pieces[i].start:pieces[j-1].end])
		i = j
	}
	text := strings.Join(parts, "")
	first, last := pieces[0], pieces[len(pieces)-1]
	start, _ := first.bounds()
	_, end := last.bounds()

	return Chunk{
		Text: text, Section: s.section, Page: first.block.Page, Start: start, End: end,
		Prefix: s.heading,
	}
}

// bounds returns the piece's range in the document's text: its block's when parts of that were taken out.
func (p piece) bounds() (int, int) {
	if p.block.End-p.block.Start != len(p.block.Text) {
		return p.block.Start, p.block.End
	}

	return p.block.Start + p.start, p.block.Start + p.end
}

// overlap returns the last pieces of the chunk before pieces that fit into the overlap; when even the last is too long
// and is running text, its last words.
func (s *splitter) overlap(pieces []piece) []piece {
	if s.Overlap == 0 || len(s.previous) == 0 {
		return nil
	}
	from, tokens := len(s.previous), 0
	for from > 0 && tokens+s.previous[from-1].tokens <= s.Overlap {
		from--
		tokens += s.previous[from].tokens
	}
	repeated := append([]piece(nil), s.previous[from:]...)
	if last := s.previous[len(s.previous)-1]; len(repeated) == 0 && last.block.Kind == parse.Paragraph {
		if tail, ok := s.tail(last); ok {
			repeated = append(repeated, tail)
		}
	}
	if len(repeated) > 0 && span(append(repeated[:1:1], pieces...)) > s.bytes {
		return nil
	}

	return repeated
}

// tail returns the last words of a piece that fit into the overlap.
func (s *splitter) tail(p piece) (piece, bool) {
	text := p.text()
	var starts, tokens []int
	for at := 0; at < len(text); {
		length, next, _ := cutWord(text[at:])
		starts = append(starts, at)
		tokens = append(tokens, s.Count(text[at:at+length]))
		at += next
	}
	sum, from := 0, len(starts)
	for from > 0 && sum+tokens[from-1] <= s.Overlap {
		from--
		sum += tokens[from]
	}
	if from == len(starts) {
		return p, false
	}
	p.start += starts[from]
	p.at += starts[from]
	p.tokens = sum

	return p, true
}
