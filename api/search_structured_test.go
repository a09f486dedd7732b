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

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/embed/embedtest"
)

// machine is a document of the tests of structured search.
func machine(title, text, knowledgeType, metadata string) []part {
	return append(note(title, text), part{"knowledge_type", "", knowledgeType}, part{"metadata", "", metadata})
}

// startWorkshop is a server with alarms, set-ups and experience.
func startWorkshop(t *testing.T, c config) *server {
	t.Helper()
	s := start(t, c)
	for _, parts := range [][]part{
		machine("E-1234 spindle overload", "The spindle draws too much current. Check the bearing.", "alarm", `{"project": "north", "equipment": "CNC-07", "error_codes": ["E-1234"]}`),
		machine("E-1235 coolant low", "The coolant level is low. Fill the tank.", "alarm", `{"project": "north", "equipment": "CNC-07", "error_codes": ["E-1235", "E-1236"]}`),
		machine("Setting up the press", "Adjust the ram and the clutch of the press.", "setup", `{"project": "south", "equipment": "PR-1"}`),
		machine("Bearing noise", "A worn bearing of the spindle sings. After E 1234 the bearing was replaced.", "experience", `{"project": "south", "equipment": ["PR-1", "CNC-07"], "year": 2021, "solved": true, "odd": ["a", "a", null, "b", "a"], "twice": ["c", "c"], "nested": {"d": 1}, "a\"b": "c' || true", "a.b": -5, "": "empty", "\u2028😀": "\\", "serial": 7}`),
		machine("主轴过热报警", "主轴温度过高，检查轴承润滑。", "alarm", `{"project": "north", "equipment": "注塑机-3", "error_codes": "ALM_0421"}`),
		machine("Belt tension", "The conveyor belt slips when the tension is wrong. spindle spindle spindle", "experience", `{"project": "north", "equipment": "CV-2"}`),
	} {
		s.ingest(t, parts...)
	}
	return s
}

const (
	bannerLoose      = "没有完全匹配的知识，以下为相关参考，仅供参考。"
	bannerVectorOnly = "未找到关键词匹配的知识，以下为语义相似的参考内容，可信度较低，仅供参考。"
)

