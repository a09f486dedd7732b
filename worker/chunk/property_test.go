package chunk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/kb-search/kb/worker/parse"
)

// verify returns what is wrong with a document's chunks.
func verify(doc parse.Document, chunks []Chunk, opt Options) error {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = DefaultMaxBytes
	}
	start, end := 0, 0
	for i, c := range chunks {
		switch {
		case c.Seq != i:
			return fmt.Errorf("chunk %d has number %d", i, c.Seq)
		case parse.Blank(c.Text):
			return fmt.Errorf("chunk %d is blank", i)
		case opt.Count(c.EnrichedText()) > opt.Size:
			return fmt.Errorf("chunk %d takes %d tokens: %q", i, opt.Count(c.EnrichedText()), c.EnrichedText())
		case len(c.Text) > opt.MaxBytes:
			return fmt.Errorf("chunk %d has %d bytes", i, len(c.Text))
		case !strings.HasSuffix(c.EnrichedText(), c.Text):
			return fmt.Errorf("chunk %d: enriched text %q doesn't end in %q", i, c.EnrichedText(), c.Text)
		case c.Start < start || c.End < end || c.End <= c.Start || c.End > len(doc.Text):
			return fmt.Errorf("chunk %d: range %d to %d after %d to %d of %d", i, c.Start, c.End, start, end, len(doc.Text))
		}
		start, end = c.Start, c.End
	}
	if opt.Overlap == 0 {
		return covered(doc, chunks)
	}

	return nil
}

// covered reports text of the document's blocks that no chunk holds, or that two hold.
func covered(doc parse.Document, chunks []Chunk) error {
	var want, got strings.Builder
	header := ""
	for _, b := range doc.Blocks {
		header += visible(b.Header)
		want.WriteString(visible(b.Text))
	}
	for _, c := range chunks {
		got.WriteString(visible(c.Text))
	}
	if header == "" && got.String() != want.String() {
		return fmt.Errorf("chunks hold %.300q, blocks %.300q", got.String(), want.String())
	}
	if header != "" && got.Len() < want.Len() {
		return errors.New("chunks hold less than the blocks")
	}

	return nil
}

// visible returns s without what a chunk may leave out: white space and what can't be seen.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || parse.Blank(string(r)) {
			return -1
		}

		return r
	}, s)
}

// text writes random text of n parts.
func text(random *rand.Rand, n int) string {
	parts := []string{"word ", "a ", "longer-word ", "end. ", "E.g. ", "\n", "\n\n", "天", "地。", "，", "- item ", "1. ", "\n    ", "“q” ", "x_y_z", " ",
		"ไทย", "é", "👍🏽", "! ", "```\n", "| a | b |\n", "# ", "\"", ",", strings.Repeat("z", 40), ": ", "\u200b", "\t", "{", "}"}
	var b strings.Builder
	for range n {
		b.WriteString(parts[random.IntN(len(parts))])
	}

	return b.String()
}

func TestRandomDocuments(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(3, 4))
	names := []string{"", "a.txt", "a.md", "a.csv", "a.json", "a.log"}
	for i := range 1000 {
		doc, err := parse.Parse(parse.Input{Name: names[i%len(names)], Type: []string{"note", ""}[min(i%len(names), 1)],
			Data: []byte(text(random, 1+random.IntN(400)))})
		if err != nil {
			continue
		}
		opt := Options{Size: 16 + random.IntN(200), MaxBytes: 256 + random.IntN(1000), Count: count}
		if i%3 == 0 {
			opt.Overlap = random.IntN(opt.Size/2 + 1)
		}
		title := text(random, random.IntN(10))
		chunks := mustSplit(doc, title, opt)
		if err := verify(doc, chunks, opt); err != nil {
			t.Fatalf("document %d (%s, %+v): %v\n%q", i, names[i%len(names)], opt, err, doc.Text)
		}
		if len(chunks) == 0 {
			t.Fatalf("document %d has no chunk: %q", i, doc.Text)
		}
		if !reflect.DeepEqual(chunks, mustSplit(doc, title, opt)) {
			t.Fatalf("document %d is split differently the second time", i)
		}
	}
}

func TestWordsThatFitStayWhole(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		known := map[string]bool{}
		var b strings.Builder
		for i := range 200 {
			word := fmt.Sprintf("w%dx%s", i, strings.Repeat("o", random.IntN(30)))
			known[word] = true
			b.WriteString(word + []string{" ", "\n", "\n\n", "\t"}[random.IntN(4)])
		}
		for _, c := range mustSplit(mustParse(t, "a.txt", b.String()), "", Options{Size: 16 + random.IntN(60), Overlap: random.IntN(9), MaxBytes: 300, Count: count}) {
			for _, word := range strings.Fields(c.Text) {
				if !known[word] {
					t.Fatalf("%q is a part of a word", word)
				}
			}
		}
	}
}

