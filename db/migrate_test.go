package db_test

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

func openEmpty(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(t.Context(), dbtest.EmptyDatabase(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestMigrate(t *testing.T) {
	t.Parallel()

	logger := slog.New(slog.DiscardHandler)

	t.Run("UpDownUp", func(t *testing.T) {
		t.Parallel()

		pool := openEmpty(t)
		if err := db.Migrate(t.Context(), pool, logger); err != nil {
			t.Fatal(err)
		}
		if err := db.MigrateDown(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		var left int
		err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'goose_db_version'").Scan(&left)
		if err != nil || left != 0 {
			t.Fatalf("%d tables left, %v", left, err)
		}
		if err := db.Migrate(t.Context(), pool, logger); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("TenInstancesAtOnceAllComeUp", func(t *testing.T) {
		t.Parallel()

		address := dbtest.EmptyDatabase(t)
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				pool, err := db.Open(t.Context(), address, 4)
				if err != nil {
					t.Error(err)
					return
				}
				defer pool.Close()
				if err := db.Migrate(t.Context(), pool, logger); err != nil {
					t.Error(err)
				}
				space := db.EmbeddingSpaceInsertParams{Model: "m", Precision: "int8", Sha256: "x", Dimensions: 384}
				if _, err := db.EnsureSpace(t.Context(), pool, space); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		pool, err := db.Open(t.Context(), address, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		var invalid int
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_index WHERE NOT indisvalid").Scan(&invalid); err != nil || invalid != 0 {
			t.Fatalf("%d invalid indexes, %v", invalid, err)
		}
	})
}

func TestMigrateUniquePaths(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	must(t, db.MigrateDownTo(t.Context(), pool, 17))
	for i, path := range []string{"/a/r.pdf", "/a/r.pdf", "/a/r (2).pdf", "/a/r.pdf", "/b", "", ""} {
		_, err := pool.Exec(t.Context(), `INSERT INTO documents (project_id, id, title, doc_type, path, content_hash, original_filename, stored_path, size, chunk_count, created_at)
			VALUES ($1, gen_random_uuid(), $2::int::text, 'data', nullif($3, ''), sha256($2::int::text::bytea), '', '', 1, 1, '2026-01-01'::timestamptz + make_interval(days => $2::int))`,
			db.DefaultProjectID, i, path)
		must(t, err)
	}
	must(t, db.Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	var got []string
	must(t, pool.QueryRow(t.Context(), "SELECT array_agg(coalesce(path, 'none') ORDER BY title) FROM documents").Scan(&got))
	// The last one keeps the path; the others take what is free, the oldest first.
	if want := []string{"/a/r (3).pdf", "/a/r (4).pdf", "/a/r (2).pdf", "/a/r.pdf", "/b", "none", "none"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNumberedPath(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	for path, want := range map[string]string{
		"/a/report.pdf": "/a/report (2).pdf", "/report.tar.gz": "/report.tar (2).gz", "/a.b/c": "/a.b/c (2)", "/a/.env": "/a/.env (2)",
		"/a/.env.local": "/a/.env (2).local", "/a/b.": "/a/b (2).", "/a/b (2).md": "/a/b (2) (2).md", `/a\1/&.x`: `/a\1/& (2).x`,
	} {
		var first, second string
		must(t, tx.QueryRow(t.Context(), "SELECT numbered_path($1, 1), numbered_path($1, 2)", path).Scan(&first, &second))
		if first != path || second != want {
			t.Errorf("%s: %s, %s, want %s", path, first, second, want)
		}
	}
}
