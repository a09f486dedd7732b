package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	create := func(t *testing.T, title, text string) (path, id string) {
		t.Helper()
		id = s.ingest(t, append(note(title, text), part{"tags", "", "draft"})...)["document_id"].(string)
		return "/api/v1/notes/" + id, id
	}
	found := func(t *testing.T, query string) (texts []string) {
		t.Helper()
		results := s.post(t, "/api/v1/search", fmt.Sprintf(`{"query": %q, "fts_only": true}`, query)).want(t, 200).object(t)["results"].([]any)
		for _, result := range results {
			texts = append(texts, result.(map[string]any)["text"].(string))
		}
		return texts
	}

	t.Run("NewTextIsFoundAtOnceAndTheOldOneStaysReadable", func(t *testing.T) {
		path, id := create(t, "Valve", "The ferrule is brass.")
		got := s.patch(t, path, `{"text": "The ferrule is titanium."}`).want(t, 200).object(t)
		chunks := got["chunks"].([]any)
		if got["id"] != id || got["version"] != 2.0 || got["updated_at"] == nil || got["title"] != "Valve" || len(chunks) != 1 ||
			chunks[0].(map[string]any)["text"] != "The ferrule is titanium." {
			t.Errorf("got %v", got)
		}
		if texts := found(t, "titanium"); !slices.Equal(texts, []string{"The ferrule is titanium."}) {
			t.Errorf("the new text: %q", texts)
		}
		if texts := found(t, "brass"); len(texts) != 0 {
			t.Errorf("the old text is still found: %q", texts)
		}
		versions := s.get(t, "/api/v1/documents/"+id+"/versions").want(t, 200).list(t)
		if len(versions) != 1 || versions[0]["version"] != 1.0 {
			t.Errorf("versions %v", versions)
		}
		for _, key := range s.files(t, "documents/") { // as a failed upload of the same content does
			must(t, job.DropOriginal(t.Context(), s.pool, s.bucket, db.DefaultProjectID, key))
		}
		if old := s.get(t, "/api/v1/documents/"+id+"/versions/1").want(t, 200).object(t); old["text"] != "The ferrule is brass." || !slices.Equal(old["tags"].([]any), []any{"draft"}) {
			t.Errorf("version 1: %v", old)
		}
		if file := s.get(t, "/api/v1/documents/"+id+"/file").want(t, 200); string(file.body) != "The ferrule is titanium." {
			t.Errorf("the original: %q", file.body)
		}
		s.do(t, http.MethodDelete, "/api/v1/documents/"+id, nil).want(t, 200)
		if files := s.files(t, "documents/"); len(files) != 0 {
			t.Errorf("originals are left: %v", files)
		}
	})

	t.Run("TitleAndTags", func(t *testing.T) {
		path, _ := create(t, "Old", "A quiet text about gaskets.")
		got := s.patch(t, path, `{"title": " New  name ", "tags": ["done", "room:3"]}`).want(t, 200).object(t)
		if got["title"] != "New name" || !slices.Equal(got["tags"].([]any), []any{"done", "room:3"}) || got["version"] != 2.0 {
			t.Errorf("got %v", got)
		}
		if texts := found(t, "name gaskets"); len(texts) != 1 {
			t.Errorf("the new title: %q", texts)
		}
	})

	t.Run("NothingNewIsNoVersion", func(t *testing.T) {
		path, _ := create(t, "Same", "The same text as before.")
		for _, body := range []string{`{}`, `{"text": "The same text as before."}`, `{"title": "Same"}`} {
			if got := s.patch(t, path, body).want(t, 200).object(t); got["version"] != 1.0 || got["updated_at"] != nil {
				t.Errorf("%s: %v", body, got)
			}
		}
	})

	t.Run("TwoAtOnceGiveOneTextOrAConflict", func(t *testing.T) {
		path, id := create(t, "Race", "Nobody has won.")
		var wait sync.WaitGroup
		answers := make([]answer, 8)
		for i := range answers {
			wait.Go(func() { answers[i] = s.patch(t, path, fmt.Sprintf(`{"text": "Runner%d has won."}`, i)) })
		}
		wait.Wait()
		won := 0
		for _, a := range answers {
			if a.status == 200 {
				won++
				continue
			}
			a.wantError(t, 409, map[string]any{"code": "version_conflict"})
		}
		document := s.get(t, "/api/v1/documents/"+id).want(t, 200).object(t)
		if won == 0 || document["version"] != float64(won+1) {
			t.Errorf("%d won, version %v", won, document["version"])
		}
		for _, key := range s.files(t, "documents/") {
			if s.count(t, fmt.Sprintf("(SELECT stored_path FROM documents UNION SELECT stored_path FROM document_versions) AS kept WHERE stored_path = '%s'", key)) != 1 {
				t.Errorf("%s is nobody's original", key)
			}
		}
		texts := found(t, "won")
		if len(texts) != 1 || texts[0] != document["chunks"].([]any)[0].(map[string]any)["text"] {
			t.Errorf("found %q", texts)
		}
	})

	t.Run("WhatCanNotBeChanged", func(t *testing.T) {
		path, _ := create(t, "Strict", "A strict text.")
		create(t, "Other", "The text of the other.")
		s.patch(t, path, `{"text": " \n "}`).wantError(t, 400, map[string]any{"field": "body.text"})
		s.patch(t, path, `{"title": " "}`).wantError(t, 400, map[string]any{"field": "body.title"})
		s.patch(t, path, `{"text": 5}`).wantError(t, 400, map[string]any{"field": "body.text"})
		s.patch(t, path, `{"body": "x"}`).wantError(t, 400, nil)
		s.patch(t, path, `{"text": "The text of the other."}`).wantError(t, 409, map[string]any{"code": "duplicate"})
		s.patch(t, "/api/v1/notes/doc_01kb9q5s7ze4gr6tcx3k0z9ykn", `{"text": "x"}`).wantError(t, 404, nil)
		s.patch(t, "/api/v1/notes/42", `{"text": "x"}`).wantError(t, 404, nil)
		other := s.ingest(t, file("page.md", "# Page\n\nNo note.")...)["document_id"].(string)
		s.patch(t, "/api/v1/notes/"+other, `{"text": "x"}`).wantError(t, 409, map[string]any{"code": "not_a_note"})
		s.get(t, "/api/v1/documents/"+other+"/versions/1").wantError(t, 404, nil)
		s.get(t, "/api/v1/documents/"+other+"/versions/0").wantError(t, 400, nil)
		if list := s.get(t, "/api/v1/documents/"+other+"/versions").want(t, 200); strings.TrimSpace(string(list.body)) != "[]" {
			t.Errorf("versions %s", list.body)
		}
	})
}
