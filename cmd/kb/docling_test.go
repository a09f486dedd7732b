package main

import (
	"os"
	"testing"

	"github.com/kb-search/kb/db/dbtest"
)

// TestDoclingAway uploads a PDF to a server whose docling-serve does not answer.
func TestDoclingAway(t *testing.T) {
	t.Parallel()
	docs := t.TempDir()
	content, err := os.ReadFile("../../worker/parse/pdf/testdata/leading_junk.pdf")
	if err != nil {
		t.Fatal(err)
	}
	write(t, docs, map[string]string{"scan.pdf": string(content)})
	s := serve(t, t.TempDir(), "KB_DATABASE_URL="+dbtest.EmptyDatabase(t), "KB_DOCLING_URL=http://"+freeAddr(t))
	s.ready(t)
	s.kb(t, "ingest", docs).want(t, 0, "1 stored")
	var jobs []struct{ Status, Warning string }
	s.get(t, "/api/v1/jobs", &jobs)
	if len(jobs) != 1 || jobs[0].Status != "done" || jobs[0].Warning == "" {
		t.Errorf("jobs %+v", jobs)
	}
	execute(t, []string{"KB_DOCLING_URL=localhost:5001"}, "serve").want(t, 2, "KB_DOCLING_URL", "http://")
}
