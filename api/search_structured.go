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
	if err := refuse("%s needs a query; a structured search has keywords, mode, from and size.",
		said{"top", r.Top != nil}, said{"fts_only", r.FTSOnly}, said{"vec_only", r.VecOnly}, said{"min_score", r.MinScore > 0},
		said{"rerank", r.Rerank != nil && *r.Rerank}); err != nil {
		return search.LadderRequest{}, err
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
	words := 0
	for _, keyword := range r.Keywords {
		words += len(strings.Fields(keyword))
	}
	if bytes := len(strings.Join(r.Keywords, "")); len(r.Keywords) > maxKeywords || words > maxKeywords || bytes > maxKeywordBytes {
		return request, errInvalid("body.keywords", "The keywords have more than %d words or %d bytes; keep those that matter, and write whole sentences in query_text.",
			maxKeywords, maxKeywordBytes)
	}
	return request, nil
}

// Bounds of the keywords of a search, in words and in bytes: each is looked at by itself.
const (
	maxKeywords     = 500
	maxKeywordBytes = 16 << 10
)

// said is a field of a request, and whether the request has it.
type said struct {
	field string
	there bool
}

// refuse gives an error for the first field that is there.
func refuse(sentence string, fields ...said) error {
	for _, s := range fields {
		if s.there {
			return errInvalid("body."+s.field, sentence, s.field)
		}
	}
	return nil
}
