package api_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kb-search/kb/embed/embedtest"
)

func TestDuplicates(t *testing.T) {
	t.Parallel()

	t.Run("UPL06OfADocument", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{})
		first := s.ingest(t, file("kiln.txt", "Same bytes, other name.\n")...)
		s.upload(t, file("kiln-copy.txt", "Same bytes, other name.\n")...).wantError(t, 409,
			map[string]any{"error": "duplicate", "document_id": first["document_id"], "title": "kiln", "job_id": nil})
		other := s.ingest(t, file("kiln.txt", "Other bytes, same name.\n")...)
		if other["document_id"] == first["document_id"] {
			t.Errorf("got %v", other)
		}
		s.upload(t, note("A note of the same", "Same bytes, other name.\n")...).wantError(t, 409,
			map[string]any{"error": "duplicate", "document_id": first["document_id"], "title": "kiln"})
		if s.count(t, "jobs") != 2 || s.count(t, "documents") != 2 || len(s.files(t, "staging/")) > 0 {
			t.Errorf("%d jobs, %d documents, staged %v", s.count(t, "jobs"), s.count(t, "documents"), s.files(t, "staging/"))
		}
	})

	t.Run("OfAJobInFlight", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{NoWorker: true})
		queued := s.upload(t, file("kiln.txt", "The kiln is lit.")...).want(t, 202).object(t)
		noted := s.upload(t, note("Tide", "The tide is high.")...).want(t, 202).object(t)
		s.upload(t, file("copy.txt", "The kiln is lit.")...).wantError(t, 409,
			map[string]any{"error": "duplicate", "job_id": queued["job_id"], "title": "kiln.txt", "document_id": nil})
		_, err := s.pool.Exec(t.Context(), "UPDATE jobs SET status = 'processing'")
		must(t, err)
		s.upload(t, note("", "The tide is high.")...).wantError(t, 409,
			map[string]any{"error": "duplicate", "job_id": noted["job_id"], "title": noted["filename"]})
		if s.count(t, "jobs") != 2 || len(s.files(t, "staging/")) != 2 {
			t.Errorf("%d jobs, staged %v", s.count(t, "jobs"), s.files(t, "staging/"))
		}
	})

	t.Run("AFailedJobIsNoObstacle", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{NoWorker: true})
		s.upload(t, file("kiln.txt", "The kiln is lit.")...).want(t, 202)
		_, err := s.pool.Exec(t.Context(), "UPDATE jobs SET status = 'failed'")
		must(t, err)
		s.upload(t, file("kiln.txt", "The kiln is lit.")...).want(t, 202)
	})

	t.Run("UPL06PastTheCheckAtOnce", func(t *testing.T) {
		t.Parallel()
		block := make(chan struct{})
		s := start(t, config{Embedder: &embedtest.Embedder{Block: block}})
		// While the jobs table is locked against writes all uploads pass the check.
		lock, err := s.pool.Begin(t.Context())
		must(t, err)
		_, err = lock.Exec(t.Context(), "LOCK TABLE jobs IN SHARE MODE")
		must(t, err)
		answers := make([]answer, 3)
		var wait sync.WaitGroup
		for i := range answers {
			wait.Go(func() { answers[i] = s.upload(t, file(fmt.Sprintf("%d.txt", i), "The kiln is lit.")...) })
		}
		time.Sleep(300 * time.Millisecond)
		must(t, lock.Commit(t.Context()))
		wait.Wait()
		close(block)
		statuses := map[any]int{}
		for _, got := range answers {
			ended := s.wait(t, got.want(t, 202).object(t)["job_id"].(string))
			statuses[ended["status"]]++
			if ended["document_id"] == nil {
				t.Errorf("%v names no document", ended)
			}
		}
		if statuses["done"] != 1 || statuses["skipped"] != 2 || s.count(t, "documents") != 1 {
			t.Errorf("got %v and %d documents", statuses, s.count(t, "documents"))
		}
		s.waitForNoStaged(t)
		if originals := s.files(t, "documents/"); len(originals) != 1 {
			t.Errorf("originals: %v", originals)
		}
	})
}
