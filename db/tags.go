package db

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TagBag spells tag names as the stored bag: the name x is the pair x -> "", the name k:v the pair k -> v, split at the
// first colon. Blank names are left out.
func TagBag(names []string) json.RawMessage {
	bag := make(map[string]string, len(names))
	for _, name := range names {
		if name = strings.TrimSpace(name); name != "" {
			key, value, _ := strings.Cut(name, ":")
			bag[key] = value
		}
	}
	encoded, err := json.Marshal(bag)
	if err != nil {
		return json.RawMessage("{}")
	}
	return encoded
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
