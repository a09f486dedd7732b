// Package mail reads email messages (EML): who wrote what to whom and when, the text, and the messages attached. Other
// attachments are listed by their names and not read. Multiparts are split here, in linear time; headers and encodings of
// each part are enmime's business. Its invariant: whatever the bytes, a parse ends with a document of at least one block or a *parse.Error.
package mail

import (
	"bytes"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"time"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

const (
	maxMessages    = 3 // Levels of messages within messages that are read.
	maxAttachments = 1000
	maxHeader      = 8 << 10 // Bytes of a header that are decoded.
	maxPeople      = 500     // Bytes of a header in the text.
)

// Parse reads a message. The error is a *parse.Error whose Code is "corrupt", "too_large", "unsupported_type" (a message
// saved by Outlook) or "empty".
func Parse(data []byte) (parse.Document, error) {
	if bytes.HasPrefix(data, []byte(parse.SignatureOLE)) {
		return parse.Document{}, &parse.Error{Code: "unsupported_type", Message: "The file is in Outlook's own format; save the message as .eml."}
	}
	root, err := readMessage(data)
	if err != nil {
		return parse.Document{}, err
	}
	if !isMessage(root.Header) {
		return parse.Document{}, build.Corrupt("The file is not an email message, or it is damaged; save the message again as .eml.")
	}

	m := message{b: build.New(parse.TypeEML)}
	h := root.Header
	m.b.SetTitle(header(h, "Subject"))
	m.b.SetMetadata("from", header(h, "From"))
	m.b.SetMetadata("to", header(h, "To"))
	m.b.SetMetadata("cc", header(h, "Cc"))
	m.b.SetMetadata("message_id", strings.Trim(header(h, "Message-Id"), "<>"))
	if date, err := netmail.ParseDate(header(h, "Date")); err == nil {
		m.b.SetMetadata("date", date.Format(time.RFC3339))
	}
	m.people(h)
	if err := m.walk(root, 1); err != nil {
		return parse.Document{}, err
	}
	m.b.SetMetadataList("attachments", m.attachments)

	return m.b.Document()
}

// isMessage reports whether a header has a field that any message has.
func isMessage(h textproto.MIMEHeader) bool {
	for _, name := range []string{"From", "To", "Subject", "Date", "Message-Id", "Received", "Content-Type", "Mime-Version"} {
		if h.Get(name) != "" {
			return true
		}
	}

	return false
}

// message walks the parts of a message.
type message struct {
	b           *build.Builder
	attachments []string
}

// people writes who wrote to whom and when, so that they can be found.
func (m *message) people(h textproto.MIMEHeader) {
	var lines []string
	for _, name := range []string{"From", "To", "Cc", "Date"} {
		value := header(h, name)
		if len(value) > maxPeople {
			value = strings.ToValidUTF8(value[:maxPeople], "") + "…"
		}
		if date, err := netmail.ParseDate(value); err == nil && name == "Date" {
			value = date.Format("2006-01-02 15:04 -0700")
		}
		if value != "" {
			lines = append(lines, name+": "+value)
		}
	}
	m.b.Paragraph(strings.Join(lines, "\n"))
}

// walk appends a part and those in it; depth counts the messages around it.
func (m *message) walk(p *part, depth int) error {
	if len(p.children) > 0 {
		return m.walkParts(p, depth)
	}
	switch {
	case p.ContentType == "message/rfc822" && depth <= maxMessages:
		m.attach(p)

		return m.walkMessage(p, depth)
	case p.Disposition == "attachment" || p.FileName != "":
		m.attach(p)
	case isText(p):
		m.text(p)
	}

	return nil
}

// walkParts appends the parts of a part. Of alternatives, plain text is read where there is some.
func (m *message) walkParts(p *part, depth int) error {
	plain := p.ContentType == "multipart/alternative" && hasPlain(p)
	for _, child := range p.children {
		if plain && isText(child) && child.ContentType == "text/html" {
			continue
		}
		if plain && len(child.children) > 0 && !hasPlain(child) {
			m.attachAll(child)

			continue
		}
		if err := m.walk(child, depth); err != nil {
			return err
		}
	}

	return nil
}

// hasPlain reports whether a part holds plain text that is part of the message.
func hasPlain(p *part) bool {
	for _, child := range p.children {
		if len(child.children) > 0 && hasPlain(child) ||
			isText(child) && child.ContentType != "text/html" && !parse.Blank(plainText(child.Content)) {
			return true
		}
	}

	return false
}

// isText reports whether a part is text of the message itself.
func isText(p *part) bool {
	if len(p.children) > 0 || p.Disposition == "attachment" || p.FileName != "" {
		return false
	}
	switch p.ContentType {
	case "", "text/plain", "text/html":
		return true
	default:
		return strings.HasPrefix(p.ContentType, "multipart/") // Without parts: its text is all there is.
	}
}

// attachAll lists what is attached within parts that are not read.
func (m *message) attachAll(p *part) {
	for _, child := range p.children {
		if len(child.children) > 0 {
			m.attachAll(child)
		} else {
			m.attach(child)
		}
	}
}

// attach lists a part by its name. Pictures that the text shows are not listed.
func (m *message) attach(p *part) {
	shown := p.ContentID != "" && p.Disposition != "attachment"
	if p.FileName != "" && !shown && len(m.attachments) < maxAttachments {
		m.attachments = append(m.attachments, p.FileName)
	}
}

// walkMessage appends an attached message under its subject.
func (m *message) walkMessage(p *part, depth int) error {
	root, err := readMessage(p.Content)
	if err != nil {
		return err
	}
	if !isMessage(root.Header) {
		return nil
	}
	subject := header(root.Header, "Subject")
	if parse.Blank(subject) {
		subject = header(root.Header, "From")
	}
	if parse.Blank(subject) {
		subject = "Message"
	}
	m.b.Enter(subject)
	m.people(root.Header)
	err = m.walk(root, depth+1)
	m.b.Leave()

	return err
}
