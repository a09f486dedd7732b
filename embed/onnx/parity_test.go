package onnx_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/onnx"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

// parityCase is one text with what Python makes of it; see scripts/embed_vectors.py.
type parityCase struct {
	Name   string  `json:"name"`
	Text   string  `json:"text"`
	IDs    []int64 `json:"ids"`
	Vector string  `json:"vector"`
}

func (c parityCase) vector(t *testing.T) []float32 {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(c.Vector)
	if err != nil {
		t.Fatal(err)
	}
	vector := make([]float32, len(data)/4)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return vector
}

func parityCases(tb testing.TB) []parityCase {
	tb.Helper()
	data, err := os.ReadFile("testdata/parity.json")
	if err != nil {
		tb.Fatal(err)
	}
	var cases []parityCase
	if err := json.Unmarshal(data, &cases); err != nil {
		tb.Fatal(err)
	}
	if len(cases) < 50 {
		tb.Fatalf("only %d texts", len(cases))
	}
	return cases
}

func realTokenizer(tb testing.TB) *onnx.Tokenizer {
	tb.Helper()
	tokenizer, err := onnx.LoadTokenizer(filepath.Join(onnxtest.Options(tb).Dir, embed.TokenizerFile))
	if err != nil {
		tb.Fatal(err)
	}
	return tokenizer
}

func TestTokenizerParity(t *testing.T) {
	t.Parallel()
	tokenizer := realTokenizer(t)
	for _, c := range parityCases(t) {
		if got := tokenizer.Encode(c.Text, 256); !slices.Equal(got, c.IDs) {
			t.Errorf("%s: got %v, want %v", c.Name, got, c.IDs)
		}
	}
}

func TestVectorParity(t *testing.T) {
	t.Parallel()
	embedder := onnxtest.Real(t)
	worst, worstName := 1.0, ""
	for _, c := range parityCases(t) {
		vectors, err := embedder.Embed(t.Context(), embed.Passage, []string{c.Text})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got := cosine(vectors[0], c.vector(t))
		if got < 0.999 {
			t.Errorf("%s: cosine %v", c.Name, got)
		}
		if got < worst {
			worst, worstName = got, c.Name
		}
		if length := math.Sqrt(dot(vectors[0], vectors[0])); math.Abs(length-1) > 1e-6 {
			t.Errorf("%s: length %v", c.Name, length)
		}
	}
	t.Logf("smallest cosine %.9f (%s)", worst, worstName)
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func cosine(a, b []float32) float64 { return dot(a, b) / math.Sqrt(dot(a, a)*dot(b, b)) }
