package api_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// sections lists the different sections of a document's chunks, in order, and texts their texts.
func sections(document map[string]any) (sections, texts []string) {
	for _, c := range document["chunks"].([]any) {
		chunk := c.(map[string]any)
		if section := chunk["section"].(string); len(sections) == 0 || sections[len(sections)-1] != section {
			sections = append(sections, section)
		}
		texts = append(texts, chunk["text"].(string))
	}
	return sections, texts
}

func utf16Text(order binary.ByteOrder, text string) string {
	units := utf16.Encode([]rune("\ufeff" + text))
	encoded := make([]byte, 2*len(units))
	for i, unit := range units {
		order.PutUint16(encoded[2*i:], unit)
	}
	return string(encoded)
}

func TestCasesFiles(t *testing.T) {
	t.Parallel()
	s := start(t, config{})

	t.Run("MD01HashSignsInCode", func(t *testing.T) {
		t.Parallel()
		document := s.document(t, s.ingest(t, file("fences.md", "# Backup guide\n\nIntro about the Tollmark backup tool.\n\n"+
			"```bash\n# install the agent\napt install tollmark\n## second comment, still shell\ntollmark --version\n```\n\nText after the first fence.\n\n"+
			"~~~yaml\n# Not a heading either\nretention: 14\n~~~\n\n## Restore\n\n    # an indented code line\n    tollmark restore\n\nRestoring takes nine minutes.\n")...))
		got, texts := sections(document)
		if !slices.Equal(got, []string{"Backup guide", "Backup guide > Restore"}) || document["title"] != "Backup guide" {
			t.Errorf("sections %q, title %v", got, document["title"])
		}
		if !slices.ContainsFunc(texts, func(text string) bool {
			return strings.Contains(text, "```bash\n# install the agent\napt install tollmark\n## second comment, still shell\ntollmark --version\n```")
		}) {
			t.Errorf("the fence is not whole: %q", texts)
		}
	})

	t.Run("MD02FrontMatterAndUnderlines", func(t *testing.T) {
		t.Parallel()
		document := s.document(t, s.ingest(t, file("handbook.md", "---\ntitle: \"Kestrel handbook\"\ntags: [ops, night]\ndraft: false\n---\n\n"+
			"Kestrel overview\n================\n\nThe Kestrel rota changes on Mondays.\n\nEscalation\n----------\n\nCall the desk before the vendor.\n\n"+
			"Some text\n---\n\nThat rule above is a heading named \"Some text\".\n\n***\n\nA thematic break precedes this sentence.\n")...))
		got, texts := sections(document)
		want := []string{"Kestrel overview", "Kestrel overview > Escalation", "Kestrel overview > Some text"}
		if !slices.Equal(got, want) || document["title"] != "Kestrel handbook" || strings.Contains(strings.Join(texts, "\n"), "draft: false") {
			t.Errorf("sections %q, title %v, texts %q", got, document["title"], texts)
		}
		if metadata := document["metadata"].(map[string]any); metadata["draft"] != false {
			t.Errorf("metadata %v", metadata)
		}
	})

	t.Run("MD03WindowsLineEnds", func(t *testing.T) {
		t.Parallel()
		lines := []string{"\ufeff# Windows notes", "", "First paragraph.", "", "## Second part", "", "The Ferris printer jams on glossy paper.", "",
			"<!-- # commented heading -->", "", "### Third part", "", strings.Repeat("The printer was cleaned and tested by the night shift. ", 60), ""}
		got, texts := sections(s.document(t, s.ingest(t, file("crlf.md", strings.Join(lines, "\r\n"))...)))
		want := []string{"Windows notes", "Windows notes > Second part", "Windows notes > Second part > Third part"}
		if !slices.Equal(got, want) || len(texts) < 4 {
			t.Errorf("sections %q, %d chunks", got, len(texts))
		}
		if whole := strings.Join(texts, ""); strings.ContainsAny(whole, "\r\ufeff") {
			t.Error("carriage returns or byte-order marks are left")
		}
	})

	table := "part,supplier,remark\r\nE-1234,Nordhaus,cracked flange on arrival\r\nE-1235,Süd GmbH,größere Dichtung nötig\r\n"

	t.Run("DAT02UTF16", func(t *testing.T) {
		t.Parallel()
		for name, order := range map[string]binary.ByteOrder{"le": binary.LittleEndian, "be": binary.BigEndian} {
			job := s.ingest(t, file(name+".csv", utf16Text(order, table))...)
			for _, query := range []string{"größere Dichtung", "E-1234"} {
				found := false
				for _, h := range s.ask(t, query, `,"fts_only":true`).Results {
					found = found || h.DocumentID == job["document_id"]
				}
				if !found {
					t.Errorf("%s: %q is not found", name, query)
				}
			}
		}
	})

	t.Run("DAT03ByteOrderMark", func(t *testing.T) {
		t.Parallel()
		_, texts := sections(s.document(t, s.ingest(t, file("bom.csv", "\ufeff"+table)...)))
		if !strings.HasPrefix(texts[0], "part,supplier") {
			t.Errorf("got %q", texts)
		}
	})

	t.Run("DAT04LineBreaksInFields", func(t *testing.T) {
		t.Parallel()
		random := rand.New(rand.NewPCG(3, 3)) //nolint:gosec // test data
		words := strings.Fields("tray feed motor paper light sensor queue toner drum cover belt heat noise error test unit desk floor shift")
		var csv strings.Builder
		csv.WriteString("ticket,subject,description,owner\r\n")
		for i := range 300 {
			description := fmt.Sprintf("step one of %d\nstep two, with a comma\nand a \"\"quoted\"\" word", i)
			if i%7 != 0 {
				description = ""
				for range 12 {
					description += words[random.IntN(len(words))] + " "
				}
			}
			if i == 147 {
				description = "The tray was misfed.\nReseat the roller, then run\nthe aligner called Bessemer."
			}
			fmt.Fprintf(&csv, "%d,\"printer %d\",\"%s\",desk%d\r\n", 1000+i, i, description, i%5)
		}
		job := s.ingest(t, file("tickets.csv", csv.String())...)
		got := s.ask(t, "Bessemer aligner", "")
		record := "1147,\"printer 147\",\"The tray was misfed.\nReseat the roller, then run\nthe aligner called Bessemer.\",desk2"
		if text := got.Results[0].Text; got.Results[0].DocumentID != job["document_id"] || !strings.Contains(text, record) || !strings.HasPrefix(text, "ticket,subject,description,owner") {
			t.Errorf("got %q", text)
		}
		_, texts := sections(s.document(t, job))
		whole := "\n" + strings.Join(texts, "\n")
		for i := range 300 {
			if n := strings.Count(whole, fmt.Sprintf("\n%d,\"printer %d\"", 1000+i, i)); n != 1 {
				t.Errorf("ticket %d occurs %d times", 1000+i, n)
			}
		}
	})

	t.Run("FTS01TooLargeForOneVector", func(t *testing.T) {
		t.Parallel()
		random := rand.New(rand.NewPCG(21, 21)) //nolint:gosec // test data
		syllables := strings.Fields("ba re ti mo nu ka le si po du fa ge hi jo ku")
		var distinct, blob strings.Builder
		for i := range 200_000 {
			fmt.Fprintf(&distinct, "%s%s%s%x ", syllables[i%15], syllables[i/15%15], syllables[i/225%15], i)
		}
		for range 900_000 {
			blob.WriteByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(64)])
		}
		// Each has a server of its own: a job that takes long does not hold up the others.
		for name, test := range map[string]struct{ content, query string }{
			"DistinctWords": {distinct.String() + "Zwyrtel", "Zwyrtel"},
			"Base64":        {"Mail from the Oakham office follows.\n\n" + blob.String() + "\n\nEnd of the Oakham mail.\n", "end of the Oakham mail"},
			"OneWord":       {"Prefix " + strings.Repeat("x", 5000) + " suffix about Dunmore.\n", "Dunmore"},
			"Underscores":   {"Start of the Lydford dump.\n" + strings.Repeat("a_", 100_000) + "\nEnd of the Lydford dump.\n", "end of the Lydford dump"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := start(t, config{})
				s.ingest(t, file("large.txt", test.content)...)
				wanted := test.query[strings.LastIndex(test.query, " ")+1:]
				if got := s.ask(t, test.query, `,"fts_only":true`); len(got.Results) == 0 || !strings.Contains(got.Results[0].Text, wanted) {
					t.Errorf("%q is not found", test.query)
				}
			})
		}
	})
}
