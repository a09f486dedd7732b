package job

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"gocloud.dev/blob"

	"github.com/kb-search/kb/db"
)

// LockOriginal keeps others from deleting or writing the original at a path until the end of the transaction. Who stores a
// document writes its original behind it, in the same transaction.
func LockOriginal(ctx context.Context, tx pgx.Tx, path string) error {
	if err := db.New().DocumentPathLock(ctx, tx, path); err != nil {
		return fmt.Errorf("lock the original %s: %w", path, err)
	}
	return nil
}

// DropOriginal deletes the original at a path of the blob storage, unless a document or an earlier version of one still has
// it there: originals are kept by their content, so two can share one. A file that is gone already is no error.
func DropOriginal(ctx context.Context, conn db.Conn, bucket *blob.Bucket, projectID uuid.UUID, path string) error {
	return db.InTx(ctx, conn, func(tx pgx.Tx) error {
		if err := LockOriginal(ctx, tx, path); err != nil {
			return err
		}
		inUse, err := db.New().DocumentPathInUse(ctx, tx, db.DocumentPathInUseParams{ProjectID: projectID, StoredPath: path})
		if err != nil {
			return fmt.Errorf("look who has the original %s: %w", path, err)
		}
		if inUse {
			return nil
		}
		return DeleteFile(ctx, bucket, path)
	})
}
