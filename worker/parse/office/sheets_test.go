package office

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

// sheetXML writes a sheet's part with its texts inline.
func sheetXML(rows ...[]string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`)
	for i, row := range rows {
		fmt.Fprintf(&b, `<row r="%d">`, i+1)
		for j, text := range row {
			name, _ := excelize.CoordinatesToCellName(j+1, i+1)
			fmt.Fprintf(&b, `<c r="%s" t="inlineStr"><is><t>%s</t></is></c>`, name, text)
		}
		b.WriteString(`</row>`)
	}

	return b.String() + `</sheetData></worksheet>`
}

// xlsx writes a workbook of one sheet part, with further parts.
func xlsx(t testing.TB, sheet string, parts ...string) []byte {
	t.Helper()
	workbook := `<?xml version="1.0" encoding="UTF-8"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Parts" sheetId="1" r:id="rId1"/></sheets></workbook>`

	return container(t, "xl/workbook.xml", append([]string{"xl/workbook.xml", workbook,
		"xl/_rels/workbook.xml.rels", rels("worksheet", "worksheets/sheet1.xml", "styles", "styles.xml", "sharedStrings", "sharedStrings.xml"),
		"xl/worksheets/sheet1.xml", sheet}, parts...)...)
}

func TestSheets(t *testing.T) {
	t.Parallel()

	file := excelize.NewFile()
	set := func(sheet, cell string, value any) {
		t.Helper()
		if err := file.SetCellValue(sheet, cell, value); err != nil {
			t.Fatal(err)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(file.SetSheetName("Sheet1", "Orders"))
	for i, name := range []string{"No", "Part", "Date", "Share", "Sum"} {
		cell, _ := excelize.CoordinatesToCellName(i+1, 3)
		set("Orders", cell, name)
	}
	set("Orders", "A5", 1)
	set("Orders", "B5", "Seal\nring")
	set("Orders", "C5", time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))
	date, percent := "yyyy-mm-dd", 9
	style, err := file.NewStyle(&excelize.Style{CustomNumFmt: &date})
	check(err)
	check(file.SetCellStyle("Orders", "C5", "C5", style))
	set("Orders", "D5", 0.25)
	style, err = file.NewStyle(&excelize.Style{NumFmt: percent})
	check(err)
	check(file.SetCellStyle("Orders", "D5", "D5", style))
	set("Orders", "E5", 42)
	check(file.SetCellFormula("Orders", "E5", "6*7"))
	set("Orders", "B6", "merged")
	check(file.MergeCell("Orders", "B6", "D6"))
	set("Orders", "E6", true)
	_, err = file.NewSheet("Empty")
	check(err)
	_, err = file.NewSheet("Notes (hidden)")
	check(err)
	set("Notes (hidden)", "A1", "only one row")
	check(file.SetSheetVisible("Notes (hidden)", false))
	check(file.SetDocProps(&excelize.DocProperties{Title: "Orders of 2026", Creator: "A. Muster"}))
	buf, err := file.WriteToBuffer()
	check(err)

	doc := mustParse(t, Sheets, buf.Bytes())
	want := "table [Orders] No | Part | Date | Share | Sum\n1 | Seal ring | 2026-03-04 | 25% | 42\n | merged |  |  | TRUE\n[Notes (hidden)] only one row\n"
	if diff := cmp.Diff(want, buildtest.Outline(doc)); diff != "" {
		t.Error(diff)
	}
	if doc.Title != "Orders of 2026" || doc.Metadata["author"] != "A. Muster" || doc.Type != parse.TypeXLSX {
		t.Errorf("title %q, metadata %v, type %q", doc.Title, doc.Metadata, doc.Type)
	}
	if doc.Blocks[0].Header != "No | Part | Date | Share | Sum" {
		t.Errorf("header %q", doc.Blocks[0].Header)
	}
}

func TestALargeSheetMakesManyBlocksWithOneHeader(t *testing.T) {
	t.Parallel()

	rows := [][]string{{"No", "Name"}}
	for i := range 20_000 {
		rows = append(rows, []string{fmt.Sprint(i), "some part of a pump"})
	}
	doc := mustParse(t, Sheets, xlsx(t, sheetXML(rows...)))
	lines := 0
	for _, block := range doc.Blocks {
		lines += strings.Count(block.Text, "\n") + 1
		if block.Header != "No | Name" || len(block.Text) > 34<<10 || len(block.Path) != 1 {
			t.Fatalf("a block of %d bytes with header %q in %q", len(block.Text), block.Header, block.Path)
		}
	}
	if len(doc.Blocks) < 10 || lines != len(rows) {
		t.Errorf("%d blocks of %d rows", len(doc.Blocks), lines)
	}
}

func TestSheetsThroughTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())

	var shared strings.Builder
	shared.WriteString(`<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>first</t></si><si><r><t>se</t></r><r><t>cond</t></r></si>`)
	for i := range 500_000 {
		fmt.Fprintf(&shared, "<si><t>a text that nobody uses %d</t></si>", i)
	}
	shared.WriteString(`</sst>`)
	sheet := `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c></row></sheetData></worksheet>`
	doc := mustParse(t, Sheets, xlsx(t, sheet, "xl/sharedStrings.xml", shared.String()))
	if doc.Text != "first | second" {
		t.Errorf("got %q", doc.Text)
	}
}