func TestEachRecordOnce(t *testing.T) {
	t.Parallel()

	var b strings.Builder
	b.WriteString("ticket,remark\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "T%04d,\"line one\nline two of %d\"\n", i, i)
	}
	chunks := mustSplit(mustParse(t, "a.csv", b.String()), "Tickets", Options{Size: 100, Count: count})
	seen := 0
	for _, c := range chunks {
		if !strings.HasPrefix(c.Text, "ticket,remark\nT") || !strings.HasSuffix(c.Text, "\"") {
			t.Fatalf("chunk %q", c.Text)
		}
		seen += strings.Count(c.Text, "\nT")
	}
	if seen != 3000 {
		t.Errorf("%d records", seen)
	}
}

// TestLargeInputs holds the time that large and odd inputs take far below what a worker would notice. Counting is cheap
// here; that it is called for each byte a few times at most is what calls counts.
func TestLargeInputs(t *testing.T) {
	t.Parallel()

	var words, records strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&words, "w%dx ", i)
		fmt.Fprintf(&records, `{"id":%d,"sku":"SKU-%d","note":"some words about it"},`, i, i)
	}
	for name, test := range map[string]struct{ file, content string }{
		"Note":        {"", strings.Repeat("A sentence of a few words. ", 40_000)},
		"Words":       {"a.txt", words.String()},
		"JSON":        {"a.json", "[" + strings.TrimSuffix(records.String(), ",") + "]"},
		"Underscores": {"a.txt", strings.Repeat("a_", 50_000)},
		"OneWord":     {"a.txt", strings.Repeat("x", 300_000)},
		"Chinese":     {"a.txt", strings.Repeat("天地玄黄", 20_000)},
		"Spaces":      {"a.txt", "a" + strings.Repeat(" ", 1_000_000) + "b"},
		"ShortLines":  {"a.log", strings.Repeat("a\n", 80_000)},
		"Sections":    {"a.md", strings.Repeat("# A\nx\n", 10_000)},
		"Marks":       {"a.txt", "e" + strings.Repeat("\u0301", 50_000)},
		"Brackets":    {"a.txt", strings.Repeat("（", 40_000)},
		"Stops":       {"a.txt", strings.Repeat(". ", 40_000) + strings.Repeat(".", 40_000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc := mustParse(t, test.file, test.content)
			counted := 0
			opt := Options{Size: 254, Count: func(s string) int { counted += len(s); return count(s) }}
			chunks := mustSplit(doc, "Title", opt)
			if counted > 12*len(doc.Text)+10_000 {
				t.Errorf("counted %d bytes for a text of %d", counted, len(doc.Text))
			}
			if err := verify(doc, chunks, Options{Size: 254, Count: count}); err != nil {
				t.Error(err)
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, test := range map[string]struct{ file, content string }{
		"Note": {"", strings.Repeat("A sentence of a few words. ", 40_000)},
		"JSON": {"a.json", "[" + strings.Repeat(`{"id":1,"note":"some words about it"},`, 30_000) + "1]"},
	} {
		b.Run(name, func(b *testing.B) {
			doc := mustParse(b, test.file, test.content)
			b.SetBytes(int64(len(doc.Text)))
			b.ReportAllocs()
			for b.Loop() {
				mustSplit(doc, "Title", Options{Size: 254, Count: count})
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"a b. c", "# A\n\nx\n\n| a |\n|-|\n| b |\n", "a,b\n1,\"2\n3\"\n", `{"a":[1,2,{"b":"c"}]}`, "天地。玄黄", "\u0301\u0301a", "a:\n\n\tb\n  }"} {
		f.Add([]byte(seed), "Title", uint8(0), uint8(16), uint8(0))
		f.Add([]byte(strings.Repeat(seed, 40)), "", uint8(2), uint8(20), uint8(7))
	}
	f.Fuzz(func(t *testing.T, data []byte, title string, kind, size, overlap uint8) {
		names := []string{"a.txt", "a.md", "a.csv", "a.json", "a.log"}
		doc, err := parse.Parse(parse.Input{Name: names[int(kind)%len(names)], Data: data})
		if err != nil {
			return
		}
		opt := Options{Size: max(int(size), minSize), MaxBytes: 256, Count: count}
		opt.Overlap = min(int(overlap), opt.Size/2)
		chunks := mustSplit(doc, title, opt)
		if err := verify(doc, chunks, opt); err != nil {
			t.Fatal(err)
		}
		if len(chunks) == 0 {
			t.Fatal("no chunk")
		}
	})
}
