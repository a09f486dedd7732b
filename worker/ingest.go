package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/worker/job"
	"github.com/kb-search/kb/worker/parse"
)

// Error codes of failed jobs besides those of package parse.
const (
	codeInterrupted = "interrupted"
	codeLost        = "upload_lost"
	codeInternal    = "internal"
	codePathTaken   = "path_taken"
	codeDeleted     = "document_deleted"
)

// modelPause is how long a job is put off whose model's server does not answer.
const modelPause = 10 * time.Second

type ingestWorker struct {
	river.WorkerDefaults[job.IngestArgs]
	conn     db.Conn
	bucket   *blob.Bucket
	ingester *Ingester
	logger   *slog.Logger
}

// Work takes up the next kb job and brings it to an end. An error means that another try can help.
func (w *ingestWorker) Work(ctx context.Context, turn *river.Job[job.IngestArgs]) error {
	claimed, err := w.claim(ctx, turn.ID)
	if db.Kind(err) == db.KindNotFound {
		return w.wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("take up a job: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := w.beat(ctx, cancel, claimed)
	defer func() {
		cancel(nil)
		<-ended
	}()
	return w.run(ctx, cancel, claimed)
}

// claim takes up the next job, one process after the other: two that looked at once would take the same one.
func (w *ingestWorker) claim(ctx context.Context, turn int64) (db.Job, error) {
	var claimed db.Job
	err := db.InTx(ctx, w.conn, func(tx pgx.Tx) error {
		if err := db.New().JobClaimLock(ctx, tx); err != nil {
			return err
		}
		var err error
		claimed, err = db.New().JobClaim(ctx, tx, &turn)
		return err
	})
	return claimed, err
}

// wait ends the turn, or puts it off while jobs are queued behind others of their project.
func (w *ingestWorker) wait(ctx context.Context) error {
	queued, err := db.New().JobAnyQueued(ctx, w.conn)
	if err != nil {
		return fmt.Errorf("look for queued jobs: %w", err)
	}
	if queued {
		return river.JobSnooze(time.Second)
	}
	return nil
}

func (w *ingestWorker) run(ctx context.Context, cancel context.CancelCauseFunc, claimed db.Job) error {
	log := w.logger.With(slog.String("project_id", claimed.ProjectID.String()), slog.String("job_id", claimed.ID.String()))
	if claimed.Attempts > job.MaxAttempts {
		message := fmt.Sprintf("The server was interrupted %d times while it worked on this file; it is not tried again.", job.MaxAttempts)
		return w.fail(ctx, log, claimed, codeInterrupted, message)
	}
	finished, err := w.ingest(ctx, cancel, claimed)
	switch {
	case err == nil:
		if finished.Status == db.JobStatusSkipped {
			w.dropOriginal(ctx, log, claimed)
		}
		return w.clean(ctx, log, claimed, finished)
	case errors.Is(err, errEnded), errors.Is(context.Cause(ctx), errEnded):
		return w.abandon(ctx, log, claimed)
	case ctx.Err() != nil:
		return errors.Join(err, w.release(ctx, claimed))
	case errors.Is(err, embed.ErrUnavailable) && !w.modelAnswers(ctx):
		log.WarnContext(ctx, "ingestion put off until the model answers", slog.Any("error", err))
		if err := w.release(ctx, claimed); err != nil {
			return err
		}
		return river.JobSnooze(modelPause)
	case gcerrors.Code(err) == gcerrors.NotFound:
		return w.fail(ctx, log, claimed, codeLost, "The uploaded file is gone from the staging area; upload it again.")
	}
	var parseErr *parse.Error
	if errors.As(err, &parseErr) {
		return w.fail(ctx, log, claimed, parseErr.Code, parseErr.Message)
	}
	if claimed.Attempts < job.MaxAttempts {
		log.WarnContext(ctx, "ingestion put off", slog.Any("error", err), slog.Int("attempt", int(claimed.Attempts)))
		return err
	}
	log.ErrorContext(ctx, "ingestion failed", slog.Any("error", err))
	return w.fail(ctx, log, claimed, codeInternal, "An error of the server's own; the operator finds it in the log under this job's id.")
}

// modelAnswers says whether the model can be used at all. If it can, but not for a document, then it is the document that must not
// be tried for ever: the jobs behind it wait.
func (w *ingestWorker) modelAnswers(ctx context.Context) bool {
	stored, err := w.ingester.spaces.Active(ctx)
	if err != nil {
		return false
	}
	_, err = stored.Embed(ctx, embed.Passage, []string{"probe"})
	return err == nil
}

// ingest brings the job to done or skipped and gives its last state. It begins again when something else has come first: a
// document at the path, or another embedding space.
func (w *ingestWorker) ingest(ctx context.Context, cancel context.CancelCauseFunc, claimed db.Job) (db.Job, error) {
	for {
		existing, err := db.New().DocumentGetByHash(ctx, w.conn, db.DocumentGetByHashParams{ProjectID: claimed.ProjectID, ContentHash: claimed.ContentHash})
		switch {
		case err == nil:
			return w.skip(ctx, w.conn, claimed, existing.ID)
		case db.Kind(err) != db.KindNotFound:
			return db.Job{}, fmt.Errorf("look for the same content: %w", err)
		}
		old, err := w.standing(ctx, claimed)
		if err != nil {
			return db.Job{}, err
		}
		prepared, err := w.prepare(ctx, cancel, claimed, newSource(claimed, old))
		if err != nil {
			return db.Job{}, err
		}
		finished, err := w.store(ctx, claimed, old, prepared)
		if !errors.Is(err, ErrSpaceChanged) && !db.IsPathTaken(err) {
			return finished, err
		}
	}
}

// newSource is the upload of a job as a source. From old, the document that it becomes the next version of, if any, it
// takes over what people give to a document rather than to an upload.
func newSource(claimed db.Job, old *db.Document) Source {
	source := Source{
		ProjectID: claimed.ProjectID, Filename: claimed.Filename, Title: claimed.Title, Path: claimed.Path, DocType: claimed.DocType,
		KnowledgeType: claimed.KnowledgeType, Tags: claimed.Tags, Metadata: claimed.Metadata, Chunking: claimed.Chunking,
		ContentHash: claimed.ContentHash, Size: claimed.Size,
		StoredPath: job.StoredPath(claimed.ProjectID, claimed.ContentHash, claimed.Filename),
	}
	if old == nil {
		return source
	}
	if len(source.Tags) == 0 || string(source.Tags) == "{}" {
		source.Tags = old.Tags
	}
	if source.KnowledgeType == nil {
		source.KnowledgeType = old.KnowledgeType
	}
	return source
}

// prepare reads the upload and prepares it. Nothing here holds on to its bytes, which the ingester lets go.
func (w *ingestWorker) prepare(ctx context.Context, cancel context.CancelCauseFunc, claimed db.Job, source Source) (Prepared, error) {
	var err error
	if source.Data, err = w.bucket.ReadAll(ctx, claimed.StagingPath); err != nil {
		return Prepared{}, fmt.Errorf("read the upload: %w", err)
	}
	return w.ingester.Prepare(ctx, source, w.progress(ctx, cancel, claimed))
}

// standing is the document at the job's path that the upload becomes the next version of; nil when it becomes a document
// of its own.
func (w *ingestWorker) standing(ctx context.Context, claimed db.Job) (*db.Document, error) {
	if claimed.Path == nil || claimed.OnConflict == job.ConflictDuplicate {
		return nil, nil
	}
	old, err := db.New().DocumentGetByPath(ctx, w.conn, db.DocumentGetByPathParams{ProjectID: claimed.ProjectID, Path: *claimed.Path})
	switch {
	case db.Kind(err) == db.KindNotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for a document at the path: %w", err)
	case claimed.OnConflict == job.ConflictReject:
		return nil, &parse.Error{Code: codePathTaken, Message: "Another document stands at the path by now; upload with on_conflict=version to replace it."}
	}
	return &old, nil
}

// store commits document and job together: a new document, or the next version of old. Losing the race for the same
// content makes the job a skipped one; losing the one for the path is an error (db.IsPathTaken).
func (w *ingestWorker) store(ctx context.Context, claimed db.Job, old *db.Document, prepared Prepared) (db.Job, error) {
	started := time.Now()
	var finished db.Job
	err := db.InTx(ctx, w.conn, func(tx pgx.Tx) error {
		if err := job.LockOriginal(ctx, tx, prepared.Document.StoredPath); err != nil {
			return err
		}
		if err := w.bucket.Copy(ctx, prepared.Document.StoredPath, claimed.StagingPath, nil); err != nil {
			return fmt.Errorf("keep the original: %w", err)
		}
		document, err := w.put(ctx, tx, claimed, old, prepared)
		if err != nil {
			return err
		}
		prepared.Timings[PhaseStore] = time.Since(started)
		params := db.JobFinishParams{
			ProjectID: claimed.ProjectID, ID: claimed.ID, Status: db.JobStatusDone, DocumentID: &document.ID,
			ChunkCount: &document.ChunkCount, Timings: timingsJSON(prepared.Timings),
		}
		if prepared.Warning != "" {
			params.Warning = &prepared.Warning
		}
		finished, err = w.finish(ctx, tx, params)
		return err
	})
	if db.Kind(err) == db.KindConflict && !db.IsPathTaken(err) {
		existing, getErr := db.New().DocumentGetByHash(ctx, w.conn, db.DocumentGetByHashParams{ProjectID: claimed.ProjectID, ContentHash: claimed.ContentHash})
		if getErr != nil {
			return db.Job{}, fmt.Errorf("look for the same content: %w", getErr)
		}
		return w.skip(ctx, w.conn, claimed, existing.ID)
	}
	return finished, err
}

func (w *ingestWorker) put(ctx context.Context, tx pgx.Tx, claimed db.Job, old *db.Document, prepared Prepared) (db.Document, error) {
	if old == nil {
		return w.add(ctx, tx, claimed, prepared)
	}
	prepared.belongTo(old.ID)
	document, err := w.ingester.replace(ctx, tx, *old, prepared)
	if !errors.Is(err, job.ErrChanged) {
		return document, err
	}
	_, getErr := db.New().DocumentGet(ctx, tx, db.DocumentGetParams{ProjectID: old.ProjectID, ID: old.ID})
	if db.Kind(getErr) == db.KindNotFound {
		return db.Document{}, &parse.Error{Code: codeDeleted, Message: "The document was deleted while its new version was worked on; upload it again if it shall be there."}
	}
	return db.Document{}, errors.Join(err, getErr) // Another try begins with what it is now.
}

// add stores a document of its own, beside the one at its path where that is what the job asks for.
func (w *ingestWorker) add(ctx context.Context, tx pgx.Tx, claimed db.Job, prepared Prepared) (db.Document, error) {
	if claimed.Path != nil && claimed.OnConflict == job.ConflictDuplicate {
		free, err := db.New().DocumentFreePath(ctx, tx, db.DocumentFreePathParams{ProjectID: claimed.ProjectID, Path: *claimed.Path})
		if err != nil {
			return db.Document{}, fmt.Errorf("look for a free path: %w", err)
		}
		prepared.Document.Path = &free
	}
	return w.ingester.Store(ctx, tx, prepared)
}

func (w *ingestWorker) skip(ctx context.Context, conn db.Conn, claimed db.Job, documentID uuid.UUID) (db.Job, error) {
	return w.finish(ctx, conn, db.JobFinishParams{
		ProjectID: claimed.ProjectID, ID: claimed.ID, Status: db.JobStatusSkipped, DocumentID: &documentID, Timings: []byte("{}"),
	})
}

// errEnded is a job that is not processing any more when its work is done: somebody has cancelled it.
var errEnded = errors.New("the job has ended already")

// finish ends the job. The error for one that has ended otherwise is errEnded.
func (w *ingestWorker) finish(ctx context.Context, conn db.DBTX, params db.JobFinishParams) (db.Job, error) {
	finished, err := db.New().JobFinish(ctx, conn, params)
	if db.Kind(err) == db.KindNotFound {
		return db.Job{}, errEnded
	}
	if err != nil {
		return db.Job{}, fmt.Errorf("end the job as %s: %w", params.Status, err)
	}
	return finished, nil
}

func (w *ingestWorker) fail(ctx context.Context, log *slog.Logger, claimed db.Job, code, message string) error {
	finished, err := w.finish(ctx, w.conn, db.JobFinishParams{
		ProjectID: claimed.ProjectID, ID: claimed.ID, Status: db.JobStatusFailed, ErrorCode: &code, Error: &message, Timings: []byte("{}"),
	})
	if errors.Is(err, errEnded) {
		return w.abandon(ctx, log, claimed)
	}
	if err != nil {
		return err
	}
	w.putAway(ctx, log, claimed)
	return w.clean(ctx, log, claimed, finished)
}

// abandon leaves nothing but the upload of a job that was cancelled while it was worked on.
func (w *ingestWorker) abandon(ctx context.Context, log *slog.Logger, claimed db.Job) error {
	ctx = context.WithoutCancel(ctx)
	w.putAway(ctx, log, claimed)
	claimed.Status = db.JobStatusCancelled
	return w.clean(ctx, log, claimed, claimed)
}

// putAway keeps the upload of a failed or cancelled job for another try, outside the staging area.
func (w *ingestWorker) putAway(ctx context.Context, log *slog.Logger, claimed db.Job) {
	w.dropOriginal(ctx, log, claimed)
	if err := job.SetAside(context.WithoutCancel(ctx), w.bucket, claimed.ID); err != nil {
		log.WarnContext(ctx, "upload not kept for another try", slog.Any("error", err))
	}
}

// dropOriginal takes back the original that a failed or cancelled job has kept before it could store its document.
func (w *ingestWorker) dropOriginal(ctx context.Context, log *slog.Logger, claimed db.Job) {
	path := job.StoredPath(claimed.ProjectID, claimed.ContentHash, claimed.Filename)
	if err := job.DropOriginal(ctx, w.conn, w.bucket, claimed.ProjectID, path); err != nil {
		log.WarnContext(ctx, "original left behind", slog.Any("error", err))
	}
}

// release gives back the attempt of a job that a stop of the worker interrupts.
func (w *ingestWorker) release(ctx context.Context, claimed db.Job) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeat)
	defer cancel()
	return db.New().JobRelease(ctx, w.conn, db.JobReleaseParams{ProjectID: claimed.ProjectID, ID: claimed.ID})
}

