package memory_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
)

func target(m db.Memory) memory.Target { return memory.Target{ProjectID: m.ProjectID, ID: m.ID} }

func TestUpdate(t *testing.T) {
	t.Parallel()
	b := setup(t, fake())
	first, err := b.writer.Write(t.Context(), b.options(), memory.Entry{Content: "The pump is loud.", Tags: []byte(`{"a":"1"}`), Metadata: []byte(`{"x":1}`)})
	must(t, err)
	expires := time.Now().Add(time.Hour)
	updated, err := b.writer.Update(t.Context(), target(first.Memory), memory.Change{Content: "Valves open at noon", Tags: []byte("null"), ExpiresAt: &expires})
	must(t, err)
	if updated.Version != 2 || string(updated.Tags) != "{}" || string(updated.Metadata) != "{}" || updated.ExpiresAt == nil || !updated.UpdatedAt.After(updated.CreatedAt) {
		t.Errorf("got %+v", updated)
	}
	if b.found(t, "pump") != 0 || b.found(t, "valves") != 1 {
		t.Errorf("found %d by the old word, %d by the new one", b.found(t, "pump"), b.found(t, "valves"))
	}
	b.write(t, "valves open at NOON", db.MemoryOutcomeSkipped) // near the new vector
	b.write(t, "The pump is loud.", db.MemoryOutcomeCreated)
	b.wantConsistent(t)

	old := first.Memory.Version
	stale := memory.Target{ProjectID: updated.ProjectID, ID: updated.ID, ExpectedVersion: &old}
	_, updateErr := b.writer.Update(t.Context(), stale, memory.Change{Content: "x"})
	_, retractErr := b.writer.Retract(t.Context(), stale, b.options().Author)
	for _, err := range []error{updateErr, retractErr, b.writer.Delete(t.Context(), stale)} {
		var conflict *memory.VersionError
		if !errors.As(err, &conflict) || conflict.Current != 2 {
			t.Errorf("got %v", err)
		}
	}
	_, err = b.writer.Update(t.Context(), target(updated), memory.Change{Content: " "})
	wantInvalid(t, err, "content")
}

func TestRetract(t *testing.T) {
	t.Parallel()
	b := setup(t, fake())
	row := b.write(t, "The pump is loud.", db.MemoryOutcomeCreated).Memory
	retracted, err := b.writer.Retract(t.Context(), target(row), b.options().Author)
	must(t, err)
	if retracted.InvalidatedAt == nil || retracted.SupersededBy != nil || b.found(t, "pump") != 0 {
		t.Errorf("got %+v", retracted)
	}
	_, again := b.writer.Retract(t.Context(), target(row), b.options().Author)
	_, update := b.writer.Update(t.Context(), target(row), memory.Change{Content: "x"})
	if !errors.Is(again, memory.ErrInvalidated) || !errors.Is(update, memory.ErrInvalidated) {
		t.Errorf("again: %v; update: %v", again, update)
	}
	b.write(t, "The pump is loud.", db.MemoryOutcomeCreated)
	if got := b.outcomes(t); !slices.Equal(got, []string{"created", "retracted", "created"}) {
		t.Errorf("assertions %v", got)
	}
	b.wantConsistent(t)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	b := setup(t, fake())
	old := b.write(t, text(13, "ice"), db.MemoryOutcomeCreated).Memory
	row := b.write(t, text(13, "fire"), db.MemoryOutcomeSuperseded).Memory
	must(t, b.writer.Delete(t.Context(), target(row)))
	if err := b.writer.Delete(t.Context(), target(row)); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	if old = b.get(t, old.ID); old.InvalidatedAt == nil || old.SupersededBy != nil {
		t.Errorf("the superseded one: %+v", old)
	}
	if n := b.count(t, "memory_assertions WHERE memory_id IS NULL AND outcome = 'superseded'"); n != 1 {
		t.Errorf("%d assertions of the deleted memory", n)
	}
	must(t, b.writer.Delete(t.Context(), target(old))) // history goes, too
	b.wantConsistent(t)
}

func TestDeleteStore(t *testing.T) {
	t.Parallel()
	b := setup(t, fake())
	b.write(t, text(13, "ice"), db.MemoryOutcomeCreated)
	b.write(t, text(13, "fire"), db.MemoryOutcomeSuperseded)
	b.write(t, "Valves open at noon", db.MemoryOutcomeCreated)
	other := b.addStore(t, db.MemoryStoreInsertParams{Deduplicate: true})
	_, err := b.writer.Write(t.Context(), optionsOf(other), memory.Entry{Content: "Valves open at noon"})
	must(t, err)
	must(t, b.writer.DeleteStore(t.Context(), db.DefaultProjectID, b.store.ID))
	if err := b.writer.DeleteStore(t.Context(), db.DefaultProjectID, b.store.ID); !errors.Is(err, memory.ErrStoreNotFound) {
		t.Errorf("again: %v", err)
	}
	if b.count(t, "memories") != 1 || b.count(t, "memory_assertions") != 1 || b.found(t, "valves") != 1 {
		t.Errorf("left: %d memories, %d assertions, %d found", b.count(t, "memories"), b.count(t, "memory_assertions"), b.found(t, "valves"))
	}
	b.wantConsistent(t)
}

