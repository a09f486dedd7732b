package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestStart(t *testing.T) {
	t.Parallel()

	t.Run("AnswersOnLoopbackOnly", func(t *testing.T) {
		t.Parallel()

		server := start(t, t.TempDir())
		if !server.Owner() {
			t.Error("not the owner")
		}
		if got := query(t, server.URL(), "SELECT current_database() || ' ' || current_user"); got != "kb kb" {
			t.Errorf("connected as %s", got)
		}
		if got := query(t, server.URL(), "SHOW listen_addresses"); got != "127.0.0.1" {
			t.Errorf("it listens on %s", got)
		}
		if got := query(t, server.URL(), "SHOW unix_socket_directories"); got != "" {
			t.Errorf("it has a socket in %s", got)
		}
		if got := query(t, server.URL(), "SHOW fsync"); got != "on" {
			t.Errorf("fsync is %s", got)
		}
		parsed, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range otherAddresses(t) {
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, parsed.Port()), time.Second)
			if err == nil {
				_ = conn.Close()
				t.Errorf("it answers on %s", address)
			}
		}
	})

	t.Run("PasswordIsRandomKeptAndAsked", func(t *testing.T) {
		t.Parallel()

		dirs := []string{t.TempDir(), t.TempDir()}
		var passwords []string
		for _, dir := range dirs {
			server := start(t, dir)
			content, err := os.ReadFile(filepath.Join(dir, "password"))
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(dir, "password"))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("the password's mode is %o", info.Mode().Perm())
			}
			parsed, err := url.Parse(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			password, _ := parsed.User.Password()
			if password != strings.TrimSpace(string(content)) || len(password) != 48 {
				t.Errorf("the URL has another password than the file, or a short one of %d characters", len(password))
			}
			passwords = append(passwords, password)
			parsed.User = url.UserPassword(user, "guess")
			conn, err := pgx.Connect(t.Context(), parsed.String())
			if err == nil {
				_ = conn.Close(t.Context())
				t.Error("it takes any password")
			}
		}
		if passwords[0] == passwords[1] {
			t.Error("two folders have the same password")
		}
	})

	t.Run("DataSurvivesStopAndStart", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		server := start(t, dir)
		keep(t, server.URL())
		stop(t, server)
		if alive(dir) {
			t.Fatal("the server outlived Stop")
		}
		if _, err := os.Stat(filepath.Join(dir, "cluster", pidFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it did not shut down in order: %v", err)
		}
		checkKept(t, start(t, dir).URL())
	})

	t.Run("StopEndsOpenConnections", func(t *testing.T) {
		t.Parallel()

		server := start(t, dataDir(t))
		conn, err := pgx.Connect(t.Context(), server.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		stop(t, server)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		stop(t, server) // a second Stop does nothing
	})

	t.Run("SecondStartJoins", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		owner := start(t, dir)
		keep(t, owner.URL())
		guest := start(t, dir)
		other := startHelper(t, dir)
		if guest.Owner() || other.owner {
			t.Error("the folder has two owners")
		}
		checkKept(t, guest.URL())
		checkKept(t, other.url)
		stop(t, guest)
		if err := other.stop(); err != nil {
			t.Error(err)
		}
		checkKept(t, owner.URL())
	})

	t.Run("ManyAtOnceHaveOneOwner", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		const processes = 5
		servers := make(chan *Server, processes)
		for range processes {
			go func() {
				server, err := Start(t.Context(), options(dir))
				if err != nil {
					t.Error(err)
				}
				servers <- server
			}()
		}
		var owners, pids []string
		var started []*Server
		for range processes {
			server := <-servers
			if server == nil {
				continue
			}
			started = append(started, server)
			if server.Owner() {
				owners = append(owners, server.URL())
			}
			pids = append(pids, query(t, server.URL(), "SELECT pg_postmaster_start_time()::text"))
		}
		if len(owners) != 1 {
			t.Errorf("%d owners", len(owners))
		}
		if len(slices.Compact(pids)) != 1 {
			t.Errorf("more than one server: %v", pids)
		}
		for _, server := range started {
			stop(t, server)
		}
	})

	t.Run("KilledOwnerLeavesAServerToTakeOver", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		other := startHelper(t, dir)
		if !other.owner {
			t.Fatal("the other process does not own a new folder")
		}
		keep(t, other.url)
		pid := serverPID(dir)
		other.kill(t)
		if !alive(dir) {
			t.Fatal("the server did not outlive its owner")
		}
		server := start(t, dir)
		if !server.Owner() || serverPID(dir) != pid {
			t.Errorf("owner %t, server %d, before %d", server.Owner(), serverPID(dir), pid)
		}
		checkKept(t, server.URL())
		guest := start(t, dir)
		if guest.Owner() {
			t.Error("two owners after the first was killed")
		}
		stop(t, server)
		if serves(pid, filepath.Join(dir, "cluster")) {
			t.Error("the server taken over outlived Stop")
		}
	})

	t.Run("OwnerKilledWhileItsServerStopsIsFollowed", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		other := startHelper(t, dir)
		keep(t, other.url)
		pid := serverPID(dir)
		other.kill(t)
		if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		checkKept(t, start(t, dir).URL())
	})

	t.Run("KilledServerRecovers", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		server := start(t, dir)
		keep(t, server.URL())
		if err := syscall.Kill(serverPID(dir), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		stop(t, server)
		checkKept(t, start(t, dir).URL())
	})

	t.Run("KilledServerAndOwnerRecover", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		other := startHelper(t, dir)
		keep(t, other.url)
		pid := serverPID(dir)
		other.kill(t)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		checkKept(t, start(t, dir).URL())
	})

	t.Run("PidThatIsAnotherProgramsByNowIsNoServer", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		server := start(t, dir)
		keep(t, server.URL())
		stop(t, server)
		left := fmt.Sprintf("%d\n%s\n1\n%d\n\n127.0.0.1\n1 1\nready\n", os.Getpid(), filepath.Join(dir, "cluster"), 1)
		if err := os.WriteFile(filepath.Join(dir, "cluster", pidFile), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		again := start(t, dir)
		if !again.Owner() {
			t.Error("not the owner")
		}
		checkKept(t, again.URL())
	})

	t.Run("ServerOfAnotherFolderIsNotTakenOver", func(t *testing.T) {
		t.Parallel()

		foreign, dir := dataDir(t), dataDir(t)
		start(t, foreign)
		stop(t, start(t, dir))
		content, err := os.ReadFile(filepath.Join(foreign, "cluster", pidFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cluster", pidFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, dir)
		if serverPID(dir) == serverPID(foreign) {
			t.Error("it took the other folder's server over")
		}
	})

	t.Run("InterruptedInitLeavesNothingHalfMade", func(t *testing.T) {
		t.Parallel()

		dir := t.TempDir()
		dataDir(t) // the server's files are unpacked, so that the time below goes to initdb
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				if _, err := os.Stat(filepath.Join(dir, "cluster.new", "base")); err == nil {
					cancel()
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if _, err := Start(ctx, options(dir)); err == nil {
			t.Fatal("no error from an interrupted start")
		}
		if _, err := os.Stat(filepath.Join(dir, "cluster")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a database stands there: %v", err)
		}
		server := start(t, dir)
		keep(t, server.URL())
		checkKept(t, server.URL())
		if _, err := os.Stat(filepath.Join(dir, "cluster.new")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the half made one is still there: %v", err)
		}
	})

	t.Run("InterruptedStartLeavesNoServer", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				if serverPID(dir) != 0 {
					cancel()
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if server, err := Start(ctx, options(dir)); err == nil {
			t.Log("the server was quicker than the signal")
			stop(t, server)
		}
		if alive(dir) {
			t.Error("a server is left behind")
		}
	})

	t.Run("MissingPg0SaysWhatToDo", func(t *testing.T) {
		t.Parallel()

		opts := options(t.TempDir())
		opts.CacheDir = t.TempDir()
		_, err := Start(t.Context(), opts)
		if err == nil || !strings.Contains(err.Error(), "run make setup") || !strings.Contains(err.Error(), "KB_DATABASE_URL") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("WrongPasswordIsSaidAtOnce", func(t *testing.T) {
		t.Parallel()

		dir := dataDir(t)
		if err := os.WriteFile(filepath.Join(dir, "password"), []byte("other\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := Start(t.Context(), options(dir))
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the file password") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
		if alive(dir) {
			t.Error("a server is left behind")
		}
	})

	t.Run("SettingThatTheServerRefusesIsAnError", func(t *testing.T) {
		t.Parallel()

		opts := options(dataDir(t))
		opts.Settings = map[string]string{"shared_buffers": "plenty"}
		_, err := Start(t.Context(), opts)
		if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "postgres.log") {
			t.Errorf("got %v", err)
		}
	})
}

// otherAddresses gives this machine's addresses besides 127.0.0.1.
func otherAddresses(t *testing.T) []string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"127.0.0.2"}
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if ok && network.IP.String() != "127.0.0.1" && network.IP.To4() != nil {
			others = append(others, network.IP.String())
		}
	}
	return others
}

func TestReadPostmaster(t *testing.T) {
	t.Parallel()

	for name, row := range map[string]struct {
		content string
		want    postmaster
		found   bool
	}{
		"ReadyServer":    {"12\n/d\n1\n5432\n\n127.0.0.1\n1 1\nready   \n", postmaster{pid: 12, port: 5432, ready: true}, true},
		"StartingServer": {"12\n/d\n1\n5432\n\n127.0.0.1\n1 1\nstarting\n", postmaster{pid: 12, port: 5432}, true},
		"HalfWritten":    {"12\n/d\n", postmaster{pid: 12}, true},
		"Empty":          {"", postmaster{}, true},
		"Missing":        {"-", postmaster{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			dir := t.TempDir()
			if row.content != "-" {
				if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(row.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, found := readPostmaster(dir); got != row.want || found != row.found {
				t.Errorf("got %+v, %t", got, found)
			}
		})
	}

	t.Run("NoProcessServes", func(t *testing.T) {
		t.Parallel()

		for _, pid := range []int{0, -1, os.Getpid()} {
			if serves(pid, t.TempDir()) {
				t.Errorf("%s serves", strconv.Itoa(pid))
			}
		}
	})
}
