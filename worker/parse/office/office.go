// Package office reads the text of Office Open XML files: Word documents, PowerPoint presentations and Excel workbooks,
// whoever wrote them. Word and PowerPoint files are read here, part by part as streams; workbooks through excelize. What
// a chunk is, is left to chunk. Its invariant: whatever the bytes, a parse ends with a document of at least one block or a
// *parse.Error, in memory bounded by the limits of package build.
package office

import (
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/kb-search/kb/worker/parse/build"
)

// relationship points from a part to another one.
type relationship struct {
	id, kind, target string
}

// relationships returns those of a part, none where it has no list of them. Their targets are names in the archive.
func relationships(a *build.Archive, kind build.Kind, part string) ([]relationship, error) {
	dir, name := path.Split(part)
	list := dir + "_rels/" + name + ".rels"
	if !a.Has(list) {
		return nil, nil
	}
	var found []relationship
	err := eachElement(a, kind, list, func(e xml.StartElement) error {
		if e.Name.Local != "Relationship" || build.Attr(e, "TargetMode") == "External" {
			return nil
		}
		target := build.Attr(e, "Target")
		if !strings.HasPrefix(target, "/") {
			target = path.Join("/", dir, target)
		}
		found = append(found, relationship{id: build.Attr(e, "Id"), kind: path.Base(build.Attr(e, "Type")),
			target: strings.TrimPrefix(path.Clean(target), "/")})

		return nil
	})

	return found, err
}

// target returns the first related part of a kind, empty where there is none.
func target(list []relationship, kind string) string {
	for _, r := range list {
		if r.kind == kind {
			return r.target
		}
	}

	return ""
}

// mainPart returns the part that the document begins with, and refuses a container whose part has another root element.
func mainPart(a *build.Archive, kind build.Kind, usual, root string) (string, error) {
	list, err := relationships(a, kind, "")
	if err != nil {
		return "", err
	}
	part := target(list, "officeDocument")
	if part == "" || !a.Has(part) {
		part = usual
	}
	if !a.Has(part) {
		return "", errOther(kind)
	}
	first := ""
	err = eachElement(a, kind, part, func(e xml.StartElement) error {
		first = e.Name.Local

		return io.EOF
	})
	if err == nil && first != root {
		err = errOther(kind)
	}

	return part, err
}

func errOther(kind build.Kind) error {
	return build.Corrupt("The file is not a " + kind.Name + ", or it is damaged; save it again as " + kind.Ext + " and send the new file.")
}

// eachElement calls f for each start tag of a part, until f returns an error; io.EOF stops without one.
func eachElement(a *build.Archive, kind build.Kind, part string, f func(xml.StartElement) error) error {
	return eachToken(a, kind, part, func(_ *build.Decoder, token xml.Token) error {
		if e, ok := token.(xml.StartElement); ok {
			return f(e)
		}

		return nil
	})
}

// eachToken calls f for each token of a part, until f returns an error; io.EOF stops without one. f may read on, to the
// end of an element at most.
func eachToken(a *build.Archive, kind build.Kind, part string, f func(*build.Decoder, xml.Token) error) error {
	reader, err := a.Open(part)
	if err != nil {
		return err
	}
	d := build.NewDecoder(reader, kind)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(d, token); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// properties reads what a file says about itself: the title is returned, all else goes into the metadata. Damage to them
// does not matter.
func properties(a *build.Archive, kind build.Kind, b *build.Builder) string {
	part := "docProps/core.xml"
	if list, err := relationships(a, kind, ""); err == nil {
		if named := target(list, "core-properties"); named != "" {
			part = named
		}
	}
	var name, title string
	var value strings.Builder
	_ = eachToken(a, kind, part, func(_ *build.Decoder, token xml.Token) error {
		switch t := token.(type) {
		case xml.StartElement:
			name = t.Name.Local
			value.Reset()
		case xml.CharData:
			if value.Len() < 4<<10 {
				value.Write(t)
			}
		case xml.EndElement:
			switch {
			case t.Name.Local != name:
			case name == "title":
				title = build.Line(value.String())
			case name == "creator":
				b.SetMetadata("author", value.String())
			case name == "subject" || name == "keywords" || name == "description" || name == "language":
				b.SetMetadata(name, value.String())
			}
			name = ""
		}

		return nil
	})

	return title
}

// isOn reads an attribute that switches a property on, which an absent value does as well.
func isOn(value string) bool {
	switch value {
	case "0", "false", "off", "none":
		return false
	default:
		return true
	}
}
