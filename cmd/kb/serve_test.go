package main

import (
	"net"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kb-search/kb"
	"github.com/kb-search/kb/db/dbtest"
)

// TestServeEmbedded goes through the life of a server that has nothing but an empty data folder.
func TestServeEmbedded(t *testing.T) {
	t.Parallel()

	dir, docs := t.TempDir(), t.TempDir()
	write(t, docs, map[string]string{"oil.md": "# Engine oil\n\nChange the oil every 10,000 km.\n"})

	first := serve(t, dir)
	answers := first.ready(t)
	want := []string{`503 {"status":"starting"}`, `200 {"status":"healthy"}`}
	if len(answers) != 2 || answers[0] != want[0] || answers[1] != want[1] {
		t.Errorf("health answered %q, want %q", answers, want)
	}
	for _, part := range []string{"kb listens on http://localhost:", "curl -s http://localhost:", "/api/v1/search"} {
		// What a process prints comes through a pipe, a moment later.
		for deadline := time.Now().Add(time.Minute); !strings.Contains(first.stdout.String(), part); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q is not in what it printed:\n%s", part, first.stdout.String())
			}
		}
	}
	var status struct {
		Version string `json:"version"`
	}
	first.get(t, "/api/v1/status", &status)
	if status.Version != kb.Version() {
		t.Errorf("status has version %q", status.Version)
	}
	first.kb(t, "health").want(t, 0, "healthy")
	first.kb(t, "ingest", docs).want(t, 0, "1 stored (1 chunks), 0 skipped as duplicates, 0 failed")

	if code := first.signal(syscall.SIGKILL); code != -1 {
		t.Errorf("kill -9 gave %d", code)
	}
	if postgresPID(dir) == 0 {
		t.Error("the database did not outlive its owner")
	}
	first.kb(t, "health").want(t, 1, "reach the server (KB_URL names another one)")

	second := serve(t, dir)
	second.ready(t)
	second.kb(t, "search", "change", "oil").want(t, 0, "strict_hit", "Engine oil")
	second.kb(t, "ingest", docs).want(t, 0, "0 stored (0 chunks), 1 skipped as duplicates, 0 failed")

	if code := second.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM ended it with %d", code)
	}
	if pid := postgresPID(dir); pid != 0 {
		t.Errorf("the database %d is still there", pid)
	}
	for _, line := range []string{"stopping", "ready"} {
		if !strings.Contains(second.stderr.String(), line) {
			t.Errorf("%q is not in the log", line)
		}
	}
}

