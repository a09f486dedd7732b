package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

// embeddingServer answers as OpenAI's API does, and breaks every connection while it is dead.
type embeddingServer struct {
	*httptest.Server
	dead atomic.Bool
}

func newEmbeddingServer(t *testing.T) *embeddingServer {
	t.Helper()
	s := &embeddingServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *embeddingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question struct {
		Model string
		Input []string
	}
	if s.dead.Load() || r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&question) != nil {
		panic(http.ErrAbortHandler)
	}
	vectors, err := (&embedtest.Embedder{Dimensions: 48}).Embed(r.Context(), embed.Passage, question.Input)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var items []item
	for i, vector := range vectors {
		items = append(items, item{i, vector})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": items})
}

// searchByMeaning gives the status of a search by vectors alone, and its answer.
func (s *server) searchByMeaning(t *testing.T, query string) (int, string) {
	t.Helper()
	response, err := http.Post("http://"+s.addr+"/api/v1/search", "application/json", strings.NewReader(`{"query": "`+query+`", "vec_only": true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestEmbedderBehindHTTP(t *testing.T) {
	t.Parallel()
	address, docs, dir := dbtest.EmptyDatabase(t), t.TempDir(), t.TempDir()
	write(t, docs, map[string]string{"oil.md": "# Engine\n\nReplace the lubricant every year.\n", "tyres.md": "# Wheels\n\nRotate the tyres.\n"})
	remote := newEmbeddingServer(t)
	variables := []string{"KB_DATABASE_URL=" + address, "KB_EMBEDDER_URL=" + remote.URL, "KB_MODEL=owner/own-model"}

	// Nothing is known of the model before the server has answered once.
	remote.dead.Store(true)
	first := serve(t, dir, variables...)
	<-first.exited
	if code := first.cmd.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(first.stderr.String(), "it has to answer once") {
		t.Fatalf("it ended with %d:\n%s", code, first.stderr.String())
	}

	remote.dead.Store(false)
	s := serve(t, dir, variables...)
	s.ready(t)
	s.kb(t, "ingest", docs).want(t, 0, "2 stored")
	var status modelStatus
	s.get(t, "/api/v1/status", &status)
	if status.Model != "owner/own-model" || status.Dimensions != 48 {
		t.Errorf("status %+v", status)
	}
	wantByMeaning := func(s *server) {
		t.Helper()
		if code, body := s.searchByMeaning(t, "lubricant replace"); code != http.StatusOK || !strings.Contains(body, "Engine") {
			t.Errorf("a search by meaning: %d %s", code, body)
		}
	}
	wantByMeaning(s)

	// Searches go by words while it is dead, at once or after a restart, and by meaning when it is back.
	remote.dead.Store(true)
	s.kb(t, "search", "rotate tyres").want(t, 0, "Wheels")
	s.signal(15)
	s = serve(t, dir, variables...)
	s.ready(t)
	if !strings.Contains(s.stderr.String(), "the embedding server does not answer") {
		t.Error("the log does not say that the server is dead")
	}
	for range 5 {
		s.kb(t, "search", "rotate wheels").want(t, 0, "Wheels")
	}
	remote.dead.Store(false)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if code, _ := s.searchByMeaning(t, "when to replace lubricant"); code == http.StatusOK {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("searches by meaning still answer %d", code)
		}
	}
	wantByMeaning(s)
}

// TestModelMovesBetweenServerAndProcess keeps both models until the reindex, in both directions.
func TestModelMovesBetweenServerAndProcess(t *testing.T) {
	t.Parallel()
	address, docs, dir := dbtest.EmptyDatabase(t), t.TempDir(), t.TempDir()
	write(t, docs, map[string]string{"oil.md": "# Engine\n\nReplace the lubricant every year.\n"})
	remote := newEmbeddingServer(t)
	start := func(variables ...string) *server {
		s := serve(t, dir, append([]string{"KB_DATABASE_URL=" + address}, variables...)...)
		s.ready(t)
		return s
	}
	wantModel := func(s *server, model string) {
		t.Helper()
		time.Sleep(1100 * time.Millisecond) // until the server searches with the new space
		var status modelStatus
		s.get(t, "/api/v1/status", &status)
		if code, body := s.searchByMeaning(t, "replace the lubricant"); status.Model != model || code != http.StatusOK || !strings.Contains(body, "Engine") {
			t.Errorf("model %s, want %s; a search answers %d %s", status.Model, model, code, body)
		}
	}

	s := start()
	s.kb(t, "ingest", docs).want(t, 0, "1 stored")
	s.signal(15)

	s = start("KB_EMBEDDER_URL="+remote.URL, "KB_MODEL=owner/own-model")
	wantModel(s, "all-MiniLM-L6-v2")
	s.kb(t, "reindex").want(t, 0, "searches use owner/own-model")
	wantModel(s, "owner/own-model")
	s.signal(15)

	alone := serve(t, dir, "KB_DATABASE_URL="+address)
	<-alone.exited
	if !strings.Contains(alone.stderr.String(), "set KB_EMBEDDER_URL") {
		t.Errorf("without the server it said:\n%s", alone.stderr.String())
	}

	s = start("KB_EMBEDDER_URL="+remote.URL, "KB_MODEL_PRECISION=int8")
	wantModel(s, "owner/own-model")
	s.kb(t, "reindex").want(t, 0, "searches use all-MiniLM-L6-v2")
	wantModel(s, "all-MiniLM-L6-v2")
	s.signal(15)
}

func TestOpenReranker(t *testing.T) {
	t.Parallel()
	standIn := onnxtest.RerankerOptions(t)
	for name, test := range map[string]struct {
		environment map[string]string
		model, log  string
		reason      string // of a failure, else it is loaded
	}{
		"OffByDefault": {map[string]string{"KB_RERANKER_DIR": standIn.Dir}, "", "", ""},
		"FromAFolder": {
			map[string]string{"KB_RERANK_ENABLED": "true", "KB_RERANKER_DIR": standIn.Dir, "KB_RERANKER_MODEL": "own"},
			"own", `msg="reranker ready" model=own device=cpu`, "",
		},
		"ByHTTP": {
			map[string]string{"KB_RERANK_ENABLED": "true", "KB_RERANKER_URL": "http://127.0.0.1:1/v1/rerank"},
			embed.DefaultReranker, "api=jina", "",
		},
		"DefaultNeedsAServer": {
			map[string]string{"KB_RERANK_ENABLED": "true"}, embed.DefaultReranker, "searches are not reranked", "KB_RERANKER_URL",
		},
		"NotInTheCache": {
			map[string]string{"KB_RERANK_ENABLED": "true", "KB_RERANKER_MODEL": "owner/own"}, "owner/own", "level=WARN", "HF_HUB_OFFLINE",
		},
		"FolderWithoutAModel": {
			map[string]string{"KB_RERANK_ENABLED": "true", "KB_RERANKER_DIR": "no-such-folder"}, embed.DefaultReranker, "level=WARN", "must hold",
		},
		"FolderOfAnEmbedder": {
			map[string]string{"KB_RERANK_ENABLED": "true", "KB_RERANKER_DIR": onnxtest.Options(t).Dir}, embed.DefaultReranker, "level=WARN", "this is no reranker",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.environment["HF_HUB_OFFLINE"] = "1"
			test.environment["KB_CACHE_DIR"] = t.TempDir()
			test.environment["KB_ONNXRUNTIME"] = standIn.Library
			config, err := LoadConfig(test.environment)
			if err != nil {
				t.Fatal(err)
			}
			var log buffer
			p := &parts{}
			defer func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}()
			p.openReranker(t.Context(), config, io.Discard, slog.New(slog.NewTextHandler(&log, nil)))
			got := p.reranking
			if got.Model != test.model || !strings.Contains(log.String(), test.log) || test.log == "" && log.String() != "" {
				t.Errorf("model %q, log: %s", got.Model, log.String())
			}
			if loaded := test.model != "" && test.reason == ""; (got.Reranker != nil) != loaded || !strings.Contains(log.String(), test.reason) {
				t.Errorf("got %+v, log: %s", got, log.String())
			}
			if name == "FromAFolder" {
				scores, err := got.Reranker.Rerank(context.Background(), "pump", []string{"The pump leaks.", "An orchestra plays."})
				if err != nil || scores[0] <= scores[1] {
					t.Errorf("got %v, %v", scores, err)
				}
			}
		})
	}
}

// TestServeReranks has a server rerank in its process, and one whose reranker is not there.
func TestServeReranks(t *testing.T) {
	t.Parallel()
	address, docs, dir := dbtest.EmptyDatabase(t), t.TempDir(), t.TempDir()
	write(t, docs, map[string]string{"oil.md": "# Engine\n\nReplace the lubricant every year.\n", "tyres.md": "# Wheels\n\nRotate the tyres.\n"})
	for folder, loaded := range map[string]bool{onnxtest.RerankerOptions(t).Dir: true, t.TempDir(): false} {
		s := serve(t, dir, "KB_DATABASE_URL="+address, "KB_RERANK_ENABLED=true", "KB_RERANKER_MODEL=own", "KB_RERANKER_DIR="+folder, "KB_RERANK_TIMEOUT_MS=60000", "KB_SEARCH_TIMEOUT=90s")
		s.ready(t)
		s.kb(t, "ingest", docs).want(t, 0)
		var status struct {
			Rerank struct {
				Enabled, Loaded bool
				Model           string
				Candidates      int
			}
		}
		s.get(t, "/api/v1/status", &status)
		if r := status.Rerank; !r.Enabled || r.Loaded != loaded || r.Model != "own" || r.Candidates != 40 {
			t.Errorf("status %+v", r)
		}
		response, err := http.Post("http://"+s.addr+"/api/v1/search", "application/json", strings.NewReader(`{"query": "change the oil"}`))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Reranked bool
			Results  []struct{ Title string }
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || answer.Reranked != loaded || len(answer.Results) != 2 || answer.Results[0].Title != "Engine" {
			t.Errorf("loaded %v: %d %+v, %v", loaded, response.StatusCode, answer, err)
		}
		s.signal(15)
	}
}

func TestModelFromAFolderWithADescription(t *testing.T) {
	t.Parallel()
	address, dir, folder := dbtest.EmptyDatabase(t), t.TempDir(), t.TempDir()
	for _, name := range []string{embed.ModelFile, embed.TokenizerFile} {
		link(t, filepath.Join(onnxtest.OptionsOf(t, "bge-small-en-v1.5").Dir, name), filepath.Join(folder, name))
	}
	variables := []string{"KB_DATABASE_URL=" + address, "KB_MODEL=our-model", "KB_MODEL_DIR=" + folder}

	s := serve(t, dir, variables...)
	<-s.exited
	if !strings.Contains(s.stderr.String(), embed.DescriptionFile) {
		t.Errorf("without a description it said:\n%s", s.stderr.String())
	}
	write(t, folder, map[string]string{embed.DescriptionFile: `{"window": 128, "pooling": "cls"}`})
	s = serve(t, dir, variables...)
	s.ready(t)
	var status modelStatus
	s.get(t, "/api/v1/status", &status)
	if status.Model != "our-model" || status.Dimensions != 384 || !strings.Contains(s.stderr.String(), "window=128") {
		t.Errorf("status %+v", status)
	}
}

func TestEmbedderOptions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model, window string
		want          embed.Model
	}{
		"KnownModelHasItsPrefixesAndSize": {
			"intfloat/multilingual-e5-small", "",
			embed.Model{Window: 512, Dimensions: 384, QueryPrefix: "query: ", PassagePrefix: "passage: "},
		},
		"WindowIsNotTheLargestPossible": {"BAAI/bge-m3", "", embed.Model{Window: 512, Dimensions: 1024}},
		"WindowAsConfigured":            {"BAAI/bge-m3", "8192", embed.Model{Window: 8192, Dimensions: 1024}},
		"WindowOfTheModelIsTheLimit":    {"all-MiniLM-L6-v2", "8192", embed.Model{Window: 256, Dimensions: 384}},
		"UnknownModel":                  {"text-embedding-x", "8192", embed.Model{Window: 8192}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := LoadConfig(map[string]string{"KB_EMBEDDER_URL": "http://localhost", "KB_MODEL": test.model, "KB_EMBEDDER_WINDOW": test.window})
			if err != nil {
				t.Fatal(err)
			}
			got := embedderOptions(config, config.Model).Model
			if got.Name != test.model || got.Window != test.want.Window || got.Dimensions != test.want.Dimensions ||
				got.QueryPrefix != test.want.QueryPrefix || got.PassagePrefix != test.want.PassagePrefix {
				t.Errorf("got %+v", got)
			}
		})
	}
}
