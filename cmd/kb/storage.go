package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	"gocloud.dev/blob/fileblob"    // file://, too
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)

// openStorage opens what KB_STORAGE_URL names, else the data folder.
func openStorage(ctx context.Context, config Config) (*blob.Bucket, error) {
	if config.StorageURL == "" {
		return openFolder(config.DataDir)
	}
	bucket, err := blob.OpenBucket(ctx, storageURL(config.StorageURL))
	if err != nil {
		return nil, fmt.Errorf("open the storage (KB_STORAGE_URL): %w", err)
	}
	accessible, err := bucket.IsAccessible(ctx)
	if err != nil || !accessible {
		_ = bucket.Close()
		return nil, fmt.Errorf("reach the storage: is the bucket of KB_STORAGE_URL there, and may these credentials use it? %w", err)
	}
	return bucket, nil
}

func openFolder(dir string) (*blob.Bucket, error) {
	for _, folder := range []string{"staging", "documents"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, fmt.Errorf("make the data folder (KB_DATA_DIR names another): %w", err)
		}
	}
	bucket, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite, NoTempDir: true})
	if err != nil {
		return nil, fmt.Errorf("open the data folder: %w", err)
	}
	return bucket, nil
}

// storageURL adds what kb needs of a folder: no files beside the files, and temporary ones on the same disk.
func storageURL(text string) string {
	address, err := url.Parse(text)
	if err != nil || address.Scheme != fileblob.Scheme {
		return text
	}
	query := address.Query()
	query.Set("metadata", "skip")
	query.Set("no_tmp_dir", "true")
	query.Set("create_dir", "true")
	address.RawQuery = query.Encode()
	return address.String()
}

// validStorage says whether an address is of a kind of storage that openStorage knows.
func validStorage(text string) bool {
	address, err := url.Parse(text)
	return err == nil && blob.DefaultURLMux().ValidBucketScheme(address.Scheme)
}
