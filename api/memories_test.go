package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kb-search/kb/embed/embedtest"
)

func (s *server) patch(t *testing.T, path, body string, headers ...string) answer {
	t.Helper()
	return s.do(t, http.MethodPatch, path, strings.NewReader(body), append([]string{"Content-Type", "application/json"}, headers...)...)
}

// outcomes counts a store's assertions by what came of them.
func (s *server) outcomes(t *testing.T, store string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for offset := 0; ; offset += 100 {
		rows := s.get(t, fmt.Sprintf("/api/v1/memory-stores/%s/assertions?limit=100&offset=%d", store, offset)).data(t)
		for _, row := range rows {
			counts[row["outcome"].(string)]++
		}
		if len(rows) < 100 {
			return counts
		}
	}
}

func (s *server) memories(t *testing.T, store, more string) (contents []string) {
	t.Helper()
	for _, row := range s.get(t, "/api/v1/memories?limit=100&memory_store_id="+store+more).data(t) {
		contents = append(contents, row["content"].(string))
	}
	return contents
}

func TestMemoryStores(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	id := s.store(t, "facts", `, "description": "what we know", "tags": {"team": "a"}, "supersede_threshold": 0.5`)
	path := "/api/v1/memory-stores/" + id

	got := s.get(t, path).want(t, 200).object(t)
	if got["name"] != "facts" || got["duplicate_threshold"] != nil || got["supersede_threshold"] != 0.5 || got["deduplicate"] != true || got["updated_at"] != nil {
		t.Errorf("%v", got)
	}
	replaced := s.put(t, path, `{"name": "facts 2", "deduplicate": false}`).want(t, 200).object(t)
	if replaced["description"] != nil || replaced["supersede_threshold"] != nil || replaced["deduplicate"] != false || len(replaced["tags"].(map[string]any)) != 0 || replaced["updated_at"] == nil {
		t.Errorf("%v", replaced)
	}
	if bag := s.put(t, path+"/tags", `{"cost_center": "7", "costCenter": "8"}`).want(t, 200).object(t); len(bag) != 2 || bag["cost_center"] != "7" {
		t.Errorf("%v", bag)
	}
	if bag := s.patch(t, path+"/tags", `{"costCenter": "9"}`).want(t, 200).object(t); len(bag) != 2 || bag["costCenter"] != "9" {
		t.Errorf("%v", bag)
	}
	s.put(t, path+"/tags", `{"a": 1}`).wantEnvelope(t, 400, "VALIDATION_FAILED")
	s.put(t, path+"/tags", `["a"]`).wantEnvelope(t, 400, "VALIDATION_FAILED")
	s.put(t, path+"/tags", `{"system.a": "b"}`).wantEnvelope(t, 400, "RESERVED_TAG_KEY")
	for _, body := range []string{`{}`, `{"name": " "}`, `{"name": "x", "duplicate_threshold": 1.5}`, `{"name": "x", "duplicate_threshold": 0.5, "supersede_threshold": 0.5}`, `{"name": "x", "nome": 1}`} {
		s.post(t, "/api/v1/memory-stores", body).wantEnvelope(t, 400, "VALIDATION_FAILED")
	}
	if rows := s.get(t, "/api/v1/memory-stores?limit=1000").data(t); len(rows) != 1 {
		t.Errorf("%v", rows)
	}
	s.remember(t, id, "Gone with its store.", "")
	s.do(t, http.MethodDelete, path, nil).want(t, 204)
	s.get(t, path).wantEnvelope(t, 404, "RESOURCE_NOT_FOUND")
	if found := foundIn(s.know(t, `{"query": "gone store"}`)); len(found) != 0 {
		t.Errorf("MEM-03: %v", found)
	}
}

