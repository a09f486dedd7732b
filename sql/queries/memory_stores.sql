-- name: MemoryStoreInsert :one
INSERT INTO memory_stores (project_id, id, name, description, tags, duplicate_threshold, supersede_threshold, deduplicate)
VALUES (
    @project_id, @id, @name, sqlc.narg(description), @tags, sqlc.narg(duplicate_threshold), sqlc.narg(supersede_threshold), @deduplicate
)
RETURNING *;

-- name: MemoryStoreGet :one
SELECT * FROM memory_stores WHERE project_id = @project_id AND id = @id;

-- name: MemoryStoreList :many
-- Oldest first.
SELECT * FROM memory_stores
WHERE project_id = @project_id AND policy_allows(sqlc.narg(policy)::jsonb, id, NULL, tags)
ORDER BY created_at, id
LIMIT @max_results::int OFFSET @skipped::int;

-- name: MemoryStoreCount :one
SELECT count(*) FROM memory_stores WHERE project_id = @project_id AND policy_allows(sqlc.narg(policy)::jsonb, id, NULL, tags);

-- name: MemoryStoreReplace :one
-- Puts new values in the place of all that a caller may set.
UPDATE memory_stores
SET name = @name, description = sqlc.narg(description), tags = @tags, duplicate_threshold = sqlc.narg(duplicate_threshold),
    supersede_threshold = sqlc.narg(supersede_threshold), deduplicate = @deduplicate, updated_at = statement_timestamp()
WHERE project_id = @project_id AND id = @id
RETURNING *;

-- name: MemoryStoreSetTags :one
-- Replaces the tags, or merges new ones into them.
UPDATE memory_stores
SET tags = CASE WHEN @merge::boolean THEN tags ELSE '{}' END || @tags::jsonb, updated_at = statement_timestamp()
WHERE project_id = @project_id AND id = @id
RETURNING *;

-- name: MemoryStoreLock :one
-- Waits until no other transaction writes to the store, and keeps others out until the end of this one. EmbeddingSpaceShare
-- goes before it: the other way round, two writers and a change of the space could wait for each other.
SELECT * FROM memory_stores WHERE project_id = @project_id AND id = @id FOR NO KEY UPDATE;

-- name: MemoryStoreLockByMemory :one
-- MemoryStoreLock for the store of a memory.
SELECT s.* FROM memory_stores AS s
WHERE s.project_id = @project_id
    AND s.id = (SELECT m.store_id FROM memories AS m WHERE m.project_id = @project_id AND m.id = @memory_id)
FOR NO KEY UPDATE;

-- name: MemoryStoreDelete :execrows
-- Deletes the store and all that hangs on it. MemoryUnindexStore goes before it, for the statistics.
DELETE FROM memory_stores WHERE project_id = @project_id AND id = @id;
