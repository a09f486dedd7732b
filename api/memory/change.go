package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
)

// Target names a memory to change.
type Target struct {
	ProjectID, ID uuid.UUID
	// ExpectedVersion is the version that the caller has read; nil for whichever it is.
	ExpectedVersion *int32
}

// Change is what an update puts in the place of all that a caller may set.
type Change struct {
	Content string
	// Tags and Metadata are JSON objects; nil is an empty one.
	Tags, Metadata json.RawMessage
	// ExpiresAt is when the memory is forgotten; nil for never.
	ExpiresAt *time.Time
}

// Update makes the next version of a valid memory, whatever else is near its text. The error may be ErrNotFound, ErrInvalidated,
// a *VersionError or an *InvalidError.
func (w *Writer) Update(ctx context.Context, target Target, change Change) (db.Memory, error) {
	if err := checkContent(change.Content); err != nil {
		return db.Memory{}, err
	}
	for {
		updated, err := w.tryUpdate(ctx, target, change)
		if !errors.Is(err, errStale) {
			return updated, err
		}
	}
}

func (w *Writer) tryUpdate(ctx context.Context, target Target, change Change) (db.Memory, error) {
	stored, err := w.spaces.Current(ctx)
	if err != nil {
		return db.Memory{}, err
	}
	d := &draft{content: change.Content, hash: contentHash(change.Content)}
	if err := w.embed(ctx, stored, []*draft{d}); err != nil {
		return db.Memory{}, err
	}
	var updated db.Memory
	err = db.InTx(ctx, w.conn, func(tx pgx.Tx) error {
		if err := holdSpace(ctx, tx, stored); err != nil {
			return err
		}
		memory, err := lockValid(ctx, tx, target)
		if err != nil {
			return err
		}
		if err := unindex(ctx, tx, memory); err != nil {
			return err
		}
		updated, err = db.New().MemoryReplace(ctx, tx, db.MemoryReplaceParams{
			ProjectID: memory.ProjectID, ID: memory.ID, Content: change.Content, ContentHash: d.hash, Tags: object(change.Tags),
			Metadata: object(change.Metadata), ExpiresAt: change.ExpiresAt, EmbeddingDue: d.due,
		})
		if err != nil {
			return fmt.Errorf("update memory %s: %w", memory.ID, err)
		}
		return index(ctx, tx, updated, stored.ID, d)
	})
	return updated, err
}

// Retract makes a valid memory history. The error may be ErrNotFound, ErrInvalidated or a *VersionError.
func (w *Writer) Retract(ctx context.Context, target Target, author Author) (db.Memory, error) {
	var retracted db.Memory
	err := db.InTx(ctx, w.conn, func(tx pgx.Tx) error {
		memory, err := lockValid(ctx, tx, target)
		if err != nil {
			return err
		}
		if retracted, err = invalidate(ctx, tx, memory, nil); err != nil {
			return err
		}
		return assert(ctx, tx, author, Result{Outcome: db.MemoryOutcomeRetracted, Memory: retracted}, retracted.Content, false)
	})
	return retracted, err
}

// Delete deletes a memory, valid or not; its assertions stay. The error may be ErrNotFound or a *VersionError.
func (w *Writer) Delete(ctx context.Context, target Target) error {
	return db.InTx(ctx, w.conn, func(tx pgx.Tx) error {
		memory, err := lock(ctx, tx, target)
		if err != nil {
			return err
		}
		if err := unindex(ctx, tx, memory); err != nil {
			return err
		}
		if _, err := db.New().MemoryDelete(ctx, tx, db.MemoryDeleteParams{ProjectID: memory.ProjectID, ID: memory.ID}); err != nil {
			return fmt.Errorf("delete memory %s: %w", memory.ID, err)
		}
		return nil
	})
}

// DeleteStore deletes a store with its memories and assertions. The error may be ErrStoreNotFound.
func (w *Writer) DeleteStore(ctx context.Context, projectID, id uuid.UUID) error {
	return db.InTx(ctx, w.conn, func(tx pgx.Tx) error {
		queries := db.New()
		if _, err := queries.MemoryStoreLock(ctx, tx, db.MemoryStoreLockParams{ProjectID: projectID, ID: id}); err != nil {
			return storeError(err, id)
		}
		if err := queries.MemoryUnindexStore(ctx, tx, db.MemoryUnindexStoreParams{ProjectID: projectID, StoreID: id}); err != nil {
			return fmt.Errorf("take memory store %s out of the searches: %w", id, err)
		}
		if _, err := queries.MemoryStoreDelete(ctx, tx, db.MemoryStoreDeleteParams{ProjectID: projectID, ID: id}); err != nil {
			return fmt.Errorf("delete memory store %s: %w", id, err)
		}
		return nil
	})
}

// lockValid is lock for a memory that must be valid.
func lockValid(ctx context.Context, tx pgx.Tx, target Target) (db.Memory, error) {
	memory, err := lock(ctx, tx, target)
	if err == nil && memory.InvalidatedAt != nil {
		err = ErrInvalidated
	}
	return memory, err
}

// lock keeps others from writing to the memory's store, and gives the memory if it is the version that the caller expects.
func lock(ctx context.Context, tx pgx.Tx, target Target) (db.Memory, error) {
	_, err := db.New().MemoryStoreLockByMemory(ctx, tx, db.MemoryStoreLockByMemoryParams{ProjectID: target.ProjectID, MemoryID: target.ID})
	if err != nil {
		return db.Memory{}, memoryError(err, target.ID)
	}
	memory, err := db.New().MemoryLock(ctx, tx, db.MemoryLockParams{ProjectID: target.ProjectID, ID: target.ID})
	if err != nil {
		return db.Memory{}, memoryError(err, target.ID)
	}
	if target.ExpectedVersion != nil && *target.ExpectedVersion != memory.Version {
		return db.Memory{}, &VersionError{Current: memory.Version}
	}
	return memory, nil
}
