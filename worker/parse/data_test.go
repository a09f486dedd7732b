package parse

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIndentJSONIsJSONIndent(t *testing.T) {
	t.Parallel()

	for _, in := range []string{
		`{}`, `[]`, `[[],{}]`, `{"a":1,"b":[true,false,null],"c":{"d":"x\"\\\u00fc"}}`, ` [ 1 , -2.5e+10, "" ] `, `"s"`, `0`, `[{"a":[{"b":[]}]}]`,
	} {
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(in), "", "  "); err != nil {
			t.Fatal(err)
		}
		got, ok := indentJSON(in)
		if !ok || got != strings.TrimRight(strings.TrimLeft(want.String(), " "), " ") {
			t.Errorf("indentJSON(%s) = %s, %v; want %s", in, got, ok, want.String())
		}
	}
}

func TestIndentJSONRefuses(t *testing.T) {
	t.Parallel()

	for _, in := range []string{
		``, `{`, `]`, `[1,]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:2}`, `[1 2]`, `{]`, `"a`, "\"\n\"", `"\x"`, `"\u12"`, `01`, `1.`, `-`, `1e`, `tru`, `,`, `[,1]`, `{"a" 1}`,
	} {
		if got, ok := indentJSON(in); ok {
			t.Errorf("indentJSON(%q) = %q", in, got)
		}
	}
}

