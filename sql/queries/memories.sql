-- name: MemoryInsert :one
-- Stores a valid memory, which nothing finds before MemoryIndex. One that supersedes another inherits its tags and metadata;
-- its own go over them. Times are given by imports only.
INSERT INTO memories (
    project_id, store_id, id, content, content_hash, source_type, source_id, tags, metadata, expires_at, embedding_due, created_at, updated_at
)
SELECT @project_id, @store_id, @id, @content, @content_hash, @source_type, sqlc.narg(source_id),
    coalesce(old.tags, '{}') || @tags::jsonb AS tags, coalesce(old.metadata, '{}') || @metadata::jsonb AS metadata,
    sqlc.narg(expires_at), @embedding_due, coalesce(sqlc.narg(created_at), statement_timestamp()) AS created_at,
    coalesce(sqlc.narg(updated_at), sqlc.narg(created_at), statement_timestamp()) AS updated_at
FROM (SELECT 1 AS one) AS new
LEFT JOIN memories AS old ON old.project_id = @project_id AND old.id = sqlc.narg(superseded)::uuid
RETURNING *;

-- name: MemoryGet :one
-- The memory, whether it is valid or not.
SELECT * FROM memories WHERE project_id = @project_id AND id = @id;

-- name: MemoryLock :one
-- MemoryGet that keeps others from changing the memory until the end of the transaction.
SELECT * FROM memories WHERE project_id = @project_id AND id = @id FOR NO KEY UPDATE;

-- name: MemoryGetByHash :one
-- The oldest valid memory of a store with this text that the policy allows; it stays there until the end of the transaction.
SELECT * FROM memories
WHERE project_id = @project_id AND store_id = @store_id AND content_hash = @content_hash AND invalidated_at IS NULL
    AND (expires_at IS NULL OR expires_at > statement_timestamp())
    AND memory_policy_allows(sqlc.narg(policy)::jsonb, id, tags, store_id, @store_tags::jsonb)
ORDER BY created_at, id
LIMIT 1
FOR KEY SHARE;

-- name: MemoryHashesKnown :many
-- Which of some texts those valid memories of a store have that the policy allows.
SELECT DISTINCT content_hash FROM memories
WHERE project_id = @project_id AND store_id = @store_id AND content_hash = ANY (@hashes::bytea[]) AND invalidated_at IS NULL
    AND (expires_at IS NULL OR expires_at > statement_timestamp())
    AND memory_policy_allows(sqlc.narg(policy)::jsonb, id, tags, store_id, @store_tags::jsonb);

-- name: MemoryNearest :one
-- The valid memory of a store, among those that the policy allows, that is nearest to a vector; it stays as it is until the end
-- of the transaction. A store of up to exact_rows memories is compared one by one, a larger one through the vector index, so
-- that the work does not grow with it.
-- sqlc writes halfvec(384); see db.WithDimensions.
WITH store AS MATERIALIZED (
    SELECT count(*) <= sqlc.arg(exact_rows)::int AS small
    FROM (
        SELECT e.memory_id FROM memory_embeddings AS e
        WHERE e.project_id = @project_id AND e.store_id = @store_id AND e.space_id = @space_id
        LIMIT sqlc.arg(exact_rows)::int + 1
    ) AS counted
),
compared AS MATERIALIZED (
    SELECT x.memory_id, x.distance
    FROM (
        SELECT e.memory_id, (e.embedding::halfvec(384) <=> @vector::halfvec(384))::float8 AS distance
        FROM memory_embeddings AS e
        WHERE (SELECT small FROM store)
            AND e.project_id = @project_id AND e.store_id = @store_id AND e.space_id = @space_id
            AND (e.expires_at IS NULL OR e.expires_at > statement_timestamp())
            AND (sqlc.narg(policy)::jsonb IS NULL OR EXISTS (
                SELECT FROM memories AS m
                WHERE m.project_id = @project_id AND m.store_id = @store_id AND m.id = e.memory_id
                    AND memory_policy_allows(sqlc.narg(policy)::jsonb, m.id, m.tags, m.store_id, @store_tags::jsonb)
            ))
        OFFSET 0
    ) AS x
    ORDER BY x.distance, x.memory_id
    LIMIT 1
),
walked AS MATERIALIZED (
    SELECT e.memory_id, (e.embedding::halfvec(384) <=> @vector::halfvec(384))::float8 AS distance
    FROM memory_embeddings AS e
    WHERE (SELECT NOT small FROM store)
        AND e.project_id = @project_id AND e.store_id = @store_id AND e.space_id = @space_id
        AND (e.expires_at IS NULL OR e.expires_at > statement_timestamp())
        AND (sqlc.narg(policy)::jsonb IS NULL OR EXISTS (
            SELECT FROM memories AS m
            WHERE m.project_id = @project_id AND m.store_id = @store_id AND m.id = e.memory_id
                AND memory_policy_allows(sqlc.narg(policy)::jsonb, m.id, m.tags, m.store_id, @store_tags::jsonb)
        ))
    ORDER BY e.embedding::halfvec(384) <=> @vector::halfvec(384)
    LIMIT 1
)
SELECT sqlc.embed(m), greatest(least(1 - nearest.distance, 1), -1)::float8 AS similarity
FROM (SELECT * FROM compared UNION ALL SELECT * FROM walked) AS nearest
JOIN memories AS m ON m.project_id = @project_id AND m.store_id = @store_id AND m.id = nearest.memory_id
FOR NO KEY UPDATE OF m;

