package onnx

import (
	"math"
	"slices"
	"testing"

	"github.com/kb-search/kb/embed"
)

func TestPool(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, test := range map[string]struct {
		tokens  []float32
		pooling embed.Pooling
		want    []float32 // nil is an error
	}{
		"MeanOfTwo":      {[]float32{3, 0, 3, 8}, embed.Mean, []float32{0.6, 0.8}},
		"FirstOfTwo":     {[]float32{0, -2, 9, 9}, embed.CLS, []float32{0, -1}},
		"NaNIsAnError":   {[]float32{1, nan}, embed.Mean, nil},
		"InfIsAnError":   {[]float32{1, inf}, embed.CLS, nil},
		"ZeroIsAnError":  {[]float32{1, -1, -1, 1}, embed.Mean, nil},
		"LargeIsFinite":  {[]float32{3e38, 0, 3e38, 0}, embed.Mean, []float32{1, 0}},
		"SmallIsNotZero": {[]float32{1e-30, 0}, embed.Mean, []float32{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := pool(test.tokens, 2, test.pooling)
			if (err != nil) != (test.want == nil) || !slices.Equal(got, test.want) {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
}
