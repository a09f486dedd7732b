package search

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pgvector/pgvector-go"

	"github.com/kb-search/kb/db"
)

// Stage says how far a structured search may go.
type Stage string

// The stages. Auto walks strict, loose and vector_only, and ends at the first that finds something.
const (
	StageAuto       Stage = "auto"
	StageStrict     Stage = "strict"
	StageLoose      Stage = "loose"
	StageVectorOnly Stage = "vector_only"
)

// LadderRequest is one structured search: keywords over the documents of a project.
type LadderRequest struct {
	Project uuid.UUID
	// Keywords are units of which strict wants each: all words of it, in a document's title, sections and text; loose wants any
	// word of any. Without keywords everything in scope is found, in the order of its ingestion.
	Keywords []string
	// QueryText is what the vector stage looks for, and what documents are ranked by beside their words; the keywords stand in
	// for it there. Without it there is no vector stage.
	QueryText string
	Stage     Stage
	Filter    db.DocumentFilter
	// From and Size are the page: how many documents to pass over, and how many to give at most.
	From, Size int
	// Facets are keys whose values are counted over all documents that were found.
	Facets []string
	Tuning Tuning
}

// LadderResponse is the answer to a LadderRequest.
type LadderResponse struct {
	Status Status
	// Banner is what callers show with the results, word for word; empty for none.
	Banner string
	// Hits are documents with their best chunk, best first.
	Hits []Hit
	// TotalMatches counts the documents on all pages; of vector_only, those of the nearest chunks.
	TotalMatches int
	Facets       Facets
	// Embedded says whether a text was embedded.
	Embedded bool
	// EmbedTime and StatementTime say where the time went.
	EmbedTime, StatementTime time.Duration
}

// Hit is a document that was found.
type Hit struct {
	// Row has the document and its best chunk. Its lexical score and rank are BM25 and the place by it; its semantic score is the
	// cosine similarity where that took part, and its semantic rank then is not 0.
	Row db.SearchRow
	// OtherMatches is how many more of its chunks were found.
	OtherMatches int
}

// Facets are counted values of metadata.
type Facets struct {
	// Buckets are the most frequent values of each key, with the number of documents that have them.
	Buckets map[string][]Bucket `json:"facets"`
	// Truncated counts, by key, what stands in the buckets that were cut.
	Truncated map[string]int64 `json:"truncated"`
}

// Bucket is one value of a facet.
type Bucket struct {
	_     struct{} `additionalProperties:"true"`
	Value string   `json:"value" doc:"The value; numbers and booleans as they are written"`
	Count int64    `json:"count" doc:"How many documents have it"`
}

const (
	// facetBuckets is how many values of a facet are given.
	facetBuckets = 20
	// titleShare is the share of a word's occurrences that stand in titles and sections. A boost makes frequencies larger by so
	// much; k1, which says where they saturate, has to grow with them (Robertson, Zaragoza and Taylor 2004).
	titleShare = 0.25
	// vectorDepth is how many of the nearest chunks the vector stage looks at, whatever the page.
	vectorDepth = 200
)

// Ladder answers a structured search. An embedder that fails leaves the ranking to the words, and the vector stage out.
func (s *Searcher) Ladder(ctx context.Context, request LadderRequest) (LadderResponse, error) {
	stored, err := s.spaces.Active(ctx)
	if err != nil {
		return LadderResponse{}, err
	}
	settings := request.Tuning.over(s.settings)
	var response LadderResponse
	var vector []float32
	if text := request.meaning(settings); text != "" {
		started := time.Now()
		vector, err = s.embed(ctx, stored, text)
		response.EmbedTime = time.Since(started)
		switch {
		case ctx.Err() != nil:
			return LadderResponse{}, fmt.Errorf("embed the query: %w", context.Cause(ctx))
		case err == nil:
			response.Embedded = vector != nil
		}
	}
	params, err := ladderPlan(request, settings, stored.ID, vector)
	if err != nil {
		return LadderResponse{}, err
	}
	started := time.Now()
	rows, err := db.New().SearchLadder(ctx, db.WithDimensions(s.conn, int32(stored.Space().Dimensions)), params)
	if err != nil {
		return LadderResponse{}, fmt.Errorf("structured search: %w", err)
	}
	response.StatementTime = time.Since(started)
	// The first row is there always, with what is said of all.
	response.Status, response.TotalMatches = Status(rows[0].Status), int(rows[0].TotalMatches)
	response.Banner = settings.banner(response.Status)
	if response.Facets, err = readFacets(rows[0].Facets); err != nil {
		return LadderResponse{}, err
	}
	if rows[0].Found {
		response.Hits = make([]Hit, len(rows))
		for i, row := range rows {
			response.Hits[i] = newHit(row)
		}
	}
	return response, nil
}

