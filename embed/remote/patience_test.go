package remote

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
)

// inProcess has a handler answer without a network, so that a test can stop the clock.
type inProcess struct{ http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func withoutNetwork(t *testing.T, s *server) *Embedder {
	t.Helper()
	o := options("http://server")
	o.Model.Dimensions, o.HTTP = embedtest.New().Space().Dimensions, &http.Client{Transport: inProcess{s}}
	e, err := NewEmbedder(o)
	if err != nil {
		t.Fatal(err)
	}
	e.random = func() float64 { return 0.5 }
	return e
}

func TestWaits(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for name, test := range map[string]struct {
		kind   embed.Kind
		faults func() []http.HandlerFunc // called when the clock stands
		want   time.Duration
		fails  bool
	}{
		"TheyDouble": {embed.Passage, func() []http.HandlerFunc {
			return slices.Repeat([]http.HandlerFunc{status(500)}, 4)
		}, 7500 * time.Millisecond, false},
		"AsLongAsTheServerAsks": {embed.Passage, func() []http.HandlerFunc {
			return []http.HandlerFunc{status(429, "Retry-After", "20")}
		}, 20500 * time.Millisecond, false},
		"UntilTheServersDate": {embed.Passage, func() []http.HandlerFunc {
			return []http.HandlerFunc{status(503, "Retry-After", in(10*time.Second))}
		}, 10500 * time.Millisecond, false},
		"NotForHours": {embed.Passage, func() []http.HandlerFunc {
			return []http.HandlerFunc{status(503, "Retry-After", "7200")}
		}, 0, true},
		"NotForAges": {embed.Passage, func() []http.HandlerFunc {
			return []http.HandlerFunc{status(503, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT")}
		}, 0, true},
		"AQueryWaitsForASecond": {embed.Query, func() []http.HandlerFunc {
			return []http.HandlerFunc{status(429, "Retry-After", "1")}
		}, 1500 * time.Millisecond, false},
		"AQueryDoesNotWaitInVain": {embed.Query, func() []http.HandlerFunc {
			return []http.HandlerFunc{status(429, "Retry-After", "3")}
		}, 0, true},
		"AQueryIsGivenUpAfterThreeSeconds": {embed.Query, func() []http.HandlerFunc { return []http.HandlerFunc{hang} }, 3 * time.Second, true},
		"APassageHasTheWholeTimeoutOnce":   {embed.Passage, func() []http.HandlerFunc { return []http.HandlerFunc{hang} }, 30 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{faults: test.faults()}
				e := withoutNetwork(t, s)
				start := time.Now()
				_, err := e.Embed(t.Context(), test.kind, []string{"text"})
				if took := time.Since(start); took != test.want || (err != nil) != test.fails {
					t.Errorf("took %v, want %v: %v", took, test.want, err)
				}
				if err != nil && !errors.Is(err, embed.ErrUnavailable) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A dead server costs a few searches three seconds each, then none; when it is back, a search finds out within five seconds.
func TestDeadServerCostsSearchesLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{always: hang}
		e := withoutNetwork(t, s)
		query := func() (time.Duration, error) {
			start := time.Now()
			_, err := e.Embed(t.Context(), embed.Query, []string{"text"})
			return time.Since(start), err
		}
		for range trips {
			if took, err := query(); took != 3*time.Second || !errors.Is(err, embed.ErrUnavailable) {
				t.Fatalf("took %v: %v", took, err)
			}
		}
		for range 10 {
			if took, err := query(); took != 0 || !errors.Is(err, embed.ErrUnavailable) {
				t.Fatalf("took %v: %v", took, err)
			}
		}
		time.Sleep(rest + time.Millisecond)
		var searches sync.WaitGroup
		waited := make(chan time.Duration, 10)
		for range 10 {
			searches.Go(func() {
				took, _ := query()
				waited <- took
			})
		}
		searches.Wait()
		close(waited)
		long := 0
		for took := range waited {
			if took > 0 {
				long++
			}
		}
		if long != 1 {
			t.Errorf("%d of 10 searches wait for a server that is still dead", long)
		}
		s.answer(nil)
		if _, err := e.Embed(t.Context(), embed.Passage, []string{"text"}); err != nil {
			t.Errorf("passages wait for searches: %v", err)
		}
		time.Sleep(rest + time.Millisecond)
		for range 3 {
			if took, err := query(); took != 0 || err != nil {
				t.Errorf("back: took %v: %v", took, err)
			}
		}
	})
}

// Only a server that is not there is left alone: not one that refuses or asks to slow down, and not for a caller's leaving.
func TestLivingServerIsAskedOn(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{"Refuses": status(400), "SlowDown": status(429, "Retry-After", "9"), "CallerLeaves": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{always: answer}
				e := withoutNetwork(t, s)
				for range 10 {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(time.Millisecond, cancel)
					if _, err := e.Embed(ctx, embed.Query, []string{"text"}); err == nil {
						t.Error("no error")
					}
					cancel()
				}
				s.answer(nil)
				if _, err := e.Embed(t.Context(), embed.Query, []string{"text"}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
