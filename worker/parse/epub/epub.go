// Package epub reads the text of EPUB books: the pages of the spine in their order, each converted by package html. Its
// invariant: whatever the bytes, a parse ends with a document of at least one block or a *parse.Error, in memory bounded
// by the limits of package build.
package epub

import (
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
	"github.com/kb-search/kb/worker/parse/html"
)

var kind = build.Kind{Name: "EPUB book", Ext: ".epub"}

// Parse reads a book. The error is a *parse.Error whose Code is "corrupt", "too_large", "encrypted" (its pages are, by a
// copy protection), "password_required", "unsupported_type" or "empty".
func Parse(data []byte) (parse.Document, error) {
	a, err := build.OpenArchive(data, kind)
	if err != nil {
		return parse.Document{}, err
	}
	part, err := packagePart(a)
	if err != nil {
		return parse.Document{}, err
	}
	b := build.New(parse.TypeEPUB)
	pages, err := readPackage(a, b, part)
	if err != nil {
		return parse.Document{}, err
	}
	if err := refuseEncrypted(a, pages); err != nil {
		return parse.Document{}, err
	}
	for _, page := range pages {
		if b.Full() {
			break
		}
		content, err := a.ReadAll(page)
		if err != nil {
			return parse.Document{}, err
		}
		html.Append(b, html.Decode(content, ""))
	}

	return b.Document()
}

// packagePart returns the name of the part that lists the book's pages.
func packagePart(a *build.Archive) (string, error) {
	part := ""
	err := eachToken(a, "META-INF/container.xml", func(token xml.Token) {
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rootfile" && part == "" {
			part = path.Clean(build.Attr(e, "full-path"))
		}
	})
	if err == nil && !a.Has(part) {
		err = kind.Corrupt()
	}

	return part, err
}

// readPackage returns the names of the book's pages in reading order, and takes over what the book says about itself.
func readPackage(a *build.Archive, b *build.Builder, part string) ([]string, error) {
	manifest := map[string]string{}
	used := map[string]bool{}
	var pages, authors []string
	var text strings.Builder
	name := ""
	err := eachToken(a, part, func(token xml.Token) {
		switch t := token.(type) {
		case xml.StartElement:
			name = t.Name.Local
			text.Reset()
			switch name {
			case "item":
				if isPage(t) {
					manifest[build.Attr(t, "id")] = resolve(part, build.Attr(t, "href"))
				}
			case "itemref":
				page := manifest[build.Attr(t, "idref")]
				if page != "" && !used[page] && a.Has(page) {
					used[page] = true
					pages = append(pages, page)
				}
			}
		case xml.CharData:
			if text.Len() < 4<<10 {
				text.Write(t)
			}
		case xml.EndElement:
			if t.Name.Local != name {
				return
			}
			switch name {
			case "title":
				b.SetTitle(text.String())
			case "creator":
				authors = append(authors, text.String())
			case "language", "publisher", "description":
				b.SetMetadata(name, text.String())
			}
			name = ""
		}
	})
	if err == nil && len(pages) == 0 {
		err = kind.Corrupt()
	}
	b.SetMetadata("author", strings.Join(authors[:min(len(authors), 20)], ", "))

	return pages, err
}

// isPage reports whether an item of the manifest is text to read; the table of contents is not.
func isPage(item xml.StartElement) bool {
	for property := range strings.FieldsSeq(build.Attr(item, "properties")) {
		if property == "nav" {
			return false
		}
	}
	switch strings.ToLower(build.Attr(item, "media-type")) {
	case "application/xhtml+xml", "text/html", "text/x-oeb1-document", "application/xhtml":
		return true
	default:
		return false
	}
}

// resolve returns the name in the archive of what a part refers to.
func resolve(part, href string) string {
	href, _, _ = strings.Cut(href, "#")
	if plain, err := url.PathUnescape(href); err == nil {
		href = plain
	}

	return strings.TrimPrefix(path.Join("/", path.Dir(part), href), "/")
}

// refuseEncrypted returns an error where a page is encrypted. Fonts may be: they are not read.
func refuseEncrypted(a *build.Archive, pages []string) error {
	const list = "META-INF/encryption.xml"
	if !a.Has(list) {
		return nil
	}
	isPage := map[string]bool{}
	for _, page := range pages {
		isPage[strings.ToLower(page)] = true
	}
	encrypted := false
	err := eachToken(a, list, func(token xml.Token) {
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "CipherReference" {
			encrypted = encrypted || isPage[strings.ToLower(resolve("container", build.Attr(e, "URI")))]
		}
	})
	if encrypted {
		return &parse.Error{Code: "encrypted", Message: "The EPUB book is protected against copying (DRM) and can't be read; send a copy without protection."}
	}

	return err
}

// eachToken calls f for each token of a part.
func eachToken(a *build.Archive, part string, f func(xml.Token)) error {
	reader, err := a.Open(part)
	if err != nil {
		return err
	}
	d := build.NewDecoder(reader, kind)
	d.Lenient()
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(token)
	}
}
