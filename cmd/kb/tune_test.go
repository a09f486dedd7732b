package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strings"
	"testing"

	"github.com/kb-search/kb/cmd/kb/eval"
	"github.com/kb-search/kb/db/dbtest"
)

// titleOrText writes a set in which each query has a document with the word in its title and one with the word in its text.
// relevant says of a query which of them, "title" or "text", is the right one.
func titleOrText(t *testing.T, dir string, relevant func(query string) string) {
	t.Helper()
	words := strings.Fields("anchor beacon candle dragon engine falcon garden hammer island jacket kettle ladder")
	var corpus, queries, judgements strings.Builder
	for i, word := range words {
		query := fmt.Sprintf("q%d", i)
		_, _ = fmt.Fprintf(&corpus, `{"id": "title-%[1]d", "title": "The %[2]s", "text": "It is number %[1]d."}`+"\n", i, word)
		_, _ = fmt.Fprintf(&corpus, `{"id": "text-%[1]d", "title": "Sheet %[1]d", "text": "%[2]s %[2]s %[2]s %[2]s"}`+"\n", i, word)
		_, _ = fmt.Fprintf(&queries, `{"id": %q, "text": %q}`+"\n", query, word)
		_, _ = fmt.Fprintf(&judgements, "%s\t%s-%d\t1\n", query, relevant(query), i)
	}
	write(t, dir, map[string]string{"corpus.jsonl": corpus.String(), "queries.jsonl": queries.String(), "qrels.tsv": judgements.String()})
}

// heldOut is how kb tune halves queries.
func heldOut(id string) bool {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	return hash.Sum32()&1 == 1
}

func TestTune(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	// As they are set, searches put the word in the text first.
	variables := []string{"KB_DATABASE_URL=" + address, "KB_DATA_DIR=" + t.TempDir(), "KB_LOG_LEVEL=warn", "KB_SEARCH__TITLE_BOOST=0.1", "KB_SEARCH__VECTOR_WEIGHT=0",
		"KB_SEARCH__LOG_QUERIES=true"}
	grid := []string{"--title-boost", "0.1,20", "--vector-weight", "0", "--rrf-window", "50", "--k1", "1.2", "--b", "0.75"}
	tune := func(args ...string) result {
		return execute(t, variables, append(append([]string{"tune"}, grid...), args...)...)
	}
	settings := func(t *testing.T) string {
		t.Helper()
		var projects struct {
			Data []struct {
				Name           string          `json:"name"`
				SearchSettings json.RawMessage `json:"search_settings"`
			} `json:"data"`
		}
		s := serve(t, t.TempDir(), variables...)
		s.ready(t)
		s.get(t, "/api/v1/projects", &projects)
		s.signal(15)
		return string(projects.Data[0].SearchSettings)
	}

	t.Run("PrintsAndChangesNothing", func(t *testing.T) {
		dir := t.TempDir() + "/titles"
		titleOrText(t, dir, func(string) string { return "title" })
		out := tune(dir, "--json")
		out.want(t, 0)
		var tuned eval.Tuned
		if err := json.Unmarshal([]byte(out.stdout), &tuned); err != nil {
			t.Fatal(err)
		}
		best := tuned.Tried[0]
		if len(tuned.Tried) != 2 || best.Tuning["title_boost"] != 20.0 || best.NDCG10 != 1 || tuned.Current >= 1 || tuned.Queries+tuned.HeldOut != 12 ||
			tuned.Gain.Low <= 0 || tuned.Gain.High < tuned.Gain.Mean || tuned.HeldOutGain.Mean <= 0 {
			t.Errorf("%+v", tuned)
		}
		tune(dir).want(t, 0, "title_boost", "nDCG@10", "current settings:", "best: b 0.75, k1 1.2, rrf_window 50, title_boost 20, vector_weight 0", "held-out")
		if got := settings(t); got != "{}" {
			t.Errorf("without --apply the project has %s", got)
		}
	})

	t.Run("WhatLosesOnHeldOutQueriesIsNotApplied", func(t *testing.T) {
		dir := t.TempDir() + "/mixed"
		titleOrText(t, dir, func(query string) string { return map[bool]string{true: "text", false: "title"}[heldOut(query)] })
		tune(dir, "--apply").want(t, 1, "not applied", "lose against the current ones")
		if got := settings(t); got != "{}" {
			t.Errorf("the project has %s", got)
		}
	})

	t.Run("WhatGainsIsApplied", func(t *testing.T) {
		dir := t.TempDir() + "/titles"
		titleOrText(t, dir, func(string) string { return "title" })
		tune(dir, "--apply").want(t, 0, "project default now searches with")
		if got := settings(t); !strings.Contains(got, `"title_boost":20`) {
			t.Errorf("the project has %s", got)
		}
	})

	t.Run("CurrentSettingsAreTheProjects", func(t *testing.T) {
		dir := t.TempDir() + "/titles"
		titleOrText(t, dir, func(string) string { return "title" })
		worse := execute(t, variables, "tune", "--title-boost", "0.1", "--vector-weight", "0", "--rrf-window", "50", "--k1", "1.2", "--b", "0.75", "--apply", dir)
		worse.want(t, 1, "current settings: 1.0000", "not applied", "lose against the current ones")
		tune(dir, "--apply").want(t, 1, "gain nothing over the current ones")
		tune(dir, "--apply", "--queries", "4").want(t, 1, "are too few to trust a gain")
	})

	t.Run("BadArguments", func(t *testing.T) {
		tune("--search", "semantic").want(t, 2, `there is no search "semantic"`)
		tune("--k1", "much").want(t, 2, `--k1: "much" is no number`)
		tune("/nowhere").want(t, 1, "read the set nowhere")
	})
}

