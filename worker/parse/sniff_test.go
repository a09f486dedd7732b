package parse

import (
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	t.Parallel()

	const page = "\ufeff\n<?xml version=\"1.0\"?>\n<!-- saved -->\n<!DOCTYPE html PUBLIC \"-//W3C\"><html><body>x</body></html>"
	zipOf := func(entry string) string {
		return "PK\x03\x04\x14\x00" + strings.Repeat("\x00", 5000) + entry + "\x00PK\x05\x06"
	}
	for name, test := range map[string]struct {
		file, docType, content string
		want                   Format
		code, says             string
	}{
		"ByTheName":                            {"a.md", "", "# A", FormatMarkdown, "", ""},
		"PDFNamedText":                         {"a.txt", "", "%PDF-1.7\n", FormatPDF, "", ""},
		"PDFBehindJunk":                        {"a.bin.txt", "", "\x00\xff\xfejunk\n%PDF-1.7\n", FormatPDF, "", ""},
		"TextThatSpeaksOfPDF":                  {"a.md", "", "A file begins with %PDF-1.7.", FormatMarkdown, "", ""},
		"PDFThoughAskedForOtherwise":           {"a.txt", "data", "%PDF-1.7\n", FormatPDF, "", ""},
		"PDFWithoutAnExtension":                {"report", "", "%PDF-1.7\n", FormatPDF, "", ""},
		"TextNamedPDF":                         {"a.pdf", "", "Plain text.", "", "wrong_type", "named like a PDF but holds plain text"},
		"TextNamedWord":                        {"a.docx", "", "Grüße", "", "wrong_type", "a Word document"},
		"DamagedPDFIsForItsParser":             {"a.pdf", "", "\x00\x01\x02", FormatPDF, "", ""},
		"PageNamedPDF":                         {"a.pdf", "", page, FormatHTML, "", ""},
		"PageNamedText":                        {"a.txt", "", page, FormatHTML, "", ""},
		"PageAskedForAsData":                   {"a.txt", "data", page, FormatText, "", ""},
		"PageInCode":                           {"a.php", "", page, FormatCode, "", ""},
		"PageWithoutAnExtension":               {"index", "", "<HTML>\n", FormatHTML, "", ""},
		"FragmentIsWhatItsNameSays":            {"a.md", "", "<div>\n\n# A\n\n</div>", FormatMarkdown, "", ""},
		"WordNamedZip":                         {"a.txt", "", zipOf("word/document.xml"), FormatDOCX, "", ""},
		"WorkbookNamedWord":                    {"a.docx", "", zipOf("xl/workbook.xml"), FormatXLSX, "", ""},
		"SlidesNamedPDF":                       {"a.pdf", "", zipOf("ppt/presentation.xml"), FormatPPTX, "", ""},
		"Book":                                 {"a.epub", "", "PK\x03\x04\x0a\x00mimetypeapplication/epub+zip", FormatEPUB, "", ""},
		"AnyArchiveNamedWordIsForItsParser":    {"a.docx", "", zipOf("x"), FormatDOCX, "", ""},
		"AnyArchiveNamedText":                  {"a.txt", "", zipOf("x"), "", "unsupported_type", "a ZIP archive"},
		"OldOfficeNamedText":                   {"a.csv", "", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "unsupported_type", "save it as .docx"},
		"OldOfficeNamedWordIsForItsParser":     {"a.docx", "", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FormatDOCX, "", ""},
		"UnknownExtensionSaysWhatWasFound":     {"a.xyz", "", "%PDF-1.7\n", "", "unsupported_type", "this one holds a PDF"},
		"OldOfficeByItsName":                   {"a.doc", "", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "unsupported_type", "old Office"},
		"ArchiveByItsName":                     {"a.zip", "", zipOf("x"), "", "unsupported_type", "a ZIP archive"},
		"NothingToGoBy":                        {"LICENSE", "", "Plain text.", "", "unsupported_type", "without an extension"},
		"Picture":                              {"a.jpg", "", "\xff\xd8\xff\xe0", FormatImage, "", ""},
		"PictureNamedText":                     {"a.txt", "", "\x89PNG\r\n\x1a\n", FormatImage, "", ""},
		"WebPicture":                           {"scan", "", "RIFF\x00\x00\x00\x00WEBPVP8 ", FormatImage, "", ""},
		"SoundIsNoPicture":                     {"scan", "", "RIFF\x00\x00\x00\x00WAVEfmt ", "", "unsupported_type", "without an extension"},
		"UnknownDocType":                       {"a.md", "novel", "x", "", "unknown_doc_type", "novel"},
		"EmptyIsForItsParser":                  {"a.md", "", "", FormatMarkdown, "", ""},
		"HeadThatEndsInTheMiddleOfACharacter":  {"a.pdf", "", strings.Repeat("x", sniffHead-1) + "é", "", "wrong_type", ""},
		"SixteenBitTextNamedPDFIsForItsParser": {"a.pdf", "", "\xff\xfea\x00", FormatPDF, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			format, err := Identify(test.file, test.docType, strings.NewReader(test.content), int64(len(test.content)))
			if code(err) != test.code || format != test.want || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %q, %v; want %q, %q", format, err, test.want, test.code)
			}
		})
	}
}

func FuzzIdentify(f *testing.F) {
	add(f, "%PDF-1.7", "PK\x03\x04", "<!-- <!doctype html>", "\xef\xbb\xbf<html ", "RIFF\x00\x00\x00\x00WEBP", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "é")
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"a.md", "a.pdf", "a", "a.xyz", "a.docx"} {
			format, err := Identify(name, "", strings.NewReader(string(data)), int64(len(data)))
			if (format == "") != (err != nil) || strings.HasPrefix(code(err), "other") {
				t.Fatalf("%s: %q, %v", name, format, err)
			}
		}
	})
}
