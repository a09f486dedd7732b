package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/db"
)

const getMemoryStore = "memories:GetMemoryStore"

func (s *Server) registerMemoryStores(api huma.API) {
	register(s, api, operation{
		ID: "listMemoryStores", Method: http.MethodGet, Path: "/api/v1/memory-stores", Tag: "Memory stores",
		Summary: "List memory stores, the oldest first", Action: "memories:ListMemoryStores",
	}, s.storeList)
	register(s, api, operation{
		ID: "createMemoryStore", Method: http.MethodPost, Path: "/api/v1/memory-stores", Tag: "Memory stores", Status: http.StatusCreated, ProjectInBody: true,
		Summary: "Make a memory store",
		Description: "A text that is nearer to a memory of the store than duplicate_threshold is skipped, one nearer than supersede_threshold takes its place. " +
			"Where they are null the server's own hold: 0.95 and 0.90.",
		Action: "memories:CreateMemoryStore",
	}, s.storeCreate)
	register(s, api, operation{
		ID: "getMemoryStore", Method: http.MethodGet, Path: "/api/v1/memory-stores/{memory_store_id}", Tag: "Memory stores",
		Summary: "Get a memory store", Action: getMemoryStore,
	}, s.storeGet)
	register(s, api, operation{
		ID: "updateMemoryStore", Method: http.MethodPut, Path: "/api/v1/memory-stores/{memory_store_id}", Tag: "Memory stores",
		Summary: "Replace all that can be set of a memory store", Action: "memories:UpdateMemoryStore",
	}, s.storeUpdate)
	register(s, api, operation{
		ID: "deleteMemoryStore", Method: http.MethodDelete, Path: "/api/v1/memory-stores/{memory_store_id}", Tag: "Memory stores", Status: http.StatusNoContent,
		Summary: "Delete a memory store with all its memories", Action: "memories:DeleteMemoryStore",
	}, s.storeDelete)
	register(s, api, operation{
		ID: "getMemoryStoreTags", Method: http.MethodGet, Path: "/api/v1/memory-stores/{memory_store_id}/tags", Tag: "Memory stores",
		Summary: "Get a memory store's tags", Action: getMemoryStore,
	}, s.storeTagsGet)
	register(s, api, operation{
		ID: "replaceMemoryStoreTags", Method: http.MethodPut, Path: "/api/v1/memory-stores/{memory_store_id}/tags", Tag: "Memory stores",
		Summary: "Replace a memory store's tags", Action: "memories:UpdateMemoryStore",
	}, func(ctx context.Context, in *storeTagsInput) (*tagBagOutput, error) {
		return s.storeTagsSet(ctx, in, false)
	})
	register(s, api, operation{
		ID: "mergeMemoryStoreTags", Method: http.MethodPatch, Path: "/api/v1/memory-stores/{memory_store_id}/tags", Tag: "Memory stores",
		Summary: "Merge tags into a memory store's", Action: "memories:UpdateMemoryStore",
	}, func(ctx context.Context, in *storeTagsInput) (*tagBagOutput, error) {
		return s.storeTagsSet(ctx, in, true)
	})
	register(s, api, operation{
		ID: "listMemoryAssertions", Method: http.MethodGet, Path: "/api/v1/memory-stores/{memory_store_id}/assertions", Tag: "Memory stores",
		Summary: "List what was attempted on a memory store, the last first", Action: "memories:ListMemoryAssertions",
	}, s.assertionList)
}

