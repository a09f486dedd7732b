package api

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestLater(t *testing.T) {
	t.Parallel()
	start := func(fail func(n int) error) (l *later[int], written func() []int, stop func()) {
		closed := make(chan struct{})
		var mu sync.Mutex
		var all []int
		calls := 0
		l = &later[int]{delay: time.Second, closed: closed, logger: slog.New(slog.DiscardHandler), write: func(_ context.Context, items []int) error {
			mu.Lock()
			defer mu.Unlock()
			calls++
			if err := fail(calls); err != nil {
				return err
			}
			all = append(all, items...)
			return nil
		}}
		written = func() []int {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(all)
		}
		return l, written, func() { close(closed); l.close() }
	}
	never := func(int) error { return nil }
	once := func(n int) error {
		if n == 1 {
			return errors.New("the database is away")
		}
		return nil
	}

	t.Run("ManyAtOnceAfterTheDelay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, written, stop := start(never)
			for i := range 3 {
				l.add(t.Context(), i)
			}
			synctest.Wait()
			if len(written()) != 0 {
				t.Error("written at once")
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if !slices.Equal(written(), []int{0, 1, 2}) {
				t.Errorf("%v", written())
			}
			stop()
		})
	})
	t.Run("CloseWritesWhatIsLeft", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, written, stop := start(never)
			l.add(t.Context(), 1)
			stop()
			if !slices.Equal(written(), []int{1}) {
				t.Errorf("%v", written())
			}
		})
	})
	t.Run("WhatFailedIsTriedAgainWithoutAnotherSearch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, written, stop := start(once)
			l.add(t.Context(), 1)
			time.Sleep(1500 * time.Millisecond)
			l.add(t.Context(), 2)
			time.Sleep(time.Second)
			synctest.Wait()
			if !slices.Equal(written(), []int{1, 2}) {
				t.Errorf("%v", written())
			}
			stop()
		})
	})
	t.Run("WhatTheDatabaseRefusesDoesNotBlockTheRest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, written, stop := start(func(n int) error {
				if n == 1 {
					return &pgconn.PgError{Code: "22P05"}
				}
				return nil
			})
			l.add(t.Context(), 1)
			l.flush(t.Context())
			l.add(t.Context(), 2)
			stop()
			if !slices.Equal(written(), []int{2}) {
				t.Errorf("%v", written())
			}
		})
	})
}
