package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

// statusReady is the status of every stored document: it is stored whole, with its chunks and vectors.
const statusReady = "ready"

// DocumentBody is a document without its chunks. It is exported since huma passes over embedded structs that are not.
type DocumentBody struct {
	_                struct{}        `additionalProperties:"true"`
	ID               string          `json:"id" doc:"The document's id" example:"doc_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	ProjectID        string          `json:"project_id" doc:"Its project's id"`
	FileID           string          `json:"file_id" doc:"The id of its original file"`
	Title            string          `json:"title" doc:"The title"`
	Path             *string         `json:"path" doc:"Where the file stands in the caller's own tree; null for a note without one"`
	DocType          string          `json:"doc_type" doc:"The document type" example:"markdown"`
	KnowledgeType    *string         `json:"knowledge_type" doc:"What kind of knowledge it is, in the caller's own words"`
	Tags             []string        `json:"tags" doc:"Tag names, sorted"`
	Metadata         json.RawMessage `json:"metadata" doc:"What the file says about itself, such as Markdown front matter"`
	OriginalFilename string          `json:"original_filename" doc:"The name of the uploaded file"`
	Filename         string          `json:"filename" doc:"The name of the uploaded file, as original_filename"`
	ContentType      string          `json:"content_type" doc:"The media type of the original, by its name" example:"text/markdown; charset=utf-8"`
	ContentHash      string          `json:"content_hash" doc:"The SHA-256 of the original, in hex"`
	Size             int64           `json:"size" doc:"The size of the original in bytes"`
	Status           string          `json:"status" enum:"ready" doc:"Always ready: a document is there once it can be searched"`
	ChunkCount       int32           `json:"chunk_count" doc:"How many chunks it has"`
	Version          int32           `json:"version" doc:"Counts from 1"`
	CreatedAt        time.Time       `json:"created_at" doc:"When it was ingested"`
	UpdatedAt        *time.Time      `json:"updated_at" doc:"When it last changed; null until the first change"`
}

type documentDetailBody struct {
	DocumentBody
	HasFile bool        `json:"has_file" doc:"Whether the original file is there"`
	Chunks  []chunkBody `json:"chunks" doc:"All chunks, in order"`
}

type chunkBody struct {
	_       struct{} `additionalProperties:"true"`
	ID      string   `json:"id" doc:"The chunk's id"`
	Seq     int32    `json:"seq" doc:"Its place in the document, from 0"`
	Page    *int32   `json:"page" doc:"Its page in the source, from 1; null where there are none"`
	Section string   `json:"section" doc:"The headings above it, outermost first, joined by > "`
	Text    string   `json:"text" doc:"Its text"`
}

func newDocument(row db.Document) (DocumentBody, error) {
	tags, err := db.TagNames(row.Tags)
	if err != nil {
		return DocumentBody{}, fmt.Errorf("document %s: %w", row.ID, err)
	}
	return DocumentBody{
		ID: publicID(prefixDocument, row.ID), ProjectID: publicID(prefixProject, row.ProjectID), FileID: publicID(prefixFile, row.ID),
		Title: row.Title, Path: row.Path, DocType: row.DocType, KnowledgeType: row.KnowledgeType, Tags: tags, Metadata: row.Metadata,
		OriginalFilename: row.OriginalFilename, Filename: row.OriginalFilename, ContentType: contentType(row.OriginalFilename),
		ContentHash: fmt.Sprintf("%x", row.ContentHash), Size: row.Size, Status: statusReady, ChunkCount: row.ChunkCount,
		Version: row.Version, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: utc(row.UpdatedAt),
	}, nil
}

func (s *Server) registerDocuments(api huma.API) {
	register(s, api, operation{
		ID: "listDocuments", Method: http.MethodGet, Path: "/api/v1/documents", Tag: "Documents",
		Summary: "List documents, the last changed first", Action: "documents:ListDocuments", Errors: []int{http.StatusBadRequest},
	}, s.documentList)
	register(s, api, operation{
		ID: "getDocument", Method: http.MethodGet, Path: "/api/v1/documents/{document_id}", Tag: "Documents",
		Summary: "Get a document with its chunks", Action: getDocument, Errors: []int{http.StatusNotFound},
	}, s.documentGet)
	register(s, api, operation{
		ID: "deleteDocument", Method: http.MethodDelete, Path: "/api/v1/documents/{document_id}", Tag: "Documents",
		Summary: "Delete a document, its chunks, vectors and original", Action: "documents:DeleteDocument",
		Errors: []int{http.StatusNotFound},
	}, s.documentDelete)
}

type documentListInput struct {
	PageInput
	Type string   `query:"type" maxLength:"100" doc:"Only documents of this type"`
	Tags []string `query:"tags,explode" maxItems:"100" doc:"Only documents that carry all of these tags; repeated, or separated by commas"`

	PathPrefix string `query:"path_prefix" maxLength:"1000" doc:"Only documents whose path starts with this; the leading slash may be left out"`

	Metadata string `query:"metadata" doc:"Only documents whose metadata meets all of these conditions: a JSON object of metadata keys, each with a string, a number, true or false that the value equals, or with an object of operators: in with a list of those, or gt, gte, lt and lte with a number or a string" example:"{\"owner\": \"docs\", \"year\": {\"gte\": 2020}}"`

	CreatedAfter  time.Time `query:"created_after" doc:"Only documents ingested at this time or later (RFC 3339)"`
	CreatedBefore time.Time `query:"created_before" doc:"Only documents ingested before this time"`
	UpdatedAfter  time.Time `query:"updated_after" doc:"Only documents whose last change, or ingestion, was at this time or later"`
	UpdatedBefore time.Time `query:"updated_before" doc:"Only documents whose last change, or ingestion, was before this time"`
}

// Resolve refuses a filter that is sent twice or empty: huma would take the first, or none.
func (in *documentListInput) Resolve(ctx huma.Context) []error {
	address := ctx.URL()
	if sent, there := address.Query()["metadata"]; there && (len(sent) > 1 || sent[0] == "") {
		return []error{&huma.ErrorDetail{Location: "query.metadata", Message: "expected one JSON object"}}
	}
	return nil
}

// filter gives the conditions on documents.
func (in *documentListInput) filter() (db.DocumentFilter, error) {
	filter := db.DocumentFilter{
		DocType: cleanLine(in.Type), CreatedAfter: bound(in.CreatedAfter), CreatedBefore: bound(in.CreatedBefore),
		UpdatedAfter: bound(in.UpdatedAfter), UpdatedBefore: bound(in.UpdatedBefore),
	}
	if prefix := cleanPrefix(in.PathPrefix); prefix != "" {
		filter.Paths = db.Texts{prefix}
	}
	var err error
	if filter.Tags, err = readTags("query.tags", in.Tags); err != nil {
		return filter, err
	}
	return filter, filterMetadata(&filter, "query.metadata", in.Metadata)
}

// query writes the conditions as the next page has them.
func (in *documentListInput) query() url.Values {
	query := url.Values{"tags": in.Tags}
	for name, value := range map[string]string{"type": in.Type, "path_prefix": in.PathPrefix, "metadata": in.Metadata} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, value := range map[string]time.Time{
		"created_after": in.CreatedAfter, "created_before": in.CreatedBefore, "updated_after": in.UpdatedAfter, "updated_before": in.UpdatedBefore,
	} {
		if !value.IsZero() {
			query.Set(name, value.Format(time.RFC3339Nano))
		}
	}
	return query
}

// bound is nil for a time that was not given.
func bound(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

type documentListOutput struct {
	PageOutput
	Body []DocumentBody
}

func (s *Server) documentList(ctx context.Context, in *documentListInput) (*documentListOutput, error) {
	after, err := parseCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	filter.Policies = policies(ctx)
	narrowed, err := filter.JSON()
	if err != nil {
		return nil, err
	}
	params := db.DocumentListParams{ProjectID: projectOf(ctx), Filter: narrowed, MaxResults: in.size() + 1}
	if after != nil {
		params.BeforeTime, params.BeforeID = &after.Time, after.ID
	}
	rows, err := s.queries.DocumentList(ctx, s.Conn, params)
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	rows, more := cutPage(in.PageInput, rows)
	total, err := s.queries.DocumentCount(ctx, s.Conn, db.DocumentCountParams{ProjectID: params.ProjectID, Filter: narrowed})
	if err != nil {
		return nil, fmt.Errorf("count documents: %w", err)
	}
	out := &documentListOutput{PageOutput: PageOutput{Total: total}, Body: make([]DocumentBody, len(rows))}
	for i, row := range rows {
		if out.Body[i], err = newDocument(row); err != nil {
			return nil, err
		}
	}
	if more {
		last := rows[len(rows)-1]
		next := cursor{Time: last.CreatedAt, ID: last.ID}
		if last.UpdatedAt != nil {
			next.Time = *last.UpdatedAt
		}
		out.Link = nextLink(ctx, "/api/v1/documents", in.query(), in.PageInput, next.String())
	}
	return out, nil
}

type documentInput struct {
	DocumentID string `path:"document_id" doc:"The document's id"`
}

// findDocument gives the document of a public id that the caller may do the operation to, or the error that says there is none.
func (s *Server) findDocument(ctx context.Context, publicID string) (db.Document, error) {
	id, ok := parseID(prefixDocument, publicID)
	if !ok {
		return db.Document{}, errNotFound("document")
	}
	row, err := s.queries.DocumentGet(ctx, s.Conn, db.DocumentGetParams{ProjectID: projectOf(ctx), ID: id})
	if db.Kind(err) == db.KindNotFound {
		return db.Document{}, errNotFound("document")
	}
	if err != nil {
		return db.Document{}, fmt.Errorf("get document %s: %w", id, err)
	}
	switch a := accessOf(ctx); {
	case a.mayDocument(a.action, row):
		return row, nil
	case a.write && a.mayDocument(getDocument, row):
		return db.Document{}, errForbidden(a.action)
	default:
		return db.Document{}, errNotFound("document")
	}
}

type documentDetailOutput struct {
	Body documentDetailBody
}

func (s *Server) documentGet(ctx context.Context, in *documentInput) (*documentDetailOutput, error) {
	row, err := s.findDocument(ctx, in.DocumentID)
	if err != nil {
		return nil, err
	}
	return s.documentDetail(ctx, row)
}

// documentDetail gives a document with its chunks.
func (s *Server) documentDetail(ctx context.Context, row db.Document) (*documentDetailOutput, error) {
	chunks, err := s.queries.ChunkListByDocument(ctx, s.Conn, db.ChunkListByDocumentParams{ProjectID: projectOf(ctx), DocumentID: row.ID})
	if err != nil {
		return nil, fmt.Errorf("list chunks of document %s: %w", row.ID, err)
	}
	hasFile, err := s.Bucket.Exists(ctx, row.StoredPath)
	if err != nil {
		return nil, fmt.Errorf("look for the original of document %s: %w", row.ID, err)
	}
	document, err := newDocument(row)
	if err != nil {
		return nil, err
	}
	body := documentDetailBody{DocumentBody: document, HasFile: hasFile, Chunks: make([]chunkBody, len(chunks))}
	for i, c := range chunks {
		body.Chunks[i] = chunkBody{ID: publicID(prefixChunk, c.ID), Seq: c.Seq, Page: c.Page, Section: c.Section, Text: c.Content}
	}
	return &documentDetailOutput{Body: body}, nil
}

// dropOriginals deletes files that no document has any more. The document is gone; a file that stays behind for a moment is
// seen by nobody.
func (s *Server) dropOriginals(ctx context.Context, paths []string) {
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if err := job.DropOriginal(ctx, s.Conn, s.Bucket, projectOf(ctx), path); err != nil {
			s.Logger.WarnContext(ctx, "original left behind", slog.String("path", path), slog.Any("error", err))
		}
	}
}

type documentDeletedOutput struct {
	Body documentDeleted
}

type documentDeleted struct {
	_       struct{} `additionalProperties:"true"`
	ID      string   `json:"id" doc:"The document's id"`
	Deleted bool     `json:"deleted" doc:"Always true"`
}

func (s *Server) documentDelete(ctx context.Context, in *documentInput) (*documentDeletedOutput, error) {
	found, err := s.findDocument(ctx, in.DocumentID)
	if err != nil {
		return nil, err
	}
	id := found.ID
	var originals []string
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		versions, err := s.queries.DocumentVersionList(ctx, tx, db.DocumentVersionListParams{ProjectID: projectOf(ctx), DocumentID: id})
		if err != nil {
			return fmt.Errorf("list the versions of document %s: %w", id, err)
		}
		for _, version := range versions {
			originals = append(originals, version.StoredPath)
		}
		if err := s.queries.ChunkDeleteByDocument(ctx, tx, db.ChunkDeleteByDocumentParams{ProjectID: projectOf(ctx), DocumentID: id}); err != nil {
			return fmt.Errorf("delete the chunks of document %s: %w", id, err)
		}
		row, err := s.queries.DocumentDelete(ctx, tx, db.DocumentDeleteParams{ProjectID: projectOf(ctx), ID: id})
		if db.Kind(err) == db.KindNotFound {
			return errNotFound("document")
		}
		if err != nil {
			return fmt.Errorf("delete document %s: %w", id, err)
		}
		originals = append(originals, row.StoredPath)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.dropOriginals(context.WithoutCancel(ctx), originals)
	return &documentDeletedOutput{Body: documentDeleted{ID: in.DocumentID, Deleted: true}}, nil
}
