package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
)

var errSearchTimeout = errors.New("the search took too long")

func (s *Server) registerSearch(api huma.API) {
	register(s, api, operation{
		ID: "search", Method: http.MethodPost, Path: "/api/v1/search", Tag: "Search",
		Summary: "Search",
		Description: "Hybrid search: BM25 and vector similarity, fused by reciprocal rank with a bonus for the top ranks of either. " +
			"The query is text as a person writes it; nothing in it is an operator. A row is a chunk.",
		Action: "knowledge:SearchKnowledge", Reads: true,
		Errors: []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable},
	}, s.search)
}

type searchInput struct {
	Body searchRequest
}

type searchRequest struct {
	Query    string   `json:"query" minLength:"1" doc:"What to look for" example:"how to change oil"`
	Top      int      `json:"top,omitempty" minimum:"1" default:"10" doc:"The largest number of results; more than 100 are cut to 100"`
	Tags     []string `json:"tags,omitempty" maxItems:"100" doc:"Only documents that carry all of these tags"`
	DocType  string   `json:"doc_type,omitempty" maxLength:"100" doc:"Only documents of this type" example:"markdown"`
	FTSOnly  bool     `json:"fts_only,omitempty" doc:"Full text search (BM25) alone"`
	VecOnly  bool     `json:"vec_only,omitempty" doc:"Vector search alone"`
	MinScore float64  `json:"min_score,omitempty" minimum:"0" doc:"Leaves out results whose fused score is lower"`
	Explain  bool     `json:"explain,omitempty" doc:"Adds the parts of the score to each result"`
}

type searchOutput struct {
	Body searchResponse
}

type searchResponse struct {
	_            struct{}       `additionalProperties:"true"`
	Query        string         `json:"query" doc:"The query as it was sent"`
	Status       string         `json:"status" enum:"strict_hit,too_many,loose_hit,vector_only,no_hit" doc:"How well the search was answered"`
	Banner       *string        `json:"banner" doc:"A text to show word for word with loose_hit and vector_only; else null"`
	Results      []searchResult `json:"results" doc:"The results, best first"`
	TotalMatches int            `json:"total_matches" doc:"The number of fused candidates before the cut to top"`
	Reranked     bool           `json:"reranked" doc:"Whether a cross-encoder has ordered the results"`
	Degraded     []string       `json:"degraded,omitempty" doc:"The arms that could not take part" enum:"semantic"`
}

type searchResult struct {
	_               struct{}          `additionalProperties:"true"`
	ChunkID         string            `json:"chunk_id" doc:"The chunk's id"`
	DocumentID      string            `json:"document_id" doc:"Its document's id"`
	Title           string            `json:"title" doc:"The document's title"`
	Path            *string           `json:"path" doc:"Where the document stands in the caller's own tree; null for a note without a path"`
	DocType         string            `json:"doc_type" doc:"The document's type"`
	KnowledgeType   *string           `json:"knowledge_type" doc:"What kind of knowledge it is, in the caller's own words"`
	Filename        string            `json:"filename" doc:"The name of the uploaded file"`
	Section         string            `json:"section" doc:"The headings above the chunk"`
	Page            *int32            `json:"page" doc:"Its page in the source, from 1; null where there are none"`
	Seq             int32             `json:"seq" doc:"Its place in the document, from 0"`
	Text            string            `json:"text" doc:"The chunk's text"`
	Score           float64           `json:"score" doc:"The fused score; its order counts, its size does not"`
	SimilarityScore *float64          `json:"similarity_score,omitempty" doc:"Cosine similarity of query and chunk, whichever arm found it; absent without a vector"`
	Tags            []string          `json:"tags" doc:"The document's tag names, sorted"`
	TagContexts     map[string]string `json:"tag_contexts" doc:"The descriptions of those tags that have one"`
	Metadata        json.RawMessage   `json:"metadata" doc:"The document's metadata"`
	DocumentVersion int32             `json:"document_version" doc:"The version of the document that the chunk belongs to"`
	CreatedAt       time.Time         `json:"created_at" doc:"When the document was ingested"`
	UpdatedAt       *time.Time        `json:"updated_at" doc:"When it last changed; null until the first change"`
	Explain         *searchExplain    `json:"explain,omitempty" doc:"The parts of the score, when asked for"`
}

