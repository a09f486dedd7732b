package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

func (s *Server) registerVersions(api huma.API) {
	register(s, api, operation{
		ID: "listDocumentVersions", Method: http.MethodGet, Path: "/api/v1/documents/{document_id}/versions", Tag: "Documents",
		Summary: "List a document's earlier versions, the last first", Action: "documents:ListDocumentVersions", Errors: []int{http.StatusNotFound},
	}, s.versionList)
	register(s, api, operation{
		ID: "getDocumentVersion", Method: http.MethodGet, Path: "/api/v1/documents/{document_id}/versions/{version}", Tag: "Documents",
		Summary: "Get an earlier version of a document, with its text where it is a text", Action: "documents:GetDocumentVersion",
		Errors: []int{http.StatusBadRequest, http.StatusNotFound},
	}, s.versionGet)
}

type versionBody struct {
	_          struct{}  `additionalProperties:"true"`
	Version    int32     `json:"version" doc:"Counts from 1"`
	Title      string    `json:"title" doc:"The title then"`
	Tags       []string  `json:"tags" doc:"The tag names then"`
	Filename   string    `json:"original_filename" doc:"The name of the uploaded file then"`
	Size       int64     `json:"size" doc:"The size of the original in bytes"`
	CreatedAt  time.Time `json:"created_at" doc:"When this version came to be"`
	ReplacedAt time.Time `json:"replaced_at" doc:"When the next one took its place"`
	Text       *string   `json:"text,omitempty" doc:"The original then, when one version of a note, a Markdown, data or code file is asked for; others are downloaded"`
}

func newVersion(row db.DocumentVersion) (versionBody, error) {
	tags, err := db.TagNames(row.Tags)
	if err != nil {
		return versionBody{}, fmt.Errorf("version %d of document %s: %w", row.Version, row.DocumentID, err)
	}
	return versionBody{
		Version: row.Version, Title: row.Title, Tags: tags, Filename: row.OriginalFilename, Size: row.Size, CreatedAt: row.CreatedAt.UTC(), ReplacedAt: row.ReplacedAt.UTC(),
	}, nil
}

type versionListOutput struct {
	Body []versionBody
}

func (s *Server) versionList(ctx context.Context, in *documentInput) (*versionListOutput, error) {
	document, err := s.findDocument(ctx, in.DocumentID)
	if err != nil {
		return nil, err
	}
	rows, err := s.queries.DocumentVersionList(ctx, s.Conn, db.DocumentVersionListParams{ProjectID: projectOf(ctx), DocumentID: document.ID})
	if err != nil {
		return nil, fmt.Errorf("list the versions of document %s: %w", document.ID, err)
	}
	out := &versionListOutput{Body: make([]versionBody, len(rows))}
	for i, row := range rows {
		if out.Body[i], err = newVersion(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type versionGetInput struct {
	DocumentID string `path:"document_id" doc:"The document's id"`
	Version    int32  `path:"version" minimum:"1" doc:"The version"`
}

type versionGetOutput struct {
	Body versionBody
}

func (s *Server) versionGet(ctx context.Context, in *versionGetInput) (*versionGetOutput, error) {
	row, err := s.findVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	body, err := newVersion(row)
	if err != nil {
		return nil, err
	}
	if job.IsText(row.OriginalFilename) {
		original, err := s.Bucket.ReadAll(ctx, row.StoredPath)
		if err != nil {
			return nil, fmt.Errorf("read version %d of document %s: %w", in.Version, row.DocumentID, err)
		}
		text := job.Text(original)
		body.Text = &text
	}
	return &versionGetOutput{Body: body}, nil
}

// findVersion gives an earlier version of a document, or the error that says there is none.
func (s *Server) findVersion(ctx context.Context, in *versionGetInput) (db.DocumentVersion, error) {
	document, err := s.findDocument(ctx, in.DocumentID)
	if err != nil {
		return db.DocumentVersion{}, err
	}
	row, err := s.queries.DocumentVersionGet(ctx, s.Conn, db.DocumentVersionGetParams{ProjectID: projectOf(ctx), DocumentID: document.ID, Version: in.Version})
	if db.Kind(err) == db.KindNotFound {
		return db.DocumentVersion{}, errNotFound("version")
	}
	if err != nil {
		return db.DocumentVersion{}, fmt.Errorf("get version %d of document %s: %w", in.Version, document.ID, err)
	}
	return row, nil
}
