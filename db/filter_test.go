package db_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocumentFits looks at each member of a filter, over five documents named a to e.
func TestDocumentFits(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	ids := map[string]uuid.UUID{}
	for name, document := range map[string]struct{ doc, path, tags, metadata, created, updated string }{
		"a": {"note", "", `{}`, `{}`, "2026-01-01", ""},
		"b": {"pdf", "/x/b.pdf", `{"team": "night"}`, `{"year": 2024}`, "2026-01-02", "2026-01-10"},
		"c": {"pdf", `/x "y"\{z},/c.pdf`, `{"team": "day", "odd": ""}`, `{"year": "2024"}`, "2026-01-03", ""},
		"d": {"code", "/x_y/d.go", `{"odd": ""}`, `{"year": 2025, "deep": {"a": 1}}`, "2026-01-04", ""},
		"e": {"code", "/z/e.go", `{"odd": "x"}`, `{"year": null}`, "2026-01-05", "2026-01-06"},
	} {
		ids[name] = db.NewID()
		_, err := tx.Exec(t.Context(), `INSERT INTO documents (project_id, id, title, doc_type, path, tags, metadata, content_hash, original_filename, stored_path, size, chunk_count, created_at, updated_at)
			VALUES ($1, $2, $3, $4, nullif($5, ''), $6, $7, sha256($3::text::bytea), '', '', 1, 1, $8::text::timestamp AT TIME ZONE 'UTC', nullif($9, '')::timestamp AT TIME ZONE 'UTC')`,
			db.DefaultProjectID, ids[name], name, document.doc, document.path, document.tags, document.metadata, document.created, document.updated)
		must(t, err)
	}
	day := func(n int) *time.Time {
		at := time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC).In(time.FixedZone("", -5*3600))
		return &at
	}
	project, other := db.DefaultProjectID.String(), db.NewID().String()
	everyNight := json.RawMessage(`{"allow": [{"all": true, "ids": [], "paths": [], "tags": [{"operator": "StringEquals", "key": "team", "values": ["night"]}]}], "deny": []}`)
	for name, test := range map[string]struct {
		filter db.DocumentFilter
		want   string
	}{
		"NoCondition":                     {db.DocumentFilter{}, "abcde"},
		"ATagHasThisValue":                {db.DocumentFilter{Tags: map[string]string{"odd": ""}}, "cd"},
		"AllTagsAreThere":                 {db.DocumentFilter{Tags: map[string]string{"odd": "", "team": "day"}}, "c"},
		"AType":                           {db.DocumentFilter{DocType: "pdf"}, "bc"},
		"SomeIDs":                         {db.DocumentFilter{IDs: db.UUIDs{ids["a"], ids["e"], db.NewID()}}, "ae"},
		"AListWithoutIDsFitsNothing":      {db.DocumentFilter{IDs: db.UUIDs{}}, ""},
		"APrefix":                         {db.DocumentFilter{Paths: db.Texts{"/x/"}}, "b"},
		"SomePrefix":                      {db.DocumentFilter{Paths: db.Texts{"/z", "/x_"}}, "de"},
		"APrefixWithAllThatNeedsQuotes":   {db.DocumentFilter{Paths: db.Texts{`/x "y"\{z},/`}}, "c"},
		"APrefixThatIsNULLIsAWord":        {db.DocumentFilter{Paths: db.Texts{"NULL"}}, ""},
		"AListWithoutPrefixesFitsNothing": {db.DocumentFilter{Paths: db.Texts{}}, ""},
		"MetadataHasThisValueAndType":     {db.DocumentFilter{Metadata: map[string]any{"year": 2024}}, "b"},
		"MetadataPassesATest":             {db.DocumentFilter{Tests: map[string]map[string]any{"year": {"gte": 2024, "lt": 2030}}}, "bd"},
		"CreatedAfterIsInclusive":         {db.DocumentFilter{CreatedAfter: day(4)}, "de"},
		"CreatedBeforeIsNot":              {db.DocumentFilter{CreatedBefore: day(2)}, "a"},
		"UpdatedAfter":                    {db.DocumentFilter{UpdatedAfter: day(6)}, "be"},
		"UpdatedBefore":                   {db.DocumentFilter{UpdatedBefore: day(6)}, "acd"},
		"APolicy":                         {db.DocumentFilter{Policies: map[string]json.RawMessage{project: everyNight}}, "b"},
		"APolicyOfAnotherProject":         {db.DocumentFilter{Policies: map[string]json.RawMessage{other: everyNight}}, "abcde"},
		"APolicyThatIsNullAllowsNothing":  {db.DocumentFilter{Policies: map[string]json.RawMessage{project: nil}}, ""},
		"AllConditions":                   {db.DocumentFilter{DocType: "code", Tags: map[string]string{"odd": ""}, Paths: db.Texts{"/x"}, CreatedAfter: day(1)}, "d"},
	} {
		filter, err := test.filter.JSON()
		must(t, err)
		var got string
		must(t, tx.QueryRow(t.Context(), "SELECT coalesce(string_agg(d.title, '' ORDER BY d.title), '') FROM documents AS d WHERE document_fits(d, $1)", filter).Scan(&got))
		if got != test.want {
			t.Errorf("%s: %s fits %q, want %q", name, filter, got, test.want)
		}
		if empty := name == "NoCondition"; test.filter.Empty() != empty {
			t.Errorf("%s: empty is %v", name, !empty)
		}
	}

	// What another program writes as null is no condition, too.
	var n int
	must(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM documents AS d WHERE document_fits(d, '{"tags": null, "doc_type": null, "ids": null, "paths": null,
		"metadata": null, "tests": null, "created_after": null, "policies": null}')`).Scan(&n))
	if n != 5 {
		t.Errorf("a filter of nulls fits %d documents", n)
	}
}

