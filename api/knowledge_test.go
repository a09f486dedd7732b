package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kb-search/kb/api"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/embed/embedtest"
)

// know searches knowledge and gives the whole answer.
func (s *server) know(t *testing.T, body string) map[string]any {
	t.Helper()
	return s.post(t, "/api/v1/knowledge/search", body).want(t, http.StatusOK).object(t)
}

// found gives what a knowledge search found: the title of a document, the text of a memory.
func foundIn(answer map[string]any) (found []string) {
	for _, result := range answer["results"].([]any) {
		r := result.(map[string]any)
		if r["source_type"] == "memory" {
			found = append(found, r["content"].(string))
		} else {
			found = append(found, r["title"].(string))
		}
	}
	return found
}

// store makes a memory store and gives its id.
func (s *server) store(t *testing.T, name, more string) string {
	t.Helper()
	return s.post(t, "/api/v1/memory-stores", `{"name": "`+name+`"`+more+`}`).want(t, http.StatusCreated).object(t)["id"].(string)
}

// remember writes a memory and gives it.
func (s *server) remember(t *testing.T, store, content, more string) map[string]any {
	t.Helper()
	got := s.post(t, "/api/v1/memories", `{"memory_store_id": "`+store+`", "content": "`+content+`"`+more+`}`)
	if got.status != http.StatusCreated && got.status != http.StatusOK {
		t.Fatalf("remember: %d %s", got.status, got.body)
	}
	return got.object(t)
}

