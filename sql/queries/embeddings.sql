-- name: EmbeddingInsertMany :exec
-- Vectors come as text ([1,2,...]); chunk_ids and vectors are of one length.
INSERT INTO embeddings (project_id, document_id, chunk_id, space_id, embedding)
SELECT @project_id, @document_id, u.chunk_id, @space_id, u.vector::halfvec
FROM (SELECT unnest(@chunk_ids::uuid[]) AS chunk_id, unnest(@vectors::text[]) AS vector) AS u;

-- name: EmbeddingUpsertMany :exec
-- Puts vectors of chunks of any project into a space. A chunk that is gone meanwhile is passed over.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's; each vector goes to the project that its chunk is of.
INSERT INTO embeddings (project_id, document_id, chunk_id, space_id, embedding)
SELECT c.project_id, c.document_id, c.id, @space_id, u.vector::halfvec
FROM (
    SELECT
        unnest(@project_ids::uuid[]) AS project_id, unnest(@document_ids::uuid[]) AS document_id, unnest(@chunk_ids::uuid[]) AS chunk_id,
        unnest(@vectors::text[]) AS vector
) AS u
JOIN chunks AS c ON c.project_id = u.project_id AND c.document_id = u.document_id AND c.id = u.chunk_id
ON CONFLICT (project_id, document_id, chunk_id, space_id) DO UPDATE SET embedding = excluded.embedding;

-- name: EmbeddingDeleteSpace :execrows
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
WITH of_memories AS (
    DELETE FROM memory_embeddings AS m WHERE m.space_id = @space_id
)
DELETE FROM embeddings AS e WHERE e.space_id = @space_id;

-- name: EmbeddingAny :one
-- Whether a space has any vector.
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT (
    EXISTS (SELECT FROM embeddings AS e WHERE e.space_id = @space_id)
    OR EXISTS (SELECT FROM memory_embeddings AS m WHERE m.space_id = @space_id)
)::boolean AS used;

-- name: EmbeddingSpaceGetActive :one
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT * FROM embedding_spaces WHERE active;

-- name: EmbeddingSpaceGetPrevious :one
-- The space that was active before the active one.
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT * FROM embedding_spaces WHERE NOT active AND activated_at IS NOT NULL ORDER BY activated_at DESC LIMIT 1;

-- name: EmbeddingSpaceGet :one
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT * FROM embedding_spaces WHERE id = @id;

-- name: EmbeddingSpaceList :many
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT * FROM embedding_spaces ORDER BY id;

-- name: EmbeddingSpaceInsert :one
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
INSERT INTO embedding_spaces (model, precision, sha256, dimensions)
VALUES (@model, @precision, @sha256, @dimensions)
ON CONFLICT (model, precision, sha256) DO UPDATE SET model = excluded.model
RETURNING *;

-- name: EmbeddingSpaceLock :exec
-- Keeps others from changing spaces, and from storing vectors, until the end of the transaction.
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT pg_advisory_xact_lock(hashtextextended('kb embedding space', 0));

-- name: EmbeddingSpaceShare :exec
-- Keeps the active space from changing until the end of the transaction. What is read behind it is what holds.
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT pg_advisory_xact_lock_shared(hashtextextended('kb embedding space', 0));

-- name: EmbeddingSpaceDeactivate :exec
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
UPDATE embedding_spaces SET active = false WHERE active;

-- name: EmbeddingSpaceActivate :one
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
UPDATE embedding_spaces SET active = true, activated_at = clock_timestamp() WHERE id = @id
RETURNING *;

-- name: EmbeddingSpaceForget :exec
-- A space whose vectors are gone is none to go back to.
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
UPDATE embedding_spaces SET activated_at = NULL WHERE id = @id AND NOT active;