// meaning is the text to embed; empty where no vector can change the answer.
func (r LadderRequest) meaning(settings Settings) string {
	text := strings.TrimSpace(r.QueryText)
	switch {
	case r.Stage == StageVectorOnly || r.Stage == StageAuto && text != "":
		return r.QueryText
	case settings.VectorWeight == 0:
		return ""
	case text != "":
		return r.QueryText
	default:
		return strings.Join(r.Keywords, " ")
	}
}

// ladderPlan gives the statement's parameters. vector is nil when there is none.
func ladderPlan(request LadderRequest, settings Settings, space int32, vector []float32) (db.SearchLadderParams, error) {
	filter, err := request.Filter.JSON()
	if err != nil {
		return db.SearchLadderParams{}, err
	}
	params := db.SearchLadderParams{
		ProjectID:         request.Project,
		SpaceID:           space,
		Keywords:          append([]string{}, request.Keywords...),
		TryStrict:         request.Stage == StageAuto || request.Stage == StageStrict,
		TryLoose:          request.Stage == StageAuto || request.Stage == StageLoose,
		UseVector:         request.QueryText != "" && vector != nil && (request.Stage == StageAuto || request.Stage == StageVectorOnly),
		DocumentFilter:    filter,
		DocumentsFiltered: !request.Filter.Empty(),
		MaxWords:          settings.MaxWords,
		RowBudget:         settings.RowBudget,
		RescoreDepth:      settings.RescoreDepth,
		Depth:             vectorDepth,
		ExactRows:         settings.ExactRows,
		StrictMaxHits:     settings.StrictMaxHits,
		TitleBoost:        settings.TitleBoost,
		RrfWindow:         settings.RRFWindow,
		VectorWeight:      settings.VectorWeight,
		K1:                settings.K1 * (1 + titleShare*(settings.TitleBoost-1)),
		B:                 settings.B,
		Skip:              int32(request.From),
		MaxResults:        int32(request.Size),
		Facets:            append([]string{}, request.Facets...),
		FacetBuckets:      facetBuckets,
	}
	for i, keyword := range params.Keywords {
		params.Keywords[i] = storable(keyword)
	}
	if vector != nil {
		half := pgvector.NewHalfVector(vector)
		params.QueryVector = &half
	}
	return params, nil
}

func newHit(row db.SearchLadderRow) Hit {
	hit := Hit{OtherMatches: max(int(row.Passages)-1, 0), Row: db.SearchRow{
		ParentID: row.DocumentID, ID: row.ChunkID, Title: row.Title, Path: row.Path, DocType: row.DocType, KnowledgeType: row.KnowledgeType,
		Tags: row.Tags, Metadata: row.Metadata, Version: row.Version, OriginalFilename: row.OriginalFilename, CreatedAt: row.CreatedAt,
		DocumentUpdatedAt: row.UpdatedAt, Seq: row.Seq, Page: row.Page, Section: row.Section, Content: row.Content, Score: row.Score,
		Similarity: row.Similarity, HasSimilarity: row.HasSimilarity, TagContexts: row.TagContexts,
	}}
	if row.Bm25 > 0 {
		hit.Row.LexicalScore, hit.Row.LexicalRank = row.Bm25, row.Place
	}
	if row.Cosine != nil {
		hit.Row.SemanticScore, hit.Row.SemanticRank = *row.Cosine, row.Place
	}
	return hit
}

func readFacets(counted json.RawMessage) (Facets, error) {
	var facets Facets
	if err := json.Unmarshal(counted, &facets); err != nil {
		return Facets{}, fmt.Errorf("read the facets: %w", err)
	}
	return facets, nil
}
