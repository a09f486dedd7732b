package eval

import (
	"math"
	"slices"
	"time"
)

// NDCG is the normalised discounted cumulative gain of a ranking's first k places, from 0 to 1: the gain is the grade
// itself, the discount 1/log2(place+1).
func NDCG(ranking []string, grades map[string]int, k int) float64 {
	var gain float64
	for i, id := range ranking[:min(k, len(ranking))] {
		gain += float64(grades[id]) / math.Log2(float64(i+2))
	}
	best := make([]int, 0, len(grades))
	for _, grade := range grades {
		best = append(best, grade)
	}
	slices.SortFunc(best, func(a, b int) int { return b - a })
	var ideal float64
	for i, grade := range best[:min(k, len(best))] {
		ideal += float64(grade) / math.Log2(float64(i+2))
	}
	if ideal == 0 {
		return 0
	}
	return gain / ideal
}

// Recall is the share of relevant documents (grade above 0) among a ranking's first k places, from 0 to 1.
func Recall(ranking []string, grades map[string]int, k int) float64 {
	relevant, found := 0, 0
	for _, grade := range grades {
		if grade > 0 {
			relevant++
		}
	}
	for _, id := range ranking[:min(k, len(ranking))] {
		if grades[id] > 0 {
			found++
		}
	}
	if relevant == 0 {
		return 0
	}
	return float64(found) / float64(relevant)
}

// ReciprocalRank is 1 over the place of the first relevant document, 0 without one.
func ReciprocalRank(ranking []string, grades map[string]int) float64 {
	for i, id := range ranking {
		if grades[id] > 0 {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// percentile gives a percentile of some durations in milliseconds, by the nearest rank.
func percentile(durations []time.Duration, p int) float64 {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	index := max((len(sorted)*p+99)/100-1, 0)
	return float64(sorted[index].Microseconds()) / 1000
}
