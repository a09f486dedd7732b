-- name: PolicyInsert :one
-- @sqlc-vet-disable tenant-scope
-- Policies are the whole deployment's.
INSERT INTO policies (id, name, document) VALUES (@id, @name, @document)
RETURNING *;

-- name: PolicyGet :one
-- @sqlc-vet-disable tenant-scope
-- Policies are the whole deployment's.
SELECT * FROM policies WHERE id = @id;

-- name: PolicyList :many
-- @sqlc-vet-disable tenant-scope
-- Policies are the whole deployment's.
SELECT * FROM policies ORDER BY created_at, id LIMIT @max_results::int OFFSET @skip::int;

-- name: PolicyCount :one
-- @sqlc-vet-disable tenant-scope
-- Policies are the whole deployment's.
SELECT count(*) FROM policies;

-- name: PolicyCountOf :one
-- How many of some policies there are.
-- @sqlc-vet-disable tenant-scope
-- Policies are the whole deployment's.
SELECT count(*) FROM policies WHERE id = ANY (coalesce(@ids::uuid[], '{}'));

-- name: PolicyUpdate :one
-- @sqlc-vet-disable tenant-scope
-- Policies are the whole deployment's.
UPDATE policies SET name = @name, document = @document, updated_at = clock_timestamp() WHERE id = @id
RETURNING *;

-- name: PolicyDelete :execrows
-- @sqlc-vet-disable tenant-scope
-- Policies are the whole deployment's.
DELETE FROM policies WHERE id = @id;

-- name: PolicyListOfSubject :many
-- @sqlc-vet-disable tenant-scope
-- The subject of a token is of no project.
SELECT p.* FROM policies AS p JOIN policy_subjects AS s ON s.policy_id = p.id WHERE s.subject = @subject ORDER BY p.id;

-- name: PolicySubjectClear :exec
-- @sqlc-vet-disable tenant-scope
-- The subject of a token is of no project.
DELETE FROM policy_subjects WHERE subject = @subject;

-- name: PolicySubjectInsertMany :exec
-- @sqlc-vet-disable tenant-scope
-- The subject of a token is of no project.
INSERT INTO policy_subjects (subject, policy_id) SELECT @subject, unnest(@policy_ids::uuid[]);
