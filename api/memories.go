package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
)

const (
	getMemory    = "memories:GetMemory"
	createMemory = "memories:CreateMemory"
	updateMemory = "memories:UpdateMemory"
	// maxMemoryBody holds a batch of a thousand memories with their tags and metadata.
	maxMemoryBody = 80 << 20
)

func (s *Server) registerMemories(api huma.API) {
	written := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[writtenBody](), true, "")
	register(s, api, operation{
		ID: "listMemories", Method: http.MethodGet, Path: "/api/v1/memories", Tag: "Memories",
		Summary: "List a store's memories, the oldest first", Action: "memories:ListMemories",
	}, s.memoryList)
	register(s, api, operation{
		ID: "createMemory", Method: http.MethodPost, Path: "/api/v1/memories", Tag: "Memories", Status: http.StatusCreated, ProjectInBody: true,
		Summary: "Write a memory",
		Description: "A text that the store has already is skipped (200, with the memory that is there), a similar one takes the place of the memory that it is " +
			"most similar to (200, with the new one), any other is created (201). Only memories that you may get are looked at. Searches find it at once. Every attempt leaves an assertion.",
		Action: createMemory, MaxBodyBytes: 1 << 20,
		Responses: map[string]*huma.Response{"200": {
			Description: "The memory that is there already, or one that took another's place",
			Content:     map[string]*huma.MediaType{"application/json": {Schema: written}},
		}},
	}, s.memoryCreate)
	register(s, api, operation{
		ID: "createMemories", Method: http.MethodPost, Path: "/api/v1/memories/batch", Tag: "Memories", ProjectInBody: true,
		Summary: "Write up to a thousand memories, all or none", Description: "Each sees those before it. With dry_run nothing is changed.",
		Action: createMemory, MaxBodyBytes: maxMemoryBody, Errors: []int{http.StatusRequestEntityTooLarge},
	}, s.memoryBatch)
	register(s, api, operation{
		ID: "getMemory", Method: http.MethodGet, Path: "/api/v1/memories/{memory_id}", Tag: "Memories",
		Summary: "Get a memory, whether it is valid or not", Action: getMemory,
	}, s.memoryGet)
	register(s, api, operation{
		ID: "updateMemory", Method: http.MethodPut, Path: "/api/v1/memories/{memory_id}", Tag: "Memories",
		Summary:     "Replace a memory's text, tags, metadata and expiry",
		Description: "With expected_version, or If-Match, a memory that has changed since it was read is 409.",
		Action:      updateMemory, Errors: []int{http.StatusConflict},
	}, s.memoryUpdate)
	register(s, api, operation{
		ID: "patchMemory", Method: http.MethodPatch, Path: "/api/v1/memories/{memory_id}", Tag: "Memories",
		Summary: "Change what is sent of a memory, and nothing else", Action: updateMemory, Errors: []int{http.StatusConflict},
	}, s.memoryPatch)
	register(s, api, operation{
		ID: "deleteMemory", Method: http.MethodDelete, Path: "/api/v1/memories/{memory_id}", Tag: "Memories", Status: http.StatusNoContent,
		Summary: "Delete a memory", Action: "memories:DeleteMemory", Errors: []int{http.StatusConflict},
	}, s.memoryDelete)
	register(s, api, operation{
		ID: "retractMemory", Method: http.MethodPost, Path: "/api/v1/memories/{memory_id}/retract", Tag: "Memories",
		Summary: "Invalidate a memory; it stays readable by its id", Action: "memories:RetractMemory", Errors: []int{http.StatusConflict},
	}, s.memoryRetract)
	register(s, api, operation{
		ID: "getMemoryTags", Method: http.MethodGet, Path: "/api/v1/memories/{memory_id}/tags", Tag: "Memories",
		Summary: "Get a memory's tags", Action: getMemory,
	}, s.memoryTagsGet)
	register(s, api, operation{
		ID: "replaceMemoryTags", Method: http.MethodPut, Path: "/api/v1/memories/{memory_id}/tags", Tag: "Memories",
		Summary: "Replace a memory's tags", Action: updateMemory,
	}, func(ctx context.Context, in *memoryTagsInput) (*tagBagOutput, error) {
		return s.memoryTagsSet(ctx, in, false)
	})
	register(s, api, operation{
		ID: "mergeMemoryTags", Method: http.MethodPatch, Path: "/api/v1/memories/{memory_id}/tags", Tag: "Memories",
		Summary: "Merge tags into a memory's", Action: updateMemory,
	}, func(ctx context.Context, in *memoryTagsInput) (*tagBagOutput, error) {
		return s.memoryTagsSet(ctx, in, true)
	})
}

