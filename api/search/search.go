package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

// Status says how well a search was answered. Callers depend on these values.
type Status string

const (
	// StrictHit means that some result holds all words of the query.
	StrictHit Status = "strict_hit"
	// LooseHit means that some result holds one of its words.
	LooseHit Status = "loose_hit"
	// VectorOnly means that results are near in meaning only.
	VectorOnly Status = "vector_only"
	// NoHit means that there are no results.
	NoHit Status = "no_hit"
)

// The banners that callers must show word for word: no exact match, what follows is for reference only; and: found by
// similarity alone, of low confidence.
const (
	bannerLoose      = "没有完全匹配的知识，以下为相关参考，仅供参考。"
	bannerVectorOnly = "未找到关键词匹配的知识，以下为语义相似的参考内容，可信度较低，仅供参考。"
)

// Banner is the text to show with a status, empty when there is none.
func (s Status) Banner() string {
	switch s {
	case LooseHit:
		return bannerLoose
	case VectorOnly:
		return bannerVectorOnly
	default:
		return ""
	}
}

// Response is the answer to a Request.
type Response struct {
	// Rows are the results, best first.
	Rows []db.SearchRow
	// TotalMatches counts the candidates of both arms together, before the cut to the limit.
	TotalMatches int
	// Counts says how many candidates were found and left out, as a JSON object; Why says it of documents, as a list. They are
	// there when asked for.
	Counts, Why json.RawMessage
	Status      Status
	// Degraded says that the query could not be embedded, so that the lexical arm answered alone.
	Degraded bool
	// EmbedTime and StatementTime say where the time went.
	EmbedTime, StatementTime time.Duration
}

// Searcher answers searches. It is safe for concurrent use.
type Searcher struct {
	conn     db.Conn
	spaces   Spaces
	settings Settings
	logger   *slog.Logger
}

// Spaces gives the embedding space to search in.
type Spaces interface {
	Active(ctx context.Context) (embed.Stored, error)
}

// New makes a searcher over the vectors of the active one of spaces.
func New(conn db.Conn, spaces Spaces, settings Settings, logger *slog.Logger) *Searcher {
	return &Searcher{conn: conn, spaces: spaces, settings: settings, logger: logger}
}

// Search answers a request. A query without a letter or a digit finds nothing. An embedder that fails takes the semantic
// arm out of a hybrid search (Degraded); in a semantic search its error is returned.
func (s *Searcher) Search(ctx context.Context, request Request) (Response, error) {
	query := readQuery(request)
	if !searchable(query.text) || len(request.Projects) == 0 {
		return Response{Status: NoHit, Counts: json.RawMessage("{}"), Why: json.RawMessage("[]")}, nil
	}
	stored, err := s.spaces.Active(ctx)
	if err != nil {
		return Response{}, err
	}
	var response Response
	var vector []float32
	if request.Mode != Lexical {
		started := time.Now()
		vectors, err := stored.Embed(ctx, embed.Query, []string{meaning(request)})
		response.EmbedTime = time.Since(started)
		switch {
		case err == nil:
			vector = vectors[0]
		case errors.Is(err, embed.ErrBlank):
			// The model sees nothing in it; the words may still be found.
		case ctx.Err() != nil:
			return Response{}, fmt.Errorf("embed the query: %w", context.Cause(ctx))
		case request.Mode == Semantic:
			return Response{}, fmt.Errorf("embed the query: %w", err)
		default:
			response.Degraded = true
			s.logger.WarnContext(ctx, "search without the semantic arm", slog.Any("error", err))
		}
	}
	started := time.Now()
	params, err := plan(request, s.settings, stored.ID, vector)
	if err != nil {
		return Response{}, err
	}
	rows, err := db.New().Search(ctx, db.WithDimensions(s.conn, int32(stored.Space().Dimensions)), params)
	if err != nil {
		return Response{}, fmt.Errorf("search: %w", err)
	}
	response.StatementTime = time.Since(started)
	// The first row is there always, with what is said of all.
	response.TotalMatches, response.Counts, response.Why = int(rows[0].TotalMatches), rows[0].Counts, rows[0].Why
	if rows[0].Found {
		response.Rows = rows
	}
	response.Status = status(response.Rows)
	return response, nil
}

// status reads the answer's status off its rows.
func status(rows []db.SearchRow) Status {
	if len(rows) == 0 {
		return NoHit
	}
	status := VectorOnly
	for _, row := range rows {
		if row.HasAllWords {
			return StrictHit
		}
		if row.HasAnyWord {
			status = LooseHit
		}
	}
	return status
}
