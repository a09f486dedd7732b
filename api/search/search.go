package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

// Status says how well a search was answered. Callers depend on these values.
type Status string

const (
	// StrictHit means that some result holds all words of the query, or all keywords.
	StrictHit Status = "strict_hit"
	// TooMany means that so many documents hold all keywords that the caller should narrow the search.
	TooMany Status = "too_many"
	// LooseHit means that some result holds one of its words.
	LooseHit Status = "loose_hit"
	// VectorOnly means that results are near in meaning only.
	VectorOnly Status = "vector_only"
	// NoHit means that there are no results.
	NoHit Status = "no_hit"
)

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
	// Banner is what callers show with the results, word for word; empty for none.
	Banner string
	Facets Facets
	// Degraded says that the query could not be embedded, so that the lexical arm answered alone.
	Degraded bool
	// Blended says of each row how reranking came to its score: nothing of those past the candidates. It is nil when the rows were
	// not reranked.
	Blended []Blended
	// EmbedTime and StatementTime say where the time went.
	EmbedTime, StatementTime time.Duration
}

// Searcher answers searches. It is safe for concurrent use.
type Searcher struct {
	conn      db.Conn
	spaces    Spaces
	settings  Settings
	reranking Reranking
	logger    *slog.Logger
	// failures counts by upstream, skipped by reason.
	failures, skipped *prometheus.CounterVec
}

// Spaces gives the embedding space to search in.
type Spaces interface {
	Active(ctx context.Context) (embed.Stored, error)
}

// New makes a searcher over the vectors of the active one of spaces.
func New(conn db.Conn, spaces Spaces, settings Settings, reranking Reranking, logger *slog.Logger) *Searcher {
	s := &Searcher{
		conn: conn, spaces: spaces, settings: settings, reranking: reranking, logger: logger,
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kb_upstream_errors_total", Help: "Calls of other services, or of models, that failed and that a search went on without.",
		}, []string{"upstream"}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kb_rerank_skipped_total", Help: "Searches that have their plain order since the reranker did not answer, by reason.",
		}, []string{"reason"}),
	}
	for _, upstream := range []string{"embedder", "reranker"} {
		s.failures.WithLabelValues(upstream) // A counter is there from the start, at 0.
	}
	return s
}

// Settings are those of requests that say nothing else.
func (s *Searcher) Settings() Settings { return s.settings }

// Reranking is what the searcher reranks with.
func (s *Searcher) Reranking() Reranking { return s.reranking }

// Metrics counts what searches went on without.
func (s *Searcher) Metrics() []prometheus.Collector {
	return []prometheus.Collector{s.failures, s.skipped}
}

// Search answers a request. A query without a letter or a digit finds nothing. An embedder that fails takes the semantic
// arm out of a hybrid search (Degraded); in a semantic search its error is returned. A reranker that does not answer in time
// leaves the results in their plain order.
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
		vector, err = s.embed(ctx, stored, meaning(request))
		response.EmbedTime = time.Since(started)
		switch {
		case ctx.Err() != nil:
			return Response{}, fmt.Errorf("embed the query: %w", context.Cause(ctx))
		case err != nil && request.Mode == Semantic:
			return Response{}, fmt.Errorf("embed the query: %w", err)
		case err != nil:
			response.Degraded = true
		}
	}
	started := time.Now()
	params, err := plan(request, s.settings, stored.ID, vector)
	if err != nil {
		return Response{}, err
	}
	candidates := s.candidates(request, vector)
	if candidates > 0 {
		params.Skip, params.MaxResults = 0, max(int32(candidates), params.Skip+params.MaxResults)
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
	if response.Facets, err = readFacets(rows[0].Facets); err != nil {
		return Response{}, err
	}
	if candidates > 0 {
		if err := s.rerank(ctx, request, candidates, &response); err != nil {
			return Response{}, err
		}
	}
	response.Status = status(response.Rows)
	response.Banner = s.settings.banner(response.Status)
	return response, nil
}

// embed gives the vector of a query, or none when the model sees nothing in it: its words may still be found. A failure is
// logged and counted.
func (s *Searcher) embed(ctx context.Context, stored embed.Stored, text string) ([]float32, error) {
	vectors, err := stored.Embed(ctx, embed.Query, []string{text})
	switch {
	case err == nil:
		return vectors[0], nil
	case errors.Is(err, embed.ErrBlank):
		return nil, nil
	case ctx.Err() == nil:
		s.failures.WithLabelValues("embedder").Inc()
		s.logger.WarnContext(ctx, "search without vectors: the query can't be embedded", slog.Any("error", err))
	}
	return nil, err
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
