-- name: DocumentInsert :one
INSERT INTO documents (
    project_id, id, title, path, doc_type, knowledge_type, tags, metadata, chunking, content_hash, original_filename, stored_path, size, chunk_count
) VALUES (
    @project_id, @id, @title, @path, @doc_type, @knowledge_type, @tags, @metadata, @chunking, @content_hash, @original_filename, @stored_path,
    @size, @chunk_count
)
RETURNING *;

-- name: DocumentGet :one
SELECT * FROM documents WHERE project_id = @project_id AND id = @id;

-- name: DocumentGetByHash :one
SELECT * FROM documents WHERE project_id = @project_id AND content_hash = @content_hash;

-- name: DocumentGetByPath :one
SELECT * FROM documents WHERE project_id = @project_id AND path = @path::text;

-- name: DocumentFreePath :one
-- The path itself, or the first path beside it at which no document stands.
-- @sqlc-vet-disable tenant-scope
-- The function compares the project.
SELECT document_free_path(@project_id::uuid, @path::text)::text AS path;

-- name: DocumentList :many
-- Newest first, by the last change. The filter is a DocumentFilter. The cursor is the last row of the page before.
SELECT * FROM documents AS d
WHERE d.project_id = @project_id
    AND document_fits(d, @filter::jsonb)
    AND (sqlc.narg(before_time)::timestamptz IS NULL
        OR (coalesce(d.updated_at, d.created_at), d.id) < (sqlc.narg(before_time)::timestamptz, @before_id::uuid))
ORDER BY coalesce(d.updated_at, d.created_at) DESC, d.id DESC
LIMIT @max_results::int;

-- name: DocumentCount :one
SELECT count(*) FROM documents AS d
WHERE d.project_id = @project_id AND document_fits(d, @filter::jsonb);

-- name: DocumentCountByType :many
SELECT doc_type, count(*) AS documents, sum(chunk_count)::bigint AS chunks
FROM documents
WHERE project_id = @project_id AND policy_allows(sqlc.narg(policy)::jsonb, id, path, tags)
GROUP BY doc_type
ORDER BY doc_type;

-- name: DocumentDelete :one
-- Deletes the document and all that hangs on it. ChunkDeleteByDocument goes before it, for the statistics.
DELETE FROM documents WHERE project_id = @project_id AND id = @id
RETURNING *;

-- name: DocumentExport :many
-- The ids and file names of all documents, for an evaluation to map results back to its own ids.
SELECT id, original_filename FROM documents WHERE project_id = @project_id;

-- name: DocumentChangeTags :one
-- Takes tags away by name, then adds pairs. A document that changes by it gets a time of change.
WITH changed AS (
    SELECT d.id, coalesce((
        SELECT jsonb_object_agg(pair.key, pair.value)
        FROM jsonb_each_text(d.tags) AS pair
        WHERE tag_name(pair.key, pair.value) <> ALL (coalesce(@removed::text[], '{}'))
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

-- name: DocumentArchive :execrows
-- Keeps the document as it is among its versions, when it is still the version that the caller has read.
INSERT INTO document_versions (
    project_id, document_id, version, title, path, knowledge_type, tags, metadata, chunking, content_hash, original_filename, stored_path,
    size, chunk_count, created_at
)
SELECT d.project_id, d.id, d.version, d.title, d.path, d.knowledge_type, d.tags, d.metadata, d.chunking, d.content_hash,
    d.original_filename, d.stored_path, d.size, d.chunk_count, coalesce(d.updated_at, d.created_at)
FROM documents AS d
WHERE d.project_id = @project_id AND d.id = @id AND d.version = @version
FOR UPDATE;

-- name: DocumentReplace :one
-- Makes the next version of a document whose present one has been archived.
UPDATE documents
SET title = @title, doc_type = @doc_type, knowledge_type = @knowledge_type, tags = @tags, metadata = @metadata, chunking = @chunking,
    content_hash = @content_hash, original_filename = @original_filename, stored_path = @stored_path, size = @size,
    chunk_count = @chunk_count, version = version + 1, updated_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id
RETURNING *;

-- name: DocumentVersionList :many
SELECT * FROM document_versions WHERE project_id = @project_id AND document_id = @document_id ORDER BY version DESC;

-- name: DocumentVersionGet :one
SELECT * FROM document_versions WHERE project_id = @project_id AND document_id = @document_id AND version = @version;

-- name: DocumentPathInUse :one
-- Whether a document or a version still has its original at this path.
SELECT (
    EXISTS (SELECT FROM documents AS d WHERE d.project_id = @project_id AND d.stored_path = @stored_path)
    OR EXISTS (SELECT FROM document_versions AS v WHERE v.project_id = @project_id AND v.stored_path = @stored_path)
)::boolean AS in_use;

-- name: DocumentPathLock :exec
-- Waits until no other transaction writes or deletes the original at this path; lasts until the end of the transaction.
-- @sqlc-vet-disable tenant-scope
-- No project: the path names it.
SELECT pg_advisory_xact_lock(hashtextextended('kb original ' || sqlc.arg(stored_path)::text, 0));
