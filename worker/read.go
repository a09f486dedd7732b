package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/kb-search/kb/worker/docling"
	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/code"
	"github.com/kb-search/kb/worker/parse/epub"
	"github.com/kb-search/kb/worker/parse/html"
	"github.com/kb-search/kb/worker/parse/mail"
	"github.com/kb-search/kb/worker/parse/office"
)

// codeConverter is the error code of a file that only a converter outside the process can read, which is away.
const codeConverter = "converter_unavailable"

// PDFParser turns a PDF into blocks. A file that can't be read gives a *parse.Error.
type PDFParser interface {
	Parse(ctx context.Context, data []byte) (parse.Document, error)
}

// Converter turns PDFs and images into blocks, outside the process. A file that can't be read gives a *parse.Error, a
// converter that can't be used docling.ErrUnreachable.
type Converter interface {
	Convert(ctx context.Context, filename string, data []byte) (parse.Document, error)
}

// Reader turns files of any kind into blocks.
type Reader struct {
	// PDF reads PDFs; without it they are refused, unless there is a Converter.
	PDF PDFParser
	// Converter reads images, and PDFs before PDF is asked; nil when there is none.
	Converter Converter
	// Logger hears why the Converter could not be used.
	Logger *slog.Logger
}

// read turns a file into blocks, by its format. A warning says what went otherwise than it was meant to.
func (r Reader) read(ctx context.Context, source Source) (doc parse.Document, warning string, err error) {
	format, err := parse.Identify(source.Filename, source.DocType, bytes.NewReader(source.Data), int64(len(source.Data)))
	if err != nil {
		return parse.Document{}, "", err
	}
	switch format {
	case parse.FormatPDF:
		return r.readPDF(ctx, source)
	case parse.FormatImage:
		doc, err = r.readImage(ctx, source)
	case parse.FormatCode:
		var text string
		if text, err = parse.Decode(source.Data); err == nil {
			doc = code.Parse(ctx, filepath.Ext(source.Filename), text)
		}
	case parse.FormatHTML:
		doc, err = html.Parse(source.Data)
	case parse.FormatDOCX:
		doc, err = office.Word(source.Data)
	case parse.FormatPPTX:
		doc, err = office.Slides(source.Data)
	case parse.FormatXLSX:
		doc, err = office.Sheets(source.Data)
	case parse.FormatEPUB:
		doc, err = epub.Parse(source.Data)
	case parse.FormatEML:
		doc, err = mail.Parse(source.Data)
	default:
		doc, err = parse.Parse(parse.Input{Name: source.Filename, Type: source.DocType, Data: source.Data})
	}
	return doc, "", err
}

// readPDF asks the converter first, and reads the file itself when that fails for another reason than a password.
func (r Reader) readPDF(ctx context.Context, source Source) (parse.Document, string, error) {
	warning := ""
	if r.Converter != nil {
		doc, err := r.Converter.Convert(ctx, source.Filename, source.Data)
		var unreadable *parse.Error
		switch {
		case err == nil:
			return doc, "", nil
		case ctx.Err() != nil, r.PDF == nil:
			return parse.Document{}, "", err
		case errors.As(err, &unreadable):
			if unreadable.Code == "password_required" {
				return parse.Document{}, "", err
			}
			warning = fmt.Sprintf("Docling could not read the file (%s); it was read by PDFium, without tables and text recognition.", unreadable.Message)
		default:
			r.Logger.WarnContext(ctx, "Docling could not be used", slog.Any("error", err))
			warning = "Docling could not be used; the file was read by PDFium, without tables and text recognition."
		}
	}
	if r.PDF == nil {
		return parse.Document{}, "", &parse.Error{Code: "unsupported_type", Message: "PDF files are not read here"}
	}
	doc, err := r.PDF.Parse(ctx, source.Data)
	return doc, warning, err
}

func (r Reader) readImage(ctx context.Context, source Source) (parse.Document, error) {
	if r.Converter == nil {
		return parse.Document{}, &parse.Error{Code: "unsupported_type", Message: "images are read by Docling, which is not configured: set KB_DOCLING_URL"}
	}
	doc, err := r.Converter.Convert(ctx, source.Filename, source.Data)
	if errors.Is(err, docling.ErrUnreachable) {
		r.Logger.WarnContext(ctx, "Docling could not be used", slog.Any("error", err))
		return parse.Document{}, &parse.Error{Code: codeConverter, Message: "Docling can't be used at the moment; try the job again when it is back."}
	}
	return doc, err
}
