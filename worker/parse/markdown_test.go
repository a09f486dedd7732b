package parse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// outline shows a document's blocks as "path|kind|text".
func outline(doc Document) []string {
	var list []string
	for _, b := range doc.Blocks {
		list = append(list, strings.Join(b.Path, " > ")+"|"+string(b.Kind)+"|"+b.Text)
	}

	return list
}

func TestMarkdownBlocks(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		in    string
		title string
		want  []string
	}{
		"HashInFenceIsNoHeading": {
			"# Guide\n\nIntro.\n\n```sh\n# install\n## more\n```\nAfter.\n\n~~~\n# no\n~~~\n", "Guide",
			[]string{"Guide|paragraph|Intro.", "Guide|code|```sh\n# install\n## more\n```", "Guide|paragraph|After.", "Guide|code|~~~\n# no\n~~~"},
		},
		"IndentedCodeKeepsItsIndentation": {"# A\n\n    # x\n    y\n", "A", []string{"A|code|    # x\n    y"}},
		"UnderlinedHeadings": {
			"One\n===\n\ntext\n\nTwo\nlines\n---\nmore\n", "One",
			[]string{"One|paragraph|text", "One > Two lines|paragraph|more"},
		},
		"LevelsNest": {
			"# A\na\n### C\nc\n## B\nb\n# D\nd", "A",
			[]string{"A|paragraph|a", "A > C|paragraph|c", "A > B|paragraph|b", "D|paragraph|d"},
		},
		"EmptySectionIsSkippedButNamed": {"# A\n## B\n### C\nc\n## E\n", "A", []string{"A > B > C|paragraph|c"}},
		"EmptyHeadingHasNoName":         {"# A\na\n#\nb\n##\nc", "A", []string{"A|paragraph|a", "|paragraph|b", "|paragraph|c"}},
		"TitleIsTheFirstLevelOne":       {"## Pre\nx\n# Real\ny", "Real", []string{"Pre|paragraph|x", "Real|paragraph|y"}},
		"HeadingMarkupGoes": {
			"# The *big* `code` [link](http://x) &amp; \\# {#id}\nx", "The big code link & #",
			[]string{"The big code link & #|paragraph|x"},
		},
		"HashtagIsNoHeading": {"#tag\n===\nx", "#tag", []string{"#tag|paragraph|x"}},
		"HeadingsInQuotesAndListsAreText": {
			"> # q\n> x\n\n- # l\n  y\n", "", []string{"|paragraph|> # q\n> x", "|paragraph|- # l\n  y"},
		},
		"NestedListKeepsIndentation": {"- a\n  - b\n\n    c\n* d\n", "", []string{"|paragraph|- a\n  - b\n\n    c", "|paragraph|* d"}},
		"TableHasHeader": {
			"Prices:\n| a | b |\n|---|:-:|\n| 1 | 2 |\n", "",
			[]string{"|paragraph|Prices:", "|table|| a | b |\n|---|:-:|\n| 1 | 2 |"},
		},
		"TableNeedsAsManyDelimiters":  {"| a | b |\n|---|\n", "", []string{"|paragraph|| a | b |\n|---|"}},
		"RuleIsNoTable":               {"a b\n--- x\n", "", []string{"|paragraph|a b\n--- x"}},
		"CommentsGo":                  {"a <!-- x\ny --> b\n\n<!-- # h\n\n# i\n-->\n\nc\n", "", []string{"|paragraph|a  b", "|paragraph|c"}},
		"CommentsInCodeStay":          {"`<!-- x -->`\n\n```\n<!-- y -->\n```\n", "", []string{"|paragraph|`<!-- x -->`", "|code|```\n<!-- y -->\n```"}},
		"UnclosedCommentStays":        {"a\n\n<!-- b\n\nc", "", []string{"|paragraph|a", "|paragraph|<!-- b\n\nc"}},
		"UnclosedFenceRunsToTheEnd":   {"# A\n```\nx\n# y\n", "A", []string{"A|code|```\nx\n# y"}},
		"LinkDefinitionsStay":         {"[r]: http://r\n\n# A\n\n[s]: http://s\n", "A", []string{"|paragraph|[r]: http://r", "A|paragraph|[s]: http://s"}},
		"RulesGo":                     {"a\n\n***\n\nb", "", []string{"|paragraph|a", "|paragraph|b"}},
		"HeadingsAloneAreTheirText":   {"# A\n\n## B\n", "A", []string{"|paragraph|# A\n\n## B"}},
		"HTMLStays":                   {"<div>\nx\n</div>\n", "", []string{"|paragraph|<div>\nx\n</div>"}},
		"MarkAndWindowsLineEnds":      {"\ufeff# A\r\n\r\nx\r\n", "A", []string{"A|paragraph|x"}},
		"BackslashAtTheEnd":           {"<!-- a --> x\\", "", []string{"|paragraph| x\\"}},
		"OverlongHeadingIsTextToo":    {"# " + strings.Repeat("word ", 100) + "\n", strings.Repeat("word ", 59) + "word…", []string{strings.Repeat("word ", 59) + "word…|paragraph|# " + strings.Repeat("word ", 99) + "word"}},
		"FrontMatterIsNotText":        {"---\ntitle: \"Kestrel book\"\ntags: [a]\n---\n\n# H\nx\n", "Kestrel book", []string{"H|paragraph|x"}},
		"FrontMatterMayBeEmpty":       {"---\n---\nx\n", "", []string{"|paragraph|x"}},
		"FrontMatterAlone":            {"---\ntitle: T\n---\n", "T", []string{"|paragraph|---\ntitle: T\n---"}},
		"BrokenFrontMatterIsText":     {"---\ntitle: Notes: part one\nx: [\n---\n# H\ny\n", "Notes: part one", []string{"|paragraph|---\ntitle: Notes: part one\nx: [\n---", "H|paragraph|y"}},
		"RuleAtTheTopIsNoFrontMatter": {"---\nSome text here\n\n---\nx", "", []string{"|paragraph|Some text here", "|paragraph|x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc := mustParse(t, "a.md", "", test.in)
			if diff := cmp.Diff(test.want, outline(doc)); diff != "" {
				t.Error(diff)
			}
			if doc.Title != test.title {
				t.Errorf("title = %q, want %q", doc.Title, test.title)
			}
		})
	}
}

