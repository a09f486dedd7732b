package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb"
	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
)

type statusOutput struct {
	Body statusBody
}

type statusBody struct {
	_              struct{}       `additionalProperties:"true"`
	Version        string         `json:"version" doc:"The release of the server" example:"0.1.0"`
	ModelName      string         `json:"model_name" doc:"The embedding model"`
	ModelPrecision string         `json:"model_precision" doc:"The precision of its weights" enum:"int8,fp32"`
	EmbeddingDim   int            `json:"embedding_dim" doc:"The number of components of each vector"`
	Device         string         `json:"device" doc:"What the model runs on" enum:"cpu,cuda"`
	GPU            statusGPU      `json:"gpu"`
	Spaces         []spaceBody    `json:"embedding_spaces" doc:"All embedding spaces that the database knows"`
	Database       statusDatabase `json:"database"`
	Queue          statusQueue    `json:"queue"`
	Rerank         statusRerank   `json:"rerank"`
}

type statusGPU struct {
	_         struct{} `additionalProperties:"true"`
	Available bool     `json:"available" doc:"Whether the model runs on a GPU"`
	Reason    *string  `json:"reason" doc:"Why it does not"`
}

type statusRerank struct {
	_          struct{} `additionalProperties:"true"`
	Enabled    bool     `json:"enabled" doc:"Whether searches may be ordered by a cross-encoder"`
	Model      *string  `json:"model" doc:"The cross-encoder; null when there is none"`
	Loaded     bool     `json:"loaded" doc:"Whether it is loaded, or asked over HTTP"`
	Candidates int      `json:"candidates" doc:"How many results of a search it orders; 0 when there is none"`
}

type statusDatabase struct {
	_               struct{}         `additionalProperties:"true"`
	Documents       int64            `json:"documents" doc:"The number of documents"`
	DocumentsByType map[string]int64 `json:"documents_by_type" doc:"The number of documents of each type"`
	Chunks          int64            `json:"chunks" doc:"The number of chunks of all documents"`
	SizeBytes       int64            `json:"size_bytes" doc:"The size of the whole database on disk"`
	Source          string           `json:"source" enum:"embedded,external" doc:"Whether the server runs PostgreSQL itself, or uses the one of KB_DATABASE_URL"`
	Version         string           `json:"version" doc:"The version of PostgreSQL" example:"18.1"`
	VectorVersion   string           `json:"vector_version" doc:"The version of pgvector" example:"0.8.5"`
}

type statusQueue struct {
	_          struct{} `additionalProperties:"true"`
	Queued     int64    `json:"queued" doc:"Jobs that wait"`
	Processing int64    `json:"processing" doc:"Jobs that are worked on"`
}

func newStatusRerank(reranking search.Reranking) statusRerank {
	rerank := statusRerank{Enabled: reranking.Model != "", Loaded: reranking.Reranker != nil, Candidates: reranking.Candidates}
	if rerank.Enabled {
		rerank.Model = &reranking.Model
	}
	return rerank
}

func (s *Server) registerStatus(api huma.API) {
	register(s, api, operation{
		ID: "getStatus", Method: http.MethodGet, Path: "/api/v1/status", Tag: "Status",
		Summary: "What the server runs and holds", Action: "status:GetStatus",
	}, s.statusGet)
}

func (s *Server) statusGet(ctx context.Context, _ *struct{}) (*statusOutput, error) {
	if a := accessOf(ctx); !a.principal.MayTry(a.action, publicID(prefixProject, a.project), a.kind) {
		return nil, errForbidden(a.action)
	}
	documents, _, err := accessOf(ctx).compile("documents:ListDocuments", auth.KindDocument)
	if err != nil {
		return nil, err
	}
	byType, err := s.queries.DocumentCountByType(ctx, s.Conn, db.DocumentCountByTypeParams{ProjectID: projectOf(ctx), Policy: documents})
	if err != nil {
		return nil, fmt.Errorf("count documents: %w", err)
	}
	open, err := s.queries.JobCountOpen(ctx, s.Conn, db.JobCountOpenParams{ProjectID: projectOf(ctx), Policy: documents})
	if err != nil {
		return nil, fmt.Errorf("count open jobs: %w", err)
	}
	about, err := s.queries.DatabaseAbout(ctx, s.Conn)
	if err != nil {
		return nil, fmt.Errorf("look at the database: %w", err)
	}
	database := statusDatabase{
		DocumentsByType: make(map[string]int64, len(byType)), SizeBytes: about.Size, Source: s.Database, Version: about.Version,
		VectorVersion: about.VectorVersion,
	}
	for _, row := range byType {
		database.DocumentsByType[row.DocType] = row.Documents
		database.Documents += row.Documents
		database.Chunks += row.Chunks
	}
	body := statusBody{
		Version: kb.Version(), Device: s.Device.Name, GPU: statusGPU{Available: s.Device.Name == embed.DeviceCUDA}, Database: database,
		Queue: statusQueue{Queued: open.Queued, Processing: open.Processing}, Rerank: newStatusRerank(s.Searcher.Reranking()),
	}
	if s.Device.Reason != "" {
		body.GPU.Reason = &s.Device.Reason
	}
	spaces, err := s.queries.EmbeddingSpaceList(ctx, s.Conn)
	if err != nil {
		return nil, fmt.Errorf("list the embedding spaces: %w", err)
	}
	body.Spaces = make([]spaceBody, len(spaces))
	for i, row := range spaces {
		body.Spaces[i] = s.newSpace(row)
		if row.Active {
			body.ModelName, body.ModelPrecision, body.EmbeddingDim = row.Model, row.Precision, int(row.Dimensions)
		}
	}
	return &statusOutput{Body: body}, nil
}
