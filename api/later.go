package api

import (
	"context"
	"log/slog"
	"sync"
	"time"
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
	if l.planned {
		return
	}
	l.planned = true
	ctx = context.WithoutCancel(ctx)
	l.waiting.Go(func() {
		select {
		case <-time.After(l.delay):
		case <-l.closed:
		}
		if err := l.flush(ctx); err != nil {
			l.logger.WarnContext(ctx, "not written down yet", slog.Any("error", err))
		}
	})
}

// flush writes down what was collected. What can't be written is kept for the next flush.
func (l *later[T]) flush(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	items := l.items
	l.items, l.planned = nil, false
	l.mu.Unlock()
	if len(items) == 0 {
		return nil
	}
	err := l.write(ctx, items)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.items = append(items, l.items...)
	}
	return err
}
