package api

import (
	"context"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
)

// maxDescription bounds a tag's description, which is one line, in characters.
const maxDescription = 500

func (s *Server) registerTags(api huma.API) {
	register(s, api, operation{
		ID: "listTags", Method: http.MethodGet, Path: "/api/v1/tags", Tag: "Tags",
		Summary: "List tags by name", Action: "documents:ListDocuments",
	}, s.tagList)
	register(s, api, operation{
		ID: "describeTag", Method: http.MethodPut, Path: "/api/v1/tags/{name}/description", Tag: "Tags",
		Summary:     "Set or clear a tag's description",
		Description: "The name matches whatever its case. Search results carry the descriptions of their documents' tags.",
		Action:      "documents:UpdateDocument", Errors: []int{http.StatusBadRequest, http.StatusNotFound},
	}, s.tagDescribe)
	register(s, api, operation{
		ID: "changeDocumentTags", Method: http.MethodPut, Path: "/api/v1/documents/{document_id}/tags", Tag: "Tags",
		Summary: "Add tags to a document, or take them away", Action: "documents:UpdateDocument",
		Errors: []int{http.StatusBadRequest, http.StatusNotFound},
	}, s.documentTagsChange)
}

type tagBody struct {
	_             struct{} `additionalProperties:"true"`
	Name          string   `json:"name" doc:"The tag's name"`
	DocumentCount int64    `json:"document_count" doc:"How many documents carry it"`
	Description   *string  `json:"description" doc:"What it stands for; null when nobody said"`
}

type tagListOutput struct {
	Body []tagBody
}

func (s *Server) tagList(ctx context.Context, _ *struct{}) (*tagListOutput, error) {
	rows, err := s.queries.TagList(ctx, s.Conn, projectOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("list tags: %w", err)
	}
	out := &tagListOutput{Body: make([]tagBody, len(rows))}
	for i, row := range rows {
		out.Body[i] = tagBody{Name: row.Name, DocumentCount: row.Documents, Description: row.Description}
	}
	return out, nil
}

type tagDescribeInput struct {
	Name string `path:"name" doc:"The tag's name, in any case"`
	Body struct {
		Description *string `json:"description" doc:"One line; null or empty clears it"`
	}
}

type tagDescribeOutput struct {
	Body tagDescribed
}

type tagDescribed struct {
	_           struct{} `additionalProperties:"true"`
	Name        string   `json:"name" doc:"The tag's name as it is stored"`
	Description *string  `json:"description" doc:"The description; null when there is none"`
}

func (s *Server) tagDescribe(ctx context.Context, in *tagDescribeInput) (*tagDescribeOutput, error) {
	description := ""
	if in.Body.Description != nil {
		description = cleanLine(*in.Body.Description)
	}
	if utf8.RuneCountInString(description) > maxDescription {
		return nil, errInvalid("body.description", "The description has more than %d characters.", maxDescription)
	}
	rows, err := s.queries.TagDescribe(ctx, s.Conn, db.TagDescribeParams{ProjectID: projectOf(ctx), Name: cleanLine(in.Name), Description: description})
	if err != nil {
		return nil, fmt.Errorf("describe a tag: %w", err)
	}
	if len(rows) == 0 {
		return nil, errNotFound("tag")
	}
	return &tagDescribeOutput{Body: tagDescribed{Name: rows[0].Name, Description: rows[0].Description}}, nil
}

type documentTagsChangeInput struct {
	DocumentID string `path:"document_id" doc:"The document's id"`
	Body       struct {
		Add    []string `json:"add,omitempty" maxItems:"100" doc:"Tag names to add"`
		Remove []string `json:"remove,omitempty" maxItems:"100" doc:"Tag names to take away, before the others are added"`
	}
}

type documentTagsOutput struct {
	Body []string
}

func (s *Server) documentTagsChange(ctx context.Context, in *documentTagsChangeInput) (*documentTagsOutput, error) {
	id, ok := parseID(prefixDocument, in.DocumentID)
	if !ok {
		return nil, errNotFound("document")
	}
	add, err := cleanTags("body.add", in.Body.Add)
	if err != nil {
		return nil, err
	}
	remove, err := cleanTags("body.remove", in.Body.Remove)
	if err != nil {
		return nil, err
	}
	var tags []string
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		row, err := s.queries.DocumentChangeTags(ctx, tx, db.DocumentChangeTagsParams{
			ProjectID: projectOf(ctx), ID: id, Added: db.TagBag(add), Removed: remove,
		})
		if db.Kind(err) == db.KindNotFound {
			return errNotFound("document")
		}
		if err != nil {
			return fmt.Errorf("change the tags of document %s: %w", id, err)
		}
		if tags, err = db.TagNames(row.Tags); err != nil {
			return fmt.Errorf("document %s: %w", id, err)
		}
		if len(tags) > maxTags {
			return errInvalid("body.add", "The document would have more than %d tags.", maxTags)
		}
		if err := s.queries.TagInsertMany(ctx, tx, db.TagInsertManyParams{ProjectID: projectOf(ctx), Names: tags}); err != nil {
			return fmt.Errorf("insert tags: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &documentTagsOutput{Body: tags}, nil
}
