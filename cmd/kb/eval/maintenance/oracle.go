package maintenance

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/kb-search/kb/cmd/kb/eval"
)

// The statuses of structured search.
const (
	strictHit  = "strict_hit"
	tooMany    = "too_many"
	looseHit   = "loose_hit"
	vectorOnly = "vector_only"
	noHit      = "no_hit"
)

const (
	// strictMaxHits is the default of the product: more documents are too many.
	strictMaxHits = 8
	// facetBuckets is how many values a facet shows.
	facetBuckets = 20
)

// page is a document as the oracle reads it: its words, each between two spaces, and its text for Chinese.
type page struct {
	*record
	words string
}

// oracle answers structured queries by looking at every document.
type oracle struct{ pages []page }

func newOracle(records []*record) *oracle {
	o := &oracle{pages: make([]page, len(records))}
	for i, r := range records {
		o.pages[i] = page{r, spaced(r.title + "\n" + r.body)}
	}
	return o
}

// answer is what the oracle says to a query. matches are the documents of the stage that answers: for vector_only all those in
// scope.
type answer struct {
	status  string
	matches []page
}

func (o *oracle) ask(query eval.Query) answer {
	units := parseUnits(query.Keywords)
	scope := o.scope(query.Filters)
	if len(scope) == 0 {
		return answer{status: noHit}
	}
	if strict := keep(scope, func(p page) bool { return p.holdsAll(units) }); len(strict) > 0 {
		if len(strict) > strictMaxHits {
			return answer{tooMany, strict}
		}
		return answer{strictHit, strict}
	}
	if loose := keep(scope, func(p page) bool { return slices.ContainsFunc(units, p.touches) }); len(loose) > 0 {
		return answer{looseHit, loose}
	}
	if query.QueryText != "" {
		return answer{vectorOnly, scope}
	}
	return answer{status: noHit}
}

// scope are the documents that pass every filter.
func (o *oracle) scope(filters map[string]eval.Values) []page {
	return keep(o.pages, func(p page) bool {
		for field, values := range filters {
			if !slices.ContainsFunc(p.field(field), func(v string) bool { return slices.Contains(values, v) }) {
				return false
			}
		}
		return true
	})
}

// field gives the values of a document under a filter's name.
func (r *record) field(name string) []string {
	switch name {
	case "project":
		return []string{r.project}
	case "equipment":
		return []string{r.equipment}
	case "error_codes":
		return r.codes
	case "knowledge_type":
		return []string{r.knowledgeType}
	default:
		return nil
	}
}

// facet counts the values of a field, and how much the values beyond the shown ones come to.
func facet(pages []page, field string) (buckets []eval.Bucket, truncated int) {
	counts := map[string]int{}
	for _, p := range pages {
		for _, value := range p.field(field) {
			counts[value]++
		}
	}
	for value, count := range counts {
		buckets = append(buckets, eval.Bucket{Value: value, Count: count})
	}
	slices.SortFunc(buckets, func(a, b eval.Bucket) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	if len(buckets) > facetBuckets {
		for _, bucket := range buckets[facetBuckets:] {
			truncated += bucket.Count
		}
		buckets = buckets[:facetBuckets]
	}
	return buckets, truncated
}

// unit is one keyword: its runs of Chinese characters and its words.
type unit struct {
	runs  []string
	words []word
}

// word is found whole or by all of its parts, which for most words is the same. A code such as E-1234 has the parts e and
// 1234, and is e1234 as a whole.
type word struct {
	whole string
	parts []string
}

func parseUnits(keywords []string) []unit {
	units := make([]unit, len(keywords))
	for i, keyword := range keywords {
		units[i] = unit{runs: chineseRuns(keyword), words: parseWords(keyword)}
	}
	return units
}

var (
	compound = regexp.MustCompile(`[0-9A-Za-z]+(?:[-_.][0-9A-Za-z]+)*`)
	decimal  = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)
)

// parseWords reads the words of a text that are not Chinese.
func parseWords(text string) []word {
	var words []word
	for _, found := range compound.FindAllString(strings.ToLower(text), -1) {
		if decimal.MatchString(found) {
			words = append(words, word{found, []string{found}})
			continue
		}
		parts := strings.FieldsFunc(found, func(r rune) bool { return strings.ContainsRune("-_.", r) })
		words = append(words, word{strings.Join(parts, ""), parts})
	}
	return words
}

// spaced writes all words of a text with their parts, each between two spaces.
func spaced(text string) string {
	var all strings.Builder
	all.WriteByte(' ')
	for _, w := range parseWords(text) {
		all.WriteString(w.whole + " ")
		if len(w.parts) > 1 {
			all.WriteString(strings.Join(w.parts, " ") + " ")
		}
	}
	return all.String()
}

func chineseRuns(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.Is(unicode.Han, r) })
}

func (p page) has(word string) bool { return strings.Contains(p.words, " "+word+" ") }

// shows says whether a piece of Chinese stands in the title or in the body.
func (p page) shows(run string) bool {
	return strings.Contains(p.title, run) || strings.Contains(p.body, run)
}

// holds says whether the document has the whole keyword.
func (p page) holds(u unit) bool {
	for _, w := range u.words {
		if !p.has(w.whole) && !all(w.parts, p.has) {
			return false
		}
	}
	return all(u.runs, p.shows)
}

func (p page) holdsAll(units []unit) bool { return all(units, p.holds) }

// touches says whether the document has a word, or a pair of Chinese characters, of the keyword.
func (p page) touches(u unit) bool {
	for _, w := range u.words {
		if p.has(w.whole) || slices.ContainsFunc(w.parts, p.has) {
			return true
		}
	}
	for _, run := range u.runs {
		characters := []rune(run)
		for i := range len(characters) - 1 {
			if p.shows(string(characters[i : i+2])) {
				return true
			}
		}
	}
	return false
}

func all[T any](items []T, is func(T) bool) bool {
	return !slices.ContainsFunc(items, func(item T) bool { return !is(item) })
}

func keep(pages []page, wanted func(page) bool) []page {
	var kept []page
	for _, p := range pages {
		if wanted(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
