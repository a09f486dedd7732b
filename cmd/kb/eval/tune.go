package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/kb-search/kb/api/search"
)

// Judged is one search whose results are judged, as the body of a request.
type Judged struct {
	ID   string
	Body map[string]any
	// Grades are by the public ids of documents; higher is better.
	Grades map[string]int
}

// Grid has the values to try, by the name of the setting in a request's tuning.
type Grid []Axis

// Axis is one setting with its values.
type Axis struct {
	Name   string
	Values []any
}

// Points gives every combination. Without axes it is the one that changes nothing.
func (g Grid) Points() []map[string]any {
	points := []map[string]any{{}}
	for _, axis := range g {
		var next []map[string]any
		for _, point := range points {
			for _, value := range axis.Values {
				extended := maps.Clone(point)
				extended[axis.Name] = value
				next = append(next, extended)
			}
		}
		points = next
	}
	return points
}

// Tried is one point of a grid.
type Tried struct {
	Tuning map[string]any `json:"tuning"`
	NDCG10 float64        `json:"ndcg_at_10"`
}

// Tuned is what a grid search has found.
type Tuned struct {
	// Queries are those that the points were compared on, HeldOut those that the best one was checked on.
	Queries int `json:"queries"`
	HeldOut int `json:"held_out"`
	// Current is how the searches do as they are set now; Tried are all points, the best first.
	Current float64 `json:"current_ndcg_at_10"`
	Tried   []Tried `json:"tried"`
	// Gain is that of the best point over the current settings on the compared queries, HeldOutGain on the others. Both are
	// too good by chance where they are the best of many; the held-out one is not.
	Gain        Interval `json:"gain"`
	HeldOutGain Interval `json:"held_out_gain"`
}

// Interval is a mean with its confidence interval of 95 %.
type Interval struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// String gives "+0.012 (-0.003 to +0.027)".
func (i Interval) String() string {
	return fmt.Sprintf("%+.3f (%+.3f to %+.3f)", i.Mean, i.Low, i.High)
}

// resamples is how often a bootstrap draws.
const resamples = 2000

// Bootstrap gives the mean of some differences and its confidence interval by the percentile bootstrap (Efron 1979): 2,000
// samples of the same size, drawn with replacement. Equal differences give equal intervals.
func Bootstrap(differences []float64) Interval {
	if len(differences) == 0 {
		return Interval{}
	}
	random := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, resamples)
	for i := range means {
		for range differences {
			means[i] += differences[random.IntN(len(differences))]
		}
		means[i] /= float64(len(differences))
	}
	slices.Sort(means)
	var sum float64
	for _, d := range differences {
		sum += d
	}
	return Interval{Mean: sum / float64(len(differences)), Low: means[resamples*25/1000], High: means[resamples*975/1000-1]}
}

// Tune compares the points of a grid on half of the queries, and the best one with the current settings on the other half.
// Current settings are those of the server under those of project. It asks a server over HTTP and changes nothing. progress is
// called as points are done.
func Tune(
	ctx context.Context, client *http.Client, serverURL string, queries []Judged, project map[string]any, grid Grid, progress func(done, of int),
) (Tuned, error) {
	var compared, heldOut []Judged
	for _, query := range queries {
		if isHeldOut(query.ID) {
			heldOut = append(heldOut, query)
		} else {
			compared = append(compared, query)
		}
	}
	if len(compared) == 0 || len(heldOut) == 0 {
		return Tuned{}, fmt.Errorf("%d judged queries are too few: one half is to compare settings, the other to check the best", len(queries))
	}
	current, err := scores(ctx, client, serverURL, compared, project)
	if err != nil {
		return Tuned{}, err
	}
	tuned := Tuned{Queries: len(compared), HeldOut: len(heldOut), Current: mean(current)}
	var best []float64
	points := grid.Points()
	for i, point := range points {
		progress(i, len(points))
		got, err := scores(ctx, client, serverURL, compared, over(project, point))
		if err != nil {
			return Tuned{}, err
		}
		if best == nil || mean(got) > mean(best) {
			best = got
		}
		tuned.Tried = append(tuned.Tried, Tried{Tuning: point, NDCG10: mean(got)})
	}
	progress(len(points), len(points))
	slices.SortStableFunc(tuned.Tried, func(a, b Tried) int { return cmp.Compare(b.NDCG10, a.NDCG10) })
	tuned.Gain = Bootstrap(minus(best, current))
	before, err := scores(ctx, client, serverURL, heldOut, project)
	if err != nil {
		return Tuned{}, err
	}
	after, err := scores(ctx, client, serverURL, heldOut, over(project, tuned.Tried[0].Tuning))
	if err != nil {
		return Tuned{}, err
	}
	tuned.HeldOutGain = Bootstrap(minus(after, before))
	return tuned, nil
}

// minHeldOut is how many held-out queries it takes to trust a gain.
const minHeldOut = 5

