package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
	register(s, api, operation{
		ID: "getDocumentTags", Method: http.MethodGet, Path: "/api/v1/documents/{document_id}/tags", Tag: "Tags",
		Summary: "Get a document's tags as a bag of strings", Description: "The tag x is the pair x and \"\", the tag k:v the pair k and v.",
		Action: "documents:GetDocument", Errors: []int{http.StatusNotFound},
	}, s.documentTagsGet)
	register(s, api, operation{
		ID: "mergeDocumentTags", Method: http.MethodPatch, Path: "/api/v1/documents/{document_id}/tags", Tag: "Tags",
		Summary: "Merge a bag of strings into a document's tags", Description: "Keys that are there already get the new value; others stay.",
		Action: "documents:UpdateDocument", Errors: []int{http.StatusBadRequest, http.StatusNotFound},
	}, s.documentTagsMerge)
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
	rows, err := s.queries.TagList(ctx, s.Conn, db.TagListParams{ProjectID: projectOf(ctx), Policy: seen(ctx)})
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
	name := cleanLine(in.Name)
	if err := s.mustSeeTag(ctx, name); err != nil {
		return nil, err
	}
	rows, err := s.queries.TagDescribe(ctx, s.Conn, db.TagDescribeParams{ProjectID: projectOf(ctx), Name: name, Description: description})
	if err != nil {
		return nil, fmt.Errorf("describe a tag: %w", err)
	}
	if len(rows) == 0 {
		return nil, errNotFound("tag")
	}
	return &tagDescribeOutput{Body: tagDescribed{Name: rows[0].Name, Description: rows[0].Description}}, nil
}

// mustSeeTag gives the error that says there is no such tag to a caller who sees none of the documents that carry it.
func (s *Server) mustSeeTag(ctx context.Context, name string) error {
	if seen(ctx) == nil {
		return nil
	}
	rows, err := s.queries.TagList(ctx, s.Conn, db.TagListParams{ProjectID: projectOf(ctx), Policy: seen(ctx)})
	if err != nil {
		return fmt.Errorf("list tags: %w", err)
	}
	if !slices.ContainsFunc(rows, func(row db.TagListRow) bool { return strings.EqualFold(row.Name, name) }) {
		return errNotFound("tag")
	}
	return nil
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
	add, err := cleanTags("body.add", in.Body.Add)
	if err != nil {
		return nil, err
	}
	remove, err := cleanTags("body.remove", in.Body.Remove)
	if err != nil {
		return nil, err
	}
	added, err := tagBag("body.add", db.TagPairs(add))
	if err != nil {
		return nil, err
	}
	if err := refuseReservedTags("body.remove", db.TagPairs(remove)); err != nil {
		return nil, err
	}
	row, err := s.changeTags(ctx, in.DocumentID, added, remove, "body.add")
	if err != nil {
		return nil, err
	}
	tags, err := db.TagNames(row.Tags)
	return &documentTagsOutput{Body: tags}, err
}

// changeTags takes tags of a document away, then adds others. field names the part of the request that adds too many.
func (s *Server) changeTags(ctx context.Context, publicID string, added json.RawMessage, removed []string, field string) (db.Document, error) {
	found, err := s.findDocument(ctx, publicID)
	if err != nil {
		return db.Document{}, err
	}
	id := found.ID
	var row db.Document
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		var err error
		row, err = s.queries.DocumentChangeTags(ctx, tx, db.DocumentChangeTagsParams{
			ProjectID: projectOf(ctx), ID: id, Added: added, Removed: removed,
		})
		if db.Kind(err) == db.KindNotFound {
			return errNotFound("document")
		}
		if err != nil {
			return fmt.Errorf("change the tags of document %s: %w", id, err)
		}
		tags, err := db.TagNames(row.Tags)
		if err != nil {
			return fmt.Errorf("document %s: %w", id, err)
		}
		if len(tags) > maxTags {
			return errInvalid(field, "The document would have more than %d tags.", maxTags)
		}
		if err := s.queries.TagInsertMany(ctx, tx, db.TagInsertManyParams{ProjectID: projectOf(ctx), Names: tags}); err != nil {
			return fmt.Errorf("insert tags: %w", err)
		}
		return nil
	})
	return row, err
}

type tagBagOutput struct {
	Body map[string]string
}

func newTagBag(row db.Document) (*tagBagOutput, error) {
	out := &tagBagOutput{}
	if err := json.Unmarshal(row.Tags, &out.Body); err != nil {
		return nil, fmt.Errorf("read the tags of document %s: %w", row.ID, err)
	}
	return out, nil
}

func (s *Server) documentTagsGet(ctx context.Context, in *documentInput) (*tagBagOutput, error) {
	row, err := s.findDocument(ctx, in.DocumentID)
	if err != nil {
		return nil, err
	}
	return newTagBag(row)
}

type documentTagsMergeInput struct {
	DocumentID string            `path:"document_id" doc:"The document's id"`
	Body       map[string]string `doc:"The tags to set"`
}

func (s *Server) documentTagsMerge(ctx context.Context, in *documentTagsMergeInput) (*tagBagOutput, error) {
	added, err := tagBag("body", in.Body)
	if err != nil {
		return nil, err
	}
	row, err := s.changeTags(ctx, in.DocumentID, added, nil, "body")
	if err != nil {
		return nil, err
	}
	return newTagBag(row)
}
