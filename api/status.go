package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kb-search/kb"
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
	Device         string         `json:"device" doc:"What the model runs on" example:"cpu"`
	Database       statusDatabase `json:"database"`
	Queue          statusQueue    `json:"queue"`
}

type statusDatabase struct {
	_               struct{}         `additionalProperties:"true"`
	Documents       int64            `json:"documents" doc:"The number of documents"`
	DocumentsByType map[string]int64 `json:"documents_by_type" doc:"The number of documents of each type"`
	Chunks          int64            `json:"chunks" doc:"The number of chunks of all documents"`
	SizeBytes       int64            `json:"size_bytes" doc:"The size of the whole database on disk"`
}

type statusQueue struct {
	_          struct{} `additionalProperties:"true"`
	Queued     int64    `json:"queued" doc:"Jobs that wait"`
	Processing int64    `json:"processing" doc:"Jobs that are worked on"`
}

func (s *Server) registerStatus(api huma.API) {
	register(s, api, operation{
		ID: "getStatus", Method: http.MethodGet, Path: "/api/v1/status", Tag: "Status",
		Summary: "What the server runs and holds", Action: "status:GetStatus",
	}, s.statusGet)
}

func (s *Server) statusGet(ctx context.Context, _ *struct{}) (*statusOutput, error) {
	byType, err := s.queries.DocumentCountByType(ctx, s.Conn, projectOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("count documents: %w", err)
	}
	open, err := s.queries.JobCountOpen(ctx, s.Conn, projectOf(ctx))
	if err != nil {
		return nil, fmt.Errorf("count open jobs: %w", err)
	}
	size, err := s.queries.DatabaseSize(ctx, s.Conn)
	if err != nil {
		return nil, fmt.Errorf("measure the database: %w", err)
	}
	database := statusDatabase{DocumentsByType: make(map[string]int64, len(byType)), SizeBytes: size}
	for _, row := range byType {
		database.DocumentsByType[row.DocType] = row.Documents
		database.Documents += row.Documents
		database.Chunks += row.Chunks
	}
	return &statusOutput{Body: statusBody{
		Version: kb.Version(), ModelName: s.Space.Model, ModelPrecision: s.Space.Precision, EmbeddingDim: s.Space.Dimensions,
		Device: "cpu", Database: database, Queue: statusQueue{Queued: open.Queued, Processing: open.Processing},
	}}, nil
}
