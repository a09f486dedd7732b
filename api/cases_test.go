package api_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

// identifiers are notes whose words a plain full text search loses; the cases FTS-02 to FTS-11 ask for them.
var identifiers = [][2]string{
	{"api.go", "func getUserById(id string) (*User, error) { return store.FindByID(id) }"},
	{"tokens.py", "def refresh_token_rotation(session):\n    rotate(session.refresh_token)\n"},
	{"paths", "The parser lives in src/utils/parser.ts and reads config from /etc/tollmark/agent.conf."},
	{"files", "Attached: report_final.pdf and photo-2024.jpg from the visit."},
	{"codes", "Part E-1234 failed; the log shows ORA-00600 and CVE-2026-2332, pages 10-20."},
	{"panel", "Fuse P-8A sits behind the left panel."},
	{"langs", "The importer is written in C++ and the viewer in C#."},
	{"vitamins", "Vitamin C is good for sailors. C is also a musical note."},
	{"links", "See https://example.com/docs/setup?step=2 or write to desk@example.com."},
	{"accents", "The résumé of the café owner in Málaga."},
	{"accents-nfd", "Cafe\u0301 au lait is served at noon."},
	{"hidden", "The data\u200bbase and the soft\u00adware share one \ufb01le on \uff21\uff22\uff23\uff11\uff12\uff13."},
	{"ja", "今月の売上ダッシュボードを確認する"},
	{"ko", "번역을 부탁해"},
	{"band", "Who are you? is a question the doorman asks."},
	{"hamlet", "To be or not to be, that is the question."},
	{"telecom", "AT&T sent an invoice. It's overdue."},
	{"state", "The Portland OR office closes early."},
	{"ferry", "The night ferry to Skarholm leaves at eleven."},
	{"kiln", "The Redgrave kiln is lit on Fridays."},
}

