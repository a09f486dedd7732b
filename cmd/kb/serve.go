package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kb-search/kb"
	"github.com/kb-search/kb/api"
	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/job"
)

const readHeaderTimeout = 10 * time.Second

// serve listens at once and answers 503 until everything is ready. A signal, or a part that dies, stops all: no new
// requests, running ones drain, running jobs too, then model and database close.
func (a *app) serve(ctx context.Context, args []string) error {
	set := a.flags("serve", "[--no-worker]")
	noWorker := set.Bool("no-worker", false, "serve HTTP only; another process works on jobs")
	if rest, err := arguments(set, args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usageError("kb serve takes no %q: it is configured by its environment", rest[0])
	}
	logger := newLogger(a.stderr, a.config)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.config.Addr)
	if err != nil {
		return fmt.Errorf("listen (KB_ADDR names another address): %w", err)
	}
	gate := &api.Gate{}
	server := &http.Server{Handler: gate, ReadHeaderTimeout: readHeaderTimeout, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn)}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		drain := func() error { return a.drain(groupCtx, server) }
		return a.work(groupCtx, gate, listener.Addr(), drain, !*noWorker, logger)
	})
	return group.Wait()
}

// drain stops listening and lets running requests end.
func (a *app) drain(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), a.config.ShutdownTimeout, errors.New("running requests did not end in time"))
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("drain requests: %w", err), server.Close())
	}
	return nil
}

// work opens the parts, lets requests in, and holds everything up until ctx ends. The parts close after requests and jobs
// have drained.
func (a *app) work(ctx context.Context, gate *api.Gate, addr net.Addr, drain func() error, withWorker bool, logger *slog.Logger) (err error) {
	started := time.Now()
	drained := false
	defer func() {
		if !drained {
			err = errors.Join(err, drain())
		}
	}()
	p, err := open(ctx, a.config, a.stderr, logger)
	if err != nil {
		return quietCancel(ctx, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	p.openReranker(ctx, a.config, a.stderr, logger)
	jobs, err := job.NewInserter(p.pool)
	if err != nil {
		return err
	}
	ingester, err := p.ingester(a.config, logger)
	if err != nil {
		return err
	}
	if withWorker {
		stop, err := p.startWorker(ctx, a.config, ingester, logger)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	checker, err := tokens(ctx, a.config, logger)
	if err != nil {
		return err
	}
	handler := api.New(api.Options{
		Conn: p.pool, Bucket: p.bucket, Jobs: jobs, Searcher: p.searcher(a.config, logger),
		Memories: memory.NewWriter(p.pool, p.spaces, logger),
		Reviser:  worker.NewReviser(p.pool, p.bucket, ingester), CheckChunking: ingester.CheckChunking,
		FileTypes: job.Types{Images: a.config.DoclingURL != ""}, ConfiguredSpace: p.configured,
		Device: p.device, Database: a.databaseSource(), APIKey: a.config.APIKey.Reveal(), Tokens: checker, Origins: a.config.CORSOrigins, Knowledge: knowledge(a.config),
		MaxUploadBytes: a.config.MaxUploadBytes, SearchTimeout: a.config.SearchTimeout, LogQueries: a.config.SearchLogQueries, Logger: logger,
	})
	defer handler.Close()
	a.announce(addr, logger, time.Since(started))
	gate.Open(handler)
	<-ctx.Done()
	logger.InfoContext(ctx, "stopping")
	drained = true
	return drain()
}

// databaseSource says where the database comes from, as /status has it.
func (a *app) databaseSource() string {
	if a.config.DatabaseURL == "" {
		return "embedded"
	}
	return "external"
}

// announce says where the server is and how to use it.
func (a *app) announce(addr net.Addr, logger *slog.Logger, took time.Duration) {
	logger.Info("ready", slog.String("version", kb.Version()), slog.String("addr", addr.String()), slog.Duration("took", took))
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return
	}
	authorization := ""
	if a.config.JWTSecret != "" || a.config.JWKSURL != "" {
		authorization = ` -H "Authorization: Bearer $TOKEN"`
	}
	if a.config.APIKey != "" {
		authorization = ` -H "Authorization: Bearer $KB_API_KEY"`
	}
	if ip := net.ParseIP(host); authorization == "" && ip != nil && !ip.IsLoopback() {
		logger.Warn("requests are not authenticated and the server listens beyond this machine: set KB_API_KEY or KB_JWT_SECRET, or KB_ADDR to a loopback address", slog.String("loopback", "127.0.0.1:"+port))
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsLoopback() || ip.IsUnspecified() {
		host = "localhost"
	}
	_, _ = fmt.Fprintf(a.stdout, "kb listens on http://%[1]s\nTry it:\n"+
		"  curl -s http://%[1]s/api/v1/jobs%[2]s -F note='Change the oil every 10,000 km.' -F title='Oil'\n"+
		"  curl -s http://%[1]s/api/v1/search%[2]s -H 'Content-Type: application/json' -d '{\"query\": \"when to change oil\"}'\n",
		net.JoinHostPort(host, port), authorization)
}

// quietCancel makes a start that was interrupted by a signal no error.
func quietCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
