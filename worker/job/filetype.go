package job

import (
	"strings"

	"github.com/kb-search/kb/worker/parse"
)

// TypeNote is the document type of notes.
const TypeNote = parse.TypeNote

// TypeError is a file that the worker does not read; its code and message are for whoever sent it.
type TypeError = parse.Error

// CheckType says whether the worker reads a file, from its name and the doc_type that the sender asked for; either may be
// empty. Its error, if any, is a *TypeError.
func CheckType(filename, docType string) error {
	_, err := parse.Detect(filename, docType)
	return err
}

// SupportedExtensions returns the extensions that CheckType lets pass, with their dots, sorted.
func SupportedExtensions() []string { return parse.SupportedExtensions() }

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
