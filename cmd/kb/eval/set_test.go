package eval

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func writeSet(t *testing.T, corpus, queries, judgements string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"corpus.jsonl": corpus, "queries.jsonl": queries, "qrels.tsv": judgements} {
		if content == "-" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRead(t *testing.T) {
	t.Parallel()

	const corpus = `{"id": "d1", "title": "T", "text": "one"}` + "\n" + `{"id": "d2", "text": "two", "store": "s"}` + "\n\n"
	const queries = `{"id": "q1", "text": "a"}` + "\r\n" + `{"id": "q2", "text": "b", "store": "s"}` + "\n" + `{"id": "q3", "text": "no judgement"}`
	const judgements = "q2\td2\t2\nq1\td1\t1\r\nq1\td2\t0\n"

	t.Run("SetOfThreeFiles", func(t *testing.T) {
		t.Parallel()

		set, err := Read(writeSet(t, corpus, queries, judgements) + "/")
		if err != nil {
			t.Fatal(err)
		}
		if set.Name != "tiny" || len(set.Documents) != 2 || set.Documents[0].Title != "T" || set.Documents[1].Store != "s" {
			t.Errorf("got %s with %+v", set.Name, set.Documents)
		}
		if len(set.Queries) != 2 || set.Queries[0].ID != "q1" || set.Queries[1].Store != "s" {
			t.Errorf("got the queries %+v", set.Queries)
		}
		if set.Judgements["q1"]["d1"] != 1 || set.Judgements["q2"]["d2"] != 2 || len(set.Judgements["q1"]) != 2 {
			t.Errorf("got the judgements %v", set.Judgements)
		}
	})

	t.Run("HashIsTheCorpus", func(t *testing.T) {
		t.Parallel()

		var hashes [3][32]byte
		for i, text := range []string{corpus, corpus, corpus + `{"id": "d3"}`} {
			set, err := Read(writeSet(t, text, queries, judgements))
			if err != nil {
				t.Fatal(err)
			}
			hashes[i] = set.Hash
		}
		if hashes[0] != hashes[1] || hashes[0] == hashes[2] {
			t.Error("equal corpora have different hashes, or different ones the same")
		}
	})

	t.Run("ExpectedStatusNeedsNoJudgement", func(t *testing.T) {
		t.Parallel()

		const structured = `{"id": "q4", "keywords": ["a"], "filters": {"project": "p", "equipment": ["x", "y"]}, "expected": {"status": "no_hit"}}`
		set, err := Read(writeSet(t, corpus, queries+"\n"+structured, judgements))
		if err != nil {
			t.Fatal(err)
		}
		query := set.Queries[len(set.Queries)-1]
		if len(set.Queries) != 3 || query.Expected.Status != "no_hit" || !slices.Equal(query.Filters["project"], Values{"p"}) || !slices.Equal(query.Filters["equipment"], Values{"x", "y"}) {
			t.Errorf("got %+v", set.Queries)
		}
		if judged := set.judged(); len(judged) != 2 || len(set.Queries) != 3 {
			t.Errorf("measured are %+v", judged)
		}
	})

	t.Run("WrittenSetIsTheSame", func(t *testing.T) {
		t.Parallel()

		set, err := New("made", []Document{{ID: "d1", Title: "<T> & 水", Text: "one", Metadata: map[string]any{"codes": []any{"E-1"}}, KnowledgeType: "alarm"}}, []Query{
			{ID: "q1", Text: "a", Keywords: []string{"a"}, QueryText: "b", Mode: "auto", Filters: map[string]Values{"f": {"x"}, "g": {"x", "y"}}, Expected: &Expected{
				Status: "too_many", Total: 9, Facets: map[string][]Bucket{"f": {{"x", 9}}}, FacetsTruncated: map[string]int{"f": 0},
			}},
			{ID: "q2", Text: "b", Expected: &Expected{Status: "no_hit"}},
		}, map[string]map[string]int{"q1": {"d1": 2}})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "made")
		if err := Write(dir, set); err != nil {
			t.Fatal(err)
		}
		if read, err := Read(dir); err != nil || !reflect.DeepEqual(read, set) {
			t.Errorf("%+v came back as %+v, %v", set, read, err)
		}
	})

	for name, row := range map[string]struct{ corpus, queries, judgements, want string }{
		"NoCorpus":       {"-", queries, judgements, "corpus.jsonl"},
		"NoQueries":      {corpus, "-", judgements, "queries.jsonl"},
		"NoJudgements":   {corpus, queries, "-", "qrels.tsv"},
		"BrokenDocument": {corpus + "{", queries, judgements, "read the corpus of tiny: line 4"},
		"BrokenQuery":    {corpus, "oil", judgements, "read the queries of tiny: line 1"},
		"MissingField":   {corpus, queries, "q1\td1\n", "line 1 has 2 fields"},
		"GradeInWords":   {corpus, queries, "q1\td1\t1\nq1\td2\tgood\n", "line 2: "},
	} {
		t.Run(name+"IsSaid", func(t *testing.T) {
			t.Parallel()

			if _, err := Read(writeSet(t, row.corpus, row.queries, row.judgements)); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestArmMode(t *testing.T) {
	t.Parallel()

	seen := map[any]bool{}
	for _, arm := range []Arm{ArmLexical, ArmSemantic, ArmHybrid} {
		mode, err := arm.Mode()
		if err != nil || seen[mode] {
			t.Errorf("%s gives mode %v, %v", arm, mode, err)
		}
		seen[mode] = true
	}
	if _, err := Arm("left").Mode(); err == nil || !strings.Contains(err.Error(), `"left"`) {
		t.Errorf("got %v", err)
	}
}
