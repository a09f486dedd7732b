package search

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

// Reranking is the reranker of a searcher, and how far it may go. The zero value is none.
type Reranking struct {
	// Model is the reranker's name; empty when reranking is off.
	Model string
	// Reranker is nil when reranking is off, or could not be set up.
	Reranker Reranker
	// Candidates is how many results are reranked, from the first one on.
	Candidates int
	// Timeout is how long a search waits for the reranker.
	Timeout time.Duration
}

// Reranker reads a query together with each passage and says how well they fit. It is safe for concurrent use.
type Reranker interface {
	// Rerank returns a score from 0 to 1 for each passage, in order. It ends early with ctx. Its error wraps embed.ErrBusy when
	// there is too much to do already, and embed.ErrUnavailable when the model's server can't be used now.
	Rerank(ctx context.Context, query string, passages []string) ([]float64, error)
}

// Blended is a candidate's place after reranking, and how it came to it.
type Blended struct {
	// PreRank is the place before, from 1.
	PreRank int
	// RetrievalNorm is the retrieval score from 0, the least of all candidates, to 1, the best.
	RetrievalNorm float64
	// RerankScore is the reranker's score, from 0 to 1.
	RerankScore float64
	// Weight is the share of RetrievalNorm in Final; RerankScore has the rest.
	Weight float64
	// Final orders the candidates. It is from 0 to 1 and can't be compared with a retrieval score.
	Final float64
}

// blend orders candidates, which come in the order of retrieval, by both their scores: the better a candidate's place was,
// the more it keeps of it. Equal ones keep their order. Where all retrieval scores are equal, each counts as the best, so
// that the order of retrieval still weighs.
func blend(retrieval, rerank []float64) []Blended {
	if len(retrieval) == 0 {
		return nil
	}
	least, best := slices.Min(retrieval), slices.Max(retrieval)
	blended := make([]Blended, len(retrieval))
	for i, score := range retrieval {
		norm := 1.0
		if best > least {
			norm = (score - least) / (best - least)
		}
		weight := retrievalWeight(i + 1)
		blended[i] = Blended{
			PreRank: i + 1, RetrievalNorm: norm, RerankScore: rerank[i], Weight: weight,
			Final: weight*norm + (1-weight)*rerank[i],
		}
	}
	slices.SortStableFunc(blended, func(a, b Blended) int { return cmp.Compare(b.Final, a.Final) })
	return blended
}

// retrievalWeight is the share that retrieval has in the score of a candidate, by its place before.
func retrievalWeight(preRank int) float64 {
	switch {
	case preRank <= 3:
		return 0.75
	case preRank <= 10:
		return 0.60
	default:
		return 0.40
	}
}

var errRerankTimeout = errors.New("the reranker took too long")

// candidates is how many results of a request are reranked; 0 when none is. A page that begins past them needs no reranking, and
// what one arm has found alone has its own order.
func (s *Searcher) candidates(request Request, vector []float32) int {
	if !request.Rerank || request.Mode != Hybrid || vector == nil || s.reranking.Reranker == nil || request.Offset >= s.reranking.Candidates {
		return 0
	}
	return s.reranking.Candidates
}

// rerank reranks the candidates of a response that has all rows from the first one on, and cuts it to the page of the request.
// Rows past the candidates keep their order and have the score 0, which no candidate is below.
func (s *Searcher) rerank(ctx context.Context, request Request, candidates int, response *Response) error {
	rows := response.Rows
	candidates = min(candidates, len(rows))
	first := min(request.Offset, len(rows))
	last := min(first+request.limit(), len(rows))
	if first < candidates {
		scores, err := s.rerankScores(ctx, readQuery(request).text, rows[:candidates])
		if err != nil {
			return err
		}
		if scores != nil {
			var blended []Blended
			rows, blended = reorder(rows, scores)
			response.Blended = blended[first:last]
		}
	}
	response.Rows = rows[first:last]
	return response.recount(rows, request)
}

// reorder puts the first rows, those with a reranker's score, in their new order.
func reorder(rows []db.SearchRow, scores []float64) ([]db.SearchRow, []Blended) {
	retrieval := make([]float64, len(scores))
	for i := range scores {
		retrieval[i] = rows[i].Score
	}
	blended := make([]Blended, len(rows))
	copy(blended, blend(retrieval, scores))
	ordered := slices.Clone(rows)
	for i, b := range blended {
		if b.PreRank > 0 {
			ordered[i] = rows[b.PreRank-1]
		}
		ordered[i].Score = b.Final
	}
	return ordered, blended
}

// rerankScores asks the reranker, for as long as a search may wait. When it does not answer, there are no scores: that is
// logged and counted, unless the caller went away, which is an error.
func (s *Searcher) rerankScores(ctx context.Context, query string, rows []db.SearchRow) ([]float64, error) {
	passages := make([]string, len(rows))
	for i, row := range rows {
		passages[i] = passage(row)
	}
	within, cancel := context.WithTimeoutCause(ctx, s.reranking.Timeout, errRerankTimeout)
	defer cancel()
	scores, err := s.reranking.Reranker.Rerank(within, query, passages)
	if err == nil {
		return scores, nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, fmt.Errorf("rerank the results: %w", context.Cause(ctx))
	}
	reason := "error"
	switch {
	case within.Err() != nil:
		reason = "timeout"
	case errors.Is(err, embed.ErrBusy):
		reason = "busy"
	case errors.Is(err, embed.ErrUnavailable):
		reason = "unavailable"
	}
	s.failures.WithLabelValues("reranker").Inc()
	s.skipped.WithLabelValues(reason).Inc()
	s.logger.WarnContext(ctx, "search without reranking", slog.String("reason", reason), slog.Any("error", err))
	return nil, nil
}

// passage is what the reranker reads of a result: the same as the embedding model, title, section and text, a line each, as far
// as any model reads.
func passage(row db.SearchRow) string {
	var lines []string
	for _, line := range []string{row.Title, row.Section, row.Content} {
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return head(strings.Join(lines, "\n"))
}

// recount says anew what the statement could not know, which gave more than the page: how many results the page leaves out,
// and where those documents stand that are asked about. ordered are the rows from the first one on.
func (r *Response) recount(ordered []db.SearchRow, request Request) error {
	if request.Explain {
		var counts, removed map[string]json.RawMessage
		if err := errors.Join(json.Unmarshal(r.Counts, &counts), json.Unmarshal(counts["removed"], &removed)); err != nil {
			return fmt.Errorf("read the counts of a search: %w", err)
		}
		removed["limit"] = encode(r.TotalMatches - len(r.Rows))
		counts["removed"] = encode(removed)
		r.Counts = encode(counts)
	}
	if len(request.Why) == 0 {
		return nil
	}
	var documents []map[string]json.RawMessage
	if err := json.Unmarshal(r.Why, &documents); err != nil {
		return fmt.Errorf("read what became of documents: %w", err)
	}
	for _, document := range documents {
		place := slices.IndexFunc(ordered, func(row db.SearchRow) bool {
			return !row.IsMemory && string(encode(row.ParentID)) == string(document["document_id"])
		})
		if place < 0 {
			continue // It stands past these rows, or nowhere.
		}
		step := "returned"
		switch {
		case place < request.Offset:
			step = "offset"
		case place >= request.Offset+len(r.Rows):
			step = "limit"
		}
		document["step"], document["position"] = encode(step), encode(place+1)
	}
	r.Why = encode(documents)
	return nil
}

// encode writes what is always JSON.
func encode(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}
