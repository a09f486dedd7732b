package api_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// testSecret signs the tokens of these tests.
const testSecret = "a secret of these tests, long enough for HS256"

// mint signs a token that is good for an hour.
func mint(t testing.TB, claims map[string]any) string {
	t.Helper()
	all := jwt.MapClaims{"sub": "somebody", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, all).SignedString([]byte(testSecret))
	must(t, err)
	return token
}

// as gives the server as somebody else sees it.
func (s *server) as(credential string) *server {
	other := *s
	other.key = credential
	return &other
}

// allow is the policy claim of a caller who may do some actions on some resources.
func allow(actions []string, resources ...string) map[string]any {
	statement := map[string]any{"effect": "Allow", "action": actions}
	if len(resources) > 0 {
		statement["resource"] = resources
	}
	return map[string]any{"statement": []any{statement}}
}

// tenants is a server with two projects.
type tenants struct {
	*server
	// admin may do everything; a and b are everything in one project each.
	admin, a, b        *server
	projectA, projectB string
}

func startTenants(t *testing.T, c config) *tenants {
	t.Helper()
	c.Secret = testSecret
	s := start(t, c)
	admin := s.as(mint(t, map[string]any{"sub": "root", "role": "admin"}))
	ts := &tenants{server: s, admin: admin}
	for name, project := range map[string]*string{"alpha": &ts.projectA, "beta": &ts.projectB} {
		*project = admin.post(t, "/api/v1/projects", `{"name": "`+name+`"}`).want(t, http.StatusCreated).object(t)["id"].(string)
	}
	ts.a = s.as(mint(t, map[string]any{"sub": "ann", "prj": ts.projectA, "scope": "*"}))
	ts.b = s.as(mint(t, map[string]any{"sub": "ben", "prj": ts.projectB, "scope": "*"}))
	return ts
}

// wantEnvelope checks an error in the knowledge API's form.
func (a answer) wantEnvelope(t *testing.T, status int, code string) map[string]any {
	t.Helper()
	detail, _ := a.want(t, status).object(t)["error"].(map[string]any)
	if detail["code"] != code {
		t.Errorf("code %v, want %s: %s", detail["code"], code, a.body)
	}
	for _, name := range []string{"message", "hint", "docs_url"} {
		if text, _ := detail[name].(string); text == "" {
			t.Errorf("an error without %s: %s", name, a.body)
		}
	}
	meta, _ := detail["meta"].(map[string]any)
	return meta
}
