package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
)

// searchFlush is how long answered searches are kept in memory before they are written down.
const searchFlush = time.Second

// searchRecord is a search as it is written down.
type searchRecord struct {
	ProjectID  uuid.UUID       `json:"project_id"`
	ID         uuid.UUID       `json:"id"`
	Principal  string          `json:"principal"`
	Structured bool            `json:"structured"`
	Request    json.RawMessage `json:"request"`
	Status     string          `json:"status"`
	Documents  []uuid.UUID     `json:"documents"`
	Chunks     []uuid.UUID     `json:"chunks"`
	Total      int             `json:"total"`
	CreatedAt  time.Time       `json:"created_at"`
}

// recordSearch has a search written down: for feedback, and for those who tune searches.
func (s *Server) recordSearch(ctx context.Context, id uuid.UUID, request searchRequest, response searchResponse) error {
	if s.Unrecorded || projectOf(ctx) == uuid.Nil {
		return nil
	}
	results := response.Results[:min(len(response.Results), maxRecordedResults)]
	record := searchRecord{
		ProjectID: projectOf(ctx), ID: id, Principal: accessOf(ctx).principal.Subject, Structured: request.Query == "", Status: response.Status,
		Documents: make([]uuid.UUID, len(results)), Chunks: make([]uuid.UUID, len(results)), Total: response.TotalMatches, CreatedAt: time.Now(),
	}
	for i, result := range results {
		record.Documents[i], _ = parseID(prefixDocument, result.DocumentID)
		record.Chunks[i], _ = parseID(prefixChunk, result.ChunkID)
	}
	if !s.LogQueries {
		request.Query, request.QueryText, request.Keywords = "", nil, nil
	}
	var err error
	if record.Request, err = recordedRequest(request); err != nil {
		return err
	}
	s.searches.add(ctx, record)
	return nil
}

// Bounds of what is written down of a search: the results that can be rated, and the bytes of a request; a larger one is kept
// without its content.
const (
	maxRecordedResults = 100
	maxRecordedBytes   = 16 << 10
)

// recordedRequest writes a request as JSON that the database takes, whatever its texts hold.
func recordedRequest(request searchRequest) (json.RawMessage, error) {
	encoded, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("write down a search: %w", err)
	}
	if len(encoded) > maxRecordedBytes {
		return json.RawMessage("{}"), nil
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var object any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("write down a search: %w", err)
	}
	return json.Marshal(withoutNUL(object))
}

// withoutNUL drops zero bytes, which jsonb does not take, from all texts of a JSON value.
func withoutNUL(value any) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, "\x00", "")
	case []any:
		for i := range v {
			v[i] = withoutNUL(v[i])
		}
	case map[string]any:
		for _, key := range slices.Collect(maps.Keys(v)) {
			member := withoutNUL(v[key])
			delete(v, key)
			v[strings.ReplaceAll(key, "\x00", "")] = member
		}
	}
	return value
}

func (s *Server) addSearches(ctx context.Context, searches []searchRecord) error {
	encoded, err := json.Marshal(searches)
	if err == nil {
		err = s.queries.SearchInsertMany(ctx, s.Conn, encoded)
	}
	if err != nil {
		return fmt.Errorf("write down %d searches: %w", len(searches), err)
	}
	return nil
}

func (s *Server) registerFeedback(api huma.API) {
	register(s, api, operation{
		ID: "createSearchFeedback", Method: http.MethodPost, Path: "/api/v1/search/feedback", Tag: "Search", Status: http.StatusCreated,
		Summary: "Rate a result of a search",
		Description: "For the caller of the search. A later rating of the same result takes the place of the former one. Searches are kept for " +
			"KB_SEARCH__LOG_KEEP; feedback goes with them.",
		Action: searchKnowledge, Errors: []int{http.StatusBadRequest, http.StatusNotFound},
	}, s.feedbackCreate)
	register(s, api, operation{
		ID: "getSearchFeedback", Method: http.MethodGet, Path: "/api/v1/search/feedback", Tag: "Search", Admin: true,
		Summary: "How searches were answered and rated, by kind and status", Action: searchKnowledge,
	}, s.feedbackGet)
}

type feedbackInput struct {
	Body struct {
		SearchID string `json:"search_id" doc:"The search, from its answer"`
		ResultID string `json:"result_id" doc:"The document or the chunk that is rated, from the same answer"`
		Rating   string `json:"rating" enum:"up,down" doc:"Whether the result helped"`
		Comment  string `json:"comment,omitempty" maxLength:"10000" doc:"Why"`
	}
}

