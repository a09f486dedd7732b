package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/embed/remote"
)

// modelServer runs models behind HTTP: it embeds as OpenAI's API does and reranks as TEI does. While it is dead it breaks
// every connection, or says nothing.
type modelServer struct {
	*httptest.Server
	dead, silent atomic.Bool
}

func newModelServer(t *testing.T) *modelServer {
	t.Helper()
	s := &modelServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *modelServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question struct {
		Input []string `json:"input"`
		Query string   `json:"query"`
		Texts []string `json:"texts"`
	}
	if json.NewDecoder(r.Body).Decode(&question) != nil {
		panic(http.ErrAbortHandler)
	}
	if s.silent.Load() {
		<-r.Context().Done()
	}
	if s.dead.Load() || s.silent.Load() {
		panic(http.ErrAbortHandler)
	}
	items := []map[string]any{}
	if question.Query != "" {
		scores, _ := byHash(r.Context(), question.Query, question.Texts)
		for i, score := range scores {
			items = append(items, map[string]any{"index": i, "score": 4*score - 2})
		}
		_ = json.NewEncoder(w).Encode(items)
		return
	}
	vectors, err := embedtest.New().Embed(r.Context(), embed.Passage, question.Input)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	for i, vector := range vectors {
		items = append(items, map[string]any{"index": i, "embedding": vector})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": items})
}

// TestModelServerDiesUnderLoad searches all the time while the server of a model dies and comes back.
func TestModelServerDiesUnderLoad(t *testing.T) {
	t.Parallel()
	embedding := func(t *testing.T, address string) config {
		embedder, err := remote.NewEmbedder(remote.EmbedderOptions{
			URL: address, Model: embed.Model{Name: "fake", Window: 256, Dimensions: 384}, Timeout: 500 * time.Millisecond,
		})
		must(t, err)
		t.Cleanup(func() { _ = embedder.Close() })
		return config{Embedder: embedder}
	}
	reranking := func(t *testing.T, address string) config {
		reranker, err := remote.NewReranker(remote.RerankerOptions{URL: address, Model: "own", Timeout: 500 * time.Millisecond})
		must(t, err)
		t.Cleanup(func() { _ = reranker.Close() })
		return config{Reranking: search.Reranking{Model: "own", Reranker: reranker, Candidates: 40, Timeout: 500 * time.Millisecond}}
	}
	for name, test := range map[string]struct {
		config func(*testing.T, string) config
		silent bool
		// whole says that the model took part in an answer.
		whole func(found) bool
	}{
		"RerankerBreaksOff":   {reranking, false, func(f found) bool { return *f.Reranked }},
		"RerankerSaysNothing": {reranking, true, func(f found) bool { return *f.Reranked }},
		"EmbedderBreaksOff":   {embedding, false, func(f found) bool { return len(f.Degraded) == 0 }},
		"EmbedderSaysNothing": {embedding, true, func(f found) bool { return len(f.Degraded) == 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newModelServer(t)
			s := startPlant(t, test.config(t, model.URL))
			kill := func(dead bool) {
				if test.silent {
					model.silent.Store(dead)
				} else {
					model.dead.Store(dead)
				}
			}
			var whole, plain atomic.Int64
			stop := make(chan struct{})
			var load sync.WaitGroup
			for range 4 {
				load.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						response, err := s.client.Post(s.url+"/api/v1/search", "application/json", strings.NewReader(`{"query": "pump seal"}`))
						if err != nil {
							t.Errorf("a search: %v", err)
							return
						}
						var f found
						err = json.NewDecoder(response.Body).Decode(&f)
						_ = response.Body.Close()
						if response.StatusCode != http.StatusOK || err != nil || len(f.Results) != 10 {
							t.Errorf("a search answers %d with %d results: %v", response.StatusCode, len(f.Results), err)
							return
						}
						if test.whole(f) {
							whole.Add(1)
						} else {
							plain.Add(1)
						}
					}
				})
			}
			defer load.Wait()
			defer close(stop)
			// more waits until 20 further answers are counted.
			more := func(what string, counter *atomic.Int64) {
				t.Helper()
				wanted, deadline := counter.Load()+20, time.Now().Add(time.Minute)
				for counter.Load() < wanted {
					if time.Now().After(deadline) || t.Failed() {
						t.Fatalf("there are no 20 further %s answers", what)
					}
					time.Sleep(time.Millisecond)
				}
			}
			more("whole", &whole)
			kill(true)
			more("plain", &plain)
			kill(false)
			back := time.Now()
			more("whole", &whole)
			t.Logf("20 whole answers %s after the server was back", time.Since(back).Round(time.Millisecond))
		})
	}
}
