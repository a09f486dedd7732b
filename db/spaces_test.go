package db_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

// TestSwitchSpace lets a space take over only when no chunk lacks a vector in it.
func TestSwitchSpace(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	space := func(model string) db.EmbeddingSpace {
		t.Helper()
		stored, err := db.EnsureSpace(t.Context(), pool, db.EmbeddingSpaceInsertParams{Model: model, Precision: "int8", Sha256: "x", Dimensions: 2})
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	document, chunk, project := db.NewID(), db.NewID(), db.DefaultProjectID
	vector := func(space int32) {
		t.Helper()
		exec("INSERT INTO embeddings (project_id, document_id, chunk_id, space_id, embedding) VALUES ($1, $2, $3, $4, '[1,0]')", project, document, chunk, space)
	}
	exec(`INSERT INTO documents (project_id, id, title, doc_type, content_hash, original_filename, stored_path, size, chunk_count)
		VALUES ($1, $2, 'pump', 'note', '\x00', 'note.txt', 'x', 1, 1)`, project, document)
	exec("INSERT INTO chunks (project_id, document_id, id, seq, section, content, enriched_text) VALUES ($1, $2, $3, 0, '', 'pump', 'pump')", project, document, chunk)
	first := space("first")
	vector(first.ID)
	next := space("next")
	if !first.Active || next.Active {
		t.Fatalf("active at first: %v and %v", first.Active, next.Active)
	}

	switches := func(what string, blank []uuid.UUID, want bool) {
		t.Helper()
		switched, err := db.SwitchSpace(t.Context(), pool, next.ID, blank)
		if err != nil || switched != want {
			t.Errorf("%s: switched %v, %v", what, switched, err)
		}
	}
	switches("a chunk without a vector", nil, false)
	switches("a chunk without a vector, another one blank", []uuid.UUID{db.NewID()}, false)
	switches("the chunk is blank", []uuid.UUID{chunk}, true)
	vector(next.ID)
	switches("the chunk has its vector", nil, true)
}
