package api_test

import (
	"testing"
	"time"

	"github.com/kb-search/kb/embed/embedtest"
)

func TestJobCancel(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	s := start(t, config{Embedder: &embedtest.Embedder{Block: hold}})
	upload := func(text string) string {
		t.Helper()
		return s.upload(t, note("Note", text)...).want(t, 202).object(t)["job_id"].(string)
	}
	status := func(id string) any { return s.get(t, "/api/v1/jobs/"+id).want(t, 200).object(t)["status"] }
	cancel := func(id string) answer { return s.post(t, "/api/v1/jobs/"+id+"/cancel", "") }

	working, waiting, last := upload("The first text."), upload("The second text."), upload("The third text.")
	for deadline := time.Now().Add(30 * time.Second); status(working) != "processing"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the job is %v", status(working))
		}
	}
	for _, id := range []string{waiting, working} {
		if got := cancel(id).want(t, 200).object(t); got["status"] != "cancelled" || got["completed_at"] == nil {
			t.Errorf("got %v", got)
		}
		cancel(id).wantError(t, 409, map[string]any{"code": "job_ended"})
	}

	// The worker notices, lets go of the text that it works on, and goes on with the next job.
	for deadline := time.Now().Add(30 * time.Second); status(last) != "processing"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the next job is %v", status(last))
		}
	}
	close(hold)
	s.wait(t, last)
	if got := s.count(t, "documents"); got != 1 {
		t.Errorf("%d documents", got)
	}
	if status(working) != "cancelled" || status(waiting) != "cancelled" {
		t.Errorf("the jobs are %v and %v", status(working), status(waiting))
	}
	s.waitForNoStaged(t)
	if files := s.files(t, "documents/"); len(files) != 1 {
		t.Errorf("originals: %v", files)
	}
	if list := s.get(t, "/api/v1/jobs?status=cancelled").want(t, 200).list(t); len(list) != 2 {
		t.Errorf("%d cancelled jobs are listed", len(list))
	}

	// The same text can be sent again, and what has ended or never was can't be cancelled.
	s.ingest(t, note("Note", "The first text.")...)
	cancel(last).wantError(t, 409, map[string]any{"code": "job_ended"})
	cancel("job_01kb9q5s7ze4gr6tcx3k0z9ykn").wantError(t, 404, nil)
	cancel("nothing").wantError(t, 404, nil)
}
