-- name: EmbeddingInsertMany :exec
-- Vectors come as text ([1,2,...]); chunk_ids and vectors are of one length.
INSERT INTO embeddings (project_id, document_id, chunk_id, space_id, embedding)
SELECT @project_id, @document_id, u.chunk_id, @space_id, u.vector::halfvec
FROM (SELECT unnest(@chunk_ids::uuid[]) AS chunk_id, unnest(@vectors::text[]) AS vector) AS u;

-- name: EmbeddingSpaceGetActive :one
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT * FROM embedding_spaces WHERE active;

-- name: EmbeddingSpaceInsert :one
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
INSERT INTO embedding_spaces (model, precision, sha256, dimensions, active)
VALUES (@model, @precision, @sha256, @dimensions, NOT EXISTS (SELECT FROM embedding_spaces WHERE active))
ON CONFLICT (model, precision, sha256) DO UPDATE SET model = excluded.model
RETURNING *;
