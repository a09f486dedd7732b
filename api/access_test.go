package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	s := startTenants(t, config{NoWorker: true})

	t.Run("AUT01BadTokensAreRefusedWithOneBody", func(t *testing.T) {
		t.Parallel()
		good := mint(t, map[string]any{"role": "admin"})
		want := s.as("nonsense").get(t, "/api/v1/documents")
		want.wantError(t, http.StatusUnauthorized, map[string]any{"error": "invalid token", "code": "invalid_token"})
		for name, token := range map[string]string{
			"Cut": good[:len(good)-3], "Expired": mint(t, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
			"NotYet": mint(t, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
			"None":   "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4IiwiZXhwIjo0MTAyNDQ0ODAwfQ.",
		} {
			got := s.as(token).get(t, "/api/v1/documents")
			if got.status != http.StatusUnauthorized || string(got.body) != string(want.body) {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		s.as("sk_unknown").get(t, "/api/v1/documents").wantError(t, http.StatusUnauthorized, map[string]any{"error": "invalid api key"})
		s.as("").get(t, "/api/v1/documents").wantError(t, http.StatusUnauthorized, map[string]any{"error": "authentication required"})
		s.as("").get(t, "/api/v1/projects").wantEnvelope(t, http.StatusUnauthorized, "UNAUTHORIZED")
	})

	t.Run("AUT02ClocksMayBeApart", func(t *testing.T) {
		t.Parallel()
		for _, claims := range []map[string]any{
			{"nbf": time.Now().Add(15 * time.Second).Unix()}, {"exp": time.Now().Add(-15 * time.Second).Unix()}, {"iat": time.Now().Add(time.Hour).Unix()},
		} {
			claims["prj"] = s.projectA
			s.as(mint(t, claims)).get(t, "/api/v1/documents").want(t, http.StatusOK)
		}
	})

	t.Run("AnEmptyScopeGrantsNothing", func(t *testing.T) {
		t.Parallel()
		for _, scope := range []string{"", "openid profile"} {
			nobody := s.as(mint(t, map[string]any{"prj": s.projectA, "scope": scope}))
			if got := nobody.get(t, "/api/v1/documents").want(t, http.StatusOK).list(t); len(got) != 0 {
				t.Errorf("scope %q sees %v", scope, got)
			}
			nobody.upload(t, note("a", "b")...).wantError(t, http.StatusForbidden, map[string]any{"code": "forbidden"})
		}
	})

	t.Run("AScopeLimitsWhatPoliciesAllow", func(t *testing.T) {
		t.Parallel()
		reader := s.as(mint(t, map[string]any{"role": "admin", "prj": s.projectA, "scope": "documents:ListDocuments"}))
		reader.get(t, "/api/v1/documents").want(t, http.StatusOK)
		reader.upload(t, note("a", "b")...).want(t, http.StatusForbidden)
	})
}

func TestProjectOfARequest(t *testing.T) {
	t.Parallel()
	s := startTenants(t, config{})
	s.a.ingest(t, note("Alpha", "The pump of alpha.")...)
	s.a.ingest(t, note("Second", "The second note.")...)
	both := s.as(mint(t, map[string]any{"prj": []string{s.projectA, s.projectB}, "scope": "documents:* knowledge:*"}))
	for name, test := range map[string]struct {
		as     *server
		path   string
		header []string
		status int
		rows   int
	}{
		"OfTheToken":              {s.a, "/api/v1/documents", nil, 200, 2},
		"NotSaidButNeeded":        {both, "/api/v1/documents", nil, 400, 0},
		"ByHeader":                {both, "/api/v1/documents", []string{"X-Project-Id", s.projectA}, 200, 2},
		"ByParameter":             {both, "/api/v1/documents?project_id=" + s.projectB, nil, 200, 0},
		"TwoAtOnce":               {both, "/api/v1/documents?project_id=" + s.projectB, []string{"X-Project-Id", s.projectA}, 400, 0},
		"TwiceTheSame":            {both, "/api/v1/documents?project_id=" + s.projectA, []string{"X-Project-Id", s.projectA}, 200, 2},
		"OfSomebodyElse":          {s.b, "/api/v1/documents?project_id=" + s.projectA, nil, 404, 0},
		"ThatIsNotThere":          {s.b, "/api/v1/documents?project_id=proj_01kb9q5s7ze4gr6tcx3k0z9ykn", nil, 404, 0},
		"ThatIsNoID":              {s.b, "/api/v1/documents?project_id=1%20OR%201", nil, 404, 0},
		"AnAdminNamesOne":         {s.admin, "/api/v1/documents", nil, 400, 0},
		"AnAdminHasNamedOne":      {s.admin, "/api/v1/documents?project_id=" + s.projectA, nil, 200, 2},
		"TheOnlyOneOfThePolicies": {s.as(mint(t, map[string]any{"policy": allow([]string{"documents:*"}, "srn:"+s.projectA+":document:*")})), "/api/v1/documents", nil, 200, 2},
		"NoneAtAll":               {s.as(mint(t, nil)), "/api/v1/documents", nil, 200, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.as.do(t, http.MethodGet, test.path, nil, test.header...).want(t, test.status)
			if test.status == 200 && len(got.list(t)) != test.rows {
				t.Errorf("%s", got.body)
			}
		})
	}

	t.Run("AnUploadNamesItInItsForm", func(t *testing.T) {
		t.Parallel()
		third := s.admin.post(t, "/api/v1/projects", `{"name": "gamma"}`).want(t, 201).object(t)["id"].(string)
		several := s.as(mint(t, map[string]any{"prj": []string{s.projectA, third}, "scope": "documents:*"}))
		several.upload(t, note("x", "y")...).wantError(t, 400, map[string]any{"code": "project_required"})
		several.upload(t, with(note("Gamma", "The valve of gamma."), "project_id", third)...).want(t, 202)
		s.b.upload(t, with(note("x", "y"), "project_id", s.projectA)...).want(t, 404)
	})

	t.Run("TheNextPageIsOfTheSameProject", func(t *testing.T) {
		t.Parallel()
		link := both.get(t, "/api/v1/documents?limit=1&project_id="+s.projectA).want(t, 200).header.Get("Link")
		next, _, _ := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if got := both.get(t, next).want(t, 200).list(t); len(got) != 1 {
			t.Errorf("behind %s: %v", link, got)
		}
	})
}

func TestCORS(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true, Key: "secret", Origins: []string{"https://app.example"}})
	none := start(t, config{NoWorker: true, Key: "secret"})
	ask := func(s *server, method, origin string) answer {
		return s.as("").raw(t, method, "/api/v1/search", strings.NewReader(`{"query": "x"}`), "Origin", origin, "Content-Type", "application/json",
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
	}
	for name, test := range map[string]struct {
		s              *server
		method, origin string
		status         int
		allowed        string
	}{
		"AUT05Preflight":           {s, "OPTIONS", "https://app.example", 204, "https://app.example"},
		"PreflightOfAnotherOrigin": {s, "OPTIONS", "https://evil.example", 204, ""},
		"ARefusalIsReadable":       {s, "POST", "https://app.example", 401, "https://app.example"},
		"NotConfigured":            {none, "POST", "https://app.example", 401, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(test.s, test.method, test.origin).want(t, test.status)
			if got.header.Get("Access-Control-Allow-Origin") != test.allowed || got.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%v", got.header)
			}
		})
	}
}

// raw sends a request that need not be one of the API's operations.
func (s *server) raw(t *testing.T, method, path string, body io.Reader, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, body)
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.client.Do(request)
	must(t, err)
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	must(t, err)
	return answer{status: response.StatusCode, header: response.Header, body: read}
}
