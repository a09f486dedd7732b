package db

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a metadata filter: in bytes, in fields, and in values of one "in".
const (
	maxFilterBytes  = 64 << 10
	maxFilterFields = 100
	maxFilterValues = 1000
)

// MetadataFilterError is a metadata filter that can't be used.
type MetadataFilterError struct {
	// Key is the metadata key whose condition is wrong; nil when the filter as a whole is.
	Key *string
	// Message is a sentence that says what to change.
	Message string
}

func (e *MetadataFilterError) Error() string { return e.Message }

// Field names the part of the request that is wrong; filter is the name of the whole filter.
func (e *MetadataFilterError) Field(filter string) string {
	if e.Key == nil {
		return filter
	}
	return filter + "." + *e.Key
}

// ParseMetadataFilter reads a caller's conditions on metadata, a JSON object of keys with one condition each: a string, a
// number, true or false that the value must equal, or an object with "in" and a list of those, or with bounds (gt, gte, lt,
// lte) that are numbers or strings. It gives what a DocumentFilter takes. The error is a *MetadataFilterError.
func ParseMetadataFilter(raw json.RawMessage) (equal map[string]any, tests map[string]map[string]any, err error) {
	if len(raw) > maxFilterBytes {
		return nil, nil, &MetadataFilterError{Message: fmt.Sprintf("The metadata filter has more than %d bytes.", maxFilterBytes)}
	}
	object, err := DecodeObject(raw)
	switch {
	case errors.Is(err, ErrUnstorable):
		return nil, nil, &MetadataFilterError{Message: "The metadata filter has a zero byte or a number beyond 1e308 in it."}
	case err != nil:
		return nil, nil, &MetadataFilterError{Message: `The metadata filter is no JSON object, such as {"owner": "docs", "year": {"gte": 2020}}.`}
	case len(object) > maxFilterFields:
		return nil, nil, &MetadataFilterError{Message: fmt.Sprintf("The metadata filter has more than %d fields.", maxFilterFields)}
	}
	equal, tests = map[string]any{}, map[string]map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		operators, isObject := object[key].(map[string]any)
		message := ""
		switch {
		case isObject:
			tests[key], message = operators, checkOperators(operators)
		case IsScalar(object[key]):
			equal[key] = object[key]
		default:
			message = "A condition is a string, a number, true, false, or an object of operators."
		}
		if message != "" {
			return nil, nil, &MetadataFilterError{Key: &key, Message: message}
		}
	}
	return equal, tests, nil
}

// checkOperators says what is wrong with a condition's operators, if anything.
func checkOperators(operators map[string]any) string {
	if len(operators) == 0 {
		return "The condition has no operator; send in, gt, gte, lt or lte."
	}
	for _, operator := range slices.Sorted(maps.Keys(operators)) {
		operand := operators[operator]
		switch operator {
		case "in":
			values, isList := operand.([]any)
			switch {
			case !isList || len(values) == 0 || len(values) > maxFilterValues || !all(values, IsScalar):
				return fmt.Sprintf("The operator in takes a list of 1 to %d strings, numbers, true and false.", maxFilterValues)
			case len(operators) > 1:
				return "The operator in excludes others."
			}
		case "gt", "gte", "lt", "lte":
			if !isOrdered(operand) {
				return "The operator " + operator + " takes a number or a string."
			}
		default:
			return "A condition has an unknown operator; send in, gt, gte, lt or lte."
		}
	}
	return ""
}

func all[T any](values []T, is func(T) bool) bool {
	return !slices.ContainsFunc(values, func(value T) bool { return !is(value) })
}

func isOrdered(value any) bool {
	switch value.(type) {
	case string, json.Number:
		return true
	}
	return false
}

// IsScalar says whether a value, as DecodeObject gives it, is a string, a number, true or false.
func IsScalar(value any) bool {
	_, isBool := value.(bool)
	return isBool || isOrdered(value)
}

// ErrUnstorable is JSON that a jsonb column does not take, or only at a price: a zero byte, or a number whose digits fill
// pages.
var ErrUnstorable = errors.New("JSON that can't be stored")

// DecodeObject reads one JSON object. Of a key that is there twice the last value counts; numbers keep all their digits, as
// json.Number. The error is ErrUnstorable for an object that jsonb does not take.
func DecodeObject(raw []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("read a JSON object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || object == nil {
		return nil, errors.New("read a JSON object: it is something else, or has something behind its end")
	}
	if !storable(object) {
		return nil, ErrUnstorable
	}
	return object, nil
}

// maxExponent is that of a double: beyond it a number of a few characters is stored as thousands of digits.
const maxExponent = 308

func storable(value any) bool {
	switch value := value.(type) {
	case string:
		return !strings.ContainsRune(value, 0)
	case json.Number:
		_, exponent, found := strings.Cut(strings.ToLower(value.String()), "e")
		n, err := strconv.Atoi(exponent)
		return !found || err == nil && -maxExponent <= n && n <= maxExponent
	case []any:
		return all(value, storable)
	case map[string]any:
		for key, inner := range value {
			if !storable(key) || !storable(inner) {
				return false
			}
		}
	}
	return true
}
