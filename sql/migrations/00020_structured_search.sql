-- +goose Up
-- Structured search: keywords that must all be there, filters on several values of a field, facets, and a title's boost.

-- all_words is the query for every word of a text, in any order; null when the configuration leaves none.
-- +goose StatementBegin
CREATE FUNCTION all_words(config regconfig, input text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT string_agg(word_query(w.lexeme)::text, ' & ')::tsquery
    FROM unnest(tsvector_to_array(to_tsvector(config, input))) AS w (lexeme)
);
-- +goose StatementEnd

-- code_query finds a compound as a whole or by all its parts: E-1234 is E1234, or E and 1234; getUserById is itself, or get
-- and User and Id. Of a code, which has a digit, all parts count or none: a T-100 is not found by 100 alone, although T is a
-- word that English drops. Signs that are part of a name stay: C++ is not C.
-- +goose StatementBegin
CREATE FUNCTION code_query(config regconfig, token text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN coalesce((
    SELECT string_agg('(' || all_words(config, f.form)::text || ')', ' | ')::tsquery
    FROM (VALUES
        -- As analyze_text leaves it, joined, and its parts; see word_forms.
        (regexp_replace(replace(token, '_', ' '), '(?<=[[:alnum:]])-(?=[0-9])', ' ', 'g')),
        (CASE WHEN token ~ '_|::|-[[:alpha:]]*[0-9]' AND token !~ '[./@\\]' THEN regexp_replace(token, '[-_:]+', '', 'g') ELSE '' END),
        (CASE WHEN token ~ '^[0-9]+[.][0-9]+$' THEN '' ELSE regexp_replace(regexp_replace(regexp_replace(token,
            '[-._:/@\\]+', ' ', 'g'), '([a-z0-9])([A-Z])', '\1 \2', 'g'), '([A-Z])([A-Z][a-z])', '\1 \2', 'g') END)
    ) AS f (form)
    WHERE token !~ '[+#&]' AND (token !~ '[0-9]' OR NOT EXISTS (
        SELECT FROM regexp_split_to_table(trim(f.form), '\s+') AS w (word) WHERE length(to_tsvector(config, w.word)) = 0
    ))
), all_words(config, analyze_text(token)));
-- +goose StatementEnd

-- keyword_parts gives what a text must meet to hold a keyword, each word with its query: compounds as code_query has them, and
-- the pairs of each run of Chinese, Japanese or Korean characters in their order. Words that the configuration drops are not
-- among them.
-- +goose StatementBegin
CREATE FUNCTION keyword_parts(config regconfig, keyword text) RETURNS TABLE (token text, match tsquery)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT q.token, q.match
    FROM (
        SELECT t.token, CASE
            WHEN is_cjk(t.token) AND length(t.token) = 1 THEN word_query(t.token)
            WHEN is_cjk(t.token) THEN phraseto_tsquery(config, pair_cjk(t.token))
            WHEN t.token ~ '[^[:alnum:]]|[a-z0-9][A-Z]|[A-Z][A-Z][a-z]' THEN code_query(config, t.token)
            ELSE all_words(config, t.token)
        END AS match
        FROM regexp_split_to_table(regexp_replace(fold_text(keyword),
            '([\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]+)', ' \1 ', 'g'),
            '\s+') AS t (token)
    ) AS q
    WHERE numnode(q.match) > 0;
END;
-- +goose StatementEnd

-- boosted_frequency is how often a word counts in a chunk whose title counts title_boost times as much as its text, before
-- BM25 lets repetitions saturate: BM25F (Robertson, Zaragoza and Taylor 2004) with one length for both. A boost of 1 is BM25.
-- 0.108 is what term_frequency reads of a word that is not there. It is not strict, or the planner would not inline it.
-- +goose StatementBegin
CREATE FUNCTION boosted_frequency(tsv tsvector, word tsquery, title_boost float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN title_boost = 1 THEN term_frequency(ts_rank('{1,1,1,1}', tsv, word))
    ELSE term_frequency(ts_rank('{1,1,1,1}', tsv, word)) + (title_boost - 1) * greatest(term_frequency(ts_rank('{0,0,0,1}', tsv, word)) - 0.108::float8, 0)
END;
-- +goose StatementEnd

-- document_facets counts the values of each key over some documents of a project: {"facets": {key: [{value, count}]},
-- "truncated": {key: n}}. A key is knowledge_type, doc_type or one of metadata, whose lists count once for each of their
-- values; objects are not counted. The largest buckets come first, then by the bytes of the value; truncated counts what stands
-- in the buckets that were cut.
-- +goose StatementBegin
CREATE FUNCTION document_facets(project uuid, documents uuid[], keys text[], buckets integer) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    WITH bucket AS MATERIALIZED (
        SELECT e.key, e.value, count(*) AS n, row_number() OVER (PARTITION BY e.key ORDER BY count(*) DESC, e.value) AS place
        FROM (
            SELECT h.key, v.value COLLATE "C" AS value
            FROM documents AS d
            CROSS JOIN (SELECT DISTINCT unnest(keys) AS key) AS k
            CROSS JOIN LATERAL (SELECT k.key, CASE k.key
                WHEN 'knowledge_type' THEN to_jsonb(d.knowledge_type)
                WHEN 'doc_type' THEN to_jsonb(d.doc_type)
                ELSE d.metadata -> k.key
            END AS value OFFSET 0) AS h
            CROSS JOIN LATERAL jsonb_array_elements_text(CASE
                WHEN jsonb_typeof(h.value) IN ('string', 'number', 'boolean') THEN jsonb_build_array(h.value)
                WHEN jsonb_typeof(h.value) <> 'array' THEN '[]'
                -- A value that stands twice in a list counts once; most lists are too short to look closely.
                WHEN jsonb_array_length(h.value) < 2 OR jsonb_array_length(h.value) = 2 AND h.value -> 0 <> h.value -> 1 THEN h.value
                ELSE (SELECT jsonb_agg(DISTINCT x) FROM jsonb_array_elements(h.value) AS x)
            END) AS v (value)
            WHERE d.project_id = project AND d.id = ANY (documents) AND v.value IS NOT NULL
        ) AS e
        GROUP BY e.key, e.value
    )
    SELECT jsonb_build_object(
        'facets', jsonb_object_agg(k.key, coalesce((
            SELECT jsonb_agg(jsonb_build_object('value', b.value, 'count', b.n) ORDER BY b.place) FROM bucket AS b WHERE b.key = k.key AND b.place <= buckets
        ), '[]')),
        'truncated', jsonb_object_agg(k.key, coalesce((SELECT sum(b.n) FROM bucket AS b WHERE b.key = k.key AND b.place > buckets), 0))
    )
    FROM (SELECT DISTINCT unnest(keys) AS key) AS k
);
-- +goose StatementEnd

-- document_fits gets two conditions: a list of knowledge types, and fields, a path expression over metadata, which the
-- index of metadata answers; see db.FieldFilter.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION document_fits(d documents, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN (filter ->> 'tags' IS NULL OR d.tags @> (filter -> 'tags'))
    AND (filter ->> 'doc_type' IS NULL OR d.doc_type = filter ->> 'doc_type')
    AND (filter ->> 'knowledge_types' IS NULL OR d.knowledge_type = ANY ((filter ->> 'knowledge_types')::text[]))
    AND (filter ->> 'ids' IS NULL OR d.id = ANY ((filter ->> 'ids')::uuid[]))
    AND (filter ->> 'paths' IS NULL OR d.path ^@ ANY ((filter ->> 'paths')::text[]))
    AND (filter ->> 'metadata' IS NULL OR d.metadata @> (filter -> 'metadata'))
    AND (filter ->> 'fields' IS NULL OR d.metadata @@ (filter ->> 'fields')::jsonpath)
    AND (filter ->> 'tests' IS NULL OR metadata_passes(filter -> 'tests', d.metadata))
    AND (filter ->> 'created_after' IS NULL OR d.created_at >= (filter ->> 'created_after')::timestamptz)
    AND (filter ->> 'created_before' IS NULL OR d.created_at < (filter ->> 'created_before')::timestamptz)
    AND (filter ->> 'updated_after' IS NULL OR coalesce(d.updated_at, d.created_at) >= (filter ->> 'updated_after')::timestamptz)
    AND (filter ->> 'updated_before' IS NULL OR coalesce(d.updated_at, d.created_at) < (filter ->> 'updated_before')::timestamptz)
    AND (filter ->> 'policies' IS NULL OR policy_allows(filter -> 'policies' -> d.project_id::text, d.id, d.path, d.tags));
-- +goose StatementEnd

-- What administrators, or kb tune, have set for the searches of a project; what is missing is the server's.
ALTER TABLE projects ADD COLUMN search_settings jsonb NOT NULL DEFAULT '{}';

-- Each search that was answered: what it asked, as far as the server keeps it, and what it gave.
CREATE TABLE searches (
    project_id uuid NOT NULL REFERENCES projects (id),
    id         uuid NOT NULL,
    -- principal is who searched; empty where nobody says.
    principal  text NOT NULL,
    -- structured tells searches by keywords from those by a query.
    structured boolean NOT NULL,
    -- request is the body, without its texts unless the server is told to keep them.
    request    jsonb NOT NULL,
    status     text NOT NULL,
    -- documents and chunks are those of the answer, in its order.
    documents  uuid[] NOT NULL,
    chunks     uuid[] NOT NULL,
    total      bigint NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (project_id, id)
);

-- For the purge, which goes by time over all projects.
CREATE INDEX searches_created ON searches (created_at);

CREATE TABLE search_feedback (
    project_id  uuid NOT NULL,
    search_id   uuid NOT NULL,
    document_id uuid NOT NULL,
    principal   text NOT NULL,
    rating      text NOT NULL CHECK (rating IN ('up', 'down')),
    comment     text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (project_id, search_id, document_id, principal),
    FOREIGN KEY (project_id, search_id) REFERENCES searches (project_id, id) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE search_feedback;
DROP TABLE searches;
ALTER TABLE projects DROP COLUMN search_settings;
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION document_fits(d documents, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN (filter ->> 'tags' IS NULL OR d.tags @> (filter -> 'tags'))
    AND (filter ->> 'doc_type' IS NULL OR d.doc_type = filter ->> 'doc_type')
    AND (filter ->> 'ids' IS NULL OR d.id = ANY ((filter ->> 'ids')::uuid[]))
    AND (filter ->> 'paths' IS NULL OR d.path ^@ ANY ((filter ->> 'paths')::text[]))
    AND (filter ->> 'metadata' IS NULL OR d.metadata @> (filter -> 'metadata'))
    AND (filter ->> 'tests' IS NULL OR metadata_passes(filter -> 'tests', d.metadata))
    AND (filter ->> 'created_after' IS NULL OR d.created_at >= (filter ->> 'created_after')::timestamptz)
    AND (filter ->> 'created_before' IS NULL OR d.created_at < (filter ->> 'created_before')::timestamptz)
    AND (filter ->> 'updated_after' IS NULL OR coalesce(d.updated_at, d.created_at) >= (filter ->> 'updated_after')::timestamptz)
    AND (filter ->> 'updated_before' IS NULL OR coalesce(d.updated_at, d.created_at) < (filter ->> 'updated_before')::timestamptz)
    AND (filter ->> 'policies' IS NULL OR policy_allows(filter -> 'policies' -> d.project_id::text, d.id, d.path, d.tags));
-- +goose StatementEnd
DROP FUNCTION document_facets(uuid, uuid[], text[], integer);
DROP FUNCTION boosted_frequency(tsvector, tsquery, float8);
DROP FUNCTION keyword_parts(regconfig, text);
DROP FUNCTION code_query(regconfig, text);
DROP FUNCTION all_words(regconfig, text);