func TestMemoryWrites(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})

	t.Run("EqualTextIsSkippedAndUntouched", func(t *testing.T) {
		t.Parallel()
		store := s.store(t, "skip", "")
		first := s.post(t, "/api/v1/memories", `{"memory_store_id": "`+store+`", "content": "Prefers  tea.", "tags": {"a": "1"}, "metadata": {"n": 1}}`).want(t, 201).object(t)
		again := s.post(t, "/api/v1/memories", `{"memory_store_id": "`+store+`", "content": " Prefers tea. ", "tags": {"a": "2"}}`).want(t, 200).object(t)
		if again["id"] != first["id"] || again["outcome"] != "skipped" || again["content"] != "Prefers  tea." || again["version"] != 1.0 || again["tags"].(map[string]any)["a"] != "1" {
			t.Errorf("%v", again)
		}
		if got := s.outcomes(t, store); got["created"] != 1 || got["skipped"] != 1 {
			t.Errorf("%v", got)
		}
		if rows := s.get(t, "/api/v1/memory-stores/"+store+"/assertions?outcome=skipped&mechanism=api").data(t); len(rows) != 1 || rows[0]["memory_id"] != first["id"] {
			t.Errorf("%v", rows)
		}
	})

	t.Run("SimilarTextTakesItsPlace", func(t *testing.T) {
		t.Parallel()
		store := s.store(t, "supersede", "")
		old := s.remember(t, store, "The pump is in hall seven.", `, "tags": {"a": "1", "b": "1"}, "metadata": {"n": 1}`)
		next := s.post(t, "/api/v1/memories", `{"memory_store_id": "`+store+`", "content": "The pump is in hall eight.", "tags": {"b": "2"}, "duplicate_threshold": 1, "supersede_threshold": 0.1}`).want(t, 200).object(t)
		if next["outcome"] != "superseded" || next["superseded_memory_id"] != old["id"] || next["tags"].(map[string]any)["a"] != "1" || next["tags"].(map[string]any)["b"] != "2" || next["metadata"].(map[string]any)["n"] != 1.0 {
			t.Errorf("%v", next)
		}
		gone := s.get(t, "/api/v1/memories/"+old["id"].(string)).want(t, 200).object(t)
		if gone["invalidated_at"] == nil || gone["superseded_by_memory_id"] != next["id"] {
			t.Errorf("%v", gone)
		}
		if got := s.memories(t, store, ""); !slices.Equal(got, []string{"The pump is in hall eight."}) {
			t.Errorf("%v", got)
		}
		if got := s.memories(t, store, "&include_invalidated=true"); len(got) != 2 {
			t.Errorf("%v", got)
		}
		if found := foundIn(s.know(t, `{"query": "pump hall seven", "memory_store_ids": ["`+store+`"], "include_documents": false}`)); !slices.Equal(found, []string{"The pump is in hall eight."}) {
			t.Errorf("%v", found)
		}
	})

	t.Run("DeclaredSupersedingOutranksThresholds", func(t *testing.T) {
		t.Parallel()
		store, other := s.store(t, "declared", ""), s.store(t, "other", "")
		old := s.remember(t, store, "Alpha.", "")
		next := s.remember(t, store, "Omega is something else altogether.", `, "supersedes": "`+old["id"].(string)+`"`)
		if next["outcome"] != "superseded" {
			t.Errorf("%v", next)
		}
		body := func(store, target string) string {
			return `{"memory_store_id": "` + store + `", "content": "x", "supersedes": "` + target + `"}`
		}
		s.post(t, "/api/v1/memories", body(store, old["id"].(string))).wantEnvelope(t, 400, "VALIDATION_FAILED")
		s.post(t, "/api/v1/memories", body(other, next["id"].(string))).wantEnvelope(t, 400, "VALIDATION_FAILED")
		s.post(t, "/api/v1/memories", body(store, "mem_01kb9q5s7ze4gr6tcx3k0z9ykn")).wantEnvelope(t, 404, "RESOURCE_NOT_FOUND")
	})

	t.Run("WithoutDeduplicationAllIsKept", func(t *testing.T) {
		t.Parallel()
		store := s.store(t, "all", `, "deduplicate": false`)
		for range 3 {
			if got := s.remember(t, store, "Same.", ""); got["outcome"] != "created" {
				t.Errorf("%v", got)
			}
		}
		if got := s.remember(t, store, "Same.", `, "deduplicate": true`); got["outcome"] != "skipped" {
			t.Errorf("%v", got)
		}
	})

	t.Run("BadRequestsSayWhy", func(t *testing.T) {
		t.Parallel()
		store := s.store(t, "bad", "")
		for body, field := range map[string]string{
			`"content": " "`: "body.content", `"content": "` + strings.Repeat("a", 65<<10) + `"`: "body.content",
			`"content": "x", "tags": {"a": 1}`:            "body.tags.a",
			`"content": "x", "metadata": [1]`:             "body.metadata",
			`"content": "x", "source_type": "dream"`:      "body.source_type",
			`"content": "x", "supersede_threshold": 0.99`: "body.supersede_threshold",
			`"content": "x", "duplicate_threshold": 7`:    "body.duplicate_threshold",
			`"content": "x", "expires_at": "soon"`:        "body.expires_at",
		} {
			if meta := s.post(t, "/api/v1/memories", `{"memory_store_id": "`+store+`", `+body+`}`).wantEnvelope(t, 400, "VALIDATION_FAILED"); meta["field"] != field {
				t.Errorf("%.40s names %v, want %s", body, meta["field"], field)
			}
		}
		s.post(t, "/api/v1/memories", `{"memory_store_id": "mstore_01kb9q5s7ze4gr6tcx3k0z9ykn", "content": "x"}`).wantEnvelope(t, 404, "RESOURCE_NOT_FOUND")
	})

	t.Run("MEM01AHundredEqualWritesAtOnce", func(t *testing.T) {
		t.Parallel()
		store := s.store(t, "hundred", "")
		var wait sync.WaitGroup
		for range 100 {
			wait.Go(func() { s.remember(t, store, "The same thought.", "") })
		}
		wait.Wait()
		if got := s.memories(t, store, ""); len(got) != 1 {
			t.Errorf("%d memories", len(got))
		}
		if got := s.outcomes(t, store); got["created"] != 1 || got["skipped"] != 99 {
			t.Errorf("%v", got)
		}
	})

	t.Run("ABatchIsAllOrNothing", func(t *testing.T) {
		t.Parallel()
		store := s.store(t, "batch", "")
		post := func(memories, more string) answer {
			return s.post(t, "/api/v1/memories/batch", `{"memory_store_id": "`+store+`", "memories": [`+memories+`]`+more+`}`)
		}
		if meta := post(`{"content": "One."}, {"content": " "}`, "").wantEnvelope(t, 400, "VALIDATION_FAILED"); meta["field"] != "body.memories[1].content" {
			t.Errorf("%v", meta)
		}
		dry := post(`{"content": "One."}, {"content": "One."}`, `, "dry_run": true`).want(t, 200).object(t)
		results := dry["results"].([]any)
		if dry["dry_run"] != true || results[0].(map[string]any)["outcome"] != "created" || results[1].(map[string]any)["outcome"] != "skipped" {
			t.Errorf("%v", dry)
		}
		if got := s.memories(t, store, ""); len(got) != 0 || len(s.outcomes(t, store)) != 0 {
			t.Errorf("a dry run left %v", got)
		}
		post(`{"content": "One."}, {"content": "Two is another thing."}`, "").want(t, 200)
		if got := s.memories(t, store, ""); len(got) != 2 {
			t.Errorf("%v", got)
		}
		post("", "").wantEnvelope(t, 400, "VALIDATION_FAILED")
		post(strings.Repeat(`{"content": "x"},`, 1000)+`{"content": "x"}`, "").wantEnvelope(t, 400, "VALIDATION_FAILED")
	})
}

