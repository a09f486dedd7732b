package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
)

// data gives the rows of a page of the knowledge API.
func (a answer) data(t *testing.T) []map[string]any {
	t.Helper()
	var page struct {
		Data   []map[string]any `json:"data"`
		Total  *int             `json:"total"`
		Limit  *int             `json:"limit"`
		Offset *int             `json:"offset"`
	}
	must(t, json.Unmarshal(a.want(t, http.StatusOK).body, &page))
	if page.Data == nil || page.Total == nil || page.Limit == nil || page.Offset == nil {
		t.Fatalf("not a page: %s", a.body)
	}
	return page.Data
}

func names(rows []map[string]any) (names []string) {
	for _, row := range rows {
		names = append(names, row["name"].(string))
	}
	slices.Sort(names)
	return names
}

func TestProjects(t *testing.T) {
	t.Parallel()
	s := startTenants(t, config{NoWorker: true})

	t.Run("EverybodySeesTheirOwn", func(t *testing.T) {
		t.Parallel()
		if got := names(s.admin.get(t, "/api/v1/projects").data(t)); !slices.Contains(got, "alpha") || !slices.Contains(got, "beta") || !slices.Contains(got, "default") {
			t.Errorf("admin: %v", got)
		}
		if got := names(s.a.get(t, "/api/v1/projects").data(t)); !slices.Equal(got, []string{"alpha"}) {
			t.Errorf("a: %v", got)
		}
		named := s.as(mint(t, map[string]any{"policy": allow([]string{"projects:*"}, "srn:"+s.projectB+":project:*")}))
		if got := names(named.get(t, "/api/v1/projects").data(t)); !slices.Equal(got, []string{"beta"}) {
			t.Errorf("by policy: %v", got)
		}
		s.a.get(t, "/api/v1/projects/"+s.projectA).want(t, http.StatusOK)
		foreign, unknown := s.a.get(t, "/api/v1/projects/"+s.projectB), s.a.get(t, "/api/v1/projects/proj_01kb9q5s7ze4gr6tcx3k0z9ykn")
		foreign.wantEnvelope(t, http.StatusNotFound, "RESOURCE_NOT_FOUND")
		if string(foreign.body) != string(unknown.body) {
			t.Errorf("%s, %s", foreign.body, unknown.body)
		}
	})

	t.Run("PagesAreCutAndClamped", func(t *testing.T) {
		t.Parallel()
		got := s.admin.get(t, "/api/v1/projects?limit=1&offset=1").want(t, http.StatusOK).object(t)
		if len(got["data"].([]any)) != 1 || got["total"].(float64) < 3 || got["limit"] != 1.0 || got["offset"] != 1.0 {
			t.Errorf("%v", got)
		}
		if got := s.admin.get(t, "/api/v1/projects?limit=1000").want(t, http.StatusOK).object(t); got["limit"] != 100.0 {
			t.Errorf("%v", got["limit"])
		}
		if got := s.admin.get(t, "/api/v1/projects?offset=1000").data(t); len(got) != 0 {
			t.Errorf("past the end: %v", got)
		}
		for _, query := range []string{"limit=0", "limit=-1", "limit=x", "offset=-1"} {
			s.admin.get(t, "/api/v1/projects?"+query).wantEnvelope(t, http.StatusBadRequest, "VALIDATION_FAILED")
		}
	})

	t.Run("OnlyAdminsWrite", func(t *testing.T) {
		t.Parallel()
		boundAdmin := s.as(mint(t, map[string]any{"role": "admin", "prj": s.projectA}))
		for _, caller := range []*server{s.a, boundAdmin} {
			caller.post(t, "/api/v1/projects", `{"name": "mine"}`).wantEnvelope(t, http.StatusForbidden, "FORBIDDEN")
			caller.put(t, "/api/v1/projects/"+s.projectA, `{"name": "mine"}`).wantEnvelope(t, http.StatusForbidden, "FORBIDDEN")
			caller.do(t, http.MethodDelete, "/api/v1/projects/"+s.projectA, nil).wantEnvelope(t, http.StatusForbidden, "FORBIDDEN")
		}
	})

	t.Run("NamesAreUniqueAndChecked", func(t *testing.T) {
		t.Parallel()
		s.admin.post(t, "/api/v1/projects", `{"name": "alpha"}`).wantEnvelope(t, http.StatusConflict, "NAME_CONFLICT")
		s.admin.put(t, "/api/v1/projects/"+s.projectB, `{"name": "alpha"}`).wantEnvelope(t, http.StatusConflict, "NAME_CONFLICT")
		for _, body := range []string{`{"name": " "}`, `{"name": "` + strings.Repeat("a", 201) + `"}`, `{}`, `{"name": 1}`, `{`, `{"name": "x", "text_config": "klingon"}`} {
			s.admin.post(t, "/api/v1/projects", body).wantEnvelope(t, http.StatusBadRequest, "VALIDATION_FAILED")
		}
		german := s.admin.post(t, "/api/v1/projects", `{"name": "gamma", "text_config": "german"}`).want(t, http.StatusCreated).object(t)
		if german["text_config"] != "german" {
			t.Errorf("%v", german)
		}
		renamed := s.admin.put(t, "/api/v1/projects/"+german["id"].(string), `{"name": "delta"}`).want(t, http.StatusOK).object(t)
		if renamed["name"] != "delta" || renamed["updated_at"] == nil {
			t.Errorf("%v", renamed)
		}
	})
}

