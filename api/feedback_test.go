package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kb-search/kb/api/search"
)

func TestFeedback(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	ts.a.ingest(t, machine("Spindle", "The spindle is hot.", "alarm", `{"equipment": "CNC-07"}`)...)
	ts.a.ingest(t, machine("Belt", "The belt slips.", "alarm", `{"equipment": "CV-2"}`)...)
	hybrid := ts.a.search(t, `{"query": "spindle belt"}`)
	structured := ts.a.search(t, `{"keywords": ["spindle"], "query_text": "why is it hot", "equipment": "CNC-07"}`)
	if hybrid.SearchID == structured.SearchID || len(hybrid.Results) != 2 || len(structured.Results) != 1 {
		t.Fatalf("%+v %+v", hybrid, structured)
	}
	rate := func(caller *server, search, result, rating string) answer {
		return caller.post(t, "/api/v1/search/feedback", fmt.Sprintf(`{"search_id": %q, "result_id": %q, "rating": %q, "comment": "since it is"}`, search, result, rating))
	}
	given := rate(ts.a, structured.SearchID, structured.Results[0].DocumentID, "up").want(t, 201).object(t)
	if given["search_id"] != structured.SearchID || given["document_id"] != structured.Results[0].DocumentID || given["rating"] != "up" || given["comment"] != "since it is" {
		t.Errorf("%v", given)
	}
	rate(ts.a, hybrid.SearchID, hybrid.Results[0].ChunkID, "up").want(t, 201)
	rate(ts.a, hybrid.SearchID, hybrid.Results[1].DocumentID, "up").want(t, 201)
	rate(ts.a, hybrid.SearchID, hybrid.Results[1].ChunkID, "down").want(t, 201) // changes the mind

	t.Run("SummedUpByKindAndStatus", func(t *testing.T) {
		got := ts.admin.do(t, http.MethodGet, "/api/v1/search/feedback", nil, "X-Project-Id", ts.projectA).want(t, 200)
		want := `{"data":[{"structured":false,"status":"loose_hit","searches":1,"up":1,"down":1},{"structured":true,"status":"strict_hit","searches":1,"up":1,"down":0}]}`
		if strings.TrimSpace(string(got.body)) != want {
			t.Errorf("%s", got.body)
		}
		ts.a.get(t, "/api/v1/search/feedback").want(t, 403)
	})

	t.Run("WhoDidNotSearchMayNotRate", func(t *testing.T) {
		other := ts.as(mint(t, map[string]any{"sub": "another", "prj": ts.projectA, "scope": "*"}))
		rate(other, hybrid.SearchID, hybrid.Results[0].DocumentID, "up").want(t, 404)
		rate(ts.b, hybrid.SearchID, hybrid.Results[0].DocumentID, "up").want(t, 404)
		admin := ts.as(mint(t, map[string]any{"role": "admin", "prj": ts.projectA}))
		rate(admin, hybrid.SearchID, hybrid.Results[0].DocumentID, "up").want(t, 201)
	})

	t.Run("BadRequestsSayWhy", func(t *testing.T) {
		for field, got := range map[string]answer{
			"body.search_id": rate(ts.a, "search_1", hybrid.Results[0].DocumentID, "up"),
			"body.result_id": rate(ts.a, structured.SearchID, hybrid.Results[1].DocumentID, "up"),
			"body.rating":    rate(ts.a, hybrid.SearchID, hybrid.Results[0].DocumentID, "meh"),
		} {
			if got.status != 400 || got.object(t)["field"] != field {
				t.Errorf("%s: %d %s", field, got.status, got.body)
			}
		}
		if got := rate(ts.a, structured.SearchID, "mem_1", "up"); got.status != 400 || got.object(t)["field"] != "body.result_id" {
			t.Errorf("%d %s", got.status, got.body)
		}
		rate(ts.a, made(t, map[string]string{"search_id": hybrid.SearchID})["search_id"], hybrid.Results[0].DocumentID, "up").want(t, 404)
	})

	t.Run("TextsAreNotKeptUnlessToldTo", func(t *testing.T) {
		var requests string
		must(t, ts.pool.QueryRow(t.Context(), "SELECT string_agg(request::text, ' ') FROM searches").Scan(&requests))
		if strings.Contains(requests, "spindle") || strings.Contains(requests, "hot") || !strings.Contains(requests, "CNC-07") {
			t.Errorf("kept: %s", requests)
		}
	})
}

func TestSearchTextsAreKeptWhereToldTo(t *testing.T) {
	t.Parallel()
	s := startWorkshop(t, config{LogQueries: true})
	f := s.search(t, `{"keywords": ["spindle"], "query_text": "why is it hot"}`)
	s.post(t, "/api/v1/search/feedback", fmt.Sprintf(`{"search_id": %q, "result_id": %q, "rating": "up"}`, f.SearchID, f.Results[0].DocumentID)).want(t, 201)
	var request string
	must(t, s.pool.QueryRow(t.Context(), "SELECT request::text FROM searches").Scan(&request))
	if request != `{"keywords": ["spindle"], "query_text": "why is it hot"}` {
		t.Errorf("kept: %s", request)
	}
}