func TestStructuredSearch(t *testing.T) {
	t.Parallel()
	s := startWorkshop(t, config{})
	sorted := func(f found) string {
		titles := f.titles()
		slices.Sort(titles)
		return strings.Join(titles, "; ")
	}

	// Each row is an arrow of the state machine, or a condition of a status.
	t.Run("StagesStatusesAndBanners", func(t *testing.T) {
		t.Parallel()
		for _, test := range []struct{ body, status, banner, titles string }{
			{`{"keywords": ["spindle", "bearing"]}`, "strict_hit", "", "Bearing noise; E-1234 spindle overload"},
			{`{"keywords": ["spindle", "bearing"], "mode": "strict"}`, "strict_hit", "", "Bearing noise; E-1234 spindle overload"},
			{`{"keywords": ["clutch", "coolant"]}`, "loose_hit", bannerLoose, "E-1235 coolant low; Setting up the press"},
			{`{"keywords": ["clutch", "coolant"], "query_text": "x"}`, "loose_hit", bannerLoose, "E-1235 coolant low; Setting up the press"},
			{`{"keywords": ["clutch", "coolant"], "mode": "strict", "query_text": "the clutch"}`, "no_hit", "", ""},
			{`{"keywords": ["spindle", "bearing"], "mode": "loose"}`, "loose_hit", bannerLoose, "Bearing noise; Belt tension; E-1234 spindle overload"},
			{`{"keywords": ["zebra"], "mode": "loose", "query_text": "the clutch"}`, "no_hit", "", ""},
			{`{"keywords": ["zebra"], "query_text": "the clutch", "equipment": "PR-1"}`, "vector_only", bannerVectorOnly, "Bearing noise; Setting up the press"},
			{`{"keywords": ["zebra"]}`, "no_hit", "", ""},
			{`{"keywords": ["zebra"], "query_text": "the clutch", "equipment": "PR-9"}`, "no_hit", "", ""},
			{`{"mode": "vector_only", "query_text": "the clutch", "equipment": "CV-2"}`, "vector_only", bannerVectorOnly, "Belt tension"},
			{`{"mode": "vector_only", "keywords": ["spindle"]}`, "no_hit", "", ""},
		} {
			got := s.search(t, test.body)
			banner := ""
			if got.Banner != nil {
				banner = *got.Banner
			}
			if got.Status != test.status || banner != test.banner || sorted(got) != test.titles || got.TotalMatches != len(got.Results) || got.Degraded != nil {
				t.Errorf("%s: %s %q %q of %d", test.body, got.Status, banner, sorted(got), got.TotalMatches)
			}
		}
	})

	t.Run("Keywords", func(t *testing.T) {
		t.Parallel()
		for _, test := range []struct{ keywords, titles string }{
			{`"spindle bearing"`, "Bearing noise; E-1234 spindle overload"},                    // a string is split at spaces
			{`"\"worn bearing\" sings"`, "Bearing noise"},                                      // quotes keep words together
			{`["worn bearing", "sings"]`, "Bearing noise"},                                     // a unit has all its words
			{`["E-1234"]`, "Bearing noise; E-1234 spindle overload"},                           // a code, by its parts, too
			{`["e1234"]`, "E-1234 spindle overload"},                                           // and joined
			{`["E-1235"]`, "E-1235 coolant low"},                                               // another one
			{`["主轴"]`, "主轴过热报警"},                                                               // pairs
			{`["轴承润滑"]`, "主轴过热报警"},                                                             // in their order
			{`["主轴 润滑"]`, "主轴过热报警"},                                                            // several runs
			{`["spindle", "spindle"]`, "Bearing noise; Belt tension; E-1234 spindle overload"}, // said twice
			{`["the", "coolant"]`, "E-1235 coolant low"},                                       // stop words are no condition
			{`["press"]`, "Setting up the press"},                                              // a title counts
		} {
			if got := s.search(t, `{"mode": "strict", "keywords": `+test.keywords+`}`); sorted(got) != test.titles {
				t.Errorf("%s: %s %q", test.keywords, got.Status, sorted(got))
			}
		}
		for _, keywords := range []string{`["轴主"]`, `["润滑轴承"]`, `["E-1238"]`, `["the"]`, `["?!"]`, `["主轴过冷"]`} {
			if got := s.search(t, `{"mode": "strict", "keywords": `+keywords+`}`); got.Status != "no_hit" {
				t.Errorf("%s: %s %q", keywords, got.Status, sorted(got))
			}
		}
	})

	t.Run("FiltersAreExactAndAnyOf", func(t *testing.T) {
		t.Parallel()
		for _, test := range []struct{ filter, titles string }{
			{`"project": "south"`, "Bearing noise; Setting up the press"},
			{`"project": "South"`, ""},
			{`"equipment": "PR-1"`, "Bearing noise; Setting up the press"},
			{`"equipment": ["PR-1", "CV-2"]`, "Bearing noise; Belt tension; Setting up the press"},
			{`"error_codes": "ALM_0421"`, "主轴过热报警"},
			{`"error_codes": ["E-1236", "E-1234"]`, "E-1234 spindle overload; E-1235 coolant low"},
			{`"error_codes": "E-123"`, ""},
			{`"knowledge_type": "setup"`, "Setting up the press"},
			{`"knowledge_type": ["setup", "experience"]`, "Bearing noise; Belt tension; Setting up the press"},
			{`"equipment": "PR-1", "knowledge_type": "experience"`, "Bearing noise"},
			{`"filters": {"year": 2021}`, "Bearing noise"},
			{`"filters": {"year": "2021"}`, ""},
			{`"filters": {"year": [1999, 2021], "solved": true}`, "Bearing noise"},
			{`"filters": {"solved": false}`, ""},
			{`"filters": {"a\"b": "c' || true"}`, "Bearing noise"},
			{`"filters": {"a.b": -5, "": "empty", "\u2028😀": "\\"}`, "Bearing noise"},
			{`"filters": {"a.b": 5}`, ""},
			{`"filters": {"serial": "7"}`, ""},
			{`"equipment": [], "project": "", "error_codes": null, "filters": null, "knowledge_type": [" "]`,
				"Bearing noise; Belt tension; E-1234 spindle overload; E-1235 coolant low; Setting up the press; 主轴过热报警"},
		} {
			if got := s.search(t, `{`+test.filter+`}`); sorted(got) != test.titles {
				t.Errorf("%s: %s %q", test.filter, got.Status, sorted(got))
			}
			if hybrid := s.search(t, `{"query": "spindle coolant press belt", `+test.filter+`}`); sorted(hybrid) != test.titles && test.titles != "" {
				t.Errorf("hybrid, %s: %q", test.filter, sorted(hybrid))
			}
		}
	})

	t.Run("FiltersDoNotChangeScores", func(t *testing.T) {
		t.Parallel()
		scores := map[string]float64{}
		for _, h := range s.search(t, `{"keywords": ["spindle"], "mode": "loose"}`).Results {
			scores[h.Title] = h.Score
		}
		for _, h := range s.search(t, `{"keywords": ["spindle"], "mode": "loose", "equipment": "CNC-07", "project": ["north", "south"]}`).Results {
			if h.Score != scores[h.Title] {
				t.Errorf("%s: %v, without filters %v", h.Title, h.Score, scores[h.Title])
			}
		}
	})

	t.Run("WithoutKeywordsEverythingInScopeInAStableOrder", func(t *testing.T) {
		t.Parallel()
		all := s.search(t, `{}`)
		want := []string{"E-1234 spindle overload", "E-1235 coolant low", "Setting up the press", "Bearing noise", "主轴过热报警", "Belt tension"}
		if all.Status != "strict_hit" || !slices.Equal(all.titles(), want) {
			t.Errorf("%s %q", all.Status, all.titles())
		}
		for _, body := range []string{`{"keywords": []}`, `{"keywords": "  "}`, `{"keywords": [""]}`, `{"keywords": null}`} {
			if got := s.search(t, body); !slices.Equal(got.titles(), want) {
				t.Errorf("%s: %s %q", body, got.Status, got.titles())
			}
		}
		if got := s.search(t, `{"mode": "loose"}`); got.Status != "loose_hit" || !slices.Equal(got.titles(), want) {
			t.Errorf("loose: %s %q", got.Status, got.titles())
		}
	})

	t.Run("PagesAreTheWhole", func(t *testing.T) {
		t.Parallel()
		for _, search := range []string{`"keywords": ["spindle", "coolant", "press"], "mode": "loose"`, `"query_text": "spindle", "mode": "vector_only"`, `"keywords": ["bearing"]`, `"project": ["north", "south"]`} {
			whole := s.search(t, `{`+search+`}`)
			var paged []string
			for from := range whole.TotalMatches {
				page := s.search(t, fmt.Sprintf(`{%s, "from": %d, "size": 1}`, search, from))
				if page.TotalMatches != whole.TotalMatches || page.Status != whole.Status {
					t.Errorf("%s from %d: %s, %d of %d", search, from, page.Status, page.TotalMatches, whole.TotalMatches)
				}
				paged = append(paged, page.titles()...)
			}
			if !slices.Equal(paged, whole.titles()) || len(paged) < 2 {
				t.Errorf("%s: pages %q, whole %q", search, paged, whole.titles())
			}
			if none := s.search(t, `{`+search+`, "size": 0, "facets": ["project"]}`); len(none.Results) != 0 || none.TotalMatches != whole.TotalMatches || none.Facets["project"] == nil {
				t.Errorf("%s without results: %+v", search, none)
			}
		}
	})

	t.Run("TheTitleCountsAsItsBoostSays", func(t *testing.T) {
		t.Parallel()
		first := func(boost string) string {
			return s.search(t, `{"keywords": ["spindle"], "mode": "loose", "tuning": {"vector_weight": 0, "title_boost": `+boost+`}}`).Results[0].Title
		}
		if low, high := first("0.1"), first("20"); low != "Belt tension" || high != "E-1234 spindle overload" {
			t.Errorf("boost 0.1: %s, 20: %s", low, high)
		}
	})

	t.Run("FacetsOnDemandInEveryMode", func(t *testing.T) {
		t.Parallel()
		for body, want := range map[string]string{
			`{"facets": ["equipment", "project"]}`:                                             `map[equipment:[{CNC-07 3} {PR-1 2} {CV-2 1} {注塑机-3 1}] project:[{north 4} {south 2}]]`,
			`{"keywords": ["spindle"], "facets": ["knowledge_type"]}`:                          `map[knowledge_type:[{experience 2} {alarm 1}]]`,
			`{"keywords": ["spindle"], "mode": "loose", "facets": ["year", "solved"]}`:         `map[solved:[{true 1}] year:[{2021 1}]]`,
			`{"keywords": ["spindle"], "mode": "loose", "facets": ["nothing"]}`:                `map[nothing:[]]`,
			`{"mode": "vector_only", "query_text": "bearing", "facets": ["error_codes"]}`:      `map[error_codes:[{ALM_0421 1} {E-1234 1} {E-1235 1} {E-1236 1}]]`,
			`{"query": "coolant tank", "fts_only": true, "facets": ["equipment", "doc_type"]}`: `map[doc_type:[{note 1}] equipment:[{CNC-07 1}]]`,
			`{"query": "coolant", "facets": ["project"]}`:                                      `map[project:[{north 4} {south 2}]]`,
			`{"keywords": ["sings"], "facets": ["odd", "twice", "nested"]}`:                    `map[nested:[] odd:[{a 1} {b 1}] twice:[{c 1}]]`,
			`{"keywords": ["zebra"], "facets": ["project"]}`:                                   `map[project:[]]`,
		} {
			if got := s.search(t, body); fmt.Sprint(got.Facets) != want {
				t.Errorf("%s: %v, want %s", body, got.Facets, want)
			}
		}
		if got := s.search(t, `{"keywords": ["spindle"]}`); got.Facets != nil || got.Truncated != nil {
			t.Errorf("facets that nobody asked for: %v", got.Facets)
		}
	})

	t.Run("BadRequestsNameTheField", func(t *testing.T) {
		t.Parallel()
		for body, field := range map[string]string{
			`{"query": "a", "mode": "auto"}`:                    "body.mode",
			`{"query": "a", "keywords": ["a"]}`:                 "body.keywords",
			`{"query": "a", "keywords": []}`:                    "body.keywords",
			`{"query": "a", "query_text": "a"}`:                 "body.query_text",
			`{"query": "a", "size": 5}`:                         "body.size",
			`{"query": "a", "from": 5}`:                         "body.from",
			`{"query": ""}`:                                     "body.query",
			`{"query": " "}`:                                    "body.query",
			`{"top": 5}`:                                        "body.top",
			`{"fts_only": true}`:                                "body.fts_only",
			`{"vec_only": true}`:                                "body.vec_only",
			`{"min_score": 1}`:                                  "body.min_score",
			`{"mode": "fuzzy"}`:                                 "body.mode",
			`{"keywords": 5}`:                                   "body.keywords",
			`{"keywords": [5]}`:                                 "body.keywords",
			`{"keywords": {"a": "b"}}`:                          "body.keywords",
			`{"query_text": ["a"]}`:                             "body.query_text",
			`{"equipment": 5}`:                                  "body.equipment",
			`{"from": -1}`:                                      "body.from",
			`{"size": -1}`:                                      "body.size",
			`{"size": "5"}`:                                     "body.size",
			`{"from": 9999, "size": 2}`:                         "body.size",
			`{"size": 10001}`:                                   "body.size",
			`{"from": 10001}`:                                   "body.from",
			`{"from": 9007199254740991, "size": 1}`:             "body.from",
			`{"filters": []}`:                                   "body.filters",
			`{"filters": {"a": {"b": 1}}}`:                      "body.filters.a",
			`{"filters": {"a": []}}`:                            "body.filters.a",
			`{"filters": {"a": [null]}}`:                        "body.filters.a",
			`{"equipment": "a", "filters": {"equipment": "b"}}`: "body.filters.equipment",
			`{"filters": {"a": "b\u0000"}}`:                     "body.filters",
			`{"equipment": "b\u0000"}`:                          "body.equipment",
			`{"facets": [""]}`:                                  "body.facets",
			`{"facets": "equipment"}`:                           "body.facets",
			`{"tuning": {"vector_weight": 2}}`:                  "body.tuning.vector_weight",
			`{"tuning": {"title_boost": -1}}`:                   "body.tuning.title_boost",
			`{"tuning": {"fusion": "sum"}}`:                     "body.tuning.fusion",
			`{"tuning": {"strict_max_hits": 0}}`:                "body.tuning.strict_max_hits",
			`{"tuning": {"rrf_window": 0}}`:                     "body.tuning.rrf_window",
			`{"tuning": {"boost": 1}}`:                          "body.tuning.boost",
			`{"keyword": ["a"]}`:                                "body.keyword",
			`{"equipment": [` + strings.TrimSuffix(strings.Repeat(`"a",`, 1001), ",") + `]}`:         "body.equipment",
			`{"knowledge_type": [` + strings.TrimSuffix(strings.Repeat(`"a",`, 100_000), ",") + `]}`: "body.knowledge_type",
			`{"knowledge_type": "a\u0000"}`:                                                "body.knowledge_type",
			`{"keywords": ["` + strings.Repeat("ﷺ ", 501) + `"]}`:                          "body.keywords",
			`{"keywords": [` + strings.TrimSuffix(strings.Repeat(`"a",`, 501), ",") + `]}`: "body.keywords",
			`{"keywords": "` + words(501) + `"}`:                                           "body.keywords",
		} {
			got := s.post(t, "/api/v1/search", body).want(t, 400).object(t)
			if got["field"] != field || got["message"] == "" {
				t.Errorf("%.80s: %v, want %s", body, got, field)
			}
		}
	})

	t.Run("HonestAnswersToOddRequests", func(t *testing.T) {
		t.Parallel()
		words := make([]string, 200)
		for i := range words {
			words[i] = fmt.Sprintf("word%d", i)
		}
		twoHundred, err := json.Marshal(append(words, "clutch"))
		must(t, err)
		for body, status := range map[string]string{
			`{"keywords": ` + string(twoHundred) + `}`:                                            "loose_hit",
			`{"keywords": ["?!", "..."]}`:                                                         "no_hit",
			`{"keywords": ["?!"], "query_text": "the clutch"}`:                                    "vector_only",
			`{"keywords": ["the of"]}`:                                                            "no_hit",
			`{"keywords": ["clutch\u0000ram"]}`:                                                   "strict_hit",
			`{"keywords": ["'); DROP TABLE documents; --"]}`:                                      "no_hit",
			`{"keywords": ["a & b | !c <-> d:*"]}`:                                                "no_hit",
			`{"query_text": "` + strings.Repeat("clutch ", 140_000) + `", "keywords": ["zebra"]}`: "vector_only",
			`{"keywords": ["zebra"], "query_text": " "}`:                                          "no_hit",
			`{"keywords": ["clutch"], "query_text": null, "mode": null, "size": null}`:            "strict_hit",
		} {
			if got := s.search(t, body); got.Status != status {
				t.Errorf("%.80s: %s", body, got.Status)
			}
		}
	})
}

