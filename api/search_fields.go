package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb/db"
)

const (
	maxFacetKey     = 100
	maxFields       = 100
	maxFieldValues  = 1000
	maxFiltersBytes = 64 << 10
)

// oneOrMany is a string, or a list of strings. Blank ones, and null, are none.
type oneOrMany []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMany) UnmarshalJSON(encoded []byte) error {
	texts, err := readTexts(encoded, func(text string) []string { return []string{text} })
	*o = texts
	return err
}

// Schema implements huma.SchemaProvider.
func (oneOrMany) Schema(huma.Registry) *huma.Schema { return textsSchema(maxFieldValues) }

// keywords are units to look for: a list, or a string that is split at spaces.
type keywords []string

// unit is a word, or words in quotes.
var unit = regexp.MustCompile(`["“”]([^"“”]+)["“”]|[^\s\pZ]+`)

// UnmarshalJSON implements json.Unmarshaler.
func (k *keywords) UnmarshalJSON(encoded []byte) error {
	texts, err := readTexts(encoded, func(text string) (units []string) {
		for _, match := range unit.FindAllStringSubmatch(text, -1) {
			units = append(units, cmp.Or(strings.TrimSpace(match[1]), match[0]))
		}
		return units
	})
	*k = texts
	return err
}

// Schema implements huma.SchemaProvider.
func (keywords) Schema(huma.Registry) *huma.Schema { return textsSchema(maxKeywords) }

func textsSchema(most int) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString}, {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}, MaxItems: &most},
	}}
}

// readTexts reads a list of strings, or one string, which split makes a list of. Blank strings and repetitions are left out;
// null is nil.
func readTexts(encoded []byte, split func(text string) []string) ([]string, error) {
	var one *string
	var texts []string
	if json.Unmarshal(encoded, &one) == nil {
		if one == nil {
			return nil, nil
		}
		texts = split(*one)
	} else if err := json.Unmarshal(encoded, &texts); err != nil {
		return nil, err
	}
	kept, seen := []string{}, map[string]bool{}
	for _, text := range texts {
		if !seen[text] && strings.TrimSpace(text) != "" {
			kept = append(kept, text)
		}
		seen[text] = true
	}
	return kept, nil
}

// fields reads the conditions on metadata, of several values of a field any one.
func (r searchRequest) fields() (db.FieldFilter, error) {
	fields := db.FieldFilter{}
	for key, values := range map[string]oneOrMany{"project": r.Project, "equipment": r.Equipment, "error_codes": r.ErrorCodes} {
		for _, value := range values {
			fields[key] = append(fields[key], value)
			// As a keyword, 7 is the number and the text.
			if number := json.Number(value); json.Valid([]byte(value)) && isNumber(number) {
				fields[key] = append(fields[key], number)
			}
		}
	}
	if len(r.Filters) == 0 || string(r.Filters) == "null" {
		return fields, checkFields(fields)
	}
	if len(r.Filters) > maxFiltersBytes {
		return nil, errInvalid("body.filters", "The filters have more than %d bytes.", maxFiltersBytes)
	}
	object, err := db.DecodeObject(r.Filters)
	switch {
	case errors.Is(err, db.ErrUnstorable):
		return nil, errInvalid("body.filters", "The filters have a zero byte in them, or a number beyond 1e308.")
	case err != nil:
		return nil, errInvalid("body.filters", `The filters are no JSON object, such as {"line": "L1", "shift": ["day", "night"]}.`)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if fields[key] != nil {
			return nil, errInvalid("body.filters."+key, "%s is said twice; leave it out of filters.", key)
		}
		values, isList := object[key].([]any)
		if !isList {
			values = []any{object[key]}
		}
		if len(values) == 0 || slices.ContainsFunc(values, func(value any) bool { return !db.IsScalar(value) }) {
			return nil, errInvalid("body.filters."+key, "A filter is a string, a number, true, false, or a list of those that is not empty.")
		}
		fields[key] = values
	}
	return fields, checkFields(fields)
}

func isNumber(number json.Number) bool {
	value, err := number.Float64()
	return err == nil && !math.IsInf(value, 0) && len(number) < 40
}

// checkFields holds filters to the limits.
func checkFields(fields db.FieldFilter) error {
	if len(fields) > maxFields {
		return errInvalid("body.filters", "There are more than %d filters.", maxFields)
	}
	for key, values := range fields {
		if len(values) > 2*maxFieldValues {
			return errInvalid("body.filters."+key, "There are more than %d values.", maxFieldValues)
		}
		for _, value := range values {
			if text, isText := value.(string); isText && (strings.ContainsRune(text, 0) || !utf8.ValidString(text)) {
				return errInvalid("body."+key, "A value has a zero byte in it, or is no valid text.")
			}
		}
	}
	return nil
}

// cleanFacets checks the keys of facets.
func cleanFacets(keys []string) ([]string, error) {
	var cleaned []string
	for _, key := range keys {
		switch {
		case strings.TrimSpace(key) == "" || utf8.RuneCountInString(key) > maxFacetKey || strings.ContainsRune(key, 0):
			return nil, errInvalid("body.facets", "A facet is the name of a key of metadata, of 1 to %d characters.", maxFacetKey)
		case !slices.Contains(cleaned, key):
			cleaned = append(cleaned, key)
		}
	}
	return cleaned, nil
}
