-- +goose Up
-- Text analysis: what text and query alike are turned into before to_tsvector sees them. Stock PostgreSQL keeps a run of
-- Chinese as one word, a path as one word, and reads the 1234 of E-1234 as a negative number; see docs/search.md.

-- fold_text folds compatibility characters (ligatures, full-width letters), accents, soft hyphens and zero-width
-- characters away. ASCII passes through untouched.
-- +goose StatementBegin
CREATE FUNCTION fold_text(input text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN input ~ '[^\x01-\x7f]' THEN
        normalize(regexp_replace(normalize(input, NFKD),
            '[\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufeff]', '', 'g'), NFC)
    ELSE input
END;
-- +goose StatementEnd

-- is_cjk says whether a text holds a Chinese, Japanese or Korean character. The same class stands four times in
-- pair_cjk: PostgreSQL has no named character class for it.
-- +goose StatementBegin
CREATE FUNCTION is_cjk(input text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN input ~ '[\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]';
-- +goose StatementEnd

-- pair_cjk turns each run of Chinese, Japanese or Korean characters into its overlapping pairs: ABCD becomes AB BC CD,
-- a character on its own stays. Doubling each inner character with a space between makes the pairs.
-- +goose StatementBegin
CREATE FUNCTION pair_cjk(input text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN is_cjk(input) THEN
        regexp_replace(regexp_replace(input,
            '([\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]+)',
            ' \1 ', 'g'),
            '(?<=[\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af])([\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af])(?=[\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af])',
            '\1 \1', 'g')
    ELSE input
END;
-- +goose StatementEnd

-- word_forms returns the further spellings under which the compounds of a text can be found:
--   paths, hosts, addresses, file names  a.b/c@d     -> a b c d
--   camelCase                            getUser     -> get User
--   identifiers and codes, joined        snake_case  -> snakecase, E-1234 -> E1234
--   names that the parser would empty    C++, C#, AT&T -> Cplusplus, Csharp, ATandT
-- A compound of over 120 characters has no second form besides its parts.
-- +goose StatementBegin
CREATE FUNCTION word_forms(input text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT string_agg(
        CASE
            WHEN m[1] ~ '[./@]' AND m[1] !~ '^[0-9]+[.][0-9]+$' THEN regexp_replace(m[1], '[./:@\\_]+', ' ', 'g')
            ELSE ''
        END
        || ' ' ||
        CASE
            WHEN length(m[1]) > 120 THEN ''
            WHEN m[1] ~ '[a-z][A-Z]|[A-Z][A-Z][a-z]|[0-9][A-Z][a-z]' THEN
                regexp_replace(regexp_replace(m[1], '([a-z0-9])([A-Z])', '\1 \2', 'g'), '([A-Z])([A-Z][a-z])', '\1 \2', 'g')
            ELSE ''
        END
        || ' ' ||
        CASE
            WHEN length(m[1]) > 120 THEN ''
            WHEN m[1] ~ '[+]' THEN replace(m[1], '+', 'plus')
            WHEN m[1] ~ '#' THEN replace(m[1], '#', 'sharp')
            WHEN m[1] ~ '&' THEN replace(m[1], '&', 'and')
            WHEN m[1] ~ '_|::|-[[:alpha:]]*[0-9]' AND m[1] !~ '[./@\\]' THEN regexp_replace(m[1], '[-_:]+', '', 'g')
            ELSE ''
        END, ' ')
    FROM regexp_matches(input,
        '([[:alnum:]]+(?:[-._/:@\\]+[[:alnum:]]+)+|[[:alpha:]]+(?:[+][+]|#|&[[:alpha:]]+)|[[:alnum:]]*[a-z0-9][A-Z][[:alnum:]]*|[A-Z]{2,}[a-z][[:alnum:]]*)',
        'g') AS m
);
-- +goose StatementEnd

-- analyze_text is the whole analysis, used for stored text and for queries, so that both are always treated alike. A
-- hyphen before a digit is a hyphen, not a minus; an underscore separates words (the parser is quadratic in words
-- joined by it).
-- +goose StatementBegin
CREATE FUNCTION analyze_text(input text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT regexp_replace(replace(folded, '_', ' '), '(?<=[[:alnum:]])-(?=[0-9])', ' ', 'g')
        || ' ' || coalesce(word_forms(folded), '')
    FROM (SELECT pair_cjk(fold_text(input)) AS folded) AS f
);
-- +goose StatementEnd

-- search_vector is the tsvector of a chunk: title and section in weight A, text in weight D. The configuration comes by
-- name, since pg_upgrade refuses tables with a regconfig column.
-- +goose StatementBegin
CREATE FUNCTION search_vector(config text, title text, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN setweight(to_tsvector(config::regconfig, analyze_text(title)), 'A')
    || setweight(to_tsvector(config::regconfig, analyze_text(content)), 'D');
-- +goose StatementEnd

-- word_query is the query for exactly one lexeme, whatever characters it has. A lone Chinese, Japanese or Korean character
-- stands in texts only inside pairs, so it is looked for as their beginning.
-- +goose StatementBegin
CREATE FUNCTION word_query(lexeme text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    '''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || ''''
    || CASE WHEN length(lexeme) = 1 AND is_cjk(lexeme) THEN ':*' ELSE '' END
)::tsquery;
-- +goose StatementEnd

-- search_length counts the words of a tsvector.
-- +goose StatementBegin
CREATE FUNCTION search_length(vector tsvector) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT coalesce(sum(cardinality(positions)), 0) FROM unnest(vector));
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION word_query(text);
DROP FUNCTION search_length(tsvector);
DROP FUNCTION search_vector(text, text, text);
DROP FUNCTION analyze_text(text);
DROP FUNCTION word_forms(text);
DROP FUNCTION pair_cjk(text);
DROP FUNCTION is_cjk(text);
DROP FUNCTION fold_text(text);