// MemoryBody is a memory. It is exported since huma passes over embedded structs that are not.
type MemoryBody struct {
	_                    struct{}          `additionalProperties:"true"`
	ID                   string            `json:"id" doc:"The memory's id" example:"mem_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	MemoryStoreID        string            `json:"memory_store_id" doc:"Its store"`
	Content              string            `json:"content" doc:"Its text"`
	SourceType           string            `json:"source_type" enum:"manual,conversation" doc:"Where it comes from"`
	SourceID             *string           `json:"source_id" doc:"The id of that, in the caller's own words"`
	Tags                 map[string]string `json:"tags" doc:"Its tags"`
	Metadata             json.RawMessage   `json:"metadata" doc:"Its metadata"`
	ExpiresAt            *time.Time        `json:"expires_at" doc:"When it is forgotten; null for never"`
	InvalidatedAt        *time.Time        `json:"invalidated_at" doc:"When it was retracted or superseded; null while it is valid"`
	SupersededByMemoryID *string           `json:"superseded_by_memory_id" doc:"The memory that took its place"`
	Version              int32             `json:"version" doc:"Counts from 1"`
	CreatedAt            time.Time         `json:"created_at" doc:"When it was written"`
	UpdatedAt            time.Time         `json:"updated_at" doc:"When it was last changed"`
}

func newMemory(row db.Memory) MemoryBody {
	return MemoryBody{
		ID: publicID(prefixMemory, row.ID), MemoryStoreID: publicID(prefixMemoryStore, row.StoreID), Content: row.Content, SourceType: string(row.SourceType),
		SourceID: row.SourceID, Tags: bagOf(row.Tags), Metadata: row.Metadata, ExpiresAt: utc(row.ExpiresAt), InvalidatedAt: utc(row.InvalidatedAt),
		SupersededByMemoryID: publicIDPointer(prefixMemory, row.SupersededBy), Version: row.Version, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
}

type memoryOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match"`
	Body MemoryBody
}

func newMemoryOutput(row db.Memory) *memoryOutput {
	return &memoryOutput{ETag: etag(row.Version), Body: newMemory(row)}
}

func etag(version int32) string { return strconv.Quote(strconv.Itoa(int(version))) }

type writtenBody struct {
	MemoryBody
	Outcome            string   `json:"outcome" enum:"created,superseded,skipped" doc:"What came of it"`
	Similarity         *float64 `json:"similarity" doc:"The similarity to the nearest memory; null when none was looked for, or none was there"`
	SupersededMemoryID *string  `json:"superseded_memory_id" doc:"The memory whose place it took"`
}

func newWritten(result memory.Result) writtenBody {
	return writtenBody{
		MemoryBody: newMemory(result.Memory), Outcome: string(result.Outcome), Similarity: result.Similarity,
		SupersededMemoryID: publicIDPointer(prefixMemory, result.Superseded),
	}
}

