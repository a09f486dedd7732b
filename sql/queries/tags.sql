-- name: TagInsertMany :exec
-- Makes the names known; names that are there already keep their description.
INSERT INTO tags (project_id, name)
SELECT @project_id, u.name FROM unnest(@names::text[]) AS u (name)
ON CONFLICT (project_id, name) DO NOTHING;
