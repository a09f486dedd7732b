-- name: SearchInsertMany :exec
-- @sqlc-vet-disable tenant-scope
-- Writes down searches of several projects, each with its own; a project that is being erased gets none.
INSERT INTO searches (project_id, id, principal, structured, request, status, documents, chunks, total, created_at)
SELECT p.id, (r ->> 'id')::uuid, r ->> 'principal', (r ->> 'structured')::boolean, r -> 'request', r ->> 'status',
    ARRAY(SELECT jsonb_array_elements_text(r -> 'documents'))::uuid[], ARRAY(SELECT jsonb_array_elements_text(r -> 'chunks'))::uuid[],
    (r ->> 'total')::bigint, (r ->> 'created_at')::timestamptz
FROM jsonb_array_elements(@searches::jsonb) AS r
JOIN projects AS p ON p.id = (r ->> 'project_id')::uuid AND p.erased_at IS NULL;

-- name: SearchGet :one
SELECT * FROM searches WHERE project_id = @project_id AND id = @id;

-- name: SearchPurge :execrows
-- @sqlc-vet-disable tenant-scope
-- Forgets the oldest searches of all projects, with their feedback.
DELETE FROM searches AS s
USING (SELECT o.project_id, o.id FROM searches AS o WHERE o.created_at < @before ORDER BY o.created_at LIMIT @max_rows::int) AS o
WHERE s.project_id = o.project_id AND s.id = o.id;

-- name: FeedbackUpsert :one
-- What the same caller says later of the same result takes the place of what it said before.
INSERT INTO search_feedback (project_id, search_id, document_id, principal, rating, comment)
VALUES (@project_id, @search_id, @document_id, @principal, @rating, @comment)
ON CONFLICT (project_id, search_id, document_id, principal)
DO UPDATE SET rating = excluded.rating, comment = excluded.comment, created_at = clock_timestamp()
RETURNING *;

-- name: FeedbackSummary :many
-- How searches were answered and rated, by kind and status.
SELECT s.structured, s.status, count(*) AS searches,
    coalesce(sum(f.up), 0)::bigint AS up, coalesce(sum(f.down), 0)::bigint AS down
FROM searches AS s
LEFT JOIN LATERAL (
    SELECT count(*) FILTER (WHERE r.rating = 'up') AS up, count(*) FILTER (WHERE r.rating = 'down') AS down
    FROM search_feedback AS r
    WHERE r.project_id = s.project_id AND r.search_id = s.id
) AS f ON true
WHERE s.project_id = @project_id
GROUP BY s.structured, s.status
ORDER BY s.structured, s.status;

-- name: FeedbackList :many
-- What was rated, with the search that it is about.
SELECT s.id AS search_id, s.structured, s.request, f.document_id, f.rating
FROM search_feedback AS f
JOIN searches AS s ON s.project_id = f.project_id AND s.id = f.search_id
WHERE f.project_id = @project_id
ORDER BY s.id, f.document_id, f.principal;

-- name: ProjectTune :one
-- @sqlc-vet-disable tenant-scope
-- The project itself.
UPDATE projects SET search_settings = @search_settings WHERE id = @id AND erased_at IS NULL
RETURNING name;
