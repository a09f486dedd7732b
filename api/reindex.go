package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

type reindexBody struct {
	_           struct{}   `additionalProperties:"true"`
	State       string     `json:"state" enum:"idle,running,done,failed,cancelled" doc:"idle when there has been no reindex yet"`
	Space       *spaceBody `json:"space,omitempty" doc:"The embedding space that is filled; absent when idle"`
	Done        int64      `json:"done" doc:"How many chunks are embedded"`
	Total       int64      `json:"total" doc:"Of how many"`
	Error       *string    `json:"error" doc:"Why it failed, in plain words"`
	StartedAt   *time.Time `json:"started_at" doc:"When it was asked for"`
	CompletedAt *time.Time `json:"completed_at" doc:"When it ended"`
}

type spaceBody struct {
	_           struct{}   `additionalProperties:"true"`
	ID          int32      `json:"id" doc:"The number of the space"`
	Model       string     `json:"model" doc:"The model that makes its vectors"`
	Precision   string     `json:"precision" doc:"The precision of its weights"`
	SHA256      string     `json:"sha256" doc:"The SHA-256 of the file of its weights"`
	Dimensions  int32      `json:"dimensions" doc:"The number of components of each vector"`
	Active      bool       `json:"active" doc:"Whether searches use it"`
	Configured  bool       `json:"configured" doc:"Whether it is the one of KB_MODEL; a reindex makes that one active"`
	ActivatedAt *time.Time `json:"activated_at" doc:"When searches began to use it; null when they never did, or when its vectors are gone"`
}

func (s *Server) newSpace(row db.EmbeddingSpace) spaceBody {
	return spaceBody{
		ID: row.ID, Model: row.Model, Precision: row.Precision, SHA256: row.Sha256, Dimensions: row.Dimensions, Active: row.Active,
		Configured: row.ID == s.ConfiguredSpace, ActivatedAt: utc(row.ActivatedAt),
	}
}

func (s *Server) registerReindex(api huma.API) {
	register(s, api, operation{
		ID: "startReindex", Method: http.MethodPost, Path: "/api/v1/reindex", Tag: "Status", Status: http.StatusAccepted,
		Summary: "Embed all chunks anew",
		Description: "Embeds the chunks of all projects with the model of KB_MODEL. Searches go on meanwhile. When that model is another one than the one " +
			"that searches use, it takes over at the end, in one step, and the vectors of the old one stay for a rollback. One that runs already is 409.",
		Action: "status:Reindex", Admin: true, Global: true, Errors: []int{http.StatusConflict},
	}, s.reindexStart)
	register(s, api, operation{
		ID: "getReindex", Method: http.MethodGet, Path: "/api/v1/reindex", Tag: "Status",
		Summary: "How far the last reindex is", Action: "status:GetStatus", Global: true,
	}, s.reindexGet)
	register(s, api, operation{
		ID: "cancelReindex", Method: http.MethodDelete, Path: "/api/v1/reindex", Tag: "Status",
		Summary:     "Cancel the running reindex",
		Description: "Searches stay with the model that they use. When none runs, it is 409.",
		Action:      "status:Reindex", Admin: true, Global: true, Errors: []int{http.StatusConflict},
	}, s.reindexCancel)
	register(s, api, operation{
		ID: "rollbackReindex", Method: http.MethodPost, Path: "/api/v1/reindex/rollback", Tag: "Status", Status: http.StatusAccepted,
		Summary: "Put the previous model back",
		Description: "Makes the embedding space that searches used before the present one active again, after documents that came in since then are embedded " +
			"in it. When there is none, or a reindex runs, it is 409.",
		Action: "status:Reindex", Admin: true, Global: true, Errors: []int{http.StatusConflict},
	}, s.reindexRollback)
}

type reindexOutput struct {
	Body reindexBody
}

func (s *Server) reindexStart(ctx context.Context, _ *struct{}) (*reindexOutput, error) {
	space, err := s.findSpace(ctx, s.ConfiguredSpace)
	if err != nil {
		return nil, err
	}
	return s.reindexInto(ctx, space, space.Active)
}

func (s *Server) reindexRollback(ctx context.Context, _ *struct{}) (*reindexOutput, error) {
	previous, err := s.queries.EmbeddingSpaceGetPrevious(ctx, s.Conn)
	if db.Kind(err) == db.KindNotFound {
		return nil, &Error{status: http.StatusConflict, Short: "conflict", Code: "no_previous_space", Message: "Searches have used one model only; there is none to go back to."}
	}
	if err != nil {
		return nil, fmt.Errorf("read the previous embedding space: %w", err)
	}
	return s.reindexInto(ctx, previous, false)
}

// reindexInto starts to fill a space.
func (s *Server) reindexInto(ctx context.Context, space db.EmbeddingSpace, renew bool) (*reindexOutput, error) {
	var row db.Reindex
	err := db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		var err error
		if row, err = s.queries.ReindexInsert(ctx, tx, db.ReindexInsertParams{ID: db.NewID(), SpaceID: space.ID, Renew: renew}); err != nil {
			return err
		}
		_, err = s.Jobs.InsertTx(ctx, tx, job.ReindexArgs{}, nil)
		return err
	})
	if db.Kind(err) == db.KindConflict {
		return nil, &Error{status: http.StatusConflict, Short: "conflict", Code: "reindex_running", Message: "A reindex runs already; wait for it, or cancel it."}
	}
	if err != nil {
		return nil, fmt.Errorf("start a reindex: %w", err)
	}
	return s.newReindex(row, space), nil
}

// describeReindex gives a reindex with the space that it is about.
func (s *Server) describeReindex(ctx context.Context, row db.Reindex) (*reindexOutput, error) {
	space, err := s.findSpace(ctx, row.SpaceID)
	if err != nil {
		return nil, err
	}
	return s.newReindex(row, space), nil
}

func (s *Server) findSpace(ctx context.Context, id int32) (db.EmbeddingSpace, error) {
	space, err := s.queries.EmbeddingSpaceGet(ctx, s.Conn, id)
	if err != nil {
		return db.EmbeddingSpace{}, fmt.Errorf("read embedding space %d: %w", id, err)
	}
	return space, nil
}

func (s *Server) newReindex(row db.Reindex, space db.EmbeddingSpace) *reindexOutput {
	body := s.newSpace(space)
	return &reindexOutput{Body: reindexBody{
		State: string(row.State), Space: &body, Done: row.Done, Total: row.Total, Error: row.Error, StartedAt: utc(&row.CreatedAt),
		CompletedAt: utc(row.CompletedAt),
	}}
}

func (s *Server) reindexGet(ctx context.Context, _ *struct{}) (*reindexOutput, error) {
	if a := accessOf(ctx); !a.principal.MayTryAnywhere(a.action, a.kind) {
		return nil, errForbidden(a.action)
	}
	row, err := s.queries.ReindexGetLast(ctx, s.Conn)
	if db.Kind(err) == db.KindNotFound {
		return &reindexOutput{Body: reindexBody{State: "idle"}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the last reindex: %w", err)
	}
	return s.describeReindex(ctx, row)
}

func (s *Server) reindexCancel(ctx context.Context, _ *struct{}) (*reindexOutput, error) {
	row, err := s.queries.ReindexCancel(ctx, s.Conn)
	if db.Kind(err) == db.KindNotFound {
		return nil, &Error{status: http.StatusConflict, Short: "conflict", Code: "no_reindex", Message: "No reindex runs."}
	}
	if err != nil {
		return nil, fmt.Errorf("cancel the reindex: %w", err)
	}
	return s.describeReindex(ctx, row)
}
