package parse

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"
)

// What is looked at of a file to tell its format: its beginning, and the end of a ZIP archive, which lists its entries.
const (
	sniffHead = 4 << 10
	sniffTail = 64 << 10
)

// Containers that Identify finds but that say too little alone.
const (
	formatZIP Format = "zip"
	formatOLE Format = "ole"
)

// magics are what files of some formats begin with.
var magics = []struct {
	magic  string
	format Format
}{
	{"PK\x03\x04", formatZIP},
	{SignatureOLE, formatOLE},
	{"\x89PNG\r\n\x1a\n", FormatImage},
	{"\xff\xd8\xff", FormatImage},
	{"GIF87a", FormatImage},
	{"GIF89a", FormatImage},
	{"II*\x00", FormatImage},
	{"MM\x00*", FormatImage},
}

// entries are names that archives of some formats hold.
var entries = []struct {
	name   string
	format Format
}{
	{"word/document.xml", FormatDOCX},
	{"ppt/presentation.xml", FormatPPTX},
	{"xl/workbook.xml", FormatXLSX},
	{"xl/workbook.bin", FormatXLSX},
	{"mimetypeapplication/epub+zip", FormatEPUB},
	{"META-INF/container.xml", FormatEPUB},
}

// descriptions tell a person what a format is.
var descriptions = map[Format]string{
	FormatPDF: "a PDF", FormatDOCX: "a Word document", FormatPPTX: "a PowerPoint presentation", FormatXLSX: "an Excel workbook",
	FormatEPUB: "an EPUB book", FormatHTML: "an HTML page", FormatImage: "an image", formatZIP: "a ZIP archive",
	formatOLE: "a document of an old Office version",
}

// Identify says how a file is to be read: by its content where that leaves no doubt, else as Detect says. A PDF that is
// named .txt is read as PDF; text that is named .pdf is refused. Its error, if any, is an *Error.
func Identify(name, docType string, content io.ReaderAt, size int64) (Format, error) {
	named, err := Detect(name, docType)
	head := read(content, 0, min(size, sniffHead))
	found := sniff(head, content, size)
	if err != nil {
		return rescue(err, name, docType, found)
	}
	switch found {
	case "":
		if named.binary() && utf8.Valid(trimRune(head)) && !bytes.Contains(head, []byte{0}) {
			return "", &Error{Code: "wrong_type", Message: fmt.Sprintf("the file is named like %s but holds plain text; rename it to what it is, such as .txt",
				descriptions[named])}
		}
		return named, nil
	case FormatHTML:
		if named == FormatCode || named == FormatNote || docType != "" && !named.binary() {
			return named, nil
		}
		return found, nil
	case formatZIP, formatOLE:
		if named.binary() {
			return named, nil // Its parser says what is wrong with it.
		}
		return "", unsupportedContent(found)
	default:
		return found, nil
	}
}

// rescue decides about a file whose name does not say how to read it.
func rescue(err error, name, docType string, found Format) (Format, error) {
	e, ok := err.(*Error) //nolint:errorlint // Detect wraps nothing.
	if !ok || found == "" || e.Code != "unsupported_type" {
		return "", err
	}
	if ext := path.Ext(name); ext == "" || ext == "." {
		if found != formatZIP && found != formatOLE && docType == "" {
			return found, nil
		}
		return "", unsupportedContent(found)
	}
	return "", &Error{Code: e.Code, Message: fmt.Sprintf("%s; this one holds %s", e.Message, descriptions[found])}
}

func unsupportedContent(found Format) *Error {
	message := "the file is " + descriptions[found] + ", which is not read"
	switch found {
	case formatZIP:
		message += "; upload the files that are in it"
	case formatOLE:
		message += "; save it as .docx, .pptx or .xlsx"
	}
	return &Error{Code: "unsupported_type", Message: message}
}

// binary says whether files of the format are no text.
func (f Format) binary() bool {
	switch f {
	case FormatPDF, FormatDOCX, FormatPPTX, FormatXLSX, FormatEPUB, FormatImage:
		return true
	default:
		return false
	}
}

// sniff tells a format from its content; empty when it takes a name to tell.
func sniff(head []byte, content io.ReaderAt, size int64) Format {
	for _, signature := range magics {
		if !bytes.HasPrefix(head, []byte(signature.magic)) {
			continue
		}
		if signature.format != formatZIP {
			return signature.format
		}
		names := append(bytes.Clone(head), read(content, max(size-sniffTail, 0), min(size, sniffTail))...)
		for _, entry := range entries {
			if bytes.Contains(names, []byte(entry.name)) {
				return entry.format
			}
		}
		return formatZIP
	}
	switch {
	case bytes.HasPrefix(head, []byte("RIFF")) && len(head) >= 12 && string(head[8:12]) == "WEBP":
		return FormatImage
	// Readers of PDF allow for a kilobyte of something else before it.
	case bytes.HasPrefix(head, []byte("%PDF-")), !utf8.Valid(trimRune(head)) && bytes.Contains(head[:min(len(head), 1<<10)], []byte("%PDF-")):
		return FormatPDF
	case isHTML(head):
		return FormatHTML
	}
	return ""
}

// isHTML says whether a file begins as pages do; comments and the XML declaration may go before.
func isHTML(head []byte) bool {
	text := strings.TrimLeft(strings.TrimPrefix(string(head), "\uFEFF"), " \t\r\n\f")
	for {
		end := ""
		switch {
		case strings.HasPrefix(text, "<!--"):
			end = "-->"
		case strings.HasPrefix(text, "<?xml"):
			end = "?>"
		default:
			start := strings.ToLower(text[:min(len(text), 15)])
			return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html>") || strings.HasPrefix(start, "<html ")
		}
		_, rest, found := strings.Cut(text, end)
		if !found {
			return false
		}
		text = strings.TrimLeft(rest, " \t\r\n\f")
	}
}

// trimRune takes a rune that was cut off from the end of text.
func trimRune(text []byte) []byte {
	for i := 1; i <= min(len(text), utf8.UTFMax-1); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-i:]) {
				return text[:len(text)-i]
			}
			return text
		}
	}
	return text
}

func read(content io.ReaderAt, from, length int64) []byte {
	buf := make([]byte, length)
	n, _ := content.ReadAt(buf, from)
	return buf[:n]
}
