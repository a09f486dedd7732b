-- +goose Up
-- Every tenant table has project_id first in its keys: that makes tenancy checkable, and lets the schema shard.
CREATE TABLE documents (
    project_id        uuid NOT NULL REFERENCES projects (id),
    id                uuid NOT NULL,
    title             text NOT NULL,
    doc_type          text NOT NULL,
    -- tags is one bag of strings: the name x is the pair x -> "", the name k:v the pair k -> v.
    tags              jsonb NOT NULL DEFAULT '{}',
    metadata          jsonb NOT NULL DEFAULT '{}',
    -- content_hash is the SHA-256 of the original bytes.
    content_hash      bytea NOT NULL,
    original_filename text NOT NULL,
    -- stored_path is the original's key in the blob storage.
    stored_path       text NOT NULL,
    size              bigint NOT NULL,
    chunk_count       integer NOT NULL,
    version           integer NOT NULL DEFAULT 1,
    created_at        timestamptz NOT NULL DEFAULT now(),
    -- updated_at is null until the first change.
    updated_at        timestamptz,
    PRIMARY KEY (project_id, id),
    UNIQUE (project_id, content_hash)
);

-- For lists, newest first, and their cursor.
CREATE INDEX documents_newest ON documents (project_id, coalesce(updated_at, created_at) DESC, id DESC);

-- For the tag filter of searches and lists.
CREATE INDEX documents_tags ON documents USING gin (project_id, tags jsonb_path_ops);

CREATE TABLE chunks (
    project_id    uuid NOT NULL,
    document_id   uuid NOT NULL,
    id            uuid NOT NULL,
    seq           integer NOT NULL,
    page          integer,
    section       text NOT NULL,
    content       text NOT NULL,
    -- enriched_text is what was embedded: title, section and content, cut to the model's window.
    enriched_text text NOT NULL,
    PRIMARY KEY (project_id, document_id, id),
    UNIQUE (project_id, document_id, seq),
    FOREIGN KEY (project_id, document_id) REFERENCES documents (project_id, id) ON DELETE CASCADE
);

-- The words of a chunk stand apart from its text: a search reads up to two thousand of these rows, and a narrow row
-- halves the pages that they lie on.
CREATE TABLE chunk_words (
    project_id  uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id    uuid NOT NULL,
    -- length is the document length of BM25: passage_length of the words.
    length      integer NOT NULL,
    -- tsv is search_vector(text_config of the project, title and section, content).
    tsv         tsvector NOT NULL,
    PRIMARY KEY (project_id, document_id, chunk_id),
    FOREIGN KEY (project_id, document_id, chunk_id) REFERENCES chunks (project_id, document_id, id) ON DELETE CASCADE
);
ALTER TABLE chunk_words ALTER COLUMN tsv SET STORAGE MAIN;

-- The lexical arm. The project leads, so that other tenants' rows cost nothing. fastupdate is off since every search
-- would read the pending list.
CREATE INDEX chunk_words_tsv ON chunk_words USING gin (project_id, tsv) WITH (fastupdate = off);

-- +goose Down
DROP TABLE chunk_words;
DROP TABLE chunks;
DROP TABLE documents;
