package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kb-search/kb/db/dbtest"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kb-test-binary-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "kb")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build kb: %v\n%s", err, out)
		return 1
	}
	return dbtest.Main(m)
}

// environ gives what a kb process of a test sees: the machine's variables without kb's own, and the test's.
func environ(variables ...string) []string {
	kept := []string{"HF_HUB_OFFLINE=1"}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if (!strings.HasPrefix(name, "KB_") && !strings.HasPrefix(name, "HF_")) || name == "KB_CACHE_DIR" {
			kept = append(kept, pair)
		}
	}
	return append(kept, variables...)
}

// result is how a kb process ended.
type result struct {
	code           int
	stdout, stderr string
}

// execute runs kb with a command to its end.
func execute(t *testing.T, variables []string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = environ(variables...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
}

// want fails the test unless a command ended with a code and said some things, wherever.
func (r result) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	failed := r.code != code
	if failed {
		t.Errorf("it ended with %d, want %d", r.code, code)
	}
	for _, part := range parts {
		if !strings.Contains(r.stdout+r.stderr, part) {
			failed = true
			t.Errorf("it did not say %q", part)
		}
	}
	if failed {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
	}
}

// buffer collects what a process says; it can be read meanwhile.
type buffer struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.bytes.String()
}

// server is a running kb serve, or kb worker.
type server struct {
	cmd            *exec.Cmd
	addr           string
	stdout, stderr buffer
	exited         chan struct{}
}

// freeAddr gives a loopback address that nobody listens on. The port is below those that the system hands out on its own,
// so that no other process gets it meanwhile.
func freeAddr(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%10000; port < 32768; port++ {
		portMutex.Lock()
		taken := portsTaken[port]
		portsTaken[port] = true
		portMutex.Unlock()
		if taken {
			continue
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		listener, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		_ = listener.Close()
		return addr
	}
	t.Fatal("no free port")
	return ""
}

var (
	portMutex  sync.Mutex
	portsTaken = map[int]bool{}
)

// serve starts kb serve on a data folder and an address of its own. It is stopped when the test ends.
func serve(t *testing.T, dir string, variables ...string) *server {
	t.Helper()
	return launch(t, dir, []string{"serve"}, variables...)
}

// launch starts a command that runs until it is told to stop.
func launch(t *testing.T, dir string, args []string, variables ...string) *server {
	t.Helper()
	s := &server{addr: freeAddr(t), exited: make(chan struct{})}
	s.cmd = exec.Command(binary, args...)
	s.cmd.Env = environ(append([]string{"KB_ADDR=" + s.addr, "KB_DATA_DIR=" + dir}, variables...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.signal(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the server said:\n%s\n%s", s.stdout.String(), s.stderr.String())
		}
		stopPostgres(t, dir)
	})
	return s
}

// signal sends a signal, waits for the end, and gives the exit code; -1 when the signal itself ended the process.
func (s *server) signal(signal syscall.Signal) int {
	_ = s.cmd.Process.Signal(signal)
	select {
	case <-s.exited:
	case <-time.After(time.Minute):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
	return s.cmd.ProcessState.ExitCode()
}

// ready waits until the server is healthy and gives the different answers of /health on the way.
func (s *server) ready(t *testing.T) (answers []string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		select {
		case <-s.exited:
			t.Fatalf("it ended with %d:\n%s", s.cmd.ProcessState.ExitCode(), s.stderr.String())
		default:
		}
		response, err := http.Get("http://" + s.addr + "/api/v1/health")
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(response.Body)
		_ = response.Body.Close()
		answer := fmt.Sprintf("%d %s", response.StatusCode, strings.TrimSpace(body.String()))
		if len(answers) == 0 || answers[len(answers)-1] != answer {
			answers = append(answers, answer)
		}
		if response.StatusCode == http.StatusOK {
			return answers
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("not ready after a minute:\n%s", s.stderr.String())
	return nil
}

// kb runs a command against the server.
func (s *server) kb(t *testing.T, args ...string) result {
	t.Helper()
	return execute(t, []string{"KB_URL=http://" + s.addr}, args...)
}

// get reads a JSON answer.
func (s *server) get(t *testing.T, path string, into any) {
	t.Helper()
	response, err := http.Get("http://" + s.addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s answered %d", path, response.StatusCode)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// text reads an answer as it is.
func (s *server) text(t *testing.T, path string) string {
	t.Helper()
	response, err := http.Get("http://" + s.addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s answered %d, %v: %s", path, response.StatusCode, err, body.String())
	}
	return body.String()
}

// postgresPID gives the database process of a data folder that is alive, 0 for none.
func postgresPID(dir string) int {
	content, err := os.ReadFile(filepath.Join(dir, "postgres", "cluster", "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// stopPostgres ends the database that a killed server has left in a test's folder.
func stopPostgres(t *testing.T, dir string) {
	t.Helper()
	pid := postgresPID(dir)
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGINT)
	for deadline := time.Now().Add(30 * time.Second); postgresPID(dir) == pid; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("the database %d does not stop", pid)
			return
		}
	}
}

// write puts files into a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// link puts a file into a folder without a copy of it.
func link(t *testing.T, file, path string) {
	t.Helper()
	if err := os.Symlink(file, path); err != nil {
		t.Fatal(err)
	}
}
