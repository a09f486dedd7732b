package pdf

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// segment is words that stand close together in a row.
type segment struct {
	box

	text   string
	size   float64
	bold   bool
	hyphen bool
}

// vertical reports whether the letters stand one above the other, as in a turned margin note.
func (s segment) vertical() bool {
	return s.height() > 2.5*max(s.size, 1) && s.height() > 2*s.width()
}

// line is a row of a column.
type line struct {
	box

	text     string
	cells    []segment // Two or more where the row has wide gaps.
	size     float64
	bold     bool
	hyphen   bool
	right    float64 // The right edge of the column.
	vertical bool    // Its letters stand one above the other.
}

// wideGap is the width of a gap that is not just a space between words, in heights of a letter.
const wideGap = 0.8

// lines returns a page's lines in reading order.
func lines(segments []segment) []line {
	var level []segment
	var vertical []line
	for _, s := range segments {
		if s.vertical() {
			vertical = append(vertical, line{
				box: s.box, text: s.text, size: s.size, bold: s.bold, hyphen: s.hyphen, right: s.x1, vertical: true,
			})
		} else {
			level = append(level, s)
		}
	}

	return append(order(level, 0), vertical...)
}

// segments joins words that follow each other in a row.
func segments(words []word) []segment {
	var segments []segment
	var text []byte
	for i, w := range words {
		if i > 0 {
			last := &segments[len(segments)-1]
			gap := w.x0 - last.x1
			if last.sameRow(w.box) && !last.hyphen && gap > -0.3*w.height() && gap < wideGap*w.height() {
				text = append(append(text, ' '), w.text...)
				last.box, last.hyphen = last.union(w.box), w.hyphen
				last.size, last.bold = max(last.size, w.size), last.bold && w.bold

				continue
			}
			last.text = string(text)
		}
		text = append(text[:0], w.text...)
		segments = append(segments, segment{box: w.box, size: w.size, bold: w.bold, hyphen: w.hyphen})
	}
	if len(segments) > 0 {
		segments[len(segments)-1].text = string(text)
	}

	return segments
}

// maxColumns limits how often a region is cut into columns, maxSegments the work for it.
const (
	maxColumns  = 6
	maxSegments = 4000
)

// order returns a region's lines in reading order: where a gutter parts it, the left column goes before the right one,
// and what goes over the gutter (titles, wide figures) parts what is above it from what is below.
func order(segments []segment, depth int) []line {
	x, ok := 0.0, false
	if depth < maxColumns && len(segments) <= maxSegments {
		x, ok = gutter(segments)
	}
	if !ok {
		return rows(segments)
	}

	sorted := slices.Clone(segments)
	slices.SortStableFunc(sorted, func(a, b segment) int { return cmp.Compare(b.y1, a.y1) })
	var lines []line
	var left, right, wide []segment
	columns := func() {
		lines = append(append(lines, order(left, depth+1)...), order(right, depth+1)...)
		left, right = nil, nil
	}
	for _, s := range sorted {
		switch {
		case s.x0 < x-1 && s.x1 > x:
			columns()
			wide = append(wide, s)

			continue
		case s.x0 >= x-1:
			right = append(right, s)
		default:
			left = append(left, s)
		}
		lines = append(lines, rows(wide)...)
		wide = nil
	}
	columns()

	return append(lines, rows(wide)...)
}

// gutter finds where the right column of a region begins. Both columns must look like running text, to tell them from
// tables, and only few lines may go over the gutter.
func gutter(segments []segment) (x float64, ok bool) {
	if len(segments) < 6 {
		return 0, false
	}
	region, size := segments[0].box, segments[0].height()
	starts := map[int]int{}
	for _, s := range segments {
		region = region.union(s.box)
		size = min(size, s.height())
		starts[int(s.x0/2)]++
	}

	best := 0
	for start, n := range starts {
		n += starts[start+1]
		if at := 2 * float64(start); n >= 3 && at > region.x0+0.15*region.width() {
			if score := gutterScore(segments, region, at, size); score > best || score == best && score > 0 && at < x {
				best, x = score, at
			}
		}
	}

	return x, best > 0
}