func TestIndentJSONGrowsWithItsInputOnly(t *testing.T) {
	t.Parallel()

	in := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	got, ok := indentJSON(in)
	if !ok || len(got) > 3*len(in)+1<<10 {
		t.Errorf("%d bytes became %d, %v", len(in), len(got), ok)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ file, in, want string }{
		"MinifiedIsIndented":        {"a.json", `{"a":[1,"x"]}`, "{\n  \"a\": [\n    1,\n    \"x\"\n  ]\n}"},
		"LaidOutStays":              {"a.json", "{\n \"a\": [1, 2]\n}\n", "{\n \"a\": [1, 2]\n}\n"},
		"InvalidStays":              {"a.json", `{"a":[1,"x"]`, `{"a":[1,"x"]`},
		"SeveralValues":             {"a.json", `{"a":1}{"b":2}`, "{\n  \"a\": 1\n}\n{\n  \"b\": 2\n}"},
		"EscapedLettersAreSpelled":  {"a.json", "{\n\"a\": \"gr\\u00f6\\u00dfer \\ud83d\\ude00\"\n}", "{\n\"a\": \"größer 😀\"\n}"},
		"EscapedControlsStay":       {"a.jsonl", `"\u0000\u0022\u005c\u000a\ud800x\n\\u00fc"`, `"\u0000\u0022\u005c\u000a\ud800x\n\\u00fc"`},
		"LinesKeepTheirRecord":      {"a.jsonl", "{\"a\":\"\\u00fc\"}\n{\"b\":2}\n", "{\"a\":\"ü\"}\n{\"b\":2}\n"},
		"IncompleteEscapesAreNoEnd": {"a.ndjson", `x \u12`, `x \u12`},
		"BackslashAtTheEnd":         {"a.ndjson", `\u0061\`, `a\`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc := mustParse(t, test.file, "", test.in)
			if diff := cmp.Diff(test.want, doc.Text); diff != "" {
				t.Error(diff)
			}
			if doc.Blocks[0].Kind != Record || doc.Type != TypeData {
				t.Errorf("kind %q, type %q", doc.Blocks[0].Kind, doc.Type)
			}
		})
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		file, in, header string
		records          []string
	}{
		"HeaderAndRecords":           {"a.csv", "a,b\r\n1,2\r\n\r\n3,4\r\n", "a,b", []string{"a,b", "1,2", "3,4"}},
		"LineBreaksInFields":         {"a.csv", "a,b\n1,\"x\n\"\"y\"\", z\"\n2,w\n", "a,b", []string{"a,b", "1,\"x\n\"\"y\"\", z\"", "2,w"}},
		"MarkIsDropped":              {"a.csv", "\ufeffpart,x\n1,2", "part,x", []string{"part,x", "1,2"}},
		"Semicolons":                 {"a.csv", "a;b\n1,5;\"2\n3\"\n", "a;b", []string{"a;b", "1,5;\"2\n3\""}},
		"Pipes":                      {"a.csv", "a|b, c\n1|\"2\n3\"\n", "a|b, c", []string{"a|b, c", "1|\"2\n3\""}},
		"NamedDelimiter":             {"a.csv", "sep=;\na;b,c\n1;\"2\n\"\n", "a;b,c", []string{"a;b,c", "1;\"2\n\""}},
		"Tabs":                       {"a.tsv", "a\tb\n1\t\"2\n3\"\n", "a\tb", []string{"a\tb", "1\t\"2\n3\""}},
		"HeaderAlone":                {"a.csv", "a,b\n", "a,b", []string{"a,b"}},
		"HeaderSpansLines":           {"a.csv", "\"a\nb\",c\n1,2\n", "\"a\nb\",c", []string{"\"a\nb\",c", "1,2"}},
		"StrayQuoteCostsOneRecord":   {"a.csv", "a,b\n1,\"x\n2,y\n3,z\n", "a,b", []string{"a,b", "1,\"x", "2,y", "3,z"}},
		"QuoteInsideAFieldIsALetter": {"a.csv", "a,b\n5\" pipe,x\n6\" pipe,y\n", "a,b", []string{"a,b", "5\" pipe,x", "6\" pipe,y"}},
		"RaggedRecords":              {"a.csv", "a,b\n1\n1,2,3\n", "a,b", []string{"a,b", "1", "1,2,3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc := mustParse(t, test.file, "", test.in)
			if diff := cmp.Diff(test.records, records(doc)); diff != "" {
				t.Error(diff)
			}
			if doc.Blocks[0].Header != test.header {
				t.Errorf("header = %q, want %q", doc.Blocks[0].Header, test.header)
			}
		})
	}
}

// records returns the records of a document's blocks.
func records(doc Document) []string {
	var list []string
	for _, b := range doc.Blocks {
		if b.Breaks == nil {
			for line := range strings.Lines(b.Text) {
				if line = strings.TrimRight(line, "\n"); line != "" {
					list = append(list, line)
				}
			}
		}
		for i, from := range b.Breaks {
			end := len(b.Text)
			if i+1 < len(b.Breaks) {
				end = b.Breaks[i+1]
			}
			list = append(list, strings.TrimRight(b.Text[from:end], "\n"))
		}
	}

	return list
}

// TestCSVRecordsAreThoseOfEncodingCSV writes random records and compares where they end.
func TestCSVRecordsAreThoseOfEncodingCSV(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "b", " ", ",", "\n", `"`, "ü", ";", "x y"}
	var b strings.Builder
	writer := csv.NewWriter(&b)
	_ = writer.Write([]string{"first", "second", "third"})
	const n = 20_000
	for range n {
		record := []string{"id", "", "end"}
		for range random.IntN(8) {
			record[1] += alphabet[random.IntN(len(alphabet))]
		}
		_ = writer.Write(record)
	}
	writer.Flush()

	doc := mustParse(t, "a.csv", "", b.String())
	if len(doc.Blocks) < 2 {
		t.Errorf("%d bytes are %d block", b.Len(), len(doc.Blocks))
	}
	got := records(doc)
	if len(got) != n+1 {
		t.Fatalf("%d records, want %d", len(got), n+1)
	}
	reader := csv.NewReader(strings.NewReader(doc.Text))
	start := int64(0)
	for i := range got {
		if _, err := reader.Read(); err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSuffix(doc.Text[start:reader.InputOffset()], "\n"); got[i] != want {
			t.Fatalf("record %d is %q, want %q", i, got[i], want)
		}
		start = reader.InputOffset()
	}
	if _, err := reader.Read(); err != io.EOF {
		t.Error("encoding/csv finds more records")
	}
}

func TestTextBecomesFewBlocks(t *testing.T) {
	t.Parallel()

	text := strings.Repeat("A line of a paragraph.\nAnother line.\n\n", 10_000)
	for file, kind := range map[string]Kind{"a.txt": Paragraph, "a.log": Record, "a.yaml": Record, "a.xml": Record} {
		doc := mustParse(t, file, "", text)
		if n := len(doc.Blocks); n < len(text)/hardLimit || n > len(text)/softLimit+1 {
			t.Errorf("%s: %d blocks", file, n)
		}
		for _, b := range doc.Blocks {
			if b.Kind != kind || !strings.HasPrefix(b.Text, "A line") || !strings.HasSuffix(b.Text, "Another line.") {
				t.Fatalf("%s: block %.40q … of kind %q", file, b.Text, b.Kind)
			}
		}
	}
}

func TestPunctuationIsText(t *testing.T) {
	t.Parallel()

	if doc := mustParse(t, "a.txt", "", "--- *** ??? !!! ...\n"); len(doc.Blocks) != 1 {
		t.Errorf("%d blocks", len(doc.Blocks))
	}
}
