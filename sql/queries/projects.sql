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
UPDATE projects
SET name = @name, search_settings = coalesce(sqlc.narg(search_settings)::jsonb, search_settings), updated_at = clock_timestamp()
WHERE id = @id AND erased_at IS NULL
RETURNING *;

-- name: ProjectMarkErased :one
-- @sqlc-vet-disable tenant-scope
-- From now on nobody sees the project. Its name is free at once.
UPDATE projects SET erased_at = clock_timestamp(), name = 'erased ' || id::text WHERE id = @id AND erased_at IS NULL
RETURNING *;

-- name: TextConfigFind :one
-- The full name of a text search configuration that the database has.
-- @sqlc-vet-disable tenant-scope
-- No project: a table of the system.
SELECT (n.nspname || '.' || c.cfgname)::text AS name
FROM pg_catalog.pg_ts_config AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.cfgnamespace
WHERE c.cfgname = @name::text AND n.nspname = 'pg_catalog';

-- name: ErasureInsert :one
INSERT INTO project_erasures (project_id, name, requested_by) VALUES (@project_id, @name, @requested_by)
RETURNING *;

-- name: ErasureGet :one
SELECT * FROM project_erasures WHERE project_id = @project_id;

-- name: ErasureListIdle :many
-- Projects that are not erased yet and that no River job is about.
-- @sqlc-vet-disable tenant-scope
-- No project: the upkeep looks for what is left to do.
SELECT e.project_id
FROM project_erasures AS e
WHERE e.completed_at IS NULL
    AND NOT EXISTS (
        SELECT FROM river_job AS r
        WHERE r.kind = 'erase'
            AND r.args ->> 'project_id' = e.project_id::text
            AND (r.state IN ('available', 'scheduled', 'retryable', 'pending')
                OR r.state = 'running' AND r.attempted_at > clock_timestamp() - interval '1 hour')
    )
ORDER BY e.requested_at;

-- name: ErasureAdvance :exec
-- Adds to what was erased so far.
UPDATE project_erasures SET erased = @erased WHERE project_id = @project_id;

-- name: ErasureFinish :exec
UPDATE project_erasures SET remaining = @remaining, completed_at = clock_timestamp() WHERE project_id = @project_id;
