package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// operation is what one operation says of itself.
type operation struct {
	ID, Method, Path, Summary, Description string
	// Action is what the caller must be allowed to do; empty for operations that need no key.
	Action string
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

// register is the only caller of huma.Register. It documents the operation, and maps whatever error its handler gives to
// one that a caller may see; the cause goes to the log.
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
		documented.Errors = append(documented.Errors, http.StatusUnauthorized)
		documented.Extensions = map[string]any{"x-iam-action": op.Action}
	}
	huma.Register(api, documented, func(ctx context.Context, in *I) (*O, error) {
		out, err := handler(ctx, in)
		if err == nil {
			return out, nil
		}
		var known *Error
		if !errors.As(err, &known) {
			known = s.mapError(ctx, op.ID, err)
		}
		return nil, known
	})
}
