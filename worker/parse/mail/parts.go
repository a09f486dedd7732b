package mail

import (
	"bytes"
	"mime"
	"net/textproto"
	"strings"
	"unicode/utf8"

	"github.com/jhillyerd/enmime/v2"
	"github.com/jhillyerd/enmime/v2/mediatype"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"

	"github.com/kb-search/kb/worker/parse/build"
	"github.com/kb-search/kb/worker/parse/html"
)

const (
	maxNesting   = 10 // Levels of multiparts; each level holds a copy of what is in it.
	maxParts     = 10_000
	maxMediaType = 4 << 10
)

// part is a part of a message, with the parts that it holds if it is a multipart.
type part struct {
	*enmime.Part
	children []*part
}

// readMessage takes a message apart. The error is a *parse.Error.
func readMessage(data []byte) (root *part, err error) {
	defer func() {
		if recover() != nil { // The library's bugs are not to end the process.
			root, err = nil, errDamaged()
		}
	}()
	data = bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), "\r\n")
	if bytes.HasPrefix(data, []byte("From ")) { // As mailboxes begin each message.
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	left := maxParts

	return readPart(data, 0, &left)
}

func errDamaged() error {
	return build.Corrupt("The message is damaged and can't be read; save it again as .eml.")
}

// readPart reads a part and those in it. The library sees no multiparts: its time grows with a power of their depth.
func readPart(data []byte, depth int, left *int) (*part, error) {
	if *left--; *left < 0 || depth > maxNesting {
		return nil, build.TooLarge("The message has too many parts to read; forward the part that matters as a message of its own.")
	}
	boundary := ""
	p, err := enmime.NewParser(
		enmime.MultipartWOBoundaryAsSinglePart(true), enmime.DisableCharacterDetection(true), enmime.MaxStoredPartErrors(1),
		enmime.SetCustomParseMediaType(func(value string) (string, map[string]string, []string, error) {
			name, params, invalid := mediaType(value)
			if strings.HasPrefix(name, "multipart/") && boundary == "" {
				boundary = params["boundary"]
			}
			delete(params, "boundary")

			return name, params, invalid, nil
		}),
		enmime.SetReadPartErrorPolicy(func(*enmime.Part, error) bool { return true }), // What could be decoded is better than nothing.
	).ReadParts(bytes.NewReader(data))
	if err != nil {
		return nil, errDamaged()
	}
	result := &part{Part: p}
	if boundary == "" || !strings.HasPrefix(p.ContentType, "multipart/") {
		return result, nil
	}
	for _, piece := range split(p.Content, boundary) {
		child, err := readPart(piece, depth+1, left)
		if err != nil {
			return nil, err
		}
		result.children = append(result.children, child)
	}

	return result, nil
}

// mediaType reads the value of a Content-Type or Content-Disposition header. Text in no declared encoding passes as it is.
func mediaType(value string) (string, map[string]string, []string) {
	value = value[:min(len(value), maxMediaType)]
	name, params, invalid, err := mediatype.Parse(value)
	if err != nil {
		name, _, _ = strings.Cut(value, ";")
		name, params, invalid = strings.ToLower(strings.TrimSpace(name)), nil, nil
	}
	if params == nil {
		params = map[string]string{}
	}
	switch strings.ToLower(params["charset"]) {
	case "", "us-ascii", "ascii", "ansi_x3.4-1968":
		params["charset"] = "utf-8" // The library then leaves the bytes alone.
	}

	return name, params, invalid
}

// split returns what stands between a multipart's boundaries. The last one may be missing.
func split(body []byte, boundary string) [][]byte {
	marker := []byte("--" + boundary)
	var pieces [][]byte
	start := -1
	for at := 0; at < len(body); {
		i := bytes.Index(body[at:], marker)
		if i < 0 {
			break
		}
		i += at
		at = i + len(marker)
		if i > 0 && body[i-1] != '\n' {
			continue
		}
		rest, _, _ := bytes.Cut(body[at:], []byte("\n"))
		tail, last := bytes.CutPrefix(rest, []byte("--"))
		if len(bytes.TrimSpace(tail)) > 0 {
			continue // A longer boundary, or text.
		}
		if start >= 0 {
			pieces = append(pieces, bytes.TrimSuffix(bytes.TrimSuffix(body[min(start, i):i], []byte("\n")), []byte("\r")))
		}
		if last {
			return pieces
		}
		start = min(at+len(rest)+1, len(body))
	}
	if start >= 0 && start < len(body) {
		pieces = append(pieces, body[start:])
	}

	return pieces
}

// header returns a header's value, decoded and on one line.
func header(h textproto.MIMEHeader, name string) string {
	value := h.Get(name)
	if len(value) > maxHeader {
		value = value[:maxHeader]
	}
	decoder := mime.WordDecoder{CharsetReader: charset.NewReaderLabel}
	if decoded, err := decoder.DecodeHeader(value); err == nil {
		value = decoded
	}

	return build.Line(plainText([]byte(value)))
}

// plainText decodes what is UTF-8 or else Windows-1252.
func plainText(data []byte) string {
	if !utf8.Valid(data) {
		if text, err := charmap.Windows1252.NewDecoder().Bytes(data); err == nil {
			return string(text)
		}
	}

	return string(data)
}

// text appends a part's text.
func (m *message) text(p *part) {
	if p.ContentType == "text/html" {
		html.Append(m.b, html.Decode(p.Content, ""))

		return
	}
	text := strings.ReplaceAll(plainText(p.Content), "\r\n", "\n")
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		m.b.Paragraph(strings.TrimLeft(paragraph, "\n"))
	}
}
