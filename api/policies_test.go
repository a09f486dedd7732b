package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/db/dbtest"
)

// TestPoliciesInSQL compares what the database makes of a compiled policy with what Go makes of the policy itself, for
// random policies and documents.
func TestPoliciesInSQL(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	some := func(from ...string) (picked []string) {
		for range 1 + random.IntN(2) {
			picked = append(picked, pick(from...))
		}
		return picked
	}
	ids := map[string]uuid.UUID{"doc_1": uuid.MustParse("00000000-0000-7000-8000-000000000001"), "doc_2": uuid.MustParse("00000000-0000-7000-8000-000000000002")}
	parse := func(name string) (uuid.UUID, bool) { id, known := ids[name]; return id, known }
	statement := func() auth.Statement {
		s := auth.Statement{Effect: pick(auth.Allow, auth.Allow, auth.Deny), Action: some("*", "documents:*", "documents:GetDocument", "files:*")}
		if random.IntN(3) > 0 {
			s.Resource = some("*", "srn:proj_1:document:*", "srn:*:document:/a/*", "srn:*:*:/a_b?c", "srn:proj_1:document:doc_1", "srn:proj_2:*:*", "srn:*:memory:*", `srn:*:document:/100%\*`)
		}
		if random.IntN(2) > 0 {
			s.Condition = map[string]map[string]auth.Strings{pick("StringEquals", "StringNotEquals", "StringLike"): {
				pick("soat:ResourceTag/team", "soat:ResourceTag/site", "soat:ResourceType"): some("night", "n*", "", "document", "%", "d?y"),
			}}
		}
		return s
	}
	seen := 0
	for range 3000 {
		var policy auth.Policy
		for range 1 + random.IntN(4) {
			policy.Statement = append(policy.Statement, statement())
		}
		p := &auth.Principal{Policies: []auth.Policy{policy}}
		id, path := pick("doc_1", "doc_2"), pick("/a/x.md", "/a_b1c", "/a%b1c", `/100%\x`, "/b", "")
		tags := map[string]string{}
		for range random.IntN(3) {
			tags[pick("team", "site")] = pick("night", "day", "", "n%")
		}
		names := []string{id}
		var stored *string
		if path != "" {
			names, stored = append(names, path), &path
		}
		want := p.Allows("documents:GetDocument", auth.Resource{Project: "proj_1", Kind: "document", Names: names, Tags: tags})
		filter, none := p.Filter("documents:GetDocument", "proj_1", "document", parse)
		var encoded []byte
		if filter != nil {
			var err error
			encoded, err = filter.JSON()
			must(t, err)
		}
		bag, err := json.Marshal(tags)
		must(t, err)
		var got bool
		must(t, tx.QueryRow(t.Context(), "SELECT policy_allows($1, $2, $3, $4)", encoded, ids[id], stored, bag).Scan(&got))
		if got != want || none && want {
			document, _ := json.Marshal(policy)
			t.Fatalf("SQL says %v, Go %v (none %v) of %s %q %s under %s\ncompiled %s", got, want, none, id, path, bag, document, encoded)
		}
		if want {
			seen++
		}
	}
	if seen < 300 || seen > 2700 {
		t.Errorf("%d of 3000 are seen: the policies say too little", seen)
	}
}
