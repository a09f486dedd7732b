package auth

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Resource is what an action is about.
type Resource struct {
	// Project is the project's public id.
	Project string
	// Kind is the resource's type, as policies have it: document, memory_store and so on.
	Kind string
	// Names are the public id and, where it has one, the path.
	Names []string
	Tags  map[string]string
}

// judge gives what policies say of an action on a resource: Deny when some statement denies it, else Allow when some allows
// it, else nothing. Who is denied the sight of a resource is denied every action on it.
func judge(policies []Policy, action string, r Resource) (effect string) {
	for _, policy := range policies {
		for _, s := range policy.Statement {
			switch {
			case s.Effect == Deny && (s.matches(action, r) || s.matches(sight[r.Kind], r)):
				return Deny
			case s.Effect == Allow && s.matches(action, r):
				effect = Allow
			}
		}
	}
	return effect
}

func (s Statement) matches(action string, r Resource) bool {
	return s.isAbout(action, r.Project, r.Kind) &&
		slices.ContainsFunc(s.names(r.Project, r.Kind), func(pattern string) bool {
			return pattern == "*" || slices.ContainsFunc(r.Names, func(name string) bool { return match(pattern, name) })
		}) &&
		!slices.ContainsFunc(s.tagTests(), func(test tagTest) bool { return !test.holds(r.Tags) })
}

// isAbout says whether the statement is about an action on some resource of a kind in a project.
func (s Statement) isAbout(action, project, kind string) bool {
	return slices.ContainsFunc(s.Action, func(pattern string) bool { return matchAction(pattern, action) }) &&
		len(s.names(project, kind)) > 0 && s.kindHolds(kind)
}

// names are the patterns of ids and paths that the statement has for a kind in a project.
func (s Statement) names(project, kind string) []string {
	var names []string
	for _, text := range s.resources() {
		r, err := parseResource(text)
		if err == nil && match(r.project, project) && match(r.kind, kind) {
			names = append(names, r.name)
		}
	}
	return names
}

// resources are those that the statement names, which default to all.
func (s Statement) resources() Strings {
	if s.Resource == nil {
		return Strings{"*"}
	}
	return s.Resource
}

// kindHolds says whether the conditions on the resource's type hold.
func (s Statement) kindHolds(kind string) bool {
	for operator, keys := range s.Condition {
		values, there := keys[resourceType]
		if there && !(tagTest{Operator: operator, Key: resourceType, Values: values}).holds(map[string]string{resourceType: kind}) {
			return false
		}
	}
	return true
}

// tagTest is a condition on a tag.
type tagTest struct {
	Operator string   `json:"operator"`
	Key      string   `json:"key"`
	Values   []string `json:"values"`
}

func (t tagTest) holds(tags map[string]string) bool {
	value, there := tags[t.Key]
	switch t.Operator {
	case stringEquals:
		return there && slices.Contains(t.Values, value)
	case stringNotEquals:
		return !there || !slices.Contains(t.Values, value)
	default:
		return there && slices.ContainsFunc(t.Values, func(pattern string) bool { return match(pattern, value) })
	}
}

// tagTests are the conditions on tags, in a fixed order.
func (s Statement) tagTests() []tagTest {
	var tests []tagTest
	for operator, keys := range s.Condition {
		for key, values := range keys {
			if tag, found := strings.CutPrefix(key, resourceTag); found {
				tests = append(tests, tagTest{Operator: operator, Key: tag, Values: values})
			}
		}
	}
	slices.SortFunc(tests, func(a, b tagTest) int {
		return strings.Compare(a.Operator+"\x00"+a.Key, b.Operator+"\x00"+b.Key)
	})
	return tests
}

// Filter is what policies leave of the resources of one kind in one project, in the form that the SQL function
// policy_allows reads: a row is seen when some rule of Allow fits it and none of Deny does.
type Filter struct {
	Allow []Rule `json:"allow"`
	Deny  []Rule `json:"deny"`
}

// Rule fits a row whose id or path is named and whose tags pass all tests.
type Rule struct {
	// All fits whatever the id and path are.
	All bool `json:"all"`
	// IDs are exact; Paths are patterns of LIKE.
	IDs   []uuid.UUID `json:"ids"`
	Paths []string    `json:"paths"`
	Tags  []tagTest   `json:"tags"`
}

// compile makes a filter of policies. unrestricted says that all rows are seen, none that no row is.
func compile(policies []Policy, action, project, kind string, parseID func(string) (uuid.UUID, bool)) (filter Filter, unrestricted, none bool) {
	for _, policy := range policies {
		for _, s := range policy.Statement {
			about := s.isAbout(action, project, kind)
			switch {
			case s.Effect == Deny && (about || s.isAbout(sight[kind], project, kind)):
				rule := newRule(s, project, kind, parseID)
				filter.Deny = append(filter.Deny, rule)
				none = none || rule.All && len(rule.Tags) == 0
			case s.Effect == Allow && about:
				rule := newRule(s, project, kind, parseID)
				filter.Allow = append(filter.Allow, rule)
				unrestricted = unrestricted || rule.All && len(rule.Tags) == 0
			}
		}
	}
	none = none || len(filter.Allow) == 0
	return filter, unrestricted && len(filter.Deny) == 0, none
}

func newRule(s Statement, project, kind string, parseID func(string) (uuid.UUID, bool)) Rule {
	rule := Rule{IDs: []uuid.UUID{}, Paths: []string{}, Tags: []tagTest{}}
	for _, name := range s.names(project, kind) {
		id, isID := parseID(name)
		switch {
		case name == "*":
			rule.All = true
		case isID:
			rule.IDs = append(rule.IDs, id)
		default:
			rule.Paths = append(rule.Paths, likePattern(name))
		}
	}
	for _, test := range s.tagTests() {
		if test.Operator == stringLike {
			patterns := make([]string, len(test.Values))
			for i, value := range test.Values {
				patterns[i] = likePattern(value)
			}
			test.Values = patterns
		}
		rule.Tags = append(rule.Tags, test)
	}
	return rule
}

// likePattern writes a pattern with the wildcards * and ? as one of LIKE, whose own wildcards mean themselves.
func likePattern(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`, "*", "%", "?", "_").Replace(pattern)
}

// JSON writes the filter as policy_allows reads it.
func (f Filter) JSON() (json.RawMessage, error) { return json.Marshal(f) }
