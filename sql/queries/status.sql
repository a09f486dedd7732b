-- name: DatabaseAbout :one
-- @sqlc-vet-disable tenant-scope
-- No project: the size of the whole database and the versions of its parts, no tenant's data.
SELECT
    pg_database_size(current_database())::bigint AS size,
    split_part(current_setting('server_version'), ' ', 1)::text AS version,
    coalesce((SELECT e.extversion FROM pg_catalog.pg_extension AS e WHERE e.extname = 'vector'), '')::text AS vector_version;
