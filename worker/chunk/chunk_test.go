package chunk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/kb-search/kb/worker/parse"
)

// count is a tokenizer: a run of letters and digits is a token, and so is each other sign and each Chinese character.
func count(s string) int {
	n, inWord := 0, false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			inWord = false
		case (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) && !spaceless(r):
			if !inWord {
				n++
			}
			inWord = true
		default:
			n++
			inWord = false
		}
	}

	return n
}

func mustParse(t testing.TB, name, content string) parse.Document {
	t.Helper()
	in := parse.Input{Name: name, Data: []byte(content)}
	if name == "" {
		in.Type = parse.TypeNote
	}
	doc, err := parse.Parse(in)
	if err != nil {
		t.Fatal(err)
	}

	return doc
}

// texts returns the chunks of content as "section|text".
func texts(t *testing.T, name, content string, opt Options) []string {
	t.Helper()
	if opt.Count == nil {
		opt.Count = count
	}
	doc := mustParse(t, name, content)
	chunks := mustSplit(doc, "", opt)
	if err := verify(doc, chunks, opt); err != nil {
		t.Error(err)
	}
	var list []string
	for _, c := range chunks {
		list = append(list, c.Section+"|"+c.Text)
	}

	return list
}

func TestValidate(t *testing.T) {
	t.Parallel()

	if err := (Options{Size: 254, Overlap: 20, Count: count}).Validate(); err != nil {
		t.Error(err)
	}
	err := Options{Size: 15, Overlap: 8, MaxBytes: 1}.Validate()
	for _, want := range []string{"size", "overlap", "bytes", "counts tokens"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v doesn't name %q", err, want)
		}
	}
}

func TestPagesStayApart(t *testing.T) {
	t.Parallel()

	text := "One two.\nThree four."
	doc := parse.Document{Text: text, Blocks: []parse.Block{
		{Kind: parse.Paragraph, Text: "One two.", Page: 1, Start: 0, End: 8}, {Kind: parse.Paragraph, Text: "Three four.", Page: 2, Start: 9, End: 20},
	}}
	count := func(s string) int { return len(strings.Fields(s)) }
	for strategy, want := range map[string]int{"": 1, BySection: 1, ByPage: 2} {
		chunks := mustSplit(doc, "", Options{Size: 16, Strategy: strategy, Count: count})
		if len(chunks) != want || chunks[len(chunks)-1].Page != want {
			t.Errorf("%q: %+v", strategy, chunks)
		}
	}
}

// mustSplit is Split where nothing ends it.
func mustSplit(doc parse.Document, title string, opt Options) []Chunk {
	chunks, err := Split(context.Background(), doc, title, opt)
	if err != nil {
		panic(err)
	}

	return chunks
}

func TestSplitStopsWithItsContext(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	counted := 0
	stopping := func(s string) int {
		if counted++; counted == 1000 {
			cancel()
		}

		return count(s)
	}
	doc := mustParse(t, "a.txt", strings.Repeat("a ", 1<<20))
	if chunks, err := Split(ctx, doc, "", Options{Size: 254, Count: stopping}); !errors.Is(err, context.Canceled) || chunks != nil || counted > 10_000 {
		t.Errorf("%d chunks, %v, counted %d times", len(chunks), err, counted)
	}
}

