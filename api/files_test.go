package api_test

import (
	"mime"
	"net/http"
	"strings"
	"testing"
)

func TestDownload(t *testing.T) {
	t.Parallel()
	s := start(t, config{})

	t.Run("NamesOfManyForms", func(t *testing.T) {
		t.Parallel()
		for i, name := range []string{"plain.md", "größe äöü.md", "报告 2024.md", "it's.md", "per%20cent.md", "semi;colon.md"} {
			content := "# Title\n\nText number " + strings.Repeat("x", i+1)
			done := s.ingest(t, file(name, content)...)
			got := s.get(t, "/api/v1/documents/"+done["document_id"].(string)+"/file").want(t, 200)
			disposition, params, err := mime.ParseMediaType(got.header.Get("Content-Disposition"))
			if err != nil || disposition != "attachment" || params["filename"] != name {
				t.Errorf("%q comes back as %q, %v", name, got.header.Get("Content-Disposition"), err)
			}
			if string(got.body) != content || got.header.Get("Content-Type") != "text/markdown; charset=utf-8" || len(got.header.Values("Content-Disposition")) != 1 {
				t.Errorf("%q: %q as %s", name, got.body, got.header.Get("Content-Type"))
			}
		}
	})

	t.Run("RangesAndConditions", func(t *testing.T) {
		t.Parallel()
		done := s.ingest(t, file("range.txt", "0123456789")...)
		path := "/api/v1/documents/" + done["document_id"].(string) + "/file"
		got := s.do(t, http.MethodGet, path, nil, "Range", "bytes=2-4").want(t, http.StatusPartialContent)
		if string(got.body) != "234" || got.header.Get("Content-Range") != "bytes 2-4/10" {
			t.Errorf("%q, %s", got.body, got.header.Get("Content-Range"))
		}
		s.do(t, http.MethodGet, path, nil, "Range", "bytes=20-").want(t, http.StatusRequestedRangeNotSatisfiable)
		s.do(t, http.MethodGet, path, nil, "If-None-Match", got.header.Get("ETag")).want(t, http.StatusNotModified)
	})

	t.Run("WhatIsNotThereIsNotFound", func(t *testing.T) {
		t.Parallel()
		s.get(t, "/api/v1/documents/doc_01kb9q5s7ze4gr6tcx3k0z9ykn/file").wantError(t, 404, nil)
		done := s.ingest(t, file("gone.txt", "soon gone")...)
		document := s.document(t, done)
		must(t, s.bucket.Delete(t.Context(), "documents/"+document["content_hash"].(string)+".txt"))
		s.get(t, "/api/v1/documents/"+done["document_id"].(string)+"/file").wantError(t, 404, nil)
		if s.document(t, done)["has_file"] != false {
			t.Error("has_file is still true")
		}
	})
}
