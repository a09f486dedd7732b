package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed/embedtest"
)

// reindexed waits until the last reindex has ended.
func (s *server) reindexed(t *testing.T) map[string]any {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got := s.get(t, "/api/v1/reindex").want(t, 200).object(t)
		if got["state"] != "running" {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %v", got)
		}
	}
}

// model gives what /status says of the model in use.
func (s *server) model(t *testing.T) string {
	t.Helper()
	status := s.get(t, "/api/v1/status").want(t, 200).object(t)
	return fmt.Sprintf("%v/%v", status["model_name"], status["embedding_dim"])
}

// similar searches by meaning alone and gives the title and the similarity of the best result.
func (s *server) similar(t *testing.T, query string) (title string, similarity float64) {
	t.Helper()
	got := s.search(t, fmt.Sprintf(`{"query": %q, "vec_only": true}`, query))
	if len(got.Results) == 0 || got.Results[0].Similarity == nil {
		t.Fatalf("no results for %q: %+v", query, got)
	}
	return got.Results[0].Title, *got.Results[0].Similarity
}

// wantVectors checks that each chunk has one vector of the size of its space, in each of so many spaces.
func (s *server) wantVectors(t *testing.T, spaces int) {
	t.Helper()
	if chunks, vectors := s.count(t, "chunks"), s.count(t, "embeddings"); vectors != spaces*chunks {
		t.Errorf("%d vectors of %d chunks in %d spaces", vectors, chunks, spaces)
	}
	if n := s.count(t, "embeddings AS e JOIN embedding_spaces AS s ON s.id = e.space_id WHERE vector_dims(e.embedding::vector) <> s.dimensions"); n != 0 {
		t.Errorf("%d vectors of another size than their space", n)
	}
}

