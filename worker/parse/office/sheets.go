package office

import (
	"bytes"
	"encoding/xml"
	"errors"

	"github.com/xuri/excelize/v2"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build"
)

const (
	maxUnpacked   = 512 << 20
	maxInMemory   = 16 << 20   // Sheets and shared strings beyond this size are read from temporary files.
	maxOtherPart  = 64 << 20   // Parts that are read whole.
	maxCells      = 50_000_000 // Blank ones before others, and rows, count as well.
	maxSheets     = 10_000
	maxFormats    = 2000 // Excel allows about 250.
	maxFormatText = 512  // Excel allows 255 characters.
)

var sheetsKind = build.Kind{Name: "Excel workbook", Ext: ".xlsx"}

// Sheets reads an .xlsx file: each sheet, hidden ones included, is a section of one table whose header is the first row
// that is not empty. Values are as displayed and those of formulas as last computed; of merged cells, the first holds the
// value. Large sheets pass through temporary files, which are gone when it returns. The error is a *parse.Error with the
// codes of Word.
func Sheets(data []byte) (parse.Document, error) {
	a, err := build.OpenArchive(data, sheetsKind)
	if err != nil {
		return parse.Document{}, err
	}
	main, err := mainPart(a, sheetsKind, "xl/workbook.xml", "workbook")
	if err != nil {
		return parse.Document{}, err
	}
	plain, err := checkWorkbook(a, main)
	if err != nil {
		return parse.Document{}, err
	}

	b := build.New(parse.TypeXLSX)
	b.SetTitle(properties(a, sheetsKind, b))
	if err := readSheets(b, data, plain); err != nil {
		return parse.Document{}, err
	}

	return b.Document()
}

// checkWorkbook refuses what would cost the library more than its size is worth. It reports whether numbers have to stay
// as they are stored, because their formats are not what a spreadsheet has.
func checkWorkbook(a *build.Archive, main string) (plain bool, err error) {
	if err := a.Unpack(); err != nil {
		return false, err
	}
	related, err := relationships(a, sheetsKind, main)
	if err != nil {
		return false, err
	}
	sheets := map[string]bool{}
	for _, r := range related {
		if r.kind == "worksheet" || r.kind == "sharedStrings" {
			sheets[r.target] = true
		}
	}
	if a.LargestExcept(sheets) > maxOtherPart || len(related) > maxSheets {
		return false, sheetsKind.TooLarge()
	}

	count := 0
	err = eachElement(a, sheetsKind, main, func(e xml.StartElement) error {
		if e.Name.Local == "sheet" {
			if count++; count > maxSheets {
				return sheetsKind.TooLarge()
			}
		}

		return nil
	})
	styles := target(related, "styles")
	if err != nil || !a.Has(styles) {
		return false, err
	}
	count = 0
	err = eachElement(a, sheetsKind, styles, func(e xml.StartElement) error {
		if e.Name.Local == "numFmt" {
			count++
			plain = plain || count > maxFormats || len(build.Attr(e, "formatCode")) > maxFormatText
		}

		return nil
	})

	return plain, err
}

// readSheets appends the sheets' rows.
func readSheets(b *build.Builder, data []byte, plain bool) (err error) {
	defer func() {
		if recover() != nil { // The library's bugs are not to end the process.
			err = sheetsKind.Corrupt()
		}
	}()
	file, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{
		RawCellValue: plain, UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxInMemory,
	})
	if file != nil {
		defer func() { _ = file.Close() }() // It removes the temporary files.
	}
	if err != nil {
		return sheetsKind.Corrupt()
	}

	budget := maxCells
	for _, name := range file.GetSheetList() {
		if err := readSheet(b, file, name, &budget); err != nil {
			return err
		}
	}

	return nil
}

func readSheet(b *build.Builder, file *excelize.File, name string, budget *int) error {
	rows, err := file.Rows(name)
	if errors.As(err, new(excelize.ErrSheetNotExist)) {
		return nil
	}
	if err != nil {
		return sheetsKind.Corrupt()
	}
	begun := false
	for rows.Next() && !b.Full() {
		cells, err := rows.Columns()
		if *budget -= len(cells) + 1; *budget < 0 {
			_ = rows.Close()

			return sheetsKind.TooLarge()
		}
		if err != nil {
			_ = rows.Close()

			return sheetsKind.Corrupt()
		}
		if len(cells) == 0 || blank(cells) {
			continue
		}
		if !begun {
			begun = true
			b.EndSections()
			b.Heading(1, name)
		}
		b.Row(cells)
	}
	b.EndTable()
	if rows.Close() != nil {
		return sheetsKind.Corrupt()
	}

	return nil
}

func blank(cells []string) bool {
	for _, cell := range cells {
		if cell != "" && !parse.Blank(cell) {
			return false
		}
	}

	return true
}
