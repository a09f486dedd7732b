package pdf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kb-search/kb/worker/parse"
)

// cacheDir keeps the compiled PDFium from run to run: compiling it takes a minute under the race detector.
var cacheDir = sync.OnceValue(func() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}

	return filepath.Join(dir, "kb", "pdfium-test")
})

// shared is started already, so that no test's time limit meets the compiler.
var shared = sync.OnceValue(func() *Parser {
	p := New(Options{Workers: 2, Timeout: time.Minute, CacheDir: cacheDir()})
	if _, err := p.start(); err != nil {
		panic(err)
	}

	return p
})

// check says what is wrong with a document.
func check(doc parse.Document) error {
	if len(doc.Blocks) == 0 {
		return errors.New("no blocks")
	}
	if !utf8.ValidString(doc.Text) || strings.ContainsAny(doc.Text, "\x00\x02\r\u00ad\ufffe\uffff") {
		return fmt.Errorf("text is not clean: %q", doc.Text)
	}
	at := 0
	for i, b := range doc.Blocks {
		if b.Text != doc.Text[b.Start:b.End] || parse.Blank(b.Text) || strings.TrimRight(b.Text, " \n") != b.Text {
			return fmt.Errorf("block %d is %q", i, b.Text)
		}
		if i > 0 && (b.Start != at+2 || doc.Text[at:b.Start] != "\n\n") || i == 0 && b.Start != 0 {
			return fmt.Errorf("block %d starts at %d after %d", i, b.Start, at)
		}
		if b.Page < 1 || i > 0 && b.Page < doc.Blocks[i-1].Page {
			return fmt.Errorf("block %d is on page %d", i, b.Page)
		}
		if b.Kind == parse.Table && !strings.HasPrefix(b.Text, b.Header+"\n") {
			return fmt.Errorf("block %d has header %q", i, b.Header)
		}
		at = b.End
	}
	if at != len(doc.Text) {
		return fmt.Errorf("blocks end at %d of %d", at, len(doc.Text))
	}

	return nil
}

// outline writes a document so that tests can compare it: page, headings and text of each block.
func outline(doc parse.Document) string {
	var b strings.Builder
	for _, block := range doc.Blocks {
		kind := ""
		if block.Kind != parse.Paragraph {
			kind = string(block.Kind) + " "
		}
		fmt.Fprintf(&b, "%d %s[%s] %s\n", block.Page, kind, strings.Join(block.Path, " > "), block.Text)
	}

	return b.String()
}

func mustParse(t *testing.T, data []byte) parse.Document {
	t.Helper()
	doc, err := shared().Parse(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(doc); err != nil {
		t.Fatal(err)
	}

	return doc
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}

	return data
}

func code(err error) string {
	var e *parse.Error
	if errors.As(err, &e) {
		return e.Code
	}

	return fmt.Sprintf("other: %v", err)
}

var (
	left = []string{"The Harrow pump must be drained", "before the first frost because", "trapped water splits the housing",
		"along the lower seam."}
	right = []string{"The Linden valve ships closed and", "is opened by a quarter turn when", "the plant is commissioned by the",
		"site engineer in person."}
)

const (
	leftText  = "The Harrow pump must be drained before the first frost because trapped water splits the housing along the lower seam."
	rightText = "The Linden valve ships closed and is opened by a quarter turn when the plant is commissioned by the site engineer in person."
)

