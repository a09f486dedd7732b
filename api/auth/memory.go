package auth

import (
	"encoding/json"

	"github.com/google/uuid"
)

// MemoryFilter is what policies leave of the memories of a project, in the form that the SQL function memory_policy_allows
// reads. A memory is seen when a rule allows it, or its store, and none denies either.
type MemoryFilter struct {
	Memory Filter `json:"memory"`
	Store  Filter `json:"store"`
}

// JSON writes the filter as memory_policy_allows reads it.
func (f MemoryFilter) JSON() (json.RawMessage, error) { return json.Marshal(f) }

// MemoryFilter is what the principal's policies leave of the memories of a project: nil when nothing is kept back. none says
// that they leave nothing at all. parseMemory and parseStore read public ids.
func (p *Principal) MemoryFilter(action, project string, parseMemory, parseStore func(string) (uuid.UUID, bool)) (filter *MemoryFilter, none bool) {
	memory, noMemory := p.Filter(action, project, KindMemory, parseMemory)
	store, noStore := p.Filter(action, project, KindMemoryStore, parseStore)
	if memory == nil && store == nil {
		return nil, false
	}
	compiled := MemoryFilter{Memory: orAll(memory), Store: orAll(store)}
	return &compiled, noMemory && noStore
}

// orAll writes the filter that keeps nothing back.
func orAll(filter *Filter) Filter {
	if filter == nil {
		return Filter{Allow: []Rule{{All: true, IDs: []uuid.UUID{}, Paths: []string{}, Tags: []tagTest{}}}}
	}
	return *filter
}

// AllowsMemory says whether the principal may do something to a memory: itself, or through its store, and denied through
// neither.
func (p *Principal) AllowsMemory(action string, memory, store Resource) bool {
	if !p.inScope(action) {
		return false
	}
	if p.Admin {
		return true
	}
	allowed := false
	for _, r := range []Resource{memory, store} {
		switch judge(p.Policies, action, r) {
		case Deny:
			return false
		case Allow:
			allowed = true
		}
	}
	return allowed
}