func TestKnowledgeSearch(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	pump := s.document(t, s.ingest(t, with(file("pump.md", "# Pump\n\nThe impeller of the pump is worn."), "path", "/plant/pump.md", "tags", "site:north", "metadata", `{"price": 3, "strapiDocumentId": "x1"}`)...))
	s.ingest(t, with(file("valve.md", "# Valve\n\nThe seal of the valve leaks."), "path", "/plant_b/valve.md", "tags", "site:south")...)
	s.ingest(t, note("Bearing", "A bearing runs hot near the impeller.")...)
	north := s.store(t, "north", `, "tags": {"site": "north"}`)
	south := s.store(t, "south", "")
	s.remember(t, north, "The customer prefers a quiet pump.", "")
	s.remember(t, south, "The impeller was replaced in May.", `, "tags": {"site": "south"}`)

	t.Run("AQueryReachesBothStores", func(t *testing.T) {
		t.Parallel()
		got := s.know(t, `{"query": "impeller"}`)
		if found := foundIn(got); !slices.Contains(found, "Pump") || !slices.Contains(found, "The impeller was replaced in May.") {
			t.Errorf("%v", found)
		}
		for name := range got {
			if name != "results" {
				t.Errorf("K's client sees %s", name)
			}
		}
		last := 10.0
		for _, r := range got["results"].([]any) {
			result := r.(map[string]any)
			score, signals, similarity := result["score"].(float64), result["signals"].(map[string]any), result["similarity_score"].(float64)
			if score > last || len(signals) == 0 || similarity < 0 || similarity > 1 {
				t.Errorf("%v", result)
			}
			last = score
			sum := 0.0
			for _, rank := range signals {
				sum += 1 / (60 + rank.(float64))
			}
			if diff := score - sum; diff > 1e-9 || diff < -1e-9 {
				t.Errorf("score %v of signals %v", score, signals)
			}
		}
	})

	t.Run("ADocumentHasAllItsFields", func(t *testing.T) {
		t.Parallel()
		got := s.know(t, `{"query": "impeller worn", "include_memories": false}`)["results"].([]any)[0].(map[string]any)
		for field, want := range map[string]any{
			"source_type": "document", "document_id": pump["id"], "document_version": 1.0, "page": nil, "path": "/plant/pump.md", "filename": "pump.md",
			"size": pump["size"], "title": "Pump", "created_at": pump["created_at"], "updated_at": pump["created_at"],
		} {
			if value, there := got[field]; value != want || !there {
				t.Errorf("%s is %v, want %v", field, value, want)
			}
		}
		if !isID(got["chunk_id"].(string), "dchunk") || !isID(got["file_id"].(string), "file") || !isID(got["project_id"].(string), "proj") ||
			got["metadata"].(map[string]any)["strapiDocumentId"] != "x1" || got["tags"].(map[string]any)["site"] != "north" {
			t.Errorf("%v", got)
		}
	})

	t.Run("AMemoryHasAllItsFields", func(t *testing.T) {
		t.Parallel()
		got := s.know(t, `{"query": "impeller replaced", "include_documents": false}`)["results"].([]any)[0].(map[string]any)
		if !isID(got["memory_id"].(string), "mem") || got["memory_store_id"] != south || got["memory_store_name"] != "south" ||
			got["content"] != "The impeller was replaced in May." || got["tags"].(map[string]any)["site"] != "south" || got["created_at"] == nil || got["updated_at"] == nil {
			t.Errorf("%v", got)
		}
		untagged := s.know(t, `{"query": "quiet pump", "include_documents": false, "memory_store_ids": ["`+north+`"]}`)["results"].([]any)[0].(map[string]any)
		if _, there := untagged["tags"]; there {
			t.Errorf("%v", untagged)
		}
	})

	t.Run("FiltersNarrowWithinTheirStore", func(t *testing.T) {
		t.Parallel()
		for name, test := range map[string]struct {
			body string
			want []string
		}{
			"PathAlone":            {`"document_paths": ["/plant/"]`, []string{"Pump"}},
			"APathIsAPlainPrefix":  {`"document_paths": ["/plant_"]`, []string{"Valve"}},
			"PathWithoutItsSlash":  {`"document_paths": ["plant/"]`, []string{"Pump"}},
			"IDAlone":              {`"document_ids": ["` + pump["id"].(string) + `"]`, []string{"Pump"}},
			"StoreAlone":           {`"memory_store_ids": ["` + north + `"]`, []string{"The customer prefers a quiet pump."}},
			"TagsOfBothStores":     {`"tags": {"site": "north"}`, []string{"Pump", "The customer prefers a quiet pump."}},
			"TagsOfAMemoryItself":  {`"tags": {"site": "south"}, "include_documents": false`, []string{"The impeller was replaced in May."}},
			"MetadataAlone":        {`"metadata": {"price": {"gte": 2}}`, []string{"Pump"}},
			"MetadataOfAnotherTyp": {`"metadata": {"price": "3"}`, nil},
			"ASwitchIsNotOverridden": {`"document_paths": ["/plant/"], "memory_store_ids": ["` + north + `"], "include_memories": false`,
				[]string{"Pump"}},
			"BothFamilies":           {`"document_paths": ["/plant/"], "memory_store_ids": ["` + north + `"]`, []string{"Pump", "The customer prefers a quiet pump."}},
			"QueryAndStoreFilter":    {`"query": "impeller replaced", "memory_store_ids": ["` + north + `"], "include_documents": false`, []string{"The customer prefers a quiet pump."}},
			"QueryAndDocumentFilter": {`"query": "impeller", "document_paths": ["/plant_b/"], "include_memories": false`, []string{"Valve"}},
			"Times":                  {`"query": "impeller", "created_before": "2001-01-01T00:00:00Z"`, nil},
			"UnknownID":              {`"document_ids": ["doc_01kb9q5s7ze4gr6tcx3k0z9ykn"]`, nil},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got := s.know(t, `{`+test.body+`}`)
				if found := foundIn(got); !slices.Equal(found, test.want) {
					t.Errorf("found %q, want %q", found, test.want)
				}
				for _, r := range got["results"].([]any) {
					if _, there := r.(map[string]any)["score"]; there != strings.Contains(test.body, `"query"`) {
						t.Errorf("%v", r)
					}
				}
			})
		}
	})

	t.Run("BadRequestsSayWhy", func(t *testing.T) {
		t.Parallel()
		for body, field := range map[string]string{
			`{}`: "body", `{"query": ""}`: "body", `{"query": " "}`: "body.query", `{"tags": {}}`: "body", `{"document_paths": []}`: "body",
			`{"query": "x", "include_documents": false, "include_memories": false}`: "body.include_documents",
			`{"query": "x", "min_similarity": 1.01}`:                                "body.min_similarity",
			`{"query": "x", "min_similarity": -0.1}`:                                "body.min_similarity",
			`{"query": "x", "min_similarity": "0.5"}`:                               "body.min_similarity",
			`{"query": "x", "rrf_k": 0}`:                                            "body.rrf_k",
			`{"query": "x", "recency_half_life_days": -1}`:                          "body.recency_half_life_days",
			`{"query": "x", "recency_half_life_days": "7"}`:                         "body.recency_half_life_days",
			`{"query": "x", "recency_half_life_days": 1e400}`:                       "",
			`{"query": "x", "limit": 0}`:                                            "body.limit",
			`{"query": "x", "offset": -1}`:                                          "body.offset",
			`{"query": "x", "unknown": 1}`:                                          "body.unknown",
			`{"query": "x", "metadata": {"a": {"near": 1}}}`:                        "body.metadata.a",
			`{"query": "x", "tags": {"a": 1}}`:                                      "body.tags.a",
			`{"document_ids": ["17"]}`:                                              "body.document_ids",
			`{"query": "x", "group_size": 2}`:                                       "body.group_size",
			`{`:                                                                     "",
		} {
			meta := s.post(t, "/api/v1/knowledge/search", body).wantEnvelope(t, http.StatusBadRequest, "VALIDATION_FAILED")
			if got, _ := meta["field"].(string); field != "" && got != field {
				t.Errorf("%s names %v, want %s", body, meta["field"], field)
			}
		}
	})

	t.Run("MIX03AFloorOnSimilarityLeavesWordsAlone", func(t *testing.T) {
		t.Parallel()
		if found := foundIn(s.know(t, `{"query": "impeller", "min_similarity": 0.9999, "include_memories": false}`)); !slices.Contains(found, "Pump") || slices.Contains(found, "Valve") {
			t.Errorf("%v", found)
		}
		if found := foundIn(s.know(t, `{"query": "qwxzv plimth", "min_similarity": 0.9999}`)); len(found) != 0 {
			t.Errorf("%v", found)
		}
		all, floor0 := foundIn(s.know(t, `{"query": "impeller", "limit": 100}`)), foundIn(s.know(t, `{"query": "impeller", "limit": 100, "min_similarity": 0}`))
		if len(all) != 5 || !slices.Equal(all, floor0) {
			t.Errorf("%v, %v", all, floor0)
		}
	})

	t.Run("PhrasesAndExclusionsAreForTheWords", func(t *testing.T) {
		t.Parallel()
		signals := func(query string) (lexical []string) {
			for _, r := range s.know(t, fmt.Sprintf(`{"query": %q, "limit": 100}`, query))["results"].([]any) {
				result := r.(map[string]any)
				if result["signals"].(map[string]any)["lexical"] != nil {
					lexical = append(lexical, foundIn(map[string]any{"results": []any{r}})...)
				}
			}
			slices.Sort(lexical)
			return lexical
		}
		if got := signals(`"impeller of the pump"`); !slices.Equal(got, []string{"Pump"}) {
			t.Errorf("phrase: %v", got)
		}
		if got := signals(`impeller -pump`); !slices.Equal(got, []string{"Bearing", "The impeller was replaced in May."}) {
			t.Errorf("exclusion: %v", got)
		}
	})

	t.Run("OursOnTop", func(t *testing.T) {
		t.Parallel()
		blended := s.know(t, `{"query": "impeller pump", "fusion": "blend", "explain": true, "highlight": true, "limit": 2}`)
		best := 0.0
		for _, r := range blended["results"].([]any) {
			best = max(best, r.(map[string]any)["explain"].(map[string]any)["bm25"].(float64))
		}
		for _, r := range blended["results"].([]any) {
			result := r.(map[string]any)
			parts := result["explain"].(map[string]any)
			want := parts["cosine"].(float64) + parts["bm25"].(float64)/best/2
			if diff := result["score"].(float64) - want; diff > 1e-6 || diff < -1e-6 {
				t.Errorf("score %v, parts %v", result["score"], parts)
			}
			if !strings.Contains(result["highlight"].(string), "<mark>") {
				t.Errorf("%v", result["highlight"])
			}
		}
		counts := blended["explain"].(map[string]any)
		if counts["candidates"] != 5.0 || counts["removed"].(map[string]any)["limit"] != 3.0 || blended["total"] != 5.0 {
			t.Errorf("%v", counts)
		}
		filtered := s.know(t, `{"query": "impeller", "document_paths": ["/plant/"], "explain": true}`)["explain"].(map[string]any)
		if filtered["removed"].(map[string]any)["filters"].(map[string]any)["document_paths"] != 2.0 {
			t.Errorf("%v", filtered)
		}
	})

	t.Run("WhyADocumentIsNotThere", func(t *testing.T) {
		t.Parallel()
		id := pump["id"].(string)
		for step, more := range map[string]string{
			"returned": "", "filter": `, "document_paths": ["/plant_b/"]`, "include_documents": `, "include_documents": false`, "offset": `, "offset": 50`,
		} {
			got := s.know(t, `{"query": "impeller pump", "why": ["`+id+`", "doc_01kb9q5s7ze4gr6tcx3k0z9ykn"]`+more+`}`)["why"].([]any)
			first, second := got[0].(map[string]any), got[1].(map[string]any)
			if first["document_id"] != id || first["step"] != step || second["step"] != "not_found" || (first["filter"] == nil) == (step == "filter") {
				t.Errorf("%s: %v", step, got)
			}
		}
	})
}