func TestReindex(t *testing.T) {
	t.Parallel()

	t.Run("TheSameModelMakesAllVectorsAnew", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{})
		if got := s.get(t, "/api/v1/reindex").want(t, 200).object(t); got["state"] != "idle" || got["space"] != nil {
			t.Errorf("before the first: %v", got)
		}
		for i := range 5 {
			s.ingest(t, note(fmt.Sprintf("pump %d", i), fmt.Sprintf("The pump number %d is loud.", i))...)
		}
		_, err := s.pool.Exec(t.Context(), "UPDATE embeddings SET embedding = (SELECT array_agg(1)::vector::halfvec FROM generate_series(1, 384))")
		must(t, err)
		got := s.post(t, "/api/v1/reindex", "").want(t, 202).object(t)
		if got["state"] != "running" || got["total"] != 5.0 || got["space"].(map[string]any)["active"] != true {
			t.Errorf("started: %v", got)
		}
		if got = s.reindexed(t); got["state"] != "done" || got["done"] != 5.0 || got["completed_at"] == nil {
			t.Errorf("ended: %v", got)
		}
		if title, similarity := s.similar(t, "The pump number 3 is loud."); title != "pump 3" || similarity < 0.7 {
			t.Errorf("%q with %v", title, similarity)
		}
		s.wantVectors(t, 1)
	})

	for name, next := range map[string]*embedtest.Embedder{
		"AnotherModelOfTheSameSize": {Model: "next"},
		"AnotherModelOfAnotherSize": {Model: "next", Dimensions: 512},
	} {
		t.Run(name+"TakesOverInOneStepAndCanBeTakenBack", func(t *testing.T) {
			t.Parallel()
			first := embedtest.New()
			old := start(t, config{Embedder: first, NoWorker: true})
			size := next.Space().Dimensions
			s := start(t, config{Embedder: first, Configured: next, On: old, NoWorker: true})
			// An empty database takes the new model at once. This one is not empty when the model changes.
			if got := s.model(t); got != fmt.Sprintf("next/%d", size) {
				t.Fatalf("empty: %s", got)
			}
			_, err := db.SwitchSpace(t.Context(), s.pool, s.space(t, "fake"), nil)
			must(t, err)
			s.work(t)
			defer s.stopWorker(t)
			s.ingest(t, note("pump", "The pump is loud at night.")...)
			s.ingest(t, note("valve", "The valve is tight.")...)

			// Searches and uploads stay with the old model.
			s = start(t, config{Embedder: first, Configured: next, On: old, NoWorker: true})
			if got := s.model(t); got != "fake/384" {
				t.Fatalf("before: %s", got)
			}
			before := next.Texts()
			s.ingest(t, note("gasket", "The gasket is brass.")...)
			if title, _ := s.similar(t, "pump loud night"); title != "pump" || next.Texts() != before {
				t.Errorf("%q; the new model saw %d texts", title, next.Texts()-before)
			}
			s.post(t, "/api/v1/reindex", "").want(t, 202)
			if got := s.reindexed(t); got["state"] != "done" || got["done"] != got["total"] {
				t.Fatalf("reindex: %v", got)
			}
			if got := s.model(t); got != fmt.Sprintf("next/%d", size) {
				t.Errorf("after: %s", got)
			}
			s.wantVectors(t, 2)
			s.waitActive(t)
			if title, _ := s.similar(t, "gasket brass"); title != "gasket" {
				t.Errorf("found %q", title)
			}
			s.ingest(t, note("bearing", "The bearing is worn.")...)

			// What came in since is embedded by the old model before that one is back.
			s.post(t, "/api/v1/reindex/rollback", "").want(t, 202)
			if got := s.reindexed(t); got["state"] != "done" {
				t.Fatalf("rollback: %v", got)
			}
			if got := s.model(t); got != "fake/384" {
				t.Errorf("rolled back: %s", got)
			}
			s.waitActive(t)
			if title, similarity := s.similar(t, "The bearing is worn."); title != "bearing" || similarity < 0.7 {
				t.Errorf("found %q with %v", title, similarity)
			}
		})
	}

	t.Run("OneAtATimeAndCancelled", func(t *testing.T) {
		t.Parallel()
		block := make(chan struct{})
		first, next := embedtest.New(), &embedtest.Embedder{Model: "next", Block: block}
		old := start(t, config{Embedder: first})
		old.ingest(t, note("pump", "The pump is loud.")...)
		old.stopWorker(t)
		s := start(t, config{Embedder: first, Configured: next, On: old})
		s.post(t, "/api/v1/reindex", "").want(t, 202)
		s.post(t, "/api/v1/reindex", "").wantError(t, 409, map[string]any{"code": "reindex_running"})
		s.post(t, "/api/v1/reindex/rollback", "").wantError(t, 409, map[string]any{"code": "no_previous_space"})
		if title, _ := s.similar(t, "pump"); title != "pump" { // not blocked
			t.Errorf("found %q", title)
		}
		got := s.do(t, "DELETE", "/api/v1/reindex", nil).want(t, 200).object(t)
		if got["state"] != "cancelled" {
			t.Errorf("got %v", got)
		}
		close(block)
		s.do(t, "DELETE", "/api/v1/reindex", nil).wantError(t, 409, map[string]any{"code": "no_reindex"})
		if got := s.model(t); got != "fake/384" {
			t.Errorf("model %s", got)
		}
	})

	t.Run("DocumentsThatComeAndGoMeanwhileAreNotForgotten", func(t *testing.T) {
		t.Parallel()
		first := embedtest.New()
		old := start(t, config{Embedder: first, NoWorker: true})
		old.work(t)
		var ids []string
		for i := range 70 { // more than a batch
			ids = append(ids, old.ingest(t, note("old", fmt.Sprintf("The old pump number %d is loud.", i))...)["document_id"].(string))
		}
		old.stopWorker(t)
		reached := make(chan struct{}, 1000)
		next := &embedtest.Embedder{Model: "next", Fail: func(string) error { reached <- struct{}{}; time.Sleep(2 * time.Millisecond); return nil }}
		s := start(t, config{Embedder: first, Configured: next, On: old, NoWorker: true})
		s.work(t)
		s.post(t, "/api/v1/reindex", "").want(t, 202)
		<-reached
		s.do(t, "DELETE", "/api/v1/documents/"+ids[69], nil).want(t, 200)
		for i := range 5 {
			s.ingest(t, note("new", fmt.Sprintf("The new valve number %d is tight.", i))...)
		}
		if got := s.reindexed(t); got["state"] != "done" {
			t.Fatalf("reindex: %v", got)
		}
		if n := s.count(t, "chunks AS c WHERE NOT EXISTS (SELECT FROM embeddings AS e JOIN embedding_spaces AS s ON s.id = e.space_id AND s.active WHERE e.chunk_id = c.id)"); n != 0 {
			t.Errorf("%d chunks without a vector in the active space", n)
		}
	})

	t.Run("AnInterruptedOneGoesOnWhereItWas", func(t *testing.T) {
		t.Parallel()
		first := embedtest.New()
		old := start(t, config{Embedder: first, NoWorker: true})
		old.work(t)
		for i := range 70 {
			old.ingest(t, note("old", fmt.Sprintf("The pump number %d is loud.", i))...)
		}
		old.stopWorker(t)
		next := &embedtest.Embedder{Model: "next"}
		s := start(t, config{Embedder: first, Configured: next, On: old, NoWorker: true})
		id := db.NewID()
		_, err := db.New().ReindexInsert(t.Context(), s.pool, db.ReindexInsertParams{ID: id, SpaceID: s.space(t, "next"), Renew: false})
		must(t, err)
		// As a process leaves it that died after the first 64 chunks.
		_, err = s.pool.Exec(t.Context(), `WITH done AS (
			INSERT INTO embeddings (project_id, document_id, chunk_id, space_id, embedding)
			SELECT project_id, document_id, id, $1, (SELECT array_agg(1)::vector::halfvec FROM generate_series(1, 384))
			FROM chunks ORDER BY project_id, document_id, id LIMIT 64 RETURNING project_id, document_id, chunk_id)
			UPDATE reindexes SET done = 64, heartbeat_at = now() - interval '5 minutes',
				(cursor_project, cursor_document, cursor_chunk) = (SELECT project_id, document_id, chunk_id FROM done ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT 1)`, s.space(t, "next"))
		must(t, err)
		s.work(t)
		if got := s.reindexed(t); got["state"] != "done" || next.Texts() != 6 {
			t.Errorf("%v; %d texts", got, next.Texts())
		}
		s.wantVectors(t, 2)
	})
}

// waitActive waits until this server searches with the space that is active: it looks once a second.
func (s *server) waitActive(t *testing.T) {
	t.Helper()
	time.Sleep(1100 * time.Millisecond)
}

// space gives the number of a model's space.
func (s *server) space(t *testing.T, model string) (id int32) {
	t.Helper()
	must(t, s.pool.QueryRow(t.Context(), "SELECT id FROM embedding_spaces WHERE model = $1", model).Scan(&id))
	return id
}
