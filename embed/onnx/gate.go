package onnx

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	// searching is how long after a query its search goes on. Passages leave two CPUs to it, the database's and the
	// server's; of two CPUs, that is both.
	searching = 20 * time.Millisecond
	// recent is how long after a query others are likely to follow. Passages leave one CPU to them.
	recent = 250 * time.Millisecond
	// patience is how long searches can hold a passage back: ingestion becomes slow beside many searches, it never stops.
	patience = 100 * time.Millisecond
	// retry is how long a passage that may not run waits before it asks again.
	retry = 5 * time.Millisecond
)

// gate holds passages back while searches come in. Queries never wait, and a passage that runs is not interrupted.
type gate struct {
	cpus int

	mutex sync.Mutex
	// queries counts those under way, busy the CPUs that passages run on.
	queries, busy int
	// queried is when the last query ended.
	queried time.Time
	// left is closed, and made anew, when a passage ends.
	left chan struct{}
}

// process is the gate of all models: they share the CPUs.
var process = newGate(runtime.GOMAXPROCS(0))

func newGate(cpus int) *gate { return &gate{cpus: cpus, left: make(chan struct{})} }

// query notes that a query begins. The caller calls done at its end.
func (g *gate) query() (done func()) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.queries++
	return func() {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.queries--
		g.queried = time.Now()
	}
}

// passage waits until a passage may run, on so many threads. The caller calls done at its end.
func (g *gate) passage(ctx context.Context, threads int) (done func(), err error) {
	came := time.Now()
	for {
		left, ok := g.enter(came, threads)
		if ok {
			return func() { g.leave(threads) }, nil
		}
		select {
		case <-left:
		case <-time.After(retry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// enter lets a passage in that came at a time, if it may run now. It may always while there are no searches.
func (g *gate) enter(came time.Time, threads int) (left <-chan struct{}, ok bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	var spared int
	switch since := time.Since(g.queried); {
	case (g.queries > 0 || since < searching) && time.Since(came) < patience:
		spared = 2
	case g.queries > 0 || since < recent:
		spared = 1
	}
	one := g.busy == 0 && spared < 2 // Where no CPU can be spared, one passage still runs.
	if spared > 0 && !one && g.busy+threads > g.cpus-spared {
		return g.left, false
	}
	g.busy += threads
	return nil, true
}

func (g *gate) leave(threads int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.busy -= threads
	close(g.left)
	g.left = make(chan struct{})
}
