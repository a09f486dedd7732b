package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
)

// Knowledge has what a knowledge search takes where its request says nothing.
type Knowledge struct {
	// RRFK is the k of reciprocal rank fusion.
	RRFK int32
	// HalfLifeDays is the half-life of memories; 0 is no decay.
	HalfLifeDays float64
	Fusion       search.Fusion
}

const (
	searchKnowledge  = "knowledge:SearchKnowledge"
	createEmbeddings = "embeddings:CreateEmbeddings"
	// maxProjects bounds the projects of one search.
	maxProjects = 1000
)

func (s *Server) registerKnowledge(api huma.API) {
	register(s, api, operation{
		ID: "searchKnowledge", Method: http.MethodPost, Path: "/api/v1/knowledge/search", Tag: "Knowledge", Global: true, Reads: true,
		Summary: "Search knowledge",
		Description: "Searches documents and memories: by a query, whose vector and words are looked for in both, or by filters alone. At least one of query, " +
			"tags, document_paths, document_ids, memory_store_ids and metadata is needed. Without project_id it reaches every project in which the caller may search. " +
			"In the words of a query, a \"quoted phrase\" must be there and a -word must not; the vector channel knows no operators.",
		Action: searchKnowledge, Errors: []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable},
	}, s.knowledgeSearch)
}

type knowledgeInput struct {
	Project string `header:"X-Project-Id" doc:"The same as project_id"`
	Body    knowledgeRequest
}