func TestServeInterruptedAtStart(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	s := serve(t, dir)
	for postgresPID(dir) == 0 {
		select {
		case <-s.exited:
			t.Fatal("it ended on its own")
		default:
		}
	}
	if code := s.signal(syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM during the start ended it with %d:\n%s", code, s.stderr.String())
	}
	if pid := postgresPID(dir); pid != 0 {
		t.Errorf("the database %d is still there", pid)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()

	t.Run("TwoOnOneEmptyDatabaseComeUp", func(t *testing.T) {
		t.Parallel()

		database := "KB_DATABASE_URL=" + dbtest.EmptyDatabase(t)
		dir := t.TempDir()
		servers := []*server{serve(t, dir, database), serve(t, dir, database)}
		for _, s := range servers {
			s.ready(t)
		}
		docs := t.TempDir()
		write(t, docs, map[string]string{"pump.txt": "The pump leaks at the seal.\n"})
		servers[0].kb(t, "ingest", docs).want(t, 0, "1 stored")
		servers[1].kb(t, "search", "pump").want(t, 0, "strict_hit", "pump")
		for _, s := range servers {
			if code := s.signal(syscall.SIGTERM); code != 0 {
				t.Errorf("SIGTERM ended it with %d", code)
			}
		}
	})

	t.Run("AddressInUseIsSaid", func(t *testing.T) {
		t.Parallel()

		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = listener.Close() }()
		execute(t, []string{"KB_ADDR=" + listener.Addr().String(), "KB_DATA_DIR=" + t.TempDir()}, "serve").
			want(t, 1, "listen (KB_ADDR names another address)", "address already in use")
	})

	t.Run("UnreachableDatabaseEndsIt", func(t *testing.T) {
		t.Parallel()

		execute(t, []string{"KB_ADDR=" + freeAddr(t), "KB_DATA_DIR=" + t.TempDir(), "KB_DATABASE_URL=postgres://kb:tell-nobody@127.0.0.1:1/kb"}, "serve").
			want(t, 1, "reach the database")
	})

	t.Run("MissingPg0SaysMakeSetup", func(t *testing.T) {
		t.Parallel()

		execute(t, []string{"KB_ADDR=" + freeAddr(t), "KB_DATA_DIR=" + t.TempDir(), "KB_CACHE_DIR=" + t.TempDir()}, "serve").
			want(t, 1, "run make setup")
	})

	t.Run("KeyIsAskedForAndSent", func(t *testing.T) {
		t.Parallel()

		s := serve(t, t.TempDir(), "KB_DATABASE_URL="+dbtest.URL(t), "KB_API_KEY=tell-nobody")
		s.ready(t)
		s.kb(t, "health").want(t, 0, "healthy")
		s.kb(t, "search", "oil").want(t, 1, "bearer token")
		execute(t, []string{"KB_URL=http://" + s.addr, "KB_API_KEY=tell-nobody"}, "search", "oil").want(t, 0, "no_hit")
		if !strings.Contains(s.stdout.String(), `-H "Authorization: Bearer $KB_API_KEY"`) {
			t.Errorf("the printed curl sends no key:\n%s", s.stdout.String())
		}
		if strings.Contains(s.stdout.String()+s.stderr.String(), "tell-nobody") {
			t.Error("the key is shown")
		}
	})

	t.Run("ReadmeRunsAsPrinted", func(t *testing.T) {
		t.Parallel()

		address := dbtest.URL(t)
		s := serve(t, t.TempDir(), "KB_DATABASE_URL="+address)
		s.ready(t)
		blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(readRoot(t, "README.md"), -1)
		if len(blocks) < 2 {
			t.Fatalf("%d blocks of commands", len(blocks))
		}
		for _, block := range blocks {
			script := strings.ReplaceAll(block[1], "localhost:8080", s.addr)
			script = strings.ReplaceAll(script, "bin/kb ", binary+" ")
			cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
			cmd.Dir = root
			cmd.Env = environ("KB_URL=http://" + s.addr)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), `"error":"`) {
				t.Errorf("%v\n%s\n%s", err, script, out)
			}
			if strings.Contains(script, "DELETE") && (!strings.Contains(string(out), `"deleted":true`) || !strings.Contains(string(out), `"status":"strict_hit"`)) {
				t.Errorf("not found, or not deleted:\n%s", out)
			}
		}
	})

	t.Run("JobsOfAServerWithoutWorkerWaitForOne", func(t *testing.T) {
		t.Parallel()

		dir, address := t.TempDir(), dbtest.URL(t)
		s := launch(t, dir, []string{"serve", "--no-worker"}, "KB_DATABASE_URL="+address)
		s.ready(t)
		upload := exec.CommandContext(t.Context(), "curl", "-s", "http://"+s.addr+"/api/v1/jobs", "-F", "note=wait for it")
		if out, err := upload.CombinedOutput(); err != nil || !strings.Contains(string(out), "queued") {
			t.Fatalf("%v %s", err, out)
		}
		type job struct {
			Status string `json:"status"`
		}
		var jobs []job
		time.Sleep(time.Second) // a worker, if there were one, would take the job up at once
		if s.get(t, "/api/v1/jobs", &jobs); len(jobs) != 1 || jobs[0].Status != "queued" {
			t.Fatalf("got %+v", jobs)
		}
		w := launch(t, dir, []string{"worker"}, "KB_DATABASE_URL="+address)
		for deadline := time.Now().Add(30 * time.Second); jobs[0].Status != "done"; time.Sleep(20 * time.Millisecond) {
			if s.get(t, "/api/v1/jobs", &jobs); time.Now().After(deadline) {
				t.Fatalf("got %+v", jobs)
			}
		}
		if code := w.signal(syscall.SIGTERM); code != 0 {
			t.Errorf("SIGTERM ended the worker with %d", code)
		}
	})
}

func TestAnnounce(t *testing.T) {
	t.Parallel()

	for name, row := range map[string]struct{ addr, want string }{
		"AnyAddressIsLocalhost": {"[::]:8080", "http://localhost:8080\n"},
		"LoopbackIsLocalhost":   {"127.0.0.1:1", "http://localhost:1\n"},
		"OneAddressIsItself":    {"192.0.2.1:80", "http://192.0.2.1:80\n"},
		"OneIPv6AddressTooIs":   {"[2001:db8::1]:80", "http://[2001:db8::1]:80\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			addr, err := net.ResolveTCPAddr("tcp", row.addr)
			if err != nil {
				t.Fatal(err)
			}
			var stdout, stderr buffer
			a := &app{stdout: &stdout, stderr: &stderr}
			a.announce(addr, newLogger(&stderr, Config{}), 0)
			if !strings.Contains(stdout.String(), row.want) {
				t.Errorf("%q is not in:\n%s", row.want, stdout.String())
			}
			warned := strings.Contains(stderr.String(), "not authenticated")
			if loopback := strings.HasPrefix(row.addr, "127."); warned == loopback {
				t.Errorf("warned %t", warned)
			}
		})
	}
}
