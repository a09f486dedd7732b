package db_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

func TestParseMetadataFilter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ filter, equal, tests string }{
		"Nothing":                      {`{}`, `{}`, `{}`},
		"ScalarsAreEqual":              {`{"a": "x", "b": 3, "c": false}`, `{"a":"x","b":3,"c":false}`, `{}`},
		"NumbersKeepTheirDigits":       {`{"a": 9007199254740993, "b": {"gt": 0.10000000000000000001}}`, `{"a":9007199254740993}`, `{"b":{"gt":0.10000000000000000001}}`},
		"OperatorsAreTests":            {`{"a": {"in": ["x", 1, true]}, "b": {"gte": "2024", "lt": "2025"}}`, `{}`, `{"a":{"in":["x",1,true]},"b":{"gte":"2024","lt":"2025"}}`},
		"BoundsOfTwoTypesFitNothing":   {`{"a": {"gt": 1, "lt": "z"}}`, `{}`, `{"a":{"gt":1,"lt":"z"}}`},
		"TheLastOfTwoEqualKeysCounts":  {`{"a": 1, "a": {"in": [2]}}`, `{}`, `{"a":{"in":[2]}}`},
		"AKeyIsAnyText":                {`{"": 1, "a.b": 2, "' OR '1'='1": 3, "]\"$1%{": 4}`, `{"":1,"' OR '1'='1":3,"]\"$1%{":4,"a.b":2}`, `{}`},
		"AKeyLikeAnOperatorIsAKey":     {`{"in": 1, "gt": "x"}`, `{"gt":"x","in":1}`, `{}`},
		"TheLargestExponentIsAllowed":  {`{"a": 1e308, "b": 1E-308}`, `{"a":1e308,"b":1E-308}`, `{}`},
		"AHundredFields":               {fields(100), fields(100), `{}`},
		"AThousandValues":              {values(1000), `{}`, values(1000)},
		"WhiteSpaceAroundIsOfNoMatter": {" \n{\"a\": 1}\t", `{"a":1}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal, tests, err := db.ParseMetadataFilter([]byte(test.filter))
			must(t, err)
			if got := marshal(t, equal); got != test.equal {
				t.Errorf("equal %s", got)
			}
			if got := marshal(t, tests); got != test.tests {
				t.Errorf("tests %s", got)
			}
		})
	}

	for name, test := range map[string]struct{ filter, field, says string }{
		"Nothing":                  {``, "f", "no JSON object"},
		"NoJSON":                   {`{a: 1}`, "f", "no JSON object"},
		"NotClosed":                {`{"a": 1`, "f", "no JSON object"},
		"SomethingBehindItsEnd":    {`{"a": 1} {}`, "f", "no JSON object"},
		"AList":                    {`[{"a": 1}]`, "f", "no JSON object"},
		"AString":                  {`"a"`, "f", "no JSON object"},
		"Null":                     {`null`, "f", "no JSON object"},
		"AnUnknownOperator":        {`{"a": {"ne": 1}}`, "f.a", "unknown operator"},
		"AnOperatorInCapitals":     {`{"a": {"GT": 1}}`, "f.a", "unknown operator"},
		"ANestedObject":            {`{"a": {"b": {"gt": 1}}}`, "f.a", "unknown operator"},
		"AKnownAndAnUnknown":       {`{"a": {"gt": 1, "like": "x"}}`, "f.a", "unknown operator"},
		"NoOperator":               {`{"a": {}}`, "f.a", "no operator"},
		"AnArray":                  {`{"a": [1, 2]}`, "f.a", "A condition is"},
		"NullAsCondition":          {`{"a": null}`, "f.a", "A condition is"},
		"ABoundThatIsABoolean":     {`{"a": {"gt": true}}`, "f.a", "a number or a string"},
		"ABoundThatIsNull":         {`{"a": {"lte": null}}`, "f.a", "a number or a string"},
		"ABoundThatIsAList":        {`{"a": {"gte": [1]}}`, "f.a", "a number or a string"},
		"ABoundThatIsAnObject":     {`{"a": {"lt": {}}}`, "f.a", "a number or a string"},
		"InOfNothing":              {`{"a": {"in": []}}`, "f.a", "a list of 1 to 1000"},
		"InOfAString":              {`{"a": {"in": "x"}}`, "f.a", "a list of 1 to 1000"},
		"InOfAList":                {`{"a": {"in": [[1]]}}`, "f.a", "a list of 1 to 1000"},
		"InOfNull":                 {`{"a": {"in": [1, null]}}`, "f.a", "a list of 1 to 1000"},
		"InOfTooMany":              {values(1001), "f.a", "a list of 1 to 1000"},
		"InBesideABound":           {`{"a": {"gt": 1, "in": [2]}}`, "f.a", "excludes others"},
		"TheFirstWrongKeyIsNamed":  {`{"c": 1, "b": {}, "a": {}}`, "f.a", "no operator"},
		"AnEmptyKey":               {`{"": {}}`, "f.", "no operator"},
		"TooManyFields":            {fields(101), "f", "more than 100 fields"},
		"TooManyBytes":             {`{"a": "` + strings.Repeat("x", 65536) + `"}`, "f", "more than 65536 bytes"},
		"AZeroByte":                {`{"a": "\u0000"}`, "f", "zero byte"},
		"AZeroByteInAKey":          {`{"\u0000": 1}`, "f", "zero byte"},
		"ANumberOfThousandsDigits": {`{"a": {"in": [1, 1e100000]}}`, "f", "1e308"},
		"ANumberCloseToNothing":    {`{"a": 1e-99999999999999999999}`, "f", "1e308"},
	} {
		t.Run("Refused"+name, func(t *testing.T) {
			t.Parallel()
			_, _, err := db.ParseMetadataFilter([]byte(test.filter))
			var wrong *db.MetadataFilterError
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if field := wrong.Field("f"); field != test.field || !strings.Contains(wrong.Message, test.says) {
				t.Errorf("field %s, %s", field, wrong.Message)
			}
		})
	}
}

func fields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = fmt.Sprintf(`"k%03d":%d`, i, i)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

func values(n int) string {
	return `{"a":{"in":[1` + strings.Repeat(",1", n-1) + `]}}`
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	must(t, err)
	return string(encoded)
}

func FuzzParseMetadataFilter(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a": {"in": [1, "x"]}}`, `{"a": {"gt": 1e308}}`, `{"\ud800": "\ud800"}`, `{"a": 1, "a": 2}`, `[[[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		equal, tests, err := db.ParseMetadataFilter(raw)
		var wrong *db.MetadataFilterError
		if err != nil && (!errors.As(err, &wrong) || wrong.Message == "") {
			t.Fatalf("%q: %v", raw, err)
		}
		if _, err := (db.DocumentFilter{Metadata: equal, Tests: tests}).JSON(); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

// TestMetadataInSQL compares what the database makes of metadata filters with what Go makes of them, for random filters and
// metadata.
func TestMetadataInSQL(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	key := func() string { return pick(`"a"`, `""`, `"' OR 1=1 --"`) }
	orderable := func() string {
		return pick("100", "1e2", "9007199254740992", "9007199254740993", `"100"`, `"a"`, `"Z"`, `"ä"`)
	}
	scalar := func() string { return pick(orderable(), orderable(), "true", "false") }
	value := func() string {
		if random.IntN(4) > 0 {
			return scalar()
		}
		return pick("null", "[]", "["+scalar()+"]", `{"a": `+scalar()+`}`)
	}
	condition := func() string {
		switch random.IntN(4) {
		case 0:
			return scalar()
		case 1:
			return `{"in": [` + scalar() + `, ` + scalar() + `]}`
		case 2:
			return `{"` + pick("gt", "gte", "lt", "lte") + `": ` + orderable() + `}`
		default:
			return `{"` + pick("gt", "gte") + `": ` + orderable() + `, "` + pick("lt", "lte") + `": ` + orderable() + `}`
		}
	}
	object := func(most int, of func() string) string {
		var members []string
		for range random.IntN(most + 1) {
			members = append(members, key()+": "+of())
		}
		return "{" + strings.Join(members, ", ") + "}"
	}
	fitting := 0
	for range 10_000 {
		filter, metadata := object(2, condition), object(12, value)
		equal, tests, err := db.ParseMetadataFilter([]byte(filter))
		must(t, err)
		stored, err := db.DecodeObject([]byte(metadata))
		must(t, err)
		want := fits(equal, tests, stored)
		encoded, err := (db.DocumentFilter{Metadata: equal, Tests: tests}).JSON()
		must(t, err)
		var got bool
		must(t, tx.QueryRow(t.Context(), `SELECT document_fits(
				jsonb_populate_record(NULL::documents, jsonb_build_object('metadata', $2::jsonb)), $1)`, encoded, metadata).Scan(&got))
		if got != want {
			t.Fatalf("SQL says %v, Go %v of %s under %s", got, want, metadata, filter)
		}
		if want && filter != "{}" {
			fitting++
		}
	}
	if fitting < 300 || fitting > 9000 {
		t.Errorf("%d of 10,000 fit: the filters say too little", fitting)
	}
}

// fits is what document_fits must say of metadata.
func fits(equal map[string]any, tests map[string]map[string]any, metadata map[string]any) bool {
	for key, want := range equal {
		if value, there := metadata[key]; !there || !same(value, want) {
			return false
		}
	}
	for key, operators := range tests {
		for operator, operand := range operators {
			if !passes(metadata[key], operator, operand) {
				return false
			}
		}
	}
	return true
}

func passes(value any, operator string, operand any) bool {
	if operator == "in" {
		for _, one := range operand.([]any) {
			if same(value, one) {
				return true
			}
		}
		return false
	}
	order, ordered := compare(value, operand)
	return ordered && map[string]bool{"gt": order > 0, "gte": order >= 0, "lt": order < 0, "lte": order <= 0}[operator]
}

func same(a, b any) bool {
	if order, ordered := compare(a, b); ordered {
		return order == 0
	}
	x, isBool := a.(bool)
	y, both := b.(bool)
	return isBool && both && x == y
}

// compare orders two numbers or two strings.
func compare(a, b any) (order int, ordered bool) {
	switch a := a.(type) {
	case string:
		b, both := b.(string)
		return cmp.Compare(a, b), both
	case json.Number:
		b, both := b.(json.Number)
		if !both {
			return 0, false
		}
		x, _ := new(big.Rat).SetString(a.String())
		y, _ := new(big.Rat).SetString(b.String())
		return x.Cmp(y), true
	}
	return 0, false
}