-- name: MemoryIndex :exec
-- Lets searches find a valid memory, by its words and, when it has one, by its vector, and adds its words to the statistics.
WITH memory AS MATERIALIZED (
    SELECT m.id, m.expires_at, search_vector(p.text_config, '', m.content) AS tsv
    FROM memories AS m
    JOIN projects AS p ON p.id = m.project_id
    WHERE m.project_id = @project_id AND m.store_id = @store_id AND m.id = @id
),
vector AS (
    INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, expires_at, embedding)
    SELECT @project_id, @store_id, m.id, @space_id, m.expires_at, sqlc.narg(vector)::halfvec
    FROM memory AS m
    WHERE sqlc.narg(vector)::halfvec IS NOT NULL
),
words AS (
    INSERT INTO memory_words (project_id, store_id, memory_id, length, expires_at, tsv)
    SELECT @project_id, @store_id, m.id, search_length(m.tsv), m.expires_at, m.tsv FROM memory AS m
    RETURNING length, tsv
)
INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
SELECT @project_id, 'memory', 1, w.length, tsvector_to_array(w.tsv), array_fill(1::bigint, ARRAY[length(w.tsv)]) FROM words AS w;

-- name: MemoryUnindex :exec
-- Takes a memory out of the searches, and its words out of the statistics.
WITH vectors AS (
    DELETE FROM memory_embeddings AS e WHERE e.project_id = @project_id AND e.store_id = @store_id AND e.memory_id = @id
),
words AS (
    DELETE FROM memory_words AS w WHERE w.project_id = @project_id AND w.store_id = @store_id AND w.memory_id = @id
    RETURNING w.length, w.tsv
)
INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
SELECT @project_id, 'memory', -1, -w.length, tsvector_to_array(w.tsv), array_fill(-1::bigint, ARRAY[length(w.tsv)]) FROM words AS w;

-- name: MemoryUnindexStore :exec
-- MemoryUnindex for all memories of a store.
WITH words AS (
    DELETE FROM memory_words AS w WHERE w.project_id = @project_id AND w.store_id = @store_id
    RETURNING w.length, w.tsv
),
frequency AS (
    SELECT w.lexeme, count(*) AS df FROM words CROSS JOIN LATERAL unnest(tsvector_to_array(words.tsv)) AS w (lexeme) GROUP BY w.lexeme
)
INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
SELECT @project_id, 'memory', -count(*), -sum(words.length),
    coalesce((SELECT array_agg(f.lexeme ORDER BY f.lexeme) FROM frequency AS f), '{}'),
    coalesce((SELECT array_agg(-f.df ORDER BY f.lexeme) FROM frequency AS f), '{}')
FROM words
HAVING count(*) > 0;

-- name: MemoryInvalidate :one
-- Makes a valid memory history, superseded by another one unless that is null. MemoryUnindex belongs to it.
UPDATE memories
SET invalidated_at = statement_timestamp(), superseded_by = sqlc.narg(superseded_by), embedding_due = false
WHERE project_id = @project_id AND id = @id AND invalidated_at IS NULL
RETURNING *;

-- name: MemoryReplace :one
-- Makes the next version of a valid memory. MemoryUnindex and MemoryIndex belong to it.
UPDATE memories
SET content = @content, content_hash = @content_hash, tags = @tags, metadata = @metadata, expires_at = sqlc.narg(expires_at),
    embedding_due = @embedding_due, version = version + 1, updated_at = statement_timestamp()
WHERE project_id = @project_id AND id = @id AND invalidated_at IS NULL
RETURNING *;

-- name: MemorySetTags :one
-- Replaces the tags, or merges new ones into them.
UPDATE memories
SET tags = CASE WHEN @merge::boolean THEN tags ELSE '{}' END || @tags::jsonb, version = version + 1, updated_at = statement_timestamp()
WHERE project_id = @project_id AND id = @id
RETURNING *;

