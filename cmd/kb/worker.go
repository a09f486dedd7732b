package main

import (
	"context"
	"errors"
	"log/slog"
)

// worker works on jobs without serving HTTP, until a signal comes; the running job is finished first.
func (a *app) worker(ctx context.Context, args []string) (err error) {
	if rest, err := arguments(a.flags("worker", ""), args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usageError("kb worker takes no %q: it is configured by its environment", rest[0])
	}
	logger := newLogger(a.stderr, a.config)
	p, err := open(ctx, a.config, a.stderr, logger)
	if err != nil {
		return quietCancel(ctx, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ingester, err := p.ingester(a.config, logger)
	if err != nil {
		return err
	}
	stop, err := p.startWorker(ctx, a.config, ingester, logger)
	if err != nil {
		return err
	}
	logger.InfoContext(ctx, "ready to work", slog.Int("workers", a.config.Workers))
	<-ctx.Done()
	logger.InfoContext(ctx, "stopping")
	return stop()
}
