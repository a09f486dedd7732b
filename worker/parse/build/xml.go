package build

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"io"

	"golang.org/x/net/html/charset"
)

const (
	maxToken = 8 << 20 // Bytes of one tag or run of text.
	maxDepth = 4096
)

// Decoder reads an XML entry token by token in bounded memory: deep nesting and giant tags are refused.
type Decoder struct {
	xml    *xml.Decoder
	source *tokenReader
	kind   Kind
	depth  int

	lenient bool
}

// NewDecoder reads XML, and refuses document type declarations; the kind is for the messages of errors.
func NewDecoder(r io.Reader, kind Kind) *Decoder {
	source := &tokenReader{reader: bufio.NewReader(r), kind: kind}
	d := &Decoder{xml: xml.NewDecoder(source), source: source, kind: kind}
	d.xml.CharsetReader = charset.NewReaderLabel

	return d
}

// Lenient accepts what is not well-formed as far as that goes, the names of HTML's entities, and document type
// declarations, which are ignored: what they declare stays unknown.
func (d *Decoder) Lenient() {
	d.xml.Strict = false
	d.xml.Entity = xml.HTMLEntity
	d.lenient = true
}

// Token returns the next token, io.EOF at the end, or a *parse.Error. Its bytes are valid until the next call.
func (d *Decoder) Token() (xml.Token, error) {
	d.source.left = maxToken
	token, err := d.xml.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, Blame(err, d.kind.Corrupt().Message)
	}
	switch t := token.(type) {
	case xml.StartElement:
		if d.depth++; d.depth > maxDepth {
			return nil, d.kind.Corrupt()
		}
	case xml.EndElement:
		d.depth--
	case xml.Directive:
		if !d.lenient && bytes.HasPrefix(bytes.ToUpper(t[:min(len(t), 7)]), []byte("DOCTYPE")) {
			return nil, d.kind.Corrupt()
		}
	}

	return token, nil
}

// Skip reads to the end of the element whose start was the last token.
func (d *Decoder) Skip() error {
	for depth := 1; depth > 0; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return d.kind.Corrupt()
		}
		if err != nil {
			return err
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}

	return nil
}

// Attr returns the value of the attribute with the local name, empty where there is none.
func Attr(e xml.StartElement, local string) string {
	for _, a := range e.Attr {
		if a.Name.Local == local && a.Name.Space != "xmlns" {
			return a.Value
		}
	}

	return ""
}

// tokenReader hands out bytes singly, so that it knows what a token takes.
type tokenReader struct {
	reader *bufio.Reader
	kind   Kind
	left   int
}

func (r *tokenReader) ReadByte() (byte, error) {
	if r.left--; r.left < 0 {
		return 0, r.kind.TooLarge()
	}

	return r.reader.ReadByte()
}

func (r *tokenReader) Read(p []byte) (int, error) {
	n, err := r.reader.Read(p[:min(len(p), max(r.left, 1))])
	if r.left -= n; r.left < 0 {
		return 0, r.kind.TooLarge()
	}

	return n, err
}
