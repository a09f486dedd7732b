package maintenance

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kb-search/kb/cmd/kb/eval"
)

// small is shared by the tests, which only read it.
var small = sync.OnceValues(func() (*eval.Set, error) { return Set(MinDocuments, DefaultSeed) })

func smallSet(t *testing.T) *eval.Set {
	t.Helper()
	set, err := small()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestSetIsDeterministic(t *testing.T) {
	t.Parallel()

	written := func(t *testing.T, seed uint64) map[string][]byte {
		t.Helper()
		set, err := Set(MinDocuments, seed)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := eval.Write(dir, set); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, name := range []string{"corpus.jsonl", "queries.jsonl", "qrels.tsv"} {
			if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		return files
	}
	first, again, other := written(t, 7), written(t, 7), written(t, 8)
	for name, content := range first {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s differs from run to run", name)
		}
		if bytes.Equal(content, other[name]) {
			t.Errorf("%s is the same with another seed", name)
		}
	}
}

func TestSetSurvivesTheFolder(t *testing.T) {
	t.Parallel()

	set := smallSet(t)
	dir := filepath.Join(t.TempDir(), set.Name)
	if err := eval.Write(dir, set); err != nil {
		t.Fatal(err)
	}
	read, err := eval.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if read.Name != set.Name || read.Hash != set.Hash {
		t.Errorf("%s with hash %x came back as %s with %x", set.Name, set.Hash, read.Name, read.Hash)
	}
	for name, pair := range map[string][2]any{
		"documents": {set.Documents, read.Documents}, "queries": {set.Queries, read.Queries}, "judgements": {set.Judgements, read.Judgements},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("the %s came back otherwise", name)
		}
	}
}

