-- +goose Up
CREATE TYPE memory_source AS ENUM ('manual', 'conversation');

-- How a memory came to be written: by an agent's tool, a rule, a caller of the API, or a formation.
CREATE TYPE memory_mechanism AS ENUM ('tool', 'rule', 'api', 'formation');

CREATE TYPE memory_outcome AS ENUM ('created', 'superseded', 'skipped', 'retracted');

CREATE TABLE memory_stores (
    project_id          uuid NOT NULL REFERENCES projects (id),
    id                  uuid NOT NULL,
    name                text NOT NULL,
    description         text,
    tags                jsonb NOT NULL DEFAULT '{}',
    -- The similarities from which a new text is the same as one that is there, or takes its place; null is the server's own.
    duplicate_threshold float8 CHECK (duplicate_threshold BETWEEN 0 AND 1),
    supersede_threshold float8 CHECK (supersede_threshold BETWEEN 0 AND 1),
    -- deduplicate is false for a store that keeps every text, whatever else it holds.
    deduplicate         boolean NOT NULL DEFAULT true,
    created_at          timestamptz NOT NULL DEFAULT now(),
    -- updated_at is null until the first change.
    updated_at          timestamptz,
    PRIMARY KEY (project_id, id)
);

-- For lists, oldest first.
CREATE INDEX memory_stores_oldest ON memory_stores (project_id, created_at, id);

-- A memory is valid until another one supersedes it, or it is retracted: then invalidated_at is set, and the row stays as
-- history. Whoever changes which memories of a store are valid holds the lock on the store's row (see MemoryStoreLock).
CREATE TABLE memories (
    project_id     uuid NOT NULL,
    store_id       uuid NOT NULL,
    id             uuid NOT NULL,
    content        text NOT NULL,
    -- content_hash is the SHA-256 of the trimmed text with its white space collapsed.
    content_hash   bytea NOT NULL,
    source_type    memory_source NOT NULL DEFAULT 'manual',
    source_id      text,
    tags           jsonb NOT NULL DEFAULT '{}',
    metadata       jsonb NOT NULL DEFAULT '{}',
    -- From expires_at on nothing finds the memory; a job deletes it later.
    expires_at     timestamptz,
    invalidated_at timestamptz,
    -- superseded_by is the memory that took this one's place.
    superseded_by  uuid,
    version        integer NOT NULL DEFAULT 1,
    -- embedding_due is a memory that was stored while the model did not answer: a job makes its vector.
    embedding_due  boolean NOT NULL DEFAULT false,
    created_at     timestamptz NOT NULL,
    -- updated_at is created_at until the first change: recency goes by it.
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (project_id, store_id, id),
    -- A memory is known by its id alone.
    UNIQUE (project_id, id),
    FOREIGN KEY (project_id, store_id) REFERENCES memory_stores (project_id, id) ON DELETE CASCADE,
    FOREIGN KEY (project_id, superseded_by) REFERENCES memories (project_id, id) ON DELETE SET NULL (superseded_by)
);

-- For an equal text among the valid memories of a store.
CREATE INDEX memories_hash ON memories (project_id, store_id, content_hash) WHERE invalidated_at IS NULL;

-- For lists and exports of a store, oldest first.
CREATE INDEX memories_oldest ON memories (project_id, store_id, created_at, id);

-- For the jobs that delete expired memories, and that make the vectors which are due.
CREATE INDEX memories_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_embedding_due ON memories (project_id, store_id, id) WHERE embedding_due;

-- For the links to a memory that is deleted.
CREATE INDEX memories_superseded ON memories (project_id, superseded_by) WHERE superseded_by IS NOT NULL;