// MemoryEntry is a memory as a caller writes it. It is exported since huma passes over embedded structs that are not.
type MemoryEntry struct {
	Content    string            `json:"content" doc:"The text" example:"Prefers email to phone calls"`
	SourceType string            `json:"source_type,omitempty" enum:"manual,conversation" doc:"Where it comes from. Defaults to manual"`
	SourceID   *string           `json:"source_id,omitempty" nullable:"true" maxLength:"1000" doc:"The id of that, in your own words"`
	Tags       map[string]string `json:"tags,omitempty" nullable:"true" doc:"Its tags"`
	Metadata   json.RawMessage   `json:"metadata,omitempty" doc:"Its metadata, a JSON object"`
	ExpiresAt  *time.Time        `json:"expires_at,omitempty" nullable:"true" doc:"When it is forgotten"`
	Supersedes string            `json:"supersedes,omitempty" doc:"The memory whose place it takes, whatever else is similar"`
}

// MemoryOptions are how memories are written. It is exported since huma passes over embedded structs that are not.
type MemoryOptions struct {
	MemoryStoreID      string   `json:"memory_store_id" doc:"The store"`
	ProjectID          string   `json:"project_id,omitempty" doc:"The project, for callers who have several"`
	DuplicateThreshold *float64 `json:"duplicate_threshold,omitempty" minimum:"0" maximum:"1" doc:"The similarity from which a text is skipped. Defaults to the store's"`
	SupersedeThreshold *float64 `json:"supersede_threshold,omitempty" minimum:"0" maximum:"1" doc:"The similarity from which a text takes a memory's place. Defaults to the store's"`
	Deduplicate        *bool    `json:"deduplicate,omitempty" doc:"Whether texts are skipped or take another's place at all. Defaults to the store's"`
	Mechanism          string   `json:"mechanism,omitempty" enum:"tool,rule,api,formation" default:"api" doc:"How it is made, for the assertion"`
	RuleID             *string  `json:"rule_id,omitempty" maxLength:"1000" doc:"The rule that makes it, for the assertion"`
	GenerationID       *string  `json:"generation_id,omitempty" maxLength:"1000" doc:"The generation that it is made in, for the assertion"`
}

// entry checks a memory as it is sent. field is where it stands in the request.
func (s *Server) entry(ctx context.Context, field string, m MemoryEntry, store db.MemoryStore) (memory.Entry, error) {
	entry := memory.Entry{Content: m.Content, SourceType: db.MemorySource(cmp.Or(m.SourceType, string(db.MemorySourceManual))), SourceID: m.SourceID, ExpiresAt: m.ExpiresAt}
	var err error
	if entry.Tags, err = tagBag(field+".tags", orEmpty(m.Tags)); err != nil {
		return entry, err
	}
	if entry.Metadata, err = memoryMetadata(field+".metadata", m.Metadata); err != nil {
		return entry, err
	}
	if a := accessOf(ctx); !a.mayMemory(createMemory, db.Memory{Tags: entry.Tags}, store) {
		return entry, errForbidden(createMemory)
	}
	if m.Supersedes == "" {
		return entry, nil
	}
	target, _, err := s.findMemoryFor(ctx, m.Supersedes, updateMemory)
	entry.Supersedes = &target.ID
	return entry, err
}

// memoryMetadata reads an object; absent and null are an empty one.
func memoryMetadata(field string, value json.RawMessage) (json.RawMessage, error) {
	if string(value) == "null" {
		value = nil
	}
	return parseMetadata(field, string(value))
}

// options finds the store of a write that the caller may see.
func (s *Server) options(ctx context.Context, o MemoryOptions) (memory.Options, db.MemoryStore, error) {
	store, err := s.getStore(ctx, o.MemoryStoreID)
	if err != nil {
		return memory.Options{}, store, err
	}
	a := accessOf(ctx)
	if !a.mayMemory(getMemory, db.Memory{}, store) && !a.mayMemory(createMemory, db.Memory{}, store) && !a.mayStore(getMemoryStore, store) {
		return memory.Options{}, store, errNotFound("memory store")
	}
	policy, _, err := compileMemories(a.principal, store.ProjectID, getMemory)
	if err != nil {
		return memory.Options{}, store, err
	}
	return memory.Options{
		ProjectID: store.ProjectID, StoreID: store.ID, Policy: policy, DuplicateThreshold: o.DuplicateThreshold, SupersedeThreshold: o.SupersedeThreshold, Deduplicate: o.Deduplicate,
		Author: memory.Author{
			Mechanism: db.MemoryMechanism(cmp.Or(o.Mechanism, string(db.MemoryMechanismApi))), Principal: a.principal.Subject, RuleID: o.RuleID, GenerationID: o.GenerationID,
		},
	}, store, nil
}

