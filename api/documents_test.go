package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestDocumentTimeRanges(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	ids := make([]string, 3)
	for i := range ids {
		ids[i] = s.ingest(t, note("Note", fmt.Sprintf("Text number %d.", i))...)["document_id"].(string)
	}
	for i, day := range []string{"2026-01-01", "2026-02-01", "2026-03-01"} {
		_, err := s.pool.Exec(t.Context(), "UPDATE documents SET created_at = $1::timestamptz WHERE chunk_count = 1 AND title = 'Note' AND content_hash = sha256($2)",
			day+"T00:00:00Z", fmt.Appendf(nil, "Text number %d.", i))
		must(t, err)
	}
	s.put(t, "/api/v1/documents/"+ids[0]+"/tags", `{"add": ["changed"]}`).want(t, 200)
	for query, want := range map[string][]string{
		"created_after=2026-02-01T00:00:00Z":                                            {ids[2], ids[1]},
		"created_before=2026-02-01T00:00:00Z":                                           {ids[0]},
		"created_after=2026-01-15T05:30:00%2B05:30&created_before=2026-02-15T00:00:00Z": {ids[1]},
		"updated_after=2026-06-01T00:00:00Z":                                            {ids[0]},
		"updated_before=2026-06-01T00:00:00Z":                                           {ids[2], ids[1]},
	} {
		got := s.get(t, "/api/v1/documents?"+query).want(t, 200)
		var found []string
		for _, document := range got.list(t) {
			found = append(found, document["id"].(string))
		}
		if !slices.Equal(found, want) || got.header.Get("X-Total-Count") != fmt.Sprint(len(want)) {
			t.Errorf("%s: got %v of %s, want %v", query, found, got.header.Get("X-Total-Count"), want)
		}
	}
	page := s.get(t, "/api/v1/documents?limit=1&created_after=2026-02-01T00:00:00Z").want(t, 200)
	if next := s.get(t, nextPage(t, page)).want(t, 200).list(t); len(next) != 1 || next[0]["id"] != ids[1] {
		t.Errorf("the next page has %v", next)
	}
	s.get(t, "/api/v1/documents?created_after=yesterday").wantError(t, 400, map[string]any{"field": "query.created_after"})
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	if got := s.get(t, "/api/v1/documents").want(t, 200); strings.TrimSpace(string(got.body)) != "[]" || got.header.Get("X-Total-Count") != "0" {
		t.Errorf("an empty list: %s", got.body)
	}
	tagged := func(parts []part, tags string) []part { return append(parts, part{"tags", "", tags}) }
	jobs := []map[string]any{
		s.ingest(t, tagged(note("Zero", "The first text."), "manual,old")...),
		s.ingest(t, tagged(file("one.md", "# One\n\nThe second text."), "manual")...),
		s.ingest(t, tagged(file("two.csv", "part,place\nE-1,shelf\n"), "manual,a:b")...),
		s.ingest(t, note("Three", "The fourth text.")...),
	}
	slices.Reverse(jobs)
	ids := func(list []map[string]any) (ids []any) {
		for _, document := range list {
			ids = append(ids, document["id"])
		}
		return ids
	}
	want := func(positions ...int) (ids []any) {
		for _, i := range positions {
			ids = append(ids, jobs[i]["document_id"])
		}
		return ids
	}

	t.Run("ListNewestFirstWithFilters", func(t *testing.T) {
		t.Parallel()
		for query, wanted := range map[string][]any{
			"":                           want(0, 1, 2, 3),
			"?type=note":                 want(0, 3),
			"?type=markdown&tags=manual": want(2),
			"?tags=manual":               want(1, 2, 3),
			"?tags=manual,old":           want(3),
			"?tags=manual&tags=a:b":      want(1),
			"?tags=Manual":               nil,
			"?type=pdf":                  nil,
			"?tags=%20":                  want(0, 1, 2, 3),
		} {
			got := s.get(t, "/api/v1/documents"+query).want(t, 200)
			if list := ids(got.list(t)); !slices.Equal(list, wanted) || got.header.Get("X-Total-Count") != fmt.Sprint(len(wanted)) {
				t.Errorf("%s: got %v, want %v", query, list, wanted)
			}
		}
		for _, document := range s.get(t, "/api/v1/documents").list(t) {
			if updated, there := document["updated_at"]; !there || updated != nil || document["tags"] == nil || document["chunk_count"] != 1.0 || document["version"] != 1.0 {
				t.Errorf("got %v", document)
			}
		}
	})

	t.Run("PagesFollowTheCursorWithFilters", func(t *testing.T) {
		t.Parallel()
		for _, limit := range []int{1, 2, 3} {
			var got []any
			next := fmt.Sprintf("/api/v1/documents?tags=manual&limit=%d", limit)
			for pages := 1; next != ""; pages++ {
				page := s.get(t, next).want(t, 200)
				if len(page.list(t)) == 0 {
					t.Errorf("limit %d: page %d is empty", limit, pages)
				}
				got, next = append(got, ids(page.list(t))...), nextPage(t, page)
			}
			if !slices.Equal(got, want(1, 2, 3)) {
				t.Errorf("limit %d: got %v", limit, got)
			}
		}
	})

	t.Run("DetailHasChunksAndFile", func(t *testing.T) {
		t.Parallel()
		document := s.document(t, jobs[2])
		chunk := document["chunks"].([]any)[0].(map[string]any)
		if document["has_file"] != true || document["updated_at"] != nil || document["original_filename"] != "one.md" ||
			!isID(chunk["id"].(string), "dchunk") || chunk["seq"] != 0.0 || chunk["page"] != nil || chunk["section"] != "One" || !strings.Contains(chunk["text"].(string), "The second text.") {
			t.Errorf("got %v", document)
		}
		if metadata, isObject := document["metadata"].(map[string]any); !isObject || len(metadata) != 0 {
			t.Errorf("metadata %v", document["metadata"])
		}
	})

	t.Run("UnknownDocument", func(t *testing.T) {
		t.Parallel()
		known := jobs[0]["document_id"].(string)
		for _, id := range []string{"doc_01h455vb4pex5vsknk084sn02q", "doc_x", "42", "job_" + known[4:]} {
			s.get(t, "/api/v1/documents/"+id).wantError(t, 404, map[string]any{"error": "not found"})
			s.do(t, http.MethodDelete, "/api/v1/documents/"+id, nil).wantError(t, 404, map[string]any{"error": "not found"})
		}
	})
}

