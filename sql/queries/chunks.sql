-- name: ChunkInsertMany :one
-- Inserts chunks of a document, which has chunk_count of them, and appends their statistics: a delta row of their own, so
-- that no two writers meet.
WITH given AS (
    SELECT unnest(@ids::uuid[]) AS id, unnest(@seqs::int[]) AS seq, unnest(@pages::int[]) AS page,
        unnest(@sections::text[]) AS section, unnest(@headings::text[]) AS heading, unnest(@contents::text[]) AS content,
        unnest(@enriched_texts::text[]) AS enriched_text
),
inserted AS (
    INSERT INTO chunks (project_id, document_id, id, seq, page, section, content, enriched_text)
    SELECT @project_id, @document_id, g.id, g.seq, nullif(g.page, 0), g.section, g.content, g.enriched_text FROM given AS g
),
words AS (
    INSERT INTO chunk_words (project_id, document_id, chunk_id, length, tsv)
    SELECT @project_id, @document_id, v.id, passage_length(search_length(v.tsv), @chunk_count::int), v.tsv
    FROM (
        SELECT g.id, search_vector(p.text_config, g.heading, g.content) AS tsv
        FROM given AS g
        JOIN projects AS p ON p.id = @project_id
        OFFSET 0
    ) AS v
    RETURNING tsv, length
),
frequency AS (
    SELECT w.lexeme, count(*) AS df FROM words CROSS JOIN LATERAL unnest(tsvector_to_array(words.tsv)) AS w (lexeme) GROUP BY w.lexeme
)
INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
SELECT @project_id, 'document', count(*), coalesce(sum(words.length), 0),
    coalesce((SELECT array_agg(f.lexeme ORDER BY f.lexeme) FROM frequency AS f), '{}'),
    coalesce((SELECT array_agg(f.df ORDER BY f.lexeme) FROM frequency AS f), '{}')
FROM words
RETURNING n;

-- name: ChunkListByDocument :many
SELECT id, seq, page, section, content, enriched_text
FROM chunks
WHERE project_id = @project_id AND document_id = @document_id
ORDER BY seq;

-- name: ChunkDeleteByDocument :exec
-- Deletes a document's chunks with their vectors, and takes their words out of the statistics.
WITH gone AS (
    SELECT c.tsv, c.length FROM chunk_words AS c WHERE c.project_id = @project_id AND c.document_id = @document_id
),
frequency AS (
    SELECT w.lexeme, count(*) AS df FROM gone CROSS JOIN LATERAL unnest(tsvector_to_array(gone.tsv)) AS w (lexeme) GROUP BY w.lexeme
),
delta AS (
    INSERT INTO lexeme_deltas (project_id, store, n, total_length, lexemes, dfs)
    SELECT @project_id, 'document', -count(*), -coalesce(sum(gone.length), 0),
        coalesce((SELECT array_agg(f.lexeme ORDER BY f.lexeme) FROM frequency AS f), '{}'),
        coalesce((SELECT array_agg(-f.df ORDER BY f.lexeme) FROM frequency AS f), '{}')
    FROM gone
    HAVING count(*) > 0
)
DELETE FROM chunks AS c WHERE c.project_id = @project_id AND c.document_id = @document_id;