// Only admins tune a request; what a project has goes before the server's settings, and the request before the project's.
func TestTuning(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	for i := range 4 {
		ts.a.ingest(t, note(fmt.Sprintf("Spindle %d", i), fmt.Sprintf("Number %d of them.", i))...)
	}
	status := func(caller *server, more string) string {
		return caller.search(t, `{"keywords": ["spindle"]`+more+`}`).Status
	}
	got := ts.a.post(t, "/api/v1/search", `{"keywords": ["spindle"], "tuning": {"strict_max_hits": 2}}`)
	got.wantError(t, http.StatusForbidden, map[string]any{"field": "body.tuning"})
	admin := ts.as(mint(t, map[string]any{"role": "admin", "prj": ts.projectA}))
	if a, b := status(ts.a, ""), status(admin, `, "tuning": {"strict_max_hits": 2}`); a != "strict_hit" || b != "too_many" {
		t.Errorf("untuned %s, tuned %s", a, b)
	}

	path := "/api/v1/projects/" + ts.projectA
	put := ts.admin.put(t, path, `{"name": "alpha", "search_settings": {"strict_max_hits": 3, "fusion": "blend"}}`).want(t, 200).object(t)
	if fmt.Sprint(put["search_settings"]) != "map[fusion:blend strict_max_hits:3]" {
		t.Errorf("%v", put)
	}
	if kept := ts.admin.put(t, path, `{"name": "alpha"}`).want(t, 200).object(t); fmt.Sprint(kept["search_settings"]) != "map[fusion:blend strict_max_hits:3]" {
		t.Errorf("a change of the name alone leaves %v", kept)
	}
	if a, b := status(ts.a, ""), status(admin, `, "tuning": {"strict_max_hits": 4}`); a != "too_many" || b != "strict_hit" {
		t.Errorf("by the project %s, by the request %s", a, b)
	}
	blended := ts.a.search(t, `{"query": "spindle", "explain": true}`).Results[0]
	if blended.Explain.RRFFTS != nil && blended.Score < 0.5 {
		t.Errorf("the project's fusion is blend, but %+v", blended)
	}
	for _, settings := range []string{`{"strict_max_hits": 0}`, `{"fusion": "sum"}`, `{"boost": 1}`, `[]`} {
		ts.admin.put(t, path, `{"name": "alpha", "search_settings": `+settings+`}`).want(t, 400)
	}
	ts.admin.put(t, path, `{"name": "alpha", "search_settings": {}}`).want(t, 200)
	if a := status(ts.a, ""); a != "strict_hit" {
		t.Errorf("after the settings are taken back: %s", a)
	}
}

func TestMetricsAreForAdmins(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	for name, test := range map[string]struct {
		caller *server
		status int
	}{
		"Nobody":              {ts.as(""), 401},
		"AMember":             {ts.a, 403},
		"AnAdminOfOneProject": {ts.as(mint(t, map[string]any{"role": "admin", "prj": ts.projectA})), 403},
		"AnAdmin":             {ts.admin, 200},
	} {
		if got := test.caller.get(t, "/metrics"); got.status != test.status {
			t.Errorf("%s: %d", name, got.status)
		}
	}
}

func TestSettingsAreTheMeasuredOnes(t *testing.T) {
	t.Parallel()
	encoded, err := json.Marshal(search.DefaultSettings())
	must(t, err)
	for _, want := range []string{`"StrictMaxHits":8`, `"TitleBoost":3`, `"RRFWindow":50`, `"VectorWeight":0.5`, `"MaxResultWindow":10000`} {
		if !strings.Contains(string(encoded), want) {
			t.Errorf("%s is not in %s", want, encoded)
		}
	}
}

// What one caller sends must not keep the searches of others from being written down.
func TestWhateverIsSearchedIsWrittenDown(t *testing.T) {
	t.Parallel()
	s := startWorkshop(t, config{LogQueries: true})
	odd := []string{
		`{"filters": {"a": "\ud800"}}`, `{"filters": {"\ud800": 1}}`, "{\"filters\": {\"a\": \"\xff\"}}", `{"keywords": ["a\u0000b"]}`, `{"query": "a\u0000b"}`, `{"keywords": ["a\\u0000b"]}`,
		`{"query_text": "a\u0000b", "mode": "vector_only"}`, `{"query": "a", "tags": ["x\u0000"], "doc_type": "n\u0000"}`, `{"filters": {"a": 1e300, "b": -0.1}}`,
		`{"query_text": "` + strings.Repeat("long ", 100_000) + `"}`,
	}
	for _, body := range odd {
		s.post(t, "/api/v1/search", body).want(t, 200)
	}
	f := s.search(t, `{"keywords": ["spindle"]}`)
	s.post(t, "/api/v1/search/feedback", fmt.Sprintf(`{"search_id": %q, "result_id": %q, "rating": "up", "comment": "a\u0000\ud800"}`, f.SearchID, f.Results[0].DocumentID)).want(t, 201)
	if n := s.count(t, "searches"); n != len(odd)+1 {
		t.Errorf("%d of %d searches are written down", n, len(odd)+1)
	}
	for i, body := range []string{`{}`, `[]`, `{"search_id": 5}`, `{"search_id": "", "result_id": "", "rating": ""}`, `{"search_id": "search_\u0000", "result_id": "doc_1", "rating": "up"}`, `null`} {
		if got := s.post(t, "/api/v1/search/feedback", body); got.status != 400 {
			t.Errorf("%d: %d %s", i, got.status, got.body)
		}
	}
}
