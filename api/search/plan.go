// Package search turns a request into the parameters of the search statement, runs it, and says what its rows mean. It
// knows no HTTP. Its invariant: one statement and one round trip a search, and the same request on the same data gives the
// same answer.
package search

import (
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

// Request is one search in one project.
type Request struct {
	ProjectID uuid.UUID
	// Query is text as a person writes it; nothing in it is an operator.
	Query string
	Mode  Mode
	// Filter narrows to the chunks of some documents.
	Filter db.DocumentFilter
	// Limit is the largest number of results, from 1 to MaxLimit.
	Limit int
	// MinScore leaves out results whose fused score is lower.
	MinScore float64
}

// MaxLimit is the largest page of a search.
const MaxLimit = 100

// Settings are the numbers behind a search; see docs/search.md for how they were measured.
type Settings struct {
	// K1 and B are BM25's: how soon a word's repetition stops to count, and how much a chunk's length does.
	K1, B float64
	// RRFK is the k of reciprocal rank fusion.
	RRFK int32
	// Depth is how many candidates each arm brings. It does not depend on the limit of a request.
	Depth int32
	// RowBudget bounds the rows that the lexical arm reads.
	RowBudget int32
	// RescoreDepth is how many of those are scored again with all words.
	RescoreDepth int32
	// MaxWords is how many different words of a query count, the rarest first.
	MaxWords int32
	// ExactRows is the size of a scope up to which vectors are compared one by one.
	ExactRows int32
}

// DefaultSettings are the measured ones.
func DefaultSettings() Settings {
	return Settings{K1: 1.2, B: 0.75, RRFK: 60, Depth: 100, RowBudget: 2000, RescoreDepth: 200, MaxWords: 64, ExactRows: 4000}
}

// maxQueryBytes is how much of a query's head is analysed: the statement's work stays bounded whatever is pasted in.
const maxQueryBytes = 4096

// plan gives the statement's parameters. vector is nil when there is no query vector: the semantic arm then stays out.
func plan(request Request, settings Settings, space int32, vector []float32) (db.SearchParams, error) {
	filter, err := request.Filter.JSON()
	if err != nil {
		return db.SearchParams{}, err
	}
	params := db.SearchParams{
		ProjectID:    request.ProjectID,
		SpaceID:      space,
		Query:        head(request.Query),
		UseLexical:   request.Mode != Semantic,
		UseSemantic:  request.Mode != Lexical && vector != nil,
		Filtered:     !request.Filter.Empty(),
		Filter:       filter,
		MaxWords:     settings.MaxWords,
		RowBudget:    settings.RowBudget,
		RescoreDepth: settings.RescoreDepth,
		Depth:        settings.Depth,
		ExactRows:    settings.ExactRows,
		K1:           settings.K1,
		B:            settings.B,
		RrfK:         settings.RRFK,
		MinScore:     request.MinScore,
		MaxResults:   int32(min(max(request.Limit, 1), MaxLimit)),
	}
	if vector != nil {
		half := pgvector.NewHalfVector(vector)
		params.QueryVector = &half
	}
	return params, nil
}

// head cuts a query to its first maxQueryBytes, between two words where there are any, and drops NUL and broken UTF-8,
// which PostgreSQL refuses.
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
	return strings.ReplaceAll(strings.ToValidUTF8(query, " "), "\x00", " ")
}

// searchable says whether a query has a letter or a digit; without one there is nothing to look for.
func searchable(query string) bool {
	return strings.ContainsFunc(query, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}
