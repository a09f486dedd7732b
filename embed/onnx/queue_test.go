package onnx

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kb-search/kb/embed"
)

// recorder stands for a model whose score of a pair is its length. It keeps the lengths of each batch.
type recorder struct {
	took time.Duration
	fail func([]*pair) error

	mutex   sync.Mutex
	batches [][]int
}

func (r *recorder) run(pairs []*pair) error {
	var lengths []int
	for _, p := range pairs {
		lengths = append(lengths, len(p.ids))
		p.score = float64(len(p.ids))
	}
	r.mutex.Lock()
	r.batches = append(r.batches, lengths)
	r.mutex.Unlock()
	time.Sleep(r.took)
	if r.fail != nil {
		return r.fail(pairs)
	}
	return nil
}

func pairsOf(lengths ...int) []*pair {
	pairs := make([]*pair, len(lengths))
	for i, n := range lengths {
		pairs[i] = &pair{ids: make([]int64, n)}
	}
	return pairs
}

func TestQueueBatches(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		parallel int
		lengths  []int
		want     [][]int // in any order when they run side by side
	}{
		"LongestFirst":            {1, []int{10, 30, 20}, [][]int{{30, 20, 10}}},
		"EightAtMost":             {1, []int{9, 8, 7, 6, 5, 4, 3, 2, 1}, [][]int{{9, 8, 7, 6, 5, 4, 3, 2}, {1}}},
		"TwoThousandTokensAtMost": {1, []int{500, 500, 500, 400, 400, 1}, [][]int{{500, 500, 500, 400}, {400, 1}}},
		"ALongPairRunsAlone":      {1, []int{5000, 5000}, [][]int{{5000}, {5000}}},
		"TwoRunnersShareAFew":     {2, []int{6, 5, 4, 3}, [][]int{{6, 5}, {4}, {3}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{took: time.Second}
				q := &queue{run: r.run, limit: 100, parallel: test.parallel}
				pairs := pairsOf(test.lengths...)
				if err := q.score(t.Context(), pairs); err != nil {
					t.Fatal(err)
				}
				for i, p := range pairs {
					if p.score != float64(test.lengths[i]) {
						t.Errorf("pair %d has the score %v", i, p.score)
					}
				}
				q.close()
				slices.SortFunc(r.batches, func(a, b []int) int { return b[0] - a[0] })
				if !slices.EqualFunc(r.batches, test.want, slices.Equal[[]int]) {
					t.Errorf("got %v, want %v", r.batches, test.want)
				}
			})
		})
	}
}

func TestQueueRunsOnePairAtATimeWhereItMust(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{took: time.Second}
		q := &queue{run: r.run, limit: 100, parallel: 1, rows: 1}
		if err := q.score(t.Context(), pairsOf(10, 30, 20)); err != nil {
			t.Fatal(err)
		}
		if want := [][]int{{30}, {20}, {10}}; !slices.EqualFunc(r.batches, want, slices.Equal[[]int]) {
			t.Errorf("got %v, want %v", r.batches, want)
		}
		q.close()
	})
}

func TestQueueSharesBatchesAmongRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{took: time.Second}
		q := &queue{run: r.run, limit: 100, parallel: 1}
		var calls sync.WaitGroup
		for _, lengths := range [][]int{{99}, {10, 50}, {11, 52}} {
			calls.Go(func() {
				if err := q.score(t.Context(), pairsOf(lengths...)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first runs, the others come meanwhile
		}
		calls.Wait()
		if want := [][]int{{99}, {50, 52, 11, 10}}; !slices.EqualFunc(r.batches, want, slices.Equal[[]int]) {
			t.Errorf("got %v, want %v", r.batches, want)
		}
	})
}

func TestQueueIsBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{took: time.Second}
		q := &queue{run: r.run, limit: 10, parallel: 1}
		var calls sync.WaitGroup
		calls.Go(func() {
			if err := q.score(t.Context(), pairsOf(make([]int, 16)...)); err != nil { // 8 run, 8 wait
				t.Errorf("a large request, when none waits: %v", err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if err := q.score(t.Context(), pairsOf(1, 1, 1)); !errors.Is(err, embed.ErrBusy) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("it waited %v to say so", took)
		}
		if err := q.score(t.Context(), pairsOf(1, 1)); err != nil {
			t.Errorf("what fits is refused: %v", err)
		}
		calls.Wait()
	})
}

func TestQueueObeysContexts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{took: time.Second}
		q := &queue{run: r.run, limit: 100, parallel: 1}
		var calls sync.WaitGroup
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			start := time.Now()
			if err := q.score(ctx, pairsOf(make([]int, 80)...)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took != 1500*time.Millisecond {
				t.Errorf("it returned after %v", took)
			}
		})
		synctest.Wait()
		if err := q.score(t.Context(), pairsOf(7)); err != nil { // behind the other, which gives up
			t.Error(err)
		}
		calls.Wait()
		q.close()
		if len(r.batches) != 3 {
			t.Errorf("%d batches ran: %v", len(r.batches), r.batches)
		}
	})
}

func TestQueueFailsTheRequestsOfABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		r := &recorder{took: time.Second, fail: func(pairs []*pair) error {
			if slices.ContainsFunc(pairs, func(p *pair) bool { return len(p.ids) == 13 }) {
				return broken
			}
			return nil
		}}
		q := &queue{run: r.run, limit: 100, parallel: 1}
		if err := q.score(t.Context(), pairsOf(13, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		if err := q.score(t.Context(), pairsOf(1, 2)); err != nil {
			t.Errorf("the next request: %v", err)
		}
		if len(r.batches) != 2 {
			t.Errorf("%d batches ran, the rest of a failed request is of no use: %v", len(r.batches), r.batches)
		}
	})
}

func TestQueueCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{took: time.Second}
		q := &queue{run: r.run, limit: 100, parallel: 2}
		var calls sync.WaitGroup
		calls.Go(func() {
			if err := q.score(t.Context(), pairsOf(make([]int, 40)...)); !errors.Is(err, errClosed) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		q.close()
		calls.Wait()
		if err := q.score(t.Context(), pairsOf(1)); !errors.Is(err, errClosed) {
			t.Errorf("after close: %v", err)
		}
		if len(r.batches) != 2 {
			t.Errorf("%d batches ran", len(r.batches))
		}
	})
}
