// Package postgres runs the embedded PostgreSQL: the server that kb brings along for whoever has none. It owns one data
// folder and one server process; what is stored in the database is not its business. Its invariant: a data folder has at
// most one owner, found by a file lock, and the server outlives a killed owner without harm.
package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	user     = "kb"
	database = "kb"
	// startTimeout bounds crash recovery, too.
	startTimeout = 5 * time.Minute
	stopTimeout  = time.Minute
	// launchAttempts is how often a server that ends at once is started again.
	launchAttempts = 10
)

// Codes of PostgreSQL's errors.
const (
	invalidAuthorization = "28"
	duplicateDatabase    = "42P04"
	uniqueViolation      = "23505"
)

// pidFile is where a server says which process it is, in its cluster folder.
const pidFile = "postmaster.pid"

// errEnded is a server that ended before it answered.
var errEnded = errors.New("the server ended")

// Options says where the server lives.
type Options struct {
	// CacheDir is kb's cache folder: the pg0 binary, which carries the server's files, is at Pg0Path in it, and they are
	// unpacked beside it, once for all data folders.
	CacheDir string
	// DataDir holds the database, its password and its log.
	DataDir string
	// Settings are further server settings, such as "fsync": "off" for tests.
	Settings map[string]string
	Logger   *slog.Logger
}

// Pg0Path is the place of the pg0 binary in the cache folder.
const Pg0Path = "pg0-0.15.2/pg0"

// installation is the place of the unpacked server in the cache folder.
const installation = "postgres-18.1.0"

func (o Options) installDir() string { return filepath.Join(o.CacheDir, installation) }

// Server is a running server. Its owner stops it; a process that found it running as another one's only uses it.
type Server struct {
	url     string
	cluster string
	pid     int
	exited  chan struct{}
	lock    *os.File
	logger  *slog.Logger
}

// URL is the connection string, password included.
func (s *Server) URL() string { return s.url }

// Owner says whether Stop will end the server.
func (s *Server) Owner() bool { return s.lock != nil }

// Start gives a server that answers on the loopback interface. It starts one, takes over one that a killed owner left
// behind, or, while another process owns the folder, uses that one's.
func Start(ctx context.Context, opts Options) (*Server, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("the embedded PostgreSQL did not come up within "+startTimeout.String()))
	defer cancel()
	if err := os.MkdirAll(opts.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the database folder: %w", err)
	}
	s := &Server{cluster: filepath.Join(opts.DataDir, "cluster"), logger: opts.Logger}
	if err := s.start(ctx, opts); err != nil {
		err = errors.Join(fmt.Errorf("start the embedded PostgreSQL in %s (its log is postgres.log there): %w", opts.DataDir, err), s.Stop(ctx))
		return nil, err
	}
	return s, nil
}