func TestMarkdownWithoutTextIsEmpty(t *testing.T) {
	t.Parallel()

	for _, in := range []string{"<!-- only\n\na comment -->\n", "***\n"} {
		if _, err := Parse(Input{Name: "a.md", Data: []byte(in)}); code(err) != "empty" {
			t.Errorf("%q: got %v", in, err)
		}
	}
}

func TestMarkdownTableHeader(t *testing.T) {
	t.Parallel()

	doc := mustParse(t, "a.md", "", "| a |\n|---|\n| 1 |\n")
	if got, want := doc.Blocks[0].Header, "| a |\n|---|"; got != want {
		t.Errorf("header = %q, want %q", got, want)
	}
}

func TestFrontMatterValues(t *testing.T) {
	t.Parallel()

	doc := mustParse(t, "a.md", "", `---
title: 2024
date: 2024-05-06
draft: false
size: 1.5
big: 99999999999999999999
none: ~
inf: .inf
nul: "a\0b"
1: one
tags: &t [x, y]
again: *t
nested: {a: [1]}
---
x`)
	want := map[string]any{
		"title": int64(2024), "date": "2024-05-06", "draft": false, "size": 1.5, "big": "99999999999999999999", "none": nil, "inf": ".inf",
		"nul": "ab", "1": "one", "tags": []any{"x", "y"}, "again": []any{"x", "y"}, "nested": map[string]any{"a": []any{int64(1)}},
	}
	if diff := cmp.Diff(want, doc.Metadata); diff != "" {
		t.Error(diff)
	}
	if doc.Title != "2024" {
		t.Errorf("title = %q", doc.Title)
	}
}

// TestMarkdownHostile holds what makes Markdown or YAML parsers take hours or all memory.
func TestMarkdownHostile(t *testing.T) {
	t.Parallel()

	var deep, runs strings.Builder
	for i := range 3000 {
		deep.WriteString(strings.Repeat("  ", i) + "- x\n")
		runs.WriteString("a" + strings.Repeat("`", i))
	}
	for name, in := range map[string]string{
		"Brackets":     strings.Repeat("[", 50_000),
		"Links":        strings.Repeat("[a](", 250_000),
		"NestedLists":  deep.String(),
		"ListsInLine":  strings.Repeat("- ", 20_000) + "a",
		"Quotes":       strings.Repeat(">", 100_000),
		"Backticks":    runs.String() + "<!-- x",
		"Comments":     strings.Repeat("<!--", 100_000),
		"WideTable":    strings.Repeat("|a", 30_000) + "\n" + strings.Repeat("|-", 30_000) + "\n" + strings.Repeat("|x\n", 3000),
		"Definitions":  strings.Repeat("[a]: http://x\n", 100_000),
		"HeadingLinks": strings.Repeat("# "+strings.Repeat("[a](", 70)+"\nx\n", 500),
		"DeepYAML":     "---\na: " + strings.Repeat("[", 60_000) + "\n---\nx",
		"Laughs": "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d]\n---\nx",
		"YAMLLoop": "---\na: &a [*a]\n---\nx",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			mustParse(t, "a.md", "", in)
		})
	}
}