func TestProjectErasure(t *testing.T) {
	t.Parallel()
	s := startTenants(t, config{})
	s.b.ingest(t, note("Beta", "The valve of beta stays.")...)
	s.a.ingest(t, with(note("Alpha", "The pump of alpha."), "tags", "t")...)
	doc := s.a.document(t, s.a.ingest(t, file("a.md", "# A\n\nText of alpha.")...))
	s.a.ingest(t, with(file("a.md", "# A\n\nNext text of alpha."), "path", "/a.md")...)
	key := s.admin.post(t, "/api/v1/api-keys", `{"name": "k", "project_id": "`+s.projectA+`"}`).want(t, 201).object(t)["key"].(string)
	s.as(key).ask(t, "pump", "")
	failed := s.a.upload(t, file("broken.pdf", "%PDF-1.4 broken")...).want(t, 202).object(t)["job_id"].(string)
	s.a.wait(t, failed)

	s.admin.do(t, http.MethodDelete, "/api/v1/projects/"+s.projectA, nil).want(t, http.StatusAccepted)
	for _, caller := range []*server{s.a, s.admin} {
		caller.get(t, "/api/v1/documents/"+doc["id"].(string)+"?project_id="+s.projectA).want(t, http.StatusNotFound)
	}
	// The project is gone for its key, and in a moment the key is.
	if got := s.as(key).get(t, "/api/v1/documents"); got.status != http.StatusNotFound && got.status != http.StatusUnauthorized {
		t.Errorf("the key still gets %d", got.status)
	}
	receipt := s.receipt(t, s.projectA)
	erased := receipt["erased"].(map[string]any)
	for table, want := range map[string]float64{"documents": 2, "chunks": 2, "chunk_words": 2, "embeddings": 2, "document_versions": 1, "tags": 1, "api_keys": 1, "jobs": 4} {
		if erased[table] != want {
			t.Errorf("%s: %v erased, want %v", table, erased[table], want)
		}
	}
	if erased["files"].(float64) < 3 {
		t.Errorf("%v files erased", erased["files"])
	}
	for table, n := range receipt["remaining"].(map[string]any) {
		if n != 0.0 {
			t.Errorf("%v rows of %s are left", n, table)
		}
	}
	files := 0
	for list := s.bucket.List(&blob.ListOptions{}); ; files++ {
		if _, err := list.Next(t.Context()); err != nil {
			break
		}
	}
	if files != 1 {
		t.Errorf("%d files are left, want beta's", files)
	}
	if got := s.b.ask(t, "valve", ""); len(got.Results) != 1 {
		t.Errorf("beta lost something: %v", got)
	}
	s.admin.do(t, http.MethodDelete, "/api/v1/projects/"+s.projectA, nil).wantEnvelope(t, http.StatusNotFound, "RESOURCE_NOT_FOUND")
	s.admin.do(t, http.MethodDelete, "/api/v1/projects/"+s.admin.defaultProject(t), nil).wantEnvelope(t, http.StatusConflict, "DEFAULT_PROJECT")
	s.admin.post(t, "/api/v1/projects", `{"name": "alpha"}`).want(t, http.StatusCreated)
}

// receipt waits until a project is erased.
func (ts *tenants) receipt(t *testing.T, project string) map[string]any {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got := ts.admin.get(t, "/api/v1/projects/"+project+"/erasure").want(t, http.StatusOK).object(t)
		if got["status"] == "erased" {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %v", got)
		}
	}
}

func (s *server) defaultProject(t *testing.T) string {
	t.Helper()
	for _, row := range s.get(t, "/api/v1/projects").data(t) {
		if row["name"] == "default" {
			return row["id"].(string)
		}
	}
	t.Fatal("there is no default project")
	return ""
}
