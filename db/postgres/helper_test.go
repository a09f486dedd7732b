package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// envHelper names the data folder in which this test binary, run again as a process of its own, starts a server.
const envHelper = "KB_TEST_POSTGRES_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envHelper); dir != "" {
		os.Exit(help(dir))
	}
	code := m.Run()
	if initialisedDir != "" {
		_ = os.RemoveAll(initialisedDir)
	}
	os.Exit(code)
}

// help starts a server, says so in one line, and stops it when stdin ends.
func help(dir string) int {
	server, err := Start(context.Background(), options(dir))
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("ready", server.Owner(), server.URL())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := server.Stop(context.Background()); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

// helper is another process that has started a server.
type helper struct {
	cmd   *exec.Cmd
	owner bool
	url   string
	stop  func() error
}

func startHelper(t *testing.T, dir string) *helper {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"="+dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 || fields[0] != "ready" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	stop := func() error {
		_ = stdin.Close()
		return cmd.Wait()
	}
	return &helper{cmd: cmd, owner: fields[1] == "true", url: fields[2], stop: stop}
}

func (h *helper) kill(t *testing.T) {
	t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
}

func cacheDir() string {
	if dir := os.Getenv("KB_CACHE_DIR"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "kb")
}

func options(dir string) Options {
	return Options{
		CacheDir: cacheDir(), DataDir: dir, Settings: map[string]string{"shared_buffers": "16MB"}, Logger: slog.New(slog.DiscardHandler),
	}
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), options(dir))
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "postgres.log"))
		t.Fatalf("%v\n%s", err, log)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// initialisedDir is what initialised has made, if it was called.
var initialisedDir string

// initialised is a folder whose database files were made once, for tests that are about something else.
var initialised = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "kb-test-initialised-")
	if err != nil {
		return "", err
	}
	initialisedDir = dir
	server, err := Start(context.Background(), options(dir))
	if err != nil {
		return "", err
	}
	return dir, server.Stop(context.Background())
})

// dataDir gives a data folder with database files in it.
func dataDir(t *testing.T) string {
	t.Helper()
	from, err := initialised()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "cluster"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func stop(t *testing.T, server *Server) {
	t.Helper()
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// query runs a statement on a connection of its own and gives the first value of its answer, if any.
func query(t *testing.T, address, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var value string
	err = conn.QueryRow(t.Context(), statement).Scan(&value)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", statement, err)
	}
	return value
}

func keep(t *testing.T, address string) {
	t.Helper()
	query(t, address, "CREATE TABLE kept AS SELECT 'still here' AS value")
}

func checkKept(t *testing.T, address string) {
	t.Helper()
	if got := query(t, address, "SELECT value FROM kept"); got != "still here" {
		t.Errorf("found %q", got)
	}
}

// serverPID gives the pid that the server in a data folder has written down, 0 for none.
func serverPID(dir string) int {
	p, _ := readPostmaster(filepath.Join(dir, "cluster"))
	return p.pid
}

func alive(dir string) bool {
	p, found := readPostmaster(filepath.Join(dir, "cluster"))
	return found && serves(p.pid, filepath.Join(dir, "cluster"))
}
