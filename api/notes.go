package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

// maxNoteBody bounds the body of a note's change: its text as JSON.
const maxNoteBody = 32 << 20

// Reviser changes stored notes while the caller waits.
type Reviser interface {
	Revise(ctx context.Context, revision job.Revision) (db.Document, error)
}

func (s *Server) registerNotes(api huma.API) {
	register(s, api, operation{
		ID: "updateNote", Method: http.MethodPatch, Path: "/api/v1/notes/{document_id}", Tag: "Documents",
		Summary: "Change a note",
		Description: "Takes a new text, title or list of tags and answers with the changed document. Search gives the new text at once; what was before " +
			"stays readable among the document's versions. A note that somebody else changes meanwhile is 409.",
		Action: "documents:UpdateDocument", MaxBodyBytes: maxNoteBody,
		Errors: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge},
	}, s.noteUpdate)
}

type noteUpdateInput struct {
	DocumentID string `path:"document_id" doc:"The note's document id"`
	Body       struct {
		Text  *string   `json:"text,omitempty" doc:"The new text"`
		Title *string   `json:"title,omitempty" doc:"The new title"`
		Tags  *[]string `json:"tags,omitempty" maxItems:"100" doc:"The new tags, in place of the present ones"`
	}
}

func (s *Server) noteUpdate(ctx context.Context, in *noteUpdateInput) (*documentDetailOutput, error) {
	document, err := s.findDocument(ctx, in.DocumentID)
	if err != nil {
		return nil, err
	}
	if document.DocType != job.TypeNote {
		return nil, &Error{status: http.StatusConflict, Short: "not a note", Code: "not_a_note", Message: "Only notes can be changed in place; upload a changed file again."}
	}
	revision := job.Revision{Document: document, Text: in.Body.Text}
	if in.Body.Text != nil && strings.TrimSpace(*in.Body.Text) == "" {
		return nil, errInvalid("body.text", "The text is blank; delete the note to be rid of it.")
	}
	if in.Body.Title != nil {
		title := cleanLine(*in.Body.Title)
		if title == "" || utf8.RuneCountInString(title) > maxTitle {
			return nil, errInvalid("body.title", "The title needs 1 to %d characters.", maxTitle)
		}
		revision.Title = &title
	}
	if in.Body.Tags != nil {
		names, err := cleanTags("body.tags", *in.Body.Tags)
		if err != nil {
			return nil, err
		}
		if revision.Tags, err = tagBag("body.tags", db.TagPairs(names)); err != nil {
			return nil, err
		}
	}
	revised, err := s.Reviser.Revise(ctx, revision)
	if err != nil {
		return nil, s.revisionError(err)
	}
	return s.documentDetail(ctx, revised)
}

func (s *Server) revisionError(err error) error {
	var unreadable *job.TypeError
	switch {
	case errors.Is(err, job.ErrChanged):
		return &Error{status: http.StatusConflict, Short: "conflict", Code: "version_conflict", Message: "The note was changed or deleted meanwhile; read it again."}
	case db.Kind(err) == db.KindConflict:
		return &Error{status: http.StatusConflict, Short: "duplicate", Code: "duplicate", Message: "Another document has the same text."}
	case errors.As(err, &unreadable):
		return errInvalid("body.text", "%s", unreadable.Message)
	}
	return err
}