-- name: MemoryDelete :execrows
-- MemoryUnindex goes before it, for the statistics.
DELETE FROM memories WHERE project_id = @project_id AND id = @id;

-- name: MemoryList :many
-- The memories of a store, oldest first: those that searches find, or all of them.
SELECT * FROM memories
WHERE project_id = @project_id AND store_id = @store_id
    AND (@include_invalidated::boolean OR invalidated_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp()))
    AND tags @> @tags::jsonb
    AND memory_policy_allows(sqlc.narg(policy)::jsonb, id, tags, store_id, @store_tags::jsonb)
ORDER BY created_at, id
LIMIT @max_results::int OFFSET @skipped::int;

-- name: MemoryCount :one
SELECT count(*) FROM memories
WHERE project_id = @project_id AND store_id = @store_id
    AND (@include_invalidated::boolean OR invalidated_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp()))
    AND tags @> @tags::jsonb
    AND memory_policy_allows(sqlc.narg(policy)::jsonb, id, tags, store_id, @store_tags::jsonb);

-- name: MemoryExport :many
-- MemoryList in steps; the cursor is the last row of the step before, its time null at first.
SELECT * FROM memories
WHERE project_id = @project_id AND store_id = @store_id
    AND (@include_invalidated::boolean OR invalidated_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp()))
    AND memory_policy_allows(sqlc.narg(policy)::jsonb, id, tags, store_id, @store_tags::jsonb)
    AND (sqlc.narg(after_time)::timestamptz IS NULL OR (created_at, id) > (sqlc.narg(after_time)::timestamptz, @after_id::uuid))
ORDER BY created_at, id
LIMIT @max_results::int;

-- name: MemoryPurge :one
-- Deletes some expired memories and takes their words out of the statistics; says how many they were.
-- @sqlc-vet-disable tenant-scope
-- No project: the job looks over all projects, and each one's statistics lose their own words.
WITH expired AS MATERIALIZED (
    SELECT m.project_id, m.store_id, m.id
    FROM memories AS m
    WHERE m.expires_at <= statement_timestamp()
    ORDER BY m.expires_at
    LIMIT @max_results::int
    FOR UPDATE SKIP LOCKED
),
words AS (
    DELETE FROM memory_words AS w
    USING expired AS x
    WHERE w.project_id = x.project_id AND w.store_id = x.store_id AND w.memory_id = x.id
    RETURNING w.project_id, w.length, w.tsv
),
frequency AS (
    SELECT words.project_id, w.lexeme, count(*) AS df
    FROM words
    CROSS JOIN LATERAL unnest(tsvector_to_array(words.tsv)) AS w (lexeme)
    GROUP BY words.project_id, w.lexeme
),
statistics AS (
    INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
    SELECT words.project_id, 'memory', -count(*), -sum(words.length),
        coalesce((SELECT array_agg(f.lexeme ORDER BY f.lexeme) FROM frequency AS f WHERE f.project_id = words.project_id), '{}'),
        coalesce((SELECT array_agg(-f.df ORDER BY f.lexeme) FROM frequency AS f WHERE f.project_id = words.project_id), '{}')
    FROM words
    GROUP BY words.project_id
),
deleted AS (
    DELETE FROM memories AS m
    USING expired AS x
    WHERE m.project_id = x.project_id AND m.store_id = x.store_id AND m.id = x.id
    RETURNING m.id
)
SELECT count(*) FROM deleted;

-- name: MemoryNext :many
-- Valid memories behind the cursor, in the order of their keys, that lack a vector in the space, besides blank ones, in which
-- its model sees nothing. With renew all of them; with only_due those that were stored while the model did not answer.
-- @sqlc-vet-disable tenant-scope
-- No project: a space is the whole deployment's.
SELECT m.project_id, m.store_id, m.id, m.version, m.content
FROM memories AS m
WHERE (m.project_id, m.store_id, m.id) > (@cursor_project::uuid, @cursor_store::uuid, @cursor_memory::uuid)
    AND m.invalidated_at IS NULL
    AND (m.expires_at IS NULL OR m.expires_at > statement_timestamp())
    AND (NOT @only_due::boolean OR m.embedding_due)
    AND m.id <> ALL (coalesce(@blank::uuid[], '{}'))
    AND (@renew::boolean OR NOT EXISTS (
        SELECT FROM memory_embeddings AS e
        WHERE e.project_id = m.project_id AND e.store_id = m.store_id AND e.memory_id = m.id AND e.space_id = @space_id
    ))