// Too many are counted in documents, not in chunks, and are answered with facets alone.
func TestTooMany(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	long := strings.Repeat("The gearbox needs oil. It turns and turns, and grinds its teeth. ", 200)
	s.ingest(t, machine("Gearbox manual", long, "setup", `{"equipment": "GB-1"}`)...)
	if got := s.search(t, `{"keywords": ["gearbox"]}`); got.Status != "strict_hit" || got.TotalMatches != 1 || *got.Results[0].Others < 8 {
		t.Fatalf("one document of many chunks: %s, %d, %+v", got.Status, got.TotalMatches, got.Results)
	}
	for i := range 25 {
		s.ingest(t, machine(fmt.Sprintf("Gearbox %d", i), fmt.Sprintf("It leaks for the time %d.", i), "alarm", fmt.Sprintf(`{"project": "p%d", "equipment": "GB-%d", "error_codes": ["G-%d", "G-X"]}`, i%2, i, i))...)
		if i == 6 {
			if got := s.search(t, `{"keywords": ["gearbox"]}`); got.Status != "strict_hit" || got.TotalMatches != 8 {
				t.Fatalf("eight documents: %s of %d", got.Status, got.TotalMatches)
			}
		}
	}
	for _, body := range []string{`{"keywords": ["gearbox"]}`, `{"keywords": ["gearbox"], "mode": "strict"}`, `{}`, `{"keywords": ["gearbox"], "query_text": "oil", "from": 5}`} {
		got := s.search(t, body)
		if got.Status != "too_many" || len(got.Results) != 0 || got.TotalMatches != 26 || got.Banner != nil {
			t.Errorf("%s: %s, %d of %d", body, got.Status, len(got.Results), got.TotalMatches)
		}
		if fmt.Sprint(got.Facets["project"]) != "[{p0 13} {p1 12}]" || len(got.Facets["equipment"]) != 20 || fmt.Sprint(got.Facets["equipment"][:2]) != "[{GB-1 2} {GB-0 1}]" ||
			len(got.Facets["error_codes"]) != 20 || fmt.Sprint(got.Facets["error_codes"][0]) != "{G-X 25}" {
			t.Errorf("%s: %v", body, got.Facets)
		}
		if fmt.Sprint(got.Truncated) != "map[equipment:5 error_codes:6 project:0]" {
			t.Errorf("%s: truncated %v", body, got.Truncated)
		}
	}
	if got := s.search(t, `{"keywords": ["gearbox"], "facets": ["project", "error_codes"]}`); fmt.Sprint(got.Facets["project"]) != "[{p0 13} {p1 12}]" || fmt.Sprint(got.Truncated) != "map[equipment:5 error_codes:6 project:0]" {
		t.Errorf("asked for what is there anyway: %v %v", got.Facets, got.Truncated)
	}
	if got := s.search(t, `{"mode": "vector_only", "query_text": "the gearbox needs oil"}`); got.TotalMatches != 26 {
		t.Errorf("a long document takes the places of others: %d of 26", got.TotalMatches)
	}
	if got := s.search(t, `{"keywords": ["gearbox"], "facets": ["knowledge_type"]}`); len(got.Facets) != 4 || fmt.Sprint(got.Facets["knowledge_type"]) != "[{alarm 25} {setup 1}]" {
		t.Errorf("a facet on top: %v", got.Facets)
	}
	if got := s.search(t, `{"keywords": ["gearbox"], "equipment": ["GB-3", "GB-4"]}`); got.Status != "strict_hit" || got.TotalMatches != 2 {
		t.Errorf("narrowed: %s of %d", got.Status, got.TotalMatches)
	}
	if got := s.search(t, `{"keywords": ["gearbox"], "tuning": {"strict_max_hits": 26}}`); got.Status != "strict_hit" || len(got.Results) != 10 {
		t.Errorf("with another limit: %s of %d", got.Status, got.TotalMatches)
	}
	if got := s.search(t, `{"keywords": ["gearbox"], "mode": "loose"}`); got.Status != "loose_hit" || got.TotalMatches != 26 {
		t.Errorf("loose has no gate: %s of %d", got.Status, got.TotalMatches)
	}
}

