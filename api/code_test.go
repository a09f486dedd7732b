package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestCode(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	// section finds the one chunk that a query leads to first, and gives its section and text.
	section := func(t *testing.T, query string) (section, text string) {
		t.Helper()
		results := s.post(t, "/api/v1/search", fmt.Sprintf(`{"query": %q, "fts_only": true, "doc_type": "code"}`, query)).want(t, 200).object(t)["results"].([]any)
		if len(results) == 0 {
			t.Fatalf("%s is not found", query)
		}
		first := results[0].(map[string]any)
		return first["section"].(string), first["text"].(string)
	}

	t.Run("DAT06CodeThatDoesNotParse", func(t *testing.T) {
		t.Parallel()
		done := s.ingest(t, file("depot.py", "import os\n\n\nclass Depot:\n"+
			"    def reorder_level(self, part):\n        return part.minimum * 2\n\n"+
			"    def broken(self:\n        return (\n\n"+
			"    def route_to(self, town):\n        return town.road\n")...)
		if document := s.document(t, done); document["doc_type"] != "code" || document["title"] != "depot" {
			t.Errorf("got %v", document)
		}
		for name, start := range map[string]string{"reorder_level": "def reorder_level", "route_to": "def route_to"} {
			path, text := section(t, name)
			if !strings.HasPrefix(strings.TrimSpace(text), start) || !strings.Contains(path, name) {
				t.Errorf("%s: section %q, text %q", name, path, text)
			}
		}
	})

	t.Run("PathOfNamesIsTheSection", func(t *testing.T) {
		t.Parallel()
		methods := make([]string, 40)
		for i := range methods {
			methods[i] = fmt.Sprintf("// Method%d is number %d.\nfunc (q *Queue) Method%d() int { return %d }\n", i, i, i, i)
		}
		s.ingest(t, file("queue.go", "package store\n\n// Queue waits.\ntype Queue struct{}\n\n"+strings.Join(methods, "\n"))...)
		path, text := section(t, "Method17")
		if path != "store > Queue > Method17" || !strings.HasPrefix(text, "// Method17") {
			t.Errorf("section %q, text %q", path, text)
		}
	})

	t.Run("LanguageWithoutAGrammarIsCutAtBlankLines", func(t *testing.T) {
		t.Parallel()
		s.ingest(t, file("main.zig", "const first = 1;\n\npub fn secondOfThem() void {}\n")...)
		if _, text := section(t, "secondOfThem"); !strings.Contains(text, "secondOfThem") {
			t.Errorf("text %q", text)
		}
	})
}
