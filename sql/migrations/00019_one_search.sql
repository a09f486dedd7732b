-- +goose Up
-- Documents and memories are searched together. A passage is a chunk of a document or a memory of a store: parent_id is the
-- document or the store, id the chunk or the memory.
CREATE VIEW passage_words AS
SELECT project_id, document_id AS parent_id, chunk_id AS id, false AS is_memory, length, tsv FROM chunk_words
UNION ALL
SELECT project_id, store_id, memory_id, true, length, tsv FROM memory_words;

CREATE VIEW passage_vectors AS
SELECT project_id, document_id AS parent_id, chunk_id AS id, space_id, embedding FROM embeddings
UNION ALL
SELECT project_id, store_id, memory_id, space_id, embedding FROM memory_embeddings;

-- recency is the factor of exponential decay: 1 at age 0, 1/2 after each half-life, 0 in the end. A time to come counts as
-- age 0, and a half-life of 0 as no decay.
-- +goose StatementBegin
CREATE FUNCTION recency(age interval, half_life_days float8) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN half_life_days <= 0 OR age <= interval '0' THEN 1
    WHEN extract(epoch FROM age) / 86400 > half_life_days * 1000 THEN 0
    ELSE power(2::float8, -(extract(epoch FROM age)::float8 / 86400) / half_life_days)
END;
-- +goose StatementEnd

-- policy_rules_fit says whether some rule of a list fits a row.
-- +goose StatementBegin
CREATE FUNCTION policy_rules_fit(rules jsonb, id uuid, path text, tags jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN EXISTS (SELECT FROM jsonb_array_elements(nullif(rules, 'null')) AS r (rule) WHERE policy_rule_fits(r.rule, id, path, tags));
-- +goose StatementEnd

-- memory_policy_allows says whether a compiled policy (auth.MemoryFilter) lets a memory be seen: allowed itself or through
-- its store, and denied through neither. A policy of null keeps nothing back.
-- +goose StatementBegin
CREATE FUNCTION memory_policy_allows(policy jsonb, id uuid, tags jsonb, store_id uuid, store_tags jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN policy IS NULL
    OR (policy_rules_fit(policy -> 'memory' -> 'allow', id, NULL, tags) OR policy_rules_fit(policy -> 'store' -> 'allow', store_id, NULL, store_tags))
    AND NOT policy_rules_fit(policy -> 'memory' -> 'deny', id, NULL, tags)
    AND NOT policy_rules_fit(policy -> 'store' -> 'deny', store_id, NULL, store_tags);
-- +goose StatementEnd

-- memory_fits says whether a memory fits a filter (db.MemoryFilter); see document_fits. Tags may be the memory's or its
-- store's.
-- +goose StatementBegin
CREATE FUNCTION memory_fits(m memories, store_tags jsonb, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN (filter ->> 'stores' IS NULL OR m.store_id = ANY ((filter ->> 'stores')::uuid[]))
    AND (filter ->> 'tags' IS NULL OR m.tags @> (filter -> 'tags') OR store_tags @> (filter -> 'tags'))
    AND (filter ->> 'created_after' IS NULL OR m.created_at >= (filter ->> 'created_after')::timestamptz)
    AND (filter ->> 'created_before' IS NULL OR m.created_at < (filter ->> 'created_before')::timestamptz)
    AND (filter ->> 'updated_after' IS NULL OR m.updated_at >= (filter ->> 'updated_after')::timestamptz)
    AND (filter ->> 'updated_before' IS NULL OR m.updated_at < (filter ->> 'updated_before')::timestamptz)
    AND (filter ->> 'policies' IS NULL
        OR memory_policy_allows(filter -> 'policies' -> m.project_id::text, m.id, m.tags, m.store_id, store_tags));
-- +goose StatementEnd

-- document_seen is what policies say in document_fits.
-- +goose StatementBegin
CREATE FUNCTION document_seen(d documents, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
RETURN filter ->> 'policies' IS NULL OR policy_allows(filter -> 'policies' -> d.project_id::text, d.id, d.path, d.tags);
-- +goose StatementEnd

-- document_misfit names the first condition of a filter that keeps a document out, but for policies: who may not see a
-- document is not told about it. Null means that it fits. Only searches that ask for an explanation call it; in plpgsql the
-- planner of the others is not bothered with its body.
-- +goose StatementBegin
CREATE FUNCTION document_misfit(d documents, filter jsonb) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
    RETURN CASE
        WHEN NOT document_fits(d, jsonb_build_object('doc_type', filter -> 'doc_type')) THEN 'doc_type'
        WHEN NOT document_fits(d, jsonb_build_object('ids', filter -> 'ids')) THEN 'document_ids'
        WHEN NOT coalesce(document_fits(d, jsonb_build_object('paths', filter -> 'paths')), false) THEN 'document_paths'
        WHEN NOT document_fits(d, jsonb_build_object('tags', filter -> 'tags')) THEN 'tags'
        WHEN NOT document_fits(d, jsonb_build_object('metadata', filter -> 'metadata', 'tests', filter -> 'tests')) THEN 'metadata'
        WHEN NOT document_fits(d, jsonb_build_object('created_after', filter -> 'created_after', 'created_before', filter -> 'created_before'))
            THEN 'created'
        WHEN NOT document_fits(d, jsonb_build_object('updated_after', filter -> 'updated_after', 'updated_before', filter -> 'updated_before'))
            THEN 'updated'
    END;
END;
$$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION document_misfit(documents, jsonb);
DROP FUNCTION document_seen(documents, jsonb);
DROP FUNCTION memory_fits(memories, jsonb, jsonb);
DROP FUNCTION memory_policy_allows(jsonb, uuid, jsonb, uuid, jsonb);
DROP FUNCTION policy_rules_fit(jsonb, uuid, text, jsonb);
DROP FUNCTION recency(interval, float8);
DROP VIEW passage_vectors;
DROP VIEW passage_words;
