package api

import (
	"context"
	"strings"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
)

func (s *Server) searchStructured(ctx context.Context, in searchRequest, filter db.DocumentFilter, facets []string, tuning search.Tuning) (searchResponse, error) {
	request, err := in.structured(int(s.Searcher.Settings().MaxResultWindow))
	if err != nil {
		return searchResponse{}, err
	}
	request.Project, request.Filter, request.Facets, request.Tuning = projectOf(ctx), filter, facets, tuning
	response, err := runSearch(ctx, s, s.Searcher.Ladder, request)
	if err != nil {
		return searchResponse{}, err
	}
	if response.Embedded {
		s.meter(ctx, projectOf(ctx))
	}
	body := newSearchResponse(response.Status, response.Banner, response.TotalMatches, response.Facets)
	for _, hit := range response.Hits {
		result, err := newSearchResult(hit.Row, in.Explain)
		if err != nil {
			return searchResponse{}, err
		}
		result.OtherMatches = &hit.OtherMatches
		if result.Explain != nil {
			result.Explain.RRFFTS, result.Explain.RRFVec = nil, nil
		}
		body.Results = append(body.Results, result)
	}
	return body, nil
}

// structured reads the parts of a request that only structured search has. window is how deep pages reach.
func (r searchRequest) structured(window int) (search.LadderRequest, error) {
	for _, other := range []struct {
		field string
		there bool
	}{
		{"top", r.Top != nil}, {"fts_only", r.FTSOnly}, {"vec_only", r.VecOnly}, {"min_score", r.MinScore > 0}, {"rerank", r.Rerank != nil && *r.Rerank},
	} {
		if other.there {
			return search.LadderRequest{}, errInvalid("body."+other.field, "%s needs a query; a structured search has keywords, mode, from and size.", other.field)
		}
	}
	request := search.LadderRequest{Keywords: r.Keywords, Stage: search.StageAuto, From: r.From, Size: orTen(r.Size)}
	if request.From > window || request.Size > window-request.From {
		field := "body.size"
		if request.From > window {
			field = "body.from"
		}
		return request, errInvalid(field, "from and size together go past %d, how deep pages reach; narrow the search.", window)
	}
	if r.Mode != nil {
		request.Stage = search.Stage(*r.Mode)
	}
	if r.QueryText != nil {
		request.QueryText = strings.TrimSpace(*r.QueryText)
	}
	bytes := 0
	for _, keyword := range r.Keywords {
		bytes += len(keyword)
	}
	if len(r.Keywords) > maxKeywords || bytes > maxKeywordBytes {
		return request, errInvalid("body.keywords", "There are more than %d keywords, or more than %d bytes of them; keep those that matter, and write whole sentences in query_text.",
			maxKeywords, maxKeywordBytes)
	}
	return request, nil
}

const (
	maxKeywords     = 1000
	maxKeywordBytes = 16 << 10
)
