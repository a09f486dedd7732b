package parse

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestDetect(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		file, docType string
		want          Format
		code          string
	}{
		"ExtensionDecides":         {"notes/Read.MD", "", FormatMarkdown, ""},
		"WindowsPath":              {`c:\x.y\data.CSV`, "", FormatCSV, ""},
		"LastExtensionDecides":     {"a.csv.jsonl", "", FormatJSONLines, ""},
		"CallerDecidesOverName":    {"a.txt", "markdown", FormatMarkdown, ""},
		"CallerAgreesWithName":     {"a.tsv", "data", FormatTSV, ""},
		"NoteHasNoName":            {"", "note", FormatNote, ""},
		"MarkdownAsNote":           {"a.md", "note", FormatNote, ""},
		"DataWithoutExtension":     {"README", "data", FormatText, ""},
		"UnknownExtension":         {"a.exe", "", "", "unsupported_type"},
		"CompressedIsNotSupported": {"a.json.gz", "data", "", "unsupported_type"},
		"NothingToGoBy":            {"", "", "", "unsupported_type"},
		"UnknownType":              {"a.md", "novel", "", "unknown_doc_type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			format, err := Detect(test.file, test.docType)
			if code(err) != test.code || format != test.want {
				t.Errorf("Detect(%q, %q) = %q, %v; want %q, %q", test.file, test.docType, format, err, test.want, test.code)
			}
			switch test.code {
			case "unsupported_type":
				for _, ext := range SupportedExtensions(true) {
					if !strings.Contains(err.Error(), ext) {
						t.Errorf("message %q doesn't name %s", err, ext)
					}
				}
			case "unknown_doc_type":
				if !strings.Contains(err.Error(), "code, data, docx") {
					t.Errorf("message %q doesn't name the known types", err)
				}
			}
		})
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ in, want, code string }{
		"Plain":                   {"Grüße\tan\nalle", "Grüße\tan\nalle", ""},
		"MarkIsDropped":           {"\xef\xbb\xbfa\ufeffb", "ab", ""},
		"LineEnds":                {"a\r\nb\rc\r\r\nd\r", "a\nb\nc\n\nd\n", ""},
		"ControlsGo":              {"Pump\x00\x00 at\x07 40\x0cHz \x1b[1;31mred\x1b[0m\x7f", "Pump at 40 Hz red", ""},
		"Latin":                   {"Caf\xe9 inventory: 12 cups \xff\xfe\n", "Café inventory: 12 cups ÿþ\n", ""},
		"SmartQuotes":             {"\x93quoted\x94 \x80 5", "“quoted” € 5", ""},
		"BrokenUTF8StaysUTF8":     {"größere Dichtung f\xc3", "größere Dichtung f\uFFFD", ""},
		"UTF16LEMarked":           {"\xff\xfea\x00\xfc\x00\n\x00", "aü\n", ""},
		"UTF16BEMarked":           {"\xfe\xff\x00a\xd8\x3d\xde\x00", "a😀", ""},
		"UTF16LEUnmarked":         {"P\x00u\x00m\x00p\x00", "Pump", ""},
		"UTF16BEUnmarked":         {"\x00P\x00u\x00m\x00p", "Pump", ""},
		"UTF16LoneSurrogate":      {"\xff\xfea\x00\x00\xd8b\x00", "a\uFFFDb", ""},
		"UTF16OddLength":          {"\xff\xfea\x00b", "a", ""},
		"UTF32LE":                 {"\xff\xfe\x00\x00a\x00\x00\x00", "a", ""},
		"UTF32BE":                 {"\x00\x00\xfe\xff\x00\x01\xf6\x00", "😀", ""},
		"UTF32TooLarge":           {"\x00\x00\xfe\xff\xff\xff\xff\xff\x00\x00\x00a", "\uFFFDa", ""},
		"Nothing":                 {"", "", "empty"},
		"OnlyMark":                {"\xef\xbb\xbf", "", "empty"},
		"OnlyInvisible":           {" \t\r\n\u00a0\u200b\u2060\u3164\n", "", "empty"},
		"OnlyControls":            {"\x00\x01\x02", "", "empty"},
		"PunctuationIsText":       {"--- *** ???", "--- *** ???", ""},
		"Picture":                 {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "", "binary"},
		"Archive":                 {"PK\x03\x04\x14\x00", "", "binary"},
		"Program":                 {"\x7fELF\x02\x01\x01", "", "binary"},
		"ManyControls":            {strings.Repeat("a\x00\x01\x02text", 20), "", "binary"},
		"ColoursAreNoBinaryScrap": {strings.Repeat("\x1b[32mok\x1b[0m\n", 50), strings.Repeat("ok\n", 50), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := decode([]byte(test.in))
			if got != test.want || code(err) != test.code {
				t.Errorf("decode(%q) = %q, %v; want %q, %q", test.in, got, err, test.want, test.code)
			}
		})
	}
}

func TestBinaryMessageNamesTheKind(t *testing.T) {
	t.Parallel()

	_, err := Parse(Input{Name: "scan.txt", Data: []byte("%PDF-1.7\n")})
	if err == nil || !strings.Contains(err.Error(), "a PDF document") {
		t.Errorf("got %v", err)
	}
}

func TestNoteIsOneBlock(t *testing.T) {
	t.Parallel()

	doc := mustParse(t, "", TypeNote, "\n\n  # Not a title\r\n\r\nSecond paragraph. \n\n")
	want := Document{Type: TypeNote, Text: "\n\n  # Not a title\n\nSecond paragraph. \n\n", Blocks: []Block{
		{Kind: Paragraph, Text: "  # Not a title\n\nSecond paragraph.", Start: 2, End: 36},
	}}
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Error(diff)
	}
}

// code returns an Error's code, "" for nil.
func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return "other: " + err.Error()
	}

	return ""
}

func mustParse(t *testing.T, name, docType, content string) Document {
	t.Helper()
	doc, err := Parse(Input{Name: name, Type: docType, Data: []byte(content)})
	if err != nil {
		t.Fatal(err)
	}
	if err := check(doc); err != nil {
		t.Fatal(err)
	}

	return doc
}

// check returns what is wrong with a document that Parse should never return.
func check(doc Document) error {
	if !utf8.ValidString(doc.Text) || strings.ContainsRune(doc.Text, 0) {
		return errors.New("text is not valid UTF-8 without NUL")
	}
	if len(doc.Blocks) == 0 {
		return errors.New("no blocks")
	}
	at := 0
	for i, b := range doc.Blocks {
		switch {
		case b.Start < at || b.End < b.Start || b.End > len(doc.Text):
			return fmt.Errorf("block %d: range %d to %d after %d of %d", i, b.Start, b.End, at, len(doc.Text))
		case len(b.Text) == b.End-b.Start && b.Text != doc.Text[b.Start:b.End]:
			return fmt.Errorf("block %d: text %q is not its range's", i, b.Text)
		case len(b.Text) > b.End-b.Start:
			return fmt.Errorf("block %d: text is longer than its range", i)
		case Blank(b.Text) || !utf8.ValidString(b.Text):
			return fmt.Errorf("block %d: text %q is blank or invalid", i, b.Text)
		}
		for j, n := range b.Breaks {
			if n >= len(b.Text) || j == 0 && n != 0 || j > 0 && n <= b.Breaks[j-1] {
				return fmt.Errorf("block %d: breaks %v in %d bytes", i, b.Breaks, len(b.Text))
			}
		}
		at = b.End
	}

	return nil
}
