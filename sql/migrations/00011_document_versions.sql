-- +goose Up
-- What a document was before each of its changes. Its text then is the original that stored_path names.
CREATE TABLE document_versions (
    project_id        uuid NOT NULL,
    document_id       uuid NOT NULL,
    version           integer NOT NULL,
    title             text NOT NULL,
    tags              jsonb NOT NULL,
    metadata          jsonb NOT NULL,
    content_hash      bytea NOT NULL,
    original_filename text NOT NULL,
    stored_path       text NOT NULL,
    size              bigint NOT NULL,
    chunk_count       integer NOT NULL,
    -- created_at is when this version came to be, replaced_at when the next one took its place.
    created_at        timestamptz NOT NULL,
    replaced_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, document_id, version),
    FOREIGN KEY (project_id, document_id) REFERENCES documents (project_id, id) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE document_versions;