// TestMemoryWritesBesideADeniedMemory writes texts near a memory that the caller may not get: neither the answer nor the new
// memory may show anything of it, and it stays as it is.
func TestMemoryWritesBesideADeniedMemory(t *testing.T) {
	t.Parallel()
	ts := startTenants(t, config{NoWorker: true})
	for name, body := range map[string]string{
		"TheSameText":          `"content": "Remember the vault."`,
		"SkippedIfAnythingIs":  `"content": "The vault, again.", "duplicate_threshold": 0.0001, "supersede_threshold": 0`,
		"SupersedesAnythingAt": `"content": "The vault, again.", "duplicate_threshold": 1, "supersede_threshold": 0`,
	} {
		for _, on := range []string{"id", "tag", "no right to get"} {
			t.Run(name+" by "+on, func(t *testing.T) {
				t.Parallel()
				store := ts.a.store(t, "mixed", "")
				secret := ts.a.remember(t, store, "Remember the vault.", `, "tags": {"hush": "yes"}, "metadata": {"pin": 4711}`)["id"].(string)
				statements := []any{map[string]any{"effect": "Allow", "action": "*"}}
				switch on {
				case "id":
					statements = append(statements, map[string]any{"effect": "Deny", "action": "memories:GetMemory", "resource": "srn:*:memory:" + secret})
				case "tag":
					statements = append(statements, map[string]any{"effect": "Deny", "action": "*", "condition": map[string]any{"StringEquals": map[string]any{"soat:ResourceTag/hush": "yes"}}})
				default:
					statements = []any{map[string]any{"effect": "Allow", "action": "memories:CreateMemory"}}
				}
				caller := ts.as(mint(t, map[string]any{"prj": ts.projectA, "policy": map[string]any{"statement": statements}}))
				for _, got := range []answer{
					caller.post(t, "/api/v1/memories/batch", `{"memory_store_id": "`+store+`", "dry_run": true, "memories": [{"content": "Remember the vault."}]}`).want(t, 200),
					caller.post(t, "/api/v1/memories", `{"memory_store_id": "`+store+`", `+body+`}`).want(t, 201),
				} {
					for _, text := range []string{secret, "hush", "4711", "skipped", "superseded\""} {
						if bytes.Contains(got.body, []byte(text)) {
							t.Errorf("shows %q: %s", text, got.body)
						}
					}
				}
				if after := ts.a.get(t, "/api/v1/memories/"+secret).want(t, 200).object(t); after["invalidated_at"] != nil || after["version"] != 1.0 {
					t.Errorf("the denied memory has become %v", after)
				}
			})
		}
	}
}