func gutterScore(segments []segment, region box, x, size float64) int {
	var left, right, wide, leftChars, rightChars int
	var leftWidth, rightWidth float64
	leftBox, rightBox := box{y0: 1e9, y1: -1e9}, box{y0: 1e9, y1: -1e9}
	for _, s := range segments {
		chars := len(s.text) // Counting letters would take long, and scripts of long letters have few to a line.
		switch {
		case s.x0 >= x-1:
			right, rightChars, rightWidth = right+1, rightChars+chars, rightWidth+s.width()
			rightBox.y0, rightBox.y1 = min(rightBox.y0, s.y0), max(rightBox.y1, s.y1)
		case s.x1 <= x-0.6*size:
			left, leftChars, leftWidth = left+1, leftChars+chars, leftWidth+s.width()
			leftBox.y0, leftBox.y1 = min(leftBox.y0, s.y0), max(leftBox.y1, s.y1)
		default:
			wide++
		}
	}
	switch {
	case left < 3 || right < 3 || wide*2 > left+right:
		return 0
	case leftChars < 14*left || rightChars < 14*right:
		return 0
	case leftWidth < 0.2*region.width()*float64(left) || rightWidth < 0.2*region.width()*float64(right):
		return 0
	case min(leftBox.y1, rightBox.y1)-max(leftBox.y0, rightBox.y0) < 2*size:
		return 0 // They aren't beside each other.
	}

	return left + right - wide
}

// rows returns a column's lines from top to bottom.
func rows(segments []segment) []line {
	sorted := slices.Clone(segments)
	slices.SortStableFunc(sorted, func(a, b segment) int { return cmp.Compare(b.middle(), a.middle()) })
	var lines []line
	right := -1e9
	for start := 0; start < len(sorted); {
		end := start + 1
		for end < len(sorted) && sorted[start].sameRow(sorted[end].box) {
			end++
		}
		l := row(sorted[start:end])
		right = max(right, l.x1)
		lines = append(lines, l)
		start = end
	}
	for i := range lines {
		lines[i].right = right
	}

	return lines
}

// A table of contents leads to its page numbers with dots, which are no text.
var leader = regexp.MustCompile(`(\s*\.){5,}\s*`)

const ellipsis = " ... "

// maxCells limits the work for a row of a table.
const maxCells = 100

// row makes a line of the segments in a row.
func row(segments []segment) line {
	letters, fromRight := 0, 0
	for _, s := range segments {
		for _, c := range s.text {
			if unicode.IsLetter(c) {
				letters++
				if unicode.In(c, unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana) {
					fromRight++
				}
			}
		}
	}
	slices.SortStableFunc(segments, func(a, b segment) int {
		if fromRight*2 > letters {
			return cmp.Compare(b.x1, a.x1)
		}

		return cmp.Compare(a.x0, b.x0)
	})

	l := line{box: segments[0].box, bold: true, hyphen: segments[len(segments)-1].hyphen}
	chars := map[float64]int{}
	var text strings.Builder
	for i, s := range segments {
		if len(segments) > maxCells {
			l.cells = nil
		} else if i > 0 && (s.x0-segments[i-1].x1 < 1.2*s.height() || fromRight > 0) {
			last := &l.cells[len(l.cells)-1]
			last.text += " " + s.text
			last.box = last.union(s.box)
		} else {
			l.cells = append(l.cells, s)
		}
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(s.text)
		l.box = l.union(s.box)
		l.bold = l.bold && s.bold
		chars[s.size] += len(s.text)
		if most := chars[l.size]; chars[s.size] > most || chars[s.size] == most && s.size > l.size {
			l.size = s.size
		}
	}
	l.text = leader.ReplaceAllString(text.String(), ellipsis)
	if strings.Contains(l.text, ellipsis) {
		l.cells = nil
	}

	return l
}