// memoryError gives a caller's mistake its form.
func memoryError(err error) error {
	var invalid *memory.InvalidError
	var version *memory.VersionError
	var entry *memory.EntryError
	switch {
	case errors.As(err, &invalid):
		field := "body." + invalid.Field
		if errors.As(err, &entry) {
			field = fmt.Sprintf("body.memories[%d].%s", entry.Index, invalid.Field)
		}
		return errInvalid(field, "%s %s.", invalid.Field, invalid.Message)
	case errors.As(err, &version):
		return &Error{
			status: http.StatusConflict, Short: "conflict", Code: "version_conflict", Message: "The memory has changed since it was read.",
			meta: map[string]any{"current_version": version.Current},
		}
	case errors.Is(err, memory.ErrInvalidated):
		return &Error{status: http.StatusConflict, Short: "conflict", Code: "memory_already_invalidated", Message: "The memory has been invalidated already."}
	case errors.Is(err, memory.ErrStoreNotFound):
		return errNotFound("memory store")
	case errors.Is(err, memory.ErrNotFound):
		return errNotFound("memory")
	}
	return err
}

type memoryCreateInput struct {
	Body struct {
		MemoryOptions
		MemoryEntry
	}
}

type memoryCreateOutput struct {
	Status int
	ETag   string `header:"ETag" doc:"The version, for If-Match"`
	Body   writtenBody
}

func (s *Server) memoryCreate(ctx context.Context, in *memoryCreateInput) (*memoryCreateOutput, error) {
	ctx, err := s.inProject(ctx, in.Body.ProjectID)
	if err != nil {
		return nil, err
	}
	options, store, err := s.options(ctx, in.Body.MemoryOptions)
	if err != nil {
		return nil, err
	}
	entry, err := s.entry(ctx, "body", in.Body.MemoryEntry, store)
	if err != nil {
		return nil, err
	}
	result, err := s.Memories.Write(ctx, options, entry)
	if err != nil {
		return nil, memoryError(err)
	}
	out := &memoryCreateOutput{Status: http.StatusOK, ETag: etag(result.Memory.Version), Body: newWritten(result)}
	if result.Outcome == db.MemoryOutcomeCreated {
		out.Status = http.StatusCreated
	}
	return out, nil
}

type memoryBatchInput struct {
	Body struct {
		MemoryOptions
		Memories []MemoryEntry `json:"memories" minItems:"1" maxItems:"1000" doc:"The memories, in order"`
		DryRun   bool          `json:"dry_run,omitempty" doc:"Answers what would happen, and changes nothing; the ids of new memories are of none"`
	}
}

type memoryBatchOutput struct {
	Body memoryBatchBody
}

type memoryBatchBody struct {
	_       struct{}      `additionalProperties:"true"`
	Results []writtenBody `json:"results" doc:"What came of each, in the order in which they were sent"`
	DryRun  bool          `json:"dry_run" doc:"Whether nothing was changed"`
}

func (s *Server) memoryBatch(ctx context.Context, in *memoryBatchInput) (*memoryBatchOutput, error) {
	ctx, err := s.inProject(ctx, in.Body.ProjectID)
	if err != nil {
		return nil, err
	}
	options, store, err := s.options(ctx, in.Body.MemoryOptions)
	if err != nil {
		return nil, err
	}
	options.DryRun = in.Body.DryRun
	entries := make([]memory.Entry, len(in.Body.Memories))
	for i, m := range in.Body.Memories {
		if entries[i], err = s.entry(ctx, fmt.Sprintf("body.memories[%d]", i), m, store); err != nil {
			return nil, err
		}
	}
	results, err := s.Memories.WriteBatch(ctx, options, entries)
	if err != nil {
		return nil, memoryError(err)
	}
	out := &memoryBatchOutput{Body: memoryBatchBody{DryRun: in.Body.DryRun, Results: make([]writtenBody, len(results))}}
	for i, result := range results {
		out.Body.Results[i] = newWritten(result)
	}
	return out, nil
}