func TestTooFewDocumentsAreRefused(t *testing.T) {
	t.Parallel()

	if _, err := Set(MinDocuments-1, 1); err == nil || !strings.Contains(err.Error(), "at least 2000") {
		t.Errorf("got %v", err)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()

	records := newWriter(MinDocuments, DefaultSeed).records()
	types, languages, projectCount, equipment := map[string]int{}, map[language]int{}, map[string]int{}, map[string]int{}
	titled := map[string]string{}
	codeCounts := map[int]int{}
	for _, r := range records {
		types[r.knowledgeType]++
		languages[r.language]++
		projectCount[r.project]++
		equipment[r.equipment]++
		codeCounts[len(r.codes)]++
		if words := countWords(r.body); words < minWords || words > maxWords {
			t.Errorf("%s has %d words: %s", r.id, words, r.body)
		}
		if strings.ContainsAny(r.title+r.body, "{}\ufffd") {
			t.Errorf("%s has an empty place: %s\n%s", r.id, r.title, r.body)
		}
		for _, code := range r.codes {
			if !strings.Contains(r.body, code) {
				t.Errorf("%s does not mention its code %s: %s", r.id, code, r.body)
			}
		}
		if r.knowledgeType != alarm {
			continue
		}
		if before := titled[r.main]; before != "" {
			t.Errorf("%s titles %s and %s", r.main, before, r.id)
		}
		titled[r.main] = r.id
		if !strings.Contains(r.title, r.main) || r.codes[0] != r.main {
			t.Errorf("%s is not titled by its code: %s, %v", r.id, r.title, r.codes)
		}
	}
	joined := map[string]string{}
	for code, id := range titled {
		joined[parseWords(code)[0].whole] = id
	}
	for _, r := range records {
		for _, w := range parseWords(r.title) {
			if id := joined[w.whole]; id != "" && id != r.id {
				t.Errorf("%s has the code of %s in its title: %s", r.id, id, r.title)
			}
		}
	}
	for _, knowledgeType := range []string{alarm, setup, experience} {
		if share := types[knowledgeType] * 10 / len(records); share < 3 || share > 4 {
			t.Errorf("%d documents of the type %s", types[knowledgeType], knowledgeType)
		}
	}
	if pure := min(languages[inChinese], languages[inEnglish]); pure*100 < 40*len(records) || languages[inBoth]*100 < 5*len(records) {
		t.Errorf("got the languages %v", languages)
	}
	if len(projectCount) != 12 || len(equipment) != 60 {
		t.Errorf("%d projects and %d pieces of equipment", len(projectCount), len(equipment))
	}
	if len(codeCounts) != 4 || codeCounts[0]*10 < len(records) || codeCounts[3]*50 < len(records) {
		t.Errorf("documents by their number of codes: %v", codeCounts)
	}
}

func TestVocabularyIsUnambiguous(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}
	add := func(terms ...term) {
		for _, w := range terms {
			if w.en == "" || w.zh == "" || seen[w.en] || seen[w.zh] || strings.Contains(w.en, "-") || hasChinese(w.en) || len([]rune(w.zh)) < 2 {
				t.Errorf("%q, %q is empty, there twice, or has a hyphen", w.en, w.zh)
			}
			seen[w.en], seen[w.zh] = true, true
		}
	}
	for _, f := range families {
		add(f.name)
		add(f.parts...)
	}
	add(symptoms...)
	add(causes...)
	add(measures...)
	for _, p := range parameters {
		add(p.name)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()

	set := smallSet(t)
	oracle := newOracle(newWriter(MinDocuments, DefaultSeed).records())
	statuses, kinds, filtered, first := map[string]int{}, map[string]int{}, map[string]int{}, map[string]bool{}
	ids := map[string]bool{}
	for _, query := range set.Queries {
		if ids[query.ID] || query.Mode != "auto" || query.Expected == nil {
			t.Fatalf("query %+v", query)
		}
		ids[query.ID] = true
		statuses[query.Expected.Status]++
		kinds[query.Kind]++
		for field := range query.Filters {
			filtered[field]++
		}
		answer := oracle.ask(query)
		if answer.status != query.Expected.Status {
			t.Errorf("%s expects %s, the oracle says %s", query.ID, query.Expected.Status, answer.status)
		}
		grades := set.Judgements[query.ID]
		for id := range grades {
			if !slices.ContainsFunc(answer.matches, func(p page) bool { return p.id == id }) {
				t.Errorf("%s judges %s, which does not match", query.ID, id)
			}
		}
		switch query.Expected.Status {
		case strictHit:
			if len(grades) != len(answer.matches) || len(grades) != query.Expected.Total || len(grades) > strictMaxHits {
				t.Errorf("%s (%s) matches %d, judges %d", query.ID, query.Kind, len(answer.matches), len(grades))
			}
		case tooMany:
			if len(grades) != 0 || query.Expected.Total <= strictMaxHits || len(query.Expected.Facets["project"]) == 0 {
				t.Errorf("%s: %+v", query.ID, query.Expected)
			}
		case looseHit, vectorOnly:
			if len(grades) == 0 {
				t.Errorf("%s has no judgement", query.ID)
			}
		case noHit:
			if len(grades) != 0 || query.Expected.Total != 0 {
				t.Errorf("%s: %+v", query.ID, query.Expected)
			}
		}
		if wanted := query.Expected.First; wanted != "" {
			if grades[wanted] != 3 {
				t.Errorf("%s wants %s first, graded %d", query.ID, wanted, grades[wanted])
			}
			if query.Kind == "code" {
				first[wanted] = true
			}
		}
	}
	if len(set.Queries) != 300 || len(first) < 60 {
		t.Errorf("%d queries, %d documents of exact codes", len(set.Queries), len(first))
	}
	for status, count := range map[string]int{strictHit: 142, tooMany: 44, looseHit: 42, vectorOnly: 38, noHit: 34} {
		if statuses[status] != count {
			t.Errorf("%d queries end in %s, not %d", statuses[status], status, count)
		}
	}
	if len(kinds) != 27 {
		t.Errorf("got the kinds %v", kinds)
	}
	for _, field := range []string{"project", "equipment", "error_codes", "knowledge_type"} {
		if filtered[field] < 8 {
			t.Errorf("%d queries filter by %s", filtered[field], field)
		}
	}
}
