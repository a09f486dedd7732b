package api_test

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	s := startTenants(t, config{})
	s.a.ingest(t, note("Alpha", "The pump of alpha.")...)
	create := func(t *testing.T, body string) map[string]any {
		t.Helper()
		return s.admin.post(t, "/api/v1/api-keys", body).want(t, http.StatusCreated).object(t)
	}

	t.Run("IsShownOnceAndWorksInItsProject", func(t *testing.T) {
		t.Parallel()
		made := create(t, `{"name": "ci", "project_id": "`+s.projectA+`"}`)
		key := made["key"].(string)
		path := "/api/v1/api-keys/" + made["id"].(string) + "?project_id=" + s.projectA
		if !strings.HasPrefix(key, "sk_") || !strings.HasPrefix(key, made["key_prefix"].(string)) || made["project_id"] != s.projectA {
			t.Errorf("%v", made)
		}
		for _, path := range []string{path, "/api/v1/api-keys?project_id=" + s.projectA} {
			if got := s.admin.get(t, path).want(t, 200); bytes.Contains(got.body, []byte(key)) || strings.Contains(string(got.body), `"key":`) {
				t.Errorf("the key is shown again: %s", got.body)
			}
		}
		hash := sha256.Sum256([]byte(key))
		var stored []byte
		must(t, s.pool.QueryRow(t.Context(), "SELECT hash FROM api_keys WHERE prefix = $1", made["key_prefix"]).Scan(&stored))
		if !bytes.Equal(stored, hash[:]) {
			t.Error("the hash is not the key's SHA-256")
		}
		holder := s.as(key)
		if got := holder.get(t, "/api/v1/documents").want(t, 200).list(t); len(got) != 1 {
			t.Errorf("%v", got)
		}
		holder.get(t, "/api/v1/documents?project_id="+s.projectB).want(t, http.StatusNotFound)
		holder.post(t, "/api/v1/api-keys", `{"name": "more"}`).wantEnvelope(t, http.StatusForbidden, "FORBIDDEN")
		if got := s.admin.get(t, path).object(t); got["last_used_at"] == nil {
			t.Error("its use was not noted")
		}
	})

	t.Run("UseIsNotedOnceAMinute", func(t *testing.T) {
		t.Parallel()
		made := create(t, `{"name": "busy", "project_id": "`+s.projectA+`"}`)
		used := func() (at time.Time) {
			s.as(made["key"].(string)).get(t, "/api/v1/documents").want(t, 200)
			must(t, s.pool.QueryRow(t.Context(), "SELECT last_used_at FROM api_keys WHERE prefix = $1", made["key_prefix"]).Scan(&at))
			return at
		}
		first := used()
		if second := used(); !second.Equal(first) {
			t.Errorf("noted at %s and again at %s", first, second)
		}
		_, err := s.pool.Exec(t.Context(), "UPDATE api_keys SET last_used_at = last_used_at - interval '61 seconds' WHERE prefix = $1", made["key_prefix"])
		must(t, err)
		if third := used(); third.Before(first) {
			t.Errorf("a use of a minute later was not noted: %s", third)
		}
	})

	t.Run("RotatedRevokedExpired", func(t *testing.T) {
		t.Parallel()
		made := create(t, `{"name": "r", "project_id": "`+s.projectA+`"}`)
		path := "/api/v1/api-keys/" + made["id"].(string)
		query := "?project_id=" + s.projectA
		rotated := s.admin.post(t, path+"/rotate"+query, "").want(t, 200).object(t)
		s.as(made["key"].(string)).get(t, "/api/v1/documents").wantError(t, 401, map[string]any{"error": "invalid api key"})
		s.as(rotated["key"].(string)).get(t, "/api/v1/documents").want(t, 200)
		s.admin.do(t, http.MethodDelete, path+query, nil).want(t, 204)
		s.as(rotated["key"].(string)).get(t, "/api/v1/documents").want(t, 401)
		s.admin.post(t, path+"/rotate"+query, "").wantEnvelope(t, 409, "KEY_REVOKED")
		if got := s.admin.get(t, path+query).want(t, 200).object(t); got["revoked_at"] == nil {
			t.Errorf("%v", got)
		}

		short := create(t, `{"name": "s", "project_id": "`+s.projectA+`", "expires_at": "2100-01-01T00:00:00Z"}`)
		s.as(short["key"].(string)).get(t, "/api/v1/documents").want(t, 200)
		_, err := s.pool.Exec(t.Context(), "UPDATE api_keys SET expires_at = now() WHERE prefix = $1", short["key_prefix"])
		must(t, err)
		s.as(short["key"].(string)).get(t, "/api/v1/documents").want(t, 401)
		s.admin.post(t, "/api/v1/api-keys"+query, `{"name": "x", "expires_at": "2001-01-01T00:00:00Z"}`).wantEnvelope(t, 400, "VALIDATION_FAILED")
	})

	t.Run("PoliciesSayWhatItMayDo", func(t *testing.T) {
		t.Parallel()
		policy := s.admin.post(t, "/api/v1/policies", `{"name": "lists only", "document": {"statement": [{"effect": "Allow", "action": "documents:ListDocuments"}]}}`).want(t, 201).object(t)
		made := create(t, `{"name": "p", "project_id": "`+s.projectA+`", "policy_ids": ["`+policy["id"].(string)+`"]}`)
		holder := s.as(made["key"].(string))
		holder.get(t, "/api/v1/documents").want(t, 200)
		holder.upload(t, note("x", "y")...).want(t, 403)
		s.admin.do(t, http.MethodDelete, "/api/v1/policies/"+policy["id"].(string), nil).wantEnvelope(t, 409, "IN_USE")

		// The policy of a key holds as it is now, and so does what the key holds.
		s.admin.put(t, "/api/v1/policies/"+policy["id"].(string), `{"name": "uploads only", "document": {"statement": [{"effect": "Allow", "action": "documents:CreateDocument"}]}}`).want(t, 200)
		if got := holder.get(t, "/api/v1/documents").want(t, 200).list(t); len(got) != 0 {
			t.Errorf("%v", got)
		}
		s.admin.put(t, "/api/v1/api-keys/"+made["id"].(string)+"?project_id="+s.projectA, `{"name": "p2"}`).want(t, 200)
		if got := holder.get(t, "/api/v1/documents").want(t, 200).list(t); len(got) == 0 {
			t.Error("a key without policies may not read")
		}
		s.admin.do(t, http.MethodDelete, "/api/v1/policies/"+policy["id"].(string), nil).want(t, 204)
		s.admin.post(t, "/api/v1/api-keys?project_id="+s.projectA, `{"name": "x", "policy_ids": ["`+policy["id"].(string)+`"]}`).wantEnvelope(t, 400, "POLICY_NOT_FOUND")
	})

	t.Run("AnAdminOfOneProjectMakesThemThere", func(t *testing.T) {
		t.Parallel()
		bound := s.as(mint(t, map[string]any{"role": "admin", "prj": s.projectB}))
		made := bound.post(t, "/api/v1/api-keys", `{"name": "b"}`).want(t, 201).object(t)
		if made["project_id"] != s.projectB {
			t.Errorf("%v", made)
		}
		bound.post(t, "/api/v1/api-keys", `{"name": "b", "project_id": "`+s.projectA+`"}`).wantEnvelope(t, 404, "RESOURCE_NOT_FOUND")
		s.admin.post(t, "/api/v1/api-keys", `{"name": "b"}`).wantEnvelope(t, 400, "PROJECT_REQUIRED")
	})
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	s := startTenants(t, config{NoWorker: true})
	document := `{"statement": [{"effect": "Allow", "action": ["documents:*"], "resource": ["srn:` + s.projectA + `:document:*"]}]}`
	made := s.admin.post(t, "/api/v1/policies", `{"name": "readers", "document": `+document+`}`).want(t, 201).object(t)
	path := "/api/v1/policies/" + made["id"].(string)

	s.admin.post(t, "/api/v1/policies", `{"name": "readers", "document": `+document+`}`).wantEnvelope(t, 409, "NAME_CONFLICT")
	for name, bad := range map[string]string{
		"UnknownAction": `{"statement": [{"effect": "Allow", "action": "documents:Read"}]}`, "NoStatement": `{"statement": []}`, "NoObject": `1`,
	} {
		if meta := s.admin.post(t, "/api/v1/policies", `{"name": "`+name+`", "document": `+bad+`}`).wantEnvelope(t, 400, "VALIDATION_FAILED"); meta["field"] != "body.document" {
			t.Errorf("%s: %v", name, meta)
		}
	}
	if got := s.admin.get(t, "/api/v1/policies").data(t); len(got) != 1 {
		t.Errorf("%v", got)
	}

	// A subject holds it beside what its token says.
	cleo := s.as(mint(t, map[string]any{"sub": "cleo"}))
	if got := cleo.get(t, "/api/v1/documents").want(t, 200).list(t); len(got) != 0 {
		t.Errorf("%v", got)
	}
	cleo.upload(t, note("x", "y")...).want(t, 403)
	s.admin.put(t, "/api/v1/users/cleo/policies", `{"policy_ids": ["`+made["id"].(string)+`"]}`).want(t, 200)
	cleo.upload(t, note("x", "y")...).want(t, 202)
	s.admin.do(t, http.MethodDelete, path, nil).wantEnvelope(t, 409, "IN_USE")
	s.admin.put(t, "/api/v1/users/cleo/policies", `{"policy_ids": []}`).want(t, 200)
	cleo.upload(t, note("x", "z")...).want(t, 403)
	s.admin.do(t, http.MethodDelete, path, nil).want(t, 204)
	s.admin.get(t, path).wantEnvelope(t, 404, "RESOURCE_NOT_FOUND")
	s.a.get(t, "/api/v1/policies").wantEnvelope(t, 403, "FORBIDDEN")
}