func TestMemoryLists(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	store := s.store(t, "lists", "")
	s.remember(t, store, "One.", `, "tags": {"at": "10:30, sharp", "a": "b"}, "generation_id": "g1", "mechanism": "tool"`)
	s.remember(t, store, "Two is something else.", `, "tags": {"a": "b"}, "generation_id": "g2"`)
	memories, assertions := "/api/v1/memories?memory_store_id="+store+"&", "/api/v1/memory-stores/"+store+"/assertions?"
	for path, want := range map[string]int{
		memories + "tags=a:b": 2, memories + "tags=a:b&tags=at:10%3A30%2C%20sharp": 1, memories + "tags=a:c": 0, memories + "limit=1000": 2, memories + "offset=1": 1,
		assertions + "generation_id=g1": 1, assertions + "mechanism=tool": 1, assertions + "mechanism=rule": 0, assertions + "outcome=created": 2,
		assertions + "since=2100-01-01T00:00:00Z": 0, assertions + "since=2000-01-01T00:00:00Z": 2, assertions + "limit=1&offset=1": 1,
	} {
		if rows := s.get(t, path).data(t); len(rows) != want {
			t.Errorf("%s gives %d, want %d", path, len(rows), want)
		}
	}
	if rows := s.get(t, assertions).data(t); rows[0]["generation_id"] != "g2" {
		t.Errorf("the newest is not first: %v", rows)
	}
	for _, path := range []string{
		"/api/v1/memories", memories + "tags=a", memories + "tags=a:b&tags=a:c", memories + "limit=0", memories + "offset=-1",
		assertions + "mechanism=dream", assertions + "outcome=lost", assertions + "since=monday", assertions + "limit=x",
	} {
		s.get(t, path).wantEnvelope(t, 400, "VALIDATION_FAILED")
	}
}

