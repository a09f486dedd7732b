-- +goose Up
-- The only two extensions kb needs. Both are on every managed PostgreSQL; neither is preloaded.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- +goose Down
-- The extensions stay: other schemas of the same database may use them.
