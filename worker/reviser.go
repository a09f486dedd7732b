package worker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gocloud.dev/blob"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

// Reviser changes stored notes while their caller waits. The text is cut and embedded before the transaction opens; search
// gives the new text from the moment it commits, and what was before stays among the document's versions.
type Reviser struct {
	conn     db.Conn
	bucket   *blob.Bucket
	ingester *Ingester
}

// NewReviser makes a reviser.
func NewReviser(conn db.Conn, bucket *blob.Bucket, ingester *Ingester) *Reviser {
	return &Reviser{conn: conn, bucket: bucket, ingester: ingester}
}

// Revise makes the next version of a note and gives it; a revision that changes nothing gives the note as it is. The error
// is job.ErrChanged when the note is not what the caller has read, a *job.TypeError when the text can't be read, and of
// kind db.KindConflict when another document has the same text.
func (r *Reviser) Revise(ctx context.Context, revision job.Revision) (db.Document, error) {
	old := revision.Document
	source, err := r.source(ctx, revision)
	if err != nil {
		return db.Document{}, err
	}
	if bytes.Equal(source.ContentHash, old.ContentHash) && source.Title == old.Title && revision.Tags == nil {
		return old, nil
	}
	revised, err := r.replace(ctx, old, source)
	for errors.Is(err, ErrSpaceChanged) {
		revised, err = r.replace(ctx, old, source)
	}
	if err != nil {
		err = fmt.Errorf("revise document %s: %w", old.ID, err)
		return db.Document{}, errors.Join(err, job.DropOriginal(context.WithoutCancel(ctx), r.conn, r.bucket, old.ProjectID, source.StoredPath))
	}
	if err := db.FoldStatistics(ctx, r.conn, old.ProjectID); err != nil {
		return db.Document{}, err
	}
	return revised, nil
}

func (r *Reviser) replace(ctx context.Context, old db.Document, source Source) (db.Document, error) {
	prepared, err := r.ingester.Prepare(ctx, source, func(string, int, int) {})
	if err != nil {
		return db.Document{}, err
	}
	prepared.belongTo(old.ID)
	var revised db.Document
	err = db.InTx(ctx, r.conn, func(tx pgx.Tx) error {
		if source.StoredPath != old.StoredPath {
			if err := job.LockOriginal(ctx, tx, source.StoredPath); err != nil {
				return err
			}
			if err := r.bucket.WriteAll(ctx, source.StoredPath, source.Data, nil); err != nil {
				return fmt.Errorf("keep the text: %w", err)
			}
		}
		revised, err = r.ingester.replace(ctx, tx, old, prepared)
		return err
	})
	return revised, err
}

// source is the note as it will be.
func (r *Reviser) source(ctx context.Context, revision job.Revision) (Source, error) {
	old := revision.Document
	source := Source{
		ProjectID: old.ProjectID, Filename: old.OriginalFilename, Title: old.Title, Path: old.Path, DocType: old.DocType,
		KnowledgeType: old.KnowledgeType, Tags: old.Tags, Metadata: old.Metadata, Chunking: old.Chunking,
	}
	if revision.Title != nil {
		source.Title = cmp.Or(cleanTitle(*revision.Title), old.Title)
	}
	if revision.Tags != nil {
		source.Tags = revision.Tags
	}
	if revision.Text != nil {
		source.Data = []byte(*revision.Text)
	} else {
		data, err := r.bucket.ReadAll(ctx, old.StoredPath)
		if err != nil {
			return Source{}, fmt.Errorf("read the text of document %s: %w", old.ID, err)
		}
		source.Data = data
	}
	source.Size = int64(len(source.Data))
	hash := sha256.Sum256(source.Data)
	source.ContentHash = hash[:]
	source.StoredPath = job.StoredPath(old.ProjectID, source.ContentHash, old.OriginalFilename)
	return source, nil
}

// belongTo makes what was prepared parts of a document that is there already.
func (p *Prepared) belongTo(document uuid.UUID) {
	p.Document.ID = document
}

// replace puts a prepared document in the place of a stored one, which is kept among its versions.
func (in *Ingester) replace(ctx context.Context, tx pgx.Tx, old db.Document, prepared Prepared) (db.Document, error) {
	queries := db.New()
	archived, err := queries.DocumentArchive(ctx, tx, db.DocumentArchiveParams{ProjectID: old.ProjectID, ID: old.ID, Version: old.Version})
	if err != nil {
		return db.Document{}, fmt.Errorf("archive version %d: %w", old.Version, err)
	}
	if archived == 0 {
		return db.Document{}, job.ErrChanged
	}
	if err := queries.ChunkDeleteByDocument(ctx, tx, db.ChunkDeleteByDocumentParams{ProjectID: old.ProjectID, DocumentID: old.ID}); err != nil {
		return db.Document{}, fmt.Errorf("delete the old chunks: %w", err)
	}
	next := prepared.Document
	revised, err := queries.DocumentReplace(ctx, tx, db.DocumentReplaceParams{
		ProjectID: old.ProjectID, ID: old.ID, Title: next.Title, DocType: next.DocType, KnowledgeType: next.KnowledgeType, Tags: next.Tags,
		Metadata: next.Metadata, Chunking: next.Chunking, ContentHash: next.ContentHash, OriginalFilename: next.OriginalFilename,
		StoredPath: next.StoredPath, Size: next.Size, ChunkCount: next.ChunkCount,
	})
	if err != nil {
		return db.Document{}, fmt.Errorf("update the document: %w", err)
	}
	return revised, in.storeParts(ctx, tx, prepared)
}
