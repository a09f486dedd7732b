-- +goose Up
-- A path names one document of its project.

-- numbered_path gives the nth path beside a path: /a/report.pdf, /a/report (2).pdf, and so on. A name that only begins with
-- a dot has no extension.
-- +goose StatementBegin
CREATE FUNCTION numbered_path(path text, n integer) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN n = 1 THEN path ELSE regexp_replace(path, '(?<=[^/])(\.[^./]*)?$', ' (' || n || ')\1') END;
-- +goose StatementEnd

-- document_free_path gives the first path beside a path, itself included, at which no document of the project stands.
-- +goose StatementBegin
CREATE FUNCTION document_free_path(project uuid, wanted text) RETURNS text
    LANGUAGE sql STABLE
RETURN (
    WITH RECURSIVE tried (n) AS (
        SELECT 1
        UNION ALL
        SELECT t.n + 1
        FROM tried AS t
        WHERE EXISTS (SELECT FROM documents AS d WHERE d.project_id = project AND d.path = numbered_path(wanted, t.n))
    )
    SELECT numbered_path(wanted, max(t.n)) FROM tried AS t
);
-- +goose StatementEnd

-- Where several documents stand at one path, the one that changed last keeps it; it is the one that uploads replaced.
-- +goose StatementBegin
DO $$
DECLARE
    d record;
BEGIN
    FOR d IN
        SELECT s.project_id, s.id, s.path
        FROM (
            SELECT project_id, id, path,
                row_number() OVER (PARTITION BY project_id, path ORDER BY coalesce(updated_at, created_at) DESC, id DESC) AS place
            FROM documents
            WHERE path IS NOT NULL
        ) AS s
        WHERE s.place > 1
        ORDER BY s.project_id, s.path, s.place DESC
    LOOP
        UPDATE documents AS u
        SET path = document_free_path(d.project_id, d.path)
        WHERE u.project_id = d.project_id AND u.id = d.id;
    END LOOP;
END;
$$;
-- +goose StatementEnd

DROP INDEX documents_path;
CREATE UNIQUE INDEX documents_path ON documents (project_id, path);

-- +goose Down
DROP INDEX documents_path;
CREATE INDEX documents_path ON documents (project_id, path);
DROP FUNCTION document_free_path(uuid, text);
DROP FUNCTION numbered_path(text, integer);