func TestHostileWorkbooks(t *testing.T) {
	t.Parallel()

	far := func(n int) string { return strings.Repeat(`<row><c r="XFD1"><v>1</v></c></row>`, n) }
	sheet := func(rows string) string {
		return `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>` + rows + `</sheetData></worksheet>`
	}
	formats := func(n int, code string) string {
		return `<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts>` + strings.Repeat(`<numFmt numFmtId="200" formatCode="`+code+`"/>`, n) + `</numFmts><cellXfs><xf/><xf numFmtId="200"/></cellXfs></styleSheet>`
	}
	styled := sheet(strings.Repeat(`<row><c s="1"><v>1</v></c></row>`, 5000))
	for _, test := range []struct {
		name, want string
		data       []byte
	}{
		{"CellsFarToTheRight", "", xlsx(t, sheet(far(500)))},
		{"TooManyCellsFarToTheRight", "too_large", xlsx(t, sheet(far(3100)))},
		{"RowsFarBelow", "", xlsx(t, sheet(`<row r="1048576"><c r="A1048576"><v>1</v></c></row>`))},
		{"RowsBeyondTheLast", "corrupt", xlsx(t, sheet(`<row r="1"><c><v>1</v></c></row><row r="1048577"><c><v>1</v></c></row>`))},
		{"ManyFormats", "", xlsx(t, styled, "xl/styles.xml", formats(100_000, "0.0"))},
		{"LongFormats", "", xlsx(t, styled, "xl/styles.xml", formats(1, strings.Repeat("0", 100_000)))},
		{"SharedStringsThatAreMissing", "empty", xlsx(t, sheet(`<row r="1"><c t="s"><v>7</v></c></row>`))},
		{"NoSheets", "corrupt", container(t, "xl/workbook.xml", "xl/workbook.xml", `<workbook/>`)},
		{"TextThatRepeatsWithoutEnd", "too_large", xlsx(t, sheet(strings.Repeat(`<row><c t="s"><v>0</v></c></row>`, 80_000)), "xl/sharedStrings.xml",
			`<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>`+strings.Repeat("x", 1000)+`</t></si></sst>`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			doc, err := Sheets(test.data)
			if test.want != "" && buildtest.Code(err) != test.want || test.want == "" && err != nil {
				t.Errorf("got %v (%s), want %q", err, buildtest.Code(err), test.want)
			}
			if err := buildtest.CheckResult(doc, err); err != nil {
				t.Error(err)
			}
		})
	}
}

func FuzzSheets(f *testing.F) {
	f.Add([]byte(sheetXML([]string{"a", "b"}, []string{"", "c"})), []byte(`<sst><si><t>x</t></si></sst>`), []byte(`<styleSheet/>`))
	f.Add([]byte(`<worksheet><sheetData><row r="3"><c r="B3" s="1" t="s"><f>1+1</f><v>0</v></c><c><v>44000</v></c></row></sheetData><mergeCells/></worksheet>`),
		[]byte(`<sst><si><r><t>x</t></r></si></sst>`), []byte(`<styleSheet><numFmts><numFmt numFmtId="170" formatCode="[$-407]d. mmm yyyy;@"/></numFmts><cellXfs><xf/><xf numFmtId="170"/></cellXfs></styleSheet>`))
	f.Add(xlsx(f, sheetXML([]string{"a"})), []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, sheet, shared, styles []byte) {
		doc, err := Sheets(sheet)
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
		doc, err = Sheets(xlsx(t, string(sheet), "xl/sharedStrings.xml", string(shared), "xl/styles.xml", string(styles)))
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
	})
}
