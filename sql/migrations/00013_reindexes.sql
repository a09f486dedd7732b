-- +goose Up
-- activated_at is when searches last began to use the space; the one before the active one is what a rollback goes back to.
ALTER TABLE embedding_spaces ADD COLUMN activated_at timestamptz;
UPDATE embedding_spaces SET activated_at = created_at WHERE active;

CREATE TYPE reindex_state AS ENUM ('running', 'done', 'failed', 'cancelled');

-- A reindex embeds all chunks anew, for one space. One that is about a space that is not active makes it active at its end.
CREATE TABLE reindexes (
    id              uuid PRIMARY KEY,
    space_id        integer NOT NULL REFERENCES embedding_spaces (id),
    -- renew embeds chunks that have a vector in the space already, too.
    renew           boolean NOT NULL,
    state           reindex_state NOT NULL DEFAULT 'running',
    done            bigint NOT NULL DEFAULT 0,
    total           bigint NOT NULL DEFAULT 0,
    error           text,
    -- The last chunk that is done: a reindex that was interrupted goes on behind it.
    cursor_project  uuid,
    cursor_document uuid,
    cursor_chunk    uuid,
    -- heartbeat_at is written by the process that works on it; null when none does.
    heartbeat_at    timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    completed_at    timestamptz
);

-- One at a time.
CREATE UNIQUE INDEX reindexes_running ON reindexes (state) WHERE state = 'running';

-- +goose Down
DROP TABLE reindexes;
DROP TYPE reindex_state;
ALTER TABLE embedding_spaces DROP COLUMN activated_at;
