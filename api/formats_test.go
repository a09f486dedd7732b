package api_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kb-search/kb/worker/docling"
	"github.com/kb-search/kb/worker/parse"
)

// read reads a file of testdata.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	must(t, err)
	return string(content)
}

// TestFormats reads files as other programs write them: python-docx, python-pptx, openpyxl, ebooklib, and mail as it is sent.
func TestFormats(t *testing.T) {
	t.Parallel()
	s := start(t, config{})

	for name, test := range map[string]struct {
		file, docType, title string
		sections             []string
		text, query          string
	}{
		"Word":   {"manual.docx", "docx", "Wexford pump manual", []string{"Care", "Care > Lubricants"}, "Bearing | Korvan 7 | monthly", "Korvan"},
		"Slides": {"review.pptx", "pptx", "", []string{"Quarterly review", "Figures"}, "Ostvik | 120", "Tarnfield lease"},
		"Sheets": {"stock.xlsx", "xlsx", "stock", []string{"Stock", "Suppliers"}, "Flange DN50 | 42 | ", "Brackwater"},
		"Book":   {"log.epub", "epub", "The lighthouse log", []string{"Storms", "Calm"}, "The lamp at Skerrow went out at four.", "Skerrow"},
		"Mail":   {"mail.eml", "eml", "Verwerfung der Dichtung – Größe", nil, "Bitte Teil 88-Q bestellen.", "Ines Brandt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := s.document(t, s.ingest(t, file(test.file, read(t, "formats/"+test.file))...))
			if document["doc_type"] != test.docType || test.title != "" && document["title"] != test.title {
				t.Errorf("type %v, title %v", document["doc_type"], document["title"])
			}
			got, texts := sections(document)
			for _, want := range test.sections {
				if !slices.ContainsFunc(got, func(section string) bool { return strings.HasSuffix(section, want) }) {
					t.Errorf("section %q is not among %q", want, got)
				}
			}
			if whole := strings.Join(texts, "\n"); !strings.Contains(whole, test.text) {
				t.Errorf("%q is not in %q", test.text, whole)
			}
			if found := s.ask(t, test.query, fmt.Sprintf(`, "doc_type": %q`, test.docType)); len(found.Results) == 0 || found.Results[0].DocType != test.docType {
				t.Errorf("%q found %+v", test.query, found)
			}
		})
	}

	t.Run("Page", func(t *testing.T) {
		t.Parallel()
		document := s.document(t, s.ingest(t, file("page.html", `<!doctype html><html lang="en"><head><title>Harbour rules</title><style>p{}</style></head><body><nav>Home</nav>
			<h1>Mooring</h1><p>Boats over 12&nbsp;m use the <a href="x">north quay</a>.</p><script>track()</script>
			<h2>Fees</h2><table><tr><th>Length</th><th>Fee</th></tr><tr><td>6 m</td><td>14</td></tr></table></body></html>`)...))
		got, texts := sections(document)
		if document["title"] != "Harbour rules" || document["doc_type"] != "html" || !slices.Equal(got, []string{"Mooring", "Mooring > Fees"}) {
			t.Errorf("title %v, sections %q", document["title"], got)
		}
		if whole := strings.Join(texts, "\n"); whole != "Boats over 12 m use the north quay.\nLength | Fee\n6 m | 14" {
			t.Errorf("text %q", whole)
		}
	})

	t.Run("AWrongExtensionIsHandled", func(t *testing.T) {
		t.Parallel()
		document := s.document(t, s.ingest(t, file("workbook.docx", read(t, "formats/stock.xlsx")+"\x00")...))
		if document["doc_type"] != "xlsx" {
			t.Errorf("type %v", document["doc_type"])
		}
		document = s.document(t, s.ingest(t, file("book", read(t, "formats/log.epub")+"\x00")...)) // no extension at all
		if document["doc_type"] != "epub" {
			t.Errorf("type %v", document["doc_type"])
		}
	})

	t.Run("OrRefusedWithWhatWasFound", func(t *testing.T) {
		t.Parallel()
		for name, test := range map[string]struct{ content, code, says string }{
			"letter.pdf":  {"Plain text.", "wrong_type", "plain text"},
			"letter.doc":  {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 old", "unsupported_type", "old Office"},
			"letter.xyz":  {read(t, "formats/manual.docx"), "unsupported_type", "a Word document"},
			"letter.txt":  {"PK\x03\x04 some archive", "unsupported_type", "ZIP archive"},
			"picture.png": {"\x89PNG\r\n\x1a\n", "unsupported_type", "KB_DOCLING_URL"},
		} {
			refused := s.upload(t, file(name, test.content)...)
			refused.wantError(t, 422, map[string]any{"error": "unsupported file type", "code": test.code})
			if message := refused.object(t)["message"].(string); !strings.Contains(message, test.says) {
				t.Errorf("%s: %s", name, message)
			}
		}
	})

	for name, test := range map[string]struct{ file, content, code string }{
		"ADamagedWorkbook":  {"cut.xlsx", read(t, "formats/stock.xlsx")[:3000], "corrupt"},
		"AnOldOfficeFile":   {"old.docx", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 600), "unsupported_type"},
		"APageWithoutAText": {"blank.html", "<!doctype html><title>T</title><script>1</script>", "empty"},
	} {
		t.Run(name+"FailsWithACode", func(t *testing.T) {
			t.Parallel()
			failed := s.wait(t, s.upload(t, file(test.file, test.content)...).want(t, 202).object(t)["job_id"].(string))
			if failed["status"] != "failed" || failed["error_code"] != test.code || failed["attempts"] != 1.0 {
				t.Errorf("got %v", failed)
			}
		})
	}
}

