package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
		Description: "With query: hybrid search, BM25 and vector similarity fused by reciprocal rank with a bonus for the top ranks of either. " +
			"The query is text as a person writes it; nothing in it is an operator. A result is a chunk. " +
			"Without query: structured search by keywords, which in the mode auto tries strict (all keywords), loose (any word) and vector_only (meaning), " +
			"and ends at the first that finds something. A result is a document with its best chunk. Filters and facets are for both.",
		Action: searchKnowledge, Reads: true,
		Errors: []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable},
	}, s.search)
}

type searchInput struct {
	Body searchRequest
}

type searchRequest struct {
	Query    string  `json:"query,omitempty" minLength:"1" doc:"What to look for; without it the search is a structured one" example:"how to change oil"`
	Top      *int    `json:"top,omitempty" minimum:"1" doc:"With query: the largest number of results, 10 when absent; more than 100 are cut to 100"`
	FTSOnly  bool    `json:"fts_only,omitempty" doc:"With query: full text search (BM25) alone"`
	VecOnly  bool    `json:"vec_only,omitempty" doc:"With query: vector search alone"`
	MinScore float64 `json:"min_score,omitempty" minimum:"0" doc:"With query: leaves out results whose fused score is lower, before reranking"`
	Rerank   *bool   `json:"rerank,omitempty" doc:"With query: whether a cross-encoder orders the first results, where the server has one and both arms take part; true when absent"`

	Keywords  keywords `json:"keywords,omitempty" doc:"What to look for: a list, or a string that is split at spaces, in which quotes keep words together; none for everything in scope"`
	QueryText *string  `json:"query_text,omitempty" doc:"The question as it was asked, for the vectors; without it there is no vector_only" example:"the spindle gets hot after an hour"`
	Mode      *string  `json:"mode,omitempty" enum:"auto,strict,loose,vector_only" doc:"How far the structured search may go; auto when absent"`
	From      int      `json:"from,omitempty" minimum:"0" doc:"How many documents to pass over"`
	Size      *int     `json:"size,omitempty" minimum:"0" doc:"The largest number of documents, 10 when absent; from and size together end at KB_SEARCH__MAX_RESULT_WINDOW"`

	Tags          []string        `json:"tags,omitempty" maxItems:"100" doc:"Only documents that carry all of these tags"`
	DocType       string          `json:"doc_type,omitempty" maxLength:"100" doc:"Only documents of this type" example:"markdown"`
	KnowledgeType oneOrMany       `json:"knowledge_type,omitempty" doc:"Only documents of this kind of knowledge, or of one of several"`
	Project       oneOrMany       `json:"project,omitempty" doc:"Only documents whose metadata have this project, or one of several; it is no project of kb's"`
	Equipment     oneOrMany       `json:"equipment,omitempty" doc:"Only documents whose metadata have this equipment, or one of several"`
	ErrorCodes    oneOrMany       `json:"error_codes,omitempty" doc:"Only documents whose metadata have this error code, or one of several"`
	Filters       json.RawMessage `json:"filters,omitempty" doc:"Further keys of metadata, each with the value that it must have, or a list of which it must have one"`

	Facets  []string       `json:"facets,omitempty" maxItems:"20" doc:"Keys of metadata, or knowledge_type or doc_type, whose values are counted over all documents that were found"`
	Tuning  *search.Tuning `json:"tuning,omitempty" doc:"For admins: what goes before the settings of the project and of the server"`
	Explain bool           `json:"explain,omitempty" doc:"Adds the parts of the score to each result"`
}

type searchOutput struct {
	Body searchResponse
}

