package onnx

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kb-search/kb/embed"
)

// A batch of pairs is this large at most: larger ones are no faster on a CPU, and take memory.
const (
	maxBatchRows   = 8
	maxBatchTokens = 2000
)

// pair is a query and a passage as the model reads them, and what it says of them.
type pair struct {
	request *request
	ids     []int64
	// passage is where the passage begins in ids.
	passage int
	score   float64
}

// request is the pairs of one call.
type request struct {
	// left counts the pairs without a score. The queue guards it.
	left int
	// done gets the outcome once, when the last pair has its score, or the first error.
	done chan error
}

// queue puts the pairs of all requests together into batches: of those that wait, the oldest and those next to it in length.
// Its goroutines live only while something waits.
type queue struct {
	run             func([]*pair) error
	limit, parallel int
	// rows is how many pairs one batch may have; 0 for maxBatchRows.
	rows int

	mutex sync.Mutex
	// waiting is in the order of arrival.
	waiting []*pair
	running int
	closed  bool
	// runners are the goroutines that run batches.
	runners sync.WaitGroup
}

// score fills in the scores of pairs. Its error is embed.ErrBusy, wrapped, when too many wait already; one request may be
// larger than the limit, when none waits. It returns at once when ctx ends, and what has not been run then never is.
func (q *queue) score(ctx context.Context, pairs []*pair) error {
	if len(pairs) == 0 {
		return nil
	}
	r := &request{left: len(pairs), done: make(chan error, 1)}
	for _, p := range pairs {
		p.request = r
	}
	if err := q.add(pairs); err != nil {
		return err
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.drop(r)
		return context.Cause(ctx)
	}
}

func (q *queue) add(pairs []*pair) error {
	longestFirst := slices.Clone(pairs)
	slices.SortStableFunc(longestFirst, func(a, b *pair) int { return len(b.ids) - len(a.ids) })
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return errClosed
	}
	if n := len(q.waiting); n > 0 && n+len(pairs) > q.limit {
		return fmt.Errorf("%w: %d pairs wait", embed.ErrBusy, n)
	}
	q.waiting = append(q.waiting, longestFirst...)
	for n := 0; n < len(pairs) && q.running < q.parallel; n++ {
		q.running++
		q.runners.Go(q.work)
	}
	return nil
}

// work runs batches until none waits.
func (q *queue) work() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for len(q.waiting) > 0 {
		pairs := q.take()
		q.mutex.Unlock()
		err := q.run(pairs)
		q.mutex.Lock()
		for _, p := range pairs {
			switch r := p.request; {
			case r.left == 0: // it has failed already
			case err != nil:
				q.fail(r, err)
			default:
				if r.left--; r.left == 0 {
					r.done <- nil
				}
			}
		}
	}
	q.running--
}

// take removes the next batch from what waits, leaving their share to the others that run batches.
func (q *queue) take() []*pair {
	first := len(q.waiting[0].ids)
	nearest := slices.Clone(q.waiting)
	apart := func(p *pair) int { return max(len(p.ids)-first, first-len(p.ids)) }
	slices.SortStableFunc(nearest[1:], func(a, b *pair) int { return apart(a) - apart(b) })
	share := (len(nearest) + q.parallel - 1) / q.parallel
	longest, n := 0, 0
	for _, p := range nearest[:min(share, cmp.Or(q.rows, maxBatchRows))] {
		longest = max(longest, len(p.ids))
		if n > 0 && longest*(n+1) > maxBatchTokens {
			break
		}
		n++
	}
	taken := nearest[:n]
	q.waiting = slices.DeleteFunc(q.waiting, func(p *pair) bool { return slices.Contains(taken, p) })
	return taken
}

// fail ends a request, whose other pairs are of no use any more.
func (q *queue) fail(r *request, err error) {
	r.left = 0
	r.done <- err
	q.drop(r)
}

func (q *queue) drop(r *request) {
	q.waiting = slices.DeleteFunc(q.waiting, func(p *pair) bool { return p.request == r })
}

// close ends all requests, and returns when no batch runs any more.
func (q *queue) close() {
	q.mutex.Lock()
	q.closed = true
	for len(q.waiting) > 0 {
		q.fail(q.waiting[0].request, errClosed)
	}
	q.mutex.Unlock()
	q.runners.Wait()
}
