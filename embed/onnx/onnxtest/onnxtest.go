// Package onnxtest gives tests the real default model, and what stands in for a reranker, from the cache that
// "make setup/models" fills. A test that needs one fails without it; none is skipped.
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
	return OptionsOf(tb, embed.DefaultModel)
}

// OptionsOf returns what opens a known model in int8.
func OptionsOf(tb testing.TB, name string) onnx.Options {
	tb.Helper()
	model, err := embed.Lookup(name)
	if err != nil {
		tb.Fatal(err)
	}
	return complete(tb, onnx.Options{Model: model, Precision: embed.Int8})
}

// RerankerOptions returns what opens the stand-in for a reranker. Its scores follow meaning, but say nothing about the
// quality of reranking.
func RerankerOptions(tb testing.TB) onnx.Options {
	tb.Helper()
	return complete(tb, onnx.Options{Model: embed.Model{Name: "stand-in-reranker", Window: 512}, Precision: embed.FP32})
}

// complete says where the files of a model are.
func complete(tb testing.TB, options onnx.Options) onnx.Options {
	tb.Helper()
	cache := os.Getenv("KB_CACHE_DIR")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			tb.Fatalf("find the cache of models: %v: set KB_CACHE_DIR", err)
		}
		cache = filepath.Join(user, "kb")
	}
	options.Library = filepath.Join(cache, library)
	options.Dir = filepath.Join(cache, "models", options.Model.Name, options.Precision)
	for _, path := range []string{
		options.Library, filepath.Join(options.Dir, embed.ModelFile), filepath.Join(options.Dir, embed.TokenizerFile),
	} {
		if _, err := os.Stat(path); err != nil {
			tb.Fatalf("run make setup/models (or set KB_CACHE_DIR): %v", err)
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

var sharedReranker struct {
	sync.Mutex
	reranker *onnx.Reranker
}

// Reranker returns the stand-in for a reranker. All tests of a package share it; none may close it.
func Reranker(tb testing.TB) *onnx.Reranker {
	tb.Helper()
	options := RerankerOptions(tb)
	options.Queue = 10_000 // no test makes another's request one too many
	sharedReranker.Lock()
	defer sharedReranker.Unlock()
	if sharedReranker.reranker == nil {
		reranker, err := onnx.OpenReranker(context.Background(), options)
		if err != nil {
			tb.Fatal(err)
		}
		sharedReranker.reranker = reranker
	}
	return sharedReranker.reranker
}
