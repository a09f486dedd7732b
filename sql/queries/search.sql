-- name: Search :many
-- Hybrid search over documents and memories in one statement. It reads downwards:
--
--  1. corpus, query_word, word: the statistics of the projects and the query's words, rarest first, with their weights.
--  2. recalled: one index scan of each store for each word, rarest first, until the budget of rows is spent.
--  3. lexical: to the best of those, the score of the words that the budget left out is added; numbered.
--  4. scope, nearest, walked, semantic: the nearest vectors of each store, by an exact scan of a small scope, else by HNSW;
--     those that are near enough, numbered. Both stores make one ranking in each arm.
--  5. candidate, measured, scored: both arms together; fused by rank (rrf), or by the size of both parts (blend); then the
--     decay of memories.
--  6. listed: the floor, at most so many passages of a document, numbered. result: one page of them.
--  7. summary: one row, whatever was found, with what happened to candidates and facets of the first project, for those who ask.
--
-- A row is a passage: a chunk of a document, or a memory. The first row is there even when nothing is found, without a
-- passage. total_matches counts the candidates above the floor before the cut. similarity is there for each passage that has
-- a vector whenever the caller sends one, whichever arm found it. The depth of the arms does not depend on the page, so that
-- pages fit together. Ties end on the id. A rank of 0 stands for an arm that did not find the passage.
--
-- Every table is compared with the same list of projects, which is one in most searches. sqlc writes halfvec(384);
-- db.WithDimensions puts in the size of the space in use.
-- @sqlc-vet-disable tenant-scope
-- The projects are a list: project_id = ANY (@project_ids).
WITH clock AS MATERIALIZED (
    SELECT coalesce(sqlc.narg(now)::timestamptz, statement_timestamp()) AS now
),
language AS MATERIALIZED (
    SELECT DISTINCT p.text_config::regconfig AS config FROM projects AS p WHERE p.id = ANY (@project_ids::uuid[])
),
corpus AS MATERIALIZED (
    SELECT
        coalesce(sum(s.n), 1)::float8 AS n,
        -- Never 0, also while deltas wait to be folded: bm25 divides by it. Each store has its own average, so that short
        -- memories are not favoured.
        greatest(coalesce(sum(s.total_length) FILTER (WHERE s.store = 'document')
            / nullif(sum(s.n) FILTER (WHERE s.store = 'document'), 0), 100), 1)::float8 AS document_length,
        greatest(coalesce(sum(s.total_length) FILTER (WHERE s.store = 'memory')
            / nullif(sum(s.n) FILTER (WHERE s.store = 'memory'), 0), 20), 1)::float8 AS memory_length
    FROM corpus_stats AS s
    WHERE s.project_id = ANY (@project_ids::uuid[])
),
query_word AS MATERIALIZED (
    SELECT w.lexeme, coalesce(s.df, 0) AS df
    FROM (
        SELECT DISTINCT unnest(tsvector_to_array(to_tsvector(language.config, analyze_text(@query::text)))) AS lexeme FROM language
    ) AS w
    LEFT JOIN LATERAL (
        SELECT sum(l.df)::bigint AS df
        FROM lexeme_stats AS l
        WHERE l.project_id = ANY (@project_ids::uuid[]) AND l.lexeme = w.lexeme
        OFFSET 0
    ) AS s ON true
    WHERE @use_lexical::boolean
    -- Words that are nowhere must not use up the places of those that are.
    ORDER BY s.df IS NULL, coalesce(s.df, 0), w.lexeme
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
-- Phrases that must be there, and words that must not: operators that only some searches know. Null is no condition.
operators AS MATERIALIZED (
    SELECT string_agg(o.clause, ' & ')::tsquery AS must
    FROM (
        SELECT '(' || string_agg(nullif(phraseto_tsquery(language.config, analyze_text(p.phrase))::text, ''), ' | ') || ')' AS clause
        FROM unnest(@phrases::text[]) AS p (phrase)
        CROSS JOIN language
        GROUP BY p.phrase
        UNION ALL
        SELECT '!(' || string_agg(nullif(phraseto_tsquery(language.config, analyze_text(e.excluded))::text, ''), ' | ') || ')'
        FROM unnest(@excluded::text[]) AS e (excluded)
        CROSS JOIN language
        GROUP BY e.excluded
    ) AS o
),
recalled AS MATERIALIZED (
    SELECT r.project_id, r.parent_id, r.id, r.is_memory,
        sum(bm25(word.idf, term_frequency(r.rank), r.length, r.average_length, @k1::float8, @b::float8)) AS score
    FROM word
    CROSS JOIN LATERAL (
        (
            SELECT c.project_id, c.document_id AS parent_id, c.chunk_id AS id, false AS is_memory, c.length,
                (SELECT corpus.document_length FROM corpus) AS average_length, ts_rank('{1,1,1,1}', c.tsv, word.match) AS rank
            FROM chunk_words AS c
            WHERE @include_documents::boolean
                AND c.project_id = ANY (@project_ids::uuid[])
                AND c.tsv @@ word.match
                AND ((SELECT o.must FROM operators AS o) IS NULL OR c.tsv @@ (SELECT o.must FROM operators AS o))
                AND (NOT @documents_filtered::boolean OR EXISTS (
                    SELECT FROM documents AS d
                    WHERE d.project_id = c.project_id AND d.id = c.document_id AND document_fits(d, @document_filter::jsonb)
                ))
            LIMIT @row_budget::int
        )
        UNION ALL
        (
            SELECT m.project_id, m.store_id, m.memory_id, true, m.length,
                (SELECT corpus.memory_length FROM corpus), ts_rank('{1,1,1,1}', m.tsv, word.match)
            FROM memory_words AS m
            WHERE @include_memories::boolean
                AND m.project_id = ANY (@project_ids::uuid[])
                AND (sqlc.narg(store_ids)::uuid[] IS NULL OR m.store_id = ANY (sqlc.narg(store_ids)::uuid[]))
                AND m.tsv @@ word.match
                AND ((SELECT o.must FROM operators AS o) IS NULL OR m.tsv @@ (SELECT o.must FROM operators AS o))
                AND (m.expires_at IS NULL OR m.expires_at > (SELECT clock.now FROM clock))
                AND (NOT @memories_filtered::boolean OR EXISTS (
                    SELECT FROM memories AS y
                    JOIN memory_stores AS s ON s.project_id = y.project_id AND s.id = y.store_id
                    WHERE y.project_id = m.project_id AND y.store_id = m.store_id AND y.id = m.memory_id
                        AND memory_fits(y, s.tags, @memory_filter::jsonb)
                ))
            LIMIT @row_budget::int
        )
    ) AS r
    WHERE word.affordable
    GROUP BY r.project_id, r.parent_id, r.id, r.is_memory
    ORDER BY score DESC, r.id
    LIMIT @rescore_depth::int
),
lexical AS MATERIALIZED (
    SELECT s.project_id, s.parent_id, s.id, s.is_memory, s.score, row_number() OVER (ORDER BY s.score DESC, s.id) AS rank
    FROM (
        SELECT r.project_id, r.parent_id, r.id, r.is_memory, r.score + coalesce((
            SELECT sum(bm25(word.idf, t.frequency, p.length, CASE WHEN r.is_memory THEN corpus.memory_length ELSE corpus.document_length END,
                @k1::float8, @b::float8))
            FROM word
            CROSS JOIN LATERAL (SELECT term_frequency(ts_rank('{1,1,1,1}', p.tsv, word.match)) AS frequency OFFSET 0) AS t
            WHERE NOT word.affordable AND t.frequency > 0.2
        ), 0) AS score
        FROM recalled AS r
        JOIN passage_words AS p ON p.project_id = r.project_id AND p.parent_id = r.parent_id AND p.id = r.id
        CROSS JOIN corpus
        ORDER BY score DESC, r.id
        LIMIT @depth::int
    ) AS s
),
scope AS MATERIALIZED (
    -- How many vectors the filters leave in each store. Below a few thousand an exact scan is faster and complete; above, it
    -- is still the better choice while HNSW would have to walk past too many rows of others.
    SELECT
        s.documents <= @exact_rows::int OR s.documents * s.documents < 20 * sqlc.arg(depth)::float8 * s.all_chunks AS documents_exact,
        s.memories <= @exact_rows::int OR s.memories * s.memories < 20 * sqlc.arg(depth)::float8 * s.all_memories AS memories_exact
    FROM (
        SELECT
            CASE WHEN NOT @documents_filtered::boolean THEN coalesce((
                SELECT sum(c.n) FROM corpus_stats AS c WHERE c.project_id = ANY (@project_ids::uuid[]) AND c.store = 'document'
            ), 0) ELSE (
                SELECT coalesce(sum(d.chunk_count), 0)
                FROM documents AS d
                WHERE @include_documents::boolean AND d.project_id = ANY (@project_ids::uuid[]) AND document_fits(d, @document_filter::jsonb)
            ) END::float8 AS documents,
            CASE WHEN sqlc.narg(store_ids)::uuid[] IS NULL THEN coalesce((
                SELECT sum(c.n) FROM corpus_stats AS c WHERE c.project_id = ANY (@project_ids::uuid[]) AND c.store = 'memory'
            ), 0) ELSE (
                SELECT count(*)
                FROM (
                    SELECT FROM memory_words AS m
                    WHERE m.project_id = ANY (@project_ids::uuid[]) AND m.store_id = ANY (sqlc.narg(store_ids)::uuid[])
                    LIMIT sqlc.arg(exact_rows)::int + 1
                ) AS m
            ) END::float8 AS memories,
            (SELECT coalesce(sum(c.n), 0) FROM corpus_stats AS c WHERE c.store = 'document')::float8 AS all_chunks,
            (SELECT coalesce(sum(c.n), 0) FROM corpus_stats AS c WHERE c.store = 'memory')::float8 AS all_memories
        WHERE @use_semantic::boolean
    ) AS s
),
nearest AS MATERIALIZED (
    (
        SELECT x.project_id, x.parent_id, x.id, false AS is_memory, x.distance
        FROM (
            SELECT e.project_id, e.document_id AS parent_id, e.chunk_id AS id,
                (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
            FROM embeddings AS e
            WHERE NOT @documents_filtered::boolean
                AND @include_documents::boolean
                AND (SELECT scope.documents_exact FROM scope)
                AND e.project_id = ANY (@project_ids::uuid[])
                AND e.space_id = @space_id
            UNION ALL
            SELECT e.project_id, e.document_id, e.chunk_id, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8
            FROM documents AS d
            JOIN embeddings AS e ON e.project_id = d.project_id AND e.document_id = d.id AND e.space_id = @space_id
            WHERE @documents_filtered::boolean
                AND @include_documents::boolean
                AND (SELECT scope.documents_exact FROM scope)
                AND d.project_id = ANY (@project_ids::uuid[])
                AND document_fits(d, @document_filter::jsonb)
        ) AS x
        ORDER BY x.distance, x.id
        LIMIT @depth::int
    )
    UNION ALL
    (
        SELECT e.project_id, e.store_id, e.memory_id, true, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
        FROM memory_embeddings AS e
        WHERE @include_memories::boolean
            AND (SELECT scope.memories_exact FROM scope)
            AND e.project_id = ANY (@project_ids::uuid[])
            AND (sqlc.narg(store_ids)::uuid[] IS NULL OR e.store_id = ANY (sqlc.narg(store_ids)::uuid[]))
            AND e.space_id = @space_id
            AND (e.expires_at IS NULL OR e.expires_at > (SELECT clock.now FROM clock))
            AND (NOT @memories_filtered::boolean OR EXISTS (
                SELECT FROM memories AS y
                JOIN memory_stores AS s ON s.project_id = y.project_id AND s.id = y.store_id
                WHERE y.project_id = e.project_id AND y.store_id = e.store_id AND y.id = e.memory_id
                    AND memory_fits(y, s.tags, @memory_filter::jsonb)
            ))
        ORDER BY distance, e.memory_id
        LIMIT @depth::int
    )
),
walked AS MATERIALIZED (
    (
        SELECT e.project_id, e.document_id AS parent_id, e.chunk_id AS id, false AS is_memory,
            (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
        FROM embeddings AS e
        WHERE @include_documents::boolean
            AND (SELECT NOT scope.documents_exact FROM scope)
            AND e.project_id = ANY (@project_ids::uuid[])
            AND e.space_id = @space_id
            AND (NOT @documents_filtered::boolean OR EXISTS (
                SELECT FROM documents AS d
                WHERE d.project_id = e.project_id AND d.id = e.document_id AND document_fits(d, @document_filter::jsonb)
            ))
        ORDER BY e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)
        LIMIT @depth::int
    )
    UNION ALL
    (
        SELECT e.project_id, e.store_id, e.memory_id, true, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8
        FROM memory_embeddings AS e
        WHERE @include_memories::boolean
            AND (SELECT NOT scope.memories_exact FROM scope)
            AND e.project_id = ANY (@project_ids::uuid[])
            AND (sqlc.narg(store_ids)::uuid[] IS NULL OR e.store_id = ANY (sqlc.narg(store_ids)::uuid[]))
            AND e.space_id = @space_id
            AND (e.expires_at IS NULL OR e.expires_at > (SELECT clock.now FROM clock))
            AND (NOT @memories_filtered::boolean OR EXISTS (
                SELECT FROM memories AS y
                JOIN memory_stores AS s ON s.project_id = y.project_id AND s.id = y.store_id
                WHERE y.project_id = e.project_id AND y.store_id = e.store_id AND y.id = e.memory_id
                    AND memory_fits(y, s.tags, @memory_filter::jsonb)
            ))
        ORDER BY e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)
        LIMIT @depth::int
    )
),
near AS MATERIALIZED (
    SELECT n.* FROM (SELECT * FROM nearest UNION ALL SELECT * FROM walked) AS n ORDER BY n.distance, n.id LIMIT @depth::int
),
semantic AS MATERIALIZED (
    SELECT n.project_id, n.parent_id, n.id, n.is_memory, n.distance, row_number() OVER (ORDER BY n.distance, n.id) AS rank
    FROM near AS n
    WHERE 1 - n.distance >= @min_similarity::float8
),
candidate AS MATERIALIZED (
    SELECT
        coalesce(l.project_id, s.project_id) AS project_id,
        coalesce(l.parent_id, s.parent_id) AS parent_id,
        coalesce(l.id, s.id) AS id,
        coalesce(l.is_memory, s.is_memory) AS is_memory,
        l.score AS lexical_score,
        l.rank AS lexical_rank,
        1 - s.distance AS semantic_score,
        s.rank AS semantic_rank
    FROM lexical AS l
    FULL JOIN semantic AS s ON s.id = l.id AND s.parent_id = l.parent_id
),
measured AS MATERIALIZED (
    -- What blend compares: both parts of each candidate, exactly, whichever arm found it.
    SELECT c.id, c.parent_id,
        greatest(1 - (v.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)), 0)::float8 AS cosine,
        coalesce((
            SELECT sum(bm25(word.idf, t.frequency, p.length, CASE WHEN c.is_memory THEN corpus.memory_length ELSE corpus.document_length END,
                @k1::float8, @b::float8))
            FROM word
            CROSS JOIN LATERAL (SELECT term_frequency(ts_rank('{1,1,1,1}', p.tsv, word.match)) AS frequency OFFSET 0) AS t
            WHERE t.frequency > 0.2
        ), 0) AS bm25
    FROM candidate AS c
    JOIN passage_words AS p ON p.project_id = c.project_id AND p.parent_id = c.parent_id AND p.id = c.id
    CROSS JOIN corpus
    LEFT JOIN passage_vectors AS v
        ON v.project_id = c.project_id AND v.parent_id = c.parent_id AND v.id = c.id AND v.space_id = @space_id AND @use_semantic::boolean
    WHERE @blend::boolean
),
fused AS MATERIALIZED (
    SELECT
        c.*,
        (sqlc.arg(lexical_weight)::float8 * rrf(c.lexical_rank, @rrf_k::int))::float8 AS lexical_rrf,
        (sqlc.arg(semantic_weight)::float8 * rrf(c.semantic_rank, @rrf_k::int))::float8 AS semantic_rrf,
        (CASE WHEN @top_rank_bonus::boolean THEN top_rank_bonus(least(c.lexical_rank, c.semantic_rank)) ELSE 0 END)::float8 AS bonus,
        m.cosine,
        m.bm25,
        -- How good the best of them is in words: what blend measures the others by.
        greatest(max(m.bm25) OVER (), 1e-9::float8)::float8 AS best_bm25,
        coalesce(recency((SELECT clock.now FROM clock) - y.updated_at, sqlc.arg(half_life_days)::float8), 1)::float8 AS decay
    FROM candidate AS c
    LEFT JOIN measured AS m ON m.id = c.id AND m.parent_id = c.parent_id
    LEFT JOIN memories AS y
        ON sqlc.arg(half_life_days)::float8 > 0 AND c.is_memory AND y.project_id = c.project_id AND y.store_id = c.parent_id AND y.id = c.id
),
scored AS MATERIALIZED (
    SELECT
        f.*,
        (f.decay * CASE WHEN @blend::boolean
            THEN sqlc.arg(semantic_weight)::float8 * coalesce(f.cosine, 0) + sqlc.arg(lexical_weight)::float8 * coalesce(f.bm25, 0) / f.best_bm25
            ELSE f.lexical_rrf + f.semantic_rrf + f.bonus
        END)::float8 AS score
    FROM fused AS f
),
floored AS MATERIALIZED (
    SELECT s.*, row_number() OVER (PARTITION BY CASE WHEN s.is_memory THEN s.id ELSE s.parent_id END ORDER BY s.score DESC, s.id) AS place
    FROM scored AS s
    WHERE s.score >= @min_score::float8
),
listed AS MATERIALIZED (
    SELECT f.*, row_number() OVER (ORDER BY f.score DESC, f.id) AS ordinal
    FROM floored AS f
    WHERE @group_size::int = 0 OR f.place <= @group_size::int
),
result AS (
    SELECT l.* FROM listed AS l WHERE l.ordinal > sqlc.arg(skip)::int AND l.ordinal <= sqlc.arg(skip)::int + sqlc.arg(max_results)::int
),
first_of AS MATERIALIZED (
    SELECT l.parent_id, min(l.ordinal)::bigint AS ordinal FROM listed AS l WHERE NOT l.is_memory GROUP BY l.parent_id
),
summary AS MATERIALIZED (
    SELECT
        (SELECT count(*) FROM listed) AS total_matches,
        CASE WHEN @explain::boolean THEN jsonb_build_object(
            'lexical_candidates', (SELECT count(*) FROM lexical),
            'semantic_candidates', (SELECT count(*) FROM near),
            'candidates', (SELECT count(*) FROM candidate),
            'removed', jsonb_build_object(
                'min_similarity', (SELECT count(*) FROM near) - (SELECT count(*) FROM semantic),
                'min_score', (SELECT count(*) FROM scored) - (SELECT count(*) FROM floored),
                'group_size', (SELECT count(*) FROM floored) - (SELECT count(*) FROM listed),
                'limit', (SELECT count(*) FROM listed) - (SELECT count(*) FROM result),
                'filters', coalesce((
                    SELECT jsonb_object_agg(k.misfit, k.documents)
                    FROM (
                        SELECT document_misfit(d, @document_filter::jsonb) AS misfit, count(*) AS documents
                        FROM documents AS d
                        WHERE @include_documents::boolean
                            AND d.project_id = ANY (@project_ids::uuid[])
                            AND document_seen(d, @document_filter::jsonb)
                        GROUP BY 1
                    ) AS k
                    WHERE k.misfit IS NOT NULL
                ), '{}')
            )
        ) ELSE '{}' END AS counts,
        coalesce((
            SELECT jsonb_agg(jsonb_build_object('document_id', a.id, 'step', CASE
                WHEN d.id IS NULL THEN 'not_found'
                WHEN NOT @include_documents::boolean THEN 'include_documents'
                WHEN document_misfit(d, @document_filter::jsonb) IS NOT NULL THEN 'filter'
                WHEN best.ordinal <= sqlc.arg(skip)::int THEN 'offset'
                WHEN best.ordinal <= sqlc.arg(skip)::int + sqlc.arg(max_results)::int THEN 'returned'
                WHEN best.ordinal IS NOT NULL THEN 'limit'
                WHEN EXISTS (SELECT FROM scored AS s WHERE s.parent_id = d.id) THEN 'min_score'
                WHEN EXISTS (SELECT FROM near AS n WHERE n.parent_id = d.id) THEN 'min_similarity'
                ELSE 'not_recalled'
            END, 'filter', document_misfit(d, @document_filter::jsonb), 'position', best.ordinal, 'similarity', (
                SELECT max(1 - (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)))
                FROM embeddings AS e
                WHERE e.project_id = d.project_id AND e.document_id = d.id AND e.space_id = @space_id
            ), 'has_any_word', (
                SELECT bool_or(c.tsv @@ (SELECT matching.any_word FROM matching))
                FROM chunk_words AS c
                WHERE c.project_id = d.project_id AND c.document_id = d.id
            )) ORDER BY a.place)
            FROM unnest(@why::uuid[]) WITH ORDINALITY AS a (id, place)
            LEFT JOIN documents AS d ON d.project_id = ANY (@project_ids::uuid[]) AND d.id = a.id
                AND document_seen(d, @document_filter::jsonb)
            LEFT JOIN first_of AS best ON best.parent_id = d.id
        ), '[]')::jsonb AS why,
        CASE WHEN cardinality(@facets::text[]) > 0 THEN document_facets((@project_ids::uuid[])[1], ARRAY(SELECT f.parent_id FROM first_of AS f), @facets::text[],
            @facet_buckets::int) END AS facets
)
SELECT
    q.total_matches::bigint AS total_matches,
    q.counts::jsonb AS counts,
    q.why::jsonb AS why,
    coalesce(q.facets, '{}')::jsonb AS facets,
    (r.id IS NOT NULL)::boolean AS found,
    coalesce(r.is_memory, false)::boolean AS is_memory,
    coalesce(r.project_id, '00000000-0000-0000-0000-000000000000')::uuid AS project_id,
    coalesce(r.parent_id, '00000000-0000-0000-0000-000000000000')::uuid AS parent_id,
    coalesce(r.id, '00000000-0000-0000-0000-000000000000')::uuid AS id,
    coalesce(d.title, '')::text AS title,
    d.path,
    coalesce(d.doc_type, '')::text AS doc_type,
    d.knowledge_type,
    coalesce(d.tags, y.tags, '{}')::jsonb AS tags,
    coalesce(d.metadata, '{}')::jsonb AS metadata,
    coalesce(d.version, y.version, 0)::int AS version,
    coalesce(d.original_filename, '')::text AS original_filename,
    coalesce(d.size, 0)::bigint AS size,
    coalesce(s.name, '')::text AS store_name,
    coalesce(d.created_at, y.created_at, 'epoch')::timestamptz AS created_at,
    d.updated_at AS document_updated_at,
    y.updated_at AS memory_updated_at,
    coalesce(c.seq, 0)::int AS seq,
    c.page,
    coalesce(c.section, '')::text AS section,
    coalesce(c.content, y.content, '')::text AS content,
    coalesce(r.score, 0)::float8 AS score,
    coalesce(r.lexical_score, 0)::float8 AS lexical_score,
    coalesce(r.lexical_rank, 0)::bigint AS lexical_rank,
    coalesce(r.semantic_score, 0)::float8 AS semantic_score,
    coalesce(r.semantic_rank, 0)::bigint AS semantic_rank,
    coalesce(r.lexical_rrf, 0)::float8 AS lexical_rrf,
    coalesce(r.semantic_rrf, 0)::float8 AS semantic_rrf,
    coalesce(r.bonus, 0)::float8 AS bonus,
    coalesce(r.decay, 1)::float8 AS decay,
    coalesce(r.cosine, 0)::float8 AS cosine,
    coalesce(r.bm25, 0)::float8 AS bm25,
    coalesce(1 - (v.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)), 0)::float8 AS similarity,
    (v.embedding IS NOT NULL AND sqlc.narg(query_vector) IS NOT NULL)::boolean AS has_similarity,
    coalesce(w.tsv @@ (SELECT m.all_words FROM matching AS m), false)::boolean AS has_all_words,
    coalesce(w.tsv @@ (SELECT m.any_word FROM matching AS m), false)::boolean AS has_any_word,
    CASE WHEN @highlight::boolean THEN ts_headline((SELECT min(language.config::oid) FROM language)::regconfig, coalesce(c.content, y.content, ''),
        (SELECT m.any_word FROM matching AS m), @highlight_options::text) ELSE '' END::text AS highlight,
    CASE WHEN coalesce(d.tags, '{}') = '{}' THEN '{}' ELSE coalesce((
        SELECT jsonb_object_agg(t.name, t.description)
        FROM jsonb_each_text(d.tags) AS pair
        JOIN tags AS t ON t.project_id = d.project_id AND t.name = tag_name(pair.key, pair.value)
        WHERE t.description IS NOT NULL
    ), '{}') END::jsonb AS tag_contexts
FROM summary AS q
LEFT JOIN result AS r ON true
LEFT JOIN chunks AS c ON NOT r.is_memory AND c.project_id = r.project_id AND c.document_id = r.parent_id AND c.id = r.id
LEFT JOIN documents AS d ON NOT r.is_memory AND d.project_id = r.project_id AND d.id = r.parent_id
LEFT JOIN memories AS y ON r.is_memory AND y.project_id = r.project_id AND y.store_id = r.parent_id AND y.id = r.id
LEFT JOIN memory_stores AS s ON r.is_memory AND s.project_id = r.project_id AND s.id = r.parent_id
LEFT JOIN passage_words AS w ON w.project_id = r.project_id AND w.parent_id = r.parent_id AND w.id = r.id
LEFT JOIN passage_vectors AS v
    ON v.project_id = r.project_id AND v.parent_id = r.parent_id AND v.id = r.id AND v.space_id = @space_id
ORDER BY r.score DESC, r.id;
