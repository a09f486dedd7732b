package job

import (
	"io"
	"strings"

	"github.com/kb-search/kb/worker/parse"
)

// TypeNote is the document type of notes.
const TypeNote = parse.TypeNote

// TypeError is a file that the worker does not read; its code and message are for whoever sent it.
type TypeError = parse.Error

// Types says what kinds of files the worker reads.
type Types struct {
	// Images says whether a converter for images is configured.
	Images bool
}

// Check says whether the worker reads a file, from its name, the doc_type that the sender asked for, either of which may be
// empty, and its content. Its error, if any, is a *TypeError.
func (t Types) Check(filename, docType string, content io.ReaderAt, size int64) error {
	format, err := parse.Identify(filename, docType, content, size)
	if err != nil {
		return err
	}
	if format == parse.FormatImage && !t.Images {
		return &TypeError{Code: "unsupported_type", Message: "Images are read by Docling, which this server does not use: set KB_DOCLING_URL."}
	}
	return nil
}

// Extensions returns the extensions of the files that Check lets pass, with their dots, sorted.
func (t Types) Extensions() []string { return parse.SupportedExtensions(t.Images) }

// IsText says whether a file of that name is read as text as it is: a note, Markdown, data or code.
func IsText(filename string) bool {
	format, err := parse.Detect(filename, "")
	return err == nil && format.IsText()
}

// Text decodes the bytes of a file that is text; what can't be read is replaced.
func Text(data []byte) string {
	text, err := parse.Decode(data)
	if err != nil {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	return text
}
