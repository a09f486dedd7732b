package job

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"gocloud.dev/blob"

	"github.com/kb-search/kb/db"
)

// DropOriginal deletes the original at a path of the blob storage, unless a document or an earlier version of one still has
// it there: originals are kept by their content, so two can share one. A file that is gone already is no error.
func DropOriginal(ctx context.Context, conn db.DBTX, bucket *blob.Bucket, projectID uuid.UUID, path string) error {
	inUse, err := db.New().DocumentPathInUse(ctx, conn, db.DocumentPathInUseParams{ProjectID: projectID, StoredPath: path})
	if err != nil {
		return fmt.Errorf("look who has the original %s: %w", path, err)
	}
	if inUse {
		return nil
	}
	return DeleteFile(ctx, bucket, path)
}
