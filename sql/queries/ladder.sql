-- name: SearchLadder :many
-- Structured search over the documents of a project in one statement: strict, then loose if strict finds nothing, then
-- vector_only if neither does. A stage that is not needed is not executed: each stands behind a condition on the stages before
-- it, which holds for all of its rows or for none. It reads downwards:
--
--  1. unit, word: what the keywords ask for, word by word, and their words, rarest first, with their weights.
--  2. browsed: without keywords, everything in scope.
--  3. strict: the documents that hold every keyword, wherever in them. It starts from the rarest keyword.
--  4. loose: the documents that hold any word of any keyword.
--  5. nearest, walked, near: the nearest chunks, by an exact scan of a small scope, else by HNSW.
--  6. answered: how far the search went, and how many documents that stage has found.
--  7. recalled: for loose, the chunks that the budget of rows reaches, rarest words first, as in the hybrid search.
--  8. passage, best: the chunks of the documents that were found with their BM25, and the best one of each document.
--  9. scored: of the best rrf_window documents, BM25 and cosine similarity; of the others, BM25 alone.
-- 10. rest, result: one page of them. summary: one row, whatever was found, with the facets of all documents that were found.
--
-- A row is a document with its best chunk. The first row is there even when nothing is found, without a document. Ties end
-- on the id of the document. sqlc writes halfvec(384); db.WithDimensions puts in the size of the space in use.
WITH language AS MATERIALIZED (
    SELECT p.text_config::regconfig AS config FROM projects AS p WHERE p.id = @project_id
),
corpus AS MATERIALIZED (
    SELECT
        coalesce(sum(s.n), 1)::float8 AS n,
        -- Never 0, also while deltas wait to be folded: bm25 divides by it.
        greatest(coalesce(sum(s.total_length) FILTER (WHERE s.store = 'document')
            / nullif(sum(s.n) FILTER (WHERE s.store = 'document'), 0), 100), 1)::float8 AS length
    FROM corpus_stats AS s
    WHERE s.project_id = @project_id
),
unit AS MATERIALIZED (
    SELECT k.match, row_number() OVER (ORDER BY k.df, k.token) AS turn
    FROM (
        SELECT DISTINCT p.token, p.match, CASE
            -- A lone character stands for many words.
            WHEN length(p.token) = 1 AND is_cjk(p.token) THEN 1000000
            ELSE (
                SELECT min(coalesce(l.df, 0))
                FROM unnest(tsvector_to_array(to_tsvector(language.config, analyze_text(p.token)))) AS w (lexeme)
                LEFT JOIN lexeme_stats AS l ON l.project_id = @project_id AND l.lexeme = w.lexeme
            )
        END AS df
        FROM unnest(@keywords::text[]) AS u (keyword)
        CROSS JOIN language
        CROSS JOIN LATERAL keyword_parts(language.config, u.keyword) AS p (token, match)
    ) AS k
),
lexeme AS MATERIALIZED (
    SELECT DISTINCT unnest(tsvector_to_array(to_tsvector(language.config, analyze_text(array_to_string(@keywords::text[], ' '))))) AS lexeme
    FROM language
),
matching AS MATERIALIZED (
    SELECT string_agg(word_query(x.lexeme)::text, ' | ')::tsquery AS any_word FROM lexeme AS x
),
query_word AS MATERIALIZED (
    SELECT x.lexeme, coalesce(l.df, 0) AS df
    FROM lexeme AS x
    LEFT JOIN lexeme_stats AS l ON l.project_id = @project_id AND l.lexeme = x.lexeme
    ORDER BY l.df IS NULL, coalesce(l.df, 0), x.lexeme
    LIMIT @max_words::int
),
word AS MATERIALIZED (
    SELECT
        word_query(q.lexeme) AS match,
        inverse_document_frequency(corpus.n, greatest(q.df, 1)::float8) AS idf,
        -- See the hybrid search.
        (sum(q.df) OVER rarest <= @row_budget::int OR sum(least(q.df, 1)) OVER rarest <= 1) AS affordable
    FROM query_word AS q
    CROSS JOIN corpus
    WINDOW rarest AS (ORDER BY q.df, q.lexeme)
),
browsed AS MATERIALIZED (
    SELECT d.id
    FROM documents AS d
    WHERE cardinality(@keywords::text[]) = 0
        AND (@try_strict::boolean OR @try_loose::boolean)
        AND d.project_id = @project_id
        AND document_fits(d, @document_filter::jsonb)
),
strict AS MATERIALIZED (
    SELECT h.document_id
    FROM (
        SELECT DISTINCT c.document_id
        FROM chunk_words AS c
        WHERE @try_strict::boolean
            AND cardinality(@keywords::text[]) > 0
            AND c.project_id = @project_id
            AND c.tsv @@ (SELECT u.match FROM unit AS u WHERE u.turn = 1)
            AND (NOT @documents_filtered::boolean OR EXISTS (
                SELECT FROM documents AS d
                WHERE d.project_id = @project_id AND d.id = c.document_id AND document_fits(d, @document_filter::jsonb)
            ))
    ) AS h
    WHERE NOT EXISTS (
        SELECT FROM unit AS u
        WHERE u.turn > 1 AND NOT EXISTS (
            SELECT FROM chunk_words AS o WHERE o.project_id = @project_id AND o.document_id = h.document_id AND o.tsv @@ u.match
        )
    )
    UNION ALL
    SELECT b.id FROM browsed AS b WHERE @try_strict::boolean
),
loose AS MATERIALIZED (
    SELECT DISTINCT c.document_id
    FROM chunk_words AS c
    WHERE @try_loose::boolean
        AND cardinality(@keywords::text[]) > 0
        AND NOT EXISTS (SELECT FROM strict)
        AND c.project_id = @project_id
        AND c.tsv @@ (SELECT m.any_word FROM matching AS m)
        AND (NOT @documents_filtered::boolean OR EXISTS (
            SELECT FROM documents AS d
            WHERE d.project_id = @project_id AND d.id = c.document_id AND document_fits(d, @document_filter::jsonb)
        ))
    UNION ALL
    SELECT b.id FROM browsed AS b WHERE NOT @try_strict::boolean
),
unmatched AS MATERIALIZED (
    SELECT @use_vector::boolean AND NOT EXISTS (SELECT FROM strict) AND NOT EXISTS (SELECT FROM loose) AS go_on
),
scope AS MATERIALIZED (
    -- Whether the chunks in scope are few enough to be compared one by one; see the hybrid search.
    SELECT s.chunks <= @exact_rows::int OR s.chunks * s.chunks < 20 * (@depth::int)::float8 * s.all_chunks AS exact
    FROM (
        SELECT
            CASE WHEN NOT @documents_filtered::boolean THEN coalesce((
                SELECT sum(c.n) FROM corpus_stats AS c WHERE c.project_id = @project_id AND c.store = 'document'
            ), 0) ELSE (
                SELECT coalesce(sum(d.chunk_count), 0)
                FROM documents AS d
                WHERE d.project_id = @project_id AND document_fits(d, @document_filter::jsonb)
            ) END::float8 AS chunks,
            (SELECT coalesce(sum(c.n), 0) FROM corpus_stats AS c WHERE c.store = 'document')::float8 AS all_chunks
        WHERE (SELECT u.go_on FROM unmatched AS u)
    ) AS s
),
nearest AS MATERIALIZED (
    -- Each document by its nearest chunk: a long one must not take the places of others.
    SELECT n.document_id, n.chunk_id, n.distance, n.passages
    FROM (
        SELECT DISTINCT ON (x.document_id) x.document_id, x.chunk_id, x.distance,
            count(*) FILTER (WHERE x.place <= @depth::int) OVER (PARTITION BY x.document_id) AS passages
        FROM (
            SELECT c.*, row_number() OVER (ORDER BY c.distance, c.chunk_id) AS place
            FROM (
                SELECT e.document_id, e.chunk_id, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
                FROM embeddings AS e
                WHERE NOT @documents_filtered::boolean
                    AND (SELECT scope.exact FROM scope)
                    AND e.project_id = @project_id
                    AND e.space_id = @space_id
                UNION ALL
                SELECT e.document_id, e.chunk_id, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8
                FROM documents AS d
                JOIN embeddings AS e ON e.project_id = d.project_id AND e.document_id = d.id AND e.space_id = @space_id
                WHERE @documents_filtered::boolean
                    AND (SELECT scope.exact FROM scope)
                    AND d.project_id = @project_id
                    AND document_fits(d, @document_filter::jsonb)
            ) AS c
        ) AS x
        ORDER BY x.document_id, x.distance, x.chunk_id
    ) AS n
    ORDER BY n.distance, n.document_id
    LIMIT @depth::int
),
walked AS MATERIALIZED (
    SELECT e.document_id, e.chunk_id, (e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384))::float8 AS distance
    FROM embeddings AS e
    WHERE (SELECT NOT scope.exact FROM scope)
        AND e.project_id = @project_id
        AND e.space_id = @space_id
        AND (NOT @documents_filtered::boolean OR EXISTS (
            SELECT FROM documents AS d
            WHERE d.project_id = @project_id AND d.id = e.document_id AND document_fits(d, @document_filter::jsonb)
        ))
    ORDER BY e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)
    LIMIT @depth::int
),
near AS MATERIALIZED (
    SELECT * FROM nearest
    UNION ALL
    (
        SELECT DISTINCT ON (w.document_id) w.document_id, w.chunk_id, w.distance, count(*) OVER (PARTITION BY w.document_id)
        FROM walked AS w
        ORDER BY w.document_id, w.distance, w.chunk_id
    )
),
answered AS MATERIALIZED (
    SELECT
        CASE
            WHEN s.strict > @strict_max_hits::int AND @try_strict::boolean THEN 'too_many'
            WHEN s.strict > 0 THEN 'strict_hit'
            WHEN s.loose > 0 THEN 'loose_hit'
            WHEN s.near > 0 THEN 'vector_only'
            ELSE 'no_hit'
        END AS status,
        s.strict + s.loose + s.near AS documents
    FROM (
        SELECT (SELECT count(*) FROM strict) AS strict, (SELECT count(*) FROM loose) AS loose,
            (SELECT count(*) FROM near) AS near
    ) AS s
),
found AS MATERIALIZED (
    SELECT s.document_id AS id FROM strict AS s
    UNION ALL
    SELECT l.document_id FROM loose AS l
    UNION ALL
    SELECT n.document_id FROM near AS n
),
recalled AS MATERIALIZED (
    SELECT r.document_id, r.chunk_id, r.bm25, row_number() OVER (ORDER BY r.bm25 DESC, r.chunk_id) AS place
    FROM (
        SELECT h.document_id, h.chunk_id, sum(bm25(word.idf, h.frequency, h.length, (SELECT corpus.length FROM corpus), @k1::float8, @b::float8)) AS bm25
        FROM word
        CROSS JOIN LATERAL (
            SELECT c.document_id, c.chunk_id, c.length, boosted_frequency(c.tsv, word.match, @title_boost::float8) AS frequency
            FROM chunk_words AS c
            WHERE (SELECT a.status FROM answered AS a) = 'loose_hit'
                AND c.project_id = @project_id
                AND c.tsv @@ word.match
                AND (NOT @documents_filtered::boolean OR EXISTS (
                    SELECT FROM documents AS d
                    WHERE d.project_id = @project_id AND d.id = c.document_id AND document_fits(d, @document_filter::jsonb)
                ))
            LIMIT @row_budget::int
        ) AS h
        WHERE word.affordable AND h.frequency > 0.2
        GROUP BY h.document_id, h.chunk_id
    ) AS r
),
passage AS MATERIALIZED (
    SELECT c.document_id, c.chunk_id, NULL::float8 AS distance, 1::bigint AS passages, (c.bm25 + coalesce((
        SELECT sum(bm25(word.idf, t.frequency, w.length, corpus.length, @k1::float8, @b::float8))
        FROM word
        CROSS JOIN LATERAL (SELECT boosted_frequency(w.tsv, word.match, @title_boost::float8) AS frequency OFFSET 0) AS t
        WHERE t.frequency > 0.2 AND NOT (c.partly AND word.affordable)
    ), 0))::float8 AS bm25
    FROM (
        -- partly says that the affordable words are in bm25 already.
        SELECT r.document_id, r.chunk_id, r.bm25, true AS partly FROM recalled AS r WHERE r.place <= @rescore_depth::int
        UNION ALL
        SELECT x.document_id, x.chunk_id, 0, false
        FROM strict AS s
        JOIN chunk_words AS x ON x.project_id = @project_id AND x.document_id = s.document_id
        WHERE (SELECT a.status FROM answered AS a) = 'strict_hit' AND cardinality(@keywords::text[]) > 0
    ) AS c
    JOIN chunk_words AS w ON w.project_id = @project_id AND w.document_id = c.document_id AND w.chunk_id = c.chunk_id
    CROSS JOIN corpus
    UNION ALL
    SELECT r.document_id, r.chunk_id, NULL, 1, r.bm25 FROM recalled AS r WHERE r.place > @rescore_depth::int
    UNION ALL
    SELECT n.document_id, n.chunk_id, n.distance, n.passages, 0 FROM near AS n
    UNION ALL
    (
        -- Of what is only browsed, the first chunk, as far as the page reaches.
        SELECT b.id, c.id, NULL, 0, 0
        FROM browsed AS b
        JOIN chunks AS c ON c.project_id = @project_id AND c.document_id = b.id AND c.seq = 0
        WHERE (SELECT a.status FROM answered AS a) IN ('strict_hit', 'loose_hit')
        ORDER BY b.id
        LIMIT greatest(sqlc.arg(skip)::int + sqlc.arg(max_results)::int, @rrf_window::int)
    )
),
best AS MATERIALIZED (
    SELECT b.*, row_number() OVER (ORDER BY b.distance, b.bm25 DESC, b.document_id) AS place
    FROM (
        SELECT DISTINCT ON (p.document_id) p.document_id, p.chunk_id, p.bm25, p.distance,
            sum(p.passages) FILTER (WHERE p.bm25 > 0 OR p.distance IS NOT NULL) OVER (PARTITION BY p.document_id) AS passages
        FROM passage AS p
        ORDER BY p.document_id, p.distance, p.bm25 DESC, p.chunk_id
    ) AS b
),
scored AS MATERIALIZED (
    SELECT b.document_id, b.chunk_id, b.passages, b.place, b.bm25, b.cosine,
        CASE
            WHEN b.distance IS NOT NULL THEN b.cosine + 1
            WHEN sqlc.narg(query_vector)::halfvec(384) IS NULL THEN b.bm25
            ELSE (1 - sqlc.arg(vector_weight)::float8) * b.bm25 + sqlc.arg(vector_weight)::float8 * coalesce(b.cosine + 1, 0)
        END AS score
    FROM (
        SELECT b.*, (1 - CASE
            WHEN b.distance IS NOT NULL THEN b.distance
            WHEN b.place <= @rrf_window::int THEN (
                SELECT e.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)
                FROM embeddings AS e
                WHERE e.project_id = @project_id AND e.document_id = b.document_id AND e.chunk_id = b.chunk_id AND e.space_id = @space_id
            )
        END)::float8 AS cosine
        FROM best AS b
    ) AS b
),
rest AS MATERIALIZED (
    -- What only words beyond the budget find is not ranked: it comes last, as far as the page reaches.
    SELECT t.document_id, t.ordinal
    FROM (
        SELECT l.document_id, (SELECT count(*) FROM best) + row_number() OVER (ORDER BY l.document_id) AS ordinal
        FROM loose AS l
        WHERE (SELECT count(*) FROM best) < sqlc.arg(skip)::int + sqlc.arg(max_results)::int
            AND cardinality(@keywords::text[]) > 0
            AND NOT EXISTS (SELECT FROM best AS b WHERE b.document_id = l.document_id)
    ) AS t
    WHERE t.ordinal > sqlc.arg(skip)::int
    ORDER BY t.ordinal
    LIMIT sqlc.arg(max_results)::int
),
result AS (
    SELECT r.*
    FROM (
        SELECT s.*, row_number() OVER (ORDER BY s.score DESC, s.place) AS ordinal FROM scored AS s
        UNION ALL
        SELECT t.document_id, h.chunk_id, h.passages, 0, 0, NULL, 0, t.ordinal
        FROM rest AS t
        CROSS JOIN LATERAL (
            SELECT w.chunk_id, count(*) OVER () AS passages
            FROM chunk_words AS w
            WHERE w.project_id = @project_id AND w.document_id = t.document_id AND w.tsv @@ (SELECT m.any_word FROM matching AS m)
            ORDER BY w.chunk_id
            LIMIT 1
        ) AS h
    ) AS r
    WHERE r.ordinal > sqlc.arg(skip)::int AND r.ordinal <= sqlc.arg(skip)::int + sqlc.arg(max_results)::int
),
summary AS MATERIALIZED (
    SELECT a.status, a.documents, CASE WHEN a.status = 'too_many' OR cardinality(@facets::text[]) > 0 THEN document_facets(
        @project_id, ARRAY(SELECT f.id FROM found AS f),
        CASE WHEN a.status = 'too_many' THEN ARRAY['project', 'equipment', 'error_codes'] ELSE '{}' END || @facets::text[], @facet_buckets::int
    ) END AS facets
    FROM answered AS a
)
SELECT
    q.status::text AS status,
    q.documents::bigint AS total_matches,
    coalesce(q.facets, '{}')::jsonb AS facets,
    (r.document_id IS NOT NULL)::boolean AS found,
    coalesce(r.document_id, '00000000-0000-0000-0000-000000000000')::uuid AS document_id,
    coalesce(r.chunk_id, '00000000-0000-0000-0000-000000000000')::uuid AS chunk_id,
    coalesce(r.passages, 0)::bigint AS passages,
    coalesce(r.place, 0)::bigint AS place,
    coalesce(r.score, 0)::float8 AS score,
    coalesce(r.bm25, 0)::float8 AS bm25,
    r.cosine,
    coalesce(d.title, '')::text AS title,
    d.path,
    coalesce(d.doc_type, '')::text AS doc_type,
    d.knowledge_type,
    coalesce(d.tags, '{}')::jsonb AS tags,
    coalesce(d.metadata, '{}')::jsonb AS metadata,
    coalesce(d.version, 0)::int AS version,
    coalesce(d.original_filename, '')::text AS original_filename,
    coalesce(d.created_at, 'epoch')::timestamptz AS created_at,
    d.updated_at,
    coalesce(c.seq, 0)::int AS seq,
    c.page,
    coalesce(c.section, '')::text AS section,
    coalesce(c.content, '')::text AS content,
    coalesce(1 - (v.embedding::halfvec(384) <=> sqlc.narg(query_vector)::halfvec(384)), 0)::float8 AS similarity,
    (v.embedding IS NOT NULL AND sqlc.narg(query_vector) IS NOT NULL)::boolean AS has_similarity,
    CASE WHEN coalesce(d.tags, '{}') = '{}' THEN '{}' ELSE coalesce((
        SELECT jsonb_object_agg(t.name, t.description)
        FROM jsonb_each_text(d.tags) AS pair
        JOIN tags AS t ON t.project_id = @project_id AND t.name = tag_name(pair.key, pair.value)
        WHERE t.description IS NOT NULL
    ), '{}') END::jsonb AS tag_contexts
FROM summary AS q
LEFT JOIN result AS r ON true
LEFT JOIN documents AS d ON d.project_id = @project_id AND d.id = r.document_id
LEFT JOIN chunks AS c ON c.project_id = @project_id AND c.document_id = r.document_id AND c.id = r.chunk_id
LEFT JOIN embeddings AS v
    ON v.project_id = @project_id AND v.document_id = r.document_id AND v.chunk_id = r.chunk_id AND v.space_id = @space_id
ORDER BY r.ordinal;
