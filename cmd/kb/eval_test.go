package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/cmd/kb/eval"
	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

// judgedSet writes ten documents and five queries with one relevant document each.
func judgedSet(t *testing.T, dir string, store func(i int) string) {
	t.Helper()
	texts := []string{
		"Change the engine oil every ten thousand kilometres.", "Brake fluid is replaced every two years.",
		"The clutch slips when its disc is worn.", "Summer tyres wear quickly in the cold.",
		"A weak battery fails on the first frosty morning.", "The timing belt drives the camshaft.",
		"Coolant keeps the motor from boiling.", "Wiper blades smear when they are old.",
		"The exhaust rattles over the rear axle.", "Headlights must not dazzle oncoming traffic.",
	}
	questions := []string{
		"how often to change engine oil", "when is brake fluid replaced", "clutch slips", "car does not start in winter battery",
		"what drives the camshaft",
	}
	relevant := []int{0, 1, 2, 4, 5}
	var corpus, queries, judgements strings.Builder
	for i, text := range texts {
		_, _ = fmt.Fprintf(&corpus, `{"id": "d%d", "title": "Car %d", "text": %q, "store": %q}`+"\n", i, i, text, store(i))
	}
	for i, text := range questions {
		_, _ = fmt.Fprintf(&queries, `{"id": "q%d", "text": %q, "store": %q}`+"\n", i, text, store(relevant[i]))
		_, _ = fmt.Fprintf(&judgements, "q%d\td%d\t1\n", i, relevant[i])
	}
	write(t, dir, map[string]string{"corpus.jsonl": corpus.String(), "queries.jsonl": queries.String(), "qrels.tsv": judgements.String()})
}

func TestEval(t *testing.T) {
	t.Parallel()

	address := dbtest.URL(t)
	variables := []string{"KB_DATABASE_URL=" + address, "KB_DATA_DIR=" + t.TempDir(), "KB_LOG_LEVEL=warn"}
	dir := t.TempDir() + "/tiny"
	judgedSet(t, dir, func(int) string { return "" })

	measure := func(t *testing.T, args ...string) []eval.Result {
		t.Helper()
		out := execute(t, variables, append([]string{"eval", "--json"}, args...)...)
		out.want(t, 0, "10 documents, 10 chunks")
		var results []eval.Result
		if err := json.Unmarshal([]byte(out.stdout), &results); err != nil {
			t.Fatalf("%v in:\n%s", err, out.stdout)
		}
		return results
	}
	embedded := func(t *testing.T) (count int, last time.Time) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		query := "SELECT count(*), max(d.created_at) FROM embeddings AS e JOIN documents AS d ON d.id = e.document_id AND d.project_id = e.project_id"
		if err := conn.QueryRow(t.Context(), query).Scan(&count, &last); err != nil {
			t.Fatal(err)
		}
		return count, last
	}

	results := measure(t, dir)
	arms := make([]eval.Arm, 0, len(results))
	for _, r := range results {
		arms = append(arms, r.Arm)
		if r.Set != "tiny" || r.Documents != 10 || r.Chunks != 10 || r.Queries != 5 {
			t.Errorf("got %+v", r)
		}
		if r.NDCG10 < 0.9 || r.NDCG10 > 1 || r.Recall100 != 1 || r.MRR < 0.8 || r.StatementP50 <= 0 || r.StatementP95 < r.StatementP50 {
			t.Errorf("%s: %+v", r.Arm, r)
		}
		if (r.EmbedP50 > 0) != (r.Arm != eval.ArmLexical) {
			t.Errorf("%s: the query took %v ms to embed", r.Arm, r.EmbedP50)
		}
	}
	if !slices.Equal(arms, []eval.Arm{eval.ArmLexical, eval.ArmSemantic, eval.ArmHybrid, eval.ArmRRF, eval.ArmBlend}) {
		t.Errorf("got the arms %v", arms)
	}

	count, last := embedded(t)
	if count != 10 {
		t.Errorf("%d vectors", count)
	}
	again := measure(t, dir, "--arm", "hybrid", "--queries", "2")
	if len(again) != 1 || again[0].Queries != 2 {
		t.Errorf("got %+v", again)
	}
	if recount, relast := embedded(t); recount != count || !relast.Equal(last) {
		t.Errorf("the second run embedded again: %d vectors, the last at %s; before %d, %s", recount, relast, count, last)
	}

	standIn := []string{"KB_RERANKER_MODEL=own", "KB_RERANKER_DIR=" + onnxtest.RerankerOptions(t).Dir}
	out := execute(t, append(standIn, variables...), "eval", dir, "--arm", "reranked", "--json")
	var reranked []eval.Result
	if err := json.Unmarshal([]byte(out.stdout), &reranked); err != nil || len(reranked) != 1 || reranked[0].NDCG10 < 0.9 || reranked[0].RequestP50 <= 0 {
		t.Errorf("reranked: %v, %+v: %s", err, reranked, out.stderr)
	}
	noReranker := append([]string{"KB_RERANKER_MODEL=own", "KB_RERANKER_DIR=" + t.TempDir()}, variables...)
	execute(t, noReranker, "eval", dir, "--arm", "reranked").want(t, 1, "the arm reranked has no reranker")

	other := t.TempDir() + "/tiny"
	judgedSet(t, other, func(i int) string { return fmt.Sprintf("store %d", i%2) })
	narrowed := measure(t, other, "--arm", "semantic")
	if len(narrowed) != 1 || narrowed[0].Recall100 != 1 {
		t.Errorf("got %+v", narrowed)
	}
	judgedSet(t, other+"-apart", func(i int) string { return fmt.Sprintf("store %d", i) })
	alone := measure(t, other+"-apart", "--arm", "semantic")
	if len(alone) != 1 || alone[0].NDCG10 != 1 || alone[0].MRR != 1 {
		t.Errorf("a store of one document gives more than that: %+v", alone)
	}

	execute(t, variables, "eval", dir, "--arm", "lexical").want(t, 0, "nDCG@10", "recall@100", "statement p50", "tiny  lexical")
	execute(t, variables, "eval", dir+"/none").want(t, 1, "read the set none")
}
