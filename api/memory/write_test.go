package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed/embedtest"
)

func TestWrite(t *testing.T) {
	t.Parallel()

	t.Run("EqualTextIsSkippedAndNotEmbedded", func(t *testing.T) {
		t.Parallel()
		embedder := fake()
		b := setup(t, embedder)
		first := b.write(t, "The pump is loud.", db.MemoryOutcomeCreated)
		before := embedder.Texts()
		again := b.write(t, "  The pump\n is   loud. ", db.MemoryOutcomeSkipped)
		if again.Memory.ID != first.Memory.ID || again.Memory.Content != "The pump is loud." || value(again.Similarity) != 1 || embedder.Texts() != before {
			t.Errorf("got %+v; %d texts embedded", again, embedder.Texts()-before)
		}
		if first.Similarity != nil || first.Memory.Version != 1 || first.Memory.SourceType != db.MemorySourceManual || !first.Memory.UpdatedAt.Equal(first.Memory.CreatedAt) {
			t.Errorf("first: %+v", first)
		}
		b.wantConsistent(t)
	})

	for name, test := range map[string]struct {
		words   int
		outcome db.MemoryOutcome
	}{
		"FromTheDuplicateThresholdOnSkipped":    {40, db.MemoryOutcomeSkipped},
		"FromTheSupersedeThresholdOnSuperseded": {13, db.MemoryOutcomeSuperseded},
		"BelowBothCreated":                      {5, db.MemoryOutcomeCreated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, fake())
			old := b.write(t, text(test.words, "ice"), db.MemoryOutcomeCreated).Memory
			result := b.write(t, text(test.words, "fire"), test.outcome)
			if want := float64(test.words-1) / float64(test.words); value(result.Similarity) < want-0.002 || value(result.Similarity) > want+0.002 {
				t.Errorf("similarity %v, want %v", value(result.Similarity), want)
			}
			if valid, want := b.count(t, "memories WHERE invalidated_at IS NULL"), map[bool]int{true: 2, false: 1}[test.outcome == db.MemoryOutcomeCreated]; valid != want {
				t.Errorf("%d valid memories, want %d", valid, want)
			}
			old = b.get(t, old.ID)
			if superseded := test.outcome == db.MemoryOutcomeSuperseded; superseded != (old.InvalidatedAt != nil) || superseded != (old.SupersededBy != nil && *old.SupersededBy == result.Memory.ID) ||
				superseded != (result.Superseded != nil && *result.Superseded == old.ID) {
				t.Errorf("old %+v, result %+v", old, result)
			}
			if got, want := b.outcomes(t), []string{"created", string(test.outcome)}; !slices.Equal(got, want) {
				t.Errorf("assertions %v, want %v", got, want)
			}
			b.wantConsistent(t)
		})
	}

	t.Run("TheNewOneInheritsTagsAndMetadata", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		_, err := b.writer.Write(t.Context(), b.options(), memory.Entry{
			Content: text(13, "ice"), Tags: []byte(`{"a":"1","b":"1"}`), Metadata: []byte(`{"x":{"deep":1},"y":1}`),
		})
		must(t, err)
		result, err := b.writer.Write(t.Context(), b.options(), memory.Entry{
			Content: text(13, "fire"), Tags: []byte(`{"b":"2"}`), Metadata: []byte(`{"x":{"flat":2}}`),
		})
		must(t, err)
		if got := fmt.Sprint(object(t, result.Memory.Tags), object(t, result.Memory.Metadata)); got != "map[a:1 b:2] map[x:map[flat:2] y:1]" {
			t.Errorf("got %s", got)
		}
	})

	t.Run("ThresholdsAreTheRequestsThenTheStoresThenTheDefaults", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		low, high, lower := 0.7, 0.85, 0.5
		b.store = b.addStore(t, db.MemoryStoreInsertParams{Deduplicate: true, DuplicateThreshold: &high, SupersedeThreshold: &low})
		b.write(t, text(5, "ice"), db.MemoryOutcomeCreated)
		b.write(t, text(5, "fire"), db.MemoryOutcomeSuperseded) // 0.8
		options := b.options()
		options.DuplicateThreshold, options.SupersedeThreshold = &low, &lower
		result, err := b.writer.Write(t.Context(), options, memory.Entry{Content: text(5, "wind")})
		must(t, err)
		if result.Outcome != db.MemoryOutcomeSkipped {
			t.Errorf("got %s", result.Outcome)
		}
		options.DuplicateThreshold, options.SupersedeThreshold = &low, nil // The store's is 0.7, too.
		_, err = b.writer.Write(t.Context(), options, memory.Entry{Content: "x"})
		wantInvalid(t, err, "supersede_threshold")
		beyond := 1.5
		options.DuplicateThreshold = &beyond
		_, err = b.writer.Write(t.Context(), options, memory.Entry{Content: "x"})
		wantInvalid(t, err, "duplicate_threshold")
		wantInvalid(t, memory.CheckThresholds(&low, nil), "supersede_threshold") // The default is 0.9.
		must(t, memory.CheckThresholds(nil, nil))
	})

	t.Run("WithoutDeduplicationEachTextIsKept", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		off, on := false, true
		kept := b.addStore(t, db.MemoryStoreInsertParams{Deduplicate: false})
		for _, test := range []struct {
			options memory.Options
			request *bool
			outcome db.MemoryOutcome
		}{
			{b.options(), nil, db.MemoryOutcomeCreated}, {b.options(), &off, db.MemoryOutcomeCreated}, {b.options(), nil, db.MemoryOutcomeSkipped},
			{optionsOf(kept), nil, db.MemoryOutcomeCreated}, {optionsOf(kept), nil, db.MemoryOutcomeCreated}, {optionsOf(kept), &on, db.MemoryOutcomeSkipped},
		} {
			test.options.Deduplicate = test.request
			result, err := b.writer.Write(t.Context(), test.options, memory.Entry{Content: "The pump is loud."})
			must(t, err)
			if result.Outcome != test.outcome {
				t.Errorf("got %s, want %s", result.Outcome, test.outcome)
			}
		}
		if n := b.count(t, "memory_assertions"); n != 6 {
			t.Errorf("%d assertions, want 6", n)
		}
		b.wantConsistent(t)
	})

	t.Run("ADeclaredTargetIsSupersededWhateverIsNear", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		target := b.write(t, "The pump is loud.", db.MemoryOutcomeCreated).Memory
		other := b.write(t, "Valves open at noon", db.MemoryOutcomeCreated).Memory
		declare := func(content string, id uuid.UUID) (memory.Result, error) {
			return b.writer.Write(t.Context(), b.options(), memory.Entry{Content: content, Supersedes: &id})
		}
		result, err := declare(other.Content, target.ID) // An equal text is there, too.
		must(t, err)
		if target = b.get(t, target.ID); result.Outcome != db.MemoryOutcomeSuperseded || target.SupersededBy == nil || *target.SupersededBy != result.Memory.ID {
			t.Errorf("result %+v, target %+v", result, target)
		}
		if n := b.count(t, "memory_assertions WHERE declared AND similarity IS NULL AND outcome = 'superseded'"); n != 1 {
			t.Errorf("%d declared assertions", n)
		}
		_, err = declare("x", target.ID)
		wantInvalid(t, err, "supersedes")
		if _, err = declare("x", db.NewID()); !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("missing target: %v", err)
		}
		elsewhere, err := b.writer.Write(t.Context(), optionsOf(b.addStore(t, db.MemoryStoreInsertParams{})), memory.Entry{Content: "x"})
		must(t, err)
		_, err = declare("x", elsewhere.Memory.ID)
		wantInvalid(t, err, "supersedes")
		_, err = b.writer.Retract(t.Context(), memory.Target{ProjectID: db.DefaultProjectID, ID: other.ID}, b.options().Author)
		must(t, err)
		_, err = declare("x", other.ID)
		wantInvalid(t, err, "supersedes")
		b.wantConsistent(t)
	})

	t.Run("AnotherProjectsStoreIsNotFound", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		project, err := db.New().ProjectInsert(t.Context(), b.pool, db.ProjectInsertParams{ID: db.NewID(), Name: "other", TextConfig: "pg_catalog.english"})
		must(t, err)
		options := b.options()
		options.ProjectID = project.ID
		if _, err := b.writer.Write(t.Context(), options, memory.Entry{Content: "x"}); !errors.Is(err, memory.ErrStoreNotFound) {
			t.Errorf("got %v", err)
		}
		own := b.write(t, "The pump is loud.", db.MemoryOutcomeCreated).Memory
		foreign := memory.Target{ProjectID: project.ID, ID: own.ID}
		_, updateErr := b.writer.Update(t.Context(), foreign, memory.Change{Content: "x"})
		_, retractErr := b.writer.Retract(t.Context(), foreign, b.options().Author)
		for _, err := range []error{updateErr, retractErr, b.writer.Delete(t.Context(), foreign)} {
			if !errors.Is(err, memory.ErrNotFound) {
				t.Errorf("got %v", err)
			}
		}
		if err := b.writer.DeleteStore(t.Context(), project.ID, b.store.ID); !errors.Is(err, memory.ErrStoreNotFound) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("WhatNobodyCanRememberIsInvalid", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		for _, content := range []string{"", " \n\t", "a\x00b", strings.Repeat("x", memory.MaxContent+1)} {
			_, err := b.writer.Write(t.Context(), b.options(), memory.Entry{Content: content})
			wantInvalid(t, err, "content")
		}
		b.write(t, strings.Repeat("word ", memory.MaxContent/5), db.MemoryOutcomeCreated)
		b.wantConsistent(t)
	})

	t.Run("AnExpiredMemoryIsNoDuplicate", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		old, err := b.writer.Write(t.Context(), b.options(), memory.Entry{Content: text(40, "ice"), ExpiresAt: new(time.Now().Add(time.Hour))})
		must(t, err)
		b.write(t, text(40, "ice"), db.MemoryOutcomeSkipped)
		if b.found(t, "ice") != 1 {
			t.Error("not found before its time")
		}
		for _, table := range []string{"memories", "memory_words", "memory_embeddings"} {
			b.exec(t, "UPDATE "+table+" SET expires_at = now() - interval '1 second' WHERE expires_at IS NOT NULL")
		}
		b.write(t, text(40, "fire"), db.MemoryOutcomeCreated) // near
		if b.found(t, "ice") != 0 {
			t.Error("found after its time")
		}
		b.write(t, "  "+text(40, "ice"), db.MemoryOutcomeSkipped) // the near one again
		if err := b.writer.Delete(t.Context(), memory.Target{ProjectID: db.DefaultProjectID, ID: old.Memory.ID}); err != nil {
			t.Error(err)
		}
		b.wantConsistent(t)
	})

	t.Run("WithoutTheModelATextIsStoredAndItsHashDecides", func(t *testing.T) {
		t.Parallel()
		down := errors.New("the model is down")
		embedder := &embedtest.Embedder{Fail: func(string) error { return down }}
		b := setup(t, embedder)
		result := b.write(t, "The pump is loud.", db.MemoryOutcomeCreated)
		if !result.Memory.EmbeddingDue || b.found(t, "pump") != 1 || b.count(t, "memory_embeddings") != 0 {
			t.Errorf("got %+v; found %d", result.Memory, b.found(t, "pump"))
		}
		b.write(t, "The pump is loud. ", db.MemoryOutcomeSkipped)
		b.write(t, "The pump is very loud.", db.MemoryOutcomeCreated)
		b.wantConsistent(t)
	})

	t.Run("ATextOfWhichTheModelSeesNothingHasNoVector", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		result := b.write(t, "\u200b\u200b", db.MemoryOutcomeCreated)
		if result.Memory.EmbeddingDue || b.count(t, "memory_embeddings") != 0 {
			t.Errorf("got %+v", result.Memory)
		}
	})

	t.Run("TheVectorIsOfTheSpaceThatIsActiveAtTheCommit", func(t *testing.T) {
		t.Parallel()
		next := &embedtest.Embedder{Model: "next", Dimensions: 128}
		first := &embedtest.Embedder{}
		b := setup(t, first, next)
		switched := false
		first.Fail = func(string) error { // The space changes between the embedding and the transaction.
			if !switched {
				switched = true
				stored, err := db.EnsureSpace(t.Context(), b.pool, spaceParams(next))
				must(t, err)
				ok, err := db.SwitchSpace(t.Context(), b.pool, stored.ID, nil)
				if err != nil || !ok {
					t.Errorf("switched %v, %v", ok, err)
				}
			}
			return nil
		}
		// An empty space gives way to the next one at once: the first one is made active again.
		b.activate(t, first)
		result := b.write(t, "The pump is loud.", db.MemoryOutcomeCreated)
		updated, err := b.writer.Update(t.Context(), memory.Target{ProjectID: db.DefaultProjectID, ID: result.Memory.ID}, memory.Change{Content: "The pump is quiet."})
		must(t, err)
		if !switched || updated.Version != 2 || b.count(t, "memory_embeddings WHERE vector_dims(embedding::vector) = 128") != 1 {
			t.Errorf("switched %v; %+v", switched, updated)
		}
		b.write(t, "The PUMP is quiet.", db.MemoryOutcomeSkipped) // in the vectors of the new size
		b.wantConsistent(t)
	})
}

