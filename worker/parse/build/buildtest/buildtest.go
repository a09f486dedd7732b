// Package buildtest holds what the tests of the parsers share: a check of what every document keeps, a readable outline to
// compare documents by, and small writers of containers. It is for tests only.
package buildtest

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/kb-search/kb/worker/parse"
)

// Check says what is wrong with a document.
func Check(doc parse.Document) error {
	if len(doc.Blocks) == 0 {
		return errors.New("no blocks")
	}
	if !utf8.ValidString(doc.Text) || strings.ContainsAny(doc.Text, "\x00\r\u00ad\ufeff") || !utf8.ValidString(doc.Title) {
		return fmt.Errorf("text is not clean: %q", doc.Text)
	}
	at := 0
	for i, b := range doc.Blocks {
		if b.Text != doc.Text[b.Start:b.End] || parse.Blank(b.Text) || strings.TrimRightFunc(b.Text, unicode.IsSpace) != b.Text {
			return fmt.Errorf("block %d is %q", i, b.Text)
		}
		if i > 0 && (b.Start != at+2 || doc.Text[at:b.Start] != "\n\n") || i == 0 && b.Start != 0 {
			return fmt.Errorf("block %d starts at %d after %d", i, b.Start, at)
		}
		if i > 0 && b.Page < doc.Blocks[i-1].Page {
			return fmt.Errorf("block %d is on page %d", i, b.Page)
		}
		if (b.Kind == parse.Table) != (b.Header != "") {
			return fmt.Errorf("block %d of kind %q has header %q", i, b.Kind, b.Header)
		}
		again := i > 0 && doc.Blocks[i-1].Header == b.Header
		if b.Kind == parse.Table && !again && !strings.HasPrefix(b.Text, b.Header+"\n") {
			return fmt.Errorf("block %d has header %q", i, b.Header)
		}
		for _, heading := range b.Path {
			if parse.Blank(heading) || !utf8.ValidString(heading) || strings.Contains(heading, "\n") {
				return fmt.Errorf("block %d has path %q", i, b.Path)
			}
		}
		at = b.End
	}
	if at != len(doc.Text) {
		return fmt.Errorf("blocks end at %d of %d", at, len(doc.Text))
	}

	return nil
}

// CheckResult is Check for what a parser returned on bytes of any kind: an error must be a *parse.Error with a message.
func CheckResult(doc parse.Document, err error) error {
	if err == nil {
		return Check(doc)
	}
	var own *parse.Error
	if !errors.As(err, &own) || own.Code == "" || own.Message == "" {
		return fmt.Errorf("%w is no error for the person who sent the file", err)
	}

	return nil
}

// Outline writes a document for comparison, a line for each block: page (where there is one), kind (but for paragraphs),
// path and text.
func Outline(doc parse.Document) string {
	var b strings.Builder
	for _, block := range doc.Blocks {
		if block.Page > 0 {
			fmt.Fprintf(&b, "%d ", block.Page)
		}
		if block.Kind != parse.Paragraph {
			b.WriteString(string(block.Kind) + " ")
		}
		fmt.Fprintf(&b, "[%s] %s\n", strings.Join(block.Path, " > "), block.Text)
	}

	return b.String()
}

// Code returns the code of a parser's error.
func Code(err error) string {
	var own *parse.Error
	if errors.As(err, &own) {
		return own.Code
	}

	return fmt.Sprintf("other: %v", err)
}

// Entry is a file in a container.
type Entry struct {
	Name, Data string
	// Method is how it is packed. Defaults to not at all.
	Method uint16
}

// Zip writes a container.
func Zip(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.Name, Method: e.Method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.Data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return buf.Bytes()
}

// OLE returns the start of an old binary office file, which holds a stream of the given name.
func OLE(stream string) []byte {
	data := append([]byte(parse.SignatureOLE), make([]byte, 504)...)
	for _, r := range stream {
		data = append(data, byte(r), 0)
	}

	return append(data, make([]byte, 512)...)
}
