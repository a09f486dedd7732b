package embed

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// entryOverhead is about what an entry costs beside its key and numbers: list node, map slot, slice and string headers.
const entryOverhead = 256

// longestKey is the length past which a text is kept as its SHA-256.
const longestKey = 64

// Cache is an Embedder that remembers the vectors of queries, the ones used last, up to a number of bytes. Passages go
// straight to the model: they are embedded once. It is safe for concurrent use.
type Cache struct {
	Embedder

	maxBytes int64

	mu      sync.Mutex
	entries *simplelru.LRU[cacheKey, []float32]
	stats   CacheStats
}

type cacheKey struct {
	space  Space
	text   string
	hashed bool
}

// CacheStats counts since the Cache was made.
type CacheStats struct {
	// Hits and Misses count texts of kind Query.
	Hits, Misses int64
	// Entries and Bytes are what the cache holds now.
	Entries int
	Bytes   int64
}

// NewCache wraps inner. A maxBytes of 0 or less remembers nothing.
func NewCache(inner Embedder, maxBytes int64) *Cache {
	c := &Cache{Embedder: inner, maxBytes: maxBytes}
	c.entries, _ = simplelru.NewLRU(math.MaxInt, func(key cacheKey, vector []float32) {
		c.stats.Bytes -= entrySize(key, vector)
	}) // fails for a size below 1 only; bytes are the limit here
	return c
}

// Embed implements Embedder. The caller owns the vectors.
func (c *Cache) Embed(ctx context.Context, kind Kind, texts []string) ([][]float32, error) {
	if kind != Query || c.maxBytes <= 0 {
		return c.Embedder.Embed(ctx, kind, texts)
	}
	vectors := make([][]float32, len(texts))
	keys := make([]cacheKey, len(texts))
	space := c.Space()
	var missing []int
	c.mu.Lock()
	for i, text := range texts {
		keys[i] = newCacheKey(space, text)
		if vector, ok := c.entries.Get(keys[i]); ok {
			vectors[i] = slices.Clone(vector)
			c.stats.Hits++
		} else {
			missing = append(missing, i)
			c.stats.Misses++
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return vectors, ctx.Err()
	}
	if len(missing) == len(texts) { // the usual case: an error then counts the texts as the caller does
		fresh, err := c.Embedder.Embed(ctx, kind, texts)
		if err != nil {
			return nil, err
		}
		vectors = fresh
	} else {
		rest := make([]string, len(missing))
		for j, i := range missing {
			rest[j] = texts[i]
		}
		fresh, err := c.Embedder.Embed(ctx, kind, rest)
		if err != nil {
			return nil, err
		}
		for j, i := range missing {
			vectors[i] = fresh[j]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range missing {
		c.add(keys[i], slices.Clone(vectors[i]))
	}
	return vectors, nil
}

// add remembers a vector and forgets the oldest until the rest fits.
func (c *Cache) add(key cacheKey, vector []float32) {
	if c.entries.Contains(key) { // another call was faster
		return
	}
	c.entries.Add(key, vector)
	c.stats.Bytes += entrySize(key, vector)
	for c.stats.Bytes > c.maxBytes {
		c.entries.RemoveOldest()
	}
}

// Stats returns the counters.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Entries = c.entries.Len()
	return stats
}

func newCacheKey(space Space, text string) cacheKey {
	if len(text) <= longestKey {
		return cacheKey{space: space, text: text}
	}
	sum := sha256.Sum256([]byte(text))
	return cacheKey{space: space, text: string(sum[:]), hashed: true}
}

func entrySize(key cacheKey, vector []float32) int64 {
	return int64(len(key.text)) + 4*int64(len(vector)) + entryOverhead
}
