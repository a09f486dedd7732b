-- +goose Up
-- What BM25 needs to know of a project's text. Writers append one delta row a document in their own transaction, so that
-- no two of them meet on a hot row; a job folds the deltas.
CREATE TABLE corpus_stats (
    project_id   uuid NOT NULL REFERENCES projects (id),
    -- store is 'document' or 'memory': lengths are averaged apart, so that short memories are not favoured.
    store        text NOT NULL,
    -- n counts chunks or memories.
    n            bigint NOT NULL,
    total_length bigint NOT NULL,
    PRIMARY KEY (project_id, store)
);

CREATE TABLE lexeme_stats (
    project_id uuid NOT NULL REFERENCES projects (id),
    lexeme     text NOT NULL,
    -- df counts the chunks and memories that hold the lexeme.
    df         bigint NOT NULL,
    PRIMARY KEY (project_id, lexeme)
) WITH (fillfactor = 80);

CREATE TABLE lexeme_deltas (
    project_id   uuid NOT NULL REFERENCES projects (id),
    id           bigint GENERATED ALWAYS AS IDENTITY,
    store        text NOT NULL,
    n            bigint NOT NULL,
    total_length bigint NOT NULL,
    lexemes      text[] NOT NULL,
    -- dfs holds the change of df for each of lexemes; negative when a document goes.
    dfs          bigint[] NOT NULL,
    PRIMARY KEY (project_id, id)
);

-- +goose Down
DROP TABLE lexeme_deltas;
DROP TABLE lexeme_stats;
DROP TABLE corpus_stats;
