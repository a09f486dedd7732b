-- name: KnowledgeList :many
-- What the filters leave, without a query: chunks by their document's age and their place in it, then memories, the oldest
-- first.
-- @sqlc-vet-disable tenant-scope
-- The projects are a list: project_id = ANY (@project_ids).
WITH listed AS MATERIALIZED (
    (
        SELECT false AS is_memory, c.project_id, c.document_id AS parent_id, c.id, d.created_at, c.seq
        FROM documents AS d
        JOIN chunks AS c ON c.project_id = d.project_id AND c.document_id = d.id
        WHERE @include_documents::boolean AND d.project_id = ANY (@project_ids::uuid[]) AND document_fits(d, @document_filter::jsonb)
        ORDER BY d.created_at, c.document_id, c.seq
        LIMIT sqlc.arg(skip)::int + sqlc.arg(max_results)::int
    )
    UNION ALL
    (
        SELECT true, m.project_id, m.store_id, m.id, m.created_at, 0
        FROM memories AS m
        JOIN memory_stores AS s ON s.project_id = m.project_id AND s.id = m.store_id
        WHERE @include_memories::boolean
            AND m.project_id = ANY (@project_ids::uuid[])
            AND m.invalidated_at IS NULL
            AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
            AND memory_fits(m, s.tags, @memory_filter::jsonb)
        ORDER BY m.created_at, m.id
        LIMIT sqlc.arg(skip)::int + sqlc.arg(max_results)::int
    )
)
SELECT
    l.is_memory::boolean AS is_memory,
    l.project_id,
    l.parent_id,
    l.id,
    coalesce(d.title, '')::text AS title,
    d.path,
    coalesce(d.tags, m.tags, '{}')::jsonb AS tags,
    coalesce(d.metadata, '{}')::jsonb AS metadata,
    coalesce(d.version, m.version, 0)::int AS version,
    coalesce(d.original_filename, '')::text AS original_filename,
    coalesce(d.size, 0)::bigint AS size,
    coalesce(s.name, '')::text AS store_name,
    l.created_at::timestamptz AS created_at,
    d.updated_at AS document_updated_at,
    m.updated_at AS memory_updated_at,
    c.page,
    coalesce(c.content, m.content, '')::text AS content
FROM listed AS l
LEFT JOIN documents AS d ON NOT l.is_memory AND d.project_id = l.project_id AND d.id = l.parent_id
LEFT JOIN chunks AS c ON NOT l.is_memory AND c.project_id = l.project_id AND c.document_id = l.parent_id AND c.id = l.id
LEFT JOIN memories AS m ON l.is_memory AND m.project_id = l.project_id AND m.store_id = l.parent_id AND m.id = l.id
LEFT JOIN memory_stores AS s ON l.is_memory AND s.project_id = l.project_id AND s.id = l.parent_id
ORDER BY l.is_memory, l.created_at, l.parent_id, l.seq, l.id
LIMIT sqlc.arg(max_results)::int OFFSET sqlc.arg(skip)::int;

-- name: UsageAdd :exec
-- Adds queries that were embedded for projects today. Projects that are gone meanwhile are passed over.
-- @sqlc-vet-disable tenant-scope
-- Each count goes to the project that it is of.
INSERT INTO embedding_usage AS e (project_id, day, queries)
SELECT p.id, (statement_timestamp() AT TIME ZONE 'UTC')::date, u.queries
FROM (SELECT unnest(@project_ids::uuid[]) AS project_id, unnest(@queries::bigint[]) AS queries) AS u
JOIN projects AS p ON p.id = u.project_id
ON CONFLICT (project_id, day) DO UPDATE SET queries = e.queries + excluded.queries;

-- name: UsageList :many
SELECT day, queries FROM embedding_usage WHERE project_id = @project_id ORDER BY day DESC LIMIT @max_results::int;
