// Package maintenance makes a judged set for structured search: alarms, set-ups and experience of machines, in Chinese and
// English, with queries whose status is known. What a query must answer is counted over the documents by the oracle in this
// package, which knows nothing of the database. Equal arguments give equal sets, byte for byte.
package maintenance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kb-search/kb/cmd/kb/eval"
)

// What `kb eval` takes when nothing else is said.
const (
	DefaultDocuments = 20_000
	DefaultSeed      = 1
	// MinDocuments is how many documents the queries need at least: fewer don't have enough of everything.
	MinDocuments = 2_000
)

// Bodies have between minWords and maxWords words.
const (
	minWords = 40
	maxWords = 150
)

// Set makes a set of so many documents with its 300 queries. It fails below MinDocuments.
func Set(documents int, seed uint64) (*eval.Set, error) {
	if documents < MinDocuments {
		return nil, fmt.Errorf("a maintenance corpus has at least %d documents, not %d", MinDocuments, documents)
	}
	records := newWriter(documents, seed).records()
	queries, judgements, err := newAsker(records, seed).ask()
	if err != nil {
		return nil, err
	}
	corpus := make([]eval.Document, len(records))
	for i, r := range records {
		corpus[i] = r.document()
	}
	return eval.New("maintenance", corpus, queries, judgements)
}

// record is a document with what it was made of.
type record struct {
	id, title, body string
	knowledgeType   string
	project         string
	equipment       string
	// main is the code that titles an alarm; codes are all in the metadata, main first.
	main          string
	codes         []string
	language      language
	part, symptom term
	// quantity is a parameter and its value as the text has them, such as 6.50 bar.
	quantity term
	value    string
}

// document is what is loaded of a record.
func (r *record) document() eval.Document {
	codes := make([]any, len(r.codes))
	for i, code := range r.codes {
		codes[i] = code
	}
	return eval.Document{ID: r.id, Title: r.title, Text: r.body, KnowledgeType: r.knowledgeType, Metadata: map[string]any{
		"project": r.project, "equipment": r.equipment, "error_codes": codes,
	}}
}

type language int

// The languages of documents. A mixed one has a Chinese title and sentences of both.
const (
	inEnglish language = iota
	inChinese
	inBoth
)

// machine is one piece of equipment.
type machine struct {
	id string
	family
}

// writer writes documents.
type writer struct {
	rng      *rand.Rand
	count    int
	machines []machine
	// mains are the codes that title alarms, one of each.
	mains []string
}

func newWriter(documents int, seed uint64) *writer {
	w := &writer{rng: rand.New(rand.NewPCG(seed, 1)), count: documents}
	for _, f := range families {
		for number := 1; number <= f.count; number++ {
			w.machines = append(w.machines, machine{fmt.Sprintf("%s%0*d", f.id, f.digits, number), f})
		}
	}
	return w
}

// typeOf deals the knowledge types out: of ten documents three are alarms, three set-ups, four experience.
func typeOf(i int) string {
	switch i % 10 {
	case 0, 3, 6:
		return alarm
	case 1, 4, 7:
		return setup
	default:
		return experience
	}
}

func (w *writer) records() []*record {
	for i := range w.count {
		if typeOf(i) == alarm {
			w.mains = append(w.mains, w.code(len(w.mains)))
		}
	}
	mains := w.mains
	records := make([]*record, w.count)
	for i := range records {
		r := &record{id: fmt.Sprintf("m%06d", i), knowledgeType: typeOf(i)}
		if r.knowledgeType == alarm {
			r.main, mains = mains[0], mains[1:]
			r.codes = append(r.codes, r.main)
		}
		w.write(r)
		records[i] = r
	}
	return records
}

// code gives the code of the nth alarm: the families take turns, each counts upwards with small gaps.
func (w *writer) code(n int) string {
	f := codeFamilies[n%len(codeFamilies)]
	step := n / len(codeFamilies)
	return fmt.Sprintf(f.format, f.first+step+step/7)
}

// hotCodes are the first alarms of the corpus, which the documents mention far more often than others.
const hotCodes = 24

// mentioned picks a code to mention, one that is not there yet.
func (w *writer) mentioned(r *record) string {
	for {
		code := w.mains[w.rng.IntN(len(w.mains))]
		if w.rng.IntN(100) < 12 {
			code = w.mains[w.rng.IntN(hotCodes)]
		}
		if !slices.Contains(r.codes, code) {
			return code
		}
	}
}

