package embed_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
)

func TestCache(t *testing.T) {
	t.Parallel()

	query := func(t *testing.T, c *embed.Cache, texts ...string) [][]float32 {
		t.Helper()
		vectors, err := c.Embed(t.Context(), embed.Query, texts)
		if err != nil {
			t.Fatal(err)
		}
		return vectors
	}

	t.Run("SecondQueryIsRemembered", func(t *testing.T) {
		t.Parallel()
		inner := embedtest.New()
		c := embed.NewCache(inner, 1<<20)
		long := strings.Repeat("long query ", 100)
		first := query(t, c, "one", long)
		second := query(t, c, long, "two", "one")
		if !slices.Equal(first[0], second[2]) || !slices.Equal(first[1], second[0]) {
			t.Error("other vectors the second time")
		}
		if got := c.Stats(); got.Hits != 2 || got.Misses != 3 || got.Entries != 3 || inner.Texts() != 3 {
			t.Errorf("got %+v, %d texts embedded", got, inner.Texts())
		}
	})

	t.Run("CallerOwnsItsVectors", func(t *testing.T) {
		t.Parallel()
		c := embed.NewCache(embedtest.New(), 1<<20)
		for range 3 {
			vector := query(t, c, "one")[0]
			if !slices.ContainsFunc(vector, func(x float32) bool { return x == 1 }) {
				t.Fatal("a caller changed the remembered vector")
			}
			clear(vector)
		}
	})

	t.Run("PassagesPassBy", func(t *testing.T) {
		t.Parallel()
		inner := embedtest.New()
		c := embed.NewCache(inner, 1<<20)
		for range 2 {
			if _, err := c.Embed(t.Context(), embed.Passage, []string{"one"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.Stats(); got != (embed.CacheStats{}) || inner.Texts() != 2 {
			t.Errorf("got %+v, %d texts embedded", got, inner.Texts())
		}
	})

	t.Run("BytesAreBounded", func(t *testing.T) {
		t.Parallel()
		const maxBytes = 20_000
		c := embed.NewCache(embedtest.New(), maxBytes)
		for i := range 200 {
			query(t, c, fmt.Sprintf("query %d", i), "kept by use")
		}
		got := c.Stats()
		if got.Bytes > maxBytes || got.Bytes < maxBytes*3/4 || got.Entries < 5 || got.Hits != 199 {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("NothingIsRememberedWithoutBytes", func(t *testing.T) {
		t.Parallel()
		inner := embedtest.New()
		for _, maxBytes := range []int64{0, 10} {
			c := embed.NewCache(inner, maxBytes)
			query(t, c, "one")
			query(t, c, "one")
			if got := c.Stats(); got.Hits != 0 || got.Entries != 0 || got.Bytes != 0 {
				t.Errorf("got %+v", got)
			}
		}
	})

	t.Run("ErrorsAreNotRemembered", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("broken")
		fail := true
		inner := &embedtest.Embedder{Fail: func(string) error {
			if fail {
				return broken
			}
			return nil
		}}
		c := embed.NewCache(inner, 1<<20)
		if _, err := c.Embed(t.Context(), embed.Query, []string{"one"}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		fail = false
		query(t, c, "one")
	})

	t.Run("ConcurrentUse", func(t *testing.T) {
		t.Parallel()
		c := embed.NewCache(embedtest.New(), 10_000)
		want := query(t, c, "query 3")[0]
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for i := range 100 {
					vectors, err := c.Embed(t.Context(), embed.Query, []string{fmt.Sprintf("query %d", i%10), "query 3"})
					if err != nil || !slices.Equal(vectors[1], want) {
						t.Errorf("got another vector (%v)", err)
					}
				}
			})
		}
		callers.Wait()
	})
}