func TestCases(t *testing.T) {
	t.Parallel()
	s := start(t, config{Embedder: onnxtest.Real(t)})
	for _, n := range identifiers {
		s.ingest(t, note(n[0], n[1])...)
	}

	// find checks that a note is among the first results of each query, found by its words when lexical is set.
	type query struct{ text, title string }
	find := func(t *testing.T, first int, lexical bool, queries ...query) {
		t.Helper()
		for _, q := range queries {
			got := s.ask(t, q.text, `,"explain":true`)
			at := slices.Index(got.titles(), q.title)
			if at < 0 || at >= first {
				t.Errorf("%q: %s at %d of %v, want it in the first %d", q.text, q.title, at, got.titles(), first)
				continue
			}
			if lexical && got.Results[at].Explain.FTSRank == nil {
				t.Errorf("%q: %s without a lexical signal", q.text, q.title)
			}
		}
	}

	t.Run("FTS02PartNumbers", func(t *testing.T) {
		t.Parallel()
		find(t, 1, true, query{"E-1234", "codes"}, query{"E1234", "codes"}, query{"E 1234", "codes"}, query{"ORA-00600", "codes"}, query{"CVE-2026-2332", "codes"})
		find(t, 3, true, query{"1234", "codes"}, query{"00600", "codes"}, query{"2332", "codes"})
		find(t, 3, false, query{"p-8", "panel"}, query{"P-8A", "panel"})
	})

	t.Run("FTS04StopWordsAndOr", func(t *testing.T) {
		t.Parallel()
		for _, q := range []query{
			{"who are you", "band"}, {"to be or not to be", "hamlet"}, {"AT&T", "telecom"}, {"Portland OR", "state"},
		} {
			find(t, 3, false, q, query{`"` + q.text + `"`, q.title})
		}
		for _, text := range []string{"who are you", "to be or not to be", "it", "not", "or", `"it"`, "AT&T", "Portland OR"} {
			if got := s.ask(t, text, `,"fts_only":true`); len(got.Results) > 3 {
				t.Errorf("%q by words alone: %v", text, got.titles())
			}
			if got := s.ask(t, text, ""); len(got.Results) == 0 {
				t.Errorf("%q: nothing", text)
			}
		}
	})

	t.Run("FTS05Accents", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"cafe", "café", "cafe\u0301", "CAFÉ"} {
			find(t, 2, true, query{text, "accents"}, query{text, "accents-nfd"})
		}
		find(t, 1, true, query{"malaga", "accents"}, query{"resume", "accents"}, query{"database", "hidden"}, query{"software", "hidden"}, query{"ABC123", "hidden"})
		find(t, 3, true, query{"file", "hidden"})
		if got := s.ask(t, "database software", `,"top":1`).Results[0].Text; got != identifiers[11][1] {
			t.Errorf("the stored text has changed: %q", got)
		}
	})

	t.Run("FTS06ChineseJapaneseKorean", func(t *testing.T) {
		t.Parallel()
		find(t, 3, true, query{"売上", "ja"}, query{"今月", "ja"}, query{"ダッシュボード", "ja"}, query{"確認する", "ja"}, query{"번역", "ko"})
	})

	t.Run("FTS07Links", func(t *testing.T) {
		t.Parallel()
		find(t, 1, true, query{"https://example.com/docs/setup?step=2", "links"}, query{"example.com/docs/setup", "links"}, query{"example.com", "links"},
			query{"desk@example.com", "links"}, query{`"https://example.com/docs/setup"`, "links"})
	})

	t.Run("FTS08NamesOfLanguages", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"C++", "c++ importer", "C#", "C# viewer"} {
			titles := s.ask(t, text, "").titles()
			if langs, vitamins := slices.Index(titles, "langs"), slices.Index(titles, "vitamins"); langs < 0 || vitamins >= 0 && vitamins < langs {
				t.Errorf("%q: %v", text, titles)
			}
		}
	})

	t.Run("FTS10Identifiers", func(t *testing.T) {
		t.Parallel()
		find(t, 1, true, query{"getUserById", "api.go"}, query{"getuserbyid", "api.go"}, query{"get user by id", "api.go"},
			query{"refresh_token_rotation", "tokens.py"}, query{"refresh token", "tokens.py"}, query{"token_rotation", "tokens.py"})
	})

	t.Run("FTS11FileNames", func(t *testing.T) {
		t.Parallel()
		find(t, 3, true, query{"parser.ts", "paths"}, query{"parser", "paths"}, query{"src/utils", "paths"}, query{"agent.conf", "paths"},
			query{"report final", "files"}, query{"report_final.pdf", "files"}, query{"photo 2024", "files"})
	})

	t.Run("FTS03LongQueries", func(t *testing.T) {
		t.Parallel()
		words := make([]string, 5000)
		for i := range words {
			words[i] = fmt.Sprintf("wo%cd%c%d", 'a'+i%26, 'a'+i/26%26, i)
		}
		for name, text := range map[string]string{
			"200 kB of words":   "when does the ferry to Skarholm leave " + strings.Repeat("the other departments wrote about unrelated matters ", 4000),
			"1000 underscores":  strings.Join(words[:1000], "_"),
			"5000 underscores":  strings.Join(words, "_"),
			"a_a_a":             strings.Repeat("a_", 25_000),
			"no space at all":   strings.Repeat("é", 100_000),
			"200 kB of emoji":   strings.Repeat("🚀", 50_000),
			"different words":   strings.Join(words, " "),
			"slashes and dots":  strings.Repeat("a/b.c@", 10_000),
			"a run of Japanese": strings.Repeat("今月の売上", 5_000),
		} {
			got := s.ask(t, text, "") // A search that does not end within the server's limit is 503.
			if name == "200 kB of words" && got.Results[0].Title != "ferry" {
				t.Errorf("the head of the query is not used: %v", got.titles())
			}
		}
	})

	t.Run("VEC05NothingToCompare", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"🚀", "\u200b", "。。。", "--"} {
			for _, more := range []string{"", `,"min_score":0.5`, `,"vec_only":true`} {
				if got := s.ask(t, text, more); len(got.Results) != 0 {
					t.Errorf("%q%s: %v", text, more, got.titles())
				}
			}
		}
		s.post(t, "/api/v1/search", `{"query":"   "}`).wantError(t, 400, map[string]any{"field": "body.query"})
		if n := s.count(t, "embeddings WHERE l2_norm(embedding) NOT BETWEEN 0.99 AND 1.01"); n != 0 {
			t.Errorf("%d vectors are not of length 1", n)
		}
	})

	t.Run("EMB05EmptyInput", func(t *testing.T) {
		t.Parallel()
		empty := start(t, config{Embedder: onnxtest.Real(t)})
		empty.post(t, "/api/v1/search", `{"query":""}`).wantError(t, 400, map[string]any{"field": "body.query"})
		document := empty.document(t, empty.ingest(t, file("guide.md", "# Guide\n\n## Nothing here\n\n## Care\n\nOil the Brannock hinge.\n\n## Last\n")...))
		if chunks := document["chunks"].([]any); len(chunks) == 0 || empty.ask(t, "Brannock hinge", "").Results[0].DocumentID != document["id"] {
			t.Errorf("got %v", chunks)
		}
		for i, content := range []string{"--- *** ??? !!! ...\n", "\u0301\u0301\n", "🚀🚀🚀\n", "\u200b.\n"} {
			got := empty.upload(t, file(fmt.Sprintf("%d.txt", i), content)...).want(t, 202).object(t)
			job := empty.wait(t, got["job_id"].(string))
			if job["status"] != "done" && (job["status"] != "failed" || job["error_code"] != "empty") {
				t.Errorf("%q: %v", content, job)
			}
		}
		if n := empty.count(t, "documents AS d WHERE NOT EXISTS (SELECT FROM chunks AS c WHERE c.document_id = d.id)"); n != 0 {
			t.Errorf("%d documents without chunks", n)
		}
	})
}

