package search

import "testing"

func TestLadderPlan(t *testing.T) {
	t.Parallel()
	vector := make([]float32, 384)
	for name, test := range map[string]struct {
		request               LadderRequest
		vector                []float32
		strict, loose, nearby bool
	}{
		"AutoWalksAll":                  {LadderRequest{Stage: StageAuto, QueryText: "q"}, vector, true, true, true},
		"AutoWithoutTextHasNoVectors":   {LadderRequest{Stage: StageAuto, Keywords: []string{"k"}}, vector, true, true, false},
		"AutoWithoutAModelHasNoVectors": {LadderRequest{Stage: StageAuto, QueryText: "q"}, nil, true, true, false},
		"StrictAlone":                   {LadderRequest{Stage: StageStrict, QueryText: "q"}, vector, true, false, false},
		"LooseAlone":                    {LadderRequest{Stage: StageLoose, QueryText: "q"}, vector, false, true, false},
		"VectorAlone":                   {LadderRequest{Stage: StageVectorOnly, QueryText: "q"}, vector, false, false, true},
		"VectorAloneNeedsText":          {LadderRequest{Stage: StageVectorOnly, Keywords: []string{"k"}}, vector, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ladderPlan(test.request, DefaultSettings(), 7, test.vector)
			if err != nil {
				t.Fatal(err)
			}
			if got.TryStrict != test.strict || got.TryLoose != test.loose || got.UseVector != test.nearby || (got.QueryVector != nil) != (test.vector != nil) || got.Keywords == nil {
				t.Errorf("got %+v", got)
			}
		})
	}
	plain, err := ladderPlan(LadderRequest{}, Settings{K1: 1.2, TitleBoost: 1}, 1, nil)
	if err != nil || plain.K1 != 1.2 {
		t.Errorf("without a boost k1 is %v, %v", plain.K1, err)
	}
}

func TestTuningGoesBefore(t *testing.T) {
	t.Parallel()
	number := func(n int32) *int32 { return &n }
	part := func(f float64) *float64 { return &f }
	blend := "blend"
	request := Tuning{StrictMaxHits: number(2), K1: part(0)}
	project := Tuning{StrictMaxHits: number(3), RRFK: number(20), B: part(0), TitleBoost: part(0), VectorWeight: part(0), RRFWindow: number(7), Fusion: &blend}
	tuned := request.Or(project)
	got := tuned.over(DefaultSettings())
	if got.StrictMaxHits != 2 || got.K1 != 0 || got.RRFK != 20 || got.B != 0 || got.TitleBoost != 0 || got.VectorWeight != 0 || got.RRFWindow != 7 || *tuned.Fusion != blend {
		t.Errorf("got %+v", got)
	}
	if untuned := (Tuning{}).over(DefaultSettings()); untuned != DefaultSettings() {
		t.Errorf("got %+v", untuned)
	}
}