func TestConcurrentWrites(t *testing.T) {
	t.Parallel()
	const writers = 100
	run := func(t *testing.T, write func(i int) error) {
		t.Helper()
		var wait sync.WaitGroup
		for i := range writers {
			wait.Go(func() {
				if err := write(i); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	counted := func(t *testing.T, b *bundle) map[string]int {
		t.Helper()
		counts := map[string]int{}
		for _, outcome := range b.outcomes(t) {
			counts[outcome]++
		}
		return counts
	}

	t.Run("AHundredEqualTextsGiveOneMemory", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		run(t, func(int) error {
			_, err := b.writer.Write(t.Context(), b.options(), memory.Entry{Content: "The pump is loud."})
			return err
		})
		if counts := counted(t, b); b.count(t, "memories") != 1 || counts["created"] != 1 || counts["skipped"] != writers-1 {
			t.Errorf("%d memories, %v", b.count(t, "memories"), counts)
		}
		b.wantConsistent(t)
	})

	t.Run("AHundredNearTextsLeaveOneValid", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		run(t, func(i int) error {
			_, err := b.writer.Write(t.Context(), b.options(), memory.Entry{Content: text(13, fmt.Sprintf("last%d", i))})
			return err
		})
		counts := counted(t, b)
		if counts["created"] != 1 || counts["created"]+counts["superseded"]+counts["skipped"] != writers || counts["superseded"] < writers/2 {
			t.Errorf("got %v", counts)
		}
		// One chain: each is superseded by another one, but for the last.
		if valid, links := b.count(t, "memories WHERE invalidated_at IS NULL"), b.count(t, "(SELECT DISTINCT superseded_by FROM memories WHERE superseded_by IS NOT NULL)"); valid != 1 || links != counts["superseded"] {
			t.Errorf("%d valid, %d links of %v", valid, links, counts)
		}
		b.wantConsistent(t)
	})

	t.Run("WritersOfManyStoresDoNotWaitForEachOther", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		stores := make([]db.MemoryStore, 5)
		for i := range stores {
			stores[i] = b.addStore(t, db.MemoryStoreInsertParams{Deduplicate: true})
		}
		run(t, func(i int) error {
			_, err := b.writer.WriteBatch(t.Context(), optionsOf(stores[i%len(stores)]), []memory.Entry{{Content: text(13, "ice")}, {Content: text(13, fmt.Sprintf("last%d", i))}})
			return err
		})
		if n := b.count(t, "memories WHERE invalidated_at IS NULL"); n != len(stores) {
			t.Errorf("%d valid memories in %d stores", n, len(stores))
		}
		b.wantConsistent(t)
	})

	t.Run("OneOfTwoUpdatesOfAVersionWins", func(t *testing.T) {
		t.Parallel()
		b := setup(t, fake())
		row := b.write(t, "The pump is loud.", db.MemoryOutcomeCreated).Memory
		expecting := target(row)
		expecting.ExpectedVersion = &row.Version
		var mu sync.Mutex
		won, lost := 0, 0
		run(t, func(i int) error {
			_, err := b.writer.Update(t.Context(), expecting, memory.Change{Content: fmt.Sprintf("The pump is loud %d.", i)})
			var conflict *memory.VersionError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.As(err, &conflict) && conflict.Current == 2:
				lost++
			default:
				return err
			}
			return nil
		})
		if won != 1 || lost != writers-1 {
			t.Errorf("%d won, %d lost", won, lost)
		}
		b.wantConsistent(t)
	})
}

// TestAnyHistory changes a store in random ways, and checks it after each.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	b := setup(t, fake())
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"ice", "fire", "wind", "earth"}
	var ids []uuid.UUID
	anyone := func() memory.Target {
		return memory.Target{ProjectID: db.DefaultProjectID, ID: ids[random.IntN(len(ids))]}
	}
	content := func() string { return text([]int{5, 13, 40}[random.IntN(3)], words[random.IntN(len(words))]) }
	for range 80 {
		var err error
		switch step := random.IntN(6); {
		case step < 3 || len(ids) == 0:
			var result memory.Result
			options, deduplicate := b.options(), step > 0
			options.Deduplicate = &deduplicate
			result, err = b.writer.Write(t.Context(), options, memory.Entry{Content: content()})
			ids = append(ids, result.Memory.ID)
		case step == 3:
			_, err = b.writer.Update(t.Context(), anyone(), memory.Change{Content: content()})
		case step == 4:
			_, err = b.writer.Retract(t.Context(), anyone(), b.options().Author)
		default:
			err = b.writer.Delete(t.Context(), anyone())
		}
		if err != nil && !errors.Is(err, memory.ErrNotFound) && !errors.Is(err, memory.ErrInvalidated) {
			t.Fatal(err)
		}
		if b.wantConsistent(t); t.Failed() {
			return
		}
	}
}
