package parse

import (
	"strings"
)

// parseCSV makes blocks of whole records, each with the first record as its header.
func parseCSV(doc *Document, format Format) {
	text := doc.Text
	start := 0
	delimiter := byte('\t')
	if format == FormatCSV {
		if line, found := strings.CutPrefix(text, "sep="); found && len(line) > 1 && line[1] == '\n' {
			delimiter, start = line[0], len("sep=")+2 // Spreadsheets name the delimiter that way.
		} else {
			delimiter = sniffDelimiter(text)
		}
	}

	r := csvReader{text: text, delimiter: delimiter}
	var header string
	from, multiline := start, false
	var breaks []int
	flush := func(end int) {
		block, ok := trimmed(text, from, end, Record)
		if ok {
			block.Header = header
			if multiline {
				block.Breaks = make([]int, 0, len(breaks))
				for _, at := range breaks {
					if at = max(at-block.Start, 0); at < len(block.Text) {
						block.Breaks = append(block.Breaks, at)
					}
				}
			}
			doc.Blocks = append(doc.Blocks, block)
		}
		from, multiline, breaks = end, false, breaks[:0]
	}

	for at := start; at < len(text); {
		end := r.recordEnd(at)
		record := strings.TrimRight(text[at:end], "\n")
		if strings.TrimSpace(record) != "" {
			if header == "" {
				header = record
			}
			breaks = append(breaks, at)
			multiline = multiline || strings.Contains(record, "\n")
		}
		if end-from >= softLimit {
			flush(end)
		}
		at = end
	}
	flush(len(text))
}

// csvReader finds where records end, without taking their fields apart.
type csvReader struct {
	text      string
	delimiter byte
	// strayUntil is the offset up to which a quoted field that is not closed was followed. Before it, quotes end with
	// their line: so a stray quote costs one record and not the rest of the file, and no byte is searched twice.
	strayUntil int
}

// maxQuoted is how long a quoted field may be. A longer one is taken for a stray quote.
const maxQuoted = 1 << 20

// recordEnd returns the offset behind the record that begins at offset at. Quotes count as encoding/csv with LazyQuotes
// counts them: only one at the start of a field opens, and inside one that is neither doubled nor followed by the end
// of the field is text.
func (r *csvReader) recordEnd(at int) int {
	fieldStart := true
	for i := at; i < len(r.text); i++ {
		switch c := r.text[i]; {
		case c == '\n':
			return i + 1
		case c == '"' && fieldStart:
			i, fieldStart = r.quotedEnd(i+1)-1, false
		default:
			fieldStart = c == r.delimiter
		}
	}

	return len(r.text)
}

// quotedEnd returns the offset behind the quote that closes the quoted field whose content begins at offset at. When
// there is none, that is the end of the line, before its line break.
func (r *csvReader) quotedEnd(at int) int {
	limit := min(len(r.text), at+maxQuoted)
	if at < r.strayUntil {
		limit = lineEnd(r.text, at)
	}
	for i := at; i < limit; {
		n := strings.IndexByte(r.text[i:limit], '"')
		if n < 0 {
			break
		}
		i += n + 1
		switch {
		case i == len(r.text) || r.text[i] == r.delimiter || r.text[i] == '\n':
			return i
		case r.text[i] == '"':
			i++
		}
	}
	r.strayUntil = max(r.strayUntil, limit)
	end := lineEnd(r.text, at)
	if r.text[end-1] == '\n' {
		end--
	}

	return max(at, end)
}

// sniffDelimiter guesses a CSV file's delimiter from its first records: the one that stands equally often in most of
// them, in doubt the more frequent one, in doubt the comma.
func sniffDelimiter(text string) byte {
	const sample = 20

	text = text[:min(len(text), softLimit)]
	best, bestScore := byte(','), 0
	for _, delimiter := range []byte{',', ';', '\t', '|'} {
		r := csvReader{text: text, delimiter: delimiter}
		first, same := 0, 0
		for n, at := 0, 0; n < sample && at < len(text); n++ {
			end := r.recordEnd(at)
			count := r.delimiters(at, end)
			if n == 0 {
				first = count
			}
			if count == first {
				same++
			}
			at = end
		}
		if score := first * same * same; score > bestScore {
			best, bestScore = delimiter, score
		}
	}

	return best
}

// delimiters counts those that stand outside quotes between offsets at and end.
func (r *csvReader) delimiters(at, end int) int {
	count, fieldStart := 0, true
	for i := at; i < end; i++ {
		switch c := r.text[i]; {
		case c == '"' && fieldStart:
			i, fieldStart = r.quotedEnd(i+1)-1, false
		case c == r.delimiter:
			count++
			fieldStart = true
		default:
			fieldStart = false
		}
	}

	return count
}
