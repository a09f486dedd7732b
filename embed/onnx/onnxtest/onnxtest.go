// Package onnxtest gives tests the real default model, from the cache that "make setup" fills. A test that needs the
// model fails without it; none is skipped.
package onnxtest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/onnx"
)

// library is where the ONNX runtime lies in the cache; its version is that of scripts that fill the cache.
const library = "onnxruntime-1.32.0/libonnxruntime.so.1.32.0"

// Options returns what opens the default model in int8. The cache is $KB_CACHE_DIR, else kb in the user's cache folder.
func Options(tb testing.TB) onnx.Options {
	tb.Helper()
	cache := os.Getenv("KB_CACHE_DIR")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			tb.Fatalf("find the cache of models: %v: set KB_CACHE_DIR", err)
		}
		cache = filepath.Join(user, "kb")
	}
	model, err := embed.Lookup(embed.DefaultModel)
	if err != nil {
		tb.Fatal(err)
	}
	options := onnx.Options{
		Library: filepath.Join(cache, library), Model: model, Precision: embed.Int8,
		Dir: filepath.Join(cache, "models", model.Name, embed.Int8),
	}
	for _, path := range []string{
		options.Library, filepath.Join(options.Dir, embed.ModelFile), filepath.Join(options.Dir, embed.TokenizerFile),
	} {
		if _, err := os.Stat(path); err != nil {
			tb.Fatalf("run make setup (or set KB_CACHE_DIR): %v", err)
		}
	}
	return options
}

var shared struct {
	sync.Mutex
	embedder *onnx.Embedder
}

// Real returns the default model in int8. All tests of a package share it; none may close it.
func Real(tb testing.TB) *onnx.Embedder {
	tb.Helper()
	options := Options(tb)
	shared.Lock()
	defer shared.Unlock()
	if shared.embedder == nil {
		embedder, err := onnx.Open(context.Background(), options)
		if err != nil {
			tb.Fatal(err)
		}
		shared.embedder = embedder
	}
	return shared.embedder
}
