package api_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

// rerankFunc is a reranker of a test.
type rerankFunc func(ctx context.Context, query string, passages []string) ([]float64, error)

func (f rerankFunc) Rerank(ctx context.Context, query string, passages []string) ([]float64, error) {
	return f(ctx, query, passages)
}

// byHash scores each passage by what it is, so that the same text always has the same score.
func byHash(_ context.Context, query string, passages []string) ([]float64, error) {
	scores := make([]float64, len(passages))
	for i, passage := range passages {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(query + passage))
		scores[i] = float64(hash.Sum32()) / math.MaxUint32
	}
	return scores, nil
}

func rerankBy(reranker search.Reranker, candidates int) config {
	return config{Reranking: search.Reranking{Model: "own", Reranker: reranker, Candidates: candidates, Timeout: time.Minute}}
}

var plantWords = strings.Fields("pump seal valve bearing motor spindle grease oil leak noise heat belt gear shaft filter hose tank sensor relay fuse " +
	"clutch brake piston rotor fan nozzle gasket flange coupling drain")

func plantText(random *rand.Rand, words int) string {
	text := make([]string, words)
	for i := range text {
		text[i] = plantWords[random.IntN(len(plantWords))]
	}
	return strings.Join(text, " ")
}

// startPlant serves a document with 120 chunks.
func startPlant(t testing.TB, c config) *server {
	t.Helper()
	s := start(t, c)
	s.ingestParts(t, 120, 12)
	return s
}

// ingestParts uploads a document with so many chunks of so many words.
func (s *server) ingestParts(t testing.TB, parts, words int) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	var text strings.Builder
	for i := range parts {
		_, _ = fmt.Fprintf(&text, "# Part %d\n\nThe %s.\n\n", i, plantText(random, words))
	}
	if done := s.ingest(t, file("plant.md", text.String())...); done["chunk_count"] != float64(parts) {
		t.Fatalf("ingested %v", done)
	}
}

// TestRerankedOrderIsTheBlend computes the blend of 200 queries anew, from the plain search and the scores of a cross-encoder.
func TestRerankedOrderIsTheBlend(t *testing.T) {
	t.Parallel()
	const candidates = 14
	s := startPlant(t, rerankBy(onnxtest.Reranker(t), candidates))
	random := rand.New(rand.NewPCG(1, 2))
	moved := 0
	for range 200 {
		query := plantText(random, 1+random.IntN(4))
		plain := s.ask(t, query, `,"top":20,"explain":true,"rerank":false`)
		got := s.ask(t, query, `,"top":20,"explain":true`)
		if *plain.Reranked || !*got.Reranked || got.TotalMatches != plain.TotalMatches || got.Status != plain.Status || len(got.Results) != len(plain.Results) {
			t.Fatalf("%s: reranked %v, %d of %d, %s; plain %d of %d, %s", query, *got.Reranked, len(got.Results), got.TotalMatches, got.Status,
				len(plain.Results), plain.TotalMatches, plain.Status)
		}
		if len(plain.Results) <= candidates {
			t.Fatalf("%s: %d results are too few", query, len(plain.Results))
		}
		best, least := plain.Results[0].Score, plain.Results[candidates-1].Score
		finals := make([]float64, len(plain.Results))
		for _, h := range got.Results {
			before := slices.IndexFunc(plain.Results, func(p hit) bool { return p.ChunkID == h.ChunkID })
			e, p := h.Explain, plain.Results[before].Explain
			if p.PreRank != nil || p.Norm != nil || p.Rerank != nil || p.Weight != nil {
				t.Fatalf("%s: plain explain %+v", query, p)
			}
			if before >= candidates {
				if e.PreRank != nil || e.Norm != nil || e.Rerank != nil || e.Weight != nil || h.Score != 0 || e.FinalScore != 0 {
					t.Fatalf("%s: %d is past the candidates: score %v, %+v", query, before, h.Score, e)
				}
				continue
			}
			weight := 0.40
			if before < 3 {
				weight = 0.75
			} else if before < 10 {
				weight = 0.60
			}
			norm := (plain.Results[before].Score - least) / (best - least)
			finals[before] = weight*norm + (1-weight)**e.Rerank
			if *e.PreRank != before+1 || math.Abs(*e.Norm-norm) > 1e-12 || *e.Weight != weight || *e.Rerank < 0 || *e.Rerank > 1 ||
				math.Abs(h.Score-finals[before]) > 1e-12 || e.FinalScore != h.Score || e.Bonus != p.Bonus || (e.FTSRank == nil) != (p.FTSRank == nil) {
				t.Fatalf("%s: %+v, want rank %d, norm %v, weight %v, final %v", query, e, before+1, norm, weight, finals[before])
			}
		}
		order := make([]int, len(finals))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order[:candidates], func(a, b int) int {
			switch {
			case finals[a] > finals[b]:
				return -1
			case finals[a] < finals[b]:
				return 1
			default:
				return 0
			}
		})
		for i, before := range order {
			if got.Results[i].ChunkID != plain.Results[before].ChunkID {
				t.Fatalf("%s: place %d is not the one that was %d", query, i+1, before+1)
			}
		}
		if order[0] != 0 {
			moved++
		}
	}
	if moved < 20 {
		t.Errorf("reranking changed the first place of %d queries of 200", moved)
	}
}

