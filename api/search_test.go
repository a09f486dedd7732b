package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kb-search/kb/embed/embedtest"
)

// found is an answer to a search as a client reads it.
type found struct {
	Query        string
	Status       string
	Banner       *string
	Results      []hit
	TotalMatches int   `json:"total_matches"`
	Reranked     *bool `json:"reranked"`
	Degraded     []string
	SearchID     string                   `json:"search_id"`
	Facets       map[string][]facetBucket `json:"facets"`
	Truncated    map[string]int           `json:"facets_truncated"`
}

type facetBucket struct {
	Value string
	Count int
}

type hit struct {
	ChunkID     string            `json:"chunk_id"`
	DocumentID  string            `json:"document_id"`
	Title       string            `json:"title"`
	DocType     string            `json:"doc_type"`
	Section     string            `json:"section"`
	Text        string            `json:"text"`
	Score       float64           `json:"score"`
	Similarity  *float64          `json:"similarity_score"`
	Tags        []string          `json:"tags"`
	TagContexts map[string]string `json:"tag_contexts"`
	UpdatedAt   *string           `json:"updated_at"`
	Others      *int              `json:"other_matches"`
	Explain     *struct {
		FTSScore   *float64 `json:"fts_score"`
		FTSRank    *int     `json:"fts_rank"`
		VecScore   *float64 `json:"vec_score"`
		VecRank    *int     `json:"vec_rank"`
		RRFFTS     *float64 `json:"rrf_fts"`
		RRFVec     *float64 `json:"rrf_vec"`
		Bonus      float64  `json:"bonus"`
		PreRank    *int     `json:"pre_rerank_rank"`
		Norm       *float64 `json:"retrieval_norm"`
		Rerank     *float64 `json:"rerank_score"`
		Weight     *float64 `json:"blend_weight"`
		FinalScore float64  `json:"final_score"`
	} `json:"explain"`
}

// search posts a body and checks what holds for every answer.
func (s *server) search(t *testing.T, body string) (f found) {
	t.Helper()
	got := s.post(t, "/api/v1/search", body).want(t, 200)
	must(t, json.Unmarshal(got.body, &f))
	if f.Results == nil || f.Reranked == nil || f.TotalMatches < len(f.Results) || !isID(f.SearchID, "search") ||
		(f.Status == "no_hit") && f.TotalMatches > 0 || len(f.Results) > 0 && (f.Status == "no_hit" || f.Status == "too_many") {
		t.Errorf("search %.80s: %.300s", body, got.body)
	}
	if banner := f.Banner != nil; banner != (f.Status == "loose_hit" || f.Status == "vector_only") {
		t.Errorf("search %.80s: %s with banner %v", body, f.Status, f.Banner)
	}
	for i, h := range f.Results {
		if h.Tags == nil || h.TagContexts == nil || !isID(h.ChunkID, "dchunk") || !isID(h.DocumentID, "doc") || i > 0 && h.Score > f.Results[i-1].Score {
			t.Errorf("search %.80s: hit %d is %+v", body, i, h)
		}
		if h.Similarity != nil && (math.IsNaN(*h.Similarity) || math.Abs(*h.Similarity) > 1.001) {
			t.Errorf("search %.80s: similarity %v", body, *h.Similarity)
		}
	}
	return f
}

// ask searches for a query with further fields of the body.
func (s *server) ask(t *testing.T, query, more string) found {
	t.Helper()
	encoded, err := json.Marshal(query)
	must(t, err)
	return s.search(t, fmt.Sprintf(`{"query":%s%s}`, encoded, more))
}

func (f found) titles() (titles []string) {
	for _, h := range f.Results {
		titles = append(titles, h.Title)
	}
	return titles
}

