package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

func (s *Server) registerJobControl(api huma.API) {
	register(s, api, operation{
		ID: "cancelJob", Method: http.MethodPost, Path: "/api/v1/jobs/{job_id}/cancel", Tag: "Jobs",
		Summary:     "Cancel a job",
		Description: "Ends a job that waits or is worked on; nothing of it is stored. A job that has ended already is 409.",
		Action:      "documents:CreateDocument", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.jobCancel)
	register(s, api, operation{
		ID: "retryJob", Method: http.MethodPost, Path: "/api/v1/jobs/{job_id}/retry", Tag: "Jobs",
		Summary: "Try a failed or cancelled job again",
		Description: "Queues the job again with the upload that it came with, which is kept for KB_RETRY_KEEP after the job has ended. " +
			"A job that has not failed, or whose upload is gone, is 409.",
		Action: "documents:CreateDocument", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.jobRetry)
}

func (s *Server) jobCancel(ctx context.Context, in *jobGetInput) (*jobGetOutput, error) {
	id, ok := parseID(prefixJob, in.JobID)
	if !ok {
		return nil, errNotFound("job")
	}
	if _, err := s.findJob(ctx, s.Conn, id); err != nil {
		return nil, err
	}
	row, err := s.queries.JobCancel(ctx, s.Conn, db.JobCancelParams{ProjectID: projectOf(ctx), ID: id})
	if db.Kind(err) == db.KindNotFound {
		return nil, s.refuseState(ctx, s.Conn, id, "job_ended", "The job has ended already: it is %s.")
	}
	if err != nil {
		return nil, fmt.Errorf("cancel job %s: %w", id, err)
	}
	if row.StartedAt == nil {
		// No worker will come by to put the upload away.
		if err := job.SetAside(context.WithoutCancel(ctx), s.Bucket, id); err != nil {
			s.Logger.WarnContext(ctx, "upload not kept for another try", slog.String("job_id", id.String()), slog.Any("error", err))
		}
	}
	body, err := newJob(row)
	return &jobGetOutput{Body: body}, err
}

func (s *Server) jobRetry(ctx context.Context, in *jobGetInput) (*jobGetOutput, error) {
	id, ok := parseID(prefixJob, in.JobID)
	if !ok {
		return nil, errNotFound("job")
	}
	if _, err := s.findJob(ctx, s.Conn, id); err != nil {
		return nil, err
	}
	var row db.Job
	err := db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		var err error
		row, err = s.queries.JobRetry(ctx, tx, db.JobRetryParams{ProjectID: projectOf(ctx), ID: id})
		if db.Kind(err) == db.KindNotFound {
			return s.refuseState(ctx, tx, id, "job_not_failed", "Only a failed or cancelled job can be tried again; this one is %s.")
		}
		if err != nil {
			return fmt.Errorf("queue job %s again: %w", id, err)
		}
		// Before the job can be taken up, and with the job locked: whoever else tries it again waits for this commit.
		there, err := job.TakeBack(ctx, s.Bucket, id)
		if err != nil {
			return err
		}
		if !there {
			return &Error{
				status: http.StatusConflict, Short: "conflict", Code: "upload_gone",
				Message: "The job's upload is not kept any more; upload it again.",
			}
		}
		if _, err := s.Jobs.InsertTx(ctx, tx, job.IngestArgs{}, nil); err != nil {
			return fmt.Errorf("enqueue job %s: %w", id, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := job.DeleteFile(context.WithoutCancel(ctx), s.Bucket, job.FailedPath(id)); err != nil {
		s.Logger.WarnContext(ctx, "kept upload left behind", slog.String("job_id", id.String()), slog.Any("error", err))
	}
	body, err := newJob(row)
	return &jobGetOutput{Body: body}, err
}

// refuseState tells a job whose status forbids what was asked from one that is not there. message takes the status.
func (s *Server) refuseState(ctx context.Context, conn db.DBTX, id uuid.UUID, code, message string) error {
	row, err := s.findJob(ctx, conn, id)
	if err != nil {
		return err
	}
	return &Error{status: http.StatusConflict, Short: "conflict", Code: code, Message: fmt.Sprintf(message, row.Status)}
}