// The score is (1 - weight) BM25 + weight (cosine + 1) in the window, and BM25's share behind it.
func TestStructuredRanking(t *testing.T) {
	t.Parallel()
	s := startWorkshop(t, config{})
	_, err := s.pool.Exec(t.Context(), "DELETE FROM embeddings WHERE document_id = (SELECT id FROM documents WHERE title = 'Belt tension')")
	must(t, err)
	for _, weight := range []float64{0, 0.3, 0.5, 1} {
		for _, window := range []int{1, 2, 50} {
			for _, mode := range []string{"auto", "loose"} {
				got := s.search(t, fmt.Sprintf(`{"keywords": ["spindle"], "query_text": "worn bearing", "mode": %q, "explain": true, "tuning": {"vector_weight": %v, "rrf_window": %d}}`, mode, weight, window))
				if len(got.Results) != 3 {
					t.Fatalf("%d results", len(got.Results))
				}
				for _, h := range got.Results {
					want := (1 - weight) * *h.Explain.FTSScore
					// A query is not embedded for a weight of 0, unless there may be a vector stage.
					inWindow := *h.Explain.FTSRank <= window && h.Title != "Belt tension" && (weight > 0 || mode == "auto")
					if inWindow != (h.Explain.VecScore != nil) {
						t.Errorf("weight %v, window %d: %s at %d has a cosine: %t", weight, window, h.Title, *h.Explain.FTSRank, h.Explain.VecScore != nil)
					}
					if inWindow {
						want += weight * (*h.Explain.VecScore + 1)
					}
					if math.Abs(h.Score-want) > 1e-9 || h.Explain.FinalScore != h.Score || h.Explain.RRFFTS != nil {
						t.Errorf("weight %v, window %d: %s has %v, want %v", weight, window, h.Title, h.Score, want)
					}
				}
			}
		}
	}
}

