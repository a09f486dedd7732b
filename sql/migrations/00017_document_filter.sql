-- +goose Up
-- What narrows documents, in lists and in searches, is one jsonb object, db.DocumentFilter. A member that is absent or null
-- is no condition.

-- json_order compares two scalars: below 0, 0 or above 0 as the first one comes before, with or after the second. Numbers
-- go by their value, strings by their code points. Whatever else, or a number beside a string, has no order: null.
-- +goose StatementBegin
CREATE FUNCTION json_order(a jsonb, b jsonb) RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(a) = 'number' AND jsonb_typeof(b) = 'number'
        THEN CASE WHEN a < b THEN -1 WHEN a > b THEN 1 ELSE 0 END
    WHEN jsonb_typeof(a) = 'string' AND jsonb_typeof(b) = 'string'
        THEN CASE WHEN (a #>> '{}') COLLATE "C" < (b #>> '{}') THEN -1 WHEN (a #>> '{}') COLLATE "C" > (b #>> '{}') THEN 1 ELSE 0 END
END;
-- +goose StatementEnd

-- metadata_passes says whether metadata passes all tests, an object of metadata keys with operators (in, gt, gte, lt, lte)
-- and their operands. A value that is missing, or of another type than the operand, does not pass.
-- +goose StatementBegin
CREATE FUNCTION metadata_passes(tests jsonb, metadata jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN NOT EXISTS (
    SELECT FROM jsonb_each(tests) AS t (key, test)
    CROSS JOIN LATERAL jsonb_each(t.test) AS o (operator, operand)
    WHERE NOT coalesce(CASE o.operator
        -- An array contains the scalars that are its elements, but also each array of some of them.
        WHEN 'in' THEN jsonb_typeof(metadata -> t.key) <> 'array' AND o.operand @> (metadata -> t.key)
        WHEN 'gt' THEN json_order(metadata -> t.key, o.operand) > 0
        WHEN 'gte' THEN json_order(metadata -> t.key, o.operand) >= 0
        WHEN 'lt' THEN json_order(metadata -> t.key, o.operand) < 0
        WHEN 'lte' THEN json_order(metadata -> t.key, o.operand) <= 0
    END, false)
);
-- +goose StatementEnd

-- document_fits says whether a document fits a filter. The planner puts its body in the place of each call, and all
-- conditions that a filter lacks fall away, so that those it has can use the indexes: the body must hold no sub-select.
-- Lists of ids and paths are array literals for the same reason. It is stable since reading a time is.
-- +goose StatementBegin
CREATE FUNCTION document_fits(d documents, filter jsonb) RETURNS boolean
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

-- For the metadata of a filter.
CREATE INDEX documents_metadata ON documents USING gin (project_id, metadata jsonb_path_ops);

-- +goose Down
DROP INDEX documents_metadata;
DROP FUNCTION document_fits(documents, jsonb);
DROP FUNCTION metadata_passes(jsonb, jsonb);
DROP FUNCTION json_order(jsonb, jsonb);
