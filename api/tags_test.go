package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTags(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	done := s.ingest(t, append(note("Pump", "The pump hums."), part{"tags", "", "manual,Lab,room:12"})...)
	s.ingest(t, append(note("Kiln", "The kiln glows."), part{"tags", "", "manual"})...)
	path := "/api/v1/documents/" + done["document_id"].(string)

	t.Run("ListHasCountsAndDescriptions", func(t *testing.T) {
		want := []map[string]any{
			{"name": "Lab", "document_count": 1.0, "description": nil},
			{"name": "manual", "document_count": 2.0, "description": nil},
			{"name": "room:12", "document_count": 1.0, "description": nil},
		}
		got := s.get(t, "/api/v1/tags").want(t, 200).list(t)
		if len(got) != len(want) {
			t.Fatalf("got %v", got)
		}
		for i := range want {
			for key, value := range want[i] {
				if got[i][key] != value {
					t.Errorf("got %v, want %v", got[i], want[i])
				}
			}
		}
	})

	t.Run("DescriptionIsSetWhateverTheCaseAndCleared", func(t *testing.T) {
		got := s.put(t, "/api/v1/tags/lab/description", `{"description": "Lab operations runbooks"}`).want(t, 200).object(t)
		if got["name"] != "Lab" || got["description"] != "Lab operations runbooks" {
			t.Errorf("got %v", got)
		}
		found := s.post(t, "/api/v1/search", `{"query": "pump"}`).want(t, 200).object(t)
		contexts := found["results"].([]any)[0].(map[string]any)["tag_contexts"].(map[string]any)
		if len(contexts) != 1 || contexts["Lab"] != "Lab operations runbooks" {
			t.Errorf("contexts %v", contexts)
		}
		for _, body := range []string{`{"description": ""}`, `{"description": null}`} {
			s.put(t, "/api/v1/tags/Lab/description", `{"description": "x"}`).want(t, 200)
			if got := s.put(t, "/api/v1/tags/LAB/description", body).want(t, 200).object(t); got["description"] != nil {
				t.Errorf("%s: got %v", body, got)
			}
		}
		s.put(t, "/api/v1/tags/Lab/description", `{"description": "`+strings.Repeat("x", 501)+`"}`).
			wantError(t, 400, map[string]any{"field": "body.description"})
	})

	t.Run("UnknownTagIsNotFound", func(t *testing.T) {
		s.put(t, "/api/v1/tags/nobody/description", `{"description": "x"}`).wantError(t, 404, nil)
	})

	t.Run("AddAndRemoveGiveTheListAndTheTimeOfChange", func(t *testing.T) {
		change := func(body string) []string {
			t.Helper()
			return s.put(t, path+"/tags", body).want(t, 200).names(t)
		}
		if got := change(`{}`); !slices.Equal(got, []string{"Lab", "manual", "room:12"}) {
			t.Errorf("nothing changes to %v", got)
		}
		if s.get(t, path).object(t)["updated_at"] != nil {
			t.Error("a change of nothing has a time")
		}
		if got := change(`{"add": ["v2", "room:14", " "]}`); !slices.Equal(got, []string{"Lab", "manual", "room:14", "v2"}) {
			t.Errorf("added: %v", got)
		}
		if s.get(t, path).object(t)["updated_at"] == nil {
			t.Error("a change has no time")
		}
		if got := change(`{"remove": ["manual", "room:12", "none"], "add": ["manual2"]}`); !slices.Equal(got, []string{"Lab", "manual2", "room:14", "v2"}) {
			t.Errorf("removed: %v", got)
		}
		if list := s.get(t, "/api/v1/documents?tags=manual2").list(t); len(list) != 1 {
			t.Errorf("the filter finds %d", len(list))
		}
		if list := s.get(t, "/api/v1/tags").list(t); list[len(list)-1]["name"] != "v2" {
			t.Errorf("the new tag is not listed: %v", list)
		}
	})

	t.Run("UnknownDocumentAndBadTags", func(t *testing.T) {
		s.put(t, "/api/v1/documents/doc_01kb9q5s7ze4gr6tcx3k0z9ykn/tags", `{"add": ["x"]}`).wantError(t, 404, nil)
		s.put(t, "/api/v1/documents/none/tags", `{"add": ["x"]}`).wantError(t, 404, nil)
		s.put(t, path+"/tags", `{"add": ["`+strings.Repeat("x", 201)+`"]}`).wantError(t, 400, map[string]any{"field": "body.add"})
		s.put(t, path+"/tags", `{"add": "x"}`).wantError(t, 400, map[string]any{"field": "body.add"})
	})

	t.Run("TheBagIsReadAndMerged", func(t *testing.T) {
		t.Parallel()
		path := "/api/v1/documents/" + s.ingest(t, append(note("Bag", "A note with a bag."), part{"tags", "", `{"team": "night", "urgent": ""}`})...)["document_id"].(string) + "/tags"
		if got := fmt.Sprint(s.get(t, path).want(t, 200).object(t)); got != "map[team:night urgent:]" {
			t.Errorf("got %s", got)
		}
		if got := fmt.Sprint(s.patch(t, path, `{"team": "day", "site": "A:1", "a:b": "c"}`).want(t, 200).object(t)); got != "map[a:b:c site:A:1 team:day urgent:]" {
			t.Errorf("merged: %s", got)
		}
		for _, body := range []string{`{"team": 1}`, `{"team": null}`, `{"team": ["a"]}`, `["a"]`, `null`} {
			s.patch(t, path, body).want(t, 400)
		}
		s.patch(t, "/api/v1/documents/doc_x/tags", `{}`).wantError(t, 404, map[string]any{"error": "not found"})
		s.get(t, "/api/v1/documents/doc_x/tags").wantError(t, 404, map[string]any{"error": "not found"})
	})
}
