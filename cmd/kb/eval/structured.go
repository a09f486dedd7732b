package eval

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.jetify.com/typeid"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
)

// Structured is how the queries of a set were answered that say what must come of them.
type Structured struct {
	// Queries counts them; Statuses, Firsts, Totals and Facets how many got what they expect, of those that expect it.
	Queries  int   `json:"queries"`
	Statuses Share `json:"statuses"`
	Firsts   Share `json:"firsts"`
	Totals   Share `json:"totals"`
	Facets   Share `json:"facets"`
	// Wrong says of each query that was answered otherwise what was wrong.
	Wrong []string `json:"wrong"`
	// P50 is the median time of whole requests in milliseconds, by the status of their answers.
	P50 map[string]float64 `json:"p50_ms"`
}

// Share is how many were right of how many.
type Share struct {
	Right int `json:"right"`
	Of    int `json:"of"`
}

func (s *Share) add(right bool) bool {
	s.Of++
	if right {
		s.Right++
	}
	return right
}

// String gives "12 of 12".
func (s Share) String() string { return fmt.Sprintf("%d of %d", s.Right, s.Of) }

// structuredQuery gives the query as a structured search: its own keywords and filters, or its words.
func (q Query) structuredQuery() (keywords []string, text string) {
	if q.Expected == nil && len(q.Keywords) == 0 {
		return strings.Fields(q.Text), q.Text
	}
	return q.Keywords, q.QueryText
}

// ladder gives the query as a request of the search itself.
func (q Query) ladder(loaded *Loaded, stage search.Stage) search.LadderRequest {
	request := search.LadderRequest{Project: loaded.ProjectID, Stage: stage, Size: search.MaxLimit}
	request.Keywords, request.QueryText = q.structuredQuery()
	for key, values := range q.Filters {
		if key == "knowledge_type" {
			request.Filter.KnowledgeTypes = db.Texts(values)
			continue
		}
		if request.Filter.Fields == nil {
			request.Filter.Fields = db.FieldFilter{}
		}
		for _, value := range values {
			request.Filter.Fields[key] = append(request.Filter.Fields[key], value)
		}
	}
	return request
}

// body gives the query as the body of an HTTP request.
func (q Query) body(stage search.Stage) map[string]any {
	keywords, text := q.structuredQuery()
	body := map[string]any{"keywords": keywords, "mode": stage}
	if text != "" {
		body["query_text"] = text
	}
	for key, values := range q.Filters {
		body[key] = values
	}
	return body
}

// MeasureStructured asks the queries that say what must come of them, at most limit, over HTTP, and compares.
func MeasureStructured(ctx context.Context, client *http.Client, serverURL string, set *Set, loaded *Loaded, limit int) (*Structured, error) {
	result := &Structured{P50: map[string]float64{}, Wrong: []string{}}
	took := map[string][]time.Duration{}
	for _, query := range set.Queries {
		if query.Expected == nil || limit > 0 && result.Queries == limit {
			continue
		}
		var got structuredAnswer
		elapsed, err := ask(ctx, client, serverURL+"/api/v1/search", query.body(search.Stage(query.Mode)), &got)
		if err != nil {
			return nil, fmt.Errorf("query %s of %s over HTTP: %w", query.ID, set.Name, err)
		}
		result.Queries++
		took[got.Status] = append(took[got.Status], elapsed)
		if wrong := result.compare(*query.Expected, got, loaded); wrong != "" {
			result.Wrong = append(result.Wrong, fmt.Sprintf("%s (%s): %s", query.ID, query.Kind, wrong))
		}
	}
	for status, times := range took {
		result.P50[status] = percentile(times, 50)
	}
	return result, nil
}

type structuredAnswer struct {
	Status       string `json:"status"`
	TotalMatches int    `json:"total_matches"`
	Results      []struct {
		DocumentID string `json:"document_id"`
	} `json:"results"`
	Facets          map[string][]Bucket `json:"facets"`
	FacetsTruncated map[string]int      `json:"facets_truncated"`
}

// compare counts what is right, and says the first thing that is wrong.
func (s *Structured) compare(want Expected, got structuredAnswer, loaded *Loaded) (wrong string) {
	note := func(right bool, format string, args ...any) {
		if !right && wrong == "" {
			wrong = fmt.Sprintf(format, args...)
		}
	}
	note(s.Statuses.add(got.Status == want.Status), "%s, want %s", got.Status, want.Status)
	if want.Total > 0 {
		note(s.Totals.add(got.TotalMatches == want.Total), "%d documents, want %d", got.TotalMatches, want.Total)
	}
	if want.First != "" {
		first := ""
		if len(got.Results) > 0 {
			first = loaded.name(got.Results[0].DocumentID)
		}
		note(s.Firsts.add(first == want.First), "%s is first, want %s", first, want.First)
	}
	if want.Facets != nil {
		note(s.Facets.add(maps.EqualFunc(got.Facets, want.Facets, slices.Equal[[]Bucket]) && maps.Equal(got.FacetsTruncated, want.FacetsTruncated)),
			"facets %v and %v, want %v and %v", got.Facets, got.FacetsTruncated, want.Facets, want.FacetsTruncated)
	}
	return wrong
}

// name gives the set's own id of a document.
func (l *Loaded) name(publicID string) string {
	id, err := typeid.FromString(publicID)
	if err != nil {
		return ""
	}
	return l.names[[16]byte(id.UUIDBytes())]
}
