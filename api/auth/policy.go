package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Effects of a statement.
const (
	Allow = "Allow"
	Deny  = "Deny"
)

// Condition operators.
const (
	stringEquals    = "StringEquals"
	stringNotEquals = "StringNotEquals"
	stringLike      = "StringLike"
)

// Condition keys.
const (
	resourceTag  = "soat:ResourceTag/"
	resourceType = "soat:ResourceType"
)

// limits of a policy document, so that compiling one and testing rows against it stay cheap.
const (
	maxStatements = 100
	maxValues     = 100
	maxValueBytes = 1000
)

// Policy is a document that says what its holder may do. What no statement allows is denied, and a statement that denies
// wins over any that allows.
type Policy struct {
	Statement []Statement `json:"statement"`
}

// Statement allows or denies actions on resources.
type Statement struct {
	// Effect is Allow or Deny.
	Effect string `json:"effect"`
	// Action lists "*", "module:*" or "module:Operation".
	Action Strings `json:"action"`
	// Resource lists "*" or "srn:<project>:<type>:<id or path>" with the wildcards * and ?. Defaults to "*".
	Resource Strings `json:"resource,omitempty"`
	// Condition holds values by operator (StringEquals, StringNotEquals, StringLike) and key (soat:ResourceTag/<key>,
	// soat:ResourceType). All must hold; of several values one must. StringNotEquals holds for a key that is missing.
	Condition map[string]map[string]Strings `json:"condition,omitempty"`
}

// Strings is a list of strings; in JSON a bare string stands for a list of one.
type Strings []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Strings) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = Strings{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(data, &many); err != nil {
		return errors.New("must be a string or a list of strings")
	}
	*s = many
	return nil
}

// ParsePolicy reads a policy document and checks it. The error names the statement and says what to change.
func ParsePolicy(document []byte) (Policy, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	var policy Policy
	if err := decoder.Decode(&policy); err != nil {
		return Policy{}, fmt.Errorf("the policy is no document of statements: %w", err)
	}
	if decoder.More() {
		return Policy{}, errors.New("the policy has something behind its end")
	}
	return policy, policy.Validate()
}

// Validate reports the first thing that is wrong.
func (p Policy) Validate() error {
	if len(p.Statement) == 0 || len(p.Statement) > maxStatements {
		return fmt.Errorf("a policy has 1 to %d statements", maxStatements)
	}
	for i, statement := range p.Statement {
		if err := statement.validate(); err != nil {
			return fmt.Errorf("statement %d: %w", i+1, err)
		}
	}
	return nil
}

func (s Statement) validate() error {
	if s.Effect != Allow && s.Effect != Deny {
		return fmt.Errorf("effect is %q, must be %s or %s", s.Effect, Allow, Deny)
	}
	if len(s.Action) == 0 {
		return errors.New("action is missing")
	}
	for _, action := range s.Action {
		if !knownAction(action) {
			return fmt.Errorf("action %q is not known", action)
		}
	}
	if s.Resource != nil && len(s.Resource) == 0 {
		return errors.New("resource is empty: leave it out to mean all")
	}
	for _, resource := range s.Resource {
		if _, err := parseResource(resource); err != nil {
			return err
		}
	}
	for operator, keys := range s.Condition {
		if !slices.Contains([]string{stringEquals, stringNotEquals, stringLike}, operator) {
			return fmt.Errorf("condition operator %q is not known: use %s, %s or %s", operator, stringEquals, stringNotEquals, stringLike)
		}
		for key, values := range keys {
			if key != resourceType && (!strings.HasPrefix(key, resourceTag) || key == resourceTag) {
				return fmt.Errorf("condition key %q is not known: use %s<key> or %s", key, resourceTag, resourceType)
			}
			if len(values) == 0 {
				return fmt.Errorf("condition %s on %s has no value", operator, key)
			}
		}
	}
	return s.checkSizes()
}

func (s Statement) checkSizes() error {
	lists := []Strings{s.Action, s.Resource}
	for _, keys := range s.Condition {
		for key, values := range keys {
			lists = append(lists, Strings{key}, values)
		}
	}
	for _, list := range lists {
		if len(list) > maxValues {
			return fmt.Errorf("a list has more than %d values", maxValues)
		}
		for _, value := range list {
			if len(value) > maxValueBytes || strings.ContainsRune(value, 0) {
				return fmt.Errorf("a value has more than %d bytes, or a zero byte", maxValueBytes)
			}
		}
	}
	return nil
}

// resource is a parsed srn; each part may have wildcards.
type resource struct{ project, kind, name string }

func parseResource(text string) (resource, error) {
	if text == "*" {
		return resource{"*", "*", "*"}, nil
	}
	parts := strings.SplitN(text, ":", 4)
	if len(parts) != 4 || parts[0] != "srn" && parts[0] != "soat" {
		return resource{}, fmt.Errorf("resource %q is not \"*\" or srn:<project>:<type>:<id or path>", text)
	}
	for _, part := range parts[1:] {
		if part == "" {
			return resource{}, fmt.Errorf("resource %q has an empty part; write * for any", text)
		}
	}
	return resource{parts[1], parts[2], parts[3]}, nil
}

// matchAction says whether an action of a policy, which may end in a wildcard, is about an operation's.
func matchAction(pattern, action string) bool {
	module, isModule := strings.CutSuffix(pattern, ":*")
	return pattern == "*" || pattern == action || isModule && strings.HasPrefix(action, module+":")
}

func isPattern(text string) bool { return strings.ContainsAny(text, "*?") }

// match says whether text fits a pattern with the wildcards * and ?. Its time is linear in practice and at worst the
// product of both lengths.
func match(pattern, text string) bool {
	star, mark := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
