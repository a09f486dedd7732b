// Package eval measures retrieval quality: it loads a judged set through the product's own ingestion, asks its queries
// through the product's own search, and scores the answers against the judgements.
package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.jetify.com/typeid"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
)

// Arm is what of the search is measured.
type Arm string

// The arms.
const (
	ArmLexical  Arm = "lexical"
	ArmSemantic Arm = "semantic"
	// ArmHybrid is the search of documents: rank fusion with a bonus for the first ranks.
	ArmHybrid Arm = "hybrid"
	// ArmReranked is ArmHybrid with its first results reranked.
	ArmReranked Arm = "reranked"
	// ArmRRF and ArmBlend are knowledge search with its two fusions.
	ArmRRF   Arm = "rrf"
	ArmBlend Arm = "blend"
	// ArmLoose and ArmAuto are structured search with the words of the query as keywords, or the query's own.
	ArmLoose Arm = "loose"
	ArmAuto  Arm = "auto"
)

// structured gives the stage of a structured search; ok is false for other arms.
func (a Arm) structured() (stage search.Stage, ok bool) {
	return search.Stage(a), a == ArmLoose || a == ArmAuto
}

// Mode gives the search mode of an arm.
func (a Arm) Mode() (search.Mode, error) {
	switch a {
	case ArmLexical:
		return search.Lexical, nil
	case ArmSemantic:
		return search.Semantic, nil
	case ArmHybrid, ArmReranked, ArmRRF, ArmBlend, ArmLoose, ArmAuto:
		return search.Hybrid, nil
	default:
		return 0, fmt.Errorf("there is no arm %q: write lexical, semantic, hybrid, reranked, rrf, blend, loose or auto", a)
	}
}

func (a Arm) ranking() search.Ranking {
	switch a {
	case ArmRRF:
		return search.Ranking{}
	case ArmBlend:
		return search.Ranking{Fusion: search.Blend}
	default:
		return search.Ranking{TopRankBonus: true}
	}
}

// Result is how one arm did on one set. Times are in milliseconds.
type Result struct {
	Set          string  `json:"set"`
	Arm          Arm     `json:"arm"`
	Documents    int     `json:"documents"`
	Chunks       int64   `json:"chunks"`
	Queries      int     `json:"queries"`
	NDCG10       float64 `json:"ndcg_at_10"`
	Recall100    float64 `json:"recall_at_100"`
	MRR          float64 `json:"mrr"`
	StatementP50 float64 `json:"statement_p50_ms"`
	StatementP95 float64 `json:"statement_p95_ms"`
	EmbedP50     float64 `json:"embed_p50_ms"`
	EmbedP95     float64 `json:"embed_p95_ms"`
	// RequestP50 and RequestP95 are of the whole request over HTTP.
	RequestP50 float64 `json:"request_p50_ms"`
	RequestP95 float64 `json:"request_p95_ms"`
	// Structured is how queries were answered that say what must come of them; nil for none.
	Structured *Structured `json:"structured,omitempty"`
}

// Measure asks a loaded set's queries, the first of them when limit is above 0, and scores the answers.
func Measure(ctx context.Context, searcher *search.Searcher, set *Set, loaded *Loaded, arm Arm, limit int) (Result, error) {
	mode, err := arm.Mode()
	if err != nil {
		return Result{}, err
	}
	result := Result{Set: set.Name, Arm: arm, Documents: len(set.Documents), Chunks: loaded.Chunks}
	var statements, embeddings []time.Duration
	for _, query := range set.judged() {
		if limit > 0 && result.Queries == limit {
			break
		}
		response, err := answer(ctx, searcher, set, loaded, arm, mode, query)
		if err != nil {
			return Result{}, fmt.Errorf("query %s of %s: %w", query.ID, set.Name, err)
		}
		ranking := loaded.ranking(response.rows)
		grades := set.Judgements[query.ID]
		result.Queries++
		result.NDCG10 += NDCG(ranking, grades, 10)
		result.Recall100 += Recall(ranking, grades, 100)
		result.MRR += ReciprocalRank(ranking, grades)
		statements = append(statements, response.statementTime)
		embeddings = append(embeddings, response.embedTime)
	}
	if n := float64(result.Queries); n > 0 {
		result.NDCG10 /= n
		result.Recall100 /= n
		result.MRR /= n
	}
	result.StatementP50, result.StatementP95 = percentile(statements, 50), percentile(statements, 95)
	result.EmbedP50, result.EmbedP95 = percentile(embeddings, 50), percentile(embeddings, 95)
	return result, nil
}

// answered is what is measured of one search.
type answered struct {
	rows                     []db.SearchRow
	status                   search.Status
	statementTime, embedTime time.Duration
}

