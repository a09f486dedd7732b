package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

type jobBody struct {
	_           struct{}           `additionalProperties:"true"`
	JobID       string             `json:"job_id" doc:"The job's id" example:"job_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	Filename    string             `json:"filename" doc:"The name of the uploaded file"`
	Title       string             `json:"title" doc:"The title that the caller gave, empty when none"`
	Status      string             `json:"status" enum:"queued,processing,done,failed,skipped,cancelled" doc:"What the job is at"`
	Path        *string            `json:"path" doc:"Where the file stands in the caller's own tree; null for a note without one"`
	Size        int64              `json:"size" doc:"The size of the upload in bytes"`
	Error       *string            `json:"error" doc:"Why the job failed, in plain words"`
	ErrorCode   *string            `json:"error_code" doc:"Why the job failed, for programs"`
	Warning     *string            `json:"warning" doc:"What to know of a job that went well otherwise, such as a converter that could not be reached"`
	DocumentID  *string            `json:"document_id" doc:"The document that the job made, or whose content the upload repeats"`
	ChunkCount  *int32             `json:"chunk_count" doc:"How many chunks the document has"`
	Progress    *jobProgress       `json:"progress,omitempty" doc:"How far the work is, while it is going on"`
	TimingsMS   map[string]float64 `json:"timings_ms" doc:"How long each phase took, in milliseconds"`
	Attempts    int32              `json:"attempts" doc:"How often the job was taken up"`
	CreatedAt   time.Time          `json:"created_at" doc:"When the upload came"`
	StartedAt   *time.Time         `json:"started_at" doc:"When the work began"`
	CompletedAt *time.Time         `json:"completed_at" doc:"When the job ended"`
}

type jobProgress struct {
	_     struct{} `additionalProperties:"true"`
	Phase string   `json:"phase" enum:"parse,embed,store" doc:"What is being done"`
	Done  int32    `json:"done" doc:"How many chunks are embedded"`
	Total int32    `json:"total" doc:"Of how many"`
}

func newJob(row db.Job) (jobBody, error) {
	body := jobBody{
		JobID: publicID(prefixJob, row.ID), Filename: row.Filename, Title: row.Title, Path: row.Path, Status: string(row.Status), Size: row.Size,
		Error: row.Error, Warning: row.Warning, ErrorCode: row.ErrorCode, DocumentID: publicIDPointer(prefixDocument, row.DocumentID),
		ChunkCount: row.ChunkCount, Attempts: row.Attempts, CreatedAt: row.CreatedAt.UTC(), StartedAt: utc(row.StartedAt),
		CompletedAt: utc(row.CompletedAt),
	}
	if row.Phase != nil {
		body.Progress = &jobProgress{Phase: *row.Phase, Done: row.Done, Total: row.Total}
	}
	if err := json.Unmarshal(row.Timings, &body.TimingsMS); err != nil {
		return jobBody{}, fmt.Errorf("read the timings of job %s: %w", row.ID, err)
	}
	return body, nil
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	in := t.UTC()
	return &in
}

func (s *Server) registerJobs(api huma.API) {
	register(s, api, operation{
		ID: "createJob", Method: http.MethodPost, Path: "/api/v1/jobs", Tag: "Jobs", Status: http.StatusAccepted,
		Summary: "Upload a file or a note",
		Description: "Takes a multipart form with a `file`, or a `note` and its `title`. The upload is stored and queued; the answer does not wait for it. " +
			"Content that is stored or queued already is 409, an unsupported file type 422. " +
			"A changed file under a `path` that was sent before becomes the next version of its document.",
		Action: "documents:CreateDocument", ProjectInBody: true,
		Errors:      []int{http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity},
		Middlewares: huma.Middlewares{s.readForm},
	}, s.jobCreate)
	register(s, api, operation{
		ID: "listJobs", Method: http.MethodGet, Path: "/api/v1/jobs", Tag: "Jobs",
		Summary: "List jobs, newest first", Action: "documents:ListDocuments", Errors: []int{http.StatusBadRequest},
	}, s.jobList)
	register(s, api, operation{
		ID: "getJob", Method: http.MethodGet, Path: "/api/v1/jobs/{job_id}", Tag: "Jobs",
		Summary: "Get a job", Action: getDocument, Errors: []int{http.StatusNotFound},
	}, s.jobGet)
	s.registerJobControl(api)
}

// formOverhead is what a multipart form may take beside its file or note: names, borders, short fields.
const formOverhead = 1 << 20

// formMemory is how much of a form's files is held in memory; the rest goes to temporary files. What is no file is held in
// memory always: Go allows formValues for it.
const (
	formMemory = 4 << 20
	formValues = formMemory + 10<<20
)

// readForm reads the multipart form within the upload limit before huma does, which has none.
func (s *Server) readForm(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	limit := s.MaxUploadBytes + formOverhead
	if r.ContentLength > limit {
		errTooLarge(s.MaxUploadBytes).write(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if err := r.ParseMultipartForm(formMemory); err != nil {
		readFormError(err, s.MaxUploadBytes).write(w, r)
		return
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	if err := refuseUnknownFields(r.MultipartForm); err != nil {
		err.write(w, r)
		return
	}
	next(ctx)
}

func readFormError(err error, limit int64) *Error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge(limit)
	case errors.Is(err, errFormTooLarge):
		e := errTooLarge(formValues)
		e.Message = fmt.Sprintf("The fields of the form take more than %d bytes; send a long text as a file.", formValues)
		return e
	case errors.Is(err, http.ErrNotMultipart):
		return errInvalid("body", "Send the upload as a multipart form (Content-Type: multipart/form-data).")
	default:
		return errInvalid("body", "The multipart form can't be read: it is broken or was cut off.")
	}
}

type jobCreateInput struct {
	RawBody huma.MultipartFormFiles[uploadForm]
}

type jobCreateOutput struct {
	Body jobCreated
}

type jobCreated struct {
	_        struct{} `additionalProperties:"true"`
	JobID    string   `json:"job_id" doc:"The job's id, to ask for its progress"`
	Status   string   `json:"status" enum:"queued" doc:"Always queued"`
	Filename string   `json:"filename" doc:"The name of the uploaded file"`
}

func (s *Server) jobCreate(ctx context.Context, in *jobCreateInput) (*jobCreateOutput, error) {
	upload, err := s.newUpload(ctx, &in.RawBody)
	if err != nil {
		return nil, err
	}
	defer upload.Close()
	if ctx, err = s.inProject(ctx, in.RawBody.Data().ProjectID); err != nil {
		return nil, err
	}
	if err := s.mayCreate(ctx, upload); err != nil {
		return nil, err
	}
	if err := s.refuseDuplicate(ctx, upload.Hash); err != nil {
		return nil, err
	}
	id := db.NewID()
	staging := job.StagingPath(id)
	if err := s.stage(ctx, staging, upload); err != nil {
		return nil, err
	}
	var row db.Job
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		var err error
		row, err = s.queries.JobInsert(ctx, tx, db.JobInsertParams{
			ProjectID: projectOf(ctx), ID: id, Filename: upload.Filename, Title: upload.Title, Path: upload.Path, OnConflict: upload.OnConflict,
			DocType: upload.DocType, KnowledgeType: upload.KnowledgeType, Tags: upload.Tags, Metadata: upload.Metadata,
			Chunking: upload.Chunking, ContentHash: upload.Hash, Size: upload.Size, StagingPath: staging,
		})
		if err != nil {
			return fmt.Errorf("insert job: %w", err)
		}
		if _, err := s.Jobs.InsertTx(ctx, tx, job.IngestArgs{}, nil); err != nil {
			return fmt.Errorf("enqueue job %s: %w", id, err)
		}
		return nil
	})
	if err != nil {
		_ = s.Bucket.Delete(context.WithoutCancel(ctx), staging)
		return nil, err
	}
	return &jobCreateOutput{Body: jobCreated{JobID: publicID(prefixJob, row.ID), Status: string(row.Status), Filename: row.Filename}}, nil
}

// refuseDuplicate answers 409 for content that is stored or on its way.
func (s *Server) refuseDuplicate(ctx context.Context, hash []byte) error {
	conflict := &Error{status: http.StatusConflict, Short: "duplicate", Code: "duplicate"}
	document, err := s.queries.DocumentGetByHash(ctx, s.Conn, db.DocumentGetByHashParams{ProjectID: projectOf(ctx), ContentHash: hash})
	if err == nil {
		conflict.Message = "A document with the same content is stored already."
		if accessOf(ctx).mayDocument(getDocument, document) {
			conflict.DocumentID, conflict.Title = publicID(prefixDocument, document.ID), document.Title
		}
		return conflict
	}
	if db.Kind(err) != db.KindNotFound {
		return fmt.Errorf("look for the same content: %w", err)
	}
	inFlight, err := s.queries.JobGetInFlight(ctx, s.Conn, db.JobGetInFlightParams{ProjectID: projectOf(ctx), ContentHash: hash})
	if err == nil {
		conflict.Message = "A job works on the same content already."
		documents, err := s.documentsOf(ctx, s.Conn, inFlight)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(documents, func(d db.Document) bool { return !accessOf(ctx).mayDocument(getDocument, d) }) {
			conflict.JobID, conflict.Title = publicID(prefixJob, inFlight.ID), inFlight.Filename
		}
		return conflict
	}
	if db.Kind(err) != db.KindNotFound {
		return fmt.Errorf("look for jobs of the same content: %w", err)
	}
	return nil
}

// documentsOf are the documents that a job is judged by, as job_seen does: the one that it makes, and that as it is now, or the
// one that it would be the next version of.
func (s *Server) documentsOf(ctx context.Context, conn db.DBTX, row db.Job) ([]db.Document, error) {
	documents := []db.Document{documentOf(row)}
	var document db.Document
	var err error
	switch {
	case row.DocumentID != nil:
		document, err = s.queries.DocumentGet(ctx, conn, db.DocumentGetParams{ProjectID: row.ProjectID, ID: *row.DocumentID})
	case row.Path != nil:
		document, err = s.queries.DocumentGetByPath(ctx, conn, db.DocumentGetByPathParams{ProjectID: row.ProjectID, Path: *row.Path})
	default:
		return documents, nil
	}
	if db.Kind(err) == db.KindNotFound {
		return documents, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the document of job %s: %w", row.ID, err)
	}
	return append(documents, document), nil
}

// documentOf is the document that a job makes, as far as policies look at one.
func documentOf(row db.Job) db.Document {
	document := db.Document{ID: row.ID, Path: row.Path, Tags: row.Tags}
	if row.DocumentID != nil {
		document.ID = *row.DocumentID
	}
	return document
}

// mayCreate refuses an upload that the caller's policies do not allow: as a new document, and as the next version of the
// document at its path.
func (s *Server) mayCreate(ctx context.Context, upload *upload) error {
	a := accessOf(ctx)
	if !a.mayDocument(a.action, db.Document{ID: db.NewID(), Path: upload.Path, Tags: upload.Tags}) {
		return errForbidden(a.action)
	}
	if upload.Path == nil || upload.OnConflict == job.ConflictDuplicate {
		return nil
	}
	document, err := s.queries.DocumentGetByPath(ctx, s.Conn, db.DocumentGetByPathParams{ProjectID: projectOf(ctx), Path: *upload.Path})
	switch {
	case db.Kind(err) == db.KindNotFound:
		return nil
	case err != nil:
		return fmt.Errorf("look for a document at the path: %w", err)
	case upload.OnConflict == job.ConflictReject:
		conflict := &Error{
			status: http.StatusConflict, Short: "conflict", Code: "path_taken",
			Message: "Another document stands at the path; send on_conflict=version to replace it.",
		}
		if a.mayDocument(getDocument, document) {
			conflict.DocumentID, conflict.Title = publicID(prefixDocument, document.ID), document.Title
		}
		return conflict
	case !a.mayDocument("documents:UpdateDocument", document):
		return errForbidden("documents:UpdateDocument")
	}
	return nil
}

type jobListInput struct {
	PageInput
	Status string `query:"status" enum:"queued,processing,done,failed,skipped,cancelled" doc:"Only jobs of this status"`
}

type jobListOutput struct {
	PageOutput
	Body []jobBody
}

func (s *Server) jobList(ctx context.Context, in *jobListInput) (*jobListOutput, error) {
	after, err := parseCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	params := db.JobListParams{ProjectID: projectOf(ctx), Policy: seen(ctx), MaxResults: in.size() + 1}
	query := url.Values{}
	if in.Status != "" {
		status := db.JobStatus(in.Status)
		params.Status = &status
		query.Set("status", in.Status)
	}
	if after != nil {
		params.BeforeID = &after.ID
	}
	rows, err := s.queries.JobList(ctx, s.Conn, params)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	rows, more := cutPage(in.PageInput, rows)
	total, err := s.queries.JobCount(ctx, s.Conn, db.JobCountParams{ProjectID: params.ProjectID, Status: params.Status, Policy: params.Policy})
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	out := &jobListOutput{PageOutput: PageOutput{Total: total}, Body: make([]jobBody, len(rows))}
	for i, row := range rows {
		if out.Body[i], err = newJob(row); err != nil {
			return nil, err
		}
	}
	if more {
		last := rows[len(rows)-1]
		next := cursor{Time: last.CreatedAt, ID: last.ID}
		out.Link = nextLink(ctx, "/api/v1/jobs", query, in.PageInput, next.String())
	}
	return out, nil
}

type jobGetInput struct {
	JobID string `path:"job_id" doc:"The job's id"`
}

type jobGetOutput struct {
	Body jobBody
}

func (s *Server) jobGet(ctx context.Context, in *jobGetInput) (*jobGetOutput, error) {
	id, ok := parseID(prefixJob, in.JobID)
	if !ok {
		return nil, errNotFound("job")
	}
	row, err := s.findJob(ctx, s.Conn, id)
	if err != nil {
		return nil, err
	}
	body, err := newJob(row)
	return &jobGetOutput{Body: body}, err
}

// findJob gives a job that the caller may do the operation to, or the error that says there is none. A job is judged by the
// document that it makes.
func (s *Server) findJob(ctx context.Context, conn db.DBTX, id uuid.UUID) (db.Job, error) {
	row, err := s.queries.JobGet(ctx, conn, db.JobGetParams{ProjectID: projectOf(ctx), ID: id})
	if db.Kind(err) == db.KindNotFound {
		return db.Job{}, errNotFound("job")
	}
	if err != nil {
		return db.Job{}, fmt.Errorf("get job %s: %w", id, err)
	}
	documents, err := s.documentsOf(ctx, conn, row)
	if err != nil {
		return db.Job{}, err
	}
	a := accessOf(ctx)
	for _, document := range documents {
		switch {
		case a.mayDocument(a.action, document):
		case a.write && a.mayDocument(getDocument, document):
			return db.Job{}, errForbidden(a.action)
		default:
			return db.Job{}, errNotFound("job")
		}
	}
	return row, nil
}