func TestKnowledgePages(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	store := s.store(t, "facts", `, "deduplicate": false`)
	for i := range 60 {
		s.remember(t, store, fmt.Sprintf("Fact number %d about the compressor.", i), "")
	}
	page := func(limit, offset int) []string {
		return foundIn(s.know(t, fmt.Sprintf(`{"query": "compressor facts", "limit": %d, "offset": %d}`, limit, offset)))
	}
	whole := page(100, 0)
	if len(whole) != 60 {
		t.Fatalf("%d results", len(whole))
	}
	var joined []string
	for offset := 0; offset < 60; offset += 7 {
		joined = append(joined, page(7, offset)...)
	}
	if !slices.Equal(joined, whole) {
		t.Error("MIX-02: the pages together are not the whole")
	}
	if got := page(10, 60); len(got) != 0 {
		t.Errorf("past the end: %v", got)
	}
	for _, limit := range []int{5, 10, 20, 50} {
		if got := page(limit, 0); !slices.Equal(got, whole[:limit]) {
			t.Errorf("VEC-02: limit %d is no beginning of the whole", limit)
		}
	}
}

func TestKnowledgeRecency(t *testing.T) {
	t.Parallel()
	s := start(t, config{Knowledge: api.Knowledge{HalfLifeDays: 30, Fusion: search.RRF}})
	store := s.store(t, "ages", `, "deduplicate": false`)
	s.ingest(t, note("Document", "The turbine was inspected.")...)
	for name, age := range map[string]string{"future": "- interval '30 days'", "now": "", "old": "+ interval '60 days'", "ancient": "+ interval '55 years'"} {
		m := s.remember(t, store, "The turbine was inspected, "+name+".", "")
		_, err := s.pool.Exec(t.Context(), "UPDATE memories SET updated_at = now() - (interval '0' "+age+") WHERE content = $1", m["content"])
		must(t, err)
	}
	factors := func(more string) map[string]float64 {
		factors := map[string]float64{}
		for i, r := range s.know(t, `{"query": "turbine inspected", "explain": true`+more+`}`)["results"].([]any) {
			result := r.(map[string]any)
			factors[foundIn(map[string]any{"results": []any{r}})[0]] = result["explain"].(map[string]any)["decay"].(float64)
			if i > 10 || result["similarity_score"] == nil {
				t.Errorf("%v", result)
			}
		}
		return factors
	}
	for more, want := range map[string]float64{"": 0.25, `, "recency_half_life_days": 30`: 0.25, `, "recency_half_life_days": 0`: 1, `, "recency_half_life_days": 0.0001`: 0, `, "recency_half_life_days": 1e9`: 1, `, "recency_half_life_days": 60`: 0.5} {
		got := factors(more)
		if old := got["The turbine was inspected, old."]; old < want-0.001 || old > want+0.001 {
			t.Errorf("%s: an old memory counts %v, want %v", more, old, want)
		}
		if got["Document"] != 1 || got["The turbine was inspected, future."] != 1 || got["The turbine was inspected, now."] < 0.9 && !strings.Contains(more, "0.0001") {
			t.Errorf("%s: %v", more, got)
		}
	}
}

func TestKnowledgeDegraded(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := start(t, config{Embedder: &embedtest.Embedder{Fail: func(string) error {
		if broken.Load() {
			return errors.New("the model is away")
		}
		return nil
	}}})
	s.ingest(t, note("Pump", "The impeller is worn.")...)
	broken.Store(true)
	got := s.know(t, `{"query": "impeller"}`)
	result := got["results"].([]any)[0].(map[string]any)
	if _, there := result["similarity_score"]; there || result["signals"].(map[string]any)["vector"] != nil || got["degraded"].([]any)[0] != "semantic" {
		t.Errorf("%v", got)
	}
}