type knowledgeRequest struct {
	ProjectID           string            `json:"project_id,omitempty" doc:"Only this project" example:"proj_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	Query               string            `json:"query,omitempty" doc:"What to look for" example:"customer communication preferences"`
	MinSimilarity       float64           `json:"min_similarity,omitempty" minimum:"0" maximum:"1" doc:"The least cosine similarity of a candidate of the vector channel; what the words found is exempt" example:"0.5"`
	RRFK                int32             `json:"rrf_k,omitempty" minimum:"1" maximum:"1000000" doc:"The k of reciprocal rank fusion. Defaults to KNOWLEDGE_RRF_K" example:"60"`
	RecencyHalfLifeDays *float64          `json:"recency_half_life_days,omitempty" minimum:"0" doc:"Halves the score of memories with each such time since their last change; 0 is no decay. Defaults to KNOWLEDGE_RECENCY_HALF_LIFE_DAYS" example:"30"`
	Limit               int               `json:"limit,omitempty" minimum:"1" default:"10" doc:"The largest number of results; more than 100 are cut to 100"`
	IncludeDocuments    *bool             `json:"include_documents,omitempty" default:"true" doc:"Whether documents are searched"`
	IncludeMemories     *bool             `json:"include_memories,omitempty" default:"true" doc:"Whether memories are searched"`
	MemoryStoreIDs      []string          `json:"memory_store_ids,omitempty" maxItems:"1000" doc:"Of memories, only those of these stores"`
	DocumentPaths       []string          `json:"document_paths,omitempty" maxItems:"1000" doc:"Of documents, only those whose path starts with one of these; _ and % mean themselves"`
	DocumentIDs         []string          `json:"document_ids,omitempty" maxItems:"1000" doc:"Of documents, only these"`
	Tags                map[string]string `json:"tags,omitempty" doc:"Only documents and memories with all of these tags; a memory may have them through its store"`
	Metadata            json.RawMessage   `json:"metadata,omitempty" doc:"Of documents, only those whose metadata meet all of these conditions: a value that must be equal, or an object of in, gt, gte, lt and lte"`

	CreatedAfter  *time.Time `json:"created_after,omitempty" doc:"Only what was created at this time or later"`
	CreatedBefore *time.Time `json:"created_before,omitempty" doc:"Only what was created before this time"`
	UpdatedAfter  *time.Time `json:"updated_after,omitempty" doc:"Only what was changed last, or created, at this time or later"`
	UpdatedBefore *time.Time `json:"updated_before,omitempty" doc:"Only what was changed last, or created, before this time"`

	Offset    int               `json:"offset,omitempty" minimum:"0" maximum:"1000000" doc:"How many results to pass over"`
	Fusion    string            `json:"fusion,omitempty" enum:"rrf,blend" doc:"How both channels become one ranking: by rank, or by cosine plus half of BM25 as a share of the best. Defaults to KB_SEARCH__FUSION"`
	Weights   *knowledgeWeights `json:"weights,omitempty" doc:"How much each channel counts"`
	GroupBy   string            `json:"group_by,omitempty" enum:"document" doc:"Takes at most group_size passages of each document; others move up"`
	Rerank    bool              `json:"rerank,omitempty" doc:"Has a cross-encoder order the first results, where the server has one"`
	GroupSize int               `json:"group_size,omitempty" minimum:"1" maximum:"100" doc:"For group_by. Defaults to 1"`
	Highlight bool              `json:"highlight,omitempty" doc:"Adds what was found with the words in <mark>, as HTML"`
	Explain   bool              `json:"explain,omitempty" doc:"Adds the parts of each score, and how many candidates each filter, floor and limit removed"`
	Why       []string          `json:"why,omitempty" maxItems:"100" doc:"Documents to say of at which step they dropped out"`
}

type knowledgeWeights struct {
	Vector  float64 `json:"vector" minimum:"0" maximum:"1000" doc:"The weight of the vector channel"`
	Lexical float64 `json:"lexical" minimum:"0" maximum:"1000" doc:"The weight of the lexical channel"`
}

type knowledgeOutput struct {
	Body knowledgeResponse
}

type knowledgeResponse struct {
	_        struct{}          `additionalProperties:"true"`
	Results  []knowledgeResult `json:"results" doc:"The results, best first"`
	Total    *int              `json:"total,omitempty" doc:"How many candidates there are on all pages; with offset, group_by or explain"`
	Degraded []string          `json:"degraded,omitempty" enum:"semantic" doc:"The channels that could not take part"`
	Reranked *bool             `json:"reranked,omitempty" doc:"Whether a cross-encoder has ordered the results; scores then are from 0 to 1. There with rerank"`
	Explain  json.RawMessage   `json:"explain,omitempty" doc:"How many candidates there were, and what removed others; the filters' counts are of documents"`
	Why      []knowledgeWhy    `json:"why,omitempty" doc:"What became of the documents that were asked about"`
}

func (s *Server) knowledgeSearch(ctx context.Context, in *knowledgeInput) (*knowledgeOutput, error) {
	body := in.Body
	documents, memories, err := body.stores()
	if err != nil {
		return nil, err
	}
	scope, err := s.knowledgeScope(ctx, in)
	if err != nil {
		return nil, err
	}
	request, err := body.request(scope)
	if err != nil {
		return nil, err
	}
	request.Documents, request.Memories = documents, memories
	if body.Query == "" {
		return s.knowledgeList(ctx, body, request)
	}
	if scope.billed == uuid.Nil {
		return nil, errForbidden(createEmbeddings)
	}
	if err := s.fillRanking(ctx, &request, body); err != nil {
		return nil, err
	}
	response, err := runSearch(ctx, s, s.Searcher.Search, request)
	if err != nil {
		return nil, err
	}
	s.meter(ctx, scope.billed)
	return newKnowledge(body, response)
}

// stores says which stores are searched: with a query both, else those that its filters are about.
func (r knowledgeRequest) stores() (documents, memories bool, err error) {
	includeDocuments, includeMemories := orTrue(r.IncludeDocuments), orTrue(r.IncludeMemories)
	ofDocuments := len(r.DocumentPaths)+len(r.DocumentIDs) > 0 || len(r.Metadata) > 0 && string(r.Metadata) != "{}"
	ofMemories := len(r.MemoryStoreIDs) > 0
	ofBoth := r.Query != "" || len(r.Tags) > 0
	switch {
	case !includeDocuments && !includeMemories:
		return false, false, errInvalid("body.include_documents", "Neither store would be searched; leave out include_documents or include_memories.")
	case r.Query != "" && strings.TrimSpace(r.Query) == "":
		return false, false, errInvalid("body.query", "The query is blank; write what to look for, or leave it out.")
	case !ofDocuments && !ofMemories && !ofBoth:
		return false, false, errInvalid("body", "Send at least one of query, tags, document_paths, document_ids, memory_store_ids and metadata.")
	}
	return includeDocuments && (ofBoth || ofDocuments), includeMemories && (ofBoth || ofMemories), nil
}

// knowledgeScope is where a caller's search reaches.
type knowledgeScope struct {
	projects []uuid.UUID
	// documents and memories are the compiled policies by project; a project that is not among them is not restricted.
	documents, memories map[string]json.RawMessage
	// billed is the project whose usage a query's embedding counts as; nil when there is none.
	billed uuid.UUID
}

// knowledgeScope finds the projects of a search: the one that is named, which the caller must see, or all in which the caller
// may search.
func (s *Server) knowledgeScope(ctx context.Context, in *knowledgeInput) (knowledgeScope, error) {
	scope := knowledgeScope{documents: map[string]json.RawMessage{}, memories: map[string]json.RawMessage{}}
	p := accessOf(ctx).principal
	named, err := in.named()
	if err != nil {
		return scope, err
	}
	var projects []uuid.UUID
	if named != "" || p.Default != nil {
		project, err := s.findProject(ctx, p, named)
		if isNotFound(err) {
			return scope, errForbidden(searchKnowledge)
		}
		if err != nil {
			return scope, err
		}
		projects = []uuid.UUID{project}
	} else if projects, err = s.projectsOf(ctx, p, maxProjects); err != nil {
		return scope, err
	}
	for _, project := range projects {
		documents, noDocuments, err := compileFilter(p, project, searchKnowledge, auth.KindDocument)
		if err != nil {
			return scope, err
		}
		memories, noMemories, err := compileMemories(p, project, searchKnowledge)
		if err != nil {
			return scope, err
		}
		if noDocuments && noMemories {
			continue
		}
		scope.projects = append(scope.projects, project)
		for policies, policy := range map[*map[string]json.RawMessage]json.RawMessage{&scope.documents: documents, &scope.memories: memories} {
			if policy != nil {
				(*policies)[project.String()] = policy
			}
		}
		if scope.billed == uuid.Nil && p.MayTry(createEmbeddings, publicID(prefixProject, project), auth.KindProject) {
			scope.billed = project
		}
	}
	if named != "" && len(scope.projects) == 0 {
		return scope, errForbidden(searchKnowledge)
	}
	return scope, nil
}

// named is the project that the request names, in its header or its body.
func (in *knowledgeInput) named() (string, error) {
	if in.Project != "" && in.Body.ProjectID != "" && in.Project != in.Body.ProjectID {
		return "", errInvalid("body."+projectQuery, "The request names two projects; name one.")
	}
	return cmp.Or(in.Body.ProjectID, in.Project), nil
}

// request checks the filters and writes the request as a search.
func (r knowledgeRequest) request(scope knowledgeScope) (search.Request, error) {
	request := search.Request{
		Projects: scope.projects, Query: r.Query, Operators: true, Limit: min(r.Limit, search.MaxLimit), Offset: r.Offset,
		MinSimilarity: r.MinSimilarity, Rerank: r.Rerank, Explain: r.Explain, Highlight: r.Highlight,
		DocumentFilter: db.DocumentFilter{
			Tags: r.Tags, CreatedAfter: r.CreatedAfter, CreatedBefore: r.CreatedBefore, UpdatedAfter: r.UpdatedAfter, UpdatedBefore: r.UpdatedBefore,
			Policies: scope.documents,
		},
		MemoryFilter: db.MemoryFilter{
			Tags: r.Tags, CreatedAfter: r.CreatedAfter, CreatedBefore: r.CreatedBefore, UpdatedAfter: r.UpdatedAfter, UpdatedBefore: r.UpdatedBefore,
			Policies: scope.memories,
		},
	}
	if err := checkTags("body.tags", r.Tags); err != nil {
		return request, err
	}
	if err := filterMetadata(&request.DocumentFilter, "body.metadata", string(r.Metadata)); err != nil {
		return request, err
	}
	for _, prefix := range r.DocumentPaths {
		request.DocumentFilter.Paths = append(request.DocumentFilter.Paths, cleanPrefix(prefix))
	}
	for _, list := range []struct {
		field, prefix string
		public        []string
		ids           *db.UUIDs
	}{
		{"body.document_ids", prefixDocument, r.DocumentIDs, &request.DocumentFilter.IDs},
		{"body.memory_store_ids", prefixMemoryStore, r.MemoryStoreIDs, &request.MemoryFilter.Stores},
		{"body.why", prefixDocument, r.Why, (*db.UUIDs)(&request.Why)},
	} {
		for _, public := range list.public {
			id, ok := parseID(list.prefix, public)
			if !ok {
				return request, errInvalid(list.field, "An id is not one of kb's: it has the form %s_ and 26 characters.", list.prefix)
			}
			*list.ids = append(*list.ids, id)
		}
	}
	if r.GroupBy != "" {
		request.GroupSize = max(r.GroupSize, 1)
	} else if r.GroupSize > 0 {
		return request, errInvalid("body.group_size", "group_size needs group_by.")
	}
	return request, nil
}

// fillRanking puts the defaults where the request says nothing: those of its project, if it is one, and then the server's.
func (s *Server) fillRanking(ctx context.Context, request *search.Request, r knowledgeRequest) (err error) {
	if len(request.Projects) == 1 {
		if request.Tuning, err = s.tuningOf(ctx, request.Projects[0]); err != nil {
			return err
		}
	}
	ranking := &request.Ranking
	*ranking = search.Ranking{RRFK: s.Knowledge.RRFK, HalfLifeDays: s.Knowledge.HalfLifeDays}
	if request.Tuning.RRFK != nil {
		ranking.RRFK = *request.Tuning.RRFK
	}
	if ranking.Fusion, err = fusionOf(request.Tuning, s.Knowledge.Fusion); err != nil {
		return err
	}
	if r.RRFK > 0 {
		ranking.RRFK = r.RRFK
	}
	if r.RecencyHalfLifeDays != nil {
		ranking.HalfLifeDays = *r.RecencyHalfLifeDays
	}
	if r.Fusion != "" {
		if ranking.Fusion, err = search.ParseFusion(r.Fusion); err != nil {
			return err
		}
	}
	if r.Weights != nil {
		ranking.SemanticWeight, ranking.LexicalWeight = r.Weights.Vector, r.Weights.Lexical
	}
	return nil
}

// knowledgeList answers a request without a query.
func (s *Server) knowledgeList(ctx context.Context, body knowledgeRequest, request search.Request) (*knowledgeOutput, error) {
	out := &knowledgeOutput{Body: knowledgeResponse{Results: []knowledgeResult{}}}
	documents, err := request.DocumentFilter.JSON()
	if err != nil {
		return nil, err
	}
	memories, err := request.MemoryFilter.JSON()
	if err != nil {
		return nil, err
	}
	rows, err := s.queries.KnowledgeList(ctx, s.Conn, db.KnowledgeListParams{
		ProjectIds: request.Projects, IncludeDocuments: request.Documents, IncludeMemories: request.Memories, DocumentFilter: documents,
		MemoryFilter: memories, Skip: int32(request.Offset), MaxResults: int32(request.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list knowledge: %w", err)
	}
	for _, row := range rows {
		result, err := newKnowledgeResult(db.SearchRow{
			IsMemory: row.IsMemory, ProjectID: row.ProjectID, ParentID: row.ParentID, ID: row.ID, Title: row.Title, Path: row.Path, Tags: row.Tags,
			Metadata: row.Metadata, Version: row.Version, OriginalFilename: row.OriginalFilename, Size: row.Size, StoreName: row.StoreName,
			CreatedAt: row.CreatedAt, DocumentUpdatedAt: row.DocumentUpdatedAt, MemoryUpdatedAt: row.MemoryUpdatedAt, Page: row.Page, Content: row.Content,
		}, RerankExplain{}, knowledgeRequest{Query: body.Query})
		if err != nil {
			return nil, err
		}
		out.Body.Results = append(out.Body.Results, result)
	}
	return out, nil
}
