-- name: DocumentInsert :one
INSERT INTO documents (
    project_id, id, title, doc_type, tags, metadata, content_hash, original_filename, stored_path, size, chunk_count
) VALUES (
    @project_id, @id, @title, @doc_type, @tags, @metadata, @content_hash, @original_filename, @stored_path, @size, @chunk_count
)
RETURNING *;

-- name: DocumentGet :one
SELECT * FROM documents WHERE project_id = @project_id AND id = @id;

-- name: DocumentGetByHash :one
SELECT * FROM documents WHERE project_id = @project_id AND content_hash = @content_hash;

-- name: DocumentList :many
-- Newest first, by the last change. The cursor is the last row of the page before.
SELECT * FROM documents
WHERE project_id = @project_id
    AND (@doc_type::text = '' OR doc_type = @doc_type::text)
    AND tags @> @tags::jsonb
    AND (sqlc.narg(before_time)::timestamptz IS NULL
        OR (coalesce(updated_at, created_at), id) < (sqlc.narg(before_time)::timestamptz, @before_id::uuid))
ORDER BY coalesce(updated_at, created_at) DESC, id DESC
LIMIT @max_results::int;

-- name: DocumentCount :one
SELECT count(*) FROM documents
WHERE project_id = @project_id
    AND (@doc_type::text = '' OR doc_type = @doc_type::text)
    AND tags @> @tags::jsonb;

-- name: DocumentCountByType :many
SELECT doc_type, count(*) AS documents, sum(chunk_count)::bigint AS chunks
FROM documents
WHERE project_id = @project_id
GROUP BY doc_type
ORDER BY doc_type;

-- name: DocumentDelete :one
-- Deletes the document with its chunks and vectors, and takes its words out of the statistics.
WITH gone AS (
    SELECT c.tsv, c.length FROM chunk_words AS c WHERE c.project_id = @project_id AND c.document_id = @id
),
frequency AS (
    SELECT w.lexeme, count(*) AS df FROM gone CROSS JOIN LATERAL unnest(tsvector_to_array(gone.tsv)) AS w (lexeme) GROUP BY w.lexeme
),
delta AS (
    INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
    SELECT @project_id, 'document', -count(*), -coalesce(sum(gone.length), 0),
        coalesce((SELECT array_agg(f.lexeme ORDER BY f.lexeme) FROM frequency AS f), '{}'),
        coalesce((SELECT array_agg(-f.df ORDER BY f.lexeme) FROM frequency AS f), '{}')
    FROM gone
    HAVING count(*) > 0
)
DELETE FROM documents AS d WHERE d.project_id = @project_id AND d.id = @id
RETURNING d.*;

-- name: DocumentExport :many
-- The ids and file names of all documents, for an evaluation to map results back to its own ids.
SELECT id, original_filename FROM documents WHERE project_id = @project_id;

-- name: DocumentChangeTags :one
-- Takes tags away by name, then adds pairs. A document that changes by it gets a time of change.
WITH changed AS (
    SELECT d.id, coalesce((
        SELECT jsonb_object_agg(pair.key, pair.value)
        FROM jsonb_each_text(d.tags) AS pair
        WHERE tag_name(pair.key, pair.value) <> ALL (@removed::text[])
    ), '{}') || @added::jsonb AS tags
    FROM documents AS d
    WHERE d.project_id = @project_id AND d.id = @id
    FOR UPDATE
)
UPDATE documents AS d
SET tags = c.tags, updated_at = CASE WHEN d.tags = c.tags THEN d.updated_at ELSE clock_timestamp() END
FROM changed AS c
WHERE d.project_id = @project_id AND d.id = c.id
RETURNING d.*;
