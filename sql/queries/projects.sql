-- name: ProjectInsert :one
-- @sqlc-vet-disable tenant-scope
-- A name that is taken gives the project that has it.
INSERT INTO projects (id, name, text_config) VALUES (@id, @name, @text_config)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING *;

-- name: ProjectCreate :one
-- @sqlc-vet-disable tenant-scope
-- A project is made before there is anything in it.
INSERT INTO projects (id, name, text_config) VALUES (@id, @name, @text_config)
RETURNING *;

-- name: ProjectGet :one
-- @sqlc-vet-disable tenant-scope
-- The project itself.
SELECT * FROM projects WHERE id = @id AND erased_at IS NULL;

-- name: ProjectList :many
-- @sqlc-vet-disable tenant-scope
-- All projects, for those who may see several; what a caller sees of them is decided behind it.
SELECT * FROM projects
WHERE erased_at IS NULL AND (sqlc.narg(ids)::uuid[] IS NULL OR id = ANY (sqlc.narg(ids)::uuid[]))
ORDER BY created_at, id
LIMIT sqlc.narg(max_results)::int;

-- name: ProjectUpdate :one
-- @sqlc-vet-disable tenant-scope
-- The project itself.
UPDATE projects SET name = @name, updated_at = clock_timestamp() WHERE id = @id AND erased_at IS NULL
RETURNING *;

-- name: ProjectMarkErased :one
-- @sqlc-vet-disable tenant-scope
-- From now on nobody sees the project. Its name is free at once.
UPDATE projects SET erased_at = clock_timestamp(), name = 'erased ' || id::text WHERE id = @id AND erased_at IS NULL
RETURNING *;
