package eval

import (
	"math"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestMetrics(t *testing.T) {
	t.Parallel()

	graded := map[string]int{"a": 3, "b": 2, "c": 1, "d": 0}
	const third = 0.6309297535714575 // 1/log2(3)
	for name, row := range map[string]struct {
		ranking                  []string
		grades                   map[string]int
		k                        int
		ndcg, recall, reciprocal float64
	}{
		"BestOrder": {[]string{"a", "b", "c"}, graded, 10, 1, 1, 1},
		// (1 + 2·0.63093 + 3·0.5) / (3 + 2·0.63093 + 1·0.5) = 3.7618595071 / 4.7618595071
		"WorstOrder": {[]string{"c", "b", "a"}, graded, 10, 3.7618595071429149 / 4.7618595071429149, 1, 1},
		// One relevant at place 2 of a query with one: 1/log2(3).
		"SecondPlace": {[]string{"x", "a"}, map[string]int{"a": 1}, 10, third, 1, 0.5},
		// Three at place 3: (3·0.5) / 4.7618595071
		"UnjudgedAboveIt":       {[]string{"x", "d", "a"}, graded, 10, 1.5 / 4.7618595071429149, 1.0 / 3, 1.0 / 3},
		"CutBeforeIt":           {[]string{"x", "y", "a"}, map[string]int{"a": 1}, 2, 0, 0, 1.0 / 3},
		"IdealIsCutAtKToo":      {[]string{"a"}, map[string]int{"a": 1, "b": 1, "c": 1}, 1, 1, 1.0 / 3, 1},
		"NothingFound":          {nil, graded, 10, 0, 0, 0},
		"NothingJudgedRelevant": {[]string{"d"}, map[string]int{"d": 0}, 10, 0, 0, 0},
		"NoJudgements":          {[]string{"a"}, nil, 10, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := NDCG(row.ranking, row.grades, row.k); !near(got, row.ndcg) {
				t.Errorf("NDCG is %v, want %v", got, row.ndcg)
			}
			if got := Recall(row.ranking, row.grades, row.k); !near(got, row.recall) {
				t.Errorf("recall is %v, want %v", got, row.recall)
			}
			if got := ReciprocalRank(row.ranking, row.grades); !near(got, row.reciprocal) {
				t.Errorf("the reciprocal rank is %v, want %v", got, row.reciprocal)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()

	upTo := func(n int) []time.Duration {
		durations := make([]time.Duration, n)
		for i := range durations {
			durations[i] = time.Duration(n-i) * time.Millisecond
		}
		return durations
	}
	for name, row := range map[string]struct {
		durations []time.Duration
		p         int
		want      float64
	}{
		"None":               {nil, 50, 0},
		"One":                {upTo(1), 95, 1},
		"MedianOfFour":       {upTo(4), 50, 2},
		"MedianOfFive":       {upTo(5), 50, 3},
		"NinetyFiveOfTwenty": {upTo(20), 95, 19},
		"NinetyFiveOfTen":    {upTo(10), 95, 10},
		"Lowest":             {upTo(10), 0, 1},
		"Highest":            {upTo(10), 100, 10},
		"BelowAMillisecond":  {[]time.Duration{1500 * time.Microsecond}, 50, 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := percentile(row.durations, row.p); !near(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}

	t.Run("LeavesTheInputAlone", func(t *testing.T) {
		t.Parallel()

		durations := upTo(3)
		percentile(durations, 50)
		if durations[0] != 3*time.Millisecond {
			t.Error("it sorted the caller's slice")
		}
	})
}
