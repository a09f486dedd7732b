package db_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

// empty is a bag without tags.
var empty = json.RawMessage("{}")

// TestMemoryNearest looks for the nearest memory in a store of twelve thousand: through the vector index when that is large, one
// by one when it is small, never among another store's, and never one that the policy denies.
func TestMemoryNearest(t *testing.T) {
	t.Parallel()
	const memories = 12_000
	pool := dbtest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	ensure := func() db.EmbeddingSpace {
		t.Helper()
		space, err := db.EnsureSpace(t.Context(), pool, db.EmbeddingSpaceInsertParams{Model: "m", Precision: "int8", Sha256: "x", Dimensions: dimensions})
		if err != nil {
			t.Fatal(err)
		}
		return space
	}
	space := ensure()
	hnsw := fmt.Sprintf("memory_embeddings_space_%d", space.ID)
	exec("DROP INDEX " + hnsw) // It is built faster over all rows at once.
	large, other := db.NewID(), db.NewID()
	exec("SELECT setseed(0.5)")
	for store, count := range map[uuid.UUID]int{large: memories, other: 1} {
		exec("INSERT INTO memory_stores (project_id, id, name) VALUES ($1, $2, 'notes')", db.DefaultProjectID, store)
		exec(`INSERT INTO memories (project_id, store_id, id, content, content_hash, created_at, updated_at)
			SELECT $1, $2, gen_random_uuid(), 'fact ' || i, '', now(), now() FROM generate_series(1, $3::int) AS i`, db.DefaultProjectID, store, count)
	}
	exec(`INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, embedding)
		SELECT project_id, store_id, id, $1, (SELECT array_agg(random() - 0.5 + g * 0 * length(content)) FROM generate_series(1, 384) AS g)::real[]::halfvec
		FROM memories`, space.ID)
	ensure()
	if err := db.Analyze(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var wanted uuid.UUID
	var vector pgvector.HalfVector
	var text string
	row := pool.QueryRow(t.Context(), "SELECT memory_id, embedding::text FROM memory_embeddings WHERE store_id = $1 ORDER BY memory_id LIMIT 1", large)
	if err := row.Scan(&wanted, &text); err != nil {
		t.Fatal(err)
	}
	if err := vector.Parse(text); err != nil {
		t.Fatal(err)
	}
	for _, exactRows := range []int32{memories - 1, memories} {
		params := db.MemoryNearestParams{ProjectID: db.DefaultProjectID, StoreID: large, SpaceID: space.ID, Vector: vector, ExactRows: exactRows, StoreTags: empty}
		nearest, err := db.New().MemoryNearest(t.Context(), pool, params)
		if err != nil || nearest.Memory.ID != wanted || nearest.Similarity < 0.999 || nearest.Similarity > 1 {
			t.Errorf("up to %d one by one: %s with %v, %v; want %s", exactRows, nearest.Memory.ID, nearest.Similarity, err, wanted)
		}
		plan := explainSQL(t, pool, db.MemoryNearestSQL, params.Args())
		if large := exactRows < memories; plan.uses(hnsw) != large {
			t.Errorf("up to %d one by one: the plan walks the vector index: %v, want %v", exactRows, plan.uses(hnsw), large)
		}
		params.StoreID = other
		if nearest, err = db.New().MemoryNearest(t.Context(), pool, params); err != nil || nearest.Memory.StoreID != other {
			t.Errorf("the other store's nearest is of %s, %v", nearest.Memory.StoreID, err)
		}
		params.StoreID = large
		params.Policy = fmt.Appendf(nil, `{"memory": {"allow": [{"all": true}], "deny": [{"ids": [%q]}]}, "store": {"allow": [], "deny": []}}`, wanted)
		if nearest, err = db.New().MemoryNearest(t.Context(), pool, params); err != nil || nearest.Memory.ID == wanted || nearest.Memory.StoreID != large {
			t.Errorf("up to %d one by one, with the nearest denied: %s, %v", exactRows, nearest.Memory.ID, err)
		}
	}
}

// TestMemoryLists reads stores, memories and assertions page by page, and never those of another project.
func TestMemoryLists(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	queries, ctx, project := db.New(), t.Context(), db.DefaultProjectID
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	other, err := queries.ProjectInsert(ctx, tx, db.ProjectInsertParams{ID: db.NewID(), Name: "other", TextConfig: "pg_catalog.english"})
	must(err)
	threshold := 0.8
	var stores []db.MemoryStore
	for i := range 3 {
		store, err := queries.MemoryStoreInsert(ctx, tx, db.MemoryStoreInsertParams{ProjectID: project, ID: db.NewID(), Name: fmt.Sprint("store ", i), Tags: []byte("{}"), Deduplicate: true})
		must(err)
		stores = append(stores, store)
	}
	page, err := queries.MemoryStoreList(ctx, tx, db.MemoryStoreListParams{ProjectID: project, MaxResults: 2, Skipped: 1})
	must(err)
	if len(page) != 2 || page[0].ID != stores[1].ID || page[1].ID != stores[2].ID {
		t.Errorf("stores: %v", page)
	}
	for id, want := range map[uuid.UUID]int64{project: 3, other.ID: 0} {
		if n, err := queries.MemoryStoreCount(ctx, tx, db.MemoryStoreCountParams{ProjectID: id}); err != nil || n != want {
			t.Errorf("%d stores, %v; want %d", n, err, want)
		}
	}
	store := stores[0]
	replaced, err := queries.MemoryStoreReplace(ctx, tx, db.MemoryStoreReplaceParams{ProjectID: project, ID: store.ID, Name: "new", Tags: []byte(`{"a":"1"}`), DuplicateThreshold: &threshold})
	must(err)
	if replaced.Name != "new" || replaced.Deduplicate || replaced.DuplicateThreshold == nil || store.UpdatedAt != nil || replaced.UpdatedAt == nil {
		t.Errorf("replaced: %+v", replaced)
	}
	for _, step := range []struct {
		merge      bool
		tags, want string
	}{{true, `{"b":"2"}`, `{"a": "1", "b": "2"}`}, {false, `{"c":"3"}`, `{"c": "3"}`}} {
		tagged, err := queries.MemoryStoreSetTags(ctx, tx, db.MemoryStoreSetTagsParams{ProjectID: project, ID: store.ID, Merge: step.merge, Tags: []byte(step.tags)})
		if err != nil || string(tagged.Tags) != step.want {
			t.Errorf("tags %s, %v; want %s", tagged.Tags, err, step.want)
		}
	}
	if _, err := queries.MemoryStoreGet(ctx, tx, db.MemoryStoreGetParams{ProjectID: other.ID, ID: store.ID}); db.Kind(err) != db.KindNotFound {
		t.Errorf("another project's store: %v", err)
	}

	// Four memories, oldest first: valid, invalidated, expired, valid.
	past, start := time.Now().Add(-time.Minute), time.Now().Add(-time.Hour)
	var ids []uuid.UUID
	for i := range 4 {
		params := db.MemoryInsertParams{
			ProjectID: project, StoreID: store.ID, ID: db.NewID(), Content: fmt.Sprint("fact ", i), ContentHash: []byte{byte(i)}, SourceType: db.MemorySourceManual,
			Tags: []byte("{}"), Metadata: []byte("{}"), CreatedAt: new(start.Add(time.Duration(i) * time.Second)),
		}
		if i == 2 {
			params.ExpiresAt = &past
		}
		memory, err := queries.MemoryInsert(ctx, tx, params)
		must(err)
		ids = append(ids, memory.ID)
	}
	_, err = queries.MemoryInvalidate(ctx, tx, db.MemoryInvalidateParams{ProjectID: project, ID: ids[1]})
	must(err)
	tagged, err := queries.MemorySetTags(ctx, tx, db.MemorySetTagsParams{ProjectID: project, ID: ids[0], Tags: []byte(`{"a":"1"}`)})
	if err != nil || string(tagged.Tags) != `{"a": "1"}` || tagged.Version != 2 {
		t.Errorf("tagged: %+v, %v", tagged, err)
	}
	for all, want := range map[bool][]uuid.UUID{false: {ids[0], ids[3]}, true: ids} {
		listed, err := queries.MemoryList(ctx, tx, db.MemoryListParams{ProjectID: project, StoreID: store.ID, IncludeInvalidated: all, Tags: empty, StoreTags: empty, MaxResults: 10})
		must(err)
		if got := idsOf(listed); !slices.Equal(got, want) {
			t.Errorf("list, all %v: %v, want %v", all, got, want)
		}
		if n, err := queries.MemoryCount(ctx, tx, db.MemoryCountParams{ProjectID: project, StoreID: store.ID, IncludeInvalidated: all, Tags: empty, StoreTags: empty}); err != nil || int(n) != len(want) {
			t.Errorf("count, all %v: %d, %v", all, n, err)
		}
		var exported []uuid.UUID
		next := db.MemoryExportParams{ProjectID: project, StoreID: store.ID, IncludeInvalidated: all, StoreTags: empty, MaxResults: 1}
		for {
			step, err := queries.MemoryExport(ctx, tx, next)
			must(err)
			if len(step) == 0 {
				break
			}
			exported = append(exported, step[0].ID)
			next.AfterTime, next.AfterID = &step[0].CreatedAt, step[0].ID
		}
		if !slices.Equal(exported, want) {
			t.Errorf("export, all %v: %v, want %v", all, exported, want)
		}
	}
	listed, err := queries.MemoryList(ctx, tx, db.MemoryListParams{ProjectID: other.ID, StoreID: store.ID, IncludeInvalidated: true, Tags: empty, StoreTags: empty, MaxResults: 10})
	if err != nil || len(listed) != 0 {
		t.Errorf("another project's memories: %v, %v", listed, err)
	}
	assertions(t, tx, store, ids[0])
}

// assertions checks the filters of the list of assertions.
func assertions(t *testing.T, tx pgx.Tx, store db.MemoryStore, memory uuid.UUID) {
	t.Helper()
	queries, ctx, generation := db.New(), t.Context(), "gen_1"
	var rows []db.MemoryAssertion
	for _, params := range []db.MemoryAssertionInsertParams{
		{Mechanism: db.MemoryMechanismApi, Outcome: db.MemoryOutcomeCreated},
		{Mechanism: db.MemoryMechanismTool, Outcome: db.MemoryOutcomeSkipped, GenerationID: &generation},
		{Mechanism: db.MemoryMechanismTool, Outcome: db.MemoryOutcomeRetracted},
	} {
		params.ProjectID, params.StoreID, params.ID, params.MemoryID = store.ProjectID, store.ID, db.NewID(), memory
		row, err := queries.MemoryAssertionInsert(ctx, tx, params)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	for name, test := range map[string]struct {
		filter db.MemoryAssertionListParams
		want   []uuid.UUID
	}{
		"all":         {db.MemoryAssertionListParams{}, []uuid.UUID{rows[2].ID, rows[1].ID, rows[0].ID}},
		"by page":     {db.MemoryAssertionListParams{Skipped: 1, MaxResults: 1}, []uuid.UUID{rows[1].ID}},
		"mechanism":   {db.MemoryAssertionListParams{Mechanism: new(db.MemoryMechanismTool)}, []uuid.UUID{rows[2].ID, rows[1].ID}},
		"outcome":     {db.MemoryAssertionListParams{Outcome: new(db.MemoryOutcomeCreated)}, []uuid.UUID{rows[0].ID}},
		"generation":  {db.MemoryAssertionListParams{GenerationID: &generation}, []uuid.UUID{rows[1].ID}},
		"since":       {db.MemoryAssertionListParams{Since: &rows[1].CreatedAt}, []uuid.UUID{rows[2].ID, rows[1].ID}},
		"other store": {db.MemoryAssertionListParams{StoreID: db.NewID()}, nil},
	} {
		filter := test.filter
		filter.ProjectID = store.ProjectID
		if filter.StoreID == uuid.Nil {
			filter.StoreID = store.ID
		}
		if filter.MaxResults == 0 {
			filter.MaxResults = 10
		}
		listed, err := queries.MemoryAssertionList(ctx, tx, filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []uuid.UUID
		for _, row := range listed {
			got = append(got, row.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		n, err := queries.MemoryAssertionCount(ctx, tx, db.MemoryAssertionCountParams{
			ProjectID: filter.ProjectID, StoreID: filter.StoreID, Mechanism: filter.Mechanism, Outcome: filter.Outcome,
			GenerationID: filter.GenerationID, Since: filter.Since,
		})
		if err != nil || name != "by page" && int(n) != len(test.want) || name == "by page" && n != 3 {
			t.Errorf("%s: %d counted, %v", name, n, err)
		}
	}
}

func idsOf(memories []db.Memory) (ids []uuid.UUID) {
	for _, memory := range memories {
		ids = append(ids, memory.ID)
	}
	return ids
}