type memoryListInput struct {
	OffsetInput
	MemoryStoreID      string   `query:"memory_store_id" required:"true" doc:"The store"`
	IncludeInvalidated bool     `query:"include_invalidated" doc:"Also those that are retracted, superseded or expired"`
	Tags               []string `query:"tags,explode" maxItems:"100" doc:"Only memories that carry all of these tags, each as key:value"`
}

func (s *Server) memoryList(ctx context.Context, in *memoryListInput) (*pageOutput[MemoryBody], error) {
	tags, err := readPairs("query.tags", in.Tags)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(tags)
	if err != nil {
		return nil, err
	}
	store, err := s.getStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	if a := accessOf(ctx); !a.mayMemory(a.action, db.Memory{}, store) && !a.mayStore(getMemoryStore, store) {
		return nil, errNotFound("memory store")
	}
	rows, err := s.queries.MemoryList(ctx, s.Conn, db.MemoryListParams{
		ProjectID: store.ProjectID, StoreID: store.ID, IncludeInvalidated: in.IncludeInvalidated, Tags: encoded, Policy: seen(ctx), StoreTags: store.Tags,
		MaxResults: in.size(), Skipped: int32(in.Offset),
	})
	if err != nil {
		return nil, fmt.Errorf("list the memories of store %s: %w", store.ID, err)
	}
	total, err := s.queries.MemoryCount(ctx, s.Conn, db.MemoryCountParams{
		ProjectID: store.ProjectID, StoreID: store.ID, IncludeInvalidated: in.IncludeInvalidated, Tags: encoded, Policy: seen(ctx), StoreTags: store.Tags,
	})
	if err != nil {
		return nil, fmt.Errorf("count the memories of store %s: %w", store.ID, err)
	}
	return newPage(in.OffsetInput, total, rows, newMemory), nil
}

// findMemory gives the memory of a public id that the caller may do the operation to, or the error that says there is none.
func (s *Server) findMemory(ctx context.Context, public string) (db.Memory, error) {
	row, _, err := s.findMemoryFor(ctx, public, accessOf(ctx).action)
	return row, err
}

func (s *Server) findMemoryFor(ctx context.Context, public, action string) (db.Memory, db.MemoryStore, error) {
	id, ok := parseID(prefixMemory, public)
	if !ok {
		return db.Memory{}, db.MemoryStore{}, errNotFound("memory")
	}
	row, err := s.queries.MemoryGet(ctx, s.Conn, db.MemoryGetParams{ProjectID: projectOf(ctx), ID: id})
	if db.Kind(err) == db.KindNotFound {
		return db.Memory{}, db.MemoryStore{}, errNotFound("memory")
	}
	if err != nil {
		return db.Memory{}, db.MemoryStore{}, fmt.Errorf("get memory %s: %w", id, err)
	}
	store, err := s.queries.MemoryStoreGet(ctx, s.Conn, db.MemoryStoreGetParams{ProjectID: row.ProjectID, ID: row.StoreID})
	if db.Kind(err) == db.KindNotFound {
		return db.Memory{}, db.MemoryStore{}, errNotFound("memory")
	}
	if err != nil {
		return db.Memory{}, db.MemoryStore{}, fmt.Errorf("get the store of memory %s: %w", id, err)
	}
	switch a := accessOf(ctx); {
	case a.mayMemory(action, row, store):
		return row, store, nil
	case a.write && a.mayMemory(getMemory, row, store):
		return db.Memory{}, store, errForbidden(action)
	default:
		return db.Memory{}, store, errNotFound("memory")
	}
}

type memoryInput struct {
	MemoryID string `path:"memory_id" doc:"The memory's id"`
}

