package onnx

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kb-search/kb/embed"
)

// entered counts the passages of one thread that get in within a time, of ten that come at once and stay.
func entered(t *testing.T, g *gate, within time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	results := make(chan error)
	for range 10 {
		go func() {
			_, err := g.passage(ctx, 1)
			results <- err
		}()
	}
	n := 0
	for range 10 {
		switch err := <-results; {
		case err == nil:
			n++
		case !errors.Is(err, context.DeadlineExceeded):
			t.Error(err)
		}
	}
	return n
}

func TestGate(t *testing.T) {
	t.Parallel()
	const moment = time.Millisecond
	for name, test := range map[string]struct {
		cpus int
		// under says that the query is still under way, else it ended so long ago.
		under  bool
		since  time.Duration
		within time.Duration
		want   int
	}{
		"NoneBesideAQueryOnTwoCPUs":      {2, true, 0, patience - moment, 0},
		"NoneBesideASearchOnTwoCPUs":     {2, false, 0, searching - moment, 0},
		"OneAfterASearchOnTwoCPUs":       {2, false, searching, recent - searching - moment, 1},
		"OneAfterASearchOnOneCPU":        {1, false, searching, moment, 1},
		"AllWhenSearchesAreOver":         {2, false, recent, moment, 10},
		"OneIsHeldBackNoLongerThanThat":  {2, true, 0, patience + retry, 1},
		"TwoOfEightAreLeftToASearch":     {8, false, 0, moment, 6},
		"OneOfEightIsLeftAfterASearch":   {8, false, searching, moment, 7},
		"ManyCPUsAreEnoughForEverything": {12, true, 0, moment, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGate(test.cpus)
				done := g.query()
				if !test.under {
					done()
				}
				time.Sleep(test.since)
				if n := entered(t, g, test.within); n != test.want {
					t.Errorf("%d got in, want %d", n, test.want)
				}
			})
		})
	}
}

func TestGateWithoutSearchesIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if n := entered(t, newGate(1), time.Millisecond); n != 10 {
			t.Errorf("%d got in", n)
		}
	})
}

// Under searches without end, passages run one after the other.
func TestGateNeverStopsPassages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate(2)
		defer g.query()()
		start := time.Now()
		for range 10 {
			done, err := g.passage(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			done()
		}
		if took := time.Since(start); took > 10*(patience+retry+10*time.Millisecond) {
			t.Errorf("ten passages took %v", took)
		}
	})
}

// A passage goes through the gate before it takes a thread, and stops there with its context.
func TestPassageWaitsAtTheGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &Embedder{gate: newGate(2), threads: 1} // Past the gate it would panic: there is no model.
		defer e.gate.query()()
		ctx, cancel := context.WithTimeout(t.Context(), patience/2)
		defer cancel()
		if _, err := e.embedOne(ctx, embed.Passage, "text"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
