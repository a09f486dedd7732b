-- name: ProjectInsert :one
-- @sqlc-vet-disable tenant-scope
-- A name that is taken gives the project that has it.
INSERT INTO projects (id, name, text_config) VALUES (@id, @name, @text_config)
ON CONFLICT (name) DO UPDATE SET name = excluded.name
RETURNING *;
