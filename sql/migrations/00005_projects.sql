-- +goose Up
CREATE TABLE projects (
    id          uuid PRIMARY KEY,
    name        text NOT NULL UNIQUE,
    -- text_config names the text search configuration of all text in the project.
    text_config text NOT NULL DEFAULT 'pg_catalog.english',
    -- served_at is when a job of the project was last taken up: projects take turns.
    served_at   timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- The default project: what a deployment without tenants works in.
INSERT INTO projects (id, name) VALUES ('00000000-0000-7000-8000-000000000001', 'default');

-- +goose Down
DROP TABLE projects;
