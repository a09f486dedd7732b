// Package dbtest gives tests a real PostgreSQL: one server for a whole test run, a migrated database cloned from a
// template for each test that commits, a transaction that is rolled back for each that does not.
package dbtest

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/postgres"
)

// EnvURL names the variable that holds the URL of the server to test on; make test sets it. Without it each package's
// tests start a server of their own.
const EnvURL = "KB_TEST_DATABASE_URL"

// Settings of a server for tests: nothing in it needs to survive, and its time zone catches code that forgets one.
var Settings = map[string]string{"fsync": "off", "full_page_writes": "off", "timezone": "Asia/Kolkata", "max_connections": "300"}

// CacheDir is where make setup puts what kb needs at run time.
func CacheDir() string {
	if dir := os.Getenv("KB_CACHE_DIR"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kb")
}

// StartServer starts a server for tests in a new temporary folder. stop ends it and removes the folder.
func StartServer(ctx context.Context) (address string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "kb-test-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the test database: %w", err)
	}
	server, err := postgres.Start(ctx, postgres.Options{
		CacheDir: CacheDir(), DataDir: dir, Settings: Settings, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return server.URL(), func() {
		_ = server.Stop(context.WithoutCancel(ctx))
		_ = os.RemoveAll(dir)
	}, nil
}

// Main runs a package's tests with a server; call it from TestMain. It gives the exit code.
func Main(m *testing.M) int {
	if os.Getenv(EnvURL) == "" {
		address, stop, err := StartServer(context.Background())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer stop()
		if err := os.Setenv(EnvURL, address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	defer closeShared()
	return m.Run()
}

// EmptyDatabase gives the URL of a new database without any schema, dropped when the test ends.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

// New gives a pool on a migrated database of the test's own, dropped when the test ends.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(t.Context(), URL(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// URL gives the URL of a migrated database of the test's own, dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, template(t))
}

// shared is what all tests of a process use: the template's name and the database of Tx.
var shared struct {
	sync.Mutex
	template string
	pool     *pgxpool.Pool
	drop     func()
}

// Tx gives a transaction on a migrated database that is rolled back when the test ends.
func Tx(t testing.TB) pgx.Tx {
	t.Helper()
	tx, err := sharedPool(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func sharedPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	name := template(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.pool != nil {
		return shared.pool
	}
	address, drop, err := createDatabase(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.Open(context.Background(), address, 64)
	if err != nil {
		t.Fatal(err)
	}
	shared.pool, shared.drop = pool, drop
	return pool
}

func closeShared() {
	if shared.pool != nil {
		shared.pool.Close()
		shared.drop()
	}
}

// template makes the migrated database that all others are cloned from, once for a server, whichever package comes first.
func template(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.template == "" {
		if err := makeTemplate(context.Background(), "kb_template"); err != nil {
			t.Fatal(err)
		}
		shared.template = "kb_template"
	}
	return shared.template
}

func makeTemplate(ctx context.Context, name string) error {
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended($1, 0))", name); err != nil {
		return fmt.Errorf("lock the template: %w", err)
	}
	var ready bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)", name).Scan(&ready)
	if err != nil || ready {
		return err
	}
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	address, err := withDatabase(name)
	if err != nil {
		return err
	}
	pool, err := db.Open(ctx, address, 2)
	if err != nil {
		return err
	}
	err = db.Migrate(ctx, pool, slog.New(slog.DiscardHandler))
	pool.Close()
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true")
	return err
}

func create(t testing.TB, template string) string {
	t.Helper()
	address, drop, err := createDatabase(t.Context(), template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(drop)
	return address
}

func createDatabase(ctx context.Context, template string) (address string, drop func(), err error) {
	name := "kb_" + strings.ReplaceAll(db.NewID().String(), "-", "")
	if err := execute(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		return "", nil, err
	}
	address, err = withDatabase(name)
	return address, func() { _ = execute(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") }, err
}

func execute(ctx context.Context, statement string) error {
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, os.Getenv(EnvURL))
	if err != nil {
		return nil, fmt.Errorf("reach the test server (call dbtest.Main in TestMain): %w", err)
	}
	return conn, nil
}

func withDatabase(name string) (string, error) {
	parsed, err := url.Parse(os.Getenv(EnvURL))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", EnvURL, err)
	}
	parsed.Path = "/" + name
	return parsed.String(), nil
}
