-- +goose Up
-- Policies are the whole deployment's: what one allows in which project stands in its document.
CREATE TABLE policies (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    document   jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz
);

-- What the subjects of tokens hold beside what their tokens say.
CREATE TABLE policy_subjects (
    subject   text NOT NULL,
    policy_id uuid NOT NULL REFERENCES policies (id),
    PRIMARY KEY (subject, policy_id)
);

-- For the check that a policy is in use.
CREATE INDEX policy_subjects_policy ON policy_subjects (policy_id);

CREATE TABLE api_keys (
    project_id   uuid NOT NULL REFERENCES projects (id),
    id           uuid NOT NULL,
    name         text NOT NULL,
    -- prefix is the part of the key that is no secret; it finds the row.
    prefix       text NOT NULL,
    -- hash is the SHA-256 of the key, whose 256 random bits need no slow hash.
    hash         bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    -- last_used_at is written once a minute at most.
    last_used_at timestamptz,
    PRIMARY KEY (project_id, id)
);

-- For authentication, which knows no project yet. Two keys may share a prefix; their hashes differ.
CREATE INDEX api_keys_prefix ON api_keys (prefix);

CREATE TABLE api_key_policies (
    project_id uuid NOT NULL,
    key_id     uuid NOT NULL,
    policy_id  uuid NOT NULL REFERENCES policies (id),
    PRIMARY KEY (project_id, key_id, policy_id),
    FOREIGN KEY (project_id, key_id) REFERENCES api_keys (project_id, id) ON DELETE CASCADE
);

-- For the check that a policy is in use.
CREATE INDEX api_key_policies_policy ON api_key_policies (policy_id);

-- A project that is being erased is seen by nobody any more.
ALTER TABLE projects ADD COLUMN updated_at timestamptz, ADD COLUMN erased_at timestamptz;

-- A receipt for a project that was erased: what was there, and that nothing is left. It outlives the project.
CREATE TABLE project_erasures (
    project_id   uuid PRIMARY KEY,
    name         text NOT NULL,
    -- erased and remaining count rows by table, and originals.
    erased       jsonb NOT NULL DEFAULT '{}',
    remaining    jsonb NOT NULL DEFAULT '{}',
    requested_by text NOT NULL,
    requested_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz
);

-- How many queries were embedded for a project, by day.
CREATE TABLE embedding_usage (
    project_id uuid NOT NULL REFERENCES projects (id),
    day        date NOT NULL,
    queries    bigint NOT NULL,
    PRIMARY KEY (project_id, day)
);

-- job_seen says whether a compiled policy lets a job be seen: as the document that it makes, and as that is now, or as the one
-- that it would be the next version of.
-- +goose StatementBegin
CREATE FUNCTION job_seen(filter jsonb, project_id uuid, id uuid, document_id uuid, path text, tags jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN filter IS NULL
    OR policy_allows(filter, coalesce(document_id, id), path, tags)
    AND NOT EXISTS (
        SELECT FROM documents AS d
        WHERE d.project_id = job_seen.project_id
            AND (d.id = job_seen.document_id OR job_seen.document_id IS NULL AND d.path = job_seen.path)
            AND NOT policy_allows(filter, d.id, d.path, d.tags)
    );
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION job_seen(jsonb, uuid, uuid, uuid, text, jsonb);
DROP TABLE embedding_usage;
DROP TABLE project_erasures;
ALTER TABLE projects DROP COLUMN erased_at, DROP COLUMN updated_at;
DROP TABLE api_key_policies;
DROP TABLE api_keys;
DROP TABLE policy_subjects;
DROP TABLE policies;
