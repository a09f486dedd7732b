-- name: JobInsert :one
INSERT INTO jobs (
    project_id, id, filename, title, path, on_conflict, doc_type, knowledge_type, tags, metadata, chunking, content_hash, size, staging_path
) VALUES (
    @project_id, @id, @filename, @title, @path, @on_conflict, @doc_type, @knowledge_type, @tags, @metadata, @chunking, @content_hash, @size,
    @staging_path
)
RETURNING *;

-- name: JobGet :one
SELECT * FROM jobs WHERE project_id = @project_id AND id = @id;

-- name: JobGetInFlight :one
-- The oldest queued or processing job of the same content.
SELECT * FROM jobs
WHERE project_id = @project_id AND content_hash = @content_hash AND status IN ('queued', 'processing')
ORDER BY id
LIMIT 1;

-- name: JobList :many
-- Newest first. The cursor is the last id of the page before.
SELECT * FROM jobs
WHERE project_id = @project_id
    AND (sqlc.narg(status)::job_status IS NULL OR status = sqlc.narg(status)::job_status)
    AND (sqlc.narg(before_id)::uuid IS NULL OR id < sqlc.narg(before_id)::uuid)
    AND job_seen(sqlc.narg(policy)::jsonb, project_id, id, document_id, path, tags)
ORDER BY id DESC
LIMIT @max_results::int;

-- name: JobCount :one
SELECT count(*) FROM jobs
WHERE project_id = @project_id
    AND (sqlc.narg(status)::job_status IS NULL OR status = sqlc.narg(status)::job_status)
    AND job_seen(sqlc.narg(policy)::jsonb, project_id, id, document_id, path, tags);

-- name: JobCountOpen :one
SELECT
    count(*) FILTER (WHERE status = 'queued') AS queued,
    count(*) FILTER (WHERE status = 'processing') AS processing
FROM jobs
WHERE project_id = @project_id AND status IN ('queued', 'processing')
    AND job_seen(sqlc.narg(policy)::jsonb, project_id, id, document_id, path, tags);

-- name: JobClaimLock :exec
-- @sqlc-vet-disable tenant-scope
-- Waits until no other process takes a job up; lasts until the end of the transaction. JobClaim comes after it in a
-- statement of its own, so that it sees what the other one took.
SELECT pg_advisory_xact_lock(hashtextextended('kb claim', 0));

-- name: JobClaim :one
-- Takes up the next job: the one that this River job held before it was interrupted, else the oldest queued job of the
-- project that has waited longest for its turn. A project's jobs run one at a time, in order.
-- @sqlc-vet-disable tenant-scope
-- No project: the worker serves all projects; what it takes up names its project.
WITH mine AS (
    SELECT j.project_id, j.id FROM jobs AS j WHERE j.river_job_id = @river_job_id AND j.status = 'processing' LIMIT 1
),
turn AS (
    SELECT p.id AS project_id
    FROM projects AS p
    WHERE NOT EXISTS (SELECT FROM mine)
        AND EXISTS (SELECT FROM jobs AS j WHERE j.project_id = p.id AND j.status = 'queued')
        AND NOT EXISTS (SELECT FROM jobs AS j WHERE j.project_id = p.id AND j.status = 'processing')
    ORDER BY p.served_at NULLS FIRST, p.id
    LIMIT 1
),
served AS (
    UPDATE projects AS p SET served_at = clock_timestamp() FROM turn WHERE p.id = turn.project_id
),
next AS (
    SELECT mine.project_id, mine.id FROM mine
    UNION ALL
    (SELECT j.project_id, j.id
    FROM jobs AS j
    JOIN turn ON turn.project_id = j.project_id
    WHERE j.status = 'queued'
    ORDER BY j.id
    LIMIT 1)
)
UPDATE jobs AS j
SET status = 'processing', river_job_id = @river_job_id, attempts = j.attempts + 1,
    started_at = coalesce(j.started_at, clock_timestamp()), heartbeat_at = clock_timestamp(), phase = 'parse', done = 0, total = 0
FROM next
WHERE j.project_id = next.project_id AND j.id = next.id
RETURNING j.*;

-- name: JobCancel :one
-- Ends a job that waits or is worked on. Its worker notices at its next sign of life, and stores nothing in any case.
UPDATE jobs SET status = 'cancelled', phase = NULL, completed_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id AND status IN ('queued', 'processing')
RETURNING *;

-- name: JobRetry :one
-- Queues a failed or cancelled job again. It keeps its id, so it has its old place in the order.
UPDATE jobs
SET status = 'queued', attempts = 0, river_job_id = NULL, error = NULL, error_code = NULL, warning = NULL, timings = '{}',
    started_at = NULL, completed_at = NULL
WHERE project_id = @project_id AND id = @id AND status IN ('failed', 'cancelled')
RETURNING *;

-- name: JobCancelAll :many
-- Ends all jobs of a project that is being erased, and gives their ids.
UPDATE jobs SET status = CASE WHEN status IN ('queued', 'processing') THEN 'cancelled'::job_status ELSE status END
WHERE project_id = @project_id
RETURNING id;

-- name: JobListOpenOf :many
-- Of some jobs those that are queued or processing.
-- @sqlc-vet-disable tenant-scope
-- No project: the sweep looks at the uploads of all projects; nothing of a job is read.
SELECT id FROM jobs WHERE id = ANY (@ids::uuid[]) AND status IN ('queued', 'processing');

-- name: JobProgress :execrows
-- No row means that the job is not processing any more.
UPDATE jobs SET phase = @phase::text, done = @done, total = @total, heartbeat_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id AND status = 'processing';

-- name: JobHeartbeat :execrows
-- No row means that the job is not processing any more.
UPDATE jobs SET heartbeat_at = clock_timestamp() WHERE project_id = @project_id AND id = @id AND status = 'processing';

-- name: JobRelease :exec
-- Gives back the attempt of a job whose worker was asked to stop, or whose model is away: that is no fault of the file.
UPDATE jobs SET attempts = greatest(attempts - 1, 0)
WHERE project_id = @project_id AND id = @id AND status = 'processing';

-- name: JobRescue :execrows
-- Makes the turns of dead processes available again: a running turn whose job gives no sign of life, or that has held no job
-- for as long. The turn then takes its job up again, or the next one. A turn too many finds nothing to do.
-- @sqlc-vet-disable tenant-scope
-- No project: the worker serves all projects; nothing of a job is read.
UPDATE river_job AS r
SET state = 'available', scheduled_at = now()
WHERE r.kind = 'ingest'
    AND r.state = 'running'
    AND r.attempted_at < clock_timestamp() - make_interval(secs => @silent_seconds::float8)
    AND NOT EXISTS (
        SELECT FROM jobs AS j
        WHERE j.status = 'processing'
            AND j.river_job_id = r.id
            AND j.heartbeat_at >= clock_timestamp() - make_interval(secs => @silent_seconds::float8)
    );

-- name: JobFinish :one
-- Ends a processing job. It gives no row when the job is not processing any more.
UPDATE jobs
SET status = @status, error_code = sqlc.narg(error_code), error = sqlc.narg(error), document_id = sqlc.narg(document_id),
    chunk_count = sqlc.narg(chunk_count), warning = sqlc.narg(warning), timings = @timings, phase = NULL, completed_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id AND status = 'processing'
RETURNING *;

-- name: JobAnyQueued :one
-- @sqlc-vet-disable tenant-scope
-- No project: the worker serves all projects; nothing of a job is read.
SELECT EXISTS (SELECT FROM jobs WHERE status = 'queued');
