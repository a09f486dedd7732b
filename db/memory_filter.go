package db

import (
	"encoding/json"
	"fmt"
	"time"
)

// MemoryFilter narrows memories, in lists and in searches: a memory fits when it meets every condition. The zero value narrows
// nothing. The SQL function memory_fits reads it.
type MemoryFilter struct {
	// Stores hold the memory's store. Nil is no condition, a list without ids fits nothing.
	Stores UUIDs `json:"stores,omitzero"`
	// Tags must all be there, with these values: among the memory's own or among its store's.
	Tags map[string]string `json:"tags,omitempty"`
	// CreatedAfter is inclusive, CreatedBefore is not; nil is no bound. UpdatedAfter and UpdatedBefore are the same for the last
	// change.
	CreatedAfter  *time.Time `json:"created_after,omitempty"`
	CreatedBefore *time.Time `json:"created_before,omitempty"`
	UpdatedAfter  *time.Time `json:"updated_after,omitempty"`
	UpdatedBefore *time.Time `json:"updated_before,omitempty"`
	// Policies are compiled policies (auth.MemoryFilter) by the id of their project. A project that is not among them is not
	// restricted.
	Policies map[string]json.RawMessage `json:"policies,omitempty"`
}

// JSON writes the filter as memory_fits reads it.
func (f MemoryFilter) JSON() (json.RawMessage, error) {
	encoded, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write the filter: %w", err)
	}
	return encoded, nil
}

// Empty says whether the filter narrows nothing.
func (f MemoryFilter) Empty() bool {
	encoded, err := f.JSON()
	return err == nil && string(encoded) == "{}"
}
