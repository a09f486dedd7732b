package db

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// DocumentFilter narrows documents, in lists and in searches: a document fits when it meets every condition. The zero value
// narrows nothing. The SQL function document_fits reads it.
type DocumentFilter struct {
	// Tags must all be there, with these values.
	Tags map[string]string `json:"tags,omitempty"`
	// DocType is the type; empty for any.
	DocType string `json:"doc_type,omitempty"`
	// KnowledgeTypes hold the document's. Nil is no condition.
	KnowledgeTypes Texts `json:"knowledge_types,omitzero"`
	// IDs hold the document's. Nil is no condition, a list without ids fits nothing.
	IDs UUIDs `json:"ids,omitzero"`
	// Paths hold some prefix of the document's path. Nil is no condition, a list without prefixes fits nothing.
	Paths Texts `json:"paths,omitzero"`
	// Metadata must all be there, with exactly these values; Tests is what else it must pass. See ParseMetadataFilter.
	// Tests are by key and operator (in, gt, gte, lt, lte). Numbers are json.Number, which keeps their digits.
	Metadata map[string]any            `json:"metadata,omitempty"`
	Tests    map[string]map[string]any `json:"tests,omitempty"`
	// Fields must each have one of the values.
	Fields FieldFilter `json:"fields,omitempty"`
	// CreatedAfter is inclusive, CreatedBefore is not; nil is no bound.
	CreatedAfter  *time.Time `json:"created_after,omitempty"`
	CreatedBefore *time.Time `json:"created_before,omitempty"`
	// UpdatedAfter and UpdatedBefore are about the last change, or the ingestion where there was none.
	UpdatedAfter  *time.Time `json:"updated_after,omitempty"`
	UpdatedBefore *time.Time `json:"updated_before,omitempty"`
	// Policies are compiled policies by the id of their project. A project that is not among them is not restricted.
	Policies map[string]json.RawMessage `json:"policies,omitempty"`
}

// JSON writes the filter as document_fits reads it.
func (f DocumentFilter) JSON() (json.RawMessage, error) {
	encoded, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write the filter: %w", err)
	}
	return encoded, nil
}

// Empty says whether the filter narrows nothing.
func (f DocumentFilter) Empty() bool {
	encoded, err := f.JSON()
	return err == nil && string(encoded) == "{}"
}

// UUIDs is a list that is written as PostgreSQL's array literal, which document_fits reads without a sub-select.
type UUIDs []uuid.UUID

// Texts is a list that is written as PostgreSQL's array literal, as UUIDs.
type Texts []string

// MarshalText implements encoding.TextMarshaler.
func (ids UUIDs) MarshalText() ([]byte, error) {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return []byte("{" + strings.Join(texts, ",") + "}"), nil
}

// MarshalText implements encoding.TextMarshaler.
func (t Texts) MarshalText() ([]byte, error) {
	quoted := make([]string, len(t))
	for i, text := range t {
		quoted[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	return []byte("{" + strings.Join(quoted, ",") + "}"), nil
}

// FieldFilter is metadata keys with the values that they may have: strings, json.Number and bool. A document's value is one
// of them, or a list that has one of them in it. It is written as PostgreSQL's path expression, which the index of metadata
// answers.
type FieldFilter map[string][]any

// MarshalText implements encoding.TextMarshaler.
func (f FieldFilter) MarshalText() ([]byte, error) {
	clauses := make([]string, 0, len(f))
	for _, key := range slices.Sorted(maps.Keys(f)) {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		values := make([]string, len(f[key]))
		for i, value := range f[key] {
			literal, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			values[i] = fmt.Sprintf("$.%s == %s", name, literal)
		}
		clauses = append(clauses, "("+strings.Join(values, " || ")+")")
	}
	return []byte(strings.Join(clauses, " && ")), nil
}
