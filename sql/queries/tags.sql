-- name: TagInsertMany :exec
-- Makes the names known; names that are there already keep their description.
INSERT INTO tags (project_id, name)
SELECT @project_id, u.name FROM unnest(@names::text[]) AS u (name)
ON CONFLICT (project_id, name) DO NOTHING;

-- name: TagList :many
-- All known tags by name, each with the number of documents that carry it. Who sees some documents only sees their tags only.
WITH carried AS (
    SELECT tag_name(pair.key, pair.value) AS name, count(*) AS documents
    FROM documents AS d
    CROSS JOIN LATERAL jsonb_each_text(d.tags) AS pair
    WHERE d.project_id = @project_id AND policy_allows(sqlc.narg(policy)::jsonb, d.id, d.path, d.tags)
    GROUP BY 1
)
SELECT t.name, coalesce(c.documents, 0)::bigint AS documents, t.description
FROM tags AS t
LEFT JOIN carried AS c ON c.name = t.name
WHERE t.project_id = @project_id AND (sqlc.narg(policy)::jsonb IS NULL OR c.name IS NOT NULL)
ORDER BY t.name;

-- name: TagDescribe :many
-- Sets the description of the tag, whatever the case of its name, and gives what it changed, the exact spelling first.
-- An empty description clears it.
WITH described AS (
    UPDATE tags AS t
    SET description = nullif(@description::text, '')
    WHERE t.project_id = @project_id AND lower(t.name) = lower(@name::text)
    RETURNING t.name, t.description
)
SELECT d.name, d.description FROM described AS d ORDER BY d.name <> @name::text, d.name;
