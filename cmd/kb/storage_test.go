package main

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/kb-search/kb/db/dbtest"
)

// TestStorage keeps uploads and originals where KB_STORAGE_URL says.
func TestStorage(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	write(t, docs, map[string]string{"oil.md": "# Engine oil\n\nChange the oil every 10,000 km.\n", "broken.pdf": "%PDF-1.7 no more than that"})
	use := func(t *testing.T, url string, variables ...string) {
		t.Helper()
		dir := t.TempDir()
		s := serve(t, dir, append(variables, "KB_DATABASE_URL="+dbtest.EmptyDatabase(t), "KB_STORAGE_URL="+url)...)
		s.ready(t)
		s.kb(t, "ingest", docs).want(t, 1, "1 stored", "1 failed")
		var documents []struct{ ID string }
		s.get(t, "/api/v1/documents", &documents)
		if len(documents) != 1 {
			t.Fatalf("documents %v", documents)
		}
		if got := s.text(t, "/api/v1/documents/"+documents[0].ID+"/file"); got != "# Engine oil\n\nChange the oil every 10,000 km.\n" {
			t.Errorf("the original is %q", got)
		}
		if found, _ := filepath.Glob(dir + "/*/*"); len(found) > 0 {
			t.Errorf("the data folder has %v", found)
		}
	}

	t.Run("S3", func(t *testing.T) {
		t.Parallel()
		backend := s3mem.New()
		server := httptest.NewServer(gofakes3.New(backend).Server())
		t.Cleanup(server.Close)
		if err := backend.CreateBucket("knowledge"); err != nil {
			t.Fatal(err)
		}
		use(t, "s3://knowledge?region=us-east-1&use_path_style=true&prefix=kb/&endpoint="+server.URL,
			"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test")
		objects, err := backend.ListBucket("knowledge", nil, gofakes3.ListBucketPage{})
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, object := range objects.Contents {
			keys = append(keys, object.Key)
		}
		if len(keys) != 2 || !strings.HasPrefix(keys[0], "kb/documents/") || !strings.HasPrefix(keys[1], "kb/failed/") {
			t.Errorf("objects %v, want the original and the upload that failed", keys)
		}
	})

	t.Run("Folder", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "originals")
		use(t, "file://"+folder)
		if found, _ := filepath.Glob(folder + "/*/*"); len(found) != 2 {
			t.Errorf("the folder has %v", found)
		}
	})

	t.Run("BucketThatIsNotThere", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewServer(gofakes3.New(s3mem.New()).Server())
		t.Cleanup(server.Close)
		execute(t, []string{
			"KB_ADDR=" + freeAddr(t), "KB_DATA_DIR=" + t.TempDir(), "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
			"KB_STORAGE_URL=s3://missing?region=us-east-1&use_path_style=true&endpoint=" + server.URL,
		}, "serve").want(t, 1, "KB_STORAGE_URL")
	})

	t.Run("UnknownKind", func(t *testing.T) {
		t.Parallel()
		execute(t, []string{"KB_STORAGE_URL=ftp://x"}, "serve").want(t, 2, "KB_STORAGE_URL", "s3://")
	})
}
