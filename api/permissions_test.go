package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// inEnvelopes has the first parts of the paths whose errors come in an envelope.
var inEnvelopes = []string{"knowledge", "memory-stores", "memories", "projects", "policies", "api-keys", "users"}

// holdsNothing says whether a list, a search or a page is empty.
func holdsNothing(t *testing.T, a answer) bool {
	t.Helper()
	var value any
	must(t, json.Unmarshal(a.body, &value))
	switch v := value.(type) {
	case []any:
		return len(v) == 0 && (a.header.Get("X-Total-Count") == "" || a.header.Get("X-Total-Count") == "0")
	case map[string]any:
		for name, member := range v {
			if list, isList := member.([]any); isList && len(list) > 0 && name != "embedding_spaces" {
				return false
			}
			if name == "total" && member != 0.0 || name == "total_matches" && member != 0.0 {
				return false
			}
			if object, isObject := member.(map[string]any); isObject && name == "database" && (object["documents"] != 0.0 || object["chunks"] != 0.0) {
				return false
			}
		}
		return true
	}
	return false
}

// refusal is the status for a caller who may not do an operation: lists are empty then, and single things are not there.
func (d documented) refusal() int {
	switch {
	case calls[d.OperationID].empty != 0:
		return calls[d.OperationID].empty
	case !d.isRead() || d.adminOnly():
		return http.StatusForbidden
	case strings.Contains(d.path, "{"):
		return http.StatusNotFound
	default:
		return http.StatusOK
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{})
	shared := ts.things(t, ts.a, ts.projectA, "shared")
	inA := func(claims map[string]any) *server {
		claims["prj"] = ts.projectA
		return ts.as(mint(t, claims))
	}
	for i, d := range ts.operations(t) {
		t.Run(d.OperationID, func(t *testing.T) {
			row := calls[d.OperationID]
			anonymous := ts.as("").try(t, d, shared)
			if first, _, _ := strings.Cut(strings.TrimPrefix(d.path, "/api/v1/"), "/"); slices.Contains(inEnvelopes, first) {
				anonymous.wantEnvelope(t, http.StatusUnauthorized, "UNAUTHORIZED")
			} else {
				anonymous.wantError(t, http.StatusUnauthorized, map[string]any{"code": "authentication_required"})
			}

			for name, caller := range map[string]*server{
				"allowed nothing": inA(map[string]any{}),
				"denied this": inA(map[string]any{"policy": map[string]any{"statement": []any{
					map[string]any{"effect": "Allow", "action": "*"}, map[string]any{"effect": "Deny", "action": d.action()},
				}}}),
			} {
				got, want := caller.try(t, d, shared), d.refusal()
				if name == "denied this" {
					want = cmp.Or(row.denied, want)
				}
				if got.status != want || got.status == http.StatusOK && !holdsNothing(t, got) {
					t.Errorf("%s: %d, want %d: %.300s", name, got.status, want, got.body)
				}
			}

			ids := ts.things(t, ts.a, ts.projectA, fmt.Sprintf("own%d", i))
			switch d.OperationID {
			case "retryJob":
				ids["job_id"] = ts.a.upload(t, file("broken.pdf", "%PDF-1.4 broken")...).want(t, 202).object(t)["job_id"].(string)
				if ended := ts.a.wait(t, ids["job_id"]); ended["status"] != "failed" {
					t.Fatal(ended)
				}
				ts.waitForNoStaged(t) // the upload is set aside for the retry only after the job has failed
			case "deleteProject", "getProjectErasure":
				ids["project_id"] = ts.admin.post(t, "/api/v1/projects", `{"name": "for `+d.OperationID+`"}`).want(t, 201).object(t)["id"].(string)
				if d.OperationID == "getProjectErasure" {
					ts.admin.do(t, http.MethodDelete, "/api/v1/projects/"+ids["project_id"], nil).want(t, 202)
				}
			}
			actions := []string{d.action()}
			if row.also != "" {
				actions = append(actions, row.also)
			}
			caller := inA(map[string]any{"policy": allow(actions)})
			if d.adminOnly() {
				if got := inA(map[string]any{"policy": allow([]string{"*"})}).try(t, d, ids); got.status != http.StatusForbidden {
					t.Errorf("admin only, but %d for a caller who is none", got.status)
				}
				caller = ts.admin
				if strings.HasPrefix(d.action(), "api-keys:") || d.OperationID == "getSearchFeedback" {
					caller = inA(map[string]any{"role": "admin"})
				}
			}
			got := caller.try(t, d, ids)
			if got.status != row.fine && (row.fine != 0 || got.status >= 300) {
				t.Errorf("allowed this: %d %.300s", got.status, got.body)
			}
			if row.fine == 0 && d.isRead() && got.header.Get("Content-Type") == "application/json" && d.refusal() == http.StatusOK && holdsNothing(t, got) {
				t.Errorf("allowed this, but sees nothing: %s", got.body)
			}
		})
	}
}
