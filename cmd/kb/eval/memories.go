package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
)

// memoryBatch is how many memories one batch writes between two signs of progress.
const memoryBatch = 200

// OfMemories says whether the set's documents are memories: then each names its store.
func (s *Set) OfMemories() bool { return len(s.Documents) > 0 && s.Documents[0].Store != "" }

// LoadMemories puts a set of memories into the stores of a scratch project, through the product's own writes, without
// de-duplication: judgements are about each of them. What is there already stays; see Load.
func LoadMemories(ctx context.Context, pool *pgxpool.Pool, writer *memory.Writer, set *Set, fingerprint string, progress func(done int)) (*Loaded, error) {
	project, err := scratchProject(ctx, pool, set, fingerprint)
	if err != nil {
		return nil, err
	}
	loaded := &Loaded{ProjectID: project.ID, names: map[uuid.UUID]string{}, stores: map[string]uuid.UUID{}}
	started := time.Now()
	byStore := map[string][]Document{}
	for _, document := range set.Documents {
		if strings.TrimSpace(document.Text+document.Title) != "" {
			byStore[document.Store] = append(byStore[document.Store], document)
		}
	}
	changed, done := false, 0
	for name, documents := range byStore {
		there, err := loaded.openStore(ctx, pool, name)
		if err != nil {
			return nil, err
		}
		documents = slices.DeleteFunc(documents, func(d Document) bool { return there[d.ID] })
		done += len(there)
		progress(done)
		for batch := range slices.Chunk(documents, memoryBatch) {
			entries := make([]memory.Entry, len(batch))
			for i, document := range batch {
				entries[i] = memory.Entry{Content: strings.TrimSpace(document.Title + "\n" + document.Text), SourceType: db.MemorySourceManual, SourceID: &document.ID}
			}
			results, err := writer.WriteBatch(ctx, memory.Options{
				ProjectID: project.ID, StoreID: loaded.stores[name], Deduplicate: new(bool), Author: memory.Author{Mechanism: db.MemoryMechanismApi, Principal: "eval"},
			}, entries)
			if err != nil {
				return nil, fmt.Errorf("load %s: %w", set.Name, err)
			}
			for i, result := range results {
				loaded.names[result.Memory.ID] = batch[i].ID
			}
			changed = true
			done += len(batch)
			progress(done)
		}
	}
	if changed {
		loaded.Took = time.Since(started)
	}
	return loaded, loaded.finish(ctx, pool, changed)
}

// openStore finds the store of a name, or makes it, and gives the set's ids of the memories that are there.
func (l *Loaded) openStore(ctx context.Context, pool *pgxpool.Pool, name string) (map[string]bool, error) {
	there := map[string]bool{}
	stores, err := db.New().MemoryStoreList(ctx, pool, db.MemoryStoreListParams{ProjectID: l.ProjectID, MaxResults: 100_000})
	if err != nil {
		return nil, fmt.Errorf("list the stores of the scratch project: %w", err)
	}
	for _, store := range stores {
		if store.Name == name {
			l.stores[name] = store.ID
		}
	}
	if _, found := l.stores[name]; !found {
		store, err := db.New().MemoryStoreInsert(ctx, pool, db.MemoryStoreInsertParams{ProjectID: l.ProjectID, ID: db.NewID(), Name: name, Tags: json.RawMessage("{}")})
		if err != nil {
			return nil, fmt.Errorf("make the store %s: %w", name, err)
		}
		l.stores[name] = store.ID
		return there, nil
	}
	rows, err := db.New().MemoryExport(ctx, pool, db.MemoryExportParams{
		ProjectID: l.ProjectID, StoreID: l.stores[name], IncludeInvalidated: true, StoreTags: json.RawMessage("{}"), MaxResults: 1 << 30,
	})
	if err != nil {
		return nil, fmt.Errorf("list the memories of store %s: %w", name, err)
	}
	for _, row := range rows {
		if row.SourceID != nil {
			there[*row.SourceID] = true
			l.names[row.ID] = *row.SourceID
		}
	}
	return there, nil
}