func answer(ctx context.Context, searcher *search.Searcher, set *Set, loaded *Loaded, arm Arm, mode search.Mode, query Query) (answered, error) {
	if stage, ok := arm.structured(); ok {
		response, err := searcher.Ladder(ctx, query.ladder(loaded, stage))
		rows := make([]db.SearchRow, len(response.Hits))
		for i, hit := range response.Hits {
			rows[i] = hit.Row
		}
		return answered{rows, response.Status, response.StatementTime, response.EmbedTime}, err
	}
	request := search.Request{
		Projects: []uuid.UUID{loaded.ProjectID}, Query: query.Text, Mode: mode, Documents: !set.OfMemories(), Memories: set.OfMemories(),
		Limit: search.MaxLimit, Ranking: arm.ranking(), Rerank: arm == ArmReranked,
	}
	if query.Store != "" {
		request.MemoryFilter.Stores = db.UUIDs{loaded.stores[query.Store]}
	}
	response, err := searcher.Search(ctx, request)
	if err == nil && request.Rerank && len(response.Rows) > 0 && response.Blended == nil {
		err = errors.New("it was not reranked: see the log")
	}
	return answered{response.Rows, response.Status, response.StatementTime, response.EmbedTime}, err
}

// MeasureRequests asks the first queries of a set, at most limit, over HTTP and adds the times of whole requests.
// serverURL is a server whose project is the loaded set's. Memories are asked through knowledge search, which has no search
// by one channel alone.
func MeasureRequests(ctx context.Context, client *http.Client, serverURL string, set *Set, loaded *Loaded, limit int, result *Result) error {
	if set.OfMemories() && (result.Arm == ArmLexical || result.Arm == ArmSemantic) {
		return nil
	}
	var requests []time.Duration
	for i, query := range set.judged() {
		if limit > 0 && i == limit {
			break
		}
		path, body := "/api/v1/search", map[string]any{"query": query.Text, "fts_only": result.Arm == ArmLexical, "vec_only": result.Arm == ArmSemantic, "rerank": result.Arm == ArmReranked}
		if stage, ok := result.Arm.structured(); ok {
			path, body = "/api/v1/search", query.body(stage)
		} else if set.OfMemories() || result.Arm == ArmRRF || result.Arm == ArmBlend {
			path, body = "/api/v1/knowledge/search", map[string]any{"query": query.Text, "include_documents": !set.OfMemories(), "include_memories": set.OfMemories()}
			if result.Arm == ArmBlend {
				body["fusion"] = "blend"
			}
			if query.Store != "" {
				body["memory_store_ids"] = []string{storeID(loaded.stores[query.Store])}
			}
		}
		took, err := ask(ctx, client, serverURL+path, body, nil)
		if err != nil {
			return fmt.Errorf("query %s of %s over HTTP: %w", query.ID, set.Name, err)
		}
		requests = append(requests, took)
	}
	result.RequestP50, result.RequestP95 = percentile(requests, 50), percentile(requests, 95)
	if result.Arm == ArmAuto && slices.ContainsFunc(set.Queries, func(q Query) bool { return q.Expected != nil }) {
		var err error
		result.Structured, err = MeasureStructured(ctx, client, serverURL, set, loaded, limit)
		return err
	}
	return nil
}

// DocumentID is the public id of a document.
func DocumentID(id uuid.UUID) string { return publicID("doc", id) }

func storeID(id uuid.UUID) string { return publicID("mstore", id) }

func publicID(prefix string, id uuid.UUID) string {
	public, err := typeid.FromUUIDBytesWithPrefix(prefix, id[:])
	if err != nil {
		return id.String()
	}
	return public.String()
}

// ask sends one search, reads its answer, into out unless it is nil, and says how long that took.
func ask(ctx context.Context, client *http.Client, address string, body map[string]any, out any) (time.Duration, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(encoded))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	started := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	took := time.Since(started)
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("status %d: %.300s", response.StatusCode, content)
	}
	if out != nil {
		return took, json.Unmarshal(content, out)
	}
	return took, nil
}

// Loaded is a set that stands in the database.
type Loaded struct {
	ProjectID uuid.UUID
	Chunks    int64
	// Took is how long the loading took, 0 when everything was there.
	Took time.Duration
	// EmbeddingShare is the share of that in which each worker embedded, from 0 to 1.
	EmbeddingShare float64
	// names are the set's ids of documents, or of memories.
	names map[uuid.UUID]string
	// stores are the memory stores by the set's names.
	stores map[string]uuid.UUID
}

// ranking gives the set's own ids of the documents in an answer, each at the place of its best chunk.
func (l *Loaded) ranking(rows []db.SearchRow) []string {
	var ids []string
	seen := make(map[uuid.UUID]bool, len(rows))
	for _, row := range rows {
		id := row.ParentID
		if row.IsMemory {
			id = row.ID
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, l.names[id])
		}
	}
	return ids
}