func TestStructuredSearchWithoutTheModel(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	model := embedtest.New()
	model.Fail = func(string) error {
		if broken.Load() {
			return errors.New("the model is away")
		}
		return nil
	}
	s := startWorkshop(t, config{Embedder: model})
	broken.Store(true)
	if got := s.search(t, `{"keywords": ["spindle"], "query_text": "bearing", "explain": true}`); got.Status != "strict_hit" || got.Degraded != nil || got.Results[0].Score != *got.Results[0].Explain.FTSScore || got.Results[0].Explain.VecScore != nil {
		t.Errorf("words alone: %+v", got)
	}
	if got := s.search(t, `{"keywords": ["zebra"], "query_text": "bearing"}`); got.Status != "no_hit" || got.Degraded != nil {
		t.Errorf("auto: %+v", got)
	}
	if got := s.search(t, `{"mode": "vector_only", "query_text": "bearing"}`); got.Status != "no_hit" {
		t.Errorf("vector_only: %+v", got)
	}
	metrics := s.get(t, "/metrics")
	if !strings.Contains(string(metrics.body), `kb_upstream_errors_total{upstream="embedder"} 3`) || !strings.Contains(string(metrics.body), `kb_searches_total{status="no_hit"} 2`) {
		t.Errorf("metrics: %d %s", metrics.status, metrics.body)
	}
}

