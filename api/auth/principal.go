// Package auth says who calls and what they may do: it checks tokens and keys, and evaluates policies, in Go for one
// resource and as a filter for the database. It knows no HTTP. Its invariant: what nothing allows is denied.
package auth

import (
	"slices"

	"github.com/google/uuid"
)

// RoleAdmin is the role that may do everything, in all projects its holder is not kept out of.
const RoleAdmin = "admin"

// Principal is who calls.
type Principal struct {
	// Subject is the token's subject, or the key's public id; empty for a caller who needs no credential.
	Subject string
	// Admin may do everything.
	Admin bool
	// Projects are those that the credential is bound to; nil when it is bound to none.
	Projects []uuid.UUID
	// Default is the project of a request that names none; nil when there is no such project.
	Default *uuid.UUID
	// Policies say what the caller may do. A caller who is no admin and has none may do nothing.
	Policies []Policy
	// Scope is what the caller has been given of that; nil for all of it.
	Scope *Policy
}

// Administers says whether the principal is an admin of its projects, or, when everything is said, of the whole deployment.
func (p *Principal) Administers(everything bool) bool {
	return p.Admin && (!everything || p.Projects == nil)
}

// Sees says whether a project is there for the principal: its credential is not bound to others, and something allows it
// something there. public is the project's public id.
func (p *Principal) Sees(project uuid.UUID, public string) bool {
	if p.Projects != nil && !slices.Contains(p.Projects, project) {
		return false
	}
	return p.Admin || slices.ContainsFunc(p.allowedProjects(), func(pattern string) bool { return match(pattern, public) })
}

// Named are the projects, by public id, that the principal's policies allow something in. all says that they don't name
// them one by one.
func (p *Principal) Named() (projects []string, all bool) {
	if p.Admin {
		return nil, true
	}
	patterns := p.allowedProjects()
	return patterns, slices.ContainsFunc(patterns, isPattern)
}

func (p *Principal) allowedProjects() []string {
	var patterns []string
	for _, policy := range p.Policies {
		for _, s := range policy.Statement {
			if s.Effect != Allow {
				continue
			}
			for _, text := range s.resources() {
				if r, err := parseResource(text); err == nil && !slices.Contains(patterns, r.project) {
					patterns = append(patterns, r.project)
				}
			}
		}
	}
	return patterns
}

// Allows says whether the principal may do something to one resource.
func (p *Principal) Allows(action string, r Resource) bool {
	return p.inScope(action) && (p.Admin || judge(p.Policies, action, r) == Allow)
}

// MayTry says whether there is any resource of a kind in a project that the principal may do something to.
func (p *Principal) MayTry(action, project, kind string) bool {
	_, none := p.Filter(action, project, kind, func(string) (uuid.UUID, bool) { return uuid.UUID{}, false })
	return !none
}

// MayTryAnywhere says whether there is any project in which MayTry holds.
func (p *Principal) MayTryAnywhere(action, kind string) bool {
	if p.Admin {
		return p.inScope(action)
	}
	return slices.ContainsFunc(p.allowedProjects(), func(project string) bool { return p.MayTry(action, project, kind) })
}

// Filter is what the principal's policies leave of the resources of a kind in a project: nil when nothing is kept back.
// none says that they leave nothing at all. parseID reads the public ids of the kind.
func (p *Principal) Filter(action, project, kind string, parseID func(string) (uuid.UUID, bool)) (filter *Filter, none bool) {
	switch {
	case !p.inScope(action):
		return &Filter{}, true
	case p.Admin:
		return nil, false
	}
	compiled, unrestricted, none := compile(p.Policies, action, project, kind, parseID)
	if unrestricted {
		return nil, none
	}
	return &compiled, none
}

func (p *Principal) inScope(action string) bool {
	return p.Scope == nil || slices.ContainsFunc(p.Scope.Statement, func(s Statement) bool {
		return slices.ContainsFunc(s.Action, func(pattern string) bool { return matchAction(pattern, action) })
	})
}
