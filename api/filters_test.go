package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// titles lists the titles of the documents that a query gives, sorted, and checks their number against the total.
func (s *server) titles(t *testing.T, query url.Values) []string {
	t.Helper()
	query.Set("limit", "100")
	got := s.get(t, "/api/v1/documents?"+query.Encode()).want(t, 200)
	titles := []string{}
	for _, document := range got.list(t) {
		titles = append(titles, document["title"].(string))
	}
	if total := got.header.Get("X-Total-Count"); total != fmt.Sprint(len(titles)) {
		t.Errorf("%v: %d documents of %s", query, len(titles), total)
	}
	slices.Sort(titles)
	return titles
}

func TestMetadataFilter(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	// FIL-02: seven types under one key, one document for each, and one without the key.
	for title, metadata := range map[string]string{
		"number": `{"price": 100}`, "string": `{"price": "100"}`, "word": `{"price": "N/A"}`, "null": `{"price": null}`, "true": `{"price": true}`,
		"object": `{"price": {"v": 100}}`, "list": `{"price": [100]}`, "none": `{"prices": 100}`,
		"large": `{"n": 9007199254740993}`, "quotes": `{"author": "O'Brien", "a\"b'c]d.e{f%g$1": "x", "": "nothing"}`,
	} {
		s.ingest(t, with(note(title, "The text of "+title), "metadata", metadata)...)
	}

	t.Run("FIL02ValuesOfAnotherTypeDoNotMatch", func(t *testing.T) {
		t.Parallel()
		for condition, want := range map[string]string{
			`100`: "number", `100.0`: "number", `1e2`: "number", `"100"`: "string", `"N/A"`: "word", `true`: "true", `false`: "", `50`: "",
			`{"in": [100]}`: "number", `{"in": ["100", true]}`: "string true", `{"in": [50, "50", false]}`: "",
			`{"gt": 50}`: "number", `{"gte": 100}`: "number", `{"lt": 100}`: "", `{"lte": 100}`: "number", `{"gt": 100}`: "",
			`{"gt": "100"}`: "word", `{"gte": "100"}`: "string word", `{"lt": "N/A"}`: "string", `{"gt": "0", "lt": "2"}`: "string",
			`{"gt": 1, "lt": "z"}`: "", `{"gt": 50, "lt": 100.5}`: "number",
		} {
			got := s.titles(t, url.Values{"metadata": {`{"price": ` + condition + `}`}})
			if strings.Join(got, " ") != want {
				t.Errorf("%s: got %v, want %s", condition, got, want)
			}
		}
	})

	t.Run("FIL01AKeyOrValueIsOnlyText", func(t *testing.T) {
		t.Parallel()
		for filter, want := range map[string]string{
			`{"author' = 'a' OR '1'='1' --": "z"}`: "", `{"author": "x') OR 1=1 --"}`: "", `{"author": "O'Brien"}`: "quotes",
			`{"a\"b'c]d.e{f%g$1": "x"}`: "quotes", `{"": "nothing"}`: "quotes", `{"": "x"}`: "", `{"` + strings.Repeat("k", 300) + `": {"lt": "'"}}`: "",
			`{"price') OR (1": {"gt": 1}}`: "", `{"$1": true}`: "", `{"%": {"in": ["%"]}}`: "", `{"price": 100, "author": "O'Brien"}`: "",
			`{"price": 50, "price": 100}`: "number",
		} {
			got := s.titles(t, url.Values{"metadata": {filter}})
			if strings.Join(got, " ") != want {
				t.Errorf("%s: got %v, want %s", filter, got, want)
			}
		}
		for _, tag := range []string{"x' OR '1'='1", `{"a\"' OR 1=1 --": "b"}`, "%", "$1"} {
			if got := s.titles(t, url.Values{"tags": {tag}}); len(got) > 0 {
				t.Errorf("tags %s: got %v", tag, got)
			}
		}
		s.get(t, "/api/v1/documents?sort=created_at;select%201").want(t, 200)
	})

	t.Run("NumbersKeepTheirDigits", func(t *testing.T) {
		t.Parallel()
		for filter, want := range map[string]int{`{"n": 9007199254740993}`: 1, `{"n": 9007199254740992}`: 0, `{"n": {"gt": 9007199254740992}}`: 1, `{"n": {"gt": 9007199254740993}}`: 0} {
			if got := s.titles(t, url.Values{"metadata": {filter}}); len(got) != want {
				t.Errorf("%s: got %v", filter, got)
			}
		}
	})

	t.Run("NothingNarrowsNothing", func(t *testing.T) {
		t.Parallel()
		if got := s.titles(t, url.Values{"metadata": {" {} "}}); len(got) != 10 {
			t.Errorf("got %v", got)
		}
	})

	t.Run("ItGoesOnToTheNextPage", func(t *testing.T) {
		t.Parallel()
		page := s.get(t, "/api/v1/documents?limit=1&type=note&metadata="+url.QueryEscape(`{"price": {"in": [100, "100"]}}`)).want(t, 200)
		next := s.get(t, nextPage(t, page)).want(t, 200)
		first, second := page.list(t)[0]["title"], next.list(t)[0]["title"]
		if first == second || !slices.Contains([]any{"number", "string"}, first) || !slices.Contains([]any{"number", "string"}, second) || next.header.Get("X-Total-Count") != "2" {
			t.Errorf("got %v and %v", first, second)
		}
	})

	for name, test := range map[string]struct{ query, field string }{
		"NoJSON":          {"metadata=" + url.QueryEscape(`{price}`), "query.metadata"},
		"NoObject":        {"metadata=[]", "query.metadata"},
		"Null":            {"metadata=null", "query.metadata"},
		"Empty":           {"metadata=", "query.metadata"},
		"Twice":           {"metadata=%7B%7D&metadata=%7B%7D", "query.metadata"},
		"UnknownOperator": {"metadata=" + url.QueryEscape(`{"a b": {"ne": 1}}`), "query.metadata.a b"},
		"EmptyIn":         {"metadata=" + url.QueryEscape(`{"price": {"in": []}}`), "query.metadata.price"},
		"AList":           {"metadata=" + url.QueryEscape(`{"price": [100]}`), "query.metadata.price"},
		"ATimeOfNoYear":   {"created_after=0000-01-01T00:00:00Z", ""},
	} {
		t.Run("Refused"+name, func(t *testing.T) {
			t.Parallel()
			fields := map[string]any{"code": "invalid_request"}
			if test.field != "" {
				fields["field"] = test.field
			}
			s.get(t, "/api/v1/documents?"+test.query).wantError(t, 400, fields)
		})
	}
}