// clean does what may be done late: the staged file goes, the statistics take the new words in. Neither can undo the job.
func (w *ingestWorker) clean(ctx context.Context, log *slog.Logger, claimed, finished db.Job) error {
	ctx = context.WithoutCancel(ctx)
	if err := job.DeleteFile(ctx, w.bucket, claimed.StagingPath); err != nil {
		log.WarnContext(ctx, "staged file left behind", slog.Any("error", err))
	}
	w.fold(ctx, log, claimed.ProjectID)
	attributes := []any{slog.String("status", string(finished.Status)), slog.Int64("size", claimed.Size)}
	if finished.ChunkCount != nil {
		attributes = append(attributes, slog.Int("chunks", int(*finished.ChunkCount)))
	}
	if finished.ErrorCode != nil {
		attributes = append(attributes, slog.String("code", *finished.ErrorCode))
	}
	log.InfoContext(ctx, "job ended", attributes...)
	return nil
}

// fold takes the new words into the statistics when no further job of the project waits; within a bulk load the upkeep
// does that every few seconds, for many documents at once.
func (w *ingestWorker) fold(ctx context.Context, log *slog.Logger, projectID uuid.UUID) {
	open, err := db.New().JobCountOpen(ctx, w.conn, db.JobCountOpenParams{ProjectID: projectID})
	if err == nil && open.Queued > 0 {
		return
	}
	if err := db.FoldStatistics(ctx, w.conn, projectID); err != nil {
		log.WarnContext(ctx, "statistics left for later", slog.Any("error", err))
	}
}

