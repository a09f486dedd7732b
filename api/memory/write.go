package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

// exactRows is the size of a store up to which vectors are compared one by one, as in package search.
const exactRows = 4000

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// Write remembers one text, or says which memory says the same. The error may be ErrStoreNotFound, ErrNotFound (of the memory to
// supersede) or an *InvalidError.
func (w *Writer) Write(ctx context.Context, options Options, entry Entry) (Result, error) {
	results, err := w.WriteBatch(ctx, options, []Entry{entry})
	var wrong *EntryError
	if errors.As(err, &wrong) {
		return Result{}, wrong.Err
	}
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// WriteBatch writes entries one after the other, all of them or none; each sees those before it. The errors are those of Write;
// what is wrong with one entry comes as an *EntryError.
func (w *Writer) WriteBatch(ctx context.Context, options Options, entries []Entry) ([]Result, error) {
	if len(entries) > MaxBatch {
		return nil, &InvalidError{Field: "memories", Message: fmt.Sprintf("has %d entries, must have at most %d", len(entries), MaxBatch)}
	}
	drafts := make([]*draft, len(entries))
	for i, entry := range entries {
		if err := checkContent(entry.Content); err != nil {
			return nil, &EntryError{Index: i, Err: err}
		}
		drafts[i] = &draft{content: entry.Content, hash: contentHash(entry.Content)}
	}
	for {
		results, err := w.try(ctx, options, entries, drafts)
		if !errors.Is(err, errStale) {
			return results, err
		}
	}
}

func (w *Writer) try(ctx context.Context, options Options, entries []Entry, drafts []*draft) ([]Result, error) {
	store, err := db.New().MemoryStoreGet(ctx, w.conn, db.MemoryStoreGetParams{ProjectID: options.ProjectID, ID: options.StoreID})
	if err != nil {
		return nil, storeError(err, options.StoreID)
	}
	if _, _, err := thresholds(options, store); err != nil {
		return nil, err
	}
	if err := w.findKnown(ctx, options, store, entries, drafts); err != nil {
		return nil, err
	}
	stored, err := w.spaces.Current(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.embed(ctx, stored, drafts); err != nil {
		return nil, err
	}
	results := make([]Result, len(entries))
	err = db.InTx(ctx, w.conn, func(tx pgx.Tx) error {
		if err := holdSpace(ctx, tx, stored); err != nil {
			return err
		}
		batch, err := open(ctx, tx, stored, options)
		if err != nil {
			return err
		}
		for i, entry := range entries {
			if results[i], err = batch.write(ctx, entry, drafts[i]); err != nil {
				return &EntryError{Index: i, Err: err}
			}
		}
		if options.DryRun {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	return results, nil
}

// findKnown marks the drafts that need no vector, since the store has their texts.
func (w *Writer) findKnown(ctx context.Context, options Options, store db.MemoryStore, entries []Entry, drafts []*draft) error {
	known := map[string]bool{}
	if deduplicates(options, store) {
		params := db.MemoryHashesKnownParams{ProjectID: options.ProjectID, StoreID: options.StoreID, Policy: options.Policy, StoreTags: store.Tags}
		for _, d := range drafts {
			params.Hashes = append(params.Hashes, d.hash)
		}
		hashes, err := db.New().MemoryHashesKnown(ctx, w.conn, params)
		if err != nil {
			return fmt.Errorf("look for equal texts in memory store %s: %w", options.StoreID, err)
		}
		for _, hash := range hashes {
			known[string(hash)] = true
		}
	}
	for i, d := range drafts {
		d.known = known[string(d.hash)] && entries[i].Supersedes == nil
	}
	return nil
}

// batch is a transaction that holds the lock of the store it writes to.
type batch struct {
	tx                   db.Conn
	options              Options
	storeTags            json.RawMessage
	spaceID              int32
	deduplicate          bool
	duplicate, supersede float64
}

func open(ctx context.Context, tx pgx.Tx, stored embed.Stored, options Options) (*batch, error) {
	store, err := db.New().MemoryStoreLock(ctx, tx, db.MemoryStoreLockParams{ProjectID: options.ProjectID, ID: options.StoreID})
	if err != nil {
		return nil, storeError(err, options.StoreID)
	}
	b := &batch{
		tx: db.WithDimensions(tx, int32(stored.Space().Dimensions)), options: options, storeTags: store.Tags, spaceID: stored.ID,
		deduplicate: deduplicates(options, store),
	}
	b.duplicate, b.supersede, err = thresholds(options, store)
	return b, err
}

// write decides about one entry and carries that out.
func (b *batch) write(ctx context.Context, entry Entry, d *draft) (Result, error) {
	result, err := b.decide(ctx, entry, d)
	if err != nil {
		return Result{}, err
	}
	if result.Outcome != db.MemoryOutcomeSkipped {
		if d.known {
			return Result{}, errStale // The equal text is gone, or the store has begun to keep every text.
		}
		if result.Memory, err = b.insert(ctx, entry, d, result.Superseded); err != nil {
			return Result{}, err
		}
	}
	return result, assert(ctx, b.tx, b.options.Author, result, entry.Content, entry.Supersedes != nil)
}

// decide says what is to come of an entry. Of an entry to be skipped the result has the memory, too.
func (b *batch) decide(ctx context.Context, entry Entry, d *draft) (Result, error) {
	created := Result{Outcome: db.MemoryOutcomeCreated}
	if entry.Supersedes != nil {
		if err := b.checkTarget(ctx, *entry.Supersedes); err != nil {
			return Result{}, err
		}
		return Result{Outcome: db.MemoryOutcomeSuperseded, Superseded: entry.Supersedes}, nil
	}
	if !b.deduplicate {
		return created, nil
	}
	equal, err := db.New().MemoryGetByHash(ctx, b.tx, db.MemoryGetByHashParams{
		ProjectID: b.options.ProjectID, StoreID: b.options.StoreID, ContentHash: d.hash, Policy: b.options.Policy, StoreTags: b.storeTags,
	})
	if err == nil {
		same := 1.0
		return Result{Outcome: db.MemoryOutcomeSkipped, Memory: equal, Similarity: &same}, nil
	}
	if db.Kind(err) != db.KindNotFound {
		return Result{}, fmt.Errorf("look for an equal text: %w", err)
	}
	if d.vector == nil {
		return created, nil
	}
	nearest, err := db.New().MemoryNearest(ctx, b.tx, db.MemoryNearestParams{
		ProjectID: b.options.ProjectID, StoreID: b.options.StoreID, SpaceID: b.spaceID, Vector: *d.vector, ExactRows: exactRows,
		Policy: b.options.Policy, StoreTags: b.storeTags,
	})
	switch {
	case db.Kind(err) == db.KindNotFound:
		return created, nil
	case err != nil:
		return Result{}, fmt.Errorf("look for the nearest memory: %w", err)
	case nearest.Similarity >= b.duplicate:
		return Result{Outcome: db.MemoryOutcomeSkipped, Memory: nearest.Memory, Similarity: &nearest.Similarity}, nil
	case nearest.Similarity >= b.supersede:
		return Result{Outcome: db.MemoryOutcomeSuperseded, Superseded: &nearest.Memory.ID, Similarity: &nearest.Similarity}, nil
	}
	created.Similarity = &nearest.Similarity
	return created, nil
}

// checkTarget says whether the memory that an entry names can be superseded, and keeps it so.
func (b *batch) checkTarget(ctx context.Context, id uuid.UUID) error {
	// Another store's memory is not locked: its writers could wait for this one.
	target, err := db.New().MemoryGet(ctx, b.tx, db.MemoryGetParams{ProjectID: b.options.ProjectID, ID: id})
	if err == nil && target.StoreID != b.options.StoreID {
		return &InvalidError{Field: "supersedes", Message: "must name a memory of the same store"}
	}
	if err == nil {
		target, err = db.New().MemoryLock(ctx, b.tx, db.MemoryLockParams{ProjectID: b.options.ProjectID, ID: id})
	}
	switch {
	case err != nil:
		return memoryError(err, id)
	case target.SupersededBy != nil:
		return &InvalidError{Field: "supersedes", Message: "names a memory that has been superseded already"}
	case target.InvalidatedAt != nil:
		return &InvalidError{Field: "supersedes", Message: "names a memory that has been retracted already"}
	}
	return nil
}

func (b *batch) insert(ctx context.Context, entry Entry, d *draft, superseded *uuid.UUID) (db.Memory, error) {
	queries := db.New()
	memory, err := queries.MemoryInsert(ctx, b.tx, db.MemoryInsertParams{
		ProjectID: b.options.ProjectID, StoreID: b.options.StoreID, ID: db.NewID(), Content: entry.Content, ContentHash: d.hash,
		SourceType: cmp.Or(entry.SourceType, db.MemorySourceManual), SourceID: entry.SourceID, Tags: object(entry.Tags), Metadata: object(entry.Metadata),
		ExpiresAt: entry.ExpiresAt, EmbeddingDue: d.due, CreatedAt: entry.CreatedAt, UpdatedAt: entry.UpdatedAt, Superseded: superseded,
	})
	if err != nil {
		return db.Memory{}, fmt.Errorf("insert memory: %w", err)
	}
	if superseded != nil {
		old := db.Memory{ProjectID: memory.ProjectID, StoreID: memory.StoreID, ID: *superseded}
		if _, err := invalidate(ctx, b.tx, old, &memory.ID); err != nil {
			return db.Memory{}, err
		}
	}
	return memory, index(ctx, b.tx, memory, b.spaceID, d)
}

// assert appends the assertion of an attempt.
func assert(ctx context.Context, tx db.Conn, author Author, result Result, content string, declared bool) error {
	_, err := db.New().MemoryAssertionInsert(ctx, tx, db.MemoryAssertionInsertParams{
		ProjectID: result.Memory.ProjectID, StoreID: result.Memory.StoreID, ID: db.NewID(), MemoryID: result.Memory.ID, Content: content,
		Mechanism: author.Mechanism, Principal: author.Principal, Outcome: result.Outcome, Similarity: result.Similarity, Declared: declared,
		RuleID: author.RuleID, GenerationID: author.GenerationID,
	})
	if err != nil {
		return fmt.Errorf("insert assertion: %w", err)
	}
	return nil
}

// index lets searches find a valid memory, with its words and the vector of its draft.
func index(ctx context.Context, tx db.Conn, memory db.Memory, spaceID int32, d *draft) error {
	err := db.New().MemoryIndex(ctx, tx, db.MemoryIndexParams{
		ProjectID: memory.ProjectID, StoreID: memory.StoreID, ID: memory.ID, SpaceID: spaceID, Vector: d.vector,
	})
	if err != nil {
		return fmt.Errorf("index memory %s: %w", memory.ID, err)
	}
	return nil
}

func unindex(ctx context.Context, tx db.Conn, memory db.Memory) error {
	err := db.New().MemoryUnindex(ctx, tx, db.MemoryUnindexParams{ProjectID: memory.ProjectID, StoreID: memory.StoreID, ID: memory.ID})
	if err != nil {
		return fmt.Errorf("take memory %s out of the searches: %w", memory.ID, err)
	}
	return nil
}

// invalidate makes a valid memory history.
func invalidate(ctx context.Context, tx db.Conn, memory db.Memory, supersededBy *uuid.UUID) (db.Memory, error) {
	if err := unindex(ctx, tx, memory); err != nil {
		return db.Memory{}, err
	}
	invalidated, err := db.New().MemoryInvalidate(ctx, tx, db.MemoryInvalidateParams{
		ProjectID: memory.ProjectID, ID: memory.ID, SupersededBy: supersededBy,
	})
	if err != nil {
		return db.Memory{}, fmt.Errorf("invalidate memory %s: %w", memory.ID, err)
	}
	return invalidated, nil
}

func storeError(err error, id uuid.UUID) error {
	if db.Kind(err) == db.KindNotFound {
		return ErrStoreNotFound
	}
	return fmt.Errorf("read memory store %s: %w", id, err)
}

func memoryError(err error, id uuid.UUID) error {
	if db.Kind(err) == db.KindNotFound {
		return ErrNotFound
	}
	return fmt.Errorf("read memory %s: %w", id, err)
}
