package search

import (
	"cmp"
	"encoding/json"
	"fmt"
)

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

	// What follows is for structured search. StrictMaxHits is how many documents strict may find before the caller is asked to
	// narrow.
	StrictMaxHits int32
	// TitleBoost is how much a word in the title or section counts against one in the text.
	TitleBoost float64
	// RRFWindow is how many of the best documents are ranked by their vectors, too.
	RRFWindow int32
	// VectorWeight is the share of cosine similarity in the score of those, from 0 to 1.
	VectorWeight float64
	// MaxResultWindow is how deep pages reach.
	MaxResultWindow int32
	// BannerLoose and BannerVectorOnly are what callers show with the two weaker statuses.
	BannerLoose, BannerVectorOnly string
}

// The banners that callers must show word for word: no exact match, what follows is for reference only; and: found by
// similarity alone, of low confidence.
const (
	DefaultBannerLoose      = "没有完全匹配的知识，以下为相关参考，仅供参考。"
	DefaultBannerVectorOnly = "未找到关键词匹配的知识，以下为语义相似的参考内容，可信度较低，仅供参考。"
)

// DefaultSettings are the measured ones.
func DefaultSettings() Settings {
	return Settings{
		K1: 1.2, B: 0.75, RRFK: 60, Depth: 100, RowBudget: 2000, RescoreDepth: 200, MaxWords: 64, ExactRows: 6000,
		StrictMaxHits: 8, TitleBoost: 3, RRFWindow: 50, VectorWeight: 0.5, MaxResultWindow: 10_000,
		BannerLoose: DefaultBannerLoose, BannerVectorOnly: DefaultBannerVectorOnly,
	}
}

// banner is the text to show with a status, empty when there is none.
func (s Settings) banner(status Status) string {
	switch status {
	case LooseHit:
		return s.BannerLoose
	case VectorOnly:
		return s.BannerVectorOnly
	default:
		return ""
	}
}

// Tuning is what a project, or a request, sets in place of the settings; nil leaves a setting as it is.
type Tuning struct {
	StrictMaxHits *int32   `json:"strict_max_hits,omitempty" minimum:"1" maximum:"10000" doc:"How many documents strict may find before it answers too_many"`
	TitleBoost    *float64 `json:"title_boost,omitempty" minimum:"0" maximum:"100" doc:"How much a word in the title or section counts against one in the text"`
	RRFWindow     *int32   `json:"rrf_window,omitempty" minimum:"1" maximum:"10000" doc:"How many of the best documents are ranked by their vectors, too"`
	VectorWeight  *float64 `json:"vector_weight,omitempty" minimum:"0" maximum:"1" doc:"The share of cosine similarity in the score of those"`
	K1            *float64 `json:"k1,omitempty" minimum:"0" maximum:"10" doc:"How soon a word's repetition stops to count in BM25"`
	B             *float64 `json:"b,omitempty" minimum:"0" maximum:"1" doc:"How much a chunk's length counts in BM25"`
	RRFK          *int32   `json:"rrf_k,omitempty" minimum:"1" maximum:"1000000" doc:"The k of reciprocal rank fusion, in hybrid search"`
	Fusion        *string  `json:"fusion,omitempty" enum:"rrf,blend" doc:"How hybrid search makes one ranking of both arms"`
}

// ReadTuning reads a tuning as a project keeps it.
func ReadTuning(stored json.RawMessage) (Tuning, error) {
	var t Tuning
	if err := json.Unmarshal(stored, &t); err != nil {
		return Tuning{}, fmt.Errorf("read the search settings of a project: %w", err)
	}
	return t, nil
}

// Or gives t, and where it says nothing what other says.
func (t Tuning) Or(other Tuning) Tuning {
	return Tuning{
		StrictMaxHits: cmp.Or(t.StrictMaxHits, other.StrictMaxHits),
		TitleBoost:    cmp.Or(t.TitleBoost, other.TitleBoost),
		RRFWindow:     cmp.Or(t.RRFWindow, other.RRFWindow),
		VectorWeight:  cmp.Or(t.VectorWeight, other.VectorWeight),
		K1:            cmp.Or(t.K1, other.K1),
		B:             cmp.Or(t.B, other.B),
		RRFK:          cmp.Or(t.RRFK, other.RRFK),
		Fusion:        cmp.Or(t.Fusion, other.Fusion),
	}
}

// over gives the settings with what the tuning sets.
func (t Tuning) over(s Settings) Settings {
	set(&s.StrictMaxHits, t.StrictMaxHits)
	set(&s.TitleBoost, t.TitleBoost)
	set(&s.RRFWindow, t.RRFWindow)
	set(&s.VectorWeight, t.VectorWeight)
	set(&s.K1, t.K1)
	set(&s.B, t.B)
	set(&s.RRFK, t.RRFK)
	return s
}

func set[T any](value *T, tuned *T) {
	if tuned != nil {
		*value = *tuned
	}
}

// ParseFusion reads a name of a fusion.
func ParseFusion(name string) (Fusion, error) {
	switch name {
	case "rrf":
		return RRF, nil
	case "blend":
		return Blend, nil
	default:
		return RRF, fmt.Errorf("there is no fusion %q: write rrf or blend", name)
	}
}
