package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
)

const (
	ndjson = "application/x-ndjson"
	// exportBatch is how many memories an export reads at once.
	exportBatch = 500
	// maxImportBytes bounds the size of an import; memory.MaxBatch bounds its memories.
	maxImportBytes = 64 << 20
)

func (s *Server) registerMemoryIO(api huma.API) {
	register(s, api, operation{
		ID: "exportMemories", Method: http.MethodGet, Path: "/api/v1/memory-stores/{memory_store_id}/export", Tag: "Memory stores",
		Summary: "Export a store's memories, one JSON object a line", Action: "memories:ExportMemories",
		Responses: map[string]*huma.Response{"200": {
			Description: "The memories, the oldest first", Content: map[string]*huma.MediaType{ndjson: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}},
	}, s.memoryExport)
	register(s, api, operation{
		ID: "importMemories", Method: http.MethodPost, Path: "/api/v1/memory-stores/{memory_store_id}/import", Tag: "Memory stores",
		Summary: "Import memories, one JSON object a line as an export has them, all or none",
		Description: "Takes up to 10,000 lines and 64 MiB. Texts, sources, tags, metadata, expiry and times are kept; ids are new, and what an export " +
			"marks as invalidated is passed over. Nothing is skipped or superseded unless deduplicate says so.",
		Action: createMemory, MaxBodyBytes: maxImportBytes, Errors: []int{http.StatusRequestEntityTooLarge},
	}, s.memoryImport)
}

type memoryExportInput struct {
	MemoryStoreID      string `path:"memory_store_id" doc:"The store's id"`
	IncludeInvalidated bool   `query:"include_invalidated" doc:"Also those that are retracted, superseded or expired"`
}

// memoryExport writes memories as it reads them. One that breaks off has no line break at its end.
func (s *Server) memoryExport(ctx context.Context, in *memoryExportInput) (*huma.StreamResponse, error) {
	store, err := s.findStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	policy, _, err := compileMemories(accessOf(ctx).principal, store.ProjectID, accessOf(ctx).action)
	if err != nil {
		return nil, err
	}
	params := db.MemoryExportParams{
		ProjectID: store.ProjectID, StoreID: store.ID, IncludeInvalidated: in.IncludeInvalidated, Policy: policy, StoreTags: store.Tags, MaxResults: exportBatch,
	}
	rows, err := s.queries.MemoryExport(ctx, s.Conn, params)
	if err != nil {
		return nil, fmt.Errorf("export memory store %s: %w", store.ID, err)
	}
	return &huma.StreamResponse{Body: func(out huma.Context) {
		out.SetHeader("Content-Type", ndjson)
		encoder := json.NewEncoder(out.BodyWriter())
		for len(rows) > 0 {
			for _, row := range rows {
				if err := encoder.Encode(newMemory(row)); err != nil {
					return // the caller went away
				}
			}
			last := rows[len(rows)-1]
			params.AfterTime, params.AfterID = &last.CreatedAt, last.ID
			if rows, err = s.queries.MemoryExport(ctx, s.Conn, params); err != nil {
				_ = s.mapError(ctx, "exportMemories", err) // it logs the cause
				panic(http.ErrAbortHandler)                // the answer has begun: the caller must see that it is not whole
			}
		}
	}}, nil
}

// importLine is a line of an import: what an export writes, as far as it is kept.
type importLine struct {
	MemoryEntry
	InvalidatedAt *time.Time `json:"invalidated_at"`
	CreatedAt     *time.Time `json:"created_at"`
	UpdatedAt     *time.Time `json:"updated_at"`
}

type memoryImportInput struct {
	MemoryStoreID string `path:"memory_store_id" doc:"The store's id"`
	Deduplicate   bool   `query:"deduplicate" doc:"Whether texts are skipped or take another's place, as in other writes"`
	DryRun        bool   `query:"dry_run" doc:"Answers what would happen, and changes nothing"`
	RawBody       []byte `contentType:"application/x-ndjson" doc:"The memories"`
}

type memoryImportOutput struct {
	Body memoryImportBody
}

type memoryImportBody struct {
	_          struct{} `additionalProperties:"true"`
	Created    int      `json:"created" doc:"How many memories were created"`
	Superseded int      `json:"superseded" doc:"How many took another's place"`
	Skipped    int      `json:"skipped" doc:"How many were there already"`
	PassedOver int      `json:"passed_over" doc:"How many lines are of memories that are not valid"`
	DryRun     bool     `json:"dry_run" doc:"Whether nothing was changed"`
}

func (s *Server) memoryImport(ctx context.Context, in *memoryImportInput) (*memoryImportOutput, error) {
	options, store, err := s.options(ctx, MemoryOptions{MemoryStoreID: in.MemoryStoreID, Deduplicate: &in.Deduplicate})
	if err != nil {
		return nil, err
	}
	options.DryRun = in.DryRun
	out := &memoryImportOutput{Body: memoryImportBody{DryRun: in.DryRun}}
	entries, lines, err := s.readImport(ctx, in.RawBody, store, &out.Body)
	if err != nil {
		return nil, err
	}
	results, err := s.Memories.WriteBatch(ctx, options, entries)
	var entry *memory.EntryError
	var invalid *memory.InvalidError
	if errors.As(err, &entry) && errors.As(err, &invalid) {
		return nil, errInvalid("body", "Line %d can't be imported: %s %s.", lines[entry.Index], invalid.Field, invalid.Message)
	}
	if err != nil {
		return nil, memoryError(err)
	}
	for _, result := range results {
		switch result.Outcome {
		case db.MemoryOutcomeCreated:
			out.Body.Created++
		case db.MemoryOutcomeSuperseded:
			out.Body.Superseded++
		case db.MemoryOutcomeSkipped:
			out.Body.Skipped++
		}
	}
	return out, nil
}

// readImport reads the lines of an import, and says on which line each entry stands; an error names the line, too.
func (s *Server) readImport(ctx context.Context, body []byte, store db.MemoryStore, counts *memoryImportBody) (entries []memory.Entry, numbers []int, err error) {
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxImportBytes)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var line importLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, nil, errInvalid("body", "Line %d is no memory: it must be a JSON object as an export writes it.", number)
		}
		if line.InvalidatedAt != nil {
			counts.PassedOver++
			continue
		}
		line.Supersedes = ""
		entry, err := s.entry(ctx, fmt.Sprintf("body.line %d", number), line.MemoryEntry, store)
		if err != nil {
			return nil, nil, err
		}
		if !entry.SourceType.Valid() {
			return nil, nil, errInvalid("body", "Line %d has an unknown source_type.", number)
		}
		entry.CreatedAt, entry.UpdatedAt = line.CreatedAt, line.UpdatedAt
		numbers = append(numbers, number)
		if entries = append(entries, entry); len(entries) > memory.MaxBatch {
			return nil, nil, errInvalid("body", "The import has more than %d memories; send it in parts.", memory.MaxBatch)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, errInvalid("body", "The lines can't be read: %v.", err)
	}
	if len(entries) == 0 {
		return nil, nil, errInvalid("body", "The import has no valid memory.")
	}
	return entries, numbers, nil
}