func TestMemoryChanges(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	store := s.store(t, "changes", `, "deduplicate": false`)
	made := func(t *testing.T, content string) string { return s.remember(t, store, content, "")["id"].(string) }

	t.Run("AChangeIsFoundAtOnce", func(t *testing.T) {
		t.Parallel()
		path := "/api/v1/memories/" + made(t, "The gearbox hums.")
		changed := s.put(t, path, `{"content": "The gearbox rattles.", "metadata": {"by": "ann"}, "expected_version": 1}`).want(t, 200)
		if got := changed.object(t); got["version"] != 2.0 || changed.header.Get("ETag") != `"2"` {
			t.Errorf("%v", got)
		}
		if found := foundIn(s.know(t, `{"query": "gearbox rattles"}`)); found[0] != "The gearbox rattles." || slices.Contains(found, "The gearbox hums.") {
			t.Errorf("%v", found)
		}
		meta := s.put(t, path, `{"content": "z", "expected_version": 1}`).wantEnvelope(t, 409, "VERSION_CONFLICT")
		if meta["current_version"] != 2.0 {
			t.Errorf("%v", meta)
		}
		s.do(t, http.MethodPut, path, strings.NewReader(`{"content": "z", "expected_version": 2}`), "Content-Type", "application/json", "If-Match", `"1"`).wantEnvelope(t, 400, "VALIDATION_FAILED")
		s.do(t, http.MethodPut, path, strings.NewReader(`{"content": "z"}`), "Content-Type", "application/json", "If-Match", `"1"`).wantEnvelope(t, 409, "VERSION_CONFLICT")
		s.do(t, http.MethodDelete, path, nil, "If-Match", `"1"`).wantEnvelope(t, 409, "VERSION_CONFLICT")
		if got := s.patch(t, path, `{"tags": {"a": "b"}}`, "If-Match", `"2"`).want(t, 200).object(t); got["content"] != "The gearbox rattles." || got["metadata"].(map[string]any)["by"] != "ann" {
			t.Errorf("%v", got)
		}
		if bag := s.patch(t, path+"/tags", `{"c": "d"}`).want(t, 200).object(t); len(bag) != 2 {
			t.Errorf("%v", bag)
		}
	})

	t.Run("MEM04ChangesAtOnceAreNotLost", func(t *testing.T) {
		t.Parallel()
		path := "/api/v1/memories/" + made(t, "The fan turns.")
		var wait sync.WaitGroup
		var conflicts atomic.Int32
		for i := range 2 {
			wait.Go(func() {
				if got := s.put(t, path, fmt.Sprintf(`{"content": "The fan stands, says %d.", "expected_version": 1}`, i)); got.status == 409 {
					conflicts.Add(1)
				}
			})
		}
		wait.Wait()
		if conflicts.Load() != 1 {
			t.Errorf("%d conflicts", conflicts.Load())
		}
		wait.Go(func() { s.patch(t, path, `{"content": "The fan is gone."}`).want(t, 200) })
		wait.Go(func() { s.patch(t, path, `{"tags": {"seen": "yes"}}`).want(t, 200) })
		wait.Wait()
		if got := s.get(t, path).object(t); got["content"] != "The fan is gone." || got["tags"].(map[string]any)["seen"] != "yes" {
			t.Errorf("%v", got)
		}
	})

	t.Run("MEM03DeletedAndRetractedAreGone", func(t *testing.T) {
		t.Parallel()
		deleted, retracted := made(t, "A cable was cut."), made(t, "A cable was spliced.")
		s.do(t, http.MethodDelete, "/api/v1/memories/"+deleted, nil).want(t, 204)
		s.get(t, "/api/v1/memories/"+deleted).wantEnvelope(t, 404, "RESOURCE_NOT_FOUND")
		s.post(t, "/api/v1/memories/"+retracted+"/retract", "").want(t, 200)
		s.post(t, "/api/v1/memories/"+retracted+"/retract", "").wantEnvelope(t, 409, "MEMORY_ALREADY_INVALIDATED")
		s.get(t, "/api/v1/memories/"+retracted).want(t, 200)
		for _, found := range foundIn(s.know(t, `{"query": "cable"}`)) {
			if strings.Contains(found, "cable") {
				t.Errorf("found %q", found)
			}
		}
	})

	t.Run("ExpiredIsGoneAtThatInstant", func(t *testing.T) {
		t.Parallel()
		id := s.remember(t, store, "A visitor comes on Monday.", `, "expires_at": "2100-01-01T00:00:00Z"`)["id"].(string)
		if found := foundIn(s.know(t, `{"query": "visitor monday"}`)); found[0] != "A visitor comes on Monday." {
			t.Errorf("%v", found)
		}
		for _, table := range []string{"memories", "memory_words", "memory_embeddings"} {
			_, err := s.pool.Exec(t.Context(), "UPDATE "+table+" SET expires_at = now() WHERE expires_at = '2100-01-01T00:00:00Z'")
			must(t, err)
		}
		if found := foundIn(s.know(t, `{"query": "visitor monday"}`)); slices.Contains(found, "A visitor comes on Monday.") {
			t.Errorf("%v", found)
		}
		if slices.Contains(s.memories(t, store, ""), "A visitor comes on Monday.") {
			t.Errorf("%s is listed", id)
		}
	})
}