type feedbackBody struct {
	_          struct{}  `additionalProperties:"true"`
	SearchID   string    `json:"search_id" doc:"The search"`
	DocumentID string    `json:"document_id" doc:"The document that is rated"`
	Rating     string    `json:"rating" enum:"up,down" doc:"Whether it helped"`
	Comment    string    `json:"comment" doc:"Why; empty for no comment"`
	CreatedAt  time.Time `json:"created_at" doc:"When it was rated"`
}

type feedbackOutput struct {
	Body feedbackBody
}

func (s *Server) feedbackCreate(ctx context.Context, in *feedbackInput) (*feedbackOutput, error) {
	id, ok := parseID(prefixSearch, in.Body.SearchID)
	if !ok {
		return nil, errInvalid("body.search_id", "This is no id of a search: it has the form %s_ and 26 characters, and stands in the answer of a search.", prefixSearch)
	}
	chunk, isChunk := parseID(prefixChunk, in.Body.ResultID)
	document, isDocument := parseID(prefixDocument, in.Body.ResultID)
	if !isChunk && !isDocument {
		return nil, errInvalid("body.result_id", "This is no id of a result: send the document_id or the chunk_id of one.")
	}
	s.searches.flush(ctx)
	row, err := s.queries.SearchGet(ctx, s.Conn, db.SearchGetParams{ProjectID: projectOf(ctx), ID: id})
	principal := accessOf(ctx).principal
	if db.Kind(err) == db.KindNotFound || err == nil && row.Principal != principal.Subject && !principal.Administers(false) {
		return nil, errNotFound("search")
	}
	if err != nil {
		return nil, fmt.Errorf("get search %s: %w", id, err)
	}
	place := slices.Index(row.Documents, document)
	if isChunk {
		place = slices.Index(row.Chunks, chunk)
	}
	if place < 0 {
		return nil, errInvalid("body.result_id", "The search did not give this result.")
	}
	comment := strings.ReplaceAll(in.Body.Comment, "\x00", "")
	feedback, err := s.queries.FeedbackUpsert(ctx, s.Conn, db.FeedbackUpsertParams{
		ProjectID: row.ProjectID, SearchID: row.ID, DocumentID: row.Documents[place], Principal: principal.Subject, Rating: in.Body.Rating, Comment: comment,
	})
	if db.Kind(err) == db.KindReference {
		return nil, errNotFound("search") // It was forgotten a moment ago.
	}
	if err != nil {
		return nil, fmt.Errorf("rate a result of search %s: %w", id, err)
	}
	return &feedbackOutput{Body: feedbackBody{
		SearchID: in.Body.SearchID, DocumentID: publicID(prefixDocument, feedback.DocumentID), Rating: feedback.Rating, Comment: feedback.Comment,
		CreatedAt: feedback.CreatedAt.UTC(),
	}}, nil
}

type feedbackSummaryOutput struct {
	Body feedbackSummary
}

type feedbackSummary struct {
	_    struct{}         `additionalProperties:"true"`
	Data []feedbackCounts `json:"data" doc:"One row for each kind of search and status"`
}

type feedbackCounts struct {
	_          struct{} `additionalProperties:"true"`
	Structured bool     `json:"structured" doc:"Whether the searches were structured ones, without a query"`
	Status     string   `json:"status" enum:"strict_hit,too_many,loose_hit,vector_only,no_hit" doc:"How they were answered"`
	Searches   int64    `json:"searches" doc:"How many there were in the time for which they are kept"`
	Up         int64    `json:"up" doc:"How many of their results were rated up"`
	Down       int64    `json:"down" doc:"How many of their results were rated down"`
}

func (s *Server) feedbackGet(ctx context.Context, _ *struct{}) (*feedbackSummaryOutput, error) {
	s.searches.flush(ctx)
	rows, err := s.queries.FeedbackSummary(ctx, s.Conn, projectOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("sum up the feedback: %w", err)
	}
	out := &feedbackSummaryOutput{Body: feedbackSummary{Data: make([]feedbackCounts, len(rows))}}
	for i, row := range rows {
		out.Body.Data[i] = feedbackCounts{Structured: row.Structured, Status: row.Status, Searches: row.Searches, Up: row.Up, Down: row.Down}
	}
	return out, nil
}
