-- +goose Up
CREATE TYPE job_status AS ENUM ('queued', 'processing', 'done', 'failed', 'skipped', 'cancelled');

CREATE TABLE jobs (
    project_id   uuid NOT NULL REFERENCES projects (id),
    id           uuid NOT NULL,
    filename     text NOT NULL,
    title        text NOT NULL,
    doc_type     text NOT NULL,
    tags         jsonb NOT NULL DEFAULT '{}',
    content_hash bytea NOT NULL,
    size         bigint NOT NULL,
    -- staging_path is the upload's key in the blob storage until the job has ended.
    staging_path text NOT NULL,
    status       job_status NOT NULL DEFAULT 'queued',
    -- river_job_id is the River job that took this one up.
    river_job_id bigint,
    attempts     integer NOT NULL DEFAULT 0,
    -- heartbeat_at is written every few seconds by the process that works on the job; a silent one has died.
    heartbeat_at timestamptz,
    -- phase is what a processing job is at: parse, embed or store; done of total count its chunks.
    phase        text,
    done         integer NOT NULL DEFAULT 0,
    total        integer NOT NULL DEFAULT 0,
    -- timings holds milliseconds by phase.
    timings      jsonb NOT NULL DEFAULT '{}',
    error_code   text,
    error        text,
    document_id  uuid,
    chunk_count  integer,
    created_at   timestamptz NOT NULL DEFAULT now(),
    started_at   timestamptz,
    completed_at timestamptz,
    PRIMARY KEY (project_id, id)
);

-- For lists, newest first; ids are UUIDv7, so they order by time.
CREATE INDEX jobs_newest ON jobs (project_id, status, id DESC);

-- For taking the next job up, over all projects, and for the number of open jobs.
CREATE INDEX jobs_open ON jobs (status, project_id, id) WHERE status IN ('queued', 'processing');

-- For the duplicate check of an upload against jobs in flight.
CREATE INDEX jobs_in_flight ON jobs (project_id, content_hash) WHERE status IN ('queued', 'processing');

-- +goose Down
DROP TABLE jobs;
DROP TYPE job_status;