type searchResponse struct {
	_               struct{}                   `additionalProperties:"true"`
	SearchID        string                     `json:"search_id" doc:"This search, for feedback"`
	Query           string                     `json:"query" doc:"The query as it was sent; empty for a structured search"`
	Status          string                     `json:"status" enum:"strict_hit,too_many,loose_hit,vector_only,no_hit" doc:"How well the search was answered"`
	Banner          *string                    `json:"banner" doc:"A text to show word for word with loose_hit and vector_only; else null"`
	Results         []searchResult             `json:"results" doc:"The results, best first"`
	TotalMatches    int                        `json:"total_matches" doc:"The number of fused candidates before the cut to top; in a structured search, the number of documents on all pages"`
	Reranked        bool                       `json:"reranked" doc:"Whether a cross-encoder has ordered the results; scores then are from 0 to 1"`
	Degraded        []string                   `json:"degraded,omitempty" doc:"The arms that could not take part, in hybrid search" enum:"semantic"`
	Facets          map[string][]search.Bucket `json:"facets,omitempty" doc:"The most frequent values of each key, at most 20; there when asked for, and with too_many"`
	FacetsTruncated map[string]int64           `json:"facets_truncated,omitempty" doc:"How often further values of each key occur; above 0, its list is not exhaustive"`
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
	Score           float64           `json:"score" doc:"The fused score, or after reranking the blended one; its order counts, its size does not"`
	SimilarityScore *float64          `json:"similarity_score,omitempty" doc:"Cosine similarity of query and chunk, whichever arm found it; absent without a vector"`
	Tags            []string          `json:"tags" doc:"The document's tag names, sorted"`
	TagContexts     map[string]string `json:"tag_contexts" doc:"The descriptions of those tags that have one"`
	Metadata        json.RawMessage   `json:"metadata" doc:"The document's metadata"`
	DocumentVersion int32             `json:"document_version" doc:"The version of the document that the chunk belongs to"`
	CreatedAt       time.Time         `json:"created_at" doc:"When the document was ingested"`
	UpdatedAt       *time.Time        `json:"updated_at" doc:"When it last changed; null until the first change"`
	OtherMatches    *int              `json:"other_matches,omitempty" doc:"In a structured search: how many more chunks of the document were found"`
	Explain         *searchExplain    `json:"explain,omitempty" doc:"The parts of the score, when asked for"`
}

// searchExplain has the parts of a score; those of an arm that did not find the chunk are null. In a structured search, fts is
// BM25 and the place by it, vec the cosine similarity of the best of them, and nothing is fused by rank.
type searchExplain struct {
	_        struct{} `additionalProperties:"true"`
	FTSScore *float64 `json:"fts_score" doc:"BM25"`
	FTSRank  *int64   `json:"fts_rank" doc:"The rank in full text search"`
	VecScore *float64 `json:"vec_score" doc:"Cosine similarity"`
	VecRank  *int64   `json:"vec_rank" doc:"The rank in vector search"`
	RRFFTS   *float64 `json:"rrf_fts" doc:"What full text search adds to the score"`
	RRFVec   *float64 `json:"rrf_vec" doc:"What vector search adds to the score"`
	Bonus    float64  `json:"bonus" doc:"The bonus for a top rank in either"`
	RerankExplain
	FinalScore float64 `json:"final_score" doc:"The sum; after reranking, the blend"`
}

// RerankExplain is how reranking came to a score; null where it did not take part. It is exported since huma passes over
// embedded structs that are not.
type RerankExplain struct {
	PreRerankRank *int     `json:"pre_rerank_rank" doc:"The place before reranking"`
	RetrievalNorm *float64 `json:"retrieval_norm" doc:"The score before reranking, from 0 for the least of all candidates to 1 for the best"`
	RerankScore   *float64 `json:"rerank_score" doc:"The cross-encoder's score, from 0 to 1"`
	BlendWeight   *float64 `json:"blend_weight" doc:"The share of retrieval_norm in the score; rerank_score has the rest"`
}

// newRerankExplain is about the i-th result of an answer.
func newRerankExplain(blended []search.Blended, i int) RerankExplain {
	if i >= len(blended) || blended[i].PreRank == 0 {
		return RerankExplain{}
	}
	b := blended[i]
	return RerankExplain{PreRerankRank: &b.PreRank, RetrievalNorm: &b.RetrievalNorm, RerankScore: &b.RerankScore, BlendWeight: &b.Weight}
}

func (s *Server) search(ctx context.Context, in *searchInput) (*searchOutput, error) {
	tuning, err := s.tuning(ctx, in.Body.Tuning)
	if err != nil {
		return nil, err
	}
	filter, err := in.Body.filter(ctx)
	if err != nil {
		return nil, err
	}
	facets, err := cleanFacets(in.Body.Facets)
	if err != nil {
		return nil, err
	}
	var body searchResponse
	if in.Body.Query == "" {
		body, err = s.searchStructured(ctx, in.Body, filter, facets, tuning)
	} else {
		body, err = s.searchHybrid(ctx, in.Body, filter, facets, tuning)
	}
	if err != nil {
		return nil, err
	}
	id := db.NewID()
	body.SearchID, body.Query = publicID(prefixSearch, id), in.Body.Query
	s.searchCount.WithLabelValues(body.Status).Inc()
	return &searchOutput{Body: body}, s.recordSearch(ctx, id, in.Body, body)
}

