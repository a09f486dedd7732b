package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/kb-search/kb/api"
	"github.com/kb-search/kb/api/search"
)

func TestKnowledgeScope(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	ts.a.ingest(t, note("Alpha", "The derrick of alpha.")...)
	ts.b.ingest(t, note("Beta", "The derrick of beta.")...)
	ts.a.remember(t, ts.a.store(t, "s", ""), "Remember the derrick of alpha.", "")
	const query = `{"query": "derrick"}`
	spans := func(claims map[string]any) *server { return ts.as(mint(t, claims)) }

	for name, test := range map[string]struct {
		as   *server
		want []string
	}{
		"OneProject":         {ts.a, []string{"Alpha", "Remember the derrick of alpha."}},
		"AnAdminSeesAll":     {ts.admin, []string{"Alpha", "Beta", "Remember the derrick of alpha."}},
		"TwoOfTheToken":      {spans(map[string]any{"prj": []string{ts.projectA, ts.projectB}, "scope": "*"}), []string{"Alpha", "Beta", "Remember the derrick of alpha."}},
		"ThoseOfThePolicies": {spans(map[string]any{"policy": allow([]string{"*"}, "srn:"+ts.projectB+":*:*")}), []string{"Beta"}},
		"DocumentsAlone":     {spans(map[string]any{"policy": allow([]string{"*"}, "srn:"+ts.projectA+":document:*", "srn:"+ts.projectA+":project:*")}), []string{"Alpha"}},
		"MemoriesByTheirStore": {spans(map[string]any{"policy": allow([]string{"*"}, "srn:"+ts.projectA+":memory_store:*", "srn:"+ts.projectA+":project:*")}),
			[]string{"Remember the derrick of alpha."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := foundIn(test.as.know(t, query))
			slices.Sort(found)
			if !slices.Equal(found, test.want) {
				t.Errorf("found %v", found)
			}
		})
	}

	t.Run("AProjectOutOfReachIs403WhetherItIsThereOrNot", func(t *testing.T) {
		t.Parallel()
		body := func(project string) string { return `{"query": "derrick", "project_id": "` + project + `"}` }
		foreign := ts.a.post(t, "/api/v1/knowledge/search", body(ts.projectB))
		foreign.wantEnvelope(t, http.StatusForbidden, "FORBIDDEN")
		for _, project := range []string{"proj_01kb9q5s7ze4gr6tcx3k0z9ykn", "nonsense"} {
			if unknown := ts.a.post(t, "/api/v1/knowledge/search", body(project)); !bytes.Equal(unknown.body, foreign.body) || unknown.status != foreign.status {
				t.Errorf("%s, %s", foreign.body, unknown.body)
			}
		}
		if found := foundIn(ts.admin.know(t, body(ts.projectB))); !slices.Equal(found, []string{"Beta"}) {
			t.Errorf("%v", found)
		}
	})

	t.Run("AQueryIsBilledAFilterIsNot", func(t *testing.T) {
		t.Parallel()
		reader := spans(map[string]any{"prj": ts.projectB, "scope": "knowledge:SearchKnowledge"})
		reader.post(t, "/api/v1/knowledge/search", query).wantEnvelope(t, http.StatusForbidden, "FORBIDDEN")
		if found := foundIn(reader.know(t, `{"document_paths": ["/"]}`)); len(found) != 0 { // a note has no path
			t.Errorf("%v", found)
		}
		nobody := spans(map[string]any{"prj": ts.projectB})
		nobody.post(t, "/api/v1/knowledge/search", query).wantEnvelope(t, http.StatusForbidden, "FORBIDDEN")
		if found := foundIn(nobody.know(t, `{"tags": {"a": "b"}}`)); len(found) != 0 {
			t.Errorf("%v", found)
		}
		// A project of its own: the other searches of this test are billed to theirs.
		project := ts.admin.post(t, "/api/v1/projects", `{"name": "billed"}`).want(t, http.StatusCreated).object(t)["id"].(string)
		billed := spans(map[string]any{"prj": project, "scope": "*"})
		usage := func() float64 {
			days := billed.get(t, "/api/v1/projects/"+project+"/usage").want(t, 200).object(t)["days"].([]any)
			total := 0.0
			for _, day := range days { // the day may end in the middle of the test
				total += day.(map[string]any)["queries"].(float64)
			}
			return total
		}
		billed.know(t, `{"query": "derrick of beta"}`)
		billed.ask(t, "derrick", "")
		billed.ask(t, "derrick", `,"fts_only":true`)
		if queries := usage(); queries != 2 {
			t.Errorf("%v queries, want the two that were embedded", queries)
		}
	})
}

func TestKnowledgeDefaults(t *testing.T) {
	t.Parallel()
	s := start(t, config{Knowledge: api.Knowledge{RRFK: 5, Fusion: search.RRF}})
	s.ingest(t, note("Pump", "The impeller is worn.")...)
	score := func(more string) float64 {
		return s.know(t, `{"query": "impeller"`+more+`}`)["results"].([]any)[0].(map[string]any)["score"].(float64)
	}
	for more, want := range map[string]float64{"": 2.0 / 6, `, "rrf_k": 60`: 2.0 / 61, `, "rrf_k": 60, "weights": {"vector": 0, "lexical": 3}`: 3.0 / 61} {
		if got := score(more); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s: %v, want %v", more, got, want)
		}
	}
}

func TestKnowledgeGroups(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	var long bytes.Buffer
	for i := range 120 {
		fmt.Fprintf(&long, "# Part %d\n\nThe celadon glaze of kiln %d is celadon glaze.\n\n", i, i)
	}
	s.ingest(t, file("long.md", long.String())...)
	for i := range 5 {
		s.ingest(t, note(fmt.Sprintf("Short %d", i), fmt.Sprintf("Celadon glaze number %d is one of many other glazes here.", i))...)
	}
	got := s.know(t, `{"query": "celadon glaze", "limit": 20, "group_by": "document"}`)
	found := foundIn(got)
	slices.Sort(found)
	if len(found) != 6 || len(slices.Compact(found)) != 6 || got["total"] != 6.0 {
		t.Errorf("MIX-04: %v of %v", found, got["total"])
	}
	two := foundIn(s.know(t, `{"query": "celadon glaze", "limit": 20, "group_by": "document", "group_size": 2}`))
	if len(two) != 7 {
		t.Errorf("%v", two)
	}
}

func TestErrorCatalog(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true, Key: "secret"})
	page := s.as("").raw(t, http.MethodGet, "/docs/error-codes", nil)
	if page.status != http.StatusOK || page.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %v", page.status, page.header)
	}
	for _, code := range []string{"validation_failed", "unauthorized", "forbidden", "resource_not_found", "version_conflict", "internal_error"} {
		if !bytes.Contains(page.body, []byte(`id="`+code+`"`)) {
			t.Errorf("%s is not explained", code)
		}
	}
}