func TestMemoryExport(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	from, to := s.store(t, "from", `, "deduplicate": false`), s.store(t, "to", "")
	for i := range 7 {
		s.remember(t, from, fmt.Sprintf("Fact %d.", i), `, "tags": {"n": "x"}, "metadata": {"deep": {"a": [1]}}, "source_type": "conversation", "source_id": "c1"`)
	}
	s.post(t, "/api/v1/memories/"+s.remember(t, from, "Retracted.", "")["id"].(string)+"/retract", "").want(t, 200)
	exported := s.raw(t, http.MethodGet, "/api/v1/memory-stores/"+from+"/export?include_invalidated=true", nil)
	if exported.status != 200 || exported.header.Get("Content-Type") != "application/x-ndjson" || bytes.Count(exported.body, []byte("\n")) != 8 {
		t.Fatalf("%d %v %s", exported.status, exported.header, exported.body)
	}
	send := func(body string) answer {
		return s.do(t, http.MethodPost, "/api/v1/memory-stores/"+to+"/import", strings.NewReader(body), "Content-Type", "application/x-ndjson")
	}
	if got := send(string(exported.body)).want(t, 200).object(t); got["created"] != 7.0 || got["passed_over"] != 1.0 {
		t.Errorf("%v", got)
	}
	rows := func(store string) (rows []string) {
		for _, row := range s.get(t, "/api/v1/memories?memory_store_id="+store).data(t) {
			rows = append(rows, fmt.Sprint(row["content"], row["tags"], row["metadata"], row["source_type"], row["source_id"], row["created_at"], row["updated_at"]))
		}
		return rows
	}
	if !slices.Equal(rows(from), rows(to)) {
		t.Errorf("exported %v\nimported %v", rows(from), rows(to))
	}
	for _, bad := range []string{"", "{", `{"content": "a"}` + "\n" + `{"content": " "}`, `{"content": "a", "source_type": "dream"}`, `{"content": "a", "tags": {"system.x": "y"}}`} {
		if got := send(bad); got.status != 400 {
			t.Errorf("%q: %d %s", bad, got.status, got.body)
		}
	}
	wrong := send("\n" + `{"content": "old", "invalidated_at": "2020-01-01T00:00:00Z"}` + "\n" + `{"content": "a"}` + "\n" + `{"content": " "}`)
	if wrong.wantEnvelope(t, 400, "VALIDATION_FAILED"); !bytes.Contains(wrong.body, []byte("Line 4 ")) {
		t.Errorf("line 4 is wrong: %s", wrong.body)
	}
	if got := rows(to); len(got) != 7 {
		t.Errorf("%d memories after refused imports", len(got))
	}
}

func TestALargeExportIsWhole(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	var lines strings.Builder
	for i := range 1001 { // More than two steps of an export, all of one moment.
		fmt.Fprintf(&lines, "{\"content\": \"Fact %d.\", \"created_at\": \"2026-01-02T03:04:05.678901Z\"}\n", i)
	}
	store := s.store(t, "large", "")
	s.do(t, http.MethodPost, "/api/v1/memory-stores/"+store+"/import", strings.NewReader(lines.String()), "Content-Type", "application/x-ndjson").want(t, 200)
	exported := s.raw(t, http.MethodGet, "/api/v1/memory-stores/"+store+"/export", nil).body
	for i := range 1001 {
		if n := bytes.Count(exported, fmt.Appendf(nil, "\"Fact %d.\"", i)); n != 1 {
			t.Fatalf("fact %d is there %d times", i, n)
		}
	}
}

// TestMemoryDoesNotWaitForTheModel writes while the model says nothing at all.
func TestMemoryDoesNotWaitForTheModel(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true, Embedder: &embedtest.Embedder{Block: make(chan struct{})}})
	s.remember(t, s.store(t, "later", ""), "The winch is oiled.", "")
	if memories, vectors := s.count(t, "memories"), s.count(t, "memory_embeddings"); memories != 1 || vectors != 0 {
		t.Errorf("%d memories, %d vectors", memories, vectors)
	}
}

func TestMemoryWithoutTheModel(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := start(t, config{Embedder: &embedtest.Embedder{Fail: func(string) error {
		if broken.Load() {
			return errors.New("the model is away")
		}
		return nil
	}}})
	store := s.store(t, "later", "")
	broken.Store(true)
	s.remember(t, store, "The winch is oiled.", "")
	got := s.know(t, `{"query": "winch oiled"}`)
	if found := foundIn(got); !slices.Equal(found, []string{"The winch is oiled."}) || got["degraded"] == nil {
		t.Errorf("%v", got)
	}
	broken.Store(false)
	s.stopWorker(t)
	s.work(t) // its upkeep runs at once
	for deadline := time.Now().Add(60 * time.Second); s.count(t, "memory_embeddings") != 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited a minute for the vector")
		}
	}
	if result := s.know(t, `{"query": "winch"}`)["results"].([]any)[0].(map[string]any); result["similarity_score"] == nil {
		t.Errorf("%v", result)
	}
}