func (s *Server) memoryGet(ctx context.Context, in *memoryInput) (*memoryOutput, error) {
	row, err := s.findMemory(ctx, in.MemoryID)
	if err != nil {
		return nil, err
	}
	return newMemoryOutput(row), nil
}

// expectedVersion reads the version that the caller has read, from the body and from If-Match.
func expectedVersion(inBody *int32, ifMatch string) (*int32, error) {
	ifMatch = strings.Trim(strings.TrimPrefix(strings.TrimSpace(ifMatch), "W/"), `"`)
	if ifMatch == "" || ifMatch == "*" {
		return inBody, nil
	}
	version, err := strconv.ParseInt(ifMatch, 10, 32)
	if err != nil {
		return nil, errInvalid("header.If-Match", "If-Match is no version, such as \"3\".")
	}
	matched := int32(version)
	if inBody != nil && *inBody != matched {
		return nil, errInvalid("body.expected_version", "expected_version and If-Match name two versions; send one.")
	}
	return &matched, nil
}

type memoryUpdateInput struct {
	MemoryID string `path:"memory_id" doc:"The memory's id"`
	IfMatch  string `header:"If-Match" doc:"The version that you have read"`
	Body     struct {
		Content         string            `json:"content" doc:"The text"`
		Tags            map[string]string `json:"tags,omitempty" nullable:"true" doc:"The tags"`
		Metadata        json.RawMessage   `json:"metadata,omitempty" doc:"The metadata, a JSON object"`
		ExpiresAt       *time.Time        `json:"expires_at,omitempty" nullable:"true" doc:"When it is forgotten"`
		ExpectedVersion *int32            `json:"expected_version,omitempty" minimum:"1" doc:"The version that you have read"`
	}
}

func (s *Server) memoryUpdate(ctx context.Context, in *memoryUpdateInput) (*memoryOutput, error) {
	found, err := s.findMemory(ctx, in.MemoryID)
	if err != nil {
		return nil, err
	}
	version, err := expectedVersion(in.Body.ExpectedVersion, in.IfMatch)
	if err != nil {
		return nil, err
	}
	change := memory.Change{Content: in.Body.Content, ExpiresAt: in.Body.ExpiresAt}
	if change.Tags, err = tagBag("body.tags", orEmpty(in.Body.Tags)); err != nil {
		return nil, err
	}
	if change.Metadata, err = memoryMetadata("body.metadata", in.Body.Metadata); err != nil {
		return nil, err
	}
	row, err := s.Memories.Update(ctx, memory.Target{ProjectID: found.ProjectID, ID: found.ID, ExpectedVersion: version}, change)
	if err != nil {
		return nil, memoryError(err)
	}
	return newMemoryOutput(row), nil
}

type memoryPatchInput struct {
	MemoryID string `path:"memory_id" doc:"The memory's id"`
	IfMatch  string `header:"If-Match" doc:"The version that you have read"`
	Body     struct {
		Content         *string           `json:"content,omitempty" doc:"The text"`
		Tags            map[string]string `json:"tags,omitempty" doc:"The tags, in place of the present ones"`
		Metadata        json.RawMessage   `json:"metadata,omitempty" doc:"The metadata, in place of the present ones"`
		ExpiresAt       *time.Time        `json:"expires_at,omitempty" doc:"When it is forgotten"`
		ExpectedVersion *int32            `json:"expected_version,omitempty" minimum:"1" doc:"The version that you have read"`
	}
}

