package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// with adds form fields, given in pairs, to an upload.
func with(parts []part, fields ...string) []part {
	parts = slices.Clone(parts)
	for pair := range slices.Chunk(fields, 2) {
		parts = append(parts, part{pair[0], "", pair[1]})
	}
	return parts
}

func TestPaths(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	versions := func(t *testing.T, id any) []map[string]any {
		t.Helper()
		return s.get(t, fmt.Sprintf("/api/v1/documents/%v/versions", id)).want(t, 200).list(t)
	}

	t.Run("AChangedFileUnderItsPathIsTheNextVersion", func(t *testing.T) {
		t.Parallel()
		first := s.document(t, s.ingest(t, with(file("pump.md", "# Pump\n\nThe gasket is zirconium."), "path", "manuals//./pump.md", "tags", "pumps",
			"knowledge_type", "manual", "metadata", `{"equipment": "P-100"}`)...))
		if first["path"] != "/manuals/pump.md" || first["knowledge_type"] != "manual" || first["version"] != 1.0 || first["updated_at"] != nil {
			t.Fatalf("first: %v", first)
		}
		second := s.document(t, s.ingest(t, with(file("pump-2.md", "# Pump, revised\n\nThe gasket is palladium."), "path", "/manuals/pump.md")...))
		if second["id"] != first["id"] || second["version"] != 2.0 || second["updated_at"] == nil || second["created_at"] != first["created_at"] ||
			second["original_filename"] != "pump-2.md" || second["title"] != "Pump, revised" {
			t.Errorf("second: %v", second)
		}
		// What people gave to the document stays; what came with the upload goes with it.
		if !slices.Equal(second["tags"].([]any), []any{"pumps"}) || second["knowledge_type"] != "manual" || len(second["metadata"].(map[string]any)) != 0 {
			t.Errorf("second: %v", second)
		}
		if got := s.post(t, "/api/v1/search", `{"query": "zirconium", "fts_only": true}`).want(t, 200).object(t)["results"].([]any); len(got) != 0 {
			t.Errorf("the old text is still found: %v", got)
		}
		if got := s.post(t, "/api/v1/search", `{"query": "palladium", "fts_only": true}`).want(t, 200).object(t)["results"].([]any); len(got) != 1 || got[0].(map[string]any)["path"] != "/manuals/pump.md" ||
			got[0].(map[string]any)["knowledge_type"] != "manual" || got[0].(map[string]any)["document_version"] != 2.0 {
			t.Errorf("the new text: %v", got)
		}
		old := versions(t, first["id"])
		if len(old) != 1 || old[0]["original_filename"] != "pump.md" {
			t.Fatalf("versions %v", old)
		}
		path := fmt.Sprintf("/api/v1/documents/%v/versions/1", first["id"])
		if got := s.get(t, path).want(t, 200).object(t); got["text"] != "# Pump\n\nThe gasket is zirconium." {
			t.Errorf("the old text: %v", got)
		}
		if got := s.get(t, path+"/file").want(t, 200); string(got.body) != "# Pump\n\nThe gasket is zirconium." || !strings.Contains(got.header.Get("Content-Disposition"), "pump.md") {
			t.Errorf("the old file: %s %v", got.body, got.header)
		}
		s.get(t, path+"9/file").wantError(t, 404, map[string]any{"error": "not found"})
	})

	t.Run("RejectLeavesTheDocumentAsItIs", func(t *testing.T) {
		t.Parallel()
		first := s.document(t, s.ingest(t, with(file("a.txt", "A basalt bearing."), "path", "/reject/a.txt")...))
		s.upload(t, with(file("a.txt", "A granite bearing."), "path", "/reject/a.txt", "on_conflict", "reject")...).
			wantError(t, 409, map[string]any{"error": "conflict", "code": "path_taken", "document_id": first["id"], "title": "a"})
		s.ingest(t, with(file("b.txt", "Another granite bearing."), "path", "/reject/b.txt", "on_conflict", "reject")...)
		if len(versions(t, first["id"])) != 0 {
			t.Error("the document has changed")
		}
	})

	t.Run("DuplicateMakesASecondDocumentBesideIt", func(t *testing.T) {
		t.Parallel()
		first := s.document(t, s.ingest(t, with(file("c.txt", "A slate washer."), "path", "/twice/c.txt")...))
		second := s.ingest(t, with(file("c.txt", "A marble washer."), "path", "/twice/c.txt", "on_conflict", "duplicate")...)
		third := s.document(t, s.ingest(t, with(file("c.txt", "A chalk washer."), "path", "/twice/c.txt", "on_conflict", "duplicate")...))
		if got := s.document(t, second)["path"]; second["document_id"] == first["id"] || got != "/twice/c (2).txt" || second["path"] != "/twice/c.txt" {
			t.Errorf("the second stands at %v, its job says %v", got, second["path"])
		}
		if third["path"] != "/twice/c (3).txt" {
			t.Errorf("the third stands at %v", third["path"])
		}
		// The path still names the first one, and what is free is taken again.
		if fourth := s.document(t, s.ingest(t, with(file("c.txt", "A clay washer."), "path", "/twice/c.txt")...)); fourth["id"] != first["id"] || fourth["version"] != 2.0 {
			t.Errorf("the fourth: %v", fourth)
		}
		s.do(t, "DELETE", fmt.Sprintf("/api/v1/documents/%v", second["document_id"]), nil).want(t, 200)
		if fifth := s.document(t, s.ingest(t, with(file("c.txt", "A tuff washer."), "path", "/twice/c.txt", "on_conflict", "duplicate")...)); fifth["path"] != "/twice/c (2).txt" {
			t.Errorf("the fifth stands at %v", fifth["path"])
		}
	})

	t.Run("WithoutAPathTheNameAloneReplacesNothing", func(t *testing.T) {
		t.Parallel()
		first := s.document(t, s.ingest(t, file("readme.txt", "The first of two teams.")...))
		second := s.document(t, s.ingest(t, file("readme.txt", "The second of two teams.")...))
		if first["id"] == second["id"] || first["path"] != "/readme.txt" || second["path"] != "/readme (2).txt" {
			t.Errorf("%v and %v", first, second)
		}
		third := s.document(t, s.ingest(t, with(file("readme.txt", "The first team again."), "on_conflict", "version")...))
		if third["id"] != first["id"] || third["version"] != 2.0 {
			t.Errorf("asked for, it does: %v", third)
		}
	})

	t.Run("ANoteHasThePathThatItIsGiven", func(t *testing.T) {
		t.Parallel()
		bare := s.document(t, s.ingest(t, note("n", "A note of no place.")...))
		placed := s.document(t, s.ingest(t, with(note("n", "A note of some place."), "path", "notes/today")...))
		if bare["path"] != nil || placed["path"] != "/notes/today" {
			t.Errorf("%v and %v", bare["path"], placed["path"])
		}
		s.upload(t, with(note("n", "A note that conflicts."), "on_conflict", "reject")...).wantError(t, 400, map[string]any{"field": "body.on_conflict"})
	})

	t.Run("ListByPrefix", func(t *testing.T) {
		t.Parallel()
		for i, path := range []string{"/list/100%_a/x.txt", "/list/100%_a/y.txt", "/list/100_b/z.txt", "/lists.txt"} {
			s.ingest(t, with(file("x.txt", fmt.Sprintf("Prefix %d.", i)), "path", path)...)
		}
		for prefix, want := range map[string]int{"/list/": 3, "list/": 3, "/list": 4, "list/100%25_": 2, "/list/100_": 1, "/LIST": 0, "/list/100%25_a/x.txt": 1, "": -1} {
			got := s.get(t, "/api/v1/documents?limit=100&path_prefix="+prefix).want(t, 200)
			if n := len(got.list(t)); want >= 0 && (n != want || got.header.Get("X-Total-Count") != fmt.Sprint(n)) { // others come and go meanwhile
				t.Errorf("%q: %d, want %d", prefix, n, want)
			}
		}
		page := s.get(t, "/api/v1/documents?limit=2&path_prefix=list/").want(t, 200)
		if rest := s.get(t, nextPage(t, page)).want(t, 200).list(t); len(rest) != 1 {
			t.Errorf("the second page: %v", rest)
		}
	})
}

func TestUploadOptions(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	text := strings.TrimSpace(strings.Repeat("One sentence of the long manual about pumps. ", 40))

	t.Run("ChunksAreOfTheSizeThatWasAskedFor", func(t *testing.T) {
		t.Parallel()
		whole := s.document(t, s.ingest(t, file("whole.txt", text)...))
		small := s.document(t, s.ingest(t, with(file("small.txt", text+" "), "chunk_size", "40")...))
		overlapping := s.document(t, s.ingest(t, with(file("over.txt", text+"  "), "chunk_size", "40", "chunk_overlap", "12")...))
		n := func(document map[string]any) int { return len(document["chunks"].([]any)) }
		if !(n(whole) < n(small) && n(small) < n(overlapping)) {
			t.Errorf("%d, %d and %d chunks", n(whole), n(small), n(overlapping))
		}
	})

	t.Run("MetadataGoesOverTheFilesOwn", func(t *testing.T) {
		t.Parallel()
		document := s.document(t, s.ingest(t, with(file("meta.md", "---\nowner: docs\nstate: draft\n---\n\nText of it."), "metadata", `{"state": "final", "n": 1.5, "deep": {"a": [1]}}`)...))
		if got := fmt.Sprint(document["metadata"]); got != "map[deep:map[a:[1]] n:1.5 owner:docs state:final]" {
			t.Errorf("got %s", got)
		}
	})

	for name, test := range map[string]struct{ field, value, named, says string }{
		"ChunkTooLarge":           {"chunk_size", "100000", "body.chunk_size", "at most"},
		"ChunkTooSmall":           {"chunk_size", "2", "body.chunk_size", "at least"},
		"ChunkSizeOfWords":        {"chunk_size", "large", "body.chunk_size", ""},
		"OverlapTooLarge":         {"chunk_overlap", "5000", "body.chunk_size", "overlap"},
		"OverlapBelowNothing":     {"chunk_overlap", "-1", "body.chunk_overlap", ""},
		"UnknownStrategy":         {"chunk_strategy", "sentence", "body.chunk_strategy", "section"},
		"UnknownConflict":         {"on_conflict", "merge", "body.on_conflict", "version"},
		"MetadataIsNoJSON":        {"metadata", "{state}", "body.metadata", "JSON object"},
		"MetadataIsAList":         {"metadata", "[1]", "body.metadata", "JSON object"},
		"MetadataIsNull":          {"metadata", "null", "body.metadata", "JSON object"},
		"MetadataWithAZeroByte":   {"metadata", `{"a": "\u0000"}`, "body.metadata", "zero byte"},
		"MetadataTooLarge":        {"metadata", `{"a": "` + strings.Repeat("x", 70000) + `"}`, "body.metadata", "65536"},
		"PathOfNoFile":            {"path", "/..", "body.path", "names no file"},
		"PathTooLong":             {"path", strings.Repeat("a", 1001), "body.path", "1000"},
		"KnowledgeTypeIsTooLong":  {"knowledge_type", strings.Repeat("a", 201), "body.knowledge_type", "200"},
		"AFieldThatDoesNotExist":  {"chunksize", "10", "body.chunksize", "chunk_size"},
		"MetadataThatIsNotClosed": {"metadata", `{"a": 1`, "body.metadata", "JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused := s.upload(t, with(file(name+".txt", "Text of "+name), test.field, test.value)...)
			refused.wantError(t, 400, map[string]any{"field": test.named})
			if message := refused.object(t)["message"].(string); !strings.Contains(message, test.says) {
				t.Errorf("it says %q", message)
			}
		})
	}
}

func TestJobRetry(t *testing.T) {
	t.Parallel()

	t.Run("AFailedJobRunsAgainWithItsUpload", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{})
		id := s.upload(t, file("broken.pdf", "%PDF-1.4 this is no PDF")...).want(t, 202).object(t)["job_id"].(string)
		if failed := s.wait(t, id); failed["status"] != "failed" || failed["error"] == nil {
			t.Fatalf("got %v", failed)
		}
		s.waitForNoStaged(t)
		queued := s.post(t, "/api/v1/jobs/"+id+"/retry", "").want(t, 200).object(t)
		if queued["status"] != "queued" || queued["error"] != nil || queued["error_code"] != nil || queued["started_at"] != nil || queued["completed_at"] != nil {
			t.Errorf("queued again: %v", queued)
		}
		if again := s.wait(t, id); again["status"] != "failed" || again["error_code"] != "corrupt" || again["attempts"] != 1.0 {
			t.Errorf("the second time: %v", again)
		}
		s.waitForNoStaged(t)
		if kept := s.files(t, "failed/"); len(kept) != 1 {
			t.Errorf("kept: %v", kept)
		}
	})

	t.Run("ACancelledJobRunsAgainAndIsDone", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{NoWorker: true})
		id := s.upload(t, note("n", "A note that was cancelled.")...).want(t, 202).object(t)["job_id"].(string)
		path := "/api/v1/jobs/" + id
		s.post(t, path+"/retry", "").wantError(t, 409, map[string]any{"code": "job_not_failed"})
		s.post(t, path+"/cancel", "").want(t, 200)
		if staged, kept := s.files(t, "staging/"), s.files(t, "failed/"); len(staged) != 0 || len(kept) != 1 {
			t.Errorf("staged %v, kept %v", staged, kept)
		}
		s.post(t, path+"/retry", "").want(t, 200)
		if staged, kept := s.files(t, "staging/"), s.files(t, "failed/"); len(staged) != 1 || len(kept) != 0 {
			t.Errorf("staged %v, kept %v", staged, kept)
		}
		s.work(t)
		if done := s.wait(t, id); done["status"] != "done" {
			t.Errorf("got %v", done)
		}
		s.post(t, path+"/retry", "").wantError(t, 409, map[string]any{"code": "job_not_failed"})
	})

	t.Run("WithoutItsUploadItIsRefused", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{NoWorker: true})
		id := s.upload(t, note("n", "A note whose upload is lost.")...).want(t, 202).object(t)["job_id"].(string)
		s.post(t, "/api/v1/jobs/"+id+"/cancel", "").want(t, 200)
		must(t, s.bucket.Delete(t.Context(), s.files(t, "failed/")[0]))
		s.post(t, "/api/v1/jobs/"+id+"/retry", "").wantError(t, 409, map[string]any{"code": "upload_gone"})
		if got := s.get(t, "/api/v1/jobs/"+id).object(t); got["status"] != "cancelled" {
			t.Errorf("got %v", got)
		}
	})

	t.Run("UnknownJob", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{NoWorker: true})
		for _, id := range []string{"job_01h455vb4pex5vsknk084sn02q", "x"} {
			s.post(t, "/api/v1/jobs/"+id+"/retry", "").wantError(t, 404, map[string]any{"error": "not found"})
		}
	})
}
