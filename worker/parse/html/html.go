// Package html reads the text of web pages: headings, paragraphs, lists, tables and code in reading order, without
// scripts, navigation and what is hidden. It reads tags as a stream and builds no tree, so that deep nesting and tags
// that are never closed cost nothing. Books and mail convert their pages with Append. Its invariant: whatever the bytes,
// time and memory grow with their number only.
package html

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

// Parse reads a page. The error is a *parse.Error whose Code is "binary", "too_large" or "empty".
func Parse(data []byte) (parse.Document, error) {
	if err := refuseBinary(data); err != nil {
		return parse.Document{}, err
	}
	b := build.New(parse.TypeHTML)
	page := Append(b, Decode(data, ""))
	b.SetTitle(page.Title)
	b.SetTitle(page.Heading)
	b.SetMetadata("description", page.Description)
	b.SetMetadata("author", page.Author)
	b.SetMetadata("keywords", page.Keywords)
	b.SetMetadata("language", page.Lang)

	return b.Document()
}

// refuseBinary returns an error for what can't be a page in any encoding.
func refuseBinary(data []byte) error {
	if bytes.IndexByte(data, '<') >= 0 && !bytes.HasPrefix(data, []byte("PK\x03\x04")) && !bytes.HasPrefix(data, []byte("%PDF-")) {
		return nil
	}
	var own *parse.Error
	if _, err := parse.Decode(data); errors.As(err, &own) && own.Code == "binary" {
		return own
	}

	return nil
}

// Decode returns a page's text as UTF-8. The encoding is that of the byte-order mark, of the content type (which may be
// empty) or of the page's own declaration, in this order, except that what is valid UTF-8 beyond ASCII is taken for it.
func Decode(data []byte, contentType string) string {
	encoding, name, certain := charset.DetermineEncoding(data, contentType)
	marked := bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
	switch {
	case !marked && beyondASCII(data) && utf8.Valid(data):
		return string(data)
	case !certain && name == "windows-1252" && bytes.IndexByte(data[:min(len(data), 1024)], 0) >= 0:
		if text, err := parse.Decode(data); err == nil { // UTF-16 without a mark.
			return text
		}
	case name == "utf-8":
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}
	text, err := encoding.NewDecoder().Bytes(data)
	if err != nil {
		return strings.ToValidUTF8(string(data), "\uFFFD")
	}

	return string(text)
}

func beyondASCII(data []byte) bool {
	for _, b := range data {
		if b >= utf8.RuneSelf {
			return true
		}
	}

	return false
}