func TestEnrich(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ title, section, text, want string }{
		"All":                {"T", "A > B", "x", "T\nA > B\nx"},
		"SectionIsTheTitle":  {"T", "T", "x", "T\nx"},
		"NoSection":          {"T", "", "x", "T\nx"},
		"NoTitle":            {"", "A", "x", "A\nx"},
		"TextOnly":           {"", "", "x", "x"},
		"HeadingOnly":        {"T", "A", "", "T\nA"},
		"NothingIsNoNewline": {"", "", "", ""},
	} {
		if got := (Chunk{Prefix: Heading(test.title, test.section), Text: test.text}).EnrichedText(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()

	small := Options{Size: 16}
	for name, test := range map[string]struct {
		file, content string
		opt           Options
		want          []string
	}{
		"NoteStaysWhole": {"", "One.\n\nTwo.\n\nThree words here.", small, []string{"|One.\n\nTwo.\n\nThree words here."}},
		"ParagraphsStayWhole": {
			"a.txt", "a b c d e f.\n\ng h i j k l m.\n\nn o p q r s.", small,
			[]string{"|a b c d e f.\n\ng h i j k l m.", "|n o p q r s."},
		},
		"SentencesStayWhole": {
			"a.txt", "One two three four five six seven. Eight nine ten eleven twelve thirteen. A b c.", small,
			[]string{"|One two three four five six seven.", "|Eight nine ten eleven twelve thirteen. A b c."},
		},
		"FullStopInsideASentence": {
			"a.txt", "The visit of Dr. Smith and of J. R. Brown was at 3 p.m. sharp. He left at noon and never came.", Options{Size: 24},
			[]string{"|The visit of Dr. Smith and of J. R. Brown was at 3 p.m. sharp.", "|He left at noon and never came."},
		},
		"ChineseSentences": {
			"a.txt", "今天天气很好。我们去公园散步吧！你想不想一起去？好的。", small,
			[]string{"|今天天气很好。我们去公园散步吧！", "|你想不想一起去？好的。"},
		},
		"ChineseWithoutStopsIsCutBetweenCharacters": {
			"a.txt", strings.Repeat("天地", 12), small, []string{"|" + strings.Repeat("天地", 6), "|" + strings.Repeat("天地", 6)},
		},
		"AHeaderOverNothingVisibleIsKept": {"a.csv", "name\n\u03a2\n", small, []string{"|name\n\u03a2"}},
		"NoSmallTail": {
			"a.txt", strings.TrimSpace(strings.Repeat("word ", 18)), small,
			[]string{"|" + strings.TrimSpace(strings.Repeat("word ", 9)), "|" + strings.TrimSpace(strings.Repeat("word ", 9))},
		},
		"SectionsAreNotMixed": {
			"a.md", "# A\n\nx\n\n## B\n\ny\n\n## C\n\n## D\n\nz", small, []string{"A|x", "A > B|y", "A > D|z"},
		},
		"ListIsCutBetweenItems": {
			"a.txt", "- a b c d e f g\n- h i j k\n  l m n o\n- p q r s t u v", small,
			[]string{"|- a b c d e f g", "|- h i j k\n  l m n o", "|- p q r s t u v"},
		},
		"IntroductionStaysWithWhatItAnnounces": {
			"a.md", "a b c d e f g.\n\nh i:\n\n```\nj k\n```\n\nl.", Options{Size: 20},
			[]string{"|a b c d e f g.", "|h i:\n\n```\nj k\n```\n\nl."},
		},
		"CodeIsCutAtLineEnds": {
			"a.md", "```go\nfor a b c {\n  d e f g h\n  i j k l\n}\nm n o\n```", small,
			[]string{"|```go\nfor a b c {\n  d e f g h", "|  i j k l\n}\nm n o\n```"},
		},
		"TableRepeatsItsHeader": {
			"a.md", "Intro.\n\n| a |\n|--|\n| b c |\n| d e |\n| f g |\n| h i |\n\nEnd.", Options{Size: 17},
			[]string{"|Intro.", "|| a |\n|--|\n| b c |\n| d e |", "|| a |\n|--|\n| f g |\n| h i |", "|End."},
		},
		"SmallTableStaysWithItsText": {"a.md", "Intro:\n\n| a |\n|--|\n| b |", Options{Size: 20}, []string{"|Intro:\n\n| a |\n|--|\n| b |"}},
		"RecordsRepeatTheirHeader": {
			"a.csv", "p,q\n1,\"a\nb c\"\n2,\"d e f\"\n3,g\n", small, []string{"|p,q\n1,\"a\nb c\"", "|p,q\n2,\"d e f\"\n3,g"},
		},
		"HeaderTooLongIsText": {
			"a.csv", "a b,c d,e f,g h\n1,2,3,4\n", small, []string{"|a b,c d,e f,g h", "|1,2,3,4"},
		},
		"HeaderAlone":        {"a.csv", "a,b\n", small, []string{"|a,b"}},
		"RecordTooLongIsCut": {"a.csv", "p\n" + strings.Repeat("w ", 20) + "\n", small, []string{"|p\n" + strings.TrimSpace(strings.Repeat("w ", 10)), "|p\n" + strings.TrimSpace(strings.Repeat("w ", 10))}},
		"OverlapRepeatsSentences": {
			"a.txt", "One two three four. Five six seven. Eight nine ten eleven. Twelve, thirteen. End.", Options{Size: 16, Overlap: 5},
			[]string{"|One two three four. Five six seven.", "|Five six seven. Eight nine ten eleven. Twelve, thirteen. End."},
		},
		"OverlapRepeatsWordsOfALongSentence": {
			"a.md", "a b c d e f g h.\n\ni j k l m n o p.", Options{Size: 16, Overlap: 4},
			[]string{"|a b c d e f g h.", "|f g h.\n\ni j k l m n o p."},
		},
		"OverlapStaysInItsSection": {"a.md", "# A\nx.\n# B\ny.", Options{Size: 16, Overlap: 8}, []string{"A|x.", "B|y."}},
		"WordLongerThanMaxBytes": {
			"a.txt", "a " + strings.Repeat("é", 200) + " b", Options{Size: 16, MaxBytes: 256},
			[]string{"|a", "|" + strings.Repeat("é", 128), "|" + strings.Repeat("é", 72) + " b"},
		},
		"LongWordIsCutAtSigns": {"a.txt", strings.Repeat("a_", 10), small, []string{"|" + strings.Repeat("a_", 5), "|" + strings.Repeat("a_", 5)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, texts(t, test.file, test.content, test.opt)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRangesAndSections(t *testing.T) {
	t.Parallel()

	doc := mustParse(t, "a.md", "# A\n\nOne two.\n\n## B\n\nThree <!-- no --> four.\n")
	chunks := mustSplit(doc, "Title", Options{Size: 32, Count: count})
	want := []Chunk{
		{Seq: 0, Text: "One two.", Section: "A", Start: 5, End: 13, Prefix: "Title\nA"},
		{Seq: 1, Text: "Three  four.", Section: "A > B", Start: 21, End: 44, Prefix: "Title\nA > B"},
	}
	if diff := cmp.Diff(want, chunks); diff != "" {
		t.Error(diff)
	}
}

func TestAbstractBecomesTwoEqualChunks(t *testing.T) {
	t.Parallel()

	var b strings.Builder
	for i := range 15 {
		fmt.Fprintf(&b, "Sentence %d tells about the cells %s. ", i, strings.Repeat("and more ", 5+i%4))
	}
	doc := mustParse(t, "", b.String())
	chunks := mustSplit(doc, "Cells and what is known about them after ten years", Options{Size: 254, Count: count})
	if len(chunks) != 2 {
		t.Fatalf("%d tokens became %d chunks", count(b.String()), len(chunks))
	}
	if a, b := count(chunks[0].Text), count(chunks[1].Text); max(a, b) > min(a, b)*5/4 {
		t.Errorf("chunks of %d and %d tokens", a, b)
	}
}

func TestLongTitleAndSectionTakeAQuarter(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("word ", 100)
	for name, test := range map[string]struct {
		title string
		path  []string
	}{
		"Title":              {long, nil},
		"TitleOfOneWord":     {strings.Repeat("x", 5000), nil},
		"TitleOfUnderscores": {strings.Repeat("a_", 100_000), []string{"A"}},
		"TitleInChinese":     {strings.Repeat("天", 1000), []string{"A"}},
		"Section":            {"T", []string{long}},
		"Both":               {long, []string{"Outer", long}},
		"ManyHeadings":       {"T", strings.Fields(long)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			doc := parse.Document{Text: "The text.", Blocks: []parse.Block{{Kind: parse.Paragraph, Text: "The text.", End: 9, Path: test.path}}}
			chunks := mustSplit(doc, test.title, Options{Size: 64, Count: count})
			if len(chunks) != 1 || chunks[0].Section != strings.Join(test.path, " > ") {
				t.Fatalf("got %+v", chunks)
			}
			prefix := strings.TrimSuffix(chunks[0].EnrichedText(), "\nThe text.")
			if n := count(prefix); n > 16 || n == 0 || len(prefix) > 2*maxPrefixBytes+1 {
				t.Errorf("prefix %q takes %d tokens", prefix, n)
			}
			for _, word := range strings.Fields(prefix) {
				if strings.HasPrefix(word, "wor") && word != "word" {
					t.Errorf("prefix %q ends inside a word", prefix)
				}
			}
		})
	}
}

func TestPagesComeFromBlocks(t *testing.T) {
	t.Parallel()

	doc := parse.Document{Text: "one\ntwo", Blocks: []parse.Block{
		{Kind: parse.Paragraph, Text: "one", Page: 3, End: 3}, {Kind: parse.Paragraph, Text: "two", Page: 4, Start: 4, End: 7},
	}}
	chunks := mustSplit(doc, "", Options{Size: 16, Count: count})
	if len(chunks) != 1 || chunks[0].Page != 3 || chunks[0].Start != 0 || chunks[0].End != 7 {
		t.Errorf("got %+v", chunks)
	}
}

// TestCountThatIsNotAdditive uses a tokenizer that counts more for a whole than for its parts.
func TestCountThatIsNotAdditive(t *testing.T) {
	t.Parallel()

	square := func(s string) int { n := count(s); return n + n*n/20 }
	doc := mustParse(t, "a.txt", strings.Repeat("Some words make a sentence. ", 200))
	opt := Options{Size: 40, Overlap: 8, Count: square}
	if err := verify(doc, mustSplit(doc, "A title", opt), opt); err != nil {
		t.Error(err)
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()

	for in, want := range map[string][]string{
		"One. Two! Three? \"Four.\" Five… Six":        {"One.", "Two!", "Three?", "\"Four.\"", "Five…", "Six"},
		"See fig. 3 and e.g. this. Version 1.2.3 is":  {"See fig. 3 and e.g. this.", "Version 1.2.3 is"},
		"1. First item\n2. Second item\ngoes on":      {"1. First item", "2. Second item\ngoes on"},
		"It was 1999. Then":                           {"It was 1999.", "Then"},
		"「はい。」と言った。次":                                 {"「はい。」", "と言った。", "次"},
		"क्या है। हाँ":                                {"क्या है।", "हाँ"},
		"好书吗?有。file?x=1 b":                            {"好书吗?", "有。", "file?x=1 b"},
		"all small . not approx. 5 or unknown. words": {"all small .", "not approx. 5 or unknown.", "words"},
		"What?! Yes.) No":                             {"What?!", "Yes.)", "No"},
	} {
		var got []string
		for at := 0; at < len(in); {
			length, next, _ := cutSentence(in[at:])
			got = append(got, in[at:at+length])
			at += next
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestClustersStayWhole(t *testing.T) {
	t.Parallel()

	for _, in := range []string{"e\u0301", "👩‍👩‍👧", "👍🏽", "🇩🇪", "❤️", "กำ"[:6], "葛\U000e0100"} {
		if n := cluster(in + "x"); n != len(in) && in != "กำ"[:6] {
			t.Errorf("cluster(%q) = %d of %d", in, n, len(in))
		}
	}
	if n := cluster("🇩🇪🇫🇷"); n != len("🇩🇪") {
		t.Errorf("two flags: %d", n)
	}
}
