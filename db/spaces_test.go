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

	store, memory := db.NewID(), db.NewID()
	remember := func(change string) {
		t.Helper()
		exec("UPDATE memories SET "+change+" WHERE id = $1", memory)
	}
	exec("INSERT INTO memory_stores (project_id, id, name) VALUES ($1, $2, 'notes')", project, store)
	exec("INSERT INTO memories (project_id, store_id, id, content, content_hash, created_at, updated_at) VALUES ($1, $2, $3, 'pump', '', now(), now())", project, store, memory)
	switches("a memory without a vector", nil, false)
	switches("the memory is blank", []uuid.UUID{memory}, true)
	remember("invalidated_at = now()")
	switches("the memory is history", nil, true)
	remember("invalidated_at = NULL, expires_at = now() - interval '1 second'")
	switches("the memory has expired", nil, true)
	remember("expires_at = now() + interval '1 hour'")
	switches("the memory will expire", nil, false)
	exec("INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, embedding) VALUES ($1, $2, $3, $4, '[1,0]')", project, store, memory, next.ID)
	switches("the memory has its vector", nil, true)
}

// TestDropSpace takes the vectors and the indexes of one space away, and of no other.
func TestDropSpace(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	count := func(what string) (n int) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+what).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var spaces []db.EmbeddingSpace
	store, memory := db.NewID(), db.NewID()
	for _, model := range []string{"first", "next"} {
		space, err := db.EnsureSpace(t.Context(), pool, db.EmbeddingSpaceInsertParams{Model: model, Precision: "int8", Sha256: "x", Dimensions: 2})
		if err != nil {
			t.Fatal(err)
		}
		spaces = append(spaces, space)
	}
	for _, statement := range []string{
		`INSERT INTO memory_stores (project_id, id, name) SELECT id, $1, 'notes' FROM projects WHERE $2::uuid IS NOT NULL`,
		`INSERT INTO memories (project_id, store_id, id, content, content_hash, created_at, updated_at) SELECT id, $1, $2, 'pump', '', now(), now() FROM projects`,
		`INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, embedding) SELECT p.id, $1, $2, s.id, '[1,0]' FROM projects AS p, embedding_spaces AS s`,
	} {
		if _, err := pool.Exec(t.Context(), statement, store, memory); err != nil {
			t.Fatal(err)
		}
	}
	if n := count("pg_indexes WHERE indexname LIKE '%embeddings_space_%'"); n != 4 {
		t.Errorf("%d vector indexes of two spaces, want 4", n)
	}
	if err := db.DropSpace(t.Context(), pool, spaces[0].ID); err != nil {
		t.Fatal(err)
	}
	if indexes, vectors := count("pg_indexes WHERE indexname LIKE '%embeddings_space_%'"), count("memory_embeddings"); indexes != 2 || vectors != 1 {
		t.Errorf("%d vector indexes and %d vectors are left, want 2 and 1", indexes, vectors)
	}
}
