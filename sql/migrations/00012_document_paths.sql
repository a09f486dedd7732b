-- +goose Up
-- path is where a file stands in the caller's own tree, as /a/b.txt; a changed file under the same path becomes a new
-- version. It is in the C collation so that "starts with" can use an index.
-- chunking is what the caller asked for: size, overlap and strategy; what is missing is the server's default.
ALTER TABLE documents
    ADD COLUMN path text COLLATE "C",
    ADD COLUMN knowledge_type text,
    ADD COLUMN chunking jsonb NOT NULL DEFAULT '{}';
UPDATE documents SET path = '/' || original_filename WHERE doc_type <> 'note';

ALTER TABLE document_versions
    ADD COLUMN path text COLLATE "C",
    ADD COLUMN knowledge_type text,
    ADD COLUMN chunking jsonb NOT NULL DEFAULT '{}';
UPDATE document_versions AS v SET path = d.path
FROM documents AS d
WHERE d.project_id = v.project_id AND d.id = v.document_id;

-- on_conflict is what happens when a document stands at the path already: version, reject or duplicate.
-- warning is what the caller should know of a job that went well otherwise.
ALTER TABLE jobs
    ADD COLUMN path text COLLATE "C",
    ADD COLUMN knowledge_type text,
    ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN chunking jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN on_conflict text NOT NULL DEFAULT 'duplicate',
    ADD COLUMN warning text;

-- For the path of an upload, and for path prefixes.
CREATE INDEX documents_path ON documents (project_id, path);

-- +goose Down
DROP INDEX documents_path;
ALTER TABLE jobs DROP COLUMN warning, DROP COLUMN on_conflict, DROP COLUMN chunking, DROP COLUMN metadata, DROP COLUMN knowledge_type, DROP COLUMN path;
ALTER TABLE document_versions DROP COLUMN chunking, DROP COLUMN knowledge_type, DROP COLUMN path;
ALTER TABLE documents DROP COLUMN chunking, DROP COLUMN knowledge_type, DROP COLUMN path;
