package db_test

import (
	"log/slog"
	"os"
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