func (s *Server) searchHybrid(ctx context.Context, in searchRequest, filter db.DocumentFilter, facets []string, tuning search.Tuning) (searchResponse, error) {
	request, err := in.hybrid(projectOf(ctx))
	if err != nil {
		return searchResponse{}, err
	}
	request.DocumentFilter, request.Facets, request.Tuning = filter, facets, tuning
	if request.Ranking.Fusion, err = fusionOf(tuning, search.RRF); err != nil {
		return searchResponse{}, err
	}
	response, err := runSearch(ctx, s, s.Searcher.Search, request)
	if err != nil {
		return searchResponse{}, err
	}
	if request.Mode != search.Lexical {
		s.meter(ctx, projectOf(ctx))
	}
	body := newSearchResponse(response.Status, response.Banner, response.TotalMatches, response.Facets)
	body.Reranked = response.Blended != nil
	if response.Degraded {
		body.Degraded = []string{"semantic"}
	}
	for i, row := range response.Rows {
		result, err := newSearchResult(row, in.Explain)
		if err != nil {
			return searchResponse{}, err
		}
		if result.Explain != nil {
			result.Explain.RerankExplain = newRerankExplain(response.Blended, i)
		}
		body.Results = append(body.Results, result)
	}
	return body, nil
}

func newSearchResponse(status search.Status, banner string, total int, facets search.Facets) searchResponse {
	body := searchResponse{
		Status: string(status), TotalMatches: total, Results: []searchResult{}, Facets: facets.Buckets, FacetsTruncated: facets.Truncated,
	}
	if banner != "" {
		body.Banner = &banner
	}
	return body
}

// runSearch searches within the time limit.
func runSearch[Request, Response any](
	ctx context.Context, s *Server, find func(context.Context, Request) (Response, error), request Request,
) (Response, error) {
	searchCtx, cancel := context.WithTimeoutCause(ctx, s.SearchTimeout, errSearchTimeout)
	defer cancel()
	response, err := find(searchCtx, request)
	if err != nil && context.Cause(searchCtx) != nil && ctx.Err() == nil {
		return response, fmt.Errorf("%w: %w", context.Cause(searchCtx), err)
	}
	return response, err
}

// hybrid reads the parts of a request that only hybrid search has.
func (r searchRequest) hybrid(project uuid.UUID) (search.Request, error) {
	switch {
	case strings.TrimSpace(r.Query) == "":
		return search.Request{}, errInvalid("body.query", "The query is blank; write what to look for.")
	case r.FTSOnly && r.VecOnly:
		return search.Request{}, errInvalid("body.vec_only", "fts_only and vec_only exclude each other; leave both out for hybrid search.")
	}
	if err := refuse("%s belongs to a structured search, which has no query; leave one of them out.",
		said{"mode", r.Mode != nil}, said{"keywords", r.Keywords != nil}, said{"query_text", r.QueryText != nil}, said{"from", r.From > 0}, said{"size", r.Size != nil}); err != nil {
		return search.Request{}, err
	}
	request := search.Request{
		Projects: []uuid.UUID{project}, Query: r.Query, Documents: true, Limit: orTen(r.Top), MinScore: r.MinScore, Rerank: orTrue(r.Rerank),
		Ranking: search.Ranking{TopRankBonus: true},
	}
	switch {
	case r.FTSOnly:
		request.Mode = search.Lexical
	case r.VecOnly:
		request.Mode = search.Semantic
	}
	return request, nil
}

// orTen is a number of results; 10 where nobody says another one.
func orTen(size *int) int {
	if size == nil {
		return 10
	}
	return *size
}

// filter reads what narrows either search.
func (r searchRequest) filter(ctx context.Context) (db.DocumentFilter, error) {
	filter := db.DocumentFilter{DocType: cleanLine(r.DocType), Policies: policies(ctx)}
	if len(r.KnowledgeType) > 0 {
		filter.KnowledgeTypes = db.Texts(r.KnowledgeType)
	}
	if slices.ContainsFunc(r.KnowledgeType, func(text string) bool { return strings.ContainsRune(text, 0) }) {
		return filter, errInvalid("body.knowledge_type", "A value has a zero byte in it.")
	}
	names, err := cleanTags("body.tags", r.Tags)
	if err != nil {
		return filter, err
	}
	filter.Tags = db.TagPairs(names)
	filter.Fields, err = r.fields()
	return filter, err
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
