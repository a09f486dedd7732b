package docling

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/kb-search/kb/worker/parse"
)

// file is what is to be converted.
type file struct {
	name string // Without folders, with an extension.
	kind string // Its document type.
	data []byte
}

// newFile tells a PDF from an image: by the first bytes where they say so, else by the extension.
func newFile(name string, data []byte) file {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	ext := strings.ToLower(path.Ext(name))
	content := http.DetectContentType(data)
	kind := parse.TypeImage
	if bytes.Contains(data[:min(len(data), 1024)], []byte("%PDF-")) || ext == ".pdf" && !strings.HasPrefix(content, "image/") {
		kind = parse.TypePDF
	}
	if ext == "" || ext == "." {
		name = "file" + extension(kind, content)
	}

	return file{name: name, kind: kind, data: data}
}

func extension(kind, content string) string {
	if kind == parse.TypePDF {
		return ".pdf"
	}
	if subtype, found := strings.CutPrefix(content, "image/"); found {
		return "." + subtype
	}

	return ".png"
}

// noun is what messages call the file.
func (f file) noun() string {
	if f.kind == parse.TypePDF {
		return "PDF"
	}

	return "image"
}

// form is a file and the options of its conversion, ready to be sent. The file's bytes are not copied.
type form struct {
	contentType string
	head, tail  []byte
	data        []byte
}

func newForm(f file, timeout time.Duration) (form, error) {
	var buf bytes.Buffer
	writer := multipart.NewWriter(&buf)
	for _, field := range [][2]string{
		{"to_formats", "json"},
		{"image_export_mode", "placeholder"},
		{"include_images", "false"},
		{"do_pdf_heading_hierarchy", "true"}, // Else all section headers have level 1.
		{"abort_on_error", "false"},
		// Less than the client waits, so that the pages read until then can still be fetched.
		{"document_timeout", strconv.FormatFloat((timeout - timeout/10).Seconds(), 'f', -1, 64)},
	} {
		if err := writer.WriteField(field[0], field[1]); err != nil {
			return form{}, err
		}
	}
	if _, err := writer.CreateFormFile("files", f.name); err != nil {
		return form{}, err
	}
	split := buf.Len()
	if err := writer.Close(); err != nil {
		return form{}, err
	}

	return form{contentType: writer.FormDataContentType(), head: buf.Bytes()[:split], tail: buf.Bytes()[split:], data: f.data}, nil
}

func (f form) size() int64 { return int64(len(f.head) + len(f.data) + len(f.tail)) }

func (f form) body() (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(bytes.NewReader(f.head), bytes.NewReader(f.data), bytes.NewReader(f.tail))), nil
}

func (f file) errTimeout() *parse.Error {
	return &parse.Error{Code: "timeout", Message: "The " + f.noun() + " takes too long to convert; split it, or save it again with another program."}
}

func (f file) errTooLarge() *parse.Error {
	return &parse.Error{Code: "too_large", Message: "The " + f.noun() + " is too large to convert; split it."}
}

func (f file) errNoText() *parse.Error {
	return &parse.Error{Code: "no_text_layer", Message: "No text was found in the " + f.noun() + ", not by text recognition (OCR) either."}
}

func (f file) errPassword() *parse.Error {
	return &parse.Error{Code: "password_required", Message: "The " + f.noun() + " can't be opened without its password; " +
		"save it without one and send it again."}
}

// errCorrupt is the error of a file that can't be converted; reason is docling-serve's and may be empty.
func (f file) errCorrupt(reason string) *parse.Error {
	if reason == "" {
		return &parse.Error{Code: "corrupt", Message: "The " + f.noun() + " is damaged or incomplete and can't be converted."}
	}

	return &parse.Error{Code: "corrupt", Message: "The " + f.noun() + " can't be converted: " + reason}
}

func (f file) errSkipped(reason string) *parse.Error {
	message := "The converter does not take files of this kind"
	if reason != "" {
		message += ": " + reason
	}

	return &parse.Error{Code: "unsupported_type", Message: message}
}