func TestLayout(t *testing.T) {
	t.Parallel()

	var byRow sheet
	for i := range left {
		byRow = append(byRow, column(60, 600-16*float64(i), 0, left[i])...)
		byRow = append(byRow, column(320, 600-16*float64(i), 0, right[i])...)
	}
	byColumn := append(column(60, 600, 16, left...), column(320, 600, 16, right...)...)
	title := sheet{{x: 60, y: 700, text: "Pumps and valves of the plant, and how to look after them", size: 16}}
	footer := sheet{{x: 60, y: 500, text: "This line goes over both columns and closes what is above it, so that it comes last."}}
	columns := "1 [Pumps and valves of the plant, and how to look after them] " + leftText +
		"\n1 [Pumps and valves of the plant, and how to look after them] " + rightText +
		"\n1 [Pumps and valves of the plant, and how to look after them] " + footer[0].text + "\n"

	tests := []struct {
		name   string
		sheets []sheet
		want   string
	}{
		{"LinesMakeParagraphs", []sheet{append(column(60, 700, 14, "The first line of a paragraph goes on in the",
			"second line and ends."), column(60, 640, 14, "Another one.")...)},
			"1 [] The first line of a paragraph goes on in the second line and ends.\n1 [] Another one.\n"},
		{"HeadingsBySize", []sheet{{
			{x: 60, y: 750, text: "Handbook", size: 24}, {x: 60, y: 700, text: "Care", size: 16}, {x: 60, y: 680, text: "Oil it once a year and keep it dry at all times."},
			{x: 60, y: 640, text: "Notes", bold: true}, {x: 60, y: 620, text: "Nothing else is needed in the first ten years."},
			{x: 60, y: 580, text: "Repair", size: 16}, {x: 60, y: 560, text: "Call us."},
		}}, "1 [Handbook > Care] Oil it once a year and keep it dry at all times.\n1 [Handbook > Care > Notes] Nothing else is needed in the first ten years.\n" +
			"1 [Handbook > Repair] Call us.\n"},
		{"HeadingWithoutTextIsText", []sheet{{
			{x: 60, y: 750, text: "Empty", size: 16}, {x: 60, y: 700, text: "Care", size: 16}, {x: 60, y: 680, text: "Oil it once a year and keep it dry."}, {x: 60, y: 640, text: "Last", size: 16},
		}}, "1 [] Empty\n1 [Care] Oil it once a year and keep it dry.\n1 [] Last\n"},
		{"HeadingOfTwoLines", []sheet{{
			{x: 60, y: 750, text: "How to look after", size: 16}, {x: 60, y: 731, text: "a pump", size: 16}, {x: 60, y: 700, text: "Oil it once a year and keep it dry, and it lasts."},
		}}, "1 [How to look after a pump] Oil it once a year and keep it dry, and it lasts.\n"},
		{"PathGoesOnOverPages", []sheet{
			{{x: 60, y: 750, text: "Care", size: 16}, {x: 60, y: 700, text: "Oil it once a year."}}, {{x: 60, y: 700, text: "Keep it dry."}},
		}, "1 [Care] Oil it once a year.\n2 [Care] Keep it dry.\n"},
		{"ColumnsByColumn", []sheet{append(append(title, byColumn...), footer...)}, columns},
		{"ColumnsByRow", []sheet{append(append(title, byRow...), footer...)}, columns},
		{"BrokenWords", []sheet{column(60, 700, 14, "Each pump goes with-", "out oil for a year, and re-entry is", "safe.")},
			"1 [] Each pump goes without oil for a year, and re-entry is safe.\n"},
		{"ListItems", []sheet{column(60, 700, 14, "You need:", "- a pump that has been drained", "- a valve", "1. Open it")},
			"1 [] You need:\n1 [] - a pump that has been drained\n1 [] - a valve\n1 [] 1. Open it\n"},
		{"Table", []sheet{{
			{x: 60, y: 700, text: "Part"}, {x: 200, y: 700, text: "Price"}, {x: 300, y: 700, text: "Stock"},
			{x: 60, y: 685, text: "Pump"}, {x: 200, y: 685, text: "12.50"}, {x: 300, y: 685, text: "3"},
			{x: 60, y: 670, text: "Small valve"}, {x: 200, y: 670, text: "3.20"}, {x: 300, y: 670, text: "17"},
		}}, "1 table [] Part | Price | Stock\nPump | 12.50 | 3\nSmall valve | 3.20 | 17\n"},
		{"OutOfOrder", []sheet{{{x: 60, y: 600, text: "Below."}, {x: 60, y: 700, text: "Above."}}}, "1 [] Above.\n1 [] Below.\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if got := outline(mustParse(t, write("", test.sheets...))); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

func TestFurniture(t *testing.T) {
	t.Parallel()

	names := []string{"one", "two", "three", "four", "five"}
	var sheets []sheet
	for i, name := range names {
		sheets = append(sheets, sheet{
			{x: 60, y: 800, text: "Plant handbook"}, {x: 500, y: 800, text: "2026"}, {x: 60, y: 760, text: fmt.Sprintf("Chapter %d", i+1), size: 18},
			{x: 60, y: 700, text: "The text of page " + name + " stays."}, {x: 280, y: 40, text: fmt.Sprintf("Page %d of 5", i+1)},
		})
	}

	t.Run("IsDropped", func(t *testing.T) {
		t.Parallel()

		doc := mustParse(t, write("", sheets...))
		want := ""
		for i, name := range names {
			want += fmt.Sprintf("%d [Chapter %d] The text of page %s stays.\n", i+1, i+1, name)
		}
		if got := outline(doc); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})

	t.Run("StaysInShortDocuments", func(t *testing.T) {
		t.Parallel()

		if doc := mustParse(t, write("", sheets[:2]...)); !strings.Contains(doc.Text, "Page 2 of 5") {
			t.Errorf("text is %q", doc.Text)
		}
	})

	t.Run("AllTheSameStays", func(t *testing.T) {
		t.Parallel()

		one := sheet{{x: 60, y: 700, text: "The same on each page."}}
		if doc := mustParse(t, write("", one, one, one, one)); len(doc.Blocks) != 4 {
			t.Errorf("got %s", outline(doc))
		}
	})
}

func TestMetadata(t *testing.T) {
	t.Parallel()

	text := sheet{{x: 60, y: 700, text: "Some text."}}
	for in, want := range map[string]string{
		"Care of pumps": "Care of pumps", "": "", "Untitled": "", "report_final.docx": "", "Microsoft Word - minutes 3.doc": "",
		"Microsoft Word - Minutes of May": "Minutes of May", "scan0001.pdf": "", "  Pumps \\n and valves ": "Pumps and valves",
	} {
		if doc := mustParse(t, write(in, text)); doc.Title != want || doc.Type != "pdf" || doc.Metadata["pages"] != 1 {
			t.Errorf("title %q is %q, metadata %v", in, doc.Title, doc.Metadata)
		}
	}
}

func TestCases(t *testing.T) {
	t.Parallel()

	tests := []struct {
		file string
		code string   // The error's code, empty for none.
		text []string // What the text contains.
	}{
		{"user_password.pdf", "password_required", nil},
		{"owner_password_only.pdf", "", []string{"Marlow compressor"}},
		{"leading_junk.pdf", "", []string{"Marlow compressor"}},
		{"xref_prev_loop.pdf", "", []string{"Calder relief valve"}},
		{"page_tree_loop.pdf", "", []string{"Calder relief valve"}},
		{"truncated.pdf", "corrupt", nil},
		{"zero_pages.pdf", "corrupt", nil},
		{"only_header.pdf", "corrupt", nil},
		{"two_column_by_column.pdf", "", []string{leftText + "\n\n" + rightText}},
		{"two_column_by_row.pdf", "", []string{leftText + "\n\n" + rightText}},
		{"hyphen_ligature.pdf", "", []string{"configuration", "without", "number", "firmware update", "office", "re-entry", "difficult"}},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()

			doc, err := shared().Parse(t.Context(), fixture(t, test.file))
			if test.code != "" {
				if code(err) != test.code || strings.Contains(strings.ToLower(err.Error()), "success") {
					t.Errorf("error is %s: %v", code(err), err)
				}

				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := check(doc); err != nil {
				t.Error(err)
			}
			for _, text := range test.text {
				if !strings.Contains(doc.Text, text) {
					t.Errorf("%q is not in %q", text, doc.Text)
				}
			}
			if failed := doc.Metadata["pages_failed"]; (failed != nil) != (test.file == "page_tree_loop.pdf") {
				t.Errorf("pages failed: %v", failed)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()

	good := write("", sheet{{x: 60, y: 700, text: "Some text."}})
	// usable proves that a parser still works.
	usable := func(t *testing.T, p *Parser) {
		t.Helper()
		for range 3 {
			if doc, err := p.Parse(t.Context(), good); err != nil || doc.Text != "Some text." {
				t.Fatalf("afterwards: %q, %v", doc.Text, err)
			}
		}
	}
	parser := func(t *testing.T, opt Options) *Parser {
		t.Helper()
		p := New(opt)
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		usable(t, p)

		return p
	}
	shared()

	t.Run("NoText", func(t *testing.T) {
		t.Parallel()

		_, err := shared().Parse(t.Context(), write("", sheet{}, sheet{{x: 60, y: 700, text: " "}}))
		if code(err) != "no_text_layer" || !strings.HasPrefix(err.Error(), "The PDF has no text layer (it is probably a scan);") {
			t.Error(err)
		}
	})

	t.Run("Empty", func(t *testing.T) {
		t.Parallel()

		for _, data := range [][]byte{nil, {}, []byte("no PDF")} {
			if _, err := shared().Parse(t.Context(), data); code(err) != "corrupt" {
				t.Errorf("%q: %v", data, err)
			}
		}
	})

	t.Run("TooManyPages", func(t *testing.T) {
		t.Parallel()

		p := parser(t, Options{CacheDir: cacheDir(), MaxPages: 2})
		if _, err := p.Parse(t.Context(), write("", sheet{}, sheet{}, sheet{})); code(err) != "too_many_pages" {
			t.Error(err)
		}
	})

	t.Run("Timeout", func(t *testing.T) {
		t.Parallel()

		p := parser(t, Options{CacheDir: cacheDir(), Timeout: 500 * time.Millisecond})
		if _, err := p.Parse(t.Context(), bomb(50)); code(err) != "timeout" {
			t.Error(err)
		}
		usable(t, p)
	})

	t.Run("Memory", func(t *testing.T) {
		t.Parallel()

		p := parser(t, Options{CacheDir: cacheDir(), MaxMemoryPages: 1 << 10})
		if _, err := p.Parse(t.Context(), bomb(50)); code(err) != "too_large" {
			t.Error(err)
		}
		if _, err := p.Parse(t.Context(), make([]byte, 65<<20)); code(err) != "too_large" {
			t.Error(err)
		}
		usable(t, p)
	})

	t.Run("Cancelled", func(t *testing.T) {
		t.Parallel()

		p := parser(t, Options{CacheDir: cacheDir()})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := p.Parse(ctx, bomb(50)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := p.Parse(ctx, good); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		usable(t, p)
	})

	t.Run("Closed", func(t *testing.T) {
		t.Parallel()

		p := New(Options{})
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := p.Parse(t.Context(), good); err == nil {
			t.Error("no error")
		}
	})
}

// TestDamaged tries more files than FuzzParse can, for which counting coverage makes PDFium's runtime slow.
func TestDamaged(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))
	sources := [][]byte{write("Title", column(60, 700, 14, left...)), fixture(t, "two_column_by_row.pdf"),
		fixture(t, "hyphen_ligature.pdf"), fixture(t, "owner_password_only.pdf")}
	read := 0
	for i := range 200 {
		data := slices.Clone(sources[i%len(sources)])
		for range 1 + random.IntN(30) {
			data[random.IntN(len(data))] = byte(random.IntN(256))
		}
		doc, err := shared().Parse(t.Context(), data)
		switch {
		case err == nil:
			read++
			if err := check(doc); err != nil {
				t.Errorf("file %d: %v", i, err)
			}
		case strings.HasPrefix(code(err), "other"):
			t.Errorf("file %d: %v", i, err)
		}
	}
	if read < 20 {
		t.Errorf("read %d of 200", read)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(write("Title", column(60, 700, 14, left...)))
	f.Add(fixture(f, "two_column_by_row.pdf"))
	f.Add(fixture(f, "hyphen_ligature.pdf"))
	shared()
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := shared().Parse(t.Context(), data)
		if err != nil {
			if code(err) == "" || strings.HasPrefix(code(err), "other") {
				t.Fatal(err)
			}

			return
		}
		if err := check(doc); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	const pages = 300
	var sheets []sheet
	for i := range pages {
		var lines []string
		for j := range 40 {
			lines = append(lines, fmt.Sprintf("line %d of page %d says what the pump needs before the first frost of a year,", j, i))
		}
		sheets = append(sheets, append(column(60, 720, 15, lines...), put{x: 60, y: 760, text: fmt.Sprintf("Section %d", i), size: 16}))
	}
	data := write("", sheets...)
	p := New(Options{CacheDir: cacheDir()})
	defer p.Close()
	if _, err := p.Parse(b.Context(), data); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Parse(b.Context(), data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(pages*b.N)/b.Elapsed().Seconds(), "pages/s")
}