// write fills a record in.
func (w *writer) write(r *record) {
	m := pick(w.rng, w.machines)
	r.equipment, r.project = m.id, pick(w.rng, projects)
	r.part, r.symptom = pick(w.rng, m.parts), pick(w.rng, symptoms)
	p := pick(w.rng, parameters)
	hundredths := p.low + p.step*w.rng.IntN(p.count)
	r.quantity, r.value = p.name, fmt.Sprintf("%d.%02d %s", hundredths/100, hundredths%100, p.unit)
	if hundredths%100 == 0 && hundredths >= 2000 {
		// Smaller whole numbers are left to the equipment: the 3 of 注塑机-3 is read as -3 by the text analysis.
		r.value = fmt.Sprintf("%d %s", hundredths/100, p.unit)
	}
	switch share := w.rng.IntN(100); {
	case share < 45:
		r.language = inEnglish
	case share < 90:
		r.language = inChinese
	default:
		r.language = inBoth
	}
	others := []int{0, 1, 1, 2}[w.rng.IntN(4)]
	switch r.knowledgeType {
	case setup:
		others /= 2
	case experience:
		others = w.rng.IntN(4)
	}
	mentions := make([]string, others)
	for i := range mentions {
		mentions[i] = w.mentioned(r)
		r.codes = append(r.codes, mentions[i])
	}
	title, opening := w.texts(r), w.texts(r)
	if r.language == inBoth {
		title = chinese[r.knowledgeType]
	}
	r.title = w.fill(r, m, pick(w.rng, title.titles))
	sentences := []string{w.fill(r, m, pick(w.rng, opening.openings))}
	for i, code := range mentions {
		texts := w.texts(r)
		sentence := strings.ReplaceAll(texts.mentions[i%len(texts.mentions)], "{other}", code)
		sentences = append(sentences, w.fill(r, m, sentence))
	}
	r.body = w.lengthen(r, m, sentences)
	if r.knowledgeType == experience && w.rng.IntN(10) == 0 {
		r.codes = nil // not everyone fills the form in
	}
}

// lengthen adds details in any order until the body has the words that it was meant to have.
func (w *writer) lengthen(r *record, m machine, sentences []string) string {
	wanted := minWords + w.rng.IntN(maxWords-minWords-40)
	details := map[language][]int{}
	for countWords(join(sentences)) < wanted {
		spoken := r.language
		if spoken == inBoth {
			spoken = language(w.rng.IntN(2))
		}
		pool := textsOf(spoken)[r.knowledgeType].details
		if len(details[spoken]) == 0 {
			details[spoken] = w.rng.Perm(len(pool))
		}
		sentences = append(sentences, w.fill(r, m, pool[details[spoken][0]]))
		details[spoken] = details[spoken][1:]
	}
	return join(sentences)
}

// texts are the sentences of a record's language; of either one when it has both.
func (w *writer) texts(r *record) text {
	if r.language == inChinese || r.language == inBoth && w.rng.IntN(2) == 0 {
		return chinese[r.knowledgeType]
	}
	return english[r.knowledgeType]
}

func textsOf(l language) map[string]text {
	if l == inChinese {
		return chinese
	}
	return english
}

// fill puts a record's things into a sentence. Causes and measures are drawn anew for each.
func (w *writer) fill(r *record, m machine, sentence string) string {
	word := func(t term) string { return t.en }
	if hasChinese(sentence) {
		word = func(t term) string { return t.zh }
	}
	filled := strings.NewReplacer(
		"{code}", r.main, "{equipment}", r.equipment, "{project}", r.project, "{value}", r.value, "{family}", word(m.name), "{part}", word(r.part),
		"{symptom}", word(r.symptom), "{quantity}", word(r.quantity), "{cause}", word(pick(w.rng, causes)), "{measure}", word(pick(w.rng, measures)),
	).Replace(sentence)
	if filled[0] < utf8.RuneSelf {
		filled = strings.ToUpper(filled[:1]) + filled[1:]
	}
	return filled
}

// join puts sentences after each other, those in English with a space between.
func join(sentences []string) string {
	var body strings.Builder
	for i, sentence := range sentences {
		if i > 0 && (!hasChinese(sentence) || !hasChinese(sentences[i-1])) {
			body.WriteByte(' ')
		}
		body.WriteString(sentence)
	}
	return body.String()
}

// countWords counts words of letters and digits; two Chinese characters are one word.
func countWords(text string) int {
	characters := 0
	words := strings.FieldsFunc(text, func(r rune) bool {
		if unicode.Is(unicode.Han, r) {
			characters++
			return true
		}
		return unicode.IsSpace(r)
	})
	return len(words) + (characters+1)/2
}

func hasChinese(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }
