package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"

	"github.com/kb-search/kb/embed/embedtest"
)

func TestJobCreate(t *testing.T) {
	t.Parallel()

	t.Run("FileIsQueuedStoredAndDone", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{})
		accepted := s.upload(t, part{"file", "pump guide.md", "# Pumps\n\nThe pump is loud.\n\n## Care\n\nOil it."},
			part{"tags", "", "manual, v2"}, part{"tags", "", "Team:ops"}, part{"doc_type", "", "markdown"}).want(t, 202).object(t)
		if id, _ := accepted["job_id"].(string); !isID(id, "job") || accepted["status"] != "queued" || accepted["filename"] != "pump guide.md" {
			t.Errorf("got %v", accepted)
		}
		job := s.wait(t, accepted["job_id"].(string))
		for field, want := range map[string]any{"status": "done", "filename": "pump guide.md", "chunk_count": 2.0, "error": nil, "error_code": nil, "progress": nil, "attempts": 1.0} {
			if job[field] != want {
				t.Errorf("job: %s is %v, want %v", field, job[field], want)
			}
		}
		for _, field := range []string{"created_at", "started_at", "completed_at"} {
			if at, err := time.Parse(time.RFC3339Nano, job[field].(string)); err != nil || time.Since(at) > time.Minute || time.Since(at) < 0 || !strings.HasSuffix(job[field].(string), "Z") {
				t.Errorf("%s: %v %v", field, job[field], err)
			}
		}
		if timings := job["timings_ms"].(map[string]any); len(timings) != 3 || timings["parse"] == nil || timings["embed"] == nil || timings["store"] == nil {
			t.Errorf("timings: %v", timings)
		}
		document := s.document(t, job)
		if !isID(document["id"].(string), "doc") || document["title"] != "Pumps" || document["doc_type"] != "markdown" || fmt.Sprint(document["tags"]) != "[Team:ops manual v2]" {
			t.Errorf("document: %v", document)
		}
	})

	t.Run("NoteWithTitle", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{})
		job := s.ingest(t, append(note(" Weekly \n plan ", "Oil the pump."), part{"tags", "", `{"team":"ops","draft":"","ratio":"a:"}`})...)
		document := s.document(t, job)
		if document["title"] != "Weekly plan" || document["doc_type"] != "note" || fmt.Sprint(document["tags"]) != "[draft ratio:a: team:ops]" {
			t.Errorf("got %v", document)
		}
		if text := document["chunks"].([]any)[0].(map[string]any)["text"]; text != "Oil the pump." {
			t.Errorf("text %q", text)
		}
	})

	t.Run("JobAndTurnAreOneTransaction", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{NoWorker: true})
		_, err := s.pool.Exec(t.Context(), "ALTER TABLE river_job ADD CONSTRAINT refuse CHECK (kind <> 'ingest') NOT VALID")
		must(t, err)
		s.upload(t, note("a", "text")...).want(t, 400)
		s.wantNothing(t)
		_, err = s.pool.Exec(t.Context(), "ALTER TABLE river_job DROP CONSTRAINT refuse")
		must(t, err)
		s.upload(t, note("a", "text")...).want(t, 202)
		if s.count(t, "jobs") != 1 || s.count(t, "river_job WHERE kind = 'ingest'") != 1 {
			t.Error("want one job and one turn")
		}
	})

	t.Run("RightAfterAnotherIsTakenUpAtOnce", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{})
		started := time.Now()
		for i := range 12 {
			s.ingest(t, note("", fmt.Sprintf("This is text %d.", i))...)
		}
		if took := time.Since(started); took > 5*time.Second { // a job that misses its notification waits a second
			t.Errorf("twelve notes one after the other took %s", took)
		}
	})

	t.Run("OneAfterTheOtherInOrder", func(t *testing.T) {
		t.Parallel()
		block := make(chan struct{})
		s := start(t, config{Embedder: &embedtest.Embedder{Block: block}})
		var ids []string
		for i := range 5 {
			ids = append(ids, s.upload(t, note("", fmt.Sprintf("This is text %d.", i))...).want(t, 202).object(t)["job_id"].(string))
		}
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			first := s.get(t, "/api/v1/jobs/"+ids[0]).object(t)
			if first["status"] == "processing" {
				if progress, _ := first["progress"].(map[string]any); progress["phase"] == nil || first["attempts"] != 1.0 || first["completed_at"] != nil || first["started_at"] == nil {
					t.Errorf("in work: %v", first)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("never in work: %v", first)
			}
		}
		if n := len(s.get(t, "/api/v1/jobs?status=queued").list(t)); n != 4 {
			t.Errorf("%d queued beside the one in work, want 4", n)
		}
		close(block)
		var ended []string
		for _, id := range ids {
			ended = append(ended, s.wait(t, id)["completed_at"].(string))
		}
		if !slices.IsSorted(ended) {
			t.Errorf("ended at %v", ended)
		}
	})
}

func TestJobList(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	if got := s.get(t, "/api/v1/jobs").want(t, 200); strings.TrimSpace(string(got.body)) != "[]" || got.header.Get("X-Total-Count") != "0" || got.header.Get("Link") != "" {
		t.Errorf("an empty list: %s %v", got.body, got.header)
	}
	var ids []string
	for i := range 6 {
		ids = append(ids, s.upload(t, note("", fmt.Sprintf("This is text %d.", i))...).want(t, 202).object(t)["job_id"].(string))
	}
	slices.Reverse(ids)
	_, err := s.pool.Exec(t.Context(), "UPDATE jobs SET status = 'failed', error = 'broken' WHERE id = (SELECT min(id::text)::uuid FROM jobs)")
	must(t, err)

	t.Run("NewestFirstPageByPage", func(t *testing.T) {
		t.Parallel()
		var got []string
		next := "/api/v1/jobs?limit=2"
		for pages := 1; next != ""; pages++ {
			page := s.get(t, next).want(t, 200)
			for _, job := range page.list(t) {
				got = append(got, job["job_id"].(string))
			}
			if page.header.Get("X-Total-Count") != "6" || pages > 3 {
				t.Fatalf("page %d: %v", pages, page.header)
			}
			next = nextPage(t, page)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("got %v, want %v", got, ids)
		}
	})

	t.Run("ByStatus", func(t *testing.T) {
		t.Parallel()
		failed := s.get(t, "/api/v1/jobs?status=failed").want(t, 200)
		if list := failed.list(t); len(list) != 1 || list[0]["job_id"] != ids[5] || list[0]["error"] != "broken" || failed.header.Get("X-Total-Count") != "1" {
			t.Errorf("got %s", failed.body)
		}
		page := s.get(t, "/api/v1/jobs?status=queued&limit=3").want(t, 200)
		if rest := s.get(t, nextPage(t, page)).want(t, 200).list(t); len(rest) != 2 {
			t.Errorf("the second page: %v", rest)
		}
		if got := s.get(t, "/api/v1/jobs?status=cancelled").want(t, 200); strings.TrimSpace(string(got.body)) != "[]" {
			t.Errorf("got %s", got.body)
		}
		if list := s.get(t, "/api/v1/jobs?limit=100000").want(t, 200).list(t); len(list) != 6 {
			t.Errorf("%d jobs", len(list))
		}
	})

	t.Run("UnknownJob", func(t *testing.T) {
		t.Parallel()
		for _, id := range []string{"job_01h455vb4pex5vsknk084sn02q", "job_x", "7", "doc_" + ids[0][4:], strings.ToUpper(ids[0]), "%00", strings.Repeat("a", 2000)} {
			s.get(t, "/api/v1/jobs/"+id).wantError(t, 404, map[string]any{"error": "not found"})
		}
	})
}

// nextPage reads the Link header; empty when there is no further page.
func nextPage(t *testing.T, a answer) string {
	t.Helper()
	link := a.header.Get("Link")
	if link == "" {
		return ""
	}
	path, found := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	if !found {
		t.Fatalf("Link: %s", link)
	}
	return path
}

// isID says whether text is a public id of a kind.
func isID(text, prefix string) bool {
	rest, found := strings.CutPrefix(text, prefix+"_")
	return found && len(rest) == 26 && strings.Trim(rest, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

// files lists the keys in the storage below a prefix.
func (s *server) files(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	page, _, err := s.bucket.ListPage(t.Context(), blob.FirstPageToken, 1000, &blob.ListOptions{Prefix: prefix})
	must(t, err)
	for _, object := range page {
		keys = append(keys, object.Key)
	}
	return keys
}

// waitForNoStaged waits until the worker has cleaned up: it does so just after a job has ended.
func (s *server) waitForNoStaged(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); len(s.files(t, "staging/")) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("staged files are left: %v", s.files(t, "staging/"))
			return
		}
	}
}

// wantNothing checks that nothing at all is stored: no file, no job, no turn, no document.
func (s *server) wantNothing(t *testing.T) {
	t.Helper()
	for _, table := range []string{"jobs", "documents", "chunks", "river_job WHERE kind = 'ingest'"} {
		if n := s.count(t, table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	if files := s.files(t, ""); len(files) > 0 {
		t.Errorf("files: %v", files)
	}
}
