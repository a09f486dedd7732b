-- name: APIKeyFind :one
-- The key of a caller, if it is still good, with the documents of its policies.
-- @sqlc-vet-disable tenant-scope
-- No project: the key says which one.
SELECT k.project_id, k.id, coalesce((
    SELECT jsonb_agg(p.document ORDER BY p.id)
    FROM api_key_policies AS a
    JOIN policies AS p ON p.id = a.policy_id
    WHERE a.project_id = k.project_id AND a.key_id = k.id
), '[]')::jsonb AS policies
FROM api_keys AS k
WHERE k.prefix = @prefix AND k.hash = @hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp());

-- name: APIKeyTouch :exec
-- Notes that the key was used, once a minute at most.
UPDATE api_keys SET last_used_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute');

-- name: APIKeyInsert :one
INSERT INTO api_keys (project_id, id, name, prefix, hash, expires_at)
VALUES (@project_id, @id, @name, @prefix, @hash, @expires_at)
RETURNING *;

-- name: APIKeyPolicyInsertMany :exec
INSERT INTO api_key_policies (project_id, key_id, policy_id) SELECT @project_id, @key_id, unnest(@policy_ids::uuid[]);

-- name: APIKeyPolicyClear :exec
DELETE FROM api_key_policies WHERE project_id = @project_id AND key_id = @key_id;

-- name: APIKeyPolicyList :many
SELECT key_id, policy_id FROM api_key_policies
WHERE project_id = @project_id AND key_id = ANY (coalesce(@key_ids::uuid[], '{}'))
ORDER BY policy_id;

-- name: APIKeyGet :one
SELECT * FROM api_keys WHERE project_id = @project_id AND id = @id;

-- name: APIKeyList :many
SELECT * FROM api_keys WHERE project_id = @project_id ORDER BY created_at, id LIMIT @max_results::int OFFSET @skip::int;

-- name: APIKeyCount :one
SELECT count(*) FROM api_keys WHERE project_id = @project_id;

-- name: APIKeyUpdate :one
UPDATE api_keys SET name = @name, expires_at = @expires_at, updated_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id AND revoked_at IS NULL
RETURNING *;

-- name: APIKeyRotate :one
-- Gives the key another secret; the old one is refused from now on.
UPDATE api_keys SET prefix = @prefix, hash = @hash, updated_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id AND revoked_at IS NULL
RETURNING *;

-- name: APIKeyRevoke :one
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()), updated_at = clock_timestamp()
WHERE project_id = @project_id AND id = @id
RETURNING *;
