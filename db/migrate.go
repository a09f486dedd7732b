package db

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/kb-search/kb/sql/migrations"
)

// riverVersion pins River's schema, so that a newer River comes with a migration of ours.
const riverVersion = 8

// While another process migrates, this one asks for the lock every second, for ten minutes.
const (
	lockInterval = 1
	lockAttempts = 600
)

// Migrate brings the schema up to date. Any number of processes may call it at once on one database: they take turns
// under an advisory lock, and all but the first find nothing to do.
func Migrate(ctx context.Context, pool *pgxpool.Pool, logger *slog.Logger) error {
	provider, closeDB, err := migrationProvider(pool)
	if err != nil {
		return err
	}
	defer closeDB()
	results, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	for _, result := range results {
		logger.InfoContext(ctx, "migrated", slog.Int64("version", result.Source.Version), slog.Duration("duration", result.Duration))
	}
	return nil
}

// MigrateDown takes back every migration. Tests use it to prove that each can be taken back.
func MigrateDown(ctx context.Context, pool *pgxpool.Pool) error {
	provider, closeDB, err := migrationProvider(pool)
	if err != nil {
		return err
	}
	defer closeDB()
	if _, err := provider.DownTo(ctx, 0); err != nil {
		return fmt.Errorf("take the migrations back: %w", err)
	}
	return nil
}

func migrationProvider(pool *pgxpool.Pool) (*goose.Provider, func(), error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockInterval, lockAttempts))
	if err != nil {
		return nil, nil, fmt.Errorf("make the migration lock: %w", err)
	}
	conn := stdlib.OpenDBFromPool(pool)
	provider, err := goose.NewProvider(goose.DialectPostgres, conn, migrations.FS,
		goose.WithSessionLocker(locker),
		goose.WithGoMigrations(goose.NewGoMigration(2, &goose.GoFunc{RunTx: riverUp}, &goose.GoFunc{RunTx: riverDown})),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		_ = conn.Close()
		return nil, nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, func() { _ = conn.Close() }, nil
}

func riverUp(ctx context.Context, tx *sql.Tx) error {
	return migrateRiver(ctx, tx, rivermigrate.DirectionUp, riverVersion)
}

func riverDown(ctx context.Context, tx *sql.Tx) error {
	return migrateRiver(ctx, tx, rivermigrate.DirectionDown, -1)
}

func migrateRiver(ctx context.Context, tx *sql.Tx, direction rivermigrate.Direction, target int) error {
	migrator, err := rivermigrate.New(riverdatabasesql.New(nil), nil)
	if err != nil {
		return fmt.Errorf("make River's migrator: %w", err)
	}
	//nolint:staticcheck // goose owns the transaction, which is what MigrateTx is for
	if _, err := migrator.MigrateTx(ctx, tx, direction, &rivermigrate.MigrateOpts{TargetVersion: target}); err != nil {
		return fmt.Errorf("migrate River: %w", err)
	}
	return nil
}
