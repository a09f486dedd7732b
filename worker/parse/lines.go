package parse

import (
	"strings"
)

// Blocks of line-based formats grow to softLimit and end at the next blank line, or at hardLimit at the next line end.
// So a big file makes few blocks, and whoever works block by block needs little memory.
const (
	softLimit = 32 << 10
	hardLimit = 64 << 10
)

// lines appends the text from offset start on as blocks that end at line borders, at blank lines where possible.
func lines(blocks []Block, text string, start int, kind Kind) []Block {
	from := start
	for at := start; at < len(text); {
		end := lineEnd(text, at)
		size := end - from
		if size >= hardLimit || size >= softLimit && strings.TrimSpace(text[at:end]) == "" {
			if block, ok := trimmed(text, from, end, kind); ok {
				blocks = append(blocks, block)
			}
			from = end
		}
		at = end
	}
	if block, ok := trimmed(text, from, len(text), kind); ok {
		blocks = append(blocks, block)
	}

	return blocks
}

// lineEnd returns the offset behind the line break that ends the line at offset at.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}

	return len(text)
}

// trimmed makes a block of text[start:end] without the blank lines around it; its first line keeps its indentation. It
// reports false when nothing visible is left.
func trimmed(text string, start, end int, kind Kind) (Block, bool) {
	for start < end {
		next := min(lineEnd(text, start), end)
		if strings.TrimSpace(text[start:next]) != "" {
			break
		}
		start = next
	}
	body := strings.TrimRight(text[start:end], " \t\n\u00a0")
	if Blank(body) {
		return Block{}, false
	}

	return Block{Kind: kind, Text: body, Start: start, End: start + len(body)}, true
}
