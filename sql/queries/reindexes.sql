-- name: ReindexInsert :one
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
INSERT INTO reindexes (id, space_id, renew, total)
SELECT @id, @space_id, @renew, (SELECT count(*) FROM chunks) + (SELECT count(*) FROM memory_words)
RETURNING *;

-- name: ReindexGetLast :one
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
SELECT * FROM reindexes ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: ReindexClaim :one
-- Takes up the running reindex, unless a living process works on it.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
UPDATE reindexes SET heartbeat_at = clock_timestamp()
WHERE state = 'running'
    AND (heartbeat_at IS NULL OR heartbeat_at < clock_timestamp() - make_interval(secs => @silent_seconds::float8))
RETURNING *;

-- name: ReindexIdle :one
-- Whether a reindex runs that no living process works on.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
SELECT EXISTS (
    SELECT FROM reindexes
    WHERE state = 'running'
        AND (heartbeat_at IS NULL OR heartbeat_at < clock_timestamp() - make_interval(secs => @silent_seconds::float8))
);

-- name: ReindexAdvance :execrows
-- Says how far the work is, and that its process lives. No row means that it was cancelled.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
UPDATE reindexes
SET done = done + @done, total = greatest(total, done + @done), heartbeat_at = clock_timestamp(),
    cursor_project = coalesce(sqlc.narg(cursor_project), cursor_project), cursor_document = coalesce(sqlc.narg(cursor_document), cursor_document),
    cursor_chunk = coalesce(sqlc.narg(cursor_chunk), cursor_chunk), cursor_store = coalesce(sqlc.narg(cursor_store), cursor_store),
    cursor_memory = coalesce(sqlc.narg(cursor_memory), cursor_memory)
WHERE id = @id AND state = 'running';

-- name: ReindexRelease :exec
-- Lets another process go on at once.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
UPDATE reindexes SET heartbeat_at = NULL WHERE id = @id AND state = 'running';

-- name: ReindexFinish :one
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
UPDATE reindexes
SET state = @state::reindex_state, error = sqlc.narg(error), completed_at = clock_timestamp(),
    done = CASE WHEN @state::reindex_state = 'done' THEN total ELSE done END
WHERE id = @id AND state = 'running'
RETURNING *;

-- name: ReindexCancel :one
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
UPDATE reindexes SET state = 'cancelled', completed_at = clock_timestamp() WHERE state = 'running'
RETURNING *;

-- name: ReindexNext :many
-- The chunks behind the cursor, in the order of their keys; unless renewed, only those without a vector in the space.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
SELECT c.project_id, c.document_id, c.id, c.enriched_text
FROM chunks AS c
WHERE (c.project_id, c.document_id, c.id) > (@cursor_project::uuid, @cursor_document::uuid, @cursor_chunk::uuid)
    AND (@renew::boolean OR NOT EXISTS (
        SELECT FROM embeddings AS e
        WHERE e.project_id = c.project_id AND e.document_id = c.document_id AND e.chunk_id = c.id AND e.space_id = @space_id
    ))
ORDER BY c.project_id, c.document_id, c.id
LIMIT @max_results::int;

-- name: ReindexMissing :many
-- Chunks without a vector in the space, besides some in which its model sees nothing.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's.
SELECT c.project_id, c.document_id, c.id, c.enriched_text
FROM chunks AS c
WHERE c.id <> ALL (coalesce(@blank::uuid[], '{}'))
    AND NOT EXISTS (
        SELECT FROM embeddings AS e
        WHERE e.project_id = c.project_id AND e.document_id = c.document_id AND e.chunk_id = c.id AND e.space_id = @space_id
    )
LIMIT @max_results::int;
