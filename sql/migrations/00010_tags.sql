-- +goose Up
CREATE TABLE tags (
    project_id  uuid NOT NULL REFERENCES projects (id),
    name        text NOT NULL,
    -- description is one line that tells a reader of search results what the tag stands for.
    description text,
    PRIMARY KEY (project_id, name)
);

-- +goose Down
DROP TABLE tags;
