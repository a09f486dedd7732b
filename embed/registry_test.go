package embed_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kb-search/kb/embed"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"all-MiniLM-L6-v2":                       "all-MiniLM-L6-v2",
		"sentence-transformers/all-MiniLM-L6-v2": "all-MiniLM-L6-v2",
		"ALL-minilm-l6-v2":                       "all-MiniLM-L6-v2",
		"BAAI/bge-small-en-v1.5":                 "bge-small-en-v1.5",
		"bge-small-zh-v1.5":                      "bge-small-zh-v1.5",
		"intfloat/e5-small-v2":                   "e5-small-v2",
		"intfloat/multilingual-e5-small":         "multilingual-e5-small",
		"baai/BGE-M3":                            "bge-m3",
	} {
		if got, err := embed.Lookup(name); err != nil || got.Name != want {
			t.Errorf("%s: got %q, %v", name, got.Name, err)
		}
	}
	_, err := embed.Lookup("gpt")
	for _, m := range embed.Models() {
		if err == nil || !strings.Contains(err.Error(), m.Name) {
			t.Errorf("the error for an unknown model does not name %s: %v", m.Name, err)
		}
	}
}

func TestModelsAreComplete(t *testing.T) {
	t.Parallel()
	for _, m := range embed.Models() {
		if m.Name == "" || strings.Contains(m.Name, "/") || m.Window < 256 || m.Dimensions < 384 {
			t.Errorf("%+v", m)
		}
		if m.SentencePiece != (len(m.Sources) == 0) {
			t.Errorf("%s: a model that can be run here has files, another has none", m.Name)
		}
		for _, precision := range []string{embed.Int8, embed.FP32} {
			if m.SentencePiece {
				continue
			}
			s, ok := m.Sources[precision]
			if !ok || s.Hub.Repo == "" || s.Hub.Model == "" || strings.Count(s.Maven.Artifact, ":") != 2 ||
				len(s.Maven.ModelSHA256) != 64 || len(s.Maven.TokenizerSHA256) != 64 {
				t.Errorf("%s %s: %+v", m.Name, precision, s)
			}
		}
	}
	if first := embed.Models()[0].Name; first != embed.DefaultModel {
		t.Errorf("the first model is %s", first)
	}
}

func TestLookupReranker(t *testing.T) {
	t.Parallel()
	m, err := embed.LookupReranker(embed.DefaultReranker)
	if err != nil || m.Name != "bge-reranker-v2-m3" || m.Window < 512 {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := embed.LookupReranker(embed.DefaultModel); !errors.Is(err, embed.ErrUnknownModel) {
		t.Errorf("got %v", err)
	}
}
