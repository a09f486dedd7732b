package docling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

// check is buildtest.Check without its rule that pages ascend: docling's order is that of reading.
func check(doc parse.Document) error {
	doc.Blocks = slices.Clone(doc.Blocks)
	for i := range doc.Blocks {
		if doc.Blocks[i].Page < 0 {
			return fmt.Errorf("block %d is on page %d", i, doc.Blocks[i].Page)
		}
		doc.Blocks[i].Page = 0
	}
	if _, err := json.Marshal(doc.Metadata); err != nil {
		return err
	}

	return buildtest.Check(doc)
}

func convert(t testing.TB, data string) (parse.Document, error) {
	t.Helper()
	d, err := readDocument(json.NewDecoder(strings.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := d.convert(file{kind: parse.TypePDF}, nil)
	if err == nil {
		if err := check(doc); err != nil {
			t.Error(err)
		}
	}

	return doc, err
}

func TestReport(t *testing.T) {
	t.Parallel()
	data := string(testdata(t, "report.json"))
	want := `1 [Annual Report 2025] Revenue grew in all regions.
1 [Annual Report 2025 > Results] The gross margin rose (see Table 1) by 3, to 41 %.
2 [Annual Report 2025 > Results > Regions] Table 1: Revenue by region, in million euros
2 table [Annual Report 2025 > Results > Regions] Region | 2024 |  | 2025
 | H1 | H2 | H1 | H2
North and East | 10 | 11 | 12 | 13
South |  | 5 a) | 6 | 7
2 [Annual Report 2025 > Results > Regions] a) without disposals
2 [Annual Report 2025 > Results > Regions] All numbers are preliminary.
2 [Annual Report 2025 > Results > Regions] 1. Open a second plant
2. Hire staff:
  - welders
  - fitters
3 [Annual Report 2025 > Results > Regions] 3. Report back
3 [Annual Report 2025 > Results > Regions] Figure 1: The plant
3 [Annual Report 2025 > Results > Regions] A factory hall with a red door.
3 [Annual Report 2025 > Method] m = r / c
3 code [Annual Report 2025 > Method] def margin(r, c):
    return r / c
3 [Annual Report 2025 > Method] - [x] audited
3 [Annual Report 2025 > Method] 1 Unaudited.
`
	for name, data := range map[string]string{
		"ReferencesAsOverHTTP":   data,
		"ReferencesAsFromPython": strings.ReplaceAll(data, `"$ref"`, `"cref"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := convert(t, data)
			if err != nil {
				t.Fatal(err)
			}
			if got := buildtest.Outline(doc); got != want || doc.Title != "Annual Report 2025" {
				t.Errorf("title %q, got\n%s", doc.Title, got)
			}
			if header := doc.Blocks[3].Header; header != "Region | 2024 |  | 2025\n | H1 | H2 | H1 | H2" {
				t.Errorf("header is %q", header)
			}
		})
	}
}

// small writes a document whose body refers to the given nodes in order, such as "#/texts/0".
func small(body, rest string) string {
	var refs []string
	for _, name := range strings.Fields(body) {
		refs = append(refs, fmt.Sprintf(`{"$ref": "#/%s"}`, name))
	}

	return fmt.Sprintf(`{"body": {"children": [%s]}, %s}`, strings.Join(refs, ", "), rest)
}

func TestDocument(t *testing.T) {
	t.Parallel()
	cells := func(rows ...string) string {
		var list []string
		for r, row := range rows {
			for c, text := range strings.Split(row, ",") {
				list = append(list, fmt.Sprintf(`{"text": %q, "start_row_offset_idx": %d, "start_col_offset_idx": %d, "column_header": %v}`,
					strings.TrimPrefix(text, "!"), r, c, strings.HasPrefix(text, "!")))
			}
		}

		return `{"table_cells": [` + strings.Join(list, ", ") + `]}`
	}
	for name, test := range map[string]struct{ data, want string }{
		"CyclesEnd": {small("groups/0 texts/0", `"groups": [{"label": "list", "children": [{"$ref": "#/groups/1"}, {"$ref": "#/body"}]},
			{"label": "inline", "children": [{"$ref": "#/groups/0"}, {"$ref": "#/groups/1"}, {"$ref": "#/texts/0"}]}],
			"texts": [{"label": "text", "text": "once", "children": [{"$ref": "#/texts/0"}, {"$ref": "#/groups/0"}]}]`), "[] once\n"},
		"ReferencesToNothingAreLeftOut": {small("texts/7 texts/-1 texts/x texts nothing/0 groups/99999999999999999999 texts/0",
			`"texts": [{"label": "text", "text": "here", "children": [{}, {"$ref": "#"}, null]}]`), "[] here\n"},
		"AHeadingWithoutTitleIsOutermost": {small("texts/0 texts/1", `"texts": [{"label": "section_header", "text": "A", "level": 1},
			{"label": "paragraph", "text": "b"}]`), "[A] b\n"},
		"LevelsOutOfRangeAreBounded": {small("texts/0 texts/1 texts/2", `"texts": [{"label": "section_header", "text": "A", "level": -5},
			{"label": "section_header", "text": "B", "level": 9999999}, {"label": "text", "text": "c"}]`), "[A > B] c\n"},
		"AHeadingAloneIsText": {small("texts/0", `"texts": [{"label": "title", "text": "Only"}]`), "[] Only\n"},
		"ATextCanStandInAnInlineGroup": {small("groups/0", `"groups": [{"label": "list", "children": [{"$ref": "#/texts/0"}]},
			{"label": "inline", "children": [{"$ref": "#/texts/1"}, {"$ref": "#/texts/2"}]}],
			"texts": [{"label": "list_item", "text": "", "children": [{"$ref": "#/groups/1"}]}, {"label": "text", "text": "Read"},
			{"label": "text", "text": "this.", "prov": [{"page_no": 4}]}]`), "4 [] - Read this.\n"},
		"TwoListsAreTwoBlocks": {small("groups/0 groups/1", `"groups": [{"label": "list", "children": [{"$ref": "#/texts/0"}]},
			{"label": "ordered_list", "children": [{"$ref": "#/texts/1"}]}],
			"texts": [{"label": "list_item", "text": "a", "marker": "*"}, {"label": "list_item", "text": "b", "enumerated": true, "marker": ""}]`), "[] - a\n[] - b\n"},
		"ListsInListsAreIndented": {small("groups/0", `"groups": [{"label": "list", "children": [{"$ref": "#/texts/0"}, {"$ref": "#/groups/1"}]},
			{"label": "list", "children": [{"$ref": "#/texts/1"}]}],
			"texts": [{"label": "list_item", "text": "a"}, {"label": "list_item", "text": "b", "enumerated": true, "marker": "(i)"}]`), "[] - a\n  (i) b\n"},
		"FurnitureIsLeftOut": {small("texts/0 texts/1 texts/2 groups/0", `"groups": [{"content_layer": "background", "children": [{"$ref": "#/texts/3"}]}],
			"texts": [{"label": "page_header", "text": "h"}, {"label": "text", "content_layer": "furniture", "text": "f"},
			{"label": "page_footer", "text": "3"}, {"label": "text", "text": "t"}]`), "[] t\n"},
		"ACaptionComesWithItsTable": {small("texts/0 texts/1 tables/0", `"texts": [{"label": "caption", "text": "Prices", "prov": [{"page_no": 2}]},
			{"label": "text", "text": "Before."}], "tables": [{"captions": [{"$ref": "#/texts/0"}], "prov": [{"page_no": 1}], "data": `+cells("a,b", "1,2")+`}]`),
			"[] Before.\n2 [] Prices\n1 table [] a | b\n1 | 2\n"},
		"ATableOfOneColumnIsText": {small("tables/0", `"tables": [{"data": `+cells("!a", "b")+`}]`), "[] a\n[] b\n"},
		"ATableWithoutCellsIsLeftOut": {small("tables/0 tables/1 texts/0", `"tables": [{"data": null}, {"data": {"table_cells": []}}],
			"texts": [{"text": "t"}]`), "[] t\n"},
		"CellsInAnyOrderFindTheirPlace": {small("tables/0", `"tables": [{"data": {"table_cells": [
			{"text": "d", "start_row_offset_idx": 5, "start_col_offset_idx": 2}, {"text": "c", "start_row_offset_idx": 5, "start_col_offset_idx": 0},
			{"text": "a", "start_row_offset_idx": -1, "start_col_offset_idx": -3}, {"text": "b", "start_row_offset_idx": -1, "start_col_offset_idx": 1}]}}]`),
			"table [] a | b\nc |  | d\n"},
		"ACellCanReferToItsText": {small("tables/0", `"tables": [{"children": [{"$ref": "#/groups/0"}], "data": {"table_cells": [{"text": "a"},
			{"text": "", "start_col_offset_idx": 1, "ref": {"$ref": "#/groups/0"}}, {"text": "c", "start_row_offset_idx": 1}]}}],
			"groups": [{"label": "unspecified", "children": [{"$ref": "#/texts/0"}, {"$ref": "#/texts/1"}]}],
			"texts": [{"text": "rich"}, {"text": "cell"}]`), "table [] a | rich cell\nc\n"},
		"TextInAPictureIsLeftOut": {small("pictures/0 texts/1", `"pictures": [{"children": [{"$ref": "#/texts/0"}], "annotations": [{"kind": "description",
			"text": "A cat."}, {"kind": "misc", "text": "x"}]}], "texts": [{"text": "axis"}, {"text": "t"}]`), "[] A cat.\n[] t\n"},
		"TextInAPictureIsTakenWhereThereIsNoOther": {small("pictures/0", `"pictures": [{"children": [{"$ref": "#/texts/0"}]}],
			"texts": [{"text": "EXIT", "prov": [{"page_no": 1}]}]`), "1 [] EXIT\n"},
		"AFormsCellsAreText": {small("key_value_items/0", `"key_value_items": [{"label": "key_value_region", "prov": [{"page_no": 2}],
			"graph": {"cells": [{"text": "Name"}, {"text": "Ada"}]}}]`), "2 [] Name\nAda\n"},
		"TextIsCleaned": {small("texts/0 texts/1", `"texts": [{"label": "title", "text": "A\u0000\n\ud800B"}, {"label": "text",
			"text": "\ufeffx\u0000y\r\nz \u00ad\u0007 ", "prov": [{"page_no": -3}]}]`), "[A \uFFFDB] xy\nz\n"},
		"AFormulaHasItsOriginal": {small("texts/0", `"texts": [{"label": "formula", "text": " ", "orig": "a + b"}]`), "[] a + b\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := convert(t, test.data)
			if err != nil {
				t.Fatal(err)
			}
			if got := buildtest.Outline(doc); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	// row writes n rows of cells from row at on.
	row := func(at, n int, header bool, text string) string {
		var list []string
		for r := at; r < at+n; r++ {
			for c := range 2 {
				list = append(list, fmt.Sprintf(`{"text": %q, "start_row_offset_idx": %d, "start_col_offset_idx": %d, "column_header": %v}`, text, r, c, header))
			}
		}

		return strings.Join(list, ", ")
	}
	long := strings.Repeat("x", 500)
	tables := []string{
		row(0, 2, true, "h") + ", " + row(2, 200, false, long),
		row(0, 3, true, "only"),
		row(0, 1, false, "") + ", " + row(1, 2, true, "k") + ", " + row(3, 1, false, "v") + ", " + row(4, 1, true, "k"),
		row(0, 1, false, "p") + ", " + row(1, 1, true, "q") + ", " + row(2, 1, false, "r"),
	}
	data := small("tables/0 tables/1 tables/2 tables/3", `"tables": [{"data": {"table_cells": [`+strings.Join(tables, `]}}, {"data": {"table_cells": [`)+`]}}]`)
	doc, err := convert(t, data)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range doc.Blocks {
		if len(got) == 0 || got[len(got)-1] != b.Header {
			got = append(got, b.Header)
		}
	}
	want := []string{"h | h\nh | h", "only | only", "k | k\nk | k", "p | p"}
	if !slices.Equal(got, want) || len(doc.Blocks) < 6 {
		t.Errorf("%d blocks, headers are %q", len(doc.Blocks), got)
	}
}

func TestGreatDocuments(t *testing.T) {
	t.Parallel()

	t.Run("DeepNestingEnds", func(t *testing.T) {
		t.Parallel()
		for _, label := range []string{"inline", "list", "section"} {
			var groups strings.Builder
			for i := range 5_000 {
				fmt.Fprintf(&groups, `{"label": %q, "children": [{"$ref": "#/groups/%d"}]}, `, label, i+1)
			}
			_, err := convert(t, small("groups/0", `"groups": [`+groups.String()+`{}], "texts": []`))
			if code(err) != "no_text_layer" {
				t.Errorf("got %v", err)
			}
		}
	})

	t.Run("TooManyItemsAreRefused", func(t *testing.T) {
		t.Parallel()
		data := `{"texts": [` + strings.Repeat("{},", maxNodes) + `{}]}`
		if _, err := readDocument(json.NewDecoder(strings.NewReader(data))); !errors.Is(err, errTooManyNodes) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("TooMuchTextIsRefused", func(t *testing.T) {
		t.Parallel()
		text := `{"label": "text", "text": "` + strings.Repeat("x", 33<<20) + `"}`
		if _, err := convert(t, small("texts/0 texts/1", `"texts": [`+text+", "+text+"]")); code(err) != "too_large" {
			t.Errorf("got %v", err)
		}
	})
}

func FuzzDocument(f *testing.F) {
	var report bytes.Buffer
	if err := json.Compact(&report, testdata(f, "report.json")); err != nil {
		f.Fatal(err)
	}
	f.Add(report.Bytes())
	f.Add([]byte(onePage))
	f.Add([]byte(small("groups/0 tables/0 pictures/0", `"groups": [{"label": "inline", "children": [{"cref": "#/groups/0"}, {"cref": "#/texts/0"}]}],
		"tables": [{"captions": [{"$ref": "#/texts/1"}], "data": {"table_cells": [{"text": "a", "start_col_offset_idx": 9223372036854775807, "column_header": true},
		{"text": "b", "start_row_offset_idx": 1, "column_header": true}, {"text": "c", "start_row_offset_idx": 2, "start_col_offset_idx": 3}]}}],
		"pictures": [{"children": [{"$ref": "#/texts/2"}]}], "texts": [{"text": "x\u0000"}, {"text": "y"}, {"label": "list_item", "text": "z"}]`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := readDocument(json.NewDecoder(bytes.NewReader(data)))
		if err != nil || d == nil {
			return
		}
		doc, err := d.convert(file{kind: parse.TypePDF}, nil)
		if err == nil {
			err = check(doc)
		} else if parseCode(err) != "" {
			return
		}
		if err != nil {
			t.Error(err)
		}
	})
}
