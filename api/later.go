package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/kb-search/kb/db"
)

// later collects what is written down a little later, many at once: requests do not wait for a write, nor for each other. A
// server that is killed loses what it has collected.
type later[T any] struct {
	delay time.Duration
	write func(ctx context.Context, items []T) error
	// closed ends the delay.
	closed <-chan struct{}
	logger *slog.Logger

	// writing is held while items are on their way: a flush that finds none waits for the one before it.
	writing sync.Mutex
	mu      sync.Mutex
	items   []T
	planned bool
	waiting sync.WaitGroup
}

// maxLater is how much is kept while the database does not take it; what comes after is lost.
const maxLater = 100_000

func (l *later[T]) add(ctx context.Context, item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) < maxLater {
		l.items = append(l.items, item)
	}
	if !l.planned {
		l.planned = true
		ctx = context.WithoutCancel(ctx)
		l.waiting.Go(func() { l.run(ctx) })
	}
}

// run flushes until nothing is left, or the server closes.
func (l *later[T]) run(ctx context.Context) {
	for open := true; open; {
		select {
		case <-time.After(l.delay):
		case <-l.closed:
			open = false
		}
		l.flush(ctx)
		l.mu.Lock()
		if len(l.items) == 0 {
			l.planned, open = false, false
		}
		l.mu.Unlock()
	}
}

// flush writes down what was collected. What can't be written now is kept for the next flush; what never can is lost.
func (l *later[T]) flush(ctx context.Context) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	items := l.items
	l.items = nil
	l.mu.Unlock()
	if len(items) == 0 {
		return
	}
	switch err := l.write(ctx, items); {
	case err == nil:
	case db.Kind(err) == db.KindInvalid:
		l.logger.ErrorContext(ctx, "lost: the database refuses it", slog.Int("items", len(items)), slog.Any("error", err))
	default:
		l.logger.WarnContext(ctx, "not written down yet", slog.Any("error", err))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.items = append(items, l.items...)
	}
}

// close writes down what is left. Nothing may be added after it.
func (l *later[T]) close() { l.waiting.Wait() }
