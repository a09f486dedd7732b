package search

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestBlend(t *testing.T) {
	t.Parallel()
	type result struct {
		preRank             int
		norm, weight, final float64
	}
	for name, test := range map[string]struct {
		retrieval, rerank []float64
		want              []result
	}{
		"NoCandidates":     {nil, nil, nil},
		"OneIsTheBest":     {[]float64{0.016}, []float64{0.4}, []result{{1, 1, 0.75, 0.85}}},
		"WeightsOfTheTop3": {[]float64{9, 5, 1}, []float64{0, 0.5, 1}, []result{{1, 1, 0.75, 0.75}, {2, 0.5, 0.75, 0.5}, {3, 0, 0.75, 0.25}}},
		"RerankingTurnsTwoAround": {
			[]float64{0.6, 0.5, 0.1}, []float64{0.1, 0.9, 0.2}, // 0.8 of the span from 0.1 to 0.6 is 0.5
			[]result{{2, 0.8, 0.75, 0.825}, {1, 1, 0.75, 0.775}, {3, 0, 0.75, 0.05}},
		},
		"EqualRetrievalScoresAllCountAsTheBest": {
			[]float64{0.5, 0.5, 0.5, 0.5}, []float64{0, 0.2, 0.4, 1},
			[]result{{4, 1, 0.60, 1}, {3, 1, 0.75, 0.85}, {2, 1, 0.75, 0.8}, {1, 1, 0.75, 0.75}},
		},
		"EqualScoresKeepTheirOrder": {[]float64{1, 1, 1}, []float64{0.5, 0.5, 0.5}, []result{{1, 1, 0.75, 0.875}, {2, 1, 0.75, 0.875}, {3, 1, 0.75, 0.875}}},
		"NegativeScores":            {[]float64{-1, -3}, []float64{1, 1}, []result{{1, 1, 0.75, 1}, {2, 0, 0.75, 0.25}}},
		"WeightsByPlace": {
			[]float64{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1}, make([]float64, 12),
			[]result{
				{1, 1, 0.75, 0.75}, {2, 0.9, 0.75, 0.675}, {3, 0.8, 0.75, 0.6}, {4, 0.7, 0.60, 0.42}, {5, 0.6, 0.60, 0.36}, {6, 0.5, 0.60, 0.3},
				{7, 0.4, 0.60, 0.24}, {8, 0.3, 0.60, 0.18}, {9, 0.2, 0.60, 0.12}, {10, 0.1, 0.60, 0.06}, {11, 0, 0.40, 0}, {12, 0, 0.40, 0},
			},
		},
		"TheEleventhCanBecomeTheSecond": {
			[]float64{1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}, []float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
			[]result{
				{1, 1, 0.75, 0.75}, {11, 0, 0.40, 0.6}, {2, 0, 0.75, 0}, {3, 0, 0.75, 0}, {4, 0, 0.60, 0}, {5, 0, 0.60, 0},
				{6, 0, 0.60, 0}, {7, 0, 0.60, 0}, {8, 0, 0.60, 0}, {9, 0, 0.60, 0}, {10, 0, 0.60, 0},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := blend(test.retrieval, test.rerank)
			if len(got) != len(test.want) {
				t.Fatalf("%d results, want %d", len(got), len(test.want))
			}
			for i, want := range test.want {
				g := got[i]
				if g.PreRank != want.preRank || g.RerankScore != test.rerank[g.PreRank-1] || g.Weight != want.weight ||
					math.Abs(g.RetrievalNorm-want.norm) > 1e-12 || math.Abs(g.Final-want.final) > 1e-12 {
					t.Errorf("place %d: got %+v, want %+v", i+1, g, want)
				}
			}
		})
	}
}

// Whatever the scores, each candidate comes once, from best to least, with a score from 0 to 1.
func TestBlendKeepsAll(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := 1 + random.IntN(60)
		retrieval, rerank := make([]float64, n), make([]float64, n)
		for i := range n {
			retrieval[i], rerank[i] = float64(random.IntN(5))*random.ExpFloat64(), random.Float64()
		}
		slices.SortFunc(retrieval, func(a, b float64) int { return cmp.Compare(b, a) })
		seen := make([]bool, n)
		last := Blended{Final: 1}
		for _, b := range blend(retrieval, rerank) {
			if seen[b.PreRank-1] || b.Final < 0 || b.Final > last.Final || b.Final == last.Final && b.PreRank < last.PreRank {
				t.Fatalf("%+v follows %+v", b, last)
			}
			seen[b.PreRank-1], last = true, b
		}
		if slices.Contains(seen, false) {
			t.Fatal("a candidate is missing")
		}
	}
}
