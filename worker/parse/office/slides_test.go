package office

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

const (
	slideHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<p:sld xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>`
	slideTail = `</p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>`
)

// shapeXML writes a shape: a placeholder of a type, a body where that is empty, a text box where it is "none". A paragraph
// that begins with tabs is as many levels deep.
func shapeXML(placeholder string, paragraphs ...string) string {
	nv := `<p:nvPr/>`
	switch placeholder {
	case "none":
	case "":
		nv = `<p:nvPr><p:ph idx="1"/></p:nvPr>`
	default:
		nv = `<p:nvPr><p:ph type="` + placeholder + `"/></p:nvPr>`
	}

	return `<p:sp><p:nvSpPr><p:cNvPr id="2" name="Titel 1"/><p:cNvSpPr/>` + nv + `</p:nvSpPr><p:spPr/>` + bodyXML("p", paragraphs...) + `</p:sp>`
}

func bodyXML(prefix string, paragraphs ...string) string {
	var b strings.Builder
	b.WriteString(`<` + prefix + `:txBody><a:bodyPr/><a:lstStyle/>`)
	for _, text := range paragraphs {
		bare := strings.TrimLeft(text, "\t")
		fmt.Fprintf(&b, `<a:p><a:pPr lvl="%d"/><a:r><a:rPr lang="de-DE" dirty="0"/><a:t>%s</a:t></a:r><a:endParaRPr lang="de-DE"/></a:p>`, len(text)-len(bare), bare)
	}

	return b.String() + `</` + prefix + `:txBody>`
}

// pptx writes a presentation of slides whose parts are numbered backwards, so that their order is the presentation's.
func pptx(t testing.TB, slides ...string) []byte {
	t.Helper()

	return pptxWith(t, nil, slides...)
}

func pptxWith(t testing.TB, parts []string, slides ...string) []byte {
	t.Helper()
	list, links := "", []string{"slideMaster", "slideMasters/slideMaster1.xml"}
	for i, slide := range slides {
		part := fmt.Sprintf("slides/slide%d.xml", len(slides)-i)
		list += fmt.Sprintf(`<p:sldId id="%d" r:id="rId%d"/>`, 256+i, i+2)
		links = append(links, "slide", part)
		parts = append([]string{"ppt/" + part, slideHead + slide + slideTail}, parts...)
	}
	presentation := `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<p:presentation xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="rId1"/></p:sldMasterIdLst><p:sldIdLst>` + list + `</p:sldIdLst></p:presentation>`

	return container(t, "ppt/presentation.xml", append([]string{"ppt/presentation.xml", presentation, "ppt/_rels/presentation.xml.rels", rels(links...)}, parts...)...)
}

func TestSlides(t *testing.T) {
	t.Parallel()

	table := `<p:graphicFrame><p:nvGraphicFramePr><p:nvPr/></p:nvGraphicFramePr><a:graphic><a:graphicData><a:tbl><a:tblPr/><a:tr h="1"><a:tc gridSpan="2">` + bodyXML("a", "A") + `</a:tc><a:tc hMerge="1">` + bodyXML("a") + `</a:tc><a:tc>` + bodyXML("a", "B") + `</a:tc></a:tr><a:tr h="1"><a:tc>` + bodyXML("a", "1") + `</a:tc><a:tc>` + bodyXML("a", "2") + `</a:tc><a:tc>` + bodyXML("a", "3", "4") + `</a:tc></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>`
	for _, test := range []struct {
		name, want string
		slides     []string
	}{
		{"TheTitleIsThePathAndTheSlideIsThePage", "1 [Pumps] - a\n2 [Valves] - b\n", []string{shapeXML("title", "Pumps") + shapeXML("", "a"), shapeXML("ctrTitle", "Valves") + shapeXML("", "b")}},
		{"ATitleBelowTheTextIsStillTheTitle", "1 [Pumps] - a\n", []string{shapeXML("", "a") + shapeXML("title", "Pumps")}},
		{"ASlideOfATitleOnlyIsText", "1 [] Pumps\n2 [Valves] - b\n", []string{shapeXML("title", "Pumps"), shapeXML("title", "Valves") + shapeXML("", "b")}},
		{"ASlideWithoutATitleIsNoSectionOfTheOneBefore", "1 [Pumps] - a\n2 [] - b\n", []string{shapeXML("title", "Pumps") + shapeXML("", "a"), shapeXML("", "b")}},
		{"BodiesAreListsByLevel", "1 [] - a\n  - b\n    - c\n- d\n", []string{shapeXML("", "a", "\tb", "\t\tc", "d")}},
		{"TextBoxesAndSubtitlesAreParagraphs", "1 [] Sub\n1 [] box\n  - x\n", []string{shapeXML("subTitle", "Sub") + shapeXML("none", "box", "\tx")}},
		{"FootersAndNumbersAreDropped", "1 [] - a\n", []string{shapeXML("", "a") + shapeXML("sldNum", "7") + shapeXML("dt", "1.1.") + shapeXML("ftr", "Secret")}},
		{"GroupsAreWalked", "1 [] a\n1 [] b\n", []string{`<p:grpSp><p:nvGrpSpPr/><p:grpSpPr/>` + shapeXML("none", "a") + `<p:grpSp>` + shapeXML("none", "b") + `</p:grpSp></p:grpSp>`}},
		{"TablesHaveRows", "1 [] - x\n1 table [] A |  | B\n1 | 2 | 3 4\n1 [] - y\n", []string{shapeXML("", "x") + table + shapeXML("", "y")}},
		{"OneBranchOfAlternativesIsRead", "1 [] a\n", []string{`<mc:AlternateContent><mc:Choice Requires="p14">` + shapeXML("none", "a") + `</mc:Choice><mc:Fallback>` + shapeXML("none", "a") + `</mc:Fallback></mc:AlternateContent>`}},
		{"RunsBreaksAndFieldsJoin", "1 [] a b\nc 2026\n", []string{`<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>a </a:t></a:r><a:r><a:t>b</a:t></a:r><a:br/><a:r><a:t>c </a:t></a:r><a:fld type="datetime1"><a:t>2026</a:t></a:fld><a:fld type="slidenum"><a:t>9</a:t></a:fld></a:p></p:txBody></p:sp>`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			doc := mustParse(t, Slides, pptx(t, test.slides...))
			if diff := cmp.Diff(test.want, buildtest.Outline(doc)); diff != "" || doc.Type != parse.TypePPTX {
				t.Errorf("type %q, %s", doc.Type, diff)
			}
		})
	}
}

func TestSlidesNotesAndDiagrams(t *testing.T) {
	t.Parallel()

	notes := strings.ReplaceAll(slideHead, "p:sld ", "p:notes ") + shapeXML("sldImg") + shapeXML("body", "Say this.") + shapeXML("sldNum", "1") + strings.ReplaceAll(slideTail, "p:sld>", "p:notes>")
	diagram := `<dgm:dataModel xmlns:dgm="d" xmlns:a="a"><dgm:ptLst><dgm:pt modelId="1"><dgm:prSet/><dgm:t><a:bodyPr/><a:p><a:r><a:t>Step</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt modelId="2" type="pres"/></dgm:ptLst></dgm:dataModel>`
	doc := mustParse(t, Slides, pptxWith(t, []string{
		"ppt/slides/_rels/slide2.xml.rels", rels("notesSlide", "../notesSlides/notesSlide1.xml", "diagramData", "../diagrams/data1.xml"),
		"ppt/notesSlides/notesSlide1.xml", notes, "ppt/diagrams/data1.xml", diagram, "docProps/core.xml", strings.ReplaceAll(coreProps, "The core's title", "PowerPoint-Präsentation"),
	}, shapeXML("title", "Pumps")+shapeXML("", "a"), shapeXML("title", "Valves")+shapeXML("", "b")))
	if diff := cmp.Diff("1 [Pumps] - a\n1 [Pumps] - Step\n1 [Pumps] Say this.\n2 [Valves] - b\n", buildtest.Outline(doc)); diff != "" {
		t.Error(diff)
	}
	if doc.Title != "Pumps" || doc.Metadata["author"] != "A. Muster" {
		t.Errorf("title %q, metadata %v", doc.Title, doc.Metadata)
	}
}

func FuzzSlides(f *testing.F) {
	for _, seed := range []string{
		shapeXML("title", "A") + shapeXML("", "b", "\tc") + shapeXML("sldNum", "1"),
		`<p:graphicFrame><a:tbl><a:tr><a:tc gridSpan="3">` + bodyXML("a", "x") + `</a:tc></a:tr></a:tbl></p:graphicFrame>`,
		`<mc:AlternateContent><mc:Choice><p:grpSp>` + shapeXML("none", "a") + `</p:grpSp></mc:Choice><mc:Fallback/></mc:AlternateContent>`,
		`<a:tc/></a:tbl><a:p><a:pPr lvl="-3"/><a:br/><a:t>x</a:t></a:p>`,
	} {
		f.Add([]byte(slideHead + seed + slideTail))
	}
	f.Add(pptx(f, shapeXML("title", "a"), shapeXML("", "b")))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Slides(data)
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
		doc, err = Slides(pptxWith(t, []string{"ppt/slides/slide1.xml", string(data), "ppt/slides/_rels/slide1.xml.rels", rels("notesSlide", "slide1.xml")}, ""))
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
	})
}
