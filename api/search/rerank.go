package search

import (
	"cmp"
	"context"
	"slices"
)

// Reranker reads a query together with each passage and says how well they fit. It is safe for concurrent use.
type Reranker interface {
	// Rerank returns a score from 0 to 1 for each passage, in order. Its error wraps embed.ErrBusy when there is too much to
	// do already, and embed.ErrUnavailable when the model's server can't be used now.
	Rerank(ctx context.Context, query string, passages []string) ([]float64, error)

	// Model is the model's name.
	Model() string
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
