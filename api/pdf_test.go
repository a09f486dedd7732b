package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/worker/parse/pdf"
)

// compilePDFium fills the cache of compiled PDFium, which takes a minute under the race detector: longer than a test waits
// for a job.
func compilePDFium(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile("../worker/parse/pdf/testdata/leading_junk.pdf")
	must(t, err)
	parser := pdf.New(pdf.Options{CacheDir: filepath.Join(dbtest.CacheDir(), "pdfium")})
	_, err = parser.Parse(t.Context(), content)
	must(t, err)
	must(t, parser.Close())
}

func TestPDF(t *testing.T) {
	t.Parallel()
	compilePDFium(t)
	s := start(t, config{})
	send := func(t *testing.T, name string) map[string]any {
		t.Helper()
		content, err := os.ReadFile("../worker/parse/pdf/testdata/" + name)
		must(t, err)
		return s.wait(t, s.upload(t, file(name, string(content))...).want(t, 202).object(t)["job_id"].(string))
	}
	// finds wants the first result of a query, by its words, to come from a file.
	finds := func(t *testing.T, query, filename string) map[string]any {
		t.Helper()
		results := s.post(t, "/api/v1/search", fmt.Sprintf(`{"query": %q, "fts_only": true, "doc_type": "pdf"}`, query)).want(t, 200).object(t)["results"].([]any)
		for _, result := range results {
			if first := result.(map[string]any); first["filename"] == filename {
				return first
			}
		}
		t.Errorf("%q does not find %s", query, filename)
		return nil
	}

	t.Run("IsStoredWithItsPages", func(t *testing.T) {
		for _, name := range []string{"leading_junk.pdf", "owner_password_only.pdf"} { // PDF-07, PDF-02
			done := send(t, name)
			if done["status"] != "done" {
				t.Fatalf("%s: %v", name, done)
			}
			document := s.document(t, done)
			if document["doc_type"] != "pdf" || document["has_file"] != true || document["chunks"].([]any)[0].(map[string]any)["page"] != 1.0 {
				t.Errorf("%s: %v", name, document)
			}
			if result := finds(t, "Marlow compressor", name); result != nil && result["page"] != 1.0 {
				t.Errorf("%s: page %v", name, result["page"])
			}
			original := s.get(t, "/api/v1/documents/"+document["id"].(string)+"/file").want(t, 200)
			if original.header.Get("Content-Type") != "application/pdf" || int(document["size"].(float64)) != len(original.body) {
				t.Errorf("%s comes back as %s, %d bytes", name, original.header.Get("Content-Type"), len(original.body))
			}
		}
	})

	t.Run("PDF03PasswordFailsAtOnceWithACode", func(t *testing.T) {
		failed := send(t, "user_password.pdf")
		if failed["status"] != "failed" || failed["error_code"] != "password_required" || failed["attempts"] != 1.0 {
			t.Errorf("got %v", failed)
		}
	})

	t.Run("PDF04ColumnsAreReadOneAfterTheOther", func(t *testing.T) {
		for _, name := range []string{"two_column_by_row.pdf", "two_column_by_column.pdf"} {
			send(t, name)
			if result := finds(t, "trapped water splits the housing along the lower seam", name); result != nil &&
				!strings.Contains(strings.Join(strings.Fields(result["text"].(string)), " "), "trapped water splits the housing along the lower seam") {
				t.Errorf("%s: %q", name, result["text"])
			}
		}
	})

	t.Run("PDF05BrokenFilesEndAndTheNextOneIsRead", func(t *testing.T) {
		for name, want := range map[string]string{
			"truncated.pdf": "failed", "only_header.pdf": "failed", "zero_pages.pdf": "failed", "page_tree_loop.pdf": "done", "xref_prev_loop.pdf": "done",
		} {
			ended := send(t, name)
			if ended["status"] != want || ended["attempts"] != 1.0 {
				t.Errorf("%s: %v", name, ended)
			}
			if reason, _ := ended["error"].(string); want == "failed" && (ended["error_code"] != "corrupt" || reason == "" || strings.Contains(reason, "Success")) {
				t.Errorf("%s: %v", name, ended)
			}
		}
	})

	t.Run("PDF06BrokenWordsAndLigatures", func(t *testing.T) {
		send(t, "hyphen_ligature.pdf")
		for _, word := range []string{"configuration", "without", "number", "firmware update", "office", "re-entry", "difficult"} {
			finds(t, word, "hyphen_ligature.pdf")
		}
	})
}
