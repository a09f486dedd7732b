package office

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

const (
	wordHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" xmlns:v="urn:schemas-microsoft-com:vml" mc:Ignorable="w14"><w:body>`
	wordTail  = `<w:sectPr w:rsidR="00A"><w:headerReference w:type="default" r:id="rId9"/><w:pgSz w:w="11906" w:h="16838"/></w:sectPr></w:body></w:document>`
	stylesXML = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:docDefaults/>
<w:style w:type="paragraph" w:default="1" w:styleId="Standard"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/><w:basedOn w:val="Standard"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/><w:basedOn w:val="Standard"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/><w:basedOn w:val="Standard"/></w:style>
<w:style w:type="paragraph" w:styleId="Kapitel"><w:name w:val="Kapitel der Firma"/><w:basedOn w:val="berschrift2"/></w:style>
<w:style w:type="paragraph" w:styleId="Kein"><w:name w:val="Keine"/><w:basedOn w:val="berschrift1"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Aufz"><w:name w:val="List Bullet 2"/></w:style>
<w:style w:type="paragraph" w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style>
<w:style w:type="paragraph" w:styleId="LoopA"><w:name w:val="a"/><w:basedOn w:val="LoopB"/></w:style>
<w:style w:type="paragraph" w:styleId="LoopB"><w:name w:val="b"/><w:basedOn w:val="LoopA"/></w:style>
<w:style w:type="character" w:styleId="Versteckt"><w:name w:val="Hidden"/><w:rPr><w:vanish/></w:rPr></w:style></w:styles>`
)

// para writes a paragraph of a style.
func para(style, text string) string {
	properties := ""
	if style != "" {
		properties = `<w:pPr><w:pStyle w:val="` + style + `"/></w:pPr>`
	}

	return `<w:p w:rsidR="00B" w:rsidRDefault="00B">` + properties + run("", text) + `</w:p>`
}

func run(properties, text string) string {
	if properties != "" {
		properties = "<w:rPr>" + properties + "</w:rPr>"
	}

	return `<w:r>` + properties + `<w:t xml:space="preserve">` + text + `</w:t></w:r>`
}

func listItem(level, text string) string {
	return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="4"/></w:numPr></w:pPr>` + run("", text) + `</w:p>`
}

func cellXML(properties string, content ...string) string {
	return `<w:tc><w:tcPr><w:tcW w:w="4531" w:type="dxa"/>` + properties + `</w:tcPr>` + strings.Join(content, "") + `</w:tc>`
}

func rowXML(cells ...string) string {
	return `<w:tr w:rsidR="00C"><w:trPr><w:trHeight w:val="1"/></w:trPr>` + strings.Join(cells, "") + `</w:tr>`
}

func tableXML(rows ...string) string {
	return `<w:tbl><w:tblPr><w:tblStyle w:val="Tabellenraster"/></w:tblPr><w:tblGrid><w:gridCol w:w="4531"/></w:tblGrid>` + strings.Join(rows, "") + `</w:tbl>`
}

func docx(t testing.TB, body string, parts ...string) []byte {
	t.Helper()

	return container(t, "word/document.xml", append([]string{"word/document.xml", wordHead + body + wordTail,
		"word/_rels/document.xml.rels", rels("styles", "styles.xml", "footnotes", "footnotes.xml", "endnotes", "/word/endnotes.xml"),
		"word/styles.xml", stylesXML}, parts...)...)
}

