package models

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kb-search/kb/embed"
)

// described is a folder with a description.
func described(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, embed.DescriptionFile), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDescribe(t *testing.T) {
	t.Parallel()

	t.Run("KnownNameNeedsNoFile", func(t *testing.T) {
		t.Parallel()
		m, err := Describe(t.Context(), Options{CacheDir: t.TempDir(), Offline: true}, "BAAI/bge-small-en-v1.5", embed.Int8)
		if err != nil || m.Name != "bge-small-en-v1.5" || m.Pooling != embed.CLS || len(m.Sources) == 0 {
			t.Errorf("got %+v, %v", m, err)
		}
		if m, err = Describe(t.Context(), Options{LocalDir: t.TempDir()}, "bge-small-en-v1.5", embed.Int8); err != nil || m.Window != 512 {
			t.Errorf("in a folder: got %+v, %v", m, err)
		}
	})

	t.Run("FileInTheFolderWins", func(t *testing.T) {
		t.Parallel()
		dir := described(t, `{"window": 64, "pooling": "cls", "query_prefix": "q: "}`)
		for name, want := range map[string]string{"own": "own", "intfloat/e5-small-v2": "e5-small-v2"} {
			m, err := Describe(t.Context(), Options{LocalDir: dir}, name, embed.Int8)
			if err != nil || m.Name != want || m.Window != 64 || m.Pooling != embed.CLS || m.QueryPrefix != "q: " || m.PassagePrefix != "" {
				t.Errorf("%s: got %+v, %v", name, m, err)
			}
		}
	})

	t.Run("HubRepositoryDescribesItself", func(t *testing.T) {
		t.Parallel()
		f := newFakeHub(t)
		f.files[embed.DescriptionFile] = []byte(`{"window": 128, "query_prefix": "q: "}`)
		options := Options{CacheDir: t.TempDir(), HubEndpoint: f.URL}
		m, err := Describe(t.Context(), options, "owner/name", embed.FP32)
		if err != nil || m.Name != "owner/name" || m.Window != 128 || m.QueryPrefix != "q: " {
			t.Fatalf("got %+v, %v", m, err)
		}
		dir, err := Pull(t.Context(), options, m, embed.FP32)
		if err != nil || dir != Dir(options.CacheDir, "owner/name", embed.FP32) {
			t.Fatalf("got %q, %v", dir, err)
		}
		f.requirePulled(t, dir)
		options.Offline, options.HubEndpoint = true, "http://127.0.0.1:1"
		again, err := Describe(t.Context(), options, "owner/name", embed.FP32)
		if err != nil || again.Window != 128 {
			t.Errorf("from the cache: got %+v, %v", again, err)
		}
		if _, err := Pull(t.Context(), options, again, embed.FP32); err != nil {
			t.Errorf("from the cache: %v", err)
		}
	})
}

func TestDescribeErrors(t *testing.T) {
	t.Parallel()
	f := newFakeHub(t)
	for name, test := range map[string]struct {
		options Options
		model   string
		want    []string
	}{
		"UnknownName":             {Options{}, "gpt", []string{"unknown model", "all-MiniLM-L6-v2", embed.DescriptionFile}},
		"HubRepositoryWithout":    {Options{HubEndpoint: f.URL}, "owner/name", []string{"unknown model", embed.DescriptionFile, "404"}},
		"Offline":                 {Options{HubEndpoint: f.URL, Offline: true}, "owner/name", []string{"unknown model"}},
		"FolderWithout":           {Options{LocalDir: t.TempDir()}, "own", []string{"unknown model", embed.DescriptionFile}},
		"FolderWithABadOne":       {Options{LocalDir: described(t, `{"window": -5}`)}, "own", []string{"window is -5"}},
		"NameThatLeavesTheFolder": {Options{HubEndpoint: f.URL}, "../name", []string{"unknown model"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.options.CacheDir = t.TempDir()
			_, err := Describe(t.Context(), test.options, test.model, embed.Int8)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want a sentence with %q", err, want)
				}
			}
		})
	}
}

func TestDescribeReranker(t *testing.T) {
	t.Parallel()
	options := Options{CacheDir: t.TempDir(), Offline: true}

	m, err := DescribeReranker(t.Context(), options, embed.DefaultReranker, embed.Int8)
	if err != nil || !m.SentencePiece {
		t.Fatalf("got %+v, %v", m, err)
	}
	if _, err := Pull(t.Context(), options, m, embed.Int8); err == nil || !strings.Contains(err.Error(), "KB_RERANKER_URL") {
		t.Errorf("a model that can't be run here: %v", err)
	}
	m, err = DescribeReranker(t.Context(), options, "owner/name", embed.Int8)
	if err != nil || m.Window != defaultWindow || m.Sources[embed.Int8].Hub.Repo != "owner/name" {
		t.Errorf("on the hub: got %+v, %v", m, err)
	}
	if _, err := DescribeReranker(t.Context(), options, "name", embed.Int8); !errors.Is(err, embed.ErrUnknownModel) {
		t.Errorf("got %v", err)
	}
	options.LocalDir = t.TempDir()
	if m, err = DescribeReranker(t.Context(), options, "name", embed.Int8); err != nil || m.Name != "name" || m.Window != defaultWindow {
		t.Errorf("in a folder: got %+v, %v", m, err)
	}
	options.LocalDir = described(t, `{"window": 128}`)
	if m, err = DescribeReranker(t.Context(), options, "name", embed.Int8); err != nil || m.Window != 128 {
		t.Errorf("described in a folder: got %+v, %v", m, err)
	}
}
