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
	// Subject is the token's subject, or the key's id; empty for a caller who needs no credential.
	Subject string
	// Admin may do everything.
	Admin bool
	// Projects are those that the credential is bound to; nil when it is bound to none.
	Projects []uuid.UUID
	// Policies say what the caller may do. A caller who is no admin and has none may do nothing.
	Policies []Policy
	// KeyID is the API key that was used.
	KeyID *uuid.UUID
}

// Bound says whether the principal is kept out of a project by its credential.
func (p *Principal) Bound(project uuid.UUID) bool {
	return p.Projects != nil && !slices.Contains(p.Projects, project)
}

// Allows says whether the principal may do something to one resource.
func (p *Principal) Allows(action string, r Resource) bool {
	return p.Admin || allows(p.Policies, action, r)
}

// MayTry says whether there is any resource of a kind in a project that the principal may do something to.
func (p *Principal) MayTry(action, project, kind string) bool {
	_, none := p.Filter(action, project, kind, func(string) (uuid.UUID, bool) { return uuid.UUID{}, false })
	return !none
}

// Filter is what the principal's policies leave of the resources of a kind in a project: nil when nothing is kept back.
// none says that they leave nothing at all. parseID reads the public ids of the kind.
func (p *Principal) Filter(action, project, kind string, parseID func(string) (uuid.UUID, bool)) (filter *Filter, none bool) {
	if p.Admin {
		return nil, false
	}
	compiled, unrestricted, none := compile(p.Policies, action, project, kind, parseID)
	if unrestricted {
		return nil, none
	}
	return &compiled, none
}