// start owns the folder, or joins its owner; an owner that goes away before its server is there leaves the folder to the
// next one.
func (s *Server) start(ctx context.Context, opts Options) error {
	for {
		lock, err := tryLock(filepath.Join(opts.DataDir, "lock"))
		if err != nil {
			return err
		}
		if lock != nil {
			s.lock = lock
			return s.own(ctx, opts)
		}
		if p, ok := readPostmaster(s.cluster); ok && p.ready && serves(p.pid, s.cluster) {
			if err := s.connect(ctx, opts.DataDir, p); !errors.Is(err, errEnded) {
				return err
			}
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// own starts the server, or takes over the one that a killed owner left: running, or on its way up or down.
func (s *Server) own(ctx context.Context, opts Options) error {
	p, found := readPostmaster(s.cluster)
	for ; found && serves(p.pid, s.cluster); p, found = readPostmaster(s.cluster) {
		if p.ready {
			s.pid = p.pid
			opts.Logger.InfoContext(ctx, "taking over the running database", slog.Int("pid", p.pid))
			if err := s.connect(ctx, opts.DataDir, p); !errors.Is(err, errEnded) {
				return err
			}
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	if found {
		// A server that was killed could not take its pid file away. PostgreSQL does so itself, but not when some other
		// process has that pid by now, which in a container is likely.
		if err := os.Remove(filepath.Join(s.cluster, pidFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take the pid file of a killed server away: %w", err)
		}
	}
	if err := unpack(ctx, filepath.Join(opts.CacheDir, Pg0Path), opts.installDir()); err != nil {
		return err
	}
	if err := initCluster(ctx, opts, s.cluster); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		port, err := freePort(ctx)
		if err != nil {
			return err
		}
		if err := s.launch(opts, port); err != nil {
			return err
		}
		err = s.connect(ctx, opts.DataDir, postmaster{pid: s.pid, port: port})
		if !errors.Is(err, errEnded) || attempt == launchAttempts {
			return err
		}
		// Another process can have taken the port meanwhile, and helpers of a killed server take a moment to notice.
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// initCluster makes the database files with a random password, once. It works beside the final place, so that an
// interrupted run leaves nothing half made.
func initCluster(ctx context.Context, opts Options, cluster string) error {
	if _, err := os.Stat(filepath.Join(cluster, "PG_VERSION")); err == nil {
		return nil
	}
	secret := make([]byte, 24)
	_, _ = rand.Read(secret)
	password := filepath.Join(opts.DataDir, "password")
	if err := os.WriteFile(password, []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the password: %w", err)
	}
	fresh := cluster + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear the database folder: %w", err)
	}
	init := command(ctx, opts.installDir(), "initdb", "--pgdata="+fresh, "--username="+user, "--pwfile="+password,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions")
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLine(out))
	}
	if err := os.Rename(fresh, cluster); err != nil {
		return fmt.Errorf("put the database folder in place: %w", err)
	}
	return nil
}

// launch starts the server process in a process group of its own, so that a Ctrl-C at the terminal reaches kb alone.
func (s *Server) launch(opts Options, port int) error {
	log, err := os.OpenFile(filepath.Join(opts.DataDir, "postgres.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	settings := map[string]string{
		"port": strconv.Itoa(port), "listen_addresses": "127.0.0.1", "unix_socket_directories": "",
		"shared_buffers": "256MB", "maintenance_work_mem": "256MB", "work_mem": "32MB", "max_wal_size": "2GB",
		"max_connections": "200",
	}
	for name, value := range opts.Settings {
		settings[name] = value
	}
	args := []string{"-D", s.cluster}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	server := command(context.Background(), opts.installDir(), "postgres", args...)
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		return fmt.Errorf("run postgres: %w", err)
	}
	s.pid = server.Process.Pid
	s.exited = make(chan struct{})
	go func() {
		defer close(s.exited)
		_ = server.Wait()
	}()
	return nil
}

// connect waits until the server answers, makes the database when it is missing, and sets the URL. A server that ends
// before is errEnded.
func (s *Server) connect(ctx context.Context, dataDir string, p postmaster) error {
	password, err := os.ReadFile(filepath.Join(dataDir, "password"))
	if err != nil {
		return fmt.Errorf("read the password: %w", err)
	}
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, strings.TrimSpace(string(password))),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)), Path: "/postgres", RawQuery: "sslmode=disable",
	}
	for {
		conn, err := pgx.Connect(ctx, address.String())
		if err == nil {
			err = createDatabase(ctx, conn)
			_ = conn.Close(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			address.Path = "/" + database
			s.url = address.String()
			return nil
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) && strings.HasPrefix(refused.Code, invalidAuthorization) {
			return fmt.Errorf("the file password does not hold the password of this database: %w", err)
		}
		if s.ended(p.pid) {
			s.pid = 0
			return errEnded
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func createDatabase(ctx context.Context, conn *pgx.Conn) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database).Scan(&exists); err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if exists {
		return nil
	}
	_, err := conn.Exec(ctx, "CREATE DATABASE "+database)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code == duplicateDatabase || refused.Code == uniqueViolation) {
		return nil // a process that joined was quicker
	}
	if err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}

// Stop ends the server when this process owns it, and waits for it: open transactions are rolled back, nothing is lost.
func (s *Server) Stop(ctx context.Context) error {
	if !s.Owner() {
		return nil
	}
	defer func() {
		_ = s.lock.Close()
		s.lock = nil
	}()
	if s.pid == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), stopTimeout, errors.New("the embedded PostgreSQL did not stop within "+stopTimeout.String()))
	defer cancel()
	if err := syscall.Kill(s.pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the embedded PostgreSQL: %w", err)
	}
	for !s.ended(s.pid) {
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ended says whether a server is gone. One that was taken over or joined is no child of this process: its pid is then
// nobody's, or another program's.
func (s *Server) ended(pid int) bool {
	select {
	case <-s.exited:
		return true
	default:
		return s.exited == nil && !serves(pid, s.cluster)
	}
}

// postmaster is what a server says of itself in its pid file.
type postmaster struct {
	pid, port int
	ready     bool
}

func readPostmaster(cluster string) (p postmaster, found bool) {
	data, err := os.ReadFile(filepath.Join(cluster, pidFile))
	if err != nil {
		return postmaster{}, false
	}
	// Lines: pid, data folder, start time, port, socket folder, listen address, shared memory, status.
	lines := strings.Split(string(data), "\n")
	if p.pid, err = strconv.Atoi(strings.TrimSpace(lines[0])); err != nil {
		return postmaster{}, true
	}
	if len(lines) >= 8 {
		p.port, err = strconv.Atoi(strings.TrimSpace(lines[3]))
		p.ready = err == nil && strings.HasPrefix(lines[7], "ready")
	}
	return p, true
}

func freePort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

// tryLock gives the locked file, or nil when another process holds it. The lock ends with the process.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// command runs one of the server's programs as a user that PostgreSQL accepts, with its own libraries.
func command(ctx context.Context, installDir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(installDir, "bin", name), args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(installDir, "lib"))
	cmd.SysProcAttr = processAttributes()
	return cmd
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
