-- name: StatisticsFold :one
-- Folds a project's deltas into its statistics and says how many it took. At most one fold of a project runs at a time
-- (see StatisticsLock), so nobody else writes the project's rows.
WITH taken AS (
    DELETE FROM lexeme_deltas AS d
    WHERE d.project_id = @project_id
        AND d.id IN (SELECT l.id FROM lexeme_deltas AS l WHERE l.project_id = @project_id ORDER BY l.id LIMIT @max_deltas::int)
    RETURNING d.store, d.n, d.total_length, d.lexemes, d.dfs
),
change AS (
    SELECT u.lexeme, sum(u.df)::bigint AS df
    FROM (SELECT unnest(taken.lexemes) AS lexeme, unnest(taken.dfs) AS df FROM taken) AS u
    GROUP BY u.lexeme
),
lexemes AS (
    INSERT INTO lexeme_stats (project_id, lexeme, df)
    SELECT @project_id, c.lexeme, c.df FROM change AS c WHERE c.df <> 0
    ON CONFLICT (project_id, lexeme) DO UPDATE SET df = lexeme_stats.df + excluded.df
),
corpus AS (
    INSERT INTO corpus_stats (project_id, store, n, total_length)
    SELECT @project_id, t.store, sum(t.n), sum(t.total_length) FROM taken AS t GROUP BY t.store
    ON CONFLICT (project_id, store) DO UPDATE
    SET n = corpus_stats.n + excluded.n, total_length = corpus_stats.total_length + excluded.total_length
)
SELECT count(*) FROM taken;

-- name: StatisticsLock :exec
-- @sqlc-vet-disable tenant-scope
-- Waits until no other transaction folds the project's statistics; lasts until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('kb statistics ' || sqlc.arg(project_id)::uuid::text, 0));

-- name: StatisticsPending :many
-- The projects that have deltas to fold.
-- @sqlc-vet-disable tenant-scope
-- No project: the folding job looks over all projects, and reads no tenant's text.
SELECT DISTINCT project_id FROM lexeme_deltas;

-- name: StatisticsGet :one
SELECT coalesce(sum(n), 0)::bigint AS n, coalesce(sum(total_length), 0)::bigint AS total_length
FROM corpus_stats
WHERE project_id = @project_id;
