package embedtest_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
)

func TestEmbed(t *testing.T) {
	t.Parallel()
	e := embedtest.New()
	vectors, err := e.Embed(t.Context(), embed.Passage, []string{"The red pump", "the pump, red", "a violin concerto"})
	if err != nil {
		t.Fatal(err)
	}
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	for i, v := range vectors {
		if len(v) != 384 || math.Abs(dot(v, v)-1) > 1e-6 {
			t.Errorf("vector %d has %d dimensions and length² %v", i, len(v), dot(v, v))
		}
	}
	if near, far := dot(vectors[0], vectors[1]), dot(vectors[0], vectors[2]); near < 0.8 || far > 0.5 {
		t.Errorf("near %v, far %v", near, far)
	}
	again, err := e.Embed(t.Context(), embed.Query, []string{"The red pump"})
	if err != nil || !slices.Equal(again[0], vectors[0]) {
		t.Errorf("another vector for the same text (%v)", err)
	}
	if e.Calls() != 2 || e.Texts() != 4 {
		t.Errorf("%d calls, %d texts", e.Calls(), e.Texts())
	}
	if _, err := e.Embed(t.Context(), embed.Query, []string{" \n"}); !errors.Is(err, embed.ErrBlank) {
		t.Errorf("blank text: %v", err)
	}
}

func TestFailAndBlock(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	e := &embedtest.Embedder{Fail: func(string) error { return broken }}
	if _, err := e.Embed(t.Context(), embed.Query, []string{"text"}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e = &embedtest.Embedder{Block: make(chan struct{})}
	if _, err := e.Embed(ctx, embed.Query, []string{"text"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCountTokens(t *testing.T) {
	t.Parallel()
	e := embedtest.New()
	for text, want := range map[string]int{"": 0, "one two": 2, "isn't": 3, "a-b c.": 5, "\tтри\n": 1} {
		if got := e.CountTokens(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