// FIL-03: an underscore means itself, and a prefix is no more than the beginning of a path.
func TestPathPrefixes(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	for _, path := range []string{"/my_dir/a.txt", "/my_dir/sub/b.txt", "/my_dir2/c.txt", "/myxdir/d.txt"} {
		s.ingest(t, with(note(path[len(path)-5:len(path)-4], "A note at "+path), "path", path)...)
	}
	s.ingest(t, note("e", "A note of no place.")...)
	for prefix, want := range map[string]string{
		"/my_dir/": "a b", "my_dir/": "a b", "/my_dir": "a b c", "": "a b c d e", "/": "a b c d", "/my%dir": "", "/MY_DIR/": "", `/my_dir/"`: "", `\`: "", "{": "", ",": "",
	} {
		if got := s.titles(t, url.Values{"path_prefix": {prefix}}); strings.Join(got, " ") != want {
			t.Errorf("%q: got %v, want %s", prefix, got, want)
		}
	}
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	for _, path := range []string{"/.system", ".system", "/.system/a.txt", "a/../.system//b.txt"} {
		s.upload(t, with(note("n", "A note at "+path), "path", path)...).wantError(t, 400, map[string]any{"code": "reserved_path", "field": "body.path"})
	}
	for i, path := range []string{"/.systems", "/a/.system/b", "/.System/a"} {
		s.ingest(t, with(note("n", fmt.Sprintf("A note of its own %d.", i)), "path", path)...)
	}

	document := s.ingest(t, with(note("n", "A note with tags."), "tags", "systems,system")...)["document_id"].(string)
	_, err := s.pool.Exec(t.Context(), `UPDATE documents SET tags = tags || '{"system.origin": "import"}' WHERE content_hash = sha256('A note with tags.')`)
	must(t, err)
	refused := map[string]any{"code": "reserved_tag_key"}
	for _, tags := range []string{"system.x", "a, system.x:y ", `{"system.x": "y"}`, "system."} {
		s.upload(t, with(note("n", "A note with "+tags), "tags", tags)...).wantError(t, 400, refused)
	}
	tags := "/api/v1/documents/" + document + "/tags"
	s.put(t, tags, `{"add": ["system.x:y"]}`).wantError(t, 400, refused)
	s.put(t, tags, `{"remove": ["system.origin:import"]}`).wantError(t, 400, refused)
	s.patch(t, tags, `{"system.origin": "me"}`).wantError(t, 400, refused)
	s.patch(t, "/api/v1/notes/"+document, `{"tags": ["system.origin:me"]}`).wantError(t, 400, refused)
	// It can be read, and filtered on.
	if got := fmt.Sprint(s.get(t, tags).want(t, 200).object(t)); got != "map[system: system.origin:import systems:]" {
		t.Errorf("got %s", got)
	}
	if got := s.titles(t, url.Values{"tags": {"system.origin:import"}}); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if got := s.post(t, "/api/v1/search", `{"query": "note", "tags": ["system.origin:import"]}`).want(t, 200).object(t); len(got["results"].([]any)) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestDocumentFields(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	for _, test := range []struct {
		parts                 []part
		filename, contentType string
	}{
		{file("Pump.MD", "# Pump"), "Pump.MD", "text/markdown; charset=utf-8"},
		{file("data.json", `{"a": 1}`), "data.json", "application/json"},
		{note("n", "A note."), "note.txt", "text/plain; charset=utf-8"},
	} {
		document := s.document(t, s.ingest(t, test.parts...))
		id := document["id"].(string)
		if document["file_id"] != "file_"+strings.TrimPrefix(id, "doc_") || document["project_id"] != "proj_0000000000e008000000000001" ||
			document["filename"] != test.filename || document["original_filename"] != test.filename || document["content_type"] != test.contentType || document["status"] != "ready" {
			t.Errorf("got %v", document)
		}
	}
}
