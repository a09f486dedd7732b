package onnx_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/onnx"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

func rerank(tb testing.TB, reranker *onnx.Reranker, query string, passages ...string) []float64 {
	tb.Helper()
	scores, err := reranker.Rerank(tb.Context(), query, passages)
	if err != nil {
		tb.Fatal(err)
	}
	if len(scores) != len(passages) {
		tb.Fatalf("%d scores for %d passages", len(scores), len(passages))
	}
	for i, score := range scores {
		if !(score >= 0 && score <= 1) {
			tb.Errorf("passage %d has the score %v", i, score)
		}
	}
	return scores
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-5 }

func TestRerankFollowsMeaning(t *testing.T) {
	t.Parallel()
	scores := rerank(t, onnxtest.Reranker(t), "How do I repair a leaking pump?",
		"The orchestra plays Mozart on Sunday.",
		"Replacing the seal stops water from escaping the pump.",
		"Bake the bread for forty minutes.")
	if scores[1] < scores[0]+0.3 || scores[1] < scores[2]+0.3 {
		t.Errorf("got %v", scores)
	}
}

// Lengths are mixed so that pairs are sorted, put into several batches and filled up there.
func TestRerankKeepsTheOrderOfPassages(t *testing.T) {
	t.Parallel()
	reranker := onnxtest.Reranker(t)
	const query = "pump seal"
	var passages []string
	for i := range 20 {
		passages = append(passages, fmt.Sprintf("Part %d: ", i)+passage((i*37)%150))
	}
	alone := make([]float64, len(passages))
	for i, p := range passages {
		alone[i] = rerank(t, reranker, query, p)[0]
	}
	if slices.Max(alone)-slices.Min(alone) < 0.05 {
		t.Fatalf("the scores are too much alike to tell anything: %v", alone)
	}
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			together, err := reranker.Rerank(t.Context(), query, passages)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range passages {
				if !near(together[i], alone[i]) {
					t.Errorf("passage %d: %v alone, %v in company", i, alone[i], together[i])
				}
			}
		})
	}
	calls.Wait()
}

func TestRerankCutsThePassage(t *testing.T) {
	t.Parallel()
	reranker := onnxtest.Reranker(t)
	query, long := "pump "+strings.Repeat("valve ", 98)+"seal", strings.Repeat("word ", 409)
	scores := rerank(t, reranker, query, long, long+strings.Repeat("pump seal ", 5000))
	if scores[0] != scores[1] {
		t.Errorf("the end of a passage beyond the window counts: %v", scores)
	}
	if whole := rerank(t, reranker, query+" orchestra", long)[0]; near(whole, scores[0]) {
		t.Error("the end of a query of 101 tokens does not count")
	}
}

func TestRerankCutsAHugeQuery(t *testing.T) {
	t.Parallel()
	reranker := onnxtest.Reranker(t)
	huge := strings.Repeat("pump ", 5000)
	scores := rerank(t, reranker, huge, "A pump.", "The orchestra plays Mozart.", strings.Repeat("word ", 100)+"pump", strings.Repeat("word ", 100))
	if scores[0] <= scores[1] || scores[2] <= scores[3] {
		t.Errorf("the passages are not read: %v", scores)
	}
}

func TestRerankTakesAnyText(t *testing.T) {
	t.Parallel()
	reranker := onnxtest.Reranker(t)
	rerank(t, reranker, "pump", "", " \n", "\xff\xfe", "如何在知识库中搜索文档?", "[SEP] pump [CLS]")
	rerank(t, reranker, "", "pump", "")
	if scores := rerank(t, reranker, "pump"); len(scores) != 0 {
		t.Errorf("no passage: %v", scores)
	}
}

func TestRerankEnds(t *testing.T) {
	t.Parallel()
	reranker := onnxtest.Reranker(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := reranker.Rerank(ctx, "pump", []string{"seal"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := reranker.Rerank(ctx, "pump", slices.Repeat([]string{passage(600)}, 120)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("too late: %v", err)
	}
	rerank(t, reranker, "pump", "seal")
}

func TestRerankIsBusy(t *testing.T) {
	t.Parallel()
	options := onnxtest.RerankerOptions(t)
	options.Queue = 10
	reranker, err := onnx.OpenReranker(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reranker.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() {
		err := embed.ErrBusy
		for errors.Is(err, embed.ErrBusy) { // until the others don't wait
			_, err = reranker.Rerank(ctx, "pump", slices.Repeat([]string{passage(600)}, 500))
		}
		ended <- err
	}()
	for err = nil; err == nil; { // until the other waits
		_, err = reranker.Rerank(t.Context(), "pump", slices.Repeat([]string{"seal"}, 10))
	}
	if !errors.Is(err, embed.ErrBusy) {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v", err)
	}
	rerank(t, reranker, "pump", "seal")
}

func TestRerankerClose(t *testing.T) {
	t.Parallel()
	reranker, err := onnx.OpenReranker(t.Context(), onnxtest.RerankerOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	if reranker.Model() != "stand-in-reranker" || reranker.Device().Name == "" {
		t.Errorf("model %q on %+v", reranker.Model(), reranker.Device())
	}
	for range 2 {
		if err := reranker.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := reranker.Rerank(t.Context(), "pump", []string{"seal"}); err == nil {
		t.Error("a closed model reranks")
	}
}

func TestOpenRerankerErrors(t *testing.T) {
	t.Parallel()
	onnxtest.Reranker(t) // loads the runtime
	unigram := t.TempDir()
	if err := os.WriteFile(filepath.Join(unigram, embed.TokenizerFile), []byte(`{"model": {"type": "Unigram"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*onnx.Options)
		want   string
	}{
		"Embedder":      {func(o *onnx.Options) { o.Dir = onnxtest.Options(t).Dir }, "this is no reranker"},
		"SentencePiece": {func(o *onnx.Options) { o.Dir = unigram }, "KB_RERANKER_URL"},
		"NoFiles":       {func(o *onnx.Options) { o.Dir = t.TempDir() }, embed.TokenizerFile},
		"NoWindow":      {func(o *onnx.Options) { o.Model.Window = 0 }, "window"},
		"NoSuchDevice":  {func(o *onnx.Options) { o.Device = embed.DeviceCUDA }, "KB_DEVICE is cuda"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := onnxtest.RerankerOptions(t)
			test.change(&options)
			if _, err := onnx.OpenReranker(t.Context(), options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
	if _, err := onnx.Open(t.Context(), onnx.Options{
		Library: onnxtest.Options(t).Library, Model: onnxtest.Options(t).Model, Dir: onnxtest.RerankerOptions(t).Dir,
	}); err == nil || !strings.Contains(err.Error(), "wanted float [texts, tokens, dimensions]") {
		t.Errorf("a reranker as embedder: %v", err)
	}
}

// BenchmarkRerank is one request of 40 passages of 150 tokens.
func BenchmarkRerank(b *testing.B) {
	reranker := onnxtest.Reranker(b)
	passages := make([]string, 40)
	for i := range passages {
		passages[i] = passage(140 + i%20)
	}
	for b.Loop() {
		rerank(b, reranker, "How do I repair a leaking pump?", passages...)
	}
}
