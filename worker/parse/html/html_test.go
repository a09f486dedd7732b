package html

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

func mustParse(t *testing.T, data []byte) parse.Document {
	t.Helper()
	doc, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := buildtest.Check(doc); err != nil {
		t.Fatal(err)
	}

	return doc
}

func TestParse(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, html, want string }{
		{"HeadingsBecomeThePath", "<h1>Pumps</h1><p>Intro.<h2>Care</h2><p>Drain it.</p><h3>Frost</h3><p>Soon.</p><h2>Parts</h2><p>Seal.</p>",
			"[Pumps] Intro.\n[Pumps > Care] Drain it.\n[Pumps > Care > Frost] Soon.\n[Pumps > Parts] Seal.\n"},
		{"AHeadingWithNothingUnderItIsText", "<h1>A</h1><h1>B</h1>x", "[] A\n[B] x\n"},
		{"AHeadingEndsWhereItsEndTagIsMissing", "<h2>Care<p>Drain it.</p><p>Soon.", "[Care] Drain it.\n[Care] Soon.\n"},
		{"AnotherHeadingsEndTagEndsIt", "<h2>Care</h3>Drain it.", "[Care] Drain it.\n"},
		{"AHeadingMayHoldBlocksAndBreaks", "<h2><div>Care<br>and</div> <b>parts</b></h2>x", "[Care and parts] x\n"},
		{"WhiteSpaceCollapses", "<p>a \n\t b&nbsp;c<b> d</b>e</p>", "[] a b c de\n"},
		{"InlineTagsJoinWords", "<p><span>bro</span><i>ken</i> <a href=x>link</a></p>", "[] broken link\n"},
		{"BreaksAreLineEnds", "<p>a<br>b <br/> c</p>", "[] a\nb\nc\n"},
		{"ScriptsStylesAndTemplatesAreDropped", "a<script>x<p>y</script><style>p{}</style><template><p>t</p></template><noscript><p>n</p></noscript>b", "[] ab\n"},
		{"NavigationIsDroppedButHeadersAndFootersStay", "<header>Top<nav><ul><li>Home</ul></nav></header><aside>Side</aside><footer>End</footer>",
			"[] Top\n[] Side\n[] End\n"},
		{"CommentsAreDropped", "a<!-- b -->c<!--[if mso]>d<![endif]-->", "[] ac\n"},
		{"WhatIsHiddenIsDropped", "<div hidden>a<div>b</div>c</div><p style='color:red; display : NONE'>d<p>e<span style=display:none!important>f<span>g</span></span>h<my-x hidden>i</my-x>", "[] eh\n"},
		{"AHiddenParagraphEndsAtTheNext", "<p hidden>a<p>b", "[] b\n"},
		{"APageThatHidesItselfIsRead", "<body style='display:none'>a", "[] a\n"},
		{"CodeKeepsItsWhiteSpace", "<pre>\nif a {\n\tb\n\n\n  c\n}\n</pre>x", "code [] if a {\n\tb\n\n  c\n}\n[] x\n"},
		{"AlternativeTextStays", "<p>See <img src=a.png alt='the pump'> here", "[] See the pump here\n"},
		{"ListsNestByIndentation", "<ul><li>a<ul><li>b<li>c</ul><li><p>d</p><p>e</p></ul><p>f", "[] - a\n  - b\n  - c\n- d\n  e\n[] f\n"},
		{"OrderedListsCount", "<ol start=3><li>a<li>b<ol><li>c</ol></ol>", "[] 3. a\n4. b\n  1. c\n"},
		{"TermsStandAboveTheirMeaning", "<dl><dt>Pump<dd>It moves water.<dt>Valve<dd>It stops it.</dl>", "[] Pump\n  It moves water.\nValve\n  It stops it.\n"},
		{"TablesHaveRowsAndAHeader", "<table><caption>Parts</caption><thead><tr><th>No<th>Name</thead><tbody><tr><td>1<td>Seal <b>ring</b><tr><td>2<td>Nut</table>after",
			"[] Parts\ntable [] No | Name\n1 | Seal ring\n2 | Nut\n[] after\n"},
		{"CellsThatSpanKeepTheColumns", "<table><tr><th colspan=2>A<th>B<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5</table>", "table [] A |  | B\n1 | 2 | 3\n | 4 | 5\n"},
		{"ATableWithinACellMakesTheOuterOneLayout", "<table><tr><td>Left<td><table><tr><td>a<td>b<tr><td>c<td>d</table>Right</table>",
			"[] Left\ntable [] a | b\nc | d\n[] Right\n"},
		{"ATableOfOneColumnIsLayout", "<table><tr><td>a<tr><td>b</table>", "[] a\n[] b\n"},
		{"ATableWithHeadingsIsLayout", "<table><tr><td><h1>A</h1><p>b</p><td>c</table>", "[A] b\n[A] c\n"},
		{"AnUnclosedDivInACellStaysInIt", "<div><table><tr><td><div>a</td><td>b</div></td></tr><tr><td>c<td>d</table>e", "table [] a | b\nc | d\n[] e\n"},
		{"TagsThatEndThemselvesEndInXHTML", "<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title/><script src='x'/></head><body><div hidden='hidden'/><p>a</p></body></html>", "[] a\n"},
		{"TextWithoutTagsIsText", "a < b & c", "[] a < b & c\n"},
		{"SoftHyphensAndControlsAreDropped", "<p>Wasser&shy;pumpe\x01 &#0;", "[] Wasserpumpe \uFFFD\n"},
		{"ALongHeadingIsTextToo", "<h1>" + strings.Repeat("ab ", 100) + "</h1>", "[" + strings.Repeat("ab ", 66) + "ab…] " + strings.TrimSpace(strings.Repeat("ab ", 100)) + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, buildtest.Outline(mustParse(t, []byte(test.html)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHead(t *testing.T) {
	t.Parallel()

	doc := mustParse(t, []byte(`<!DOCTYPE html><html lang="de"><head><title> Pumpen &amp;
		Ventile </title><meta name="description" content="Über Pumpen"><META NAME=Author CONTENT="A. Muster">
		<meta name=keywords content="pumpe, ventil"></head><body><svg><title>Bild</title></svg><h1>Anderes</h1><p>x</p></body></html>`))
	if doc.Title != "Pumpen & Ventile" || doc.Type != parse.TypeHTML {
		t.Errorf("title %q, type %q", doc.Title, doc.Type)
	}
	want := map[string]any{"language": "de", "description": "Über Pumpen", "author": "A. Muster", "keywords": "pumpe, ventil"}
	if diff := cmp.Diff(want, doc.Metadata); diff != "" {
		t.Error(diff)
	}
	if doc := mustParse(t, []byte("<h1>Pumps</h1><p>x")); doc.Title != "Pumps" || doc.Metadata != nil {
		t.Errorf("title %q, metadata %v", doc.Title, doc.Metadata)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()

	const text = "<p>Käse für 5 €"
	utf16, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	bare, _ := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().String(text)
	windows, _ := charmap.Windows1252.NewEncoder().String(text)
	latin9, _ := charmap.ISO8859_15.NewEncoder().String(`<meta charset="iso-8859-15">` + text)
	sjis, _ := japanese.ShiftJIS.NewEncoder().String(`<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS"><p>水のポンプ`)
	jis, _ := japanese.ISO2022JP.NewEncoder().String(`<meta charset="iso-2022-jp"><p>水のポンプ`)
	for _, test := range []struct{ name, data, want string }{
		{"UTF8", text, "Käse für 5 €"},
		{"UTF8WithMark", "\xef\xbb\xbf" + text, "Käse für 5 €"},
		{"UTF8LateInThePage", strings.Repeat(" ", 2000) + text, "Käse für 5 €"},
		{"UTF8ThatClaimsToBeLatin1", "<meta charset=iso-8859-1>" + text, "Käse für 5 €"},
		{"UTF16WithMark", utf16, "Käse für 5 €"},
		{"UTF16WithoutMark", bare, "Käse für 5 €"},
		{"Windows1252Undeclared", windows, "Käse für 5 €"},
		{"Latin9Declared", latin9, "Käse für 5 €"},
		{"ShiftJISDeclared", sjis, "水のポンプ"},
		{"ISO2022JPDeclared", jis, "水のポンプ"},
		{"UnknownEncodingIsGuessed", "<meta charset=foo>" + windows, "Käse für 5 €"},
		{"BadUTF8IsMarked", "<meta charset=utf-8><p>K\xe4se", "K\uFFFDse"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if got := mustParse(t, []byte(test.data)).Text; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, data, want string }{
		{"Nothing", "", "empty"},
		{"OnlyMarkup", "<html><body><script>x</script>&nbsp;</body></html>", "empty"},
		{"APDF", "%PDF-1.7\n<<>>", "binary"},
		{"AnArchive", "PK\x03\x04<\x00", "binary"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if _, err := Parse([]byte(test.data)); buildtest.Code(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestHostilePagesTakeLinearTime feeds what makes parsers that build trees take quadratic time, or overflow.
func TestHostilePagesTakeLinearTime(t *testing.T) {
	t.Parallel()

	const n = 100_000
	for _, test := range []struct{ name, data string }{
		{"NestedDivs", strings.Repeat("<div>", n) + "x" + strings.Repeat("</div>", n)},
		{"NestedTables", strings.Repeat("<table><tr><td>", n) + "x"},
		{"NestedLists", strings.Repeat("<ul><li>x", n)},
		{"NestedHidden", "x" + strings.Repeat("<div hidden><span>", n)},
		{"WrongEndTags", strings.Repeat("<div><p>", n) + "x" + strings.Repeat("</span></section></ul>", n)},
		{"EndTagsAcrossACell", strings.Repeat("<section><table><tr><td>", 20) + strings.Repeat("<div>", n) + "x" + strings.Repeat("</section>", n)},
		{"OpenFormatting", strings.Repeat("<b a><i>", n) + strings.Repeat("<p>x</p>", n)},
		{"WideCells", "<table>" + strings.Repeat("<tr><td rowspan=9999 colspan=9999>x", n)},
		{"Headings", strings.Repeat("<h1>x<h6>y", n)},
		{"Attributes", "<p " + strings.Repeat("a ", n) + ">x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			mustParse(t, []byte(test.data))
		})
	}
}

func TestTextBehindDeepNestingIsRead(t *testing.T) {
	t.Parallel()

	doc := mustParse(t, []byte(strings.Repeat("<div>", 2000)+"<h1>A</h1><p hidden>b</p><p>c</p>"+strings.Repeat("</div>", 2000)+"<h1>D</h1>e"))
	if diff := cmp.Diff("[] A\n[] c\n[D] e\n", buildtest.Outline(doc)); diff != "" {
		t.Error(diff)
	}
}

func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		"<html lang=de><head><title>T</title><meta name=author content=A></head><body><h1>A</h1><p>b<br>c</p></body></html>",
		"<ul><li>a<ol start=7><li>b</ol><dl><dt>c<dd>d</dl></ul>",
		"<table><caption>c</caption><tr><th colspan=3>a<th>b<tr><td rowspan=2>1<td><table><td>x</table></table>",
		"<pre>\n a\n<div>b</div></pre><xmp><p></xmp><plaintext>x",
		"<p hidden>a<p style=display:none>b<nav><li>c</nav><template><div>", "<?xml version='1.0'?><p/><![CDATA[x]]><title/>",
		"<meta charset=utf-16>\xff\xfe", "\xff\xfe<\x00p\x00>\x00a\x00", "<svg><title>x</title></svg><h2>a</h3>b<h1><h1>", "&#0;&nbsp;&shy;\u2028a\x0cb",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := Parse(data)
		if err := buildtest.CheckResult(doc, err); err != nil {
			t.Fatal(err)
		}
	})
}
