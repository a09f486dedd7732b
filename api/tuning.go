package api

import (
	"context"

	"github.com/google/uuid"

	"github.com/kb-search/kb/api/search"
)

// tuning gives what goes before the server's settings: what the request says, which only admins may, and then what the
// project has.
func (s *Server) tuning(ctx context.Context, asked *search.Tuning) (search.Tuning, error) {
	project, err := s.tuningOf(ctx, projectOf(ctx))
	if asked == nil || err != nil {
		return project, err
	}
	if !accessOf(ctx).principal.Administers(false) {
		e := errForbidden(searchKnowledge)
		e.Field, e.Message = "body.tuning", "Only admins may tune a search; leave tuning out."
		return search.Tuning{}, e
	}
	return asked.Or(project), nil
}

// tuningOf gives the search settings of a project, at most a second old.
func (s *Server) tuningOf(ctx context.Context, project uuid.UUID) (search.Tuning, error) {
	if project == uuid.Nil {
		return search.Tuning{}, nil
	}
	row, err := s.liveProject(ctx, project)
	if err != nil {
		return search.Tuning{}, err
	}
	return search.ReadTuning(row.SearchSettings)
}

// fusionOf gives the tuned fusion, or the usual one.
func fusionOf(tuning search.Tuning, usual search.Fusion) (search.Fusion, error) {
	if tuning.Fusion == nil {
		return usual, nil
	}
	return search.ParseFusion(*tuning.Fusion)
}
