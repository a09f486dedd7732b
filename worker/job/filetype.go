package job

import "github.com/kb-search/kb/worker/parse"

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