func TestWriteBatch(t *testing.T) {
	t.Parallel()
	entries := []memory.Entry{
		{Content: text(13, "ice")}, {Content: text(13, "ice") + " "}, {Content: text(13, "fire")}, {Content: text(13, "ice")}, {Content: "Valves open at noon"},
	}
	want := []string{"created", "skipped", "superseded", "superseded", "created"}
	outcomes := func(results []memory.Result) (outcomes []string) {
		for _, result := range results {
			outcomes = append(outcomes, string(result.Outcome))
		}
		return outcomes
	}

	t.Run("EachEntrySeesThoseBeforeIt", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		results, err := b.writer.WriteBatch(t.Context(), b.options(), entries)
		must(t, err)
		if got := outcomes(results); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if valid := b.count(t, "memories WHERE invalidated_at IS NULL"); valid != 2 || !slices.Equal(b.outcomes(t), want) {
			t.Errorf("%d valid memories, assertions %v", valid, b.outcomes(t))
		}
		b.wantConsistent(t)
	})

	t.Run("ADryRunAnswersTheSameAndChangesNothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		options := b.options()
		options.DryRun = true
		results, err := b.writer.WriteBatch(t.Context(), options, entries)
		must(t, err)
		if got := outcomes(results); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for _, table := range []string{"memories", "memory_words", "memory_embeddings", "memory_assertions", "lexeme_deltas"} {
			if n := b.count(t, table); n != 0 {
				t.Errorf("%d rows in %s", n, table)
			}
		}
	})

	t.Run("OneWrongEntryUndoesAll", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		missing := db.NewID()
		_, err := b.writer.WriteBatch(t.Context(), b.options(), append(slices.Clone(entries), memory.Entry{Content: "x", Supersedes: &missing}))
		var wrong *memory.EntryError
		if !errors.As(err, &wrong) || wrong.Index != len(entries) || !errors.Is(err, memory.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if n := b.count(t, "memories") + b.count(t, "memory_assertions"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		_, err = b.writer.WriteBatch(t.Context(), b.options(), []memory.Entry{{Content: "x"}, {Content: " "}})
		if !errors.As(err, &wrong) || wrong.Index != 1 {
			t.Errorf("got %v", err)
		}
	})

	t.Run("AThousandAtOnceAndNoMore", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		many := make([]memory.Entry, memory.MaxBatch+1)
		for i := range many {
			many[i].Content = fmt.Sprintf("a%d b%d c%d", i, i, i)
		}
		_, err := b.writer.WriteBatch(t.Context(), b.options(), many)
		wantInvalid(t, err, "memories")
		results, err := b.writer.WriteBatch(t.Context(), b.options(), many[:1000])
		must(t, err)
		if len(results) != 1000 {
			t.Errorf("%d results", len(results))
		}
		b.wantConsistent(t)
	})

	t.Run("AnImportKeepsItsTimes", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		created, updated := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2021, 1, 2, 3, 4, 5, 0, time.UTC)
		results, err := b.writer.WriteBatch(t.Context(), b.options(), []memory.Entry{
			{Content: "Valves open at noon", CreatedAt: &created, UpdatedAt: &updated}, {Content: "The pump is loud", CreatedAt: &created},
		})
		must(t, err)
		if a, b := results[0].Memory, results[1].Memory; !a.CreatedAt.Equal(created) || !a.UpdatedAt.Equal(updated) || !b.UpdatedAt.Equal(created) {
			t.Errorf("got %v and %v", a, b)
		}
	})
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *memory.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("got %v, want an invalid %s", err, field)
	}
}