// TestDocumentFitsPlan proves that the planner puts the conditions of a filter in the place of the call, and those only.
func TestDocumentFitsPlan(t *testing.T) {
	t.Parallel()
	c := newCorpus(t)
	var id uuid.UUID
	must(t, c.pool.QueryRow(t.Context(), "SELECT id FROM documents WHERE project_id = $1 LIMIT 1", c.large).Scan(&id))
	for name, test := range map[string]struct {
		filter db.DocumentFilter
		index  string
		rows   float64
	}{
		"Tags":     {db.DocumentFilter{Tags: map[string]string{"odd": ""}}, "documents_tags", 750},
		"Metadata": {db.DocumentFilter{Metadata: map[string]any{"n": 7}}, "documents_metadata", 1},
		"IDs":      {db.DocumentFilter{IDs: db.UUIDs{id}}, "documents_pkey", 1},
	} {
		t.Run(name, func(t *testing.T) {
			filter, err := test.filter.JSON()
			must(t, err)
			plan := explainSQL(t, c.pool, db.DocumentCountSQL, []any{c.large, filter})
			if !plan.uses(test.index) || plan.rows(func(n node) bool { return n.Index == test.index }) != test.rows {
				t.Errorf("it does not use %s for %.0f rows: %+v", test.index, test.rows, plan)
			}
			plan.walk(func(n node) {
				if n.Filter != "" {
					t.Errorf("rows are looked at again: %s", n.Filter)
				}
			})
		})
	}

	t.Run("SearchReadsTheDocumentsThatFit", func(t *testing.T) {
		params := c.params(c.large, "needle")
		params.DocumentsFiltered, params.DocumentFilter = true, json.RawMessage(`{"metadata": {"n": 7}}`)
		plan := explain(t, c.pool, params)
		if !plan.uses("documents_metadata") {
			t.Error("a search does not use documents_metadata")
		}
		plan.walk(func(n node) {
			for _, absent := range []string{"document_fits", "metadata_passes", "policy_allows", "created_at", "tags"} {
				if strings.Contains(n.Filter, absent) {
					t.Errorf("a search without it looks at %s: %s", absent, n.Filter)
				}
			}
		})
	})
}

func TestDocumentFilterJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)
	filter := db.DocumentFilter{
		Tags: map[string]string{"k": "v"}, DocType: "pdf", IDs: db.UUIDs{uuid.Nil, uuid.Max}, Paths: db.Texts{"/a", `"\`}, Metadata: map[string]any{"n": json.Number("9007199254740993")},
		Tests: map[string]map[string]any{"m": {"in": []any{true}}}, CreatedAfter: &at, Policies: map[string]json.RawMessage{"p": json.RawMessage(`{}`)},
	}
	got, err := filter.JSON()
	must(t, err)
	want := []string{
		`"tags":{"k":"v"}`, `"doc_type":"pdf"`, fmt.Sprintf(`"ids":"{%s,%s}"`, uuid.Nil, uuid.Max), `"paths":"{\"/a\",\"\\\"\\\\\"}"`, `"metadata":{"n":9007199254740993}`,
		`"tests":{"m":{"in":[true]}}`, `"created_after":"2026-01-02T03:04:05.000678Z"`, `"policies":{"p":{}}`,
	}
	if string(got) != "{"+strings.Join(want, ",")+"}" {
		t.Errorf("got %s", got)
	}
	year := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := (db.DocumentFilter{CreatedAfter: &year}).JSON(); err == nil || (db.DocumentFilter{CreatedAfter: &year}).Empty() {
		t.Errorf("a year that JSON can't hold: %v", err)
	}
}
