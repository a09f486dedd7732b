package epub

import (
	"archive/zip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

const (
	containerXML = `<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>`
	packageHead  = `<?xml version="1.0" encoding="utf-8"?><!DOCTYPE package><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>On Pumps</dc:title><dc:title>A Manual</dc:title><dc:creator>A. Muster</dc:creator><dc:creator>B. Beispiel</dc:creator><dc:language>en</dc:language></metadata>`
	packageXML   = packageHead + `<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/><item id="c1" href="text/chapter%201.xhtml" media-type="application/xhtml+xml"/><item id="c2" href="text/chapter2.xhtml" media-type="application/xhtml+xml"/><item id="css" href="a.css" media-type="text/css"/></manifest><spine><itemref idref="nav"/><itemref idref="c2"/><itemref idref="c1"/><itemref idref="c2"/><itemref idref="gone"/></spine></package>`
	pageHead     = `<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>`
	pageTail     = `</body></html>`
)

// book writes a container of two chapters, with further entries.
func book(t testing.TB, entries ...buildtest.Entry) []byte {
	t.Helper()

	return buildtest.Zip(t, append([]buildtest.Entry{
		{Name: "mimetype", Data: "application/epub+zip"},
		{Name: "META-INF/container.xml", Data: containerXML, Method: zip.Deflate},
		{Name: "OEBPS/content.opf", Data: packageXML, Method: zip.Deflate},
		{Name: "OEBPS/nav.xhtml", Data: pageHead + "<p>Contents</p>" + pageTail},
		{Name: "OEBPS/text/chapter 1.xhtml", Data: pageHead + `<h1>Care</h1><p>Drain<span hidden="hidden"/> it.</p>` + pageTail},
		{Name: "OEBPS/text/chapter2.xhtml", Data: pageHead + `<h1>Parts</h1><p>Pumps &amp; valves.</p>` + pageTail},
	}, entries...)...)
}

func encryption(algorithm, uri string) buildtest.Entry {
	return buildtest.Entry{Name: "META-INF/encryption.xml", Data: `<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><enc:EncryptedData xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptionMethod Algorithm="` + algorithm + `"/><enc:CipherData><enc:CipherReference URI="` + uri + `"/></enc:CipherData></enc:EncryptedData></encryption>`}
}

func TestParse(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name string
		data []byte
	}{
		{"PagesComeInTheOrderOfTheSpine", book(t)},
		{"EncryptedFontsDoNotMatter", book(t, encryption("http://www.idpf.org/2008/embedding", "OEBPS/fonts/a.otf"))},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			doc, err := Parse(test.data)
			if err != nil {
				t.Fatal(err)
			}
			if err := buildtest.Check(doc); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("[Parts] Pumps & valves.\n[Care] Drain it.\n", buildtest.Outline(doc)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(map[string]any{"author": "A. Muster, B. Beispiel", "language": "en"}, doc.Metadata); diff != "" || doc.Title != "On Pumps" || doc.Type != parse.TypeEPUB {
				t.Errorf("title %q, type %q, %s", doc.Title, doc.Type, diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()

	only := func(entries ...buildtest.Entry) []byte { return buildtest.Zip(t, entries...) }
	pack := func(manifest string) []byte {
		return book(t, buildtest.Entry{Name: "OEBPS/content.opf", Data: packageHead + manifest + "</package>"})
	}
	whole := book(t)
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"Nothing", nil, "corrupt"},
		{"ACutFile", whole[:len(whole)/2], "corrupt"},
		{"NoContainer", only(buildtest.Entry{Name: "mimetype", Data: "application/epub+zip"}), "corrupt"},
		{"NoPackage", only(buildtest.Entry{Name: "META-INF/container.xml", Data: containerXML}), "corrupt"},
		{"NoPages", pack("<manifest/><spine/>"), "corrupt"},
		{"EncryptedPages", book(t, encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OEBPS/text/chapter%201.xhtml")), "encrypted"},
		{"PagesWithoutText", book(t, buildtest.Entry{Name: "OEBPS/text/chapter2.xhtml", Data: pageHead + pageTail}, buildtest.Entry{Name: "OEBPS/text/chapter 1.xhtml", Data: pageHead + `<img src="a.png"/>` + pageTail}), "empty"},
		{"ABombOfSpaces", book(t, buildtest.Entry{Name: "OEBPS/text/chapter2.xhtml", Data: pageHead + strings.Repeat(" ", 40<<20), Method: zip.Deflate}), "too_large"},
		{"AnOldBinaryFile", buildtest.OLE("x"), "unsupported_type"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if _, err := Parse(test.data); buildtest.Code(err) != test.want {
				t.Errorf("got %v (%s), want %s", err, buildtest.Code(err), test.want)
			}
		})
	}
}

func FuzzEPUB(f *testing.F) {
	f.Add(book(f), []byte(packageXML), []byte(pageHead+"<h1>A</h1><p>b<br/>c</p>"+pageTail), []byte(containerXML))
	f.Add([]byte("PK\x05\x06"), []byte(`<package><manifest><item id="a" href="../x.html#y" media-type="text/html"/></manifest><spine><itemref idref="a"/></spine>`), []byte("x"), []byte(`<a><rootfile full-path="/OEBPS/content.opf">`))
	f.Fuzz(func(t *testing.T, data, opf, page, container []byte) {
		doc, err := Parse(data)
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
		doc, err = Parse(book(t, buildtest.Entry{Name: "OEBPS/content.opf", Data: string(opf)}, buildtest.Entry{Name: "OEBPS/text/chapter2.xhtml", Data: string(page)},
			buildtest.Entry{Name: "META-INF/container.xml", Data: string(container)}, buildtest.Entry{Name: "META-INF/encryption.xml", Data: string(container)}))
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
	})
}
