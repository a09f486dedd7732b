package parse

import (
	"strings"
	"testing"
	"unicode"
)

// fuzz checks what holds for a document of any bytes; complete says that its blocks hold all of its text.
func fuzz(f *testing.F, complete bool, names ...string) {
	f.Helper()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range names {
			doc, err := Parse(Input{Name: name, Data: data})
			if err != nil {
				if code(err) == "" || strings.HasPrefix(code(err), "other") {
					t.Fatalf("%s: %v is not an *Error", name, err)
				}

				continue
			}
			if err := check(doc); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if complete {
				var b strings.Builder
				for _, block := range doc.Blocks {
					b.WriteString(block.Text)
				}
				source := doc.Text[doc.Blocks[0].Start:] // What is before names a CSV file's delimiter.
				if strings.TrimSpace(doc.Text[:doc.Blocks[0].Start]) != "" && !strings.HasPrefix(doc.Text, "sep=") {
					source = doc.Text
				}
				if got, want := visible(b.String()), visible(source); got != want {
					t.Fatalf("%s: blocks hold %q of %q", name, got, want)
				}
			}
		}
	})
}

// visible returns s without white space and whatever else can't be seen.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || invisible(r) {
			return -1
		}

		return r
	}, s)
}

func add(f *testing.F, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
}

func FuzzText(f *testing.F) {
	add(f, "a\r\n\r\nb", "\xff\xfea\x00", "\x00P\x00u", "\xfe\xff\xd8\x3d\xde\x00", "Caf\xe9", "\x1b[31mred\x1b[0m", "\u200b\u3164",
		"\xef\xbb\xbfa", "\x00\x00\xfe\xff\x00\x00\x00a", "%PDF-1.7", "a\n\n\n \n\tb\u0085c")
	fuzz(f, true, "a.txt", "a.log", "a.yaml")
}

func FuzzCSV(f *testing.F) {
	add(f, "a,b\n1,2\n", "a;b\n\"x\ny\";2\n", "a,\"b\n1,2\n3,\"4", "sep=|\na|b\n", "\"\"\"\"\n\"\n", "\ufeffa\tb\n\"1\t2\n\"")
	fuzz(f, true, "a.csv", "a.tsv")
}

func FuzzJSON(f *testing.F) {
	add(f, `{"a":[1,-2.5e3,"\u00fc\ud83d\ude00",null]}`, `[[[[]]]]`, `{"a":1}{"b":2}`, "{\"a\"\n:1,}", `"\u0000\\u12"`, "[1,\n2]")
	fuzz(f, true, "a.json", "a.jsonl")
}

func FuzzMarkdown(f *testing.F) {
	add(f, "# A\n\ntext\n\nB\n---\n- x\n  - y\n", "---\ntitle: T\n---\nx", "```go\n# x\n", "| a |\n|---|\n| 1 |\n", "a <!-- b --> `c <!--`",
		"> # q\n\n[r]: http://x\n", "---\na: &a [*a]\n---\n", "#\n##\n===\n", "- - - - # x\n\t\ty\n", "<div>\n<!-- x\n\n# y -->\n", "1) a\n   ---\n")
	fuzz(f, false, "a.md")
}

func FuzzNote(f *testing.F) {
	add(f, "a", "\n\n a \n", "\u00a0a\u00a0")
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(Input{Type: TypeNote, Data: data})
		if err != nil {
			return
		}
		if err := check(doc); err != nil || len(doc.Blocks) != 1 || visible(doc.Blocks[0].Text) != visible(doc.Text) {
			t.Fatalf("%q: %v", doc.Text, err)
		}
	})
}
