package worker_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/job"
	"github.com/kb-search/kb/worker/parse"
)

func source(filename, content string) worker.Source {
	hash := sha256.Sum256([]byte(content))
	return worker.Source{
		ProjectID: db.DefaultProjectID, Filename: filename, Tags: []byte(`{"kind":"test"}`), ContentHash: hash[:],
		StoredPath: "documents/x", Size: int64(len(content)), Data: []byte(content),
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	embedder := embedtest.New()
	ingester := setup(t, embedder).ingester

	t.Run("TitleComesFromTheCallerThenTheContentThenTheFileName", func(t *testing.T) {
		t.Parallel()
		for _, test := range []struct{ given, content, want string }{
			{" The\x00 pump \n book ", "# Pumps\n\nText.", "The pump book"},
			{"", "# Pumps\n\nText.", "Pumps"},
			{"", "Text alone.", "manual"},
		} {
			in := source("manual.md", test.content)
			in.Title = test.given
			prepared, err := ingester.Prepare(t.Context(), in, func(string, int, int) {})
			must(t, err)
			if got := prepared.Document.Title; got != test.want {
				t.Errorf("title %q, want %q", got, test.want)
			}
			for _, c := range prepared.Chunks {
				if enriched := c.EnrichedText(); !strings.HasPrefix(enriched, test.want) || !strings.HasSuffix(enriched, c.Text) {
					t.Errorf("enriched text %q", enriched)
				}
			}
		}
	})

	t.Run("ProgressComesBetweenBatches", func(t *testing.T) {
		t.Parallel()
		var last [2]int
		steps := 0
		prepared, err := ingester.Prepare(t.Context(), source("pump.txt", strings.Repeat(long("pump"), 10)), func(phase string, done, total int) {
			if done < last[0] || (phase == worker.PhaseStore) != (done == total) {
				t.Errorf("%s: %d of %d after %v", phase, done, total, last)
			}
			steps++
			last = [2]int{done, total}
		})
		must(t, err)
		n := len(prepared.Chunks)
		if last[1] != n || steps < 2 {
			t.Errorf("%d steps, last %v, %d chunks", steps, last, n)
		}
		without := slices.ContainsFunc(prepared.Chunks, func(c worker.PreparedChunk) bool { return c.Vector == nil })
		if without || int(prepared.Document.ChunkCount) != n {
			t.Errorf("%d counted, %d chunks, some without a vector: %v", prepared.Document.ChunkCount, n, without)
		}
	})

	t.Run("NoChunkIsLongerThanTheWindow", func(t *testing.T) {
		t.Parallel()
		prepared, err := ingester.Prepare(t.Context(), source("one.txt", strings.Repeat("word, ", 3000)), func(string, int, int) {})
		must(t, err)
		for _, c := range prepared.Chunks {
			if n := embedder.CountTokens(c.EnrichedText()); n > embedder.Window()-2 {
				t.Errorf("a chunk of %d tokens", n)
			}
		}
	})

	t.Run("WhatTheModelSeesNothingInIsAnEmptyFile", func(t *testing.T) {
		t.Parallel()
		_, err := setup(t, blind{embedder}).ingester.Prepare(t.Context(), source("´.txt", "\u0301\u0301"), func(string, int, int) {})
		var parseErr *parse.Error
		if !errors.As(err, &parseErr) || parseErr.Code != "empty" {
			t.Errorf("got %v", err)
		}
	})
}

func TestCheckChunking(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size, overlap int
		problem       string
	}{
		"SizeAboveTheWindow": {255, 0, "at most 254"},
		"SizeTooSmall":       {8, 0, "at least 16"},
		"OverlapAboveHalf":   {100, 51, "between 0 and half"},
		"TheWholeWindow":     {254, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := worker.CheckChunking(embedtest.New(), job.Chunking{Size: test.size, Overlap: &test.overlap})
			if (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestStore(t *testing.T) {
	t.Parallel()

	setupPrepared := func(t *testing.T) (*bundle, func(ctx context.Context) error) {
		t.Helper()
		b := setup(t, fake())
		prepared, err := b.ingester.Prepare(t.Context(), source("pump.txt", long("pump")), func(string, int, int) {})
		must(t, err)
		return b, func(ctx context.Context) error {
			return db.InTx(ctx, b.pool, func(tx pgx.Tx) error {
				_, err := b.ingester.Store(ctx, tx, prepared)
				return err
			})
		}
	}

	t.Run("AFailureInTheMiddleLeavesNothing", func(t *testing.T) {
		t.Parallel()
		b, store := setupPrepared(t)
		_, err := b.pool.Exec(t.Context(), "ALTER TABLE tags ADD CONSTRAINT refuse CHECK (name <> 'kind:test')")
		must(t, err)
		if err := store(t.Context()); err == nil || !strings.Contains(err.Error(), "insert tags") {
			t.Errorf("got %v", err)
		}
		b.wantNothing(t)
	})

	t.Run("ACancellationInTheMiddleLeavesNothing", func(t *testing.T) {
		t.Parallel()
		b, store := setupPrepared(t)
		lock, err := b.pool.Begin(t.Context())
		must(t, err)
		_, err = lock.Exec(t.Context(), "LOCK TABLE tags IN ACCESS EXCLUSIVE MODE")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := store(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		must(t, lock.Rollback(t.Context()))
		b.wantNothing(t)
		must(t, store(t.Context()))
		if err := store(t.Context()); db.Kind(err) != db.KindConflict {
			t.Errorf("a second time: %v", err)
		}
	})
}