func TestWord(t *testing.T) {
	t.Parallel()

	box := func(text string) string { return `<w:txbxContent>` + para("", text) + `</w:txbxContent>` }
	for _, test := range []struct{ name, body, want string }{
		{"HeadingsComeFromTheOutlineOrTheNameOfAStyleOrItsBase", para("berschrift1", "Pumps") + para("", "a") + para("berschrift2", "Care") + para("", "b") + para("Kapitel", "Parts") + para("", "c"),
			"[Pumps] a\n[Pumps > Care] b\n[Pumps > Parts] c\n"},
		{"AParagraphsOwnOutlineLevelCounts", `<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr>` + run("", "A") + `</w:p>` + para("Kein", "b"), "[A] b\n"},
		{"StylesThatAreBasedOnEachOtherEnd", para("LoopA", "a"), "[] a\n"},
		{"RunsJoinWithTabsAndBreaks", `<w:p>` + run("", "pu") + run("<w:b/>", "mp ") + `<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:sym w:font="Wingdings" w:char="F0E0"/><w:t>d</w:t></w:r></w:p>`,
			"[] pump a\tb\nc-d\n"},
		{"HyperlinksAndFieldsLeaveTheirText", `<w:p><w:hyperlink r:id="rId4">` + run("", "link") + `</w:hyperlink><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText> PAGEREF x </w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>` + run("", " 7") + `<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>`,
			"[] link 7\n"},
		{"DeletedTextIsDroppedAndInsertedTextKept", `<w:p><w:pPr><w:rPr><w:del w:id="1"/></w:rPr></w:pPr>` + run("", "a") + `<w:del w:id="2"><w:r><w:delText>b</w:delText></w:r></w:del><w:ins w:id="3">` + run("", "c") + `</w:ins><w:moveFrom w:id="4">` + run("", "d") + `</w:moveFrom><w:moveTo w:id="5">` + run("", "e") + `</w:moveTo></w:p>`,
			"[] ace\n"},
		{"HiddenTextIsDropped", `<w:p>` + run("<w:vanish/>", "a") + run(`<w:vanish w:val="0"/>`, "b") + run(`<w:rStyle w:val="Versteckt"/>`, "c") + run(`<w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange>`, "d") + `</w:p>`, "[] bd\n"},
		{"TextBoxesAreReadOnce", `<w:p>` + run("", "a") + `<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wps:txbx>` + box("in the box") + `</wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>` + box("in the box") + `</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>` + run("", "b") + `</w:p>`,
			"[] in the box\n[] ab\n"},
		{"AFallbackAloneIsRead", `<w:p><w:r><mc:AlternateContent><mc:Fallback><w:pict><v:textbox>` + box("in the box") + `</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>`, "[] in the box\n"},
		{"ListsNestByIndentation", listItem("0", "a") + listItem("1", "b") + listItem("0", "c") + para("Aufz", "d") + para("", "e"), "[] - a\n  - b\n- c\n  - d\n[] e\n"},
		{"AListOfNumberNoneIsNone", `<w:p><w:pPr><w:pStyle w:val="Aufz"/><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr>` + run("", "a") + `</w:p>`, "[] a\n"},
		{"TablesHaveRowsAndAHeader", para("berschrift1", "T") + tableXML(rowXML(cellXML("", para("", "No")), cellXML("", para("", "Name"))), rowXML(cellXML("", para("", "1")), cellXML("", para("", "Seal"), para("", "ring")))) + para("", "after"),
			"table [T] No | Name\n1 | Seal ring\n[T] after\n"},
		{"CellsThatSpanKeepTheColumns", tableXML(rowXML(cellXML(`<w:gridSpan w:val="2"/>`, para("", "A")), cellXML("", para("", "B"))), rowXML(cellXML(`<w:vMerge/>`, para("", "")), cellXML("", para("", "2")), cellXML("", para("", "3")))),
			"table [] A |  | B\n | 2 | 3\n"},
		{"TablesWithinCellsAreTheirText", tableXML(rowXML(cellXML("", para("", "a")), cellXML("", tableXML(rowXML(cellXML("", para("", "b")), cellXML("", para("", "c")))), para("", "d"))), rowXML(cellXML("", para("", "e")), cellXML("", para("", "f")))),
			"table [] a | b c d\ne | f\n"},
		{"DeletedRowsAreDropped", tableXML(rowXML(cellXML("", para("", "a")), cellXML("", para("", "b"))), `<w:tr><w:trPr><w:del w:id="1"/></w:trPr>`+cellXML("", para("", "c"))+`</w:tr>`, rowXML(cellXML("", para("", "d")), cellXML("", para("", "e")))), "table [] a | b\nd | e\n"},
		{"ATableOfOneCellIsText", tableXML(rowXML(cellXML("", para("", "a"), para("", "b")))), "[] a\nb\n"},
		{"ContentControlsAreReadAndContentsDropped", `<w:sdt><w:sdtPr><w:alias w:val="x"/></w:sdtPr><w:sdtContent>` + para("Verzeichnis1", "Pumps\t3") + para("", "a") + `</w:sdtContent></w:sdt>`, "[] a\n"},
		{"MathIsText", `<w:p><m:oMath xmlns:m="m"><m:r><m:t>E=mc²</m:t></m:r></m:oMath></w:p>`, "[] E=mc²\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, buildtest.Outline(mustParse(t, Word, docx(t, test.body)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWordNotes(t *testing.T) {
	t.Parallel()

	notes := func(name string) string {
		return `<w:` + name + `s xmlns:w="w"><w:` + name + ` w:type="separator" w:id="-1">` + para("", "---") + `</w:` + name + `><w:` + name + ` w:id="1"><w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:footnoteRef/></w:r>` + run("", " A "+name+".") + `</w:p></w:` + name + `></w:` + name + `s>`
	}
	doc := mustParse(t, Word, docx(t, para("berschrift1", "A")+para("", "b"), "word/footnotes.xml", notes("footnote"), "word/endnotes.xml", notes("endnote"),
		"word/header1.xml", para("", "running header"), "word/comments.xml", para("", "comment")))
	if diff := cmp.Diff("[A] b\n[Footnotes] A footnote.\n[Endnotes] A endnote.\n", buildtest.Outline(doc)); diff != "" {
		t.Error(diff)
	}
}

func TestWordTitle(t *testing.T) {
	t.Parallel()

	core := []string{"docProps/core.xml", coreProps}
	for _, test := range []struct{ name, body, title, want string }{
		{"TheTitleStyleIsTheTitle", para("Titel", "Pumps") + para("", "a"), "Pumps", "[] a\n"},
		{"OtherwiseThePropertiesHaveIt", para("", "a"), "The core's title", "[] a\n"},
		{"ATitleAloneIsText", para("Titel", "Pumps"), "Pumps", "[] Pumps\n"},
		{"ASecondTitleIsText", para("Titel", "Pumps") + para("Titel", "Valves"), "Pumps", "[] Valves\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			doc := mustParse(t, Word, docx(t, test.body, core...))
			if diff := cmp.Diff(test.want, buildtest.Outline(doc)); diff != "" || doc.Title != test.title || doc.Type != parse.TypeDOCX {
				t.Errorf("title %q, type %q, %s", doc.Title, doc.Type, diff)
			}
			if diff := cmp.Diff(map[string]any{"author": "A. Muster", "subject": "Water", "keywords": "pump, valve"}, doc.Metadata); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWordWithoutStylesOrRelationships(t *testing.T) {
	t.Parallel()

	data := buildtest.Zip(t, buildtest.Entry{Name: `word\Document.xml`, Data: wordHead + para("x", "a") + wordTail})
	if got := mustParse(t, Word, data).Text; got != "a" {
		t.Errorf("got %q", got)
	}
	if _, err := Word(docx(t, para("", " "))); buildtest.Code(err) != "empty" {
		t.Errorf("got %v", err)
	}
}

func FuzzWord(f *testing.F) {
	for _, seed := range []string{
		para("berschrift1", "A") + para("", "b") + listItem("1", "c"),
		tableXML(rowXML(cellXML(`<w:gridSpan w:val="2"/>`, para("", "A"), tableXML(rowXML(cellXML("", para("", "x"))))))),
		`<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>` + para("", "a") + `</w:txbxContent></mc:Choice><mc:Fallback/></mc:AlternateContent></w:r></w:p>`,
		`<w:p><w:pPr><w:outlineLvl w:val="8"/><w:numPr><w:ilvl w:val="-1"/><w:numId w:val="1"/></w:numPr></w:pPr><w:del/><w:r><w:rPr><w:vanish/></w:rPr><w:t>&#xA0;&#xAD;a</w:t><w:br/></w:r></w:p>`,
		`</w:p></w:tc><w:tr/><w:tbl><w:tc/></w:tbl>`,
	} {
		f.Add([]byte(wordHead+seed+wordTail), []byte(stylesXML))
	}
	f.Add(docx(f, para("Titel", "a")), []byte(nil))
	f.Fuzz(func(t *testing.T, document, styles []byte) {
		doc, err := Word(document)
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
		doc, err = Word(container(t, "word/document.xml", "word/document.xml", string(document), "word/styles.xml", string(styles),
			"word/footnotes.xml", string(document), "word/_rels/document.xml.rels", rels("styles", "styles.xml", "footnotes", "footnotes.xml")))
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
	})
}