func TestRerank(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	type question struct {
		query    string
		passages []string
	}
	var last atomic.Pointer[question]
	s := startPlant(t, rerankBy(rerankFunc(func(ctx context.Context, query string, passages []string) ([]float64, error) {
		calls.Add(1)
		last.Store(&question{query, passages})
		return byHash(ctx, query, passages)
	}), 40))
	all := s.ask(t, "pump seal", `,"top":100`)
	if !*all.Reranked || all.Results[39].Score == 0 || all.Results[40].Score != 0 {
		t.Fatalf("reranked %v, scores %v and %v", *all.Reranked, all.Results[39].Score, all.Results[40].Score)
	}

	t.Run("ReadsTitleSectionAndTextOfTheCandidates", func(t *testing.T) {
		plain := s.ask(t, "pump seal", `,"top":40,"rerank":false`)
		for i, h := range plain.Results {
			want := h.Title + "\n" + h.Section + "\n" + h.Text
			if h.Section == h.Title {
				want = h.Title + "\n" + h.Text
			}
			if got := last.Load(); got.query != "pump seal" || len(got.passages) != 40 || got.passages[i] != want {
				t.Fatalf("place %d is not %q in %+v", i+1, want, got)
			}
		}
		s.know(t, `{"query": "pump -zebra \"seal\"", "rerank": true}`)
		if got := last.Load().query; strings.Join(strings.Fields(got), " ") != "pump seal" {
			t.Errorf("of knowledge search it reads the query as %q", got)
		}
	})

	t.Run("ALongerPageBeginsWithTheShorterOne", func(t *testing.T) {
		for _, top := range []int{1, 7, 39, 40, 41, 60} {
			got := s.ask(t, "pump seal", fmt.Sprintf(`,"top":%d`, top))
			for i, h := range got.Results {
				if len(got.Results) != top || h.ChunkID != all.Results[i].ChunkID || h.Score != all.Results[i].Score {
					t.Fatalf("top %d: %d results, place %d differs", top, len(got.Results), i+1)
				}
			}
		}
	})

	t.Run("OptOutIsThePlainSearch", func(t *testing.T) {
		before := calls.Load()
		got := s.ask(t, "pump seal", `,"rerank":false`)
		if *got.Reranked || calls.Load() != before || slices.EqualFunc(got.Results, all.Results[:10], func(a, b hit) bool { return a.ChunkID == b.ChunkID }) {
			t.Errorf("got %+v", got.titles())
		}
	})

	t.Run("SingleArmsNeverRerank", func(t *testing.T) {
		before := calls.Load()
		for _, more := range []string{`,"fts_only":true`, `,"vec_only":true`} {
			want := s.ask(t, "pump seal", more+`,"rerank":false,"explain":true`)
			got := s.ask(t, "pump seal", more+`,"rerank":true,"explain":true`)
			if *got.Reranked || got.Results[0].Score != want.Results[0].Score || got.Results[0].Explain.Rerank != nil || calls.Load() != before {
				t.Errorf("%s: %+v", more, got.Results[0])
			}
		}
	})

	t.Run("StructuredSearchKnowsNoReranking", func(t *testing.T) {
		s.post(t, "/api/v1/search", `{"keywords": ["pump"], "rerank": true}`).wantError(t, http.StatusBadRequest, map[string]any{"field": "body.rerank"})
		if got := s.search(t, `{"keywords": ["pump"], "rerank": false}`); *got.Reranked || len(got.Results) == 0 {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("NoResultsAreNotReranked", func(t *testing.T) {
		before := calls.Load()
		for _, body := range []string{`{"query": "pump", "min_score": 5}`, `{"query": "??"}`, `{"query": "pump", "tags": ["none"]}`} {
			if got := s.search(t, body); *got.Reranked || len(got.Results) != 0 || calls.Load() != before {
				t.Errorf("%s: got %+v", body, got)
			}
		}
	})

	t.Run("KnowledgeSearchPagesFitTogether", func(t *testing.T) {
		before := calls.Load()
		if got := s.know(t, `{"query": "pump seal"}`); got["reranked"] != nil || calls.Load() != before {
			t.Errorf("unasked: %v", got["reranked"])
		}
		ids := func(got map[string]any) (ids []string) {
			for _, r := range got["results"].([]any) {
				ids = append(ids, r.(map[string]any)["chunk_id"].(string))
			}
			return ids
		}
		whole := s.know(t, `{"query": "pump seal", "rerank": true, "limit": 100, "explain": true}`)
		if whole["reranked"] != true {
			t.Fatalf("not reranked: %v", whole)
		}
		var paged []string
		for offset := 0; offset < len(ids(whole)); offset += 7 {
			got := s.know(t, fmt.Sprintf(`{"query": "pump seal", "rerank": true, "limit": 7, "offset": %d, "explain": true}`, offset))
			if got["reranked"] != (offset < 40) || got["total"] != whole["total"] {
				t.Errorf("offset %d: reranked %v, total %v", offset, got["reranked"], got["total"])
			}
			removed := got["explain"].(map[string]any)["removed"].(map[string]any)
			if removed["limit"].(float64) != got["total"].(float64)-float64(len(ids(got))) {
				t.Errorf("offset %d: removed %v of %v", offset, removed, got["total"])
			}
			paged = append(paged, ids(got)...)
		}
		if !slices.Equal(paged[:len(ids(whole))], ids(whole)) {
			t.Errorf("pages give\n%v\nwant\n%v", paged, ids(whole))
		}
		for i, r := range whole["results"].([]any) {
			e := r.(map[string]any)["explain"].(map[string]any)
			if (e["pre_rerank_rank"] != nil) != (i < 40) || (e["blend_weight"] != nil) != (i < 40) || (e["rerank_score"] != nil) != (i < 40) || e["score"] != r.(map[string]any)["score"] {
				t.Fatalf("result %d: %v", i, e)
			}
		}
	})
}

// TestRerankWhy asks where documents stand after reranking, which turns six of them around.
func TestRerankWhy(t *testing.T) {
	t.Parallel()
	s := start(t, rerankBy(rerankFunc(func(_ context.Context, _ string, passages []string) ([]float64, error) {
		scores := make([]float64, len(passages))
		scores[len(scores)-1] = 1 // the last one comes to the second place
		return scores, nil
	}), 6))
	var ids []string
	for i := range 8 {
		done := s.ingest(t, note(fmt.Sprintf("Note %d", i), "pump"+strings.Repeat(" oil", i))...)
		ids = append(ids, `"`+done["document_id"].(string)+`"`)
	}
	ask := func(offset int) (titles []string, steps map[string]string) {
		got := s.know(t, fmt.Sprintf(`{"query": "pump", "rerank": true, "limit": 2, "offset": %d, "why": [%s]}`, offset, strings.Join(ids, ",")))
		steps = map[string]string{}
		for _, why := range got["why"].([]any) {
			steps[why.(map[string]any)["document_id"].(string)] = why.(map[string]any)["step"].(string) + fmt.Sprint(why.(map[string]any)["position"])
		}
		for _, r := range got["results"].([]any) {
			id := r.(map[string]any)["document_id"].(string)
			titles = append(titles, id)
			if !strings.HasPrefix(steps[id], "returned") {
				t.Errorf("offset %d: %s was %s", offset, id, steps[id])
			}
		}
		return titles, steps
	}
	first, _ := ask(0)
	second, steps := ask(2)
	if steps[first[0]] != "offset1" || steps[first[1]] != "offset2" || steps[second[0]] != "returned3" || steps[second[1]] != "returned4" {
		t.Errorf("first page %v, second %v, steps %v", first, second, steps)
	}
	_, last := ask(6)
	places := map[string]bool{}
	for _, step := range last {
		places[step] = true
	}
	if len(places) != 8 || !places["returned7"] || !places["offset1"] {
		t.Errorf("steps %v", last)
	}
}

// TestRerankThresholdComesBefore has a reranker that likes what stands last, and a threshold that leaves it out.
func TestRerankThresholdComesBefore(t *testing.T) {
	t.Parallel()
	s := startPlant(t, rerankBy(rerankFunc(byHash), 40))
	plain := s.ask(t, "pump seal", `,"top":100,"rerank":false`)
	floor := plain.Results[4].Score
	got := s.ask(t, "pump seal", fmt.Sprintf(`,"min_score":%v`, floor))
	if !*got.Reranked || len(got.Results) != 5 || got.TotalMatches != 5 {
		t.Fatalf("%d results of %d", len(got.Results), got.TotalMatches)
	}
	for _, h := range got.Results {
		if slices.IndexFunc(plain.Results, func(p hit) bool { return p.ChunkID == h.ChunkID }) > 4 {
			t.Errorf("%s is below the threshold", h.Section)
		}
	}
	if last := got.Results[4].Score; last > 0.75 {
		t.Errorf("the least score is %v", last)
	}
}

func TestRerankDegrades(t *testing.T) {
	t.Parallel()
	s := startPlant(t, config{})
	want := s.ask(t, "pump seal", "")
	if *want.Reranked {
		t.Fatal("reranked without a reranker")
	}
	blocked := func(ctx context.Context, _ string, _ []string) ([]float64, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	failing := func(err error) rerankFunc {
		return func(context.Context, string, []string) ([]float64, error) { return nil, fmt.Errorf("rerank: %w", err) }
	}
	for name, test := range map[string]struct {
		reranker search.Reranker
		reason   string
	}{
		"NotLoaded":   {nil, ""},
		"Late":        {rerankFunc(blocked), "timeout"},
		"Busy":        {failing(embed.ErrBusy), "busy"},
		"Unavailable": {failing(embed.ErrUnavailable), "unavailable"},
		"Broken":      {failing(errors.New("the model's output is not a number")), "error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, config{On: s, NoWorker: true, Reranking: search.Reranking{Model: "own", Reranker: test.reranker, Candidates: 40, Timeout: 50 * time.Millisecond}})
			for _, more := range []string{"", `,"rerank":true`} {
				got := s.ask(t, "pump seal", more)
				if *got.Reranked || !slices.EqualFunc(got.Results, want.Results, func(a, b hit) bool { return a.ChunkID == b.ChunkID && a.Score == b.Score }) {
					t.Errorf("%q: got %+v", more, got)
				}
			}
			if got := s.know(t, `{"query": "pump seal", "rerank": true, "offset": 3}`); got["reranked"] != false || len(got["results"].([]any)) != 10 {
				t.Errorf("got %v", got)
			}
			metrics := string(s.get(t, "/metrics").body)
			counted := strings.Contains(metrics, `kb_upstream_errors_total{upstream="reranker"} 3`) &&
				strings.Contains(metrics, fmt.Sprintf(`kb_rerank_skipped_total{reason=%q} 3`, test.reason))
			if counted != (test.reason != "") || test.reason == "" && !strings.Contains(metrics, `kb_upstream_errors_total{upstream="reranker"} 0`) {
				t.Errorf("metrics: %s", metrics)
			}
			rerank := s.get(t, "/api/v1/status").object(t)["rerank"].(map[string]any)
			if rerank["enabled"] != true || rerank["model"] != "own" || rerank["loaded"] != (test.reranker != nil) || rerank["candidates"] != 40.0 {
				t.Errorf("status: %v", rerank)
			}
		})
	}
}

// TestRerankCallerGoesAway leaves while the reranker works, which is no failure of the reranker.
func TestRerankCallerGoesAway(t *testing.T) {
	t.Parallel()
	reached, ended := make(chan struct{}), make(chan struct{})
	s := startPlant(t, rerankBy(rerankFunc(func(ctx context.Context, _ string, _ []string) ([]float64, error) {
		close(reached)
		<-ctx.Done()
		close(ended)
		return nil, context.Cause(ctx)
	}), 40))
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/v1/search", strings.NewReader(`{"query": "pump"}`))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	go func() { <-reached; cancel() }()
	if response, err := s.client.Do(request); err == nil {
		_ = response.Body.Close()
		t.Errorf("answered %d", response.StatusCode)
	}
	<-ended
	s.api.Close() // It waits for what requests have left; the metrics are complete once the handler has returned.
	if metrics := string(s.get(t, "/metrics").body); !strings.Contains(metrics, `kb_upstream_errors_total{upstream="reranker"} 0`) || strings.Contains(metrics, "kb_rerank_skipped_total{") {
		t.Errorf("metrics: %s", metrics)
	}
}