// searchExplain has the parts of a score; those of an arm that did not find the chunk are null.
type searchExplain struct {
	_          struct{} `additionalProperties:"true"`
	FTSScore   *float64 `json:"fts_score" doc:"BM25"`
	FTSRank    *int64   `json:"fts_rank" doc:"The rank in full text search"`
	VecScore   *float64 `json:"vec_score" doc:"Cosine similarity"`
	VecRank    *int64   `json:"vec_rank" doc:"The rank in vector search"`
	RRFFTS     *float64 `json:"rrf_fts" doc:"What full text search adds to the score"`
	RRFVec     *float64 `json:"rrf_vec" doc:"What vector search adds to the score"`
	Bonus      float64  `json:"bonus" doc:"The bonus for a top rank in either"`
	FinalScore float64  `json:"final_score" doc:"The sum"`
}

func (s *Server) search(ctx context.Context, in *searchInput) (*searchOutput, error) {
	request, err := newSearchRequest(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	response, err := s.runSearch(ctx, request)
	if err != nil {
		return nil, err
	}
	if request.Mode != search.Lexical {
		s.meter(ctx, projectOf(ctx))
	}
	body := searchResponse{
		Query: in.Body.Query, Status: string(response.Status), TotalMatches: response.TotalMatches,
		Results: make([]searchResult, len(response.Rows)),
	}
	if banner := response.Status.Banner(); banner != "" {
		body.Banner = &banner
	}
	if response.Degraded {
		body.Degraded = []string{"semantic"}
	}
	for i, row := range response.Rows {
		if body.Results[i], err = newSearchResult(row, in.Body.Explain); err != nil {
			return nil, err
		}
	}
	return &searchOutput{Body: body}, nil
}

// runSearch searches within the time limit.
func (s *Server) runSearch(ctx context.Context, request search.Request) (search.Response, error) {
	searchCtx, cancel := context.WithTimeoutCause(ctx, s.SearchTimeout, errSearchTimeout)
	defer cancel()
	response, err := s.Searcher.Search(searchCtx, request)
	if err != nil && context.Cause(searchCtx) != nil && ctx.Err() == nil {
		return search.Response{}, fmt.Errorf("%w: %w", context.Cause(searchCtx), err)
	}
	return response, err
}

func newSearchRequest(ctx context.Context, body searchRequest) (search.Request, error) {
	if strings.TrimSpace(body.Query) == "" {
		return search.Request{}, errInvalid("body.query", "The query is blank; write what to look for.")
	}
	request := search.Request{
		Projects: []uuid.UUID{projectOf(ctx)}, Query: body.Query, Documents: true, Limit: body.Top, MinScore: body.MinScore,
		Ranking: search.Ranking{TopRankBonus: true}, DocumentFilter: db.DocumentFilter{DocType: cleanLine(body.DocType), Policies: policies(ctx)},
	}
	switch {
	case body.FTSOnly && body.VecOnly:
		return search.Request{}, errInvalid("body.vec_only", "fts_only and vec_only exclude each other; leave both out for hybrid search.")
	case body.FTSOnly:
		request.Mode = search.Lexical
	case body.VecOnly:
		request.Mode = search.Semantic
	}
	names, err := cleanTags("body.tags", body.Tags)
	request.DocumentFilter.Tags = db.TagPairs(names)
	return request, err
}

func newSearchResult(row db.SearchRow, explain bool) (searchResult, error) {
	tags, err := db.TagNames(row.Tags)
	if err != nil {
		return searchResult{}, fmt.Errorf("document %s: %w", row.ParentID, err)
	}
	result := searchResult{
		ChunkID: publicID(prefixChunk, row.ID), DocumentID: publicID(prefixDocument, row.ParentID), Title: row.Title,
		Path: row.Path, DocType: row.DocType, KnowledgeType: row.KnowledgeType, Filename: row.OriginalFilename, Section: row.Section, Page: row.Page, Seq: row.Seq, Text: row.Content,
		Score: row.Score, Tags: tags, Metadata: row.Metadata, DocumentVersion: row.Version,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: utc(row.DocumentUpdatedAt),
	}
	if err := json.Unmarshal(row.TagContexts, &result.TagContexts); err != nil {
		return searchResult{}, fmt.Errorf("read the tag contexts of document %s: %w", row.ParentID, err)
	}
	if row.HasSimilarity {
		result.SimilarityScore = &row.Similarity
	}
	if explain {
		result.Explain = newSearchExplain(row)
	}
	return result, nil
}

func newSearchExplain(row db.SearchRow) *searchExplain {
	e := &searchExplain{Bonus: row.Bonus, FinalScore: row.Score}
	if row.LexicalRank > 0 {
		e.FTSScore, e.FTSRank, e.RRFFTS = &row.LexicalScore, &row.LexicalRank, &row.LexicalRrf
	}
	if row.SemanticRank > 0 {
		e.VecScore, e.VecRank, e.RRFVec = &row.SemanticScore, &row.SemanticRank, &row.SemanticRrf
	}
	return e
}