func TestSearchEmptyKnowledgeBase(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	got := s.post(t, "/api/v1/search", `{"query":"anything"}`).want(t, 200).object(t)
	if results, isList := got["results"].([]any); !isList || len(results) != 0 || got["total_matches"] != 0.0 || got["query"] != "anything" || got["status"] != "no_hit" {
		t.Errorf("got %v", got)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	tag := func(parts []part, tags string) []part { return append(parts, part{"tags", "", tags}) }
	s.ingest(t, tag(note("Grass", "The color of grass is green."), "nature,garden")...)
	s.ingest(t, tag(note("Fox", `The "quick" brown fox jumps.`), "nature")...)
	s.ingest(t, tag(file("brakes.md", "# Brakes\n\nSomething other than brakes or wheels."), "maintenance")...)
	s.ingest(t, note("Oil", "How to change the oil of an engine.")...)
	_, err := s.pool.Exec(t.Context(), "UPDATE tags SET description = 'All that grows' WHERE name = 'garden'")
	must(t, err)

	t.Run("StatusesAndBanners", func(t *testing.T) {
		t.Parallel()
		for _, test := range []struct{ query, more, status, banner, first string }{
			{"change oil", "", "strict_hit", "", "Oil"},
			{"change zebra", "", "loose_hit", "没有完全匹配的知识，以下为相关参考，仅供参考。", "Oil"},
			{"zebra crossing", "", "vector_only", "未找到关键词匹配的知识，以下为语义相似的参考内容，可信度较低，仅供参考。", ""},
			{"zebra crossing", `,"fts_only":true`, "no_hit", "", ""},
			{"oil", `,"tags":["nothing"]`, "no_hit", "", ""},
			{"change oil", `,"vec_only":true`, "vector_only", "未找到关键词匹配的知识，以下为语义相似的参考内容，可信度较低，仅供参考。", "Oil"},
		} {
			got := s.ask(t, test.query, test.more)
			banner := ""
			if got.Banner != nil {
				banner = *got.Banner
			}
			if got.Status != test.status || banner != test.banner || test.first != "" && got.Results[0].Title != test.first || got.Query != test.query {
				t.Errorf("%s%s: got %s, %q, %v", test.query, test.more, got.Status, banner, got.titles())
			}
		}
	})

	t.Run("FiltersNarrowBothArms", func(t *testing.T) {
		t.Parallel()
		for more, want := range map[string][]string{
			`,"tags":["nature"]`:                            {"Fox", "Grass"},
			`,"tags":["nature","garden"]`:                   {"Grass"},
			`,"tags":["maintenance"],"doc_type":"markdown"`: {"Brakes"},
			`,"doc_type":"markdown"`:                        {"Brakes"},
			`,"doc_type":"pdf"`:                             nil,
			`,"tags":["nature"],"vec_only":true`:            {"Fox", "Grass"},
			`,"tags":["nature"],"fts_only":true`:            {"Fox"},
		} {
			got := s.ask(t, "brakes fox oil", more)
			titles := got.titles()
			if slices.Sort(titles); !slices.Equal(titles, want) || got.TotalMatches != len(want) {
				t.Errorf("%s: got %v of %d, want %v", more, titles, got.TotalMatches, want)
			}
		}
	})

	t.Run("ResultsCarryTagsAndTheirContexts", func(t *testing.T) {
		t.Parallel()
		got := s.ask(t, "grass", `,"top":1`)
		h := got.Results[0]
		if len(got.Results) != 1 || got.TotalMatches != 4 || fmt.Sprint(h.Tags) != "[garden nature]" || fmt.Sprint(h.TagContexts) != "map[garden:All that grows]" || h.UpdatedAt != nil || h.DocType != "note" {
			t.Errorf("got %+v", got)
		}
		if other := s.ask(t, "engine", "").Results[0]; len(other.TagContexts) != 0 || len(other.Tags) != 0 {
			t.Errorf("got %+v", other)
		}
	})

	t.Run("ExplainAddsUp", func(t *testing.T) {
		t.Parallel()
		for _, h := range s.ask(t, "oil", "").Results {
			if h.Explain != nil {
				t.Errorf("unasked: %+v", h.Explain)
			}
		}
		for i, h := range s.ask(t, "oil engine", `,"explain":true`).Results {
			e := h.Explain
			if e == nil || e.VecRank == nil || *e.VecScore != *h.Similarity || (e.FTSRank != nil) != (h.Title == "Oil") || (e.FTSRank == nil) != (e.FTSScore == nil) || (e.FTSRank == nil) != (e.RRFFTS == nil) {
				t.Fatalf("hit %d: %+v", i, e)
			}
			sum, best := *e.RRFVec+e.Bonus, *e.VecRank
			if e.FTSRank != nil {
				sum, best = sum+*e.RRFFTS, min(best, *e.FTSRank)
			}
			bonus := map[int]float64{1: 0.05, 2: 0.02, 3: 0.02}[best]
			if math.Abs(sum-h.Score) > 1e-9 || e.FinalScore != h.Score || e.Bonus != bonus || math.Abs(*e.RRFVec-1/float64(60+*e.VecRank)) > 1e-12 {
				t.Errorf("hit %d: score %v, explain %+v", i, h.Score, e)
			}
		}
		for _, h := range s.ask(t, "oil", `,"explain":true,"fts_only":true`).Results {
			if h.Explain.VecRank != nil || h.Explain.VecScore != nil || h.Explain.RRFVec != nil || h.Explain.FTSRank == nil {
				t.Errorf("got %+v", h.Explain)
			}
		}
		for _, h := range s.ask(t, "oil", `,"explain":true,"vec_only":true`).Results {
			if h.Explain.FTSRank != nil || h.Explain.VecRank == nil {
				t.Errorf("got %+v", h.Explain)
			}
		}
	})

	t.Run("NothingInAQueryIsAnOperator", func(t *testing.T) {
		t.Parallel()
		for query, first := range map[string]string{
			"what color is grass?":         "Grass",
			"NOT something OR (other)":     "Brakes",
			`the "quick" fox`:              "Fox",
			`"quick`:                       "Fox",
			"fox & !zebra | <-> :*":        "Fox",
			"-oil engine":                  "Oil",
			`\fox'; DROP TABLE documents;`: "Fox",
			"fox:* %_$1 {{}} ((":           "Fox",
			"🦊 fox 🚀":                      "Fox",
			"fox\x00\x01":                  "Fox",
		} {
			if got := s.ask(t, query, ""); len(got.Results) == 0 || got.Results[0].Title != first {
				t.Errorf("%q: got %v, want %s first", query, got.titles(), first)
			}
			s.ask(t, query, `,"fts_only":true`)
			s.ask(t, query, `,"vec_only":true`)
		}
		for _, query := range []string{"??!@#", "--", `""`, "'", "()", "🚀", "。。。", "\u200b", "&&||!", `\`, "$$", "\u0301"} {
			for _, more := range []string{"", `,"fts_only":true`, `,"vec_only":true`, `,"min_score":0.5`} {
				if got := s.ask(t, query, more); len(got.Results) != 0 || got.TotalMatches != 0 {
					t.Errorf("%q%s: got %v", query, more, got.titles())
				}
			}
		}
	})

	t.Run("TopAndMinScore", func(t *testing.T) {
		t.Parallel()
		all := s.ask(t, "oil engine", `,"top":100000`)
		for top := 1; top <= len(all.Results); top++ {
			if got := s.ask(t, "oil engine", fmt.Sprintf(`,"top":%d`, top)); !slices.Equal(got.titles(), all.titles()[:top]) || got.TotalMatches != all.TotalMatches {
				t.Errorf("top %d: %v", top, got.titles())
			}
		}
		floor := all.Results[1].Score
		if got := s.ask(t, "oil engine", fmt.Sprintf(`,"min_score":%g`, floor)); len(got.Results) != 2 || got.TotalMatches != 2 {
			t.Errorf("min_score %g: %v", floor, got.titles())
		}
		if got := s.ask(t, "oil engine", `,"min_score":10`); len(got.Results) != 0 {
			t.Errorf("got %v", got.titles())
		}
	})
}

func TestSearchDuringIngestion(t *testing.T) {
	t.Parallel()
	block, reached := make(chan struct{}), make(chan struct{}, 1)
	s := start(t, config{Embedder: &embedtest.Embedder{Fail: func(text string) error {
		if strings.Contains(text, "slow") {
			reached <- struct{}{}
			<-block
		}
		return nil
	}}})
	s.ingest(t, note("Oil", "How to change the oil.")...)
	accepted := s.upload(t, note("Slow", "A slow text on oil.")...).want(t, 202).object(t)
	<-reached
	if got := s.ask(t, "change oil", ""); !slices.Equal(got.titles(), []string{"Oil"}) {
		t.Errorf("during ingestion: %v", got.titles())
	}
	close(block)
	s.wait(t, accepted["job_id"].(string))
	if got := s.ask(t, "change oil", ""); len(got.Results) != 2 {
		t.Errorf("after ingestion: %v", got.titles())
	}
}

func TestSearchDegraded(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := start(t, config{Embedder: &embedtest.Embedder{Fail: func(string) error {
		if broken.Load() {
			return errors.New("the model is away")
		}
		return nil
	}}})
	s.ingest(t, note("Oil", "How to change the oil.")...)
	s.ingest(t, note("Fox", "The fox jumps.")...)
	broken.Store(true)
	got := s.ask(t, "change oil", "")
	if !slices.Equal(got.Degraded, []string{"semantic"}) || !slices.Equal(got.titles(), []string{"Oil"}) || got.Results[0].Similarity != nil {
		t.Errorf("got %+v", got)
	}
	if got := s.ask(t, "change oil", `,"fts_only":true`); got.Degraded != nil || len(got.Results) != 1 {
		t.Errorf("got %+v", got)
	}
	broken.Store(false)
	if got := s.ask(t, "change oil", ""); got.Degraded != nil || len(got.Results) != 2 {
		t.Errorf("got %+v", got)
	}

	// A chunk without a vector is found by its words.
	_, err := s.pool.Exec(t.Context(), "DELETE FROM embeddings")
	must(t, err)
	if got := s.ask(t, "fox", ""); len(got.Results) != 1 || got.Results[0].Similarity != nil || strings.Contains(got.Status, "vector") {
		t.Errorf("got %+v", got)
	}
}