// Refusal says why the best point should not be applied; empty when nothing speaks against it.
func (t Tuned) Refusal() string {
	switch {
	case t.HeldOut < minHeldOut:
		return fmt.Sprintf("%d held-out queries are too few to trust a gain; it takes %d", t.HeldOut, minHeldOut)
	case t.HeldOutGain.Mean < 0:
		return fmt.Sprintf("on %d held-out queries the best settings lose against the current ones, %s", t.HeldOut, t.HeldOutGain)
	case t.HeldOutGain.Mean == 0:
		return fmt.Sprintf("on %d held-out queries the best settings gain nothing over the current ones", t.HeldOut)
	default:
		return ""
	}
}

// over gives settings with others in their place.
func over(settings, others map[string]any) map[string]any {
	merged := maps.Clone(settings)
	if merged == nil {
		merged = map[string]any{}
	}
	maps.Copy(merged, others)
	return merged
}

// isHeldOut puts about half of all queries aside, always the same.
func isHeldOut(id string) bool {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id))
	return hash.Sum32()&1 == 1
}

func minus(a, b []float64) []float64 {
	difference := make([]float64, len(a))
	for i := range a {
		difference[i] = a[i] - b[i]
	}
	return difference
}

func mean(values []float64) float64 {
	var sum float64
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

// scores gives each query's nDCG@10 under a tuning; nil is how the server is set.
func scores(ctx context.Context, client *http.Client, serverURL string, queries []Judged, tuning map[string]any) ([]float64, error) {
	got := make([]float64, len(queries))
	for i, query := range queries {
		body := maps.Clone(query.Body)
		if len(tuning) > 0 {
			body["tuning"] = tuning
		}
		var answer structuredAnswer
		if _, err := ask(ctx, client, serverURL+"/api/v1/search", body, &answer); err != nil {
			return nil, fmt.Errorf("query %s: %w", query.ID, err)
		}
		var ranking []string
		for _, result := range answer.Results {
			if !slices.Contains(ranking, result.DocumentID) {
				ranking = append(ranking, result.DocumentID)
			}
		}
		got[i] = NDCG(ranking, query.Grades, 10)
	}
	return got, nil
}

// judgedTop is how many results are asked for, so that ten documents are among them.
const judgedTop = 50

// JudgedQueries gives the judged queries of a loaded set as searches: structured ones, loose unless they say another mode, or
// hybrid ones.
func JudgedQueries(set *Set, loaded *Loaded, structured bool, limit int) []Judged {
	public := make(map[string]string, len(loaded.names))
	for id, name := range loaded.names {
		public[name] = DocumentID(id)
	}
	var judged []Judged
	for _, query := range set.judged() {
		if limit > 0 && len(judged) == limit {
			break
		}
		body := map[string]any{"query": query.Text, "top": judgedTop}
		if structured {
			stage := search.StageLoose
			if query.Mode != "" {
				stage = search.Stage(query.Mode)
			}
			body = query.body(stage)
			body["size"] = judgedTop
		}
		grades := map[string]int{}
		for name, grade := range set.Judgements[query.ID] {
			grades[public[name]] = grade
		}
		judged = append(judged, Judged{ID: query.ID, Body: body, Grades: grades})
	}
	return judged
}

// Rated is one rating of a result, with the request of its search as the server keeps it.
type Rated struct {
	SearchID   string
	Structured bool
	Request    json.RawMessage
	DocumentID string
	Up         bool
}

// JudgedFeedback makes judged searches of ratings: a document that more callers rate up than down is relevant. Searches of the
// other kind, and those whose texts were not kept, are left out; without counts the latter.
func JudgedFeedback(ratings []Rated, structured bool) (judged []Judged, without int, err error) {
	votes := map[string]map[string]int{}
	requests := map[string]json.RawMessage{}
	var order []string
	for _, rating := range ratings {
		if rating.Structured != structured {
			continue
		}
		if votes[rating.SearchID] == nil {
			votes[rating.SearchID] = map[string]int{}
			requests[rating.SearchID] = rating.Request
			order = append(order, rating.SearchID)
		}
		if rating.Up {
			votes[rating.SearchID][rating.DocumentID]++
		} else {
			votes[rating.SearchID][rating.DocumentID]--
		}
	}
	for _, id := range order {
		grades := map[string]int{}
		for document, vote := range votes[id] {
			if vote > 0 {
				grades[document] = 1
			}
		}
		var body map[string]any
		if err := json.Unmarshal(requests[id], &body); err != nil {
			return nil, 0, fmt.Errorf("read search %s: %w", id, err)
		}
		if body["query"] == nil && body["query_text"] == nil && body["keywords"] == nil {
			without++
			continue
		}
		for _, name := range []string{"tuning", "from", "explain", "facets"} {
			delete(body, name)
		}
		if structured {
			body["size"] = judgedTop
		} else {
			body["top"] = judgedTop
		}
		if len(grades) > 0 {
			judged = append(judged, Judged{ID: id, Body: body, Grades: grades})
		}
	}
	return judged, without, nil
}
