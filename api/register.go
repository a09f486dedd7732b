package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// operation is what one operation says of itself.
type operation struct {
	ID, Method, Path, Summary, Description string
	// Action is what the caller must be allowed to do; empty for operations that need no key.
	Action string
	// Reads says that a POST changes nothing.
	Reads bool
	// Admin says that only admins may do it, whatever policies say; Global that it is about no project.
	Admin, Global bool
	// ProjectInBody says that the body may name the project, too: the handler calls inProject.
	ProjectInBody bool
	// Status is the status of success. Defaults to 200.
	Status int
	// Errors are the further statuses that it can answer with.
	Errors []int
	// Responses documents answers that are no JSON.
	Responses map[string]*huma.Response
	// MaxBodyBytes bounds a JSON body. Defaults to 1 MiB.
	MaxBodyBytes int64
	Middlewares  huma.Middlewares
	Tag          string
}

// isWrite says whether the operation changes something.
func (op operation) isWrite() bool { return op.Method != http.MethodGet && !op.Reads }

// register is the only caller of huma.Register. It documents the operation with what it asks of the caller, has that checked
// before the body is read, and maps whatever error its handler gives to one that a caller may see; the cause goes to the log.
func register[I, O any](s *Server, api huma.API, op operation, handler func(context.Context, *I) (*O, error)) {
	documented := huma.Operation{
		OperationID: op.ID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description,
		DefaultStatus: op.Status, MaxBodyBytes: op.MaxBodyBytes, Middlewares: op.Middlewares, Tags: []string{op.Tag},
		Responses: op.Responses,
		Errors:    append(op.Errors, http.StatusInternalServerError), BodyReadTimeout: -1,
	}
	if op.Action == "" {
		documented.Security = []map[string][]string{}
	} else {
		documented.Middlewares = append(huma.Middlewares{s.guard(op)}, op.Middlewares...)
		documented.Errors = append(documented.Errors, http.StatusUnauthorized, http.StatusForbidden)
		documented.Extensions = map[string]any{"x-iam-action": op.Action}
		if !op.Global {
			documented.Errors = append(documented.Errors, http.StatusBadRequest, http.StatusNotFound)
			documented.Parameters = projectParameters()
		}
	}
	slices.Sort(documented.Errors)
	documented.Errors = slices.Compact(documented.Errors)
	huma.Register(api, documented, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err == nil {
			return out, nil
		}
		return nil, s.known(ctx, op.ID, err).in(familyOf(op.Path))
	})
}

// known gives the error that a caller may see of a cause.
func (s *Server) known(ctx context.Context, operationID string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return s.mapError(ctx, operationID, err)
}
