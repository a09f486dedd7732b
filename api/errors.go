package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/kb-search/kb/db"
)

// Error is the form in which every error leaves the server.
type Error struct {
	// Short is the kind of the error in a few words.
	Short string `json:"error" doc:"The error in a few words" example:"not found"`
	// Code is stable; programs compare it.
	Code string `json:"code" doc:"A stable code for programs" example:"not_found"`
	// Message is a sentence for the caller that says what to change.
	Message string `json:"message" doc:"What is wrong and what to change"`
	// Field names the part of the request that is meant.
	Field string `json:"field,omitempty" doc:"The part of the request that is meant" example:"body.top"`
	// DocumentID and JobID name what a duplicate is a duplicate of, Title its title.
	DocumentID string `json:"document_id,omitempty" doc:"The document that has the same content"`
	JobID      string `json:"job_id,omitempty" doc:"The job that works on the same content"`
	Title      string `json:"title,omitempty" doc:"The title of that document, or the file name of that job"`
	// Supported lists the file types that the server reads.
	Supported []string `json:"supported,omitempty" doc:"The supported file types"`

	// meta has further details in K's form.
	meta   map[string]any
	status int
}

func (e *Error) Error() string { return e.Message }

// GetStatus implements huma.StatusError.
func (e *Error) GetStatus() int { return e.status }

func errUnauthorized(short, code, message string) *Error {
	return &Error{status: http.StatusUnauthorized, Short: short, Code: code, Message: message}
}

func errForbidden(action string) *Error {
	return &Error{
		status: http.StatusForbidden, Short: "forbidden", Code: "forbidden",
		Message: "The caller may not do this; it takes a policy that allows " + action + ".",
	}
}

func errNotFound(what string) *Error {
	return &Error{status: http.StatusNotFound, Short: "not found", Code: "not_found", Message: "There is no such " + what + "."}
}

// isNotFound says whether an error is one that says that something is not there.
func isNotFound(err error) bool {
	var known *Error
	return errors.As(err, &known) && known.status == http.StatusNotFound
}

func errInvalid(field, format string, args ...any) *Error {
	return &Error{
		status: http.StatusBadRequest, Short: "invalid request", Code: "invalid_request", Field: field,
		Message: fmt.Sprintf(format, args...),
	}
}

func errTooLarge(limit int64) *Error {
	return &Error{
		status: http.StatusRequestEntityTooLarge, Short: "too large", Code: "too_large",
		Message: fmt.Sprintf("The request is larger than the limit of %d bytes.", limit),
	}
}

// mapError is the only table from a cause to what a caller sees of it.
func (s *Server) mapError(ctx context.Context, operationID string, err error) *Error {
	log := s.Logger.With(slog.String("operation", operationID), slog.String("request_id", requestID(ctx)), slog.Any("error", err))
	switch {
	case db.IsCancelled(ctx, err) && errors.Is(ctx.Err(), context.Canceled):
		log.InfoContext(ctx, "the caller went away")
		return &Error{status: 499, Short: "cancelled", Code: "cancelled", Message: "The request was cancelled."}
	case db.Kind(err) == db.KindNotFound:
		return errNotFound("thing")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errSearchTimeout):
		log.WarnContext(ctx, "took too long")
		return &Error{
			status: http.StatusServiceUnavailable, Short: "timeout", Code: "timeout",
			Message: "The server took too long; try again, or ask for less.",
		}
	case db.Kind(err) == db.KindRetry:
		log.ErrorContext(ctx, "database unavailable")
		return &Error{
			status: http.StatusServiceUnavailable, Short: "unavailable", Code: "unavailable",
			Message: "The database can't be reached at the moment; try again.",
		}
	case db.Kind(err) == db.KindInvalid:
		log.WarnContext(ctx, "the database refused a value")
		return errInvalid("", "The request holds a value that can't be stored.")
	}
	log.ErrorContext(ctx, "internal error")
	return &Error{
		status: http.StatusInternalServerError, Short: "internal error", Code: "internal",
		Message: "An error of the server's own; the operator finds it in the log under request " + requestID(ctx) + ".",
	}
}

// newHumaError is what huma calls for the errors that it finds itself: a body that does not fit its schema, and the like.
// It names the field and leaves the caller's values out.
func newHumaError(status int, message string, details ...error) *Error {
	if status == http.StatusUnprocessableEntity || status == 0 {
		status = http.StatusBadRequest
	}
	e := &Error{status: status, Short: strings.ToLower(http.StatusText(status)), Message: message}
	if status == http.StatusBadRequest {
		e.Short, e.Code = "invalid request", "invalid_request"
	} else {
		e.Code = strings.ReplaceAll(e.Short, " ", "_")
	}
	var sentences []string
	for _, detail := range details {
		var located huma.ErrorDetailer
		if !errors.As(detail, &located) {
			continue
		}
		found := located.ErrorDetail()
		if name, isForm := strings.CutPrefix(found.Location, "form."); isForm {
			found.Location = "body." + name
		}
		if e.Field == "" {
			e.Field = found.Location
		}
		if found.Message == validation.MsgExpectedMatchExactlyOneSchema { // Only those of textsSchema have several.
			found.Message = fmt.Sprintf("expected a string, or a list of at most %d strings, %d for keywords", maxFieldValues, maxKeywords)
		}
		sentences = append(sentences, strings.TrimSpace(found.Location+": "+found.Message))
	}
	if len(sentences) > 0 {
		e.Message = strings.Join(sentences[:min(len(sentences), 5)], "; ")
	}
	if status == http.StatusRequestEntityTooLarge {
		e.Short, e.Code = "too large", "too_large"
	}
	return e
}

// write sends an error outside of huma, in the form of the request's path.
func (e *Error) write(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_ = json.NewEncoder(w).Encode(e.in(familyOf(r.URL.Path)))
}

// documentErrors gives each operation the errors that it really has: validation answers 400 here, not huma's 422, and the
// paths of the knowledge API have a form of their own.
func documentErrors(document *huma.OpenAPI) {
	enveloped := document.Components.Schemas.Schema(reflect.TypeFor[envelope](), true, "Envelope")
	for path, item := range document.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch} {
			if op == nil {
				continue
			}
			if validation, found := op.Responses["422"]; found && !strings.Contains(op.Description, "422") {
				delete(op.Responses, "422")
				if op.Responses["400"] == nil {
					validation.Description = http.StatusText(http.StatusBadRequest)
					op.Responses["400"] = validation
				}
			}
			for status, response := range op.Responses {
				if media := response.Content["application/json"]; familyOf(path) == familyK && status >= "400" && media != nil {
					media.Schema = enveloped
				}
			}
		}
	}
}
