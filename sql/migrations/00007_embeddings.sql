-- +goose Up
-- A space is a set of comparable vectors: one model, one precision, one file of weights.
CREATE TABLE embedding_spaces (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model      text NOT NULL,
    precision  text NOT NULL,
    sha256     text NOT NULL,
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
    -- active is the space that searches use; at most one.
    active     boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (model, precision, sha256)
);
CREATE UNIQUE INDEX embedding_spaces_active ON embedding_spaces (active) WHERE active;

-- Vectors stand apart from chunks in a narrow table: an exact scan of a small project reads little, and two spaces can
-- live side by side. The column has no dimension; each space brings its own HNSW index (see EmbeddingSpaceIndex).
CREATE TABLE embeddings (
    project_id  uuid NOT NULL,
    document_id uuid NOT NULL,
    chunk_id    uuid NOT NULL,
    space_id    integer NOT NULL REFERENCES embedding_spaces (id),
    embedding   halfvec NOT NULL,
    PRIMARY KEY (project_id, document_id, chunk_id, space_id),
    FOREIGN KEY (project_id, document_id, chunk_id) REFERENCES chunks (project_id, document_id, id) ON DELETE CASCADE
);
ALTER TABLE embeddings ALTER COLUMN embedding SET STORAGE MAIN;

-- +goose Down
DROP TABLE embeddings;
DROP TABLE embedding_spaces;