// progress writes what a job is at into its row. A write that fails costs a caller's view of the progress, no more; one that
// finds the job ended stops the work.
func (w *ingestWorker) progress(ctx context.Context, cancel context.CancelCauseFunc, claimed db.Job) func(phase string, done, total int) {
	return func(phase string, done, total int) {
		rows, err := db.New().JobProgress(ctx, w.conn, db.JobProgressParams{
			ProjectID: claimed.ProjectID, ID: claimed.ID, Phase: phase, Done: int32(done), Total: int32(total),
		})
		if err == nil && rows == 0 {
			cancel(errEnded)
		}
	}
}

// beat says every few seconds that this process works on the job, until ctx ends; then it closes the channel that it gives.
// Where the job turns out to have ended, it cancels the work.
func (w *ingestWorker) beat(ctx context.Context, cancel context.CancelCauseFunc, claimed db.Job) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				rows, err := db.New().JobHeartbeat(ctx, w.conn, db.JobHeartbeatParams{ProjectID: claimed.ProjectID, ID: claimed.ID})
				if err == nil && rows == 0 {
					cancel(errEnded)
				}
			}
		}
	}()
	return done
}

func timingsJSON(timings map[string]time.Duration) json.RawMessage {
	milliseconds := make(map[string]float64, len(timings))
	for phase, duration := range timings {
		milliseconds[phase] = float64(duration.Microseconds()) / 1000
	}
	encoded, err := json.Marshal(milliseconds)
	if err != nil {
		return json.RawMessage("{}")
	}
	return encoded
}