ORDER BY m.project_id, m.store_id, m.id
LIMIT @max_results::int;

-- name: MemoryEmbeddingUpsertMany :exec
-- Puts vectors of memories of any project into a space; a memory in which the model sees nothing comes with an empty vector. A
-- memory that has changed since it was read, or that another transaction changes now, is passed over. In the active space a
-- vector is due no more.
-- @sqlc-vet-disable tenant-scope
-- No project: a reindex is the whole deployment's; each vector goes to the project that its memory is of.
WITH current AS MATERIALIZED (
    SELECT m.project_id, m.store_id, m.id, m.expires_at, u.vector
    FROM (
        SELECT
            unnest(@project_ids::uuid[]) AS project_id, unnest(@store_ids::uuid[]) AS store_id, unnest(@memory_ids::uuid[]) AS memory_id,
            unnest(@versions::int[]) AS version, unnest(@vectors::text[]) AS vector
    ) AS u
    JOIN memories AS m ON m.project_id = u.project_id AND m.store_id = u.store_id AND m.id = u.memory_id AND m.version = u.version
    WHERE m.invalidated_at IS NULL
    FOR NO KEY UPDATE OF m SKIP LOCKED
),
done AS (
    UPDATE memories AS m SET embedding_due = false
    FROM current AS c
    WHERE m.project_id = c.project_id AND m.store_id = c.store_id AND m.id = c.id AND m.embedding_due
        AND EXISTS (SELECT FROM embedding_spaces AS s WHERE s.id = @space_id AND s.active)
)
INSERT INTO memory_embeddings (project_id, store_id, memory_id, space_id, expires_at, embedding)
SELECT c.project_id, c.store_id, c.id, @space_id, c.expires_at, c.vector::halfvec
FROM current AS c
WHERE c.vector <> ''
ON CONFLICT (project_id, store_id, memory_id, space_id) DO UPDATE SET embedding = excluded.embedding;

-- name: MemoryAssertionInsert :one
INSERT INTO memory_assertions (
    project_id, store_id, id, memory_id, content, mechanism, principal, outcome, similarity, declared, rule_id, generation_id, created_at
) VALUES (
    @project_id, @store_id, @id, @memory_id::uuid, @content, @mechanism, @principal, @outcome, sqlc.narg(similarity), @declared, sqlc.narg(rule_id),
    sqlc.narg(generation_id), statement_timestamp()
)
RETURNING *;

-- name: MemoryAssertionList :many
-- Newest first.
SELECT a.* FROM memory_assertions AS a
WHERE a.project_id = @project_id AND a.store_id = @store_id
    AND (sqlc.narg(mechanism)::memory_mechanism IS NULL OR a.mechanism = sqlc.narg(mechanism)::memory_mechanism)
    AND (sqlc.narg(outcome)::memory_outcome IS NULL OR a.outcome = sqlc.narg(outcome)::memory_outcome)
    AND (sqlc.narg(generation_id)::text IS NULL OR a.generation_id = sqlc.narg(generation_id)::text)
    AND (sqlc.narg(since)::timestamptz IS NULL OR a.created_at >= sqlc.narg(since)::timestamptz)
    AND (sqlc.narg(policy)::jsonb IS NULL OR EXISTS (
        SELECT FROM memories AS m
        WHERE m.project_id = @project_id AND m.id = a.memory_id
            AND memory_policy_allows(sqlc.narg(policy)::jsonb, m.id, m.tags, m.store_id, @store_tags::jsonb)
    ))
ORDER BY a.created_at DESC, a.id DESC
LIMIT @max_results::int OFFSET @skipped::int;

-- name: MemoryAssertionCount :one
SELECT count(*) FROM memory_assertions AS a
WHERE a.project_id = @project_id AND a.store_id = @store_id
    AND (sqlc.narg(mechanism)::memory_mechanism IS NULL OR a.mechanism = sqlc.narg(mechanism)::memory_mechanism)
    AND (sqlc.narg(outcome)::memory_outcome IS NULL OR a.outcome = sqlc.narg(outcome)::memory_outcome)
    AND (sqlc.narg(generation_id)::text IS NULL OR a.generation_id = sqlc.narg(generation_id)::text)
    AND (sqlc.narg(since)::timestamptz IS NULL OR a.created_at >= sqlc.narg(since)::timestamptz)
    AND (sqlc.narg(policy)::jsonb IS NULL OR EXISTS (
        SELECT FROM memories AS m
        WHERE m.project_id = @project_id AND m.id = a.memory_id
            AND memory_policy_allows(sqlc.narg(policy)::jsonb, m.id, m.tags, m.store_id, @store_tags::jsonb)
    ));
