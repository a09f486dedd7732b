package code

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/kb-search/kb/worker/parse"
)

// outline lists a document's blocks as "path | first line".
func outline(doc parse.Document) []string {
	var list []string
	for _, b := range doc.Blocks {
		first, _, _ := strings.Cut(b.Text, "\n")
		list = append(list, strings.Join(b.Path, " > ")+" | "+strings.TrimSpace(first))
	}

	return list
}

// check reports what doesn't hold for the document of a text.
func check(doc parse.Document, text string) error {
	if doc.Text != text || doc.Type != Type || doc.Title != "" {
		return errors.New("text, type or title is wrong")
	}
	at := 0
	for i, b := range doc.Blocks {
		switch {
		case b.Kind != parse.Code:
			return fmt.Errorf("block %d is of kind %q", i, b.Kind)
		case b.Start < at || b.End <= b.Start || b.End > len(text):
			return fmt.Errorf("block %d has range %d to %d behind %d of %d", i, b.Start, b.End, at, len(text))
		case b.Text != text[b.Start:b.End]:
			return fmt.Errorf("block %d is not the text of its range", i)
		case parse.Blank(b.Text) || strings.TrimRightFunc(b.Text, unicode.IsSpace) != b.Text:
			return fmt.Errorf("block %d is blank or ends in white space: %q", i, b.Text)
		case b.Start > 0 && text[b.Start-1] != '\n':
			return fmt.Errorf("block %d begins within a line", i)
		case !parse.Blank(text[at:b.Start]):
			return fmt.Errorf("%q is in no block", text[at:b.Start])
		case slices.Contains(b.Path, ""):
			return fmt.Errorf("block %d has an empty name in its path %q", i, b.Path)
		}
		at = b.End
	}
	if !parse.Blank(text[at:]) {
		return fmt.Errorf("%q is in no block", text[at:])
	}

	return nil
}

func parsed(t *testing.T, extension, text string) parse.Document {
	t.Helper()
	doc := Parse(t.Context(), extension, text)
	if err := check(doc, text); err != nil {
		t.Fatal(err)
	}

	return doc
}