-- What searches read of valid memories, and of no others: their words and their vectors, each in a narrow table as those of
-- chunks. expires_at is repeated here, so that a search needs no join to pass over what has expired.
CREATE TABLE memory_words (
    project_id uuid NOT NULL,
    store_id   uuid NOT NULL,
    memory_id  uuid NOT NULL,
    -- length is the document length of BM25: search_length of the words.
    length     integer NOT NULL,
    expires_at timestamptz,
    -- tsv is search_vector(text_config of the project, nothing, content).
    tsv        tsvector NOT NULL,
    PRIMARY KEY (project_id, store_id, memory_id),
    FOREIGN KEY (project_id, store_id, memory_id) REFERENCES memories (project_id, store_id, id) ON DELETE CASCADE
);
ALTER TABLE memory_words ALTER COLUMN tsv SET STORAGE MAIN;

-- The lexical arm; see chunk_words_tsv.
CREATE INDEX memory_words_tsv ON memory_words USING gin (project_id, tsv) WITH (fastupdate = off);

CREATE TABLE memory_embeddings (
    project_id uuid NOT NULL,
    store_id   uuid NOT NULL,
    memory_id  uuid NOT NULL,
    space_id   integer NOT NULL REFERENCES embedding_spaces (id),
    expires_at timestamptz,
    embedding  halfvec NOT NULL,
    PRIMARY KEY (project_id, store_id, memory_id, space_id),
    FOREIGN KEY (project_id, store_id, memory_id) REFERENCES memories (project_id, store_id, id) ON DELETE CASCADE
);
ALTER TABLE memory_embeddings ALTER COLUMN embedding SET STORAGE MAIN;

-- New spaces bring their index (see db.EnsureSpace); those that are there already get theirs here.
-- +goose StatementBegin
DO $$
DECLARE
    space record;
BEGIN
    FOR space IN SELECT id, dimensions FROM embedding_spaces LOOP
        EXECUTE format(
            'CREATE INDEX memory_embeddings_space_%s ON memory_embeddings
                USING hnsw ((embedding::halfvec(%s)) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) WHERE space_id = %s',
            space.id, space.dimensions, space.id);
    END LOOP;
END
$$;
-- +goose StatementEnd

-- One row for each attempt to write to a store, whatever came of it.
CREATE TABLE memory_assertions (
    project_id    uuid NOT NULL,
    store_id      uuid NOT NULL,
    id            uuid NOT NULL,
    -- memory_id is the memory that the attempt made, found or retracted; null once that one is deleted.
    memory_id     uuid,
    content       text NOT NULL,
    mechanism     memory_mechanism NOT NULL,
    -- principal is who made the attempt.
    principal     text NOT NULL,
    outcome       memory_outcome NOT NULL,
    -- similarity is that to the nearest valid memory; null when none was looked for, or none was there.
    similarity    float8,
    -- declared is an attempt that named the memory to supersede.
    declared      boolean NOT NULL,
    rule_id       text,
    generation_id text,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (project_id, id),
    FOREIGN KEY (project_id, store_id) REFERENCES memory_stores (project_id, id) ON DELETE CASCADE,
    FOREIGN KEY (project_id, memory_id) REFERENCES memories (project_id, id) ON DELETE SET NULL (memory_id)
);

-- For lists, newest first.
CREATE INDEX memory_assertions_newest ON memory_assertions (project_id, store_id, created_at DESC, id DESC);

-- For the attempts at a memory that is deleted.
CREATE INDEX memory_assertions_memory ON memory_assertions (project_id, memory_id);

-- The last memory that a reindex has done; null until all chunks are.
ALTER TABLE reindexes
    ADD COLUMN cursor_store uuid,
    ADD COLUMN cursor_memory uuid;

-- +goose Down
ALTER TABLE reindexes DROP COLUMN cursor_memory, DROP COLUMN cursor_store;
DROP TABLE memory_assertions;
DROP TABLE memory_embeddings;
DROP TABLE memory_words;
DROP TABLE memories;
DROP TABLE memory_stores;
DELETE FROM lexeme_deltas WHERE store = 'memory';
DELETE FROM corpus_stats WHERE store = 'memory';
DROP TYPE memory_outcome;
DROP TYPE memory_mechanism;
DROP TYPE memory_source;
