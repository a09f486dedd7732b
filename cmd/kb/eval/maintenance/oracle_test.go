package maintenance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kb-search/kb/cmd/kb/eval"
)

func TestOracle(t *testing.T) {
	t.Parallel()

	records := []*record{
		{id: "titled", title: "E-1234 主轴轴承过热报警", body: "屏幕显示 E-1234 ，正常压力为 6.50 bar 。", project: "A", equipment: "CNC-01", knowledgeType: alarm, codes: []string{"E-1234"}},
		{id: "english", title: "Spindle bearing overheating", body: "The log held E-1234. Set the spindle to 1200 rpm.", project: "B", equipment: "CNC-02", knowledgeType: experience, codes: []string{"E-1234", "ALM_0421"}},
		{id: "parts", title: "The E class", body: "Part 1234 fits.", project: "B", equipment: "CNC-01", knowledgeType: setup},
	}
	for i := range 9 {
		records = append(records, &record{id: fmt.Sprint("same", i), title: "Ball screw", body: "滚珠丝杠", project: "C", equipment: "CNC-03", knowledgeType: setup})
	}
	o := newOracle(records)
	filters := func(field string, values ...string) map[string]eval.Values {
		return map[string]eval.Values{field: values}
	}
	for name, row := range map[string]struct {
		query  eval.Query
		status string
		ids    []string
	}{
		"CodeMatchesWholeOrByAllItsParts": {eval.Query{Keywords: []string{"E-1234"}}, strictHit, []string{"titled", "english", "parts"}},
		"CodeInAnotherSpelling":           {eval.Query{Keywords: []string{"e1234"}}, strictHit, []string{"titled", "english"}},
		"CodeInOneScope":                  {eval.Query{Keywords: []string{"E-1234"}, Filters: filters("equipment", "CNC-02")}, strictHit, []string{"english"}},
		"AnyValueOfAFilter":               {eval.Query{Keywords: []string{"E-1234"}, Filters: filters("equipment", "CNC-01", "CNC-02")}, strictHit, []string{"titled", "english", "parts"}},
		"ListInTheMetadata":               {eval.Query{Filters: filters("error_codes", "ALM_0421", "x")}, strictHit, []string{"english"}},
		"ChineseIsASubstring":             {eval.Query{Keywords: []string{"轴承过热"}}, strictHit, []string{"titled"}},
		"WordsOfAKeywordStandAnywhere":    {eval.Query{Keywords: []string{"bearing log"}}, strictHit, []string{"english"}},
		"ValueWithItsUnit":                {eval.Query{Keywords: []string{"6.50 bar"}}, strictHit, []string{"titled"}},
		"DecimalIsNotItsDigits":           {eval.Query{Keywords: []string{"50"}}, noHit, nil},
		"AllKeywordsMustMatch":            {eval.Query{Keywords: []string{"spindle", "轴承过热"}}, looseHit, []string{"titled", "english"}},
		"PairIsEnoughForLoose":            {eval.Query{Keywords: []string{"主轴断裂"}}, looseHit, []string{"titled"}},
		"MoreThanEightAreTooMany":         {eval.Query{Keywords: []string{"screw"}}, tooMany, []string{"same0", "same1", "same2", "same3", "same4", "same5", "same6", "same7", "same8"}},
		"NoKeywordsInASmallScope":         {eval.Query{Filters: filters("project", "A")}, strictHit, []string{"titled"}},
		"TextForMeaningInScope":           {eval.Query{Keywords: []string{"tiramisu"}, QueryText: "cake", Filters: filters("project", "A")}, vectorOnly, []string{"titled"}},
		"NothingWithoutText":              {eval.Query{Keywords: []string{"tiramisu"}}, noHit, nil},
		"NothingInScopeInSpiteOfText":     {eval.Query{Keywords: []string{"screw"}, QueryText: "cake", Filters: filters("project", "D")}, noHit, nil},
		"UnknownFieldHasNothing":          {eval.Query{Filters: filters("colour", "red")}, noHit, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			answer := o.ask(row.query)
			var ids []string
			for _, p := range answer.matches {
				ids = append(ids, p.id)
			}
			if answer.status != row.status || !slices.Equal(ids, row.ids) {
				t.Errorf("got %s with %v", answer.status, ids)
			}
		})
	}
}

func TestFacet(t *testing.T) {
	t.Parallel()

	var records []*record
	for i := range 25 {
		for range 1 + i%2 {
			records = append(records, &record{equipment: fmt.Sprintf("CNC-%02d", i), codes: []string{"E-1", fmt.Sprint("E-", i+2)}})
		}
	}
	o := newOracle(records)
	buckets, truncated := facet(o.pages, "equipment")
	if len(buckets) != 20 || truncated != 5 || buckets[0] != (eval.Bucket{Value: "CNC-01", Count: 2}) || buckets[11].Value != "CNC-23" || buckets[12] != (eval.Bucket{Value: "CNC-00", Count: 1}) {
		t.Errorf("got %v and %d", buckets, truncated)
	}
	if buckets, _ := facet(o.pages, "error_codes"); buckets[0] != (eval.Bucket{Value: "E-1", Count: 37}) {
		t.Errorf("got %v", buckets)
	}
	if buckets, truncated := facet(o.pages[:1], "equipment"); len(buckets) != 1 || truncated != 0 {
		t.Errorf("got %v and %d", buckets, truncated)
	}
}
