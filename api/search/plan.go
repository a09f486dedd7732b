// Package search turns a request into the parameters of the search statement, runs it, and says what its rows mean. It
// knows no HTTP. Its invariant: one statement and one round trip a search, and the same request on the same data gives the
// same answer.
package search

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/pgvector/pgvector-go"

	"github.com/kb-search/kb/db"
)

// Mode says which arms of the search take part.
type Mode int

const (
	// Hybrid fuses both arms.
	Hybrid Mode = iota
	// Lexical is BM25 alone.
	Lexical
	// Semantic is vector similarity alone.
	Semantic
)

// Fusion is how both arms become one ranking.
type Fusion int

const (
	// RRF is reciprocal rank fusion: ranks count, sizes of scores do not.
	RRF Fusion = iota
	// Blend adds up cosine similarity and BM25, the latter as a share of the best, both known exactly of each candidate.
	Blend
)

// Ranking is how candidates are put in order.
type Ranking struct {
	Fusion Fusion
	// RRFK is the k of reciprocal rank fusion; 0 is the settings' one.
	RRFK int32
	// LexicalWeight and SemanticWeight weigh the arms. Both 0 stand for what is usual: 1 and 1 in rank fusion, 1/2 and 1 in a
	// blend.
	LexicalWeight, SemanticWeight float64
	// TopRankBonus keeps the first ranks of either arm on top. It is for rank fusion.
	TopRankBonus bool
	// HalfLifeDays halves the score of memories with each such time since their last change; 0 leaves it alone.
	HalfLifeDays float64
}

func (r Ranking) weights() (lexical, semantic float64) {
	switch {
	case r.LexicalWeight != 0 || r.SemanticWeight != 0:
		return r.LexicalWeight, r.SemanticWeight
	case r.Fusion == Blend:
		return 0.5, 1
	default:
		return 1, 1
	}
}

// Request is one search.
type Request struct {
	// Projects are those to search in, mostly one.
	Projects []uuid.UUID
	// Query is text as a person writes it; nothing in it is an operator, unless Operators says so.
	Query string
	// Operators make a "quoted phrase" one that must be there, and a -word one that must not, in the lexical arm.
	Operators bool
	Mode      Mode
	// Documents and Memories say which stores are searched.
	Documents, Memories bool
	DocumentFilter      db.DocumentFilter
	MemoryFilter        db.MemoryFilter
	// Limit is the largest number of results, from 1 to MaxLimit; Offset is how many are passed over.
	Limit, Offset int
	Ranking       Ranking
	// MinScore leaves out results whose score is lower. MinSimilarity leaves out candidates of the semantic arm.
	MinScore, MinSimilarity float64
	// GroupSize is the largest number of passages of one document; 0 is no bound.
	GroupSize int
	// Rerank has the first results of a hybrid search reranked, where the searcher can.
	Rerank bool
	// Explain counts what was left out where; Why says it of some documents. Highlight marks the words that were found.
	Explain   bool
	Why       []uuid.UUID
	Highlight bool
	// Facets are keys whose values are counted over the documents among all candidates.
	Facets []string
	// Tuning is what goes before the searcher's settings.
	Tuning Tuning
}

func (r Request) limit() int { return min(max(r.Limit, 1), MaxLimit) }

// MaxLimit is the largest page of a search.
const MaxLimit = 100

// maxQueryBytes is how much of a query's head is analysed: the statement's work stays bounded whatever is pasted in.
const maxQueryBytes = 4096

// groupDepth is the depth of a search that takes few passages of each document: one document must not use it up.
const groupDepth = 400

// plan gives the statement's parameters. vector is nil when there is no query vector: the semantic arm then stays out.
func plan(request Request, settings Settings, space int32, vector []float32) (db.SearchParams, error) {
	documents, err := request.DocumentFilter.JSON()
	if err != nil {
		return db.SearchParams{}, err
	}
	memories, err := request.MemoryFilter.JSON()
	if err != nil {
		return db.SearchParams{}, err
	}
	settings = request.Tuning.over(settings)
	words := readQuery(request)
	params := db.SearchParams{
		ProjectIds:        request.Projects,
		SpaceID:           space,
		Query:             words.text,
		Phrases:           words.phrases,
		Excluded:          words.excluded,
		UseLexical:        request.Mode != Semantic,
		UseSemantic:       request.Mode != Lexical && vector != nil,
		IncludeDocuments:  request.Documents,
		DocumentsFiltered: !request.DocumentFilter.Empty(),
		DocumentFilter:    documents,
		IncludeMemories:   request.Memories,
		StoreIds:          request.MemoryFilter.Stores,
		MemoryFilter:      memories,
		MaxWords:          settings.MaxWords,
		RowBudget:         settings.RowBudget,
		RescoreDepth:      settings.RescoreDepth,
		Depth:             settings.Depth,
		ExactRows:         settings.ExactRows,
		K1:                settings.K1,
		B:                 settings.B,
		RrfK:              cmp.Or(request.Ranking.RRFK, settings.RRFK),
		Blend:             request.Ranking.Fusion == Blend,
		TopRankBonus:      request.Ranking.TopRankBonus,
		HalfLifeDays:      request.Ranking.HalfLifeDays,
		MinScore:          request.MinScore,
		MinSimilarity:     request.MinSimilarity,
		GroupSize:         int32(request.GroupSize),
		Skip:              int32(request.Offset),
		MaxResults:        int32(request.limit()),
		Explain:           request.Explain,
		Why:               request.Why,
		Highlight:         request.Highlight,
		HighlightOptions:  highlightOptions,
		Facets:            request.Facets,
		FacetBuckets:      facetBuckets,
	}
	params.LexicalWeight, params.SemanticWeight = request.Ranking.weights()
	// Of what narrows memories, their stores stand in the tables that are searched.
	request.MemoryFilter.Stores = nil
	params.MemoriesFiltered = !request.MemoryFilter.Empty()
	if request.MinSimilarity == 0 {
		params.MinSimilarity = -1
	}
	if request.GroupSize > 0 {
		params.Depth, params.RescoreDepth = groupDepth, max(groupDepth, settings.RescoreDepth)
	}
	if vector != nil {
		half := pgvector.NewHalfVector(vector)
		params.QueryVector = &half
	}
	return params, nil
}

// head cuts a query to its first maxQueryBytes, between two words where there are any, and makes it storable.
func head(query string) string {
	if len(query) > maxQueryBytes {
		cut := maxQueryBytes
		for !utf8.RuneStart(query[cut]) {
			cut--
		}
		query = query[:cut]
		if space := strings.LastIndexFunc(query, unicode.IsSpace); space > maxQueryBytes/2 {
			query = query[:space]
		}
	}
	return storable(query)
}

// storable drops NUL and broken UTF-8, which PostgreSQL refuses.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, " "), "\x00", " ")
}

// searchable says whether a query has a letter or a digit; without one there is nothing to look for.
func searchable(query string) bool {
	return strings.ContainsFunc(query, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}
