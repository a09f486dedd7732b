-- name: DatabaseSize :one
-- @sqlc-vet-disable tenant-scope
-- No project: the size of the whole database, no tenant's data.
SELECT pg_database_size(current_database())::bigint AS size;