func TestParse(t *testing.T) {
	t.Parallel()

	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(s.want, outline(parsed(t, s.extension, s.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const depot = `"""Depot functions."""
import math


def reorder_level(daily, lead):
    """Reorder level for the Wexcombe depot."""
    return math.ceil(daily * lead * 1.2)


def broken(x:
    return x +


class Depot:
    def __init__(self, name):
        self.name = name

    def route_to(self, other):
        """Pick the Wexcombe route to another depot."""
        return (self.name, other.name)
`

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name, extension, text string
		want                  []string
	}{
		{"PythonFunctionBetweenGoodOnes", ".py", depot, []string{
			` | """Depot functions."""`, "reorder_level | def reorder_level(daily, lead):", "broken | def broken(x:",
			"Depot | class Depot:", "Depot > __init__ | def __init__(self, name):", "Depot > route_to | def route_to(self, other):",
		}},
		{"GoFunctionWithoutEnd", ".go", "package a\n\nfunc one() {\n\tif x {\n\n// Two.\nfunc two() {\n\treturn\n}\n\nfunc three() {}\n", []string{
			"a | package a", "a > one | func one() {", "a > two | // Two.", "a > three | func three() {}",
		}},
		{"JavaScriptUnclosedCall", ".js", "function one() {\n  call(\n}\n\nfunction two() {\n  return 2;\n}\n", []string{
			"one | function one() {", "two | function two() {",
		}},
		{"RustMissingBrace", ".rs", "fn one() {\n    let x = ;\n\npub fn two() -> i32 {\n    2\n}\n\nfn three() {}\n", []string{
			"one | fn one() {", "two | pub fn two() -> i32 {", "three | fn three() {}",
		}},
		{"CMissingBrace", ".c", "int one(void) {\n    if (x {\n}\n\nint two(void)\n{\n    return 2;\n}\n", []string{
			"one | int one(void) {", "two | int two(void)",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(tt.want, outline(parsed(t, tt.extension, tt.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHugeClassIsCutIntoMethods(t *testing.T) {
	t.Parallel()

	var b strings.Builder
	b.WriteString("class Everything:\n    \"\"\"All of it.\"\"\"\n\n")
	for i := range 1200 {
		fmt.Fprintf(&b, "    # Method %d.\n    @cached\n    def method_%04d(self, value):\n        # step %d\n        return value * %d\n\n", i, i, i, i)
	}
	doc := parsed(t, "py", b.String())
	if len(doc.Blocks) != 1201 {
		t.Fatalf("got %d blocks, want 1201", len(doc.Blocks))
	}
	last := doc.Blocks[1200]
	if diff := cmp.Diff([]string{"Everything", "method_1199"}, last.Path); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(last.Text, "    # Method 1199.\n    @cached\n    def method_1199") {
		t.Errorf("last block is %q", last.Text)
	}
}

func TestLargeJavaClassHasHeaderFieldsAndMembers(t *testing.T) {
	t.Parallel()

	text := "package a.b;\n\n/** Q. */\nclass Q {\n    int x;\n\n    /** M. */\n    @Override\n    void m() {\n" +
		strings.Repeat("        x++;\n", 40) + "    }\n\n    int y;\n\n    Q() {}\n}\n"
	want := []string{"a.b | package a.b;", "a.b > Q | /** Q. */", "a.b > Q > m | /** M. */", "a.b > Q | int y;", "a.b > Q > Q | Q() {}"}
	if diff := cmp.Diff(want, outline(parsed(t, ".java", text))); diff != "" {
		t.Error(diff)
	}
}

func TestSecondPackageNamesWhatFollows(t *testing.T) {
	t.Parallel()

	text := "<?php\nnamespace A;\n\nuse X\\Y;\n\nfunction f() {\n}\n\nnamespace B;\n\nuse X\\Z;\n\nfunction g() {\n}\n"
	want := []string{"A | <?php", "A > f | function f() {", "B | namespace B;", "B > g | function g() {"}
	if diff := cmp.Diff(want, outline(parsed(t, ".php", text))); diff != "" {
		t.Error(diff)
	}
}

func TestTextWithoutGrammarIsCutAtBlankLines(t *testing.T) {
	t.Parallel()

	text := "import a\n\nfun one() {\n    x()\n\n    y()\n}\n\nfun two() {\n}\n"
	want := []string{" | import a", " | fun one() {", " | fun two() {"}
	for _, extension := range []string{".kt", "KT", ".unknown", ""} {
		if diff := cmp.Diff(want, outline(parsed(t, extension, text))); diff != "" {
			t.Errorf("%s: %s", extension, diff)
		}
	}
}

func TestMostlyErrorsIsCutAtBlankLines(t *testing.T) {
	t.Parallel()

	text := "Dear all,\n\nthis ( is { not [ code ?? at all, it's a letter.\n\n)))) :: Yours ;; ((\n"
	want := []string{" | Dear all,", " | this ( is { not [ code ?? at all, it's a letter."}
	if diff := cmp.Diff(want, outline(parsed(t, ".java", text))); diff != "" {
		t.Error(diff)
	}
}

func TestEndedContextIsCutAtBlankLines(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text := strings.Repeat("int f() { return 1; }\n\n", 50_000)
	doc := Parse(ctx, ".cpp", text)
	if err := check(doc, text); err != nil {
		t.Error(err)
	}
	if doc.Blocks[0].Path != nil {
		t.Errorf("path is %q, want none", doc.Blocks[0].Path)
	}
}

func TestEveryGrammarKnowsItsRoles(t *testing.T) {
	t.Parallel()

	for extension, lang := range Languages() {
		if !lang.Structured() {
			continue
		}
		if !slices.ContainsFunc(lang.grammar.symbols(), func(r role) bool { return r == function }) {
			t.Errorf("%s: no symbol defines a function", extension)
		}
	}
}

// hostile are texts that break parsers.
var hostile = map[string]string{
	"Blank":       " \n\t\n",
	"Empty":       "",
	"Brackets":    strings.Repeat("(", 200_000),
	"Braces":      strings.Repeat("{", 200_000),
	"Namespaces":  strings.Repeat("namespace a {\n", 20_000),
	"Classes":     strings.Repeat("class A {\n", 20_000),
	"Modules":     strings.Repeat("mod a {", 20_000),
	"Ifs":         strings.Repeat("if x:\n ", 20_000),
	"Quotes":      strings.Repeat("\"'`", 50_000),
	"Binary":      strings.Repeat("\x01\x7f\u0085\u2028\ufffd\u200b", 20_000),
	"OneLongLine": strings.Repeat("function f(){return 1};", 20_000),
	"Comments":    strings.Repeat("# a\n// b\n", 20_000),
	"LineBreaks":  "x" + strings.Repeat("\n", 200_000) + "y",
}

func TestHostileText(t *testing.T) {
	t.Parallel()

	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, extension := range strings.Fields(".go .py .js .tsx .java .rs .c .cpp .cs .rb .php .sh .sql .kt") {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				if err := check(Parse(ctx, extension, text), text); err != nil {
					t.Errorf("%s: %v", extension, err)
				}
				cancel()
			}
		})
	}
}

// TestLinesAreCoveredOnce cuts pieces out of good code, so that errors stand in all places.
func TestLinesAreCoveredOnce(t *testing.T) {
	t.Parallel()

	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()

			lines := strings.SplitAfter(s.text, "\n")
			for i := range lines {
				for j := i; j <= min(len(lines), i+4); j++ {
					parsed(t, s.extension, strings.Join(slices.Delete(slices.Clone(lines), i, j), ""))
				}
			}
			for i := 0; i < len(s.text); i += 3 {
				if text := strings.ToValidUTF8(s.text[i:], ""); text != "" {
					parsed(t, s.extension, text)
					parsed(t, s.extension, strings.ToValidUTF8(s.text[:i], ""))
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range samples {
		f.Add(s.extension, s.text)
	}
	f.Add(".py", depot)
	f.Fuzz(func(t *testing.T, extension, text string) {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r", "")
		if err := check(Parse(t.Context(), extension, text), text); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, s := range samples {
		text := strings.Repeat(s.text+"\n", 2<<20/len(s.text))
		b.Run(s.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Parse(b.Context(), s.extension, text)
			}
		})
	}
}
