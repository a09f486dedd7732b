-- What sqlc needs to know of River's schema, which River's own migrations make (migration 2). Nothing runs this file.
CREATE TABLE river_job (
    id           bigint PRIMARY KEY,
    kind         text NOT NULL,
    state        text NOT NULL,
    scheduled_at timestamptz NOT NULL,
    attempted_at timestamptz
);
