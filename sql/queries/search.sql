-- name: Search :many
-- Hybrid search in one statement. It reads downwards:
--
--  1. corpus, word: the project's statistics and the query's words, rarest first, with their weights.
--  2. recalled: one index scan for each word, rarest first, until the budget of rows is spent.
--  3. lexical: to the best of those, the score of the words that the budget left out is added; numbered.
--  4. scope, semantic: the nearest vectors, by an exact scan of a small scope, else by HNSW, numbered.
--  5. fused: both arms by reciprocal rank fusion, with a bonus for the top ranks.
--  6. result: joined back to the rows, with every part of the score.
--
-- A row is a chunk. total_matches counts the fused candidates before the cut. similarity is there for each chunk that has
-- a vector whenever the caller sends one, whichever arm found it. The depth of the arms does not depend on the limit, so
-- that a longer page begins with the shorter one. Ties end on the id. A rank of 0 stands for an arm that did not find the
-- chunk.
--
-- The filter is a DocumentFilter; filtered says that it narrows, so that without one no document is looked at.
--
-- sqlc writes halfvec(384); db.WithDimensions puts in the size of the space in use.
WITH corpus AS MATERIALIZED (
    SELECT
        p.text_config::regconfig AS text_config,
        coalesce((SELECT sum(s.n) FROM corpus_stats AS s WHERE s.project_id = @project_id), 1)::float8 AS n,
        -- Never 0, also while deltas wait to be folded: bm25 divides by it.
        greatest(coalesce((
            SELECT s.total_length::float8 / nullif(s.n, 0)
            FROM corpus_stats AS s
            WHERE s.project_id = @project_id AND s.store = 'document'
        ), 100), 1)::float8 AS average_length
    FROM projects AS p
    WHERE p.id = @project_id
),
query_word AS MATERIALIZED (
    SELECT w.lexeme, coalesce(s.df, 0) AS df
    FROM corpus
    CROSS JOIN LATERAL unnest(tsvector_to_array(to_tsvector(corpus.text_config, analyze_text(@query::text)))) AS w (lexeme)
    LEFT JOIN LATERAL (
        SELECT l.df FROM lexeme_stats AS l WHERE l.project_id = @project_id AND l.lexeme = w.lexeme OFFSET 0
    ) AS s ON true
    WHERE @use_lexical::boolean
    ORDER BY coalesce(s.df, 0), w.lexeme
    LIMIT @max_words::int
),
word AS MATERIALIZED (
    SELECT
        word_query(q.lexeme) AS match,
        inverse_document_frequency(corpus.n, greatest(q.df, 1)::float8) AS idf,
        -- Words that the statistics do not know yet cost nothing until they do; the first known word always runs.
        (sum(q.df) OVER rarest <= @row_budget::int OR sum(least(q.df, 1)) OVER rarest <= 1) AS affordable
    FROM query_word AS q
    CROSS JOIN corpus
    WINDOW rarest AS (ORDER BY q.df, q.lexeme)
),
matching AS MATERIALIZED (
    SELECT
        string_agg(word.match::text, ' & ')::tsquery AS all_words,
        string_agg(word.match::text, ' | ')::tsquery AS any_word
    FROM word
),
recalled AS MATERIALIZED (
    SELECT r.document_id, r.chunk_id, sum(bm25(word.idf, term_frequency(r.rank), r.length, corpus.average_length, @k1::float8, @b::float8)) AS score
    FROM word
    CROSS JOIN corpus
    CROSS JOIN LATERAL (
        SELECT c.document_id, c.chunk_id, c.length, ts_rank('{1,1,1,1}', c.tsv, word.match) AS rank
        FROM chunk_words AS c
        WHERE c.project_id = @project_id
            AND c.tsv @@ word.match
            AND (NOT @filtered::boolean OR EXISTS (
                SELECT FROM documents AS d
                WHERE d.project_id = @project_id
                    AND d.id = c.document_id
                    AND document_fits(d, @filter::jsonb)
            ))
        LIMIT @row_budget::int
    ) AS r
    WHERE word.affordable
    GROUP BY r.document_id, r.chunk_id
    ORDER BY score DESC, r.chunk_id
    LIMIT @rescore_depth::int
),
lexical AS MATERIALIZED (
    SELECT s.document_id, s.chunk_id, s.score, row_number() OVER (ORDER BY s.score DESC, s.chunk_id) AS rank
    FROM (
        SELECT r.document_id, r.chunk_id, r.score + coalesce((
            SELECT sum(bm25(word.idf, t.frequency, c.length, corpus.average_length, @k1::float8, @b::float8))
            FROM word
            CROSS JOIN LATERAL (SELECT term_frequency(ts_rank('{1,1,1,1}', c.tsv, word.match)) AS frequency OFFSET 0) AS t
            WHERE NOT word.affordable AND t.frequency > 0.2
        ), 0) AS score
        FROM recalled AS r
        JOIN chunk_words AS c ON c.project_id = @project_id AND c.document_id = r.document_id AND c.chunk_id = r.chunk_id
        CROSS JOIN corpus
        ORDER BY score DESC, r.chunk_id
        LIMIT @depth::int
    ) AS s
),
scope AS MATERIALIZED (
    -- How many chunks the filters leave. Below a few thousand an exact scan is faster and complete; above, it is still
    -- the better choice while HNSW would have to walk past too many rows of others.
    SELECT CASE
        WHEN NOT @filtered::boolean THEN
            coalesce((SELECT s.n FROM corpus_stats AS s WHERE s.project_id = @project_id AND s.store = 'document'), 0)
        ELSE (
            SELECT coalesce(sum(d.chunk_count), 0)
            FROM documents AS d
            WHERE d.project_id = @project_id
                AND document_fits(d, @filter::jsonb)
        )
    END::float8 AS size,
    (SELECT coalesce(sum(s.n), 0) FROM corpus_stats AS s WHERE s.store = 'document')::float8 AS everything
    WHERE @use_semantic::boolean
),
choice AS MATERIALIZED (
    SELECT size <= @exact_rows::int OR size * size < 20 * sqlc.arg(depth)::float8 * everything AS exact FROM scope
),
nearest AS MATERIALIZED (
    SELECT x.document_id, x.chunk_id, x.distance
    FROM (
        SELECT e.document_id, e.chunk_id, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
        FROM embeddings AS e
        WHERE NOT @filtered::boolean
            AND (SELECT exact FROM choice)
            AND e.project_id = @project_id
            AND e.space_id = @space_id
        UNION ALL
        SELECT e.document_id, e.chunk_id, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
        FROM documents AS d
        JOIN embeddings AS e ON e.project_id = @project_id AND e.document_id = d.id AND e.space_id = @space_id
        WHERE @filtered::boolean
            AND (SELECT exact FROM choice)
            AND d.project_id = @project_id
            AND document_fits(d, @filter::jsonb)
    ) AS x
    ORDER BY x.distance, x.chunk_id
    LIMIT @depth::int
),
walked AS MATERIALIZED (
    SELECT e.document_id, e.chunk_id, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
    FROM embeddings AS e
    WHERE (SELECT NOT exact FROM choice)
        AND e.project_id = @project_id
        AND e.space_id = @space_id
        AND (NOT @filtered::boolean OR EXISTS (
            SELECT FROM documents AS d
            WHERE d.project_id = @project_id
                AND d.id = e.document_id
                AND document_fits(d, @filter::jsonb)
        ))
    ORDER BY e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)
    LIMIT @depth::int
),
semantic AS MATERIALIZED (
    SELECT s.document_id, s.chunk_id, s.distance, row_number() OVER (ORDER BY s.distance, s.chunk_id) AS rank
    FROM (SELECT * FROM nearest UNION ALL SELECT * FROM walked) AS s
),
fused AS MATERIALIZED (
    SELECT
        coalesce(lexical.document_id, semantic.document_id) AS document_id,
        coalesce(lexical.chunk_id, semantic.chunk_id) AS chunk_id,
        lexical.score AS lexical_score,
        lexical.rank AS lexical_rank,
        1 - semantic.distance AS semantic_score,
        semantic.rank AS semantic_rank,
        rrf(lexical.rank, @rrf_k::int) AS lexical_rrf,
        rrf(semantic.rank, @rrf_k::int) AS semantic_rrf,
        top_rank_bonus(least(lexical.rank, semantic.rank)) AS bonus
    FROM lexical
    FULL JOIN semantic ON semantic.chunk_id = lexical.chunk_id AND semantic.document_id = lexical.document_id
),
result AS (
    SELECT f.*, f.lexical_rrf + f.semantic_rrf + f.bonus AS score, count(*) OVER () AS total_matches
    FROM fused AS f
    WHERE f.lexical_rrf + f.semantic_rrf + f.bonus >= @min_score::float8
    ORDER BY score DESC, f.chunk_id
    LIMIT @max_results::int
)
SELECT
    r.chunk_id,
    r.document_id,
    d.title,
    d.path,
    d.doc_type,
    d.knowledge_type,
    d.tags,
    d.metadata,
    d.version AS document_version,
    d.original_filename,
    d.created_at,
    d.updated_at,
    c.seq,
    c.page,
    c.section,
    c.content,
    r.score::float8 AS score,
    r.total_matches::bigint AS total_matches,
    coalesce(r.lexical_score, 0)::float8 AS lexical_score,
    coalesce(r.lexical_rank, 0)::bigint AS lexical_rank,
    coalesce(r.semantic_score, 0)::float8 AS semantic_score,
    coalesce(r.semantic_rank, 0)::bigint AS semantic_rank,
    r.lexical_rrf::float8 AS lexical_rrf,
    r.semantic_rrf::float8 AS semantic_rrf,
    r.bonus::float8 AS bonus,
    coalesce(1 - (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)), 0)::float8 AS similarity,
    (e.embedding IS NOT NULL AND sqlc.narg(query_vector) IS NOT NULL)::boolean AS has_similarity,
    coalesce(w.tsv @@ (SELECT m.all_words FROM matching AS m), false)::boolean AS has_all_words,
    coalesce(w.tsv @@ (SELECT m.any_word FROM matching AS m), false)::boolean AS has_any_word,
    CASE WHEN d.tags = '{}' THEN '{}' ELSE coalesce((
        SELECT jsonb_object_agg(t.name, t.description)
        FROM jsonb_each_text(d.tags) AS pair
        JOIN tags AS t ON t.project_id = @project_id AND t.name = tag_name(pair.key, pair.value)
        WHERE t.description IS NOT NULL
    ), '{}') END::jsonb AS tag_contexts
FROM result AS r
JOIN chunks AS c ON c.project_id = @project_id AND c.document_id = r.document_id AND c.id = r.chunk_id
JOIN chunk_words AS w ON w.project_id = @project_id AND w.document_id = r.document_id AND w.chunk_id = r.chunk_id
JOIN documents AS d ON d.project_id = @project_id AND d.id = r.document_id
LEFT JOIN embeddings AS e
    ON e.project_id = @project_id AND e.document_id = r.document_id AND e.chunk_id = r.chunk_id AND e.space_id = @space_id
ORDER BY r.score DESC, r.chunk_id;
