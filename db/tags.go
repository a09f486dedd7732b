package db

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TagBag spells tag names as the stored bag; see TagPairs.
func TagBag(names []string) json.RawMessage {
	encoded, err := json.Marshal(TagPairs(names))
	if err != nil {
		return json.RawMessage("{}")
	}
	return encoded
}

// TagPairs spells tag names as pairs: the name x is the pair x -> "", the name k:v the pair k -> v, split at the first
// colon. Blank names are left out.
func TagPairs(names []string) map[string]string {
	pairs := make(map[string]string, len(names))
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			key, value, _ := strings.Cut(name, ":")
			pairs[key] = value
		}
	}
	return pairs
}

// TagNames spells a stored bag as names, sorted.
func TagNames(bag json.RawMessage) ([]string, error) {
	var pairs map[string]string
	if err := json.Unmarshal(bag, &pairs); err != nil {
		return nil, fmt.Errorf("read the tags: %w", err)
	}
	names := make([]string, 0, len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		if pairs[key] == "" {
			names = append(names, key)
		} else {
			names = append(names, key+":"+pairs[key])
		}
	}
	return names, nil
}