// TestTuneByFeedback rates results over HTTP and tunes by them.
func TestTuneByFeedback(t *testing.T) {
	t.Parallel()
	variables := []string{"KB_DATABASE_URL=" + dbtest.URL(t), "KB_SEARCH__TITLE_BOOST=0.1", "KB_SEARCH__VECTOR_WEIGHT=0"}
	dir, docs := t.TempDir(), t.TempDir()
	words := strings.Fields("anchor beacon candle dragon engine falcon garden hammer island jacket kettle ladder")
	for i, word := range words {
		write(t, docs, map[string]string{
			word + ".md":            fmt.Sprintf("# The %s\n\nIt is number %d.\n", word, i),
			"sheet-" + word + ".md": fmt.Sprintf("# Sheet %[1]d\n\n%[2]s %[2]s %[2]s %[2]s\n", i, word),
		})
	}
	tune := func(want int, parts ...string) {
		t.Helper()
		execute(t, append(variables, "KB_DATA_DIR="+dir, "KB_LOG_LEVEL=warn"), "tune", "--title-boost", "0.1,20", "--vector-weight", "0", "--rrf-window", "50", "--k1", "1.2", "--b", "0.75").want(t, want, parts...)
	}
	for _, keep := range []string{"false", "true"} {
		s := serve(t, dir, append(variables, "KB_SEARCH__LOG_QUERIES="+keep)...)
		s.ready(t)
		if keep == "false" {
			s.kb(t, "ingest", docs).want(t, 0, "24 stored")
		}
		for _, word := range words {
			var answer struct {
				SearchID string `json:"search_id"`
				Results  []struct {
					DocumentID string `json:"document_id"`
					Title      string `json:"title"`
				} `json:"results"`
			}
			s.post(t, "/api/v1/search", fmt.Sprintf(`{"keywords": [%q]}`, word), http.StatusOK, &answer)
			for _, result := range answer.Results {
				rating := map[bool]string{true: "up", false: "down"}[strings.HasPrefix(result.Title, "The ")]
				s.post(t, "/api/v1/search/feedback", fmt.Sprintf(`{"search_id": %q, "result_id": %q, "rating": %q}`, answer.SearchID, result.DocumentID, rating), http.StatusCreated, &struct{}{})
			}
		}
		s.signal(15)
		if keep == "false" {
			tune(1, "12 have no text: it is kept with KB_SEARCH__LOG_QUERIES=true")
		}
	}
	tune(0, "best: b 0.75, k1 1.2, rrf_window 50, title_boost 20, vector_weight 0")
}

// post sends JSON and reads a JSON answer.
func (s *server) post(t *testing.T, path, body string, status int, into any) {
	t.Helper()
	response, err := http.Post("http://"+s.addr+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var got bytes.Buffer
	if _, err := got.ReadFrom(response.Body); err != nil || response.StatusCode != status {
		t.Fatalf("%s answered %d, %v: %s", path, response.StatusCode, err, got.String())
	}
	if err := json.Unmarshal(got.Bytes(), into); err != nil {
		t.Fatal(err)
	}
}