func TestCasesEmbedding(t *testing.T) {
	t.Parallel()
	model := onnxtest.Real(t)

	t.Run("EMB01TheTailIsFound", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{Embedder: model})
		text := "Annual notes of the allotment society. " + strings.Repeat("Members met to discuss water, sheds, hedges, compost and the plots that nobody tends. ", 50) +
			"The mascot of the society is a heron called Bartholomew, painted by the treasurer's niece."
		s.ingest(t, file("notes.txt", text)...)
		found := false
		for _, h := range s.ask(t, "what is the club's mascot named?", `,"explain":true,"top":3`).Results {
			found = found || strings.Contains(h.Text, "Bartholomew") && h.Explain.VecRank != nil
		}
		if !found {
			t.Error("the fact at the end is not in the first three with a vector signal")
		}
		rows, err := s.pool.Query(t.Context(), "SELECT enriched_text FROM chunks")
		must(t, err)
		defer rows.Close()
		chunks := 0
		for ; rows.Next(); chunks++ {
			var enriched string
			must(t, rows.Scan(&enriched))
			if n := model.CountTokens(enriched); n > model.Window()-2 {
				t.Errorf("a chunk of %d word pieces", n)
			}
		}
		if must(t, rows.Err()); chunks < 4 {
			t.Errorf("%d chunks", chunks)
		}
	})

	t.Run("EMB02NeighboursDoNotLeak", func(t *testing.T) {
		t.Parallel()
		similarity := func(content string) float64 {
			s := start(t, config{Embedder: model})
			s.ingest(t, append(file("kiln.md", content), part{"title", "", "Kiln"})...)
			for _, h := range s.ask(t, "when is the kiln lit", "").Results {
				if strings.Contains(h.Text, "lit on Fridays") {
					return *h.Similarity
				}
			}
			t.Fatal("not found")
			return 0
		}
		long := strings.Repeat("The committee talked at length about hedges and water. ", 20)
		alone := similarity("# Times\n\nThe kiln is lit on Fridays.\n")
		together := similarity("# Times\n\nThe kiln is lit on Fridays.\n\n# Hedges\n\n" + long + "\n\n# Water\n\n" + long + "\n\n# More\n\n" + long)
		if math.Abs(alone-together) > 0.0001 {
			t.Errorf("alone %v, together %v", alone, together)
		}
	})

	t.Run("MIX05TiesKeepTheirOrder", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{Embedder: model})
		for i := range 30 { // equal texts whose bytes differ in white space alone
			s.ingest(t, note("Copy", "The night ferry to Skarholm leaves at eleven."+strings.Repeat("\n", i))...)
		}
		ids := func() (ids []string) {
			for _, h := range s.ask(t, "night ferry Skarholm", `,"top":10`).Results {
				ids = append(ids, h.ChunkID)
			}
			return ids
		}
		want := ids()
		if len(want) != 10 || !slices.IsSorted(want) {
			t.Errorf("got %v", want)
		}
		same := func(when string) {
			t.Helper()
			if got := ids(); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", when, got, want)
			}
		}
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				for range 10 {
					same("in parallel")
				}
			})
		}
		wait.Wait()
		_, err := s.pool.Exec(t.Context(), "VACUUM FULL chunks")
		must(t, err)
		_, err = s.pool.Exec(t.Context(), "VACUUM FULL embeddings")
		must(t, err)
		same("after VACUUM FULL")
		s.ingest(t, note("Tide", "The tide is high at noon.")...)
		same("after an insert")
		longer := s.ask(t, "night ferry Skarholm", `,"top":30`)
		for i, h := range longer.Results[:10] {
			if h.ChunkID != want[i] {
				t.Errorf("a longer page begins with %v", h.ChunkID)
			}
		}
	})
}
