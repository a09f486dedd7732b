package build_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kb-search/kb/worker/parse/build"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

var kind = build.Kind{Name: "Word document", Ext: ".docx"}

func TestBuilder(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name, want string
		build      func(*build.Builder)
	}{
		{"HeadingsNest", "[A > C] x\n[B] y\n", func(b *build.Builder) {
			b.Heading(1, "A")
			b.Heading(3, "C")
			b.Paragraph("x")
			b.Heading(1, "B")
			b.Paragraph("y")
		}},
		{"HeadingsWithoutTextAreText", "[] A\n[B] C\n", func(b *build.Builder) {
			b.Heading(1, "A")
			b.Heading(1, "B")
			b.Heading(2, "C")
		}},
		{"HeadingsStayWithinASection", "[Mail > B] x\n[] y\n", func(b *build.Builder) {
			b.Enter("Mail")
			b.Heading(1, "B")
			b.Paragraph("x")
			b.Leave()
			b.Paragraph("y")
		}},
		{"BlankTextIsLeftOut", "[] a\n\nb\n", func(b *build.Builder) {
			b.Paragraph(" \u200b\x00\n")
			b.Heading(1, "\u200b")
			b.Row([]string{"", " "})
			b.Paragraph("\n\na \r\n\r\n\r\nb\u00a0\n")
		}},
		{"ATableOfOneRowIsAParagraph", "[] a | b\n", func(b *build.Builder) { b.Row([]string{"a", "b", "", " "}) }},
		{"TablesEndWhereAnotherBegins", "table [] a | b\nc | d\ntable [] e | f\ng | h\n", func(b *build.Builder) {
			b.Table([][]string{{"a", "b"}, nil, {"c", "d"}})
			b.Table([][]string{{"e", "f"}, {"g", "h"}})
		}},
		{"ManyBlankCellsAreShortened", "[] a | " + strings.Repeat(" | ", 32) + "b\n", func(b *build.Builder) {
			b.Row(append(append([]string{"a"}, make([]string, 500)...), "b"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			b := build.New("docx")
			test.build(b)
			doc, err := b.Document()
			if err != nil {
				t.Fatal(err)
			}
			if err := buildtest.Check(doc); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, buildtest.Outline(doc)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADocumentHasALimit(t *testing.T) {
	t.Parallel()

	b := build.New("docx")
	for text := strings.Repeat("x", 1<<20); !b.Full(); {
		b.Paragraph(text)
	}
	if _, err := b.Document(); buildtest.Code(err) != "too_large" {
		t.Errorf("got %v", err)
	}
}

func TestArchiveRefuses(t *testing.T) {
	t.Parallel()

	two := buildtest.Zip(t, buildtest.Entry{Name: "a.xml", Data: "aaaa"}, buildtest.Entry{Name: "b.xml", Data: "bbbb"})
	many := make([]buildtest.Entry, 10_001)
	for i := range many {
		many[i].Name = "x"
	}
	for _, test := range []struct {
		name, want string
		data       []byte
	}{
		{"TooManyEntries", "too_large", buildtest.Zip(t, many...)},
		{"ADirectoryOfSignatures", "too_large", bytes.Repeat([]byte("PK\x01\x02"), 50_000)},
		{"EntriesThatOverlap", "corrupt", patch(two, func(i int, header []byte) { binary.LittleEndian.PutUint32(header[42:], 0) })},
		{"SizesThatAreTooLarge", "too_large", patch(two, func(i int, header []byte) { binary.LittleEndian.PutUint32(header[24:], 300<<20) })},
		{"EntriesBeyondTheEnd", "corrupt", patch(two, func(i int, header []byte) { binary.LittleEndian.PutUint32(header[20:], 1<<20) })},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if _, err := build.OpenArchive(test.data, kind); buildtest.Code(err) != test.want {
				t.Errorf("got %v (%s), want %s", err, buildtest.Code(err), test.want)
			}
		})
	}
}

// patch changes the headers of a container's directory.
func patch(data []byte, change func(int, []byte)) []byte {
	data = bytes.Clone(data)
	for i, at := 0, 0; ; i++ {
		next := bytes.Index(data[at:], []byte("PK\x01\x02"))
		if next < 0 {
			return data
		}
		at += next
		change(i, data[at:])
		at += 4
	}
}

func TestAnEntryThatUnpacksToMoreThanItSaysFails(t *testing.T) {
	t.Parallel()

	data := buildtest.Zip(t, buildtest.Entry{Name: "a.xml", Data: strings.Repeat("a", 1<<20), Method: zip.Deflate})
	a, err := build.OpenArchive(patch(data, func(_ int, header []byte) { binary.LittleEndian.PutUint32(header[24:], 10) }), kind)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := a.ReadAll("a.xml"); buildtest.Code(err) != "corrupt" {
		t.Errorf("got %d bytes, %v", len(content), err)
	}
	if err := a.Unpack(); buildtest.Code(err) != "corrupt" {
		t.Errorf("got %v", err)
	}
}

func TestTheLaterOfTwoEntriesCounts(t *testing.T) {
	t.Parallel()

	a, err := build.OpenArchive(buildtest.Zip(t, buildtest.Entry{Name: "a.xml", Data: "old"}, buildtest.Entry{Name: "/A.xml", Data: "new"}), kind)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := a.Open("a.xml")
	if err != nil {
		t.Fatal(err)
	}
	if content, _ := io.ReadAll(reader); string(content) != "new" {
		t.Errorf("got %q", content)
	}
}
