package onnx_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/onnx"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// passage returns a text of about so many tokens.
func passage(tokens int) string {
	words := strings.Fields("the pump in hall seven was taken apart and cleaned before a new seal could be fitted to it")
	var b strings.Builder
	for i := range tokens {
		b.WriteString(words[(i*7+i/5)%len(words)])
		b.WriteByte(' ')
	}
	return b.String()
}

func TestSpace(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	space := embedder.Space()
	want := embed.Space{Model: "all-MiniLM-L6-v2", Precision: embed.Int8, SHA256: space.SHA256, Dimensions: 384}
	if space != want || len(space.SHA256) != 64 {
		t.Errorf("got %+v", space)
	}
	if embedder.Window() != 256 {
		t.Errorf("window %d", embedder.Window())
	}
	if got := embedder.CountTokens("unaffable, isn't it?"); got != 9 {
		t.Errorf("counted %d tokens", got)
	}
}

// The vector of a text must be the same bit for bit, whatever is embedded before it, beside it or at the same time.
func TestVectorDependsOnItsTextOnly(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	texts := []string{"oil", passage(20), passage(256), "如何在知识库中搜索文档?", passage(100), "oil"}
	alone := make([][]float32, len(texts))
	for i, text := range texts {
		alone[i] = embedOne(t, embedder, text)
	}
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			together, err := embedder.Embed(context.Background(), embed.Passage, texts)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range texts {
				if !slices.Equal(together[i], alone[i]) {
					t.Errorf("text %d has another vector in company: cosine %v", i, cosine(together[i], alone[i]))
				}
			}
		})
	}
	calls.Wait()
	if !slices.Equal(alone[0], alone[len(alone)-1]) {
		t.Error("one text has two vectors")
	}
}

func embedOne(tb testing.TB, embedder *onnx.Embedder, text string) []float32 {
	tb.Helper()
	vectors, err := embedder.Embed(tb.Context(), embed.Query, []string{text})
	if err != nil {
		tb.Fatal(err)
	}
	return vectors[0]
}

func TestMeaningIsNear(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	question := embedOne(t, embedder, "How do I repair a leaking pump?")
	near := cosine(question, embedOne(t, embedder, "Replacing the seal stops water from escaping the pump."))
	far := cosine(question, embedOne(t, embedder, "The orchestra plays Mozart on Sunday."))
	if near < far+0.3 {
		t.Errorf("near %v, far %v", near, far)
	}
}

// e5 puts a prefix before texts of both kinds, so that one text has a vector as query and another as passage.
func TestE5(t *testing.T) {
	t.Parallel()
	embedder, err := onnx.Open(t.Context(), onnxtest.OptionsOf(t, "e5-small-v2"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = embedder.Close() }()
	const question = "How do I repair a leaking pump?"
	passages, err := embedder.Embed(t.Context(), embed.Passage, []string{
		"Replacing the seal stops water from escaping the pump.", "The orchestra plays Mozart on Sunday.", question, "query: " + question,
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := embedOne(t, embedder, question)
	if near, far := cosine(asked, passages[0]), cosine(asked, passages[1]); near < far+0.05 {
		t.Errorf("near %v, far %v", near, far)
	}
	if slices.Equal(asked, passages[2]) || slices.Equal(asked, passages[3]) {
		t.Error("a query has the vector of a passage")
	}
	if embedder.Space().Dimensions != 384 || embedder.Window() != 512 {
		t.Errorf("%+v, window %d", embedder.Space(), embedder.Window())
	}
}

func TestTextBeyondTheWindowIsCut(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	head := strings.Repeat("word ", 254)
	if !slices.Equal(embedOne(t, embedder, head), embedOne(t, embedder, head+strings.Repeat("tail ", 10_000))) {
		t.Error("the tail of a text beyond the window counts")
	}
}

func TestBlankIsAnError(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	for _, blank := range []string{"", " \t\n", "\u200b\u200d", "\x00\x07", "\u3000\u00a0", "\u0301", "\xff\xfe"} {
		_, err := embedder.Embed(t.Context(), embed.Passage, []string{"text", blank})
		if !errors.Is(err, embed.ErrBlank) || !strings.Contains(err.Error(), "text 2 of 2") {
			t.Errorf("%q: %v", blank, err)
		}
	}
	if vectors, err := embedder.Embed(t.Context(), embed.Query, nil); err != nil || len(vectors) != 0 {
		t.Errorf("no text: %v, %v", vectors, err)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	want := embedOne(t, embedder, passage(256))

	t.Run("Before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := embedder.Embed(ctx, embed.Query, []string{"text"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("AmongManyTexts", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		texts := slices.Repeat([]string{passage(256)}, 2_000)
		time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		if _, err := embedder.Embed(ctx, embed.Passage, texts); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("it ended %v after the start", took)
		}
	})
	t.Run("InsideOneText", func(t *testing.T) {
		cancelled := 0
		for delay := time.Duration(0); delay < 12*time.Millisecond; delay += 500 * time.Microsecond {
			ctx, cancel := context.WithTimeout(t.Context(), delay)
			vectors, err := embedder.Embed(ctx, embed.Query, []string{passage(256)})
			cancel()
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				cancelled++
			case err != nil:
				t.Errorf("got %v", err)
			case !slices.Equal(vectors[0], want):
				t.Error("a run beside the deadline gave another vector")
			}
		}
		if cancelled == 0 {
			t.Error("nothing was cancelled")
		}
	})
	if !slices.Equal(embedOne(t, embedder, passage(256)), want) {
		t.Error("the vector changed after cancelled runs")
	}
}

// A query runs beside a batch, not behind it.
func TestQueryDoesNotWaitForABatch(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = embedder.Embed(ctx, embed.Passage, slices.Repeat([]string{passage(256)}, 5_000))
	}()
	for range 5 {
		embedOne(t, embedder, "a short query")
	}
	select {
	case <-done:
		t.Error("the batch ended before the queries")
	default:
	}
	cancel()
	<-done
}

func TestClose(t *testing.T) {
	t.Parallel()
	embedder, err := onnx.Open(t.Context(), onnxtest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := embedder.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := embedder.Embed(t.Context(), embed.Query, []string{"text"}); err == nil {
		t.Error("a closed model embeds")
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	onnxtest.Real(t) // loads the runtime
	broken := t.TempDir()
	tokenizer, err := os.ReadFile(filepath.Join(onnxtest.Options(t).Dir, embed.TokenizerFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{embed.TokenizerFile: tokenizer, embed.ModelFile: []byte("no graph")} {
		if err := os.WriteFile(filepath.Join(broken, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		change func(*onnx.Options)
		want   string
	}{
		"NoLibrary":       {func(o *onnx.Options) { o.Library = "" }, "no path of libonnxruntime"},
		"SecondLibrary":   {func(o *onnx.Options) { o.Library = "other.so" }, "already runs"},
		"NoFiles":         {func(o *onnx.Options) { o.Dir = t.TempDir() }, embed.TokenizerFile},
		"NoGraph":         {func(o *onnx.Options) { o.Dir = broken }, "load graph model.onnx"},
		"WrongDimensions": {func(o *onnx.Options) { o.Model.Dimensions = 512 }, "wanted 512"},
		"NoWindow":        {func(o *onnx.Options) { o.Model.Window = 0 }, "window"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := onnxtest.Options(t)
			test.change(&options)
			if _, err := onnx.Open(t.Context(), options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
}
