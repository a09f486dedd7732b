package office

import (
	"archive/zip"
	"strings"
	"testing"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

const (
	contentTypes = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>`
	relsHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`
	relType   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	coreProps = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><dc:title>The core's title</dc:title><dc:subject>Water</dc:subject><dc:creator>A. Muster</dc:creator><cp:keywords>pump, valve</cp:keywords><cp:lastModifiedBy>B</cp:lastModifiedBy><dcterms:created xsi:type="dcterms:W3CDTF">2026-01-02T03:04:05Z</dcterms:created></cp:coreProperties>`
)

// rels writes a list of relationships from pairs of kind and target; their identifiers are rId1, rId2 and so on.
func rels(pairs ...string) string {
	var b strings.Builder
	b.WriteString(relsHead)
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(`<Relationship Id="rId` + string(rune('1'+i/2)) + `" Type="` + relType + pairs[i] + `" Target="` + pairs[i+1] + `"/>`)
	}

	return b.String() + `</Relationships>`
}

// container writes a ZIP file of parts: names and contents in turn. Later parts of a name stand for earlier ones.
func container(t testing.TB, main string, parts ...string) []byte {
	t.Helper()
	list := append([]string{"[Content_Types].xml", contentTypes, "_rels/.rels", rels("officeDocument", main)}, parts...)
	data, order := map[string]string{}, []string(nil)
	for i := 0; i < len(list); i += 2 {
		if _, found := data[list[i]]; !found {
			order = append(order, list[i])
		}
		data[list[i]] = list[i+1]
	}
	var entries []buildtest.Entry
	for _, name := range order {
		entries = append(entries, buildtest.Entry{Name: name, Data: data[name], Method: zip.Deflate})
	}

	return buildtest.Zip(t, entries...)
}

func mustParse(t *testing.T, f func([]byte) (parse.Document, error), data []byte) parse.Document {
	t.Helper()
	doc, err := f(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := buildtest.Check(doc); err != nil {
		t.Fatal(err)
	}

	return doc
}

// parsers are all functions of the package, with a file that each reads.
func parsers(t testing.TB) []struct {
	name, main string
	parse      func([]byte) (parse.Document, error)
	sample     []byte
} {
	return []struct {
		name, main string
		parse      func([]byte) (parse.Document, error)
		sample     []byte
	}{
		{"Word", "word/document.xml", Word, docx(t, para("", "x"))},
		{"Slides", "ppt/presentation.xml", Slides, pptx(t, shapeXML("title", "x"))},
		{"Sheets", "xl/workbook.xml", Sheets, xlsx(t, sheetXML([]string{"x"}))},
	}
}

func TestRefusedContainers(t *testing.T) {
	t.Parallel()

	for _, p := range parsers(t) {
		mustParse(t, p.parse, p.sample)
		root := map[string]string{"Word": "document", "Slides": "presentation", "Sheets": "workbook"}[p.name]
		for _, test := range []struct {
			name string
			data []byte
			want string
		}{
			{"Nothing", nil, "corrupt"},
			{"Text", []byte("just text"), "corrupt"},
			{"ACutFile", p.sample[:len(p.sample)/2], "corrupt"},
			{"AnOldBinaryFile", buildtest.OLE("WordDocument"), "unsupported_type"},
			{"AnEncryptedFile", buildtest.OLE("EncryptedPackage"), "password_required"},
			{"AnArchiveOfSomethingElse", buildtest.Zip(t, buildtest.Entry{Name: "a.txt", Data: "a"}), "corrupt"},
			{"ADocumentOfAnotherKind", container(t, "x/y.xml", "x/y.xml", "<other/>"), "corrupt"},
			{"DamagedXML", container(t, p.main, p.main, "<"+root+"><a></"+root+">"), "corrupt"},
			{"EntityBomb", container(t, p.main, p.main, `<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]><`+root+`>&b;</`+root+`>`), "corrupt"},
			{"DeepNesting", container(t, p.main, p.main, "<"+root+">"+strings.Repeat("<a>", 100_000)), "corrupt"},
			{"AGiantTag", container(t, p.main, p.main, "<"+root+" a='"+strings.Repeat("x", 9<<20)+"'/>"), "too_large"},
			{"ABombOfZeros", container(t, p.main, p.main, "<"+root+">"+strings.Repeat("\x00", 40<<20)), "too_large"},
			{"ABombOfSpaces", container(t, p.main, "word/media/a.bin", strings.Repeat(" ", 40<<20)), "too_large"},
		} {
			t.Run(p.name+"/"+test.name, func(t *testing.T) {
				t.Parallel()

				if _, err := p.parse(test.data); buildtest.Code(err) != test.want {
					t.Errorf("got %v (%s), want %s", err, buildtest.Code(err), test.want)
				}
			})
		}
	}
}
