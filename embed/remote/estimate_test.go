package remote

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kb-search/kb/embed/onnx"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                            0,
		" \t\n\u3000":                 0,
		"\u200b \u200d\x00":           0,
		"oil":                         1,
		"Pump":                        2,
		"the pump leaks":              1 + 2 + 2,
		"PUMP":                        2,
		"HTTPServer":                  3 + 2,
		"E-4711":                      1 + 1 + 4,
		"(a)":                         2 + 1 + 1,
		"知识库":                         1 + 3,
		"für":                         1 + 1 + 1,
		"😀":                           1 + 4,
		"a\u200bb":                    1 + 2 + 1,
		"abcdefghijklmnopqrstuvwxyz ": 9 + 1,
	} {
		if got := estimate(text); got != want {
			t.Errorf("%q: estimated %d tokens, want %d", text, got, want)
		}
	}
}

// The estimate must not be below what real tokenizers make of prose, code and other text, piece by piece.
func TestEstimateIsHighEnough(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../api/*.go", "../../scripts/*.py", "../../openapi/*.json", "../../sql/migrations/*.sql"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for ; len(data) > 2000; data = data[2000:] {
				texts = append(texts, string(data[:2000]))
			}
		}
	}
	data, err := os.ReadFile("../onnx/testdata/parity.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Name, Text string }
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Name != "word of 100" { // a word that no text has
			texts = append(texts, c.Text)
		}
	}
	for _, model := range []string{"all-MiniLM-L6-v2", "bge-small-zh-v1.5"} {
		tokenizer, err := onnx.LoadTokenizer(filepath.Join(onnxtest.OptionsOf(t, model).Dir, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		estimated, counted := 0, 0
		for _, text := range texts {
			e, n := estimate(text), tokenizer.Count(text)
			if e < n {
				t.Errorf("%s: estimated %d of %d tokens: %.60q", model, e, n, text)
			}
			estimated, counted = estimated+e, counted+n
		}
		if estimated > 2*counted {
			t.Errorf("%s: estimated %d for %d tokens: windows would stay half empty", model, estimated, counted)
		}
	}
}

func FuzzEstimate(f *testing.F) {
	f.Add("the pump", "leaks at 20 °C", uint8(3))
	f.Add("知识库 \u200b", "HTTPServer\xff", uint8(1))
	f.Add("", "\u2028", uint8(0))
	f.Fuzz(func(t *testing.T, a, b string, limit uint8) {
		for _, between := range []string{" ", "\n", "\u3000"} {
			if got, want := estimate(a+between+b), estimate(a)+estimate(b); got != want {
				t.Errorf("%d tokens together, %d apart", got, want)
			}
		}
		head := cut(a, int(limit))
		if estimate(head) > int(limit) || !strings.HasPrefix(a, head) || utf8.ValidString(a) && !utf8.ValidString(head) {
			t.Errorf("cut to %d: %q", limit, head)
		}
		if head != a && estimate(head) == int(limit) && estimate(a) < int(limit) {
			t.Errorf("cut for no reason: %q", head)
		}
	})
}