// converter is Docling as a test wants it; how the real one is spoken to is tested in worker/docling.
type converter func(filename string) (parse.Document, error)

func (c converter) Convert(_ context.Context, filename string, _ []byte) (parse.Document, error) {
	return c(filename)
}

func TestDocling(t *testing.T) {
	t.Parallel()
	converted := func(docType string) parse.Document {
		text := "Read by the converter: pump."
		return parse.Document{Type: docType, Text: text, Blocks: []parse.Block{{Kind: parse.Paragraph, Text: text, Page: 1, End: len(text)}}}
	}
	pdfFile, err := os.ReadFile("../worker/parse/pdf/testdata/leading_junk.pdf")
	must(t, err)
	for name, test := range map[string]struct {
		file, content, status, code, warning, text string
		answer                                     func(string) (parse.Document, error)
	}{
		"PDFGoesToIt": {"a.pdf", string(pdfFile), "done", "", "", "Read by the converter",
			func(string) (parse.Document, error) { return converted("pdf"), nil }},
		"ImageGoesToIt": {"a.png", "\x89PNG\r\n\x1a\n ", "done", "", "", "Read by the converter",
			func(string) (parse.Document, error) { return converted("image"), nil }},
		"AwayThePDFIsReadHereAndTheJobSaysSo": {"a.pdf", string(pdfFile), "done", "", "Docling could not be used", "",
			func(string) (parse.Document, error) {
				return parse.Document{}, fmt.Errorf("connect: %w", docling.ErrUnreachable)
			}},
		"UnableThePDFIsReadHereAndTheJobSaysSo": {"a.pdf", string(pdfFile), "done", "", "could not read the file (no luck)", "",
			func(string) (parse.Document, error) {
				return parse.Document{}, &parse.Error{Code: "corrupt", Message: "no luck"}
			}},
		"APasswordIsFinal": {"a.pdf", string(pdfFile), "failed", "password_required", "", "",
			func(string) (parse.Document, error) {
				return parse.Document{}, &parse.Error{Code: "password_required", Message: "locked"}
			}},
		"AwayAnImageWaitsForAnotherTry": {"a.jpg", "\xff\xd8\xff\xe0 ", "failed", "converter_unavailable", "", "",
			func(string) (parse.Document, error) { return parse.Document{}, errors.Join(docling.ErrUnreachable) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, config{Converter: converter(test.answer)})
			ended := s.wait(t, s.upload(t, file(test.file, test.content)...).want(t, 202).object(t)["job_id"].(string))
			warning, _ := ended["warning"].(string)
			if ended["status"] != test.status || test.code != "" && ended["error_code"] != test.code ||
				(warning == "") != (test.warning == "") || !strings.Contains(warning, test.warning) {
				t.Fatalf("got %v", ended)
			}
			if test.status != "done" {
				return
			}
			_, texts := sections(s.document(t, ended))
			if whole := strings.Join(texts, "\n"); !strings.Contains(whole, test.text) || test.warning != "" && strings.Contains(whole, "converter") {
				t.Errorf("text %q", whole)
			}
		})
	}
}