func TestSearchSettings(t *testing.T) {
	t.Parallel()
	settings := search.DefaultSettings()
	settings.StrictMaxHits, settings.MaxResultWindow, settings.BannerLoose, settings.BannerVectorOnly = 2, 20, "look elsewhere", "far away"
	settings.TitleBoost, settings.VectorWeight, settings.RRFWindow = 0.1, 0.25, 1
	s := startWorkshop(t, config{Settings: &settings})
	if got := s.search(t, `{"keywords": ["spindle"]}`); got.Status != "too_many" {
		t.Errorf("strict_max_hits: %s", got.Status)
	}
	if got := s.search(t, `{"keywords": ["clutch", "coolant"]}`); *got.Banner != "look elsewhere" {
		t.Errorf("banner %s", *got.Banner)
	}
	if got := s.search(t, `{"query": "clutch zebra"}`); *got.Banner != "look elsewhere" {
		t.Errorf("banner of hybrid search %s", *got.Banner)
	}
	if got := s.search(t, `{"mode": "vector_only", "query_text": "clutch"}`); *got.Banner != "far away" {
		t.Errorf("banner %s", *got.Banner)
	}
	s.post(t, "/api/v1/search", `{"from": 11, "size": 10}`).want(t, 400)
	s.post(t, "/api/v1/search", `{"from": 10, "size": 10}`).want(t, 200)
	got := s.search(t, `{"keywords": ["spindle"], "mode": "loose", "explain": true}`)
	if got.Results[0].Title != "Belt tension" || got.Results[1].Explain.VecScore != nil ||
		math.Abs(got.Results[0].Score-(0.75**got.Results[0].Explain.FTSScore+0.25*(*got.Results[0].Explain.VecScore+1))) > 1e-9 {
		t.Errorf("title_boost, rrf_window or vector_weight: %+v", got.Results[0])
	}
}

// words gives so many different words.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		_, _ = fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}