type storeBody struct {
	_                  struct{}          `additionalProperties:"true"`
	ID                 string            `json:"id" doc:"The store's id" example:"mstore_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	ProjectID          string            `json:"project_id" doc:"Its project"`
	Name               string            `json:"name" doc:"Its name"`
	Description        *string           `json:"description" doc:"What it is for; null when nobody said"`
	Tags               map[string]string `json:"tags" doc:"Its tags"`
	DuplicateThreshold *float64          `json:"duplicate_threshold" doc:"The similarity from which a text is skipped; null for the server's own"`
	SupersedeThreshold *float64          `json:"supersede_threshold" doc:"The similarity from which a text takes a memory's place; null for the server's own"`
	Deduplicate        bool              `json:"deduplicate" doc:"Whether texts are skipped or take another's place at all"`
	CreatedAt          time.Time         `json:"created_at" doc:"When it was made"`
	UpdatedAt          *time.Time        `json:"updated_at" doc:"When it was last changed; null when never"`
}

func newStore(row db.MemoryStore) storeBody {
	return storeBody{
		ID: publicID(prefixMemoryStore, row.ID), ProjectID: publicID(prefixProject, row.ProjectID), Name: row.Name, Description: row.Description,
		Tags: bagOf(row.Tags), DuplicateThreshold: row.DuplicateThreshold, SupersedeThreshold: row.SupersedeThreshold, Deduplicate: row.Deduplicate,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: utc(row.UpdatedAt),
	}
}

type storeOutput struct {
	Body storeBody
}

// StoreRequest is what a caller says of a store. It is exported since huma passes over embedded structs that are not.
type StoreRequest struct {
	Name               string            `json:"name" doc:"The name" example:"Customer preferences"`
	Description        *string           `json:"description,omitempty" nullable:"true" maxLength:"10000" doc:"What it is for"`
	Tags               map[string]string `json:"tags,omitempty" nullable:"true" doc:"Its tags"`
	DuplicateThreshold *float64          `json:"duplicate_threshold,omitempty" nullable:"true" minimum:"0" maximum:"1" doc:"The similarity from which a text is skipped"`
	SupersedeThreshold *float64          `json:"supersede_threshold,omitempty" nullable:"true" minimum:"0" maximum:"1" doc:"The similarity from which a text takes a memory's place; below duplicate_threshold"`
	Deduplicate        *bool             `json:"deduplicate,omitempty" default:"true" doc:"Whether texts are skipped or take another's place at all"`
}

// read checks what is asked of a store.
func (r StoreRequest) read() (name string, tags json.RawMessage, err error) {
	if name, err = cleanName("body.name", r.Name); err != nil {
		return "", nil, err
	}
	if tags, err = tagBag("body.tags", orEmpty(r.Tags)); err != nil {
		return "", nil, err
	}
	if err := memory.CheckThresholds(r.DuplicateThreshold, r.SupersedeThreshold); err != nil {
		return "", nil, memoryError(err)
	}
	return name, tags, nil
}

// orEmpty is a bag that is there.
func orEmpty(bag map[string]string) map[string]string {
	if bag == nil {
		return map[string]string{}
	}
	return bag
}

func (s *Server) storeList(ctx context.Context, in *OffsetInput) (*pageOutput[storeBody], error) {
	rows, err := s.queries.MemoryStoreList(ctx, s.Conn, db.MemoryStoreListParams{
		ProjectID: projectOf(ctx), Policy: seen(ctx), MaxResults: in.size(), Skipped: int32(in.Offset),
	})
	if err != nil {
		return nil, fmt.Errorf("list memory stores: %w", err)
	}
	total, err := s.queries.MemoryStoreCount(ctx, s.Conn, db.MemoryStoreCountParams{ProjectID: projectOf(ctx), Policy: seen(ctx)})
	if err != nil {
		return nil, fmt.Errorf("count memory stores: %w", err)
	}
	return newPage(*in, total, rows, newStore), nil
}

type storeCreateInput struct {
	Body struct {
		StoreRequest
		ProjectID string `json:"project_id,omitempty" doc:"The project, for callers who have several"`
	}
}

func (s *Server) storeCreate(ctx context.Context, in *storeCreateInput) (*storeOutput, error) {
	ctx, err := s.inProject(ctx, in.Body.ProjectID)
	if err != nil {
		return nil, err
	}
	name, tags, err := in.Body.read()
	if err != nil {
		return nil, err
	}
	row := db.MemoryStoreInsertParams{
		ProjectID: projectOf(ctx), ID: db.NewID(), Name: name, Description: in.Body.Description, Tags: tags, DuplicateThreshold: in.Body.DuplicateThreshold,
		SupersedeThreshold: in.Body.SupersedeThreshold, Deduplicate: orTrue(in.Body.Deduplicate),
	}
	if a := accessOf(ctx); !a.mayStore(a.action, db.MemoryStore{ID: row.ID, Tags: tags}) {
		return nil, errForbidden(a.action)
	}
	made, err := s.queries.MemoryStoreInsert(ctx, s.Conn, row)
	if err != nil {
		return nil, fmt.Errorf("make a memory store: %w", err)
	}
	return &storeOutput{Body: newStore(made)}, nil
}

type storeInput struct {
	MemoryStoreID string `path:"memory_store_id" doc:"The store's id"`
}

// findStore gives the store of a public id that the caller may do the operation to, or the error that says there is none.
func (s *Server) findStore(ctx context.Context, public string) (db.MemoryStore, error) {
	row, err := s.getStore(ctx, public)
	if err != nil {
		return db.MemoryStore{}, err
	}
	switch a := accessOf(ctx); {
	case a.mayStore(a.action, row):
		return row, nil
	case a.write && a.mayStore(getMemoryStore, row):
		return db.MemoryStore{}, errForbidden(a.action)
	default:
		return db.MemoryStore{}, errNotFound("memory store")
	}
}

// getStore gives a store of the request's project, whoever asks.
func (s *Server) getStore(ctx context.Context, public string) (db.MemoryStore, error) {
	id, ok := parseID(prefixMemoryStore, public)
	if !ok {
		return db.MemoryStore{}, errNotFound("memory store")
	}
	row, err := s.queries.MemoryStoreGet(ctx, s.Conn, db.MemoryStoreGetParams{ProjectID: projectOf(ctx), ID: id})
	if db.Kind(err) == db.KindNotFound {
		return db.MemoryStore{}, errNotFound("memory store")
	}
	if err != nil {
		return db.MemoryStore{}, fmt.Errorf("get memory store %s: %w", id, err)
	}
	return row, nil
}

func (s *Server) storeGet(ctx context.Context, in *storeInput) (*storeOutput, error) {
	row, err := s.findStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	return &storeOutput{Body: newStore(row)}, nil
}

type storeUpdateInput struct {
	MemoryStoreID string `path:"memory_store_id" doc:"The store's id"`
	Body          StoreRequest
}

func (s *Server) storeUpdate(ctx context.Context, in *storeUpdateInput) (*storeOutput, error) {
	found, err := s.findStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	name, tags, err := in.Body.read()
	if err != nil {
		return nil, err
	}
	row, err := s.queries.MemoryStoreReplace(ctx, s.Conn, db.MemoryStoreReplaceParams{
		ProjectID: found.ProjectID, ID: found.ID, Name: name, Description: in.Body.Description, Tags: tags, DuplicateThreshold: in.Body.DuplicateThreshold,
		SupersedeThreshold: in.Body.SupersedeThreshold, Deduplicate: orTrue(in.Body.Deduplicate),
	})
	if err != nil {
		return nil, goneStore(found.ID, err)
	}
	return &storeOutput{Body: newStore(row)}, nil
}

// goneStore is the error of a change of a store that was there a moment ago.
func goneStore(id uuid.UUID, err error) error {
	if db.Kind(err) == db.KindNotFound || errors.Is(err, memory.ErrStoreNotFound) {
		return errNotFound("memory store")
	}
	return fmt.Errorf("change memory store %s: %w", id, err)
}

func (s *Server) storeDelete(ctx context.Context, in *storeInput) (*struct{}, error) {
	found, err := s.findStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	if err := s.Memories.DeleteStore(ctx, found.ProjectID, found.ID); err != nil {
		return nil, goneStore(found.ID, err)
	}
	return &struct{}{}, nil
}

func (s *Server) storeTagsGet(ctx context.Context, in *storeInput) (*tagBagOutput, error) {
	row, err := s.findStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	return &tagBagOutput{Body: bagOf(row.Tags)}, nil
}

type storeTagsInput struct {
	MemoryStoreID string            `path:"memory_store_id" doc:"The store's id"`
	Body          map[string]string `doc:"The tags"`
}

func (s *Server) storeTagsSet(ctx context.Context, in *storeTagsInput, merge bool) (*tagBagOutput, error) {
	found, err := s.findStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	tags, err := tagBag("body", orEmpty(in.Body))
	if err != nil {
		return nil, err
	}
	row, err := s.queries.MemoryStoreSetTags(ctx, s.Conn, db.MemoryStoreSetTagsParams{ProjectID: found.ProjectID, ID: found.ID, Tags: tags, Merge: merge})
	if err != nil {
		return nil, goneStore(found.ID, err)
	}
	return &tagBagOutput{Body: bagOf(row.Tags)}, nil
}

type assertionListInput struct {
	OffsetInput
	MemoryStoreID string    `path:"memory_store_id" doc:"The store's id"`
	Mechanism     string    `query:"mechanism" enum:"tool,rule,api,formation" doc:"Only those made that way"`
	Outcome       string    `query:"outcome" enum:"created,superseded,skipped,retracted" doc:"Only those that ended so"`
	GenerationID  string    `query:"generation_id" doc:"Only those of this generation"`
	Since         time.Time `query:"since" doc:"Only those at this time or later (RFC 3339)"`
}

type assertionBody struct {
	_             struct{}  `additionalProperties:"true"`
	ID            string    `json:"id" doc:"The assertion's id"`
	MemoryStoreID string    `json:"memory_store_id" doc:"The store"`
	MemoryID      *string   `json:"memory_id" doc:"The memory that it made, found or retracted; null once that is deleted"`
	Content       string    `json:"content" doc:"The text"`
	Mechanism     string    `json:"mechanism" enum:"tool,rule,api,formation" doc:"How it was made"`
	Principal     string    `json:"principal" doc:"Who made it; empty for a caller without a name"`
	Outcome       string    `json:"outcome" enum:"created,superseded,skipped,retracted" doc:"What came of it"`
	Similarity    *float64  `json:"similarity" doc:"The similarity to the nearest memory; null when none was looked for, or none was there"`
	Declared      bool      `json:"declared" doc:"Whether it named the memory to supersede"`
	RuleID        *string   `json:"rule_id" doc:"The rule that made it"`
	GenerationID  *string   `json:"generation_id" doc:"The generation that it was made in"`
	CreatedAt     time.Time `json:"created_at" doc:"When it was made"`
}

func newAssertion(row db.MemoryAssertion) assertionBody {
	return assertionBody{
		ID: publicID(prefixAssertion, row.ID), MemoryStoreID: publicID(prefixMemoryStore, row.StoreID), MemoryID: publicIDPointer(prefixMemory, row.MemoryID),
		Content: row.Content, Mechanism: string(row.Mechanism), Principal: row.Principal, Outcome: string(row.Outcome), Similarity: row.Similarity,
		Declared: row.Declared, RuleID: row.RuleID, GenerationID: row.GenerationID, CreatedAt: row.CreatedAt.UTC(),
	}
}

func (s *Server) assertionList(ctx context.Context, in *assertionListInput) (*pageOutput[assertionBody], error) {
	store, err := s.findStore(ctx, in.MemoryStoreID)
	if err != nil {
		return nil, err
	}
	policy, _, err := compileMemories(accessOf(ctx).principal, store.ProjectID, accessOf(ctx).action)
	if err != nil {
		return nil, err
	}
	params := db.MemoryAssertionListParams{
		ProjectID: store.ProjectID, StoreID: store.ID, Since: bound(in.Since), Policy: policy, StoreTags: store.Tags, MaxResults: in.size(), Skipped: int32(in.Offset),
	}
	if in.Mechanism != "" {
		mechanism := db.MemoryMechanism(in.Mechanism)
		params.Mechanism = &mechanism
	}
	if in.Outcome != "" {
		outcome := db.MemoryOutcome(in.Outcome)
		params.Outcome = &outcome
	}
	if in.GenerationID != "" {
		params.GenerationID = &in.GenerationID
	}
	rows, err := s.queries.MemoryAssertionList(ctx, s.Conn, params)
	if err != nil {
		return nil, fmt.Errorf("list the assertions of memory store %s: %w", store.ID, err)
	}
	total, err := s.queries.MemoryAssertionCount(ctx, s.Conn, db.MemoryAssertionCountParams{
		ProjectID: params.ProjectID, StoreID: params.StoreID, Mechanism: params.Mechanism, Outcome: params.Outcome, GenerationID: params.GenerationID,
		Since: params.Since, Policy: policy, StoreTags: store.Tags,
	})
	if err != nil {
		return nil, fmt.Errorf("count the assertions of memory store %s: %w", store.ID, err)
	}
	return newPage(in.OffsetInput, total, rows, newAssertion), nil
}
