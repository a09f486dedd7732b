-- +goose Up
-- The formulas of the search statement, one expression each, which the planner inlines.

-- term_frequency reads how often a word stands in a tsvector out of ts_rank('{1,1,1,1}', vector, word), which is
-- (1 + 1/4 + ... + 1/tf^2) / 1.644934; the tail of that series is close to 1 / (tf + 0.5).
-- +goose StatementBegin
CREATE FUNCTION term_frequency(rank real) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 1 / (1.644934::float8 * (1.0001::float8 - rank)) - 0.5::float8;
-- +goose StatementEnd

-- inverse_document_frequency is that of BM25 as Lucene has it, never negative: ln(1 + (n - df + 0.5) / (df + 0.5)).
-- +goose StatementBegin
CREATE FUNCTION inverse_document_frequency(n float8, df float8) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ln(1 + (greatest(n, df) - df + 0.5::float8) / (df + 0.5::float8));
-- +goose StatementEnd

-- bm25 is one word's part of the score (Robertson and Zaragoza 2009, equation 3.15): idf from above, tf how often the
-- word stands in the chunk, length and average_length in words.
-- +goose StatementBegin
CREATE FUNCTION bm25(idf float8, tf float8, length float8, average_length float8, k1 float8, b float8) RETURNS float8
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average_length));
-- +goose StatementEnd

-- passage_length is the length that BM25 takes for one of a document's chunks: its words, more the more chunks the
-- document has. A long document has more chances that one of its chunks fits a query; without this its chunks, short as
-- any, would beat the document that is about nothing else. The factor 1 + 0.05 ln(chunks)^2 (1.02 for 2 chunks, 1.27 for 10,
-- 2.06 for 100) was measured, see docs/quality.md.
-- +goose StatementBegin
CREATE FUNCTION passage_length(words integer, chunks integer) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN round(words * (1 + 0.05::float8 * ln(chunks::float8) ^ 2));
-- +goose StatementEnd

-- rrf is one arm's part of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009): 1 / (k + rank); 0 without a rank.
-- +goose StatementBegin
CREATE FUNCTION rrf(rank bigint, k integer) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(1::float8 / (k + rank), 0);
-- +goose StatementEnd

-- top_rank_bonus keeps the exact hit of one arm on top: 0.05 for rank 1, 0.02 for ranks 2 and 3.
-- +goose StatementBegin
CREATE FUNCTION top_rank_bonus(rank bigint) RETURNS float8
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN rank = 1 THEN 0.05::float8 WHEN rank <= 3 THEN 0.02::float8 ELSE 0 END;
-- +goose StatementEnd

-- tag_name spells a pair of the tag bag as one name: x for x -> "", k:v for k -> v.
-- +goose StatementBegin
CREATE FUNCTION tag_name(key text, value text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE WHEN value = '' THEN key ELSE key || ':' || value END;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION tag_name(text, text);
DROP FUNCTION top_rank_bonus(bigint);
DROP FUNCTION rrf(bigint, integer);
DROP FUNCTION passage_length(integer, integer);
DROP FUNCTION bm25(float8, float8, float8, float8, float8, float8);
DROP FUNCTION inverse_document_frequency(float8, float8);
DROP FUNCTION term_frequency(real);
