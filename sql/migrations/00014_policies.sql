-- +goose Up
-- policy_rule_fits says whether a rule of a compiled policy (auth.Rule) fits a row.
-- +goose StatementBegin
CREATE FUNCTION policy_rule_fits(rule jsonb, id uuid, path text, tags jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ((rule -> 'all')::boolean
        OR coalesce(rule -> 'ids' ? id::text, false)
        OR EXISTS (SELECT FROM jsonb_array_elements_text(rule -> 'paths') AS p (pattern) WHERE path LIKE p.pattern))
    AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(rule -> 'tags') AS t (test)
        WHERE NOT CASE t.test ->> 'operator'
            WHEN 'StringEquals' THEN coalesce(t.test -> 'values' ? (tags ->> (t.test ->> 'key')), false)
            WHEN 'StringNotEquals' THEN NOT coalesce(t.test -> 'values' ? (tags ->> (t.test ->> 'key')), false)
            ELSE EXISTS (
                SELECT FROM jsonb_array_elements_text(t.test -> 'values') AS v (pattern)
                WHERE tags ->> (t.test ->> 'key') LIKE v.pattern
            )
        END
    );
-- +goose StatementEnd

-- policy_allows says whether a compiled policy (auth.Filter) lets a row be seen: some rule of allow fits, and none of deny
-- does. A policy of null keeps nothing back.
-- +goose StatementBegin
CREATE FUNCTION policy_allows(filter jsonb, id uuid, path text, tags jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN filter IS NULL
    OR EXISTS (
        SELECT FROM jsonb_array_elements(nullif(filter -> 'allow', 'null')) AS a (rule) WHERE policy_rule_fits(a.rule, id, path, tags)
    )
    AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(nullif(filter -> 'deny', 'null')) AS d (rule) WHERE policy_rule_fits(d.rule, id, path, tags)
    );
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION policy_allows(jsonb, uuid, text, jsonb);
DROP FUNCTION policy_rule_fits(jsonb, uuid, text, jsonb);
