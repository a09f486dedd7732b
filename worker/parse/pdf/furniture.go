package pdf

import (
	"slices"
	"strings"
	"unicode"
)

const (
	edgeRows     = 3 // Rows at a page's edge that can be a header or footer.
	minRepeating = 3 // Pages from which on something repeats.
)

// dropFurniture takes out running headers and footers: rows at the edge of pages whose text, but for its numbers, is on
// most pages. Large letters with a number are headings ("Chapter 3"). Nothing is taken out where nothing would be left.
func dropFurniture(pages []page, body float64) {
	if len(pages) < minRepeating {
		return
	}
	count := map[string]int{}
	for _, p := range pages {
		for key := range edges(p.segments, body) {
			count[key]++
		}
	}

	kept := make([][]segment, len(pages))
	left := 0
	for i, p := range pages {
		drop := map[box]bool{}
		for key, rows := range edges(p.segments, body) {
			// A document with different headers on left and right pages has each on half of them.
			if n := count[key]; n >= minRepeating && (n*2 >= len(pages)-1 || pageNumber(key)) {
				for _, row := range rows {
					drop[row] = true
				}
			}
		}
		kept[i] = slices.DeleteFunc(slices.Clone(p.segments), func(s segment) bool {
			for row := range drop {
				if s.y0 >= row.y0 && s.y1 <= row.y1 && s.x0 >= row.x0 && s.x1 <= row.x1 {
					return true
				}
			}

			return false
		})
		left += len(kept[i])
	}
	if left == 0 {
		return
	}
	for i := range pages {
		pages[i].segments = kept[i]
	}
}

// pageNumber reports whether a key of edges is that of a row with a number and nothing else.
func pageNumber(key string) bool {
	_, text, _ := strings.Cut(key, " ")

	return strings.Trim(text, "#-–—|") == ""
}

// edges returns the rows at the top and bottom of a page by what a header keeps from page to page. A header's number
// may be all that it has, but then it stands alone at the edge.
func edges(segments []segment, body float64) map[string][]box {
	level := slices.DeleteFunc(slices.Clone(segments), segment.vertical)
	rows := rows(level)
	edges := map[string][]box{}
	for i, row := range rows {
		top, bottom := i, len(rows)-1-i
		if min(top, bottom) >= edgeRows {
			continue
		}
		place := "top "
		if bottom < top {
			place = "bottom "
		}
		digits := false
		key := strings.Map(func(c rune) rune {
			switch {
			case unicode.IsDigit(c):
				digits = true

				return '#'
			case unicode.IsSpace(c):
				return -1
			}

			return c
		}, row.text)
		for strings.Contains(key, "##") {
			key = strings.ReplaceAll(key, "##", "#")
		}
		if digits && (row.size >= headingRatio*body || pageNumber(place+key) && min(top, bottom) > 0) {
			continue
		}
		edges[place+key] = append(edges[place+key], row.box)
	}

	return edges
}
