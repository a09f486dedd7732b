package job

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Where uploads lie in the blob storage: one that waits, and one whose job has failed or was cancelled.
const (
	StagingFolder = "staging/"
	FailedFolder  = "failed/"
)

// StagingPath is where an upload waits for its job.
func StagingPath(jobID uuid.UUID) string { return StagingFolder + jobID.String() }

// FailedPath is where an upload is kept for another try after its job has failed or was cancelled.
func FailedPath(jobID uuid.UUID) string { return FailedFolder + jobID.String() }

// SetAside moves the upload of a job that has failed out of the staging area. One that is not there is no error.
func SetAside(ctx context.Context, bucket *blob.Bucket, jobID uuid.UUID) error {
	if there, err := copyFile(ctx, bucket, FailedPath(jobID), StagingPath(jobID)); err != nil || !there {
		return err
	}
	return DeleteFile(ctx, bucket, StagingPath(jobID))
}

// TakeBack puts the upload of a job that was set aside back into the staging area, and says whether it was there. The
// caller deletes the copy that was set aside once the job is queued again.
func TakeBack(ctx context.Context, bucket *blob.Bucket, jobID uuid.UUID) (bool, error) {
	return copyFile(ctx, bucket, StagingPath(jobID), FailedPath(jobID))
}

func copyFile(ctx context.Context, bucket *blob.Bucket, to, from string) (bool, error) {
	err := bucket.Copy(ctx, to, from, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return true, nil
}

// DeleteFile deletes a file of the blob storage that may be gone already.
func DeleteFile(ctx context.Context, bucket *blob.Bucket, path string) error {
	if err := bucket.Delete(ctx, path); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("delete %s: %w", path, err)
	}
	return nil
}