func TestDocumentOrder(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	var want []string
	for i := range 4 {
		want = append(want, s.ingest(t, note("", fmt.Sprintf("This is text %d.", i))...)["document_id"].(string))
	}
	// The oldest has changed last, and so comes first.
	_, err := s.pool.Exec(t.Context(), "UPDATE documents SET updated_at = now() WHERE created_at = (SELECT min(created_at) FROM documents)")
	must(t, err)
	slices.Reverse(want[1:])
	var got []string
	for next := "/api/v1/documents?limit=1"; next != ""; {
		page := s.get(t, next).want(t, 200)
		document := page.list(t)[0]
		if changed := document["updated_at"] != nil; changed != (len(got) == 0) {
			t.Errorf("document %d: %v", len(got), document)
		}
		got, next = append(got, document["id"].(string)), nextPage(t, page)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDocumentDelete(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	job := s.ingest(t, part{"file", "kiln.txt", "The kiln is lit on Fridays."}, part{"tags", "", "craft"})
	other := s.ingest(t, note("", "The tide is high on Fridays.")...)
	path := "/api/v1/documents/" + job["document_id"].(string)
	got := s.do(t, http.MethodDelete, path, nil).want(t, 200).object(t)
	if got["id"] != job["document_id"] || got["deleted"] != true {
		t.Errorf("got %v", got)
	}
	s.get(t, path).wantError(t, 404, nil)
	s.do(t, http.MethodDelete, path, nil).wantError(t, 404, nil)
	for table, want := range map[string]int{"documents": 1, "chunks": 1, "embeddings": 1} {
		if n := s.count(t, table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	if originals := s.files(t, "documents/"); len(originals) != 1 {
		t.Errorf("originals: %v", originals)
	}
	if found := s.search(t, `{"query":"kiln Fridays"}`); len(found.Results) != 1 || found.Results[0].DocumentID != other["document_id"] {
		t.Errorf("found %+v", found)
	}
	if again := s.get(t, "/api/v1/jobs/"+job["job_id"].(string)).want(t, 200).object(t); again["status"] != "done" {
		t.Errorf("the job of a deleted document: %v", again)
	}
	if again := s.ingest(t, file("kiln.txt", "The kiln is lit on Fridays.")...); again["document_id"] == job["document_id"] || s.document(t, again)["has_file"] != true {
		t.Errorf("after uploading it again: %v", again)
	}
}