// memoryPatch changes a memory as it is at the moment: one that somebody else changes meanwhile is read again, unless the
// caller has named the version.
func (s *Server) memoryPatch(ctx context.Context, in *memoryPatchInput) (*memoryOutput, error) {
	wanted, err := expectedVersion(in.Body.ExpectedVersion, in.IfMatch)
	if err != nil {
		return nil, err
	}
	for {
		found, err := s.findMemory(ctx, in.MemoryID)
		if err != nil {
			return nil, err
		}
		change := memory.Change{Content: found.Content, Tags: found.Tags, Metadata: found.Metadata, ExpiresAt: found.ExpiresAt}
		if in.Body.Content != nil {
			change.Content = *in.Body.Content
		}
		if in.Body.Tags != nil {
			if change.Tags, err = tagBag("body.tags", in.Body.Tags); err != nil {
				return nil, err
			}
		}
		if in.Body.Metadata != nil {
			if change.Metadata, err = memoryMetadata("body.metadata", in.Body.Metadata); err != nil {
				return nil, err
			}
		}
		if in.Body.ExpiresAt != nil {
			change.ExpiresAt = in.Body.ExpiresAt
		}
		row, err := s.Memories.Update(ctx, memory.Target{ProjectID: found.ProjectID, ID: found.ID, ExpectedVersion: cmp.Or(wanted, &found.Version)}, change)
		var changed *memory.VersionError
		if errors.As(err, &changed) && wanted == nil {
			continue
		}
		if err != nil {
			return nil, memoryError(err)
		}
		return newMemoryOutput(row), nil
	}
}

type memoryDeleteInput struct {
	MemoryID string `path:"memory_id" doc:"The memory's id"`
	IfMatch  string `header:"If-Match" doc:"The version that you have read"`
}

// target names the memory of a change.
func (s *Server) target(ctx context.Context, public, ifMatch string) (memory.Target, error) {
	found, err := s.findMemory(ctx, public)
	if err != nil {
		return memory.Target{}, err
	}
	version, err := expectedVersion(nil, ifMatch)
	return memory.Target{ProjectID: found.ProjectID, ID: found.ID, ExpectedVersion: version}, err
}

func (s *Server) memoryDelete(ctx context.Context, in *memoryDeleteInput) (*struct{}, error) {
	target, err := s.target(ctx, in.MemoryID, in.IfMatch)
	if err != nil {
		return nil, err
	}
	if err := s.Memories.Delete(ctx, target); err != nil {
		return nil, memoryError(err)
	}
	return &struct{}{}, nil
}

func (s *Server) memoryRetract(ctx context.Context, in *memoryDeleteInput) (*memoryOutput, error) {
	target, err := s.target(ctx, in.MemoryID, in.IfMatch)
	if err != nil {
		return nil, err
	}
	row, err := s.Memories.Retract(ctx, target, memory.Author{Mechanism: db.MemoryMechanismApi, Principal: accessOf(ctx).principal.Subject})
	if err != nil {
		return nil, memoryError(err)
	}
	return newMemoryOutput(row), nil
}

func (s *Server) memoryTagsGet(ctx context.Context, in *memoryInput) (*tagBagOutput, error) {
	row, err := s.findMemory(ctx, in.MemoryID)
	if err != nil {
		return nil, err
	}
	return &tagBagOutput{Body: bagOf(row.Tags)}, nil
}

type memoryTagsInput struct {
	MemoryID string            `path:"memory_id" doc:"The memory's id"`
	Body     map[string]string `doc:"The tags"`
}

func (s *Server) memoryTagsSet(ctx context.Context, in *memoryTagsInput, merge bool) (*tagBagOutput, error) {
	found, err := s.findMemory(ctx, in.MemoryID)
	if err != nil {
		return nil, err
	}
	tags, err := tagBag("body", orEmpty(in.Body))
	if err != nil {
		return nil, err
	}
	row, err := s.queries.MemorySetTags(ctx, s.Conn, db.MemorySetTagsParams{ProjectID: found.ProjectID, ID: found.ID, Tags: tags, Merge: merge})
	if err != nil {
		return nil, goneMemory(found.ID, err)
	}
	return &tagBagOutput{Body: bagOf(row.Tags)}, nil
}

// goneMemory is the error of a change of a memory that was there a moment ago.
func goneMemory(id uuid.UUID, err error) error {
	if db.Kind(err) == db.KindNotFound {
		return errNotFound("memory")
	}
	return fmt.Errorf("change memory %s: %w", id, err)
}
