package client_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kb-search/kb/cmd/kb/client"
)

// serve gives a client of a server that answers everything with one handler.
func serve(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return client.New(server.URL+"/", "key")
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func upload(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a file.md")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUpload(t *testing.T) {
	t.Parallel()

	t.Run("SendsFileFieldsAndKey", func(t *testing.T) {
		t.Parallel()

		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			file, header, err := r.FormFile("file")
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = file.Close() }()
			if header.Filename != "a file.md" || header.Size != 5 || r.FormValue("tags") != "x,y" {
				t.Errorf("got %s with %d bytes and the tags %s", header.Filename, header.Size, r.FormValue("tags"))
			}
			if r.Header.Get("Authorization") != "Bearer key" || r.URL.Path != "/api/v1/jobs" || r.Method != http.MethodPost {
				t.Errorf("got %s %s with %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
			}
			answer(http.StatusAccepted, `{"job_id": "job_1", "status": "queued"}`)(w, r)
		})
		job, err := c.Upload(t.Context(), upload(t, "hello"), url.Values{"tags": {"x,y"}})
		if err != nil || job.JobID != "job_1" || job.Finished() {
			t.Errorf("got %+v, %v", job, err)
		}
	})

	t.Run("DuplicateIsAnErrorWithItsDocument", func(t *testing.T) {
		t.Parallel()

		c := serve(t, answer(http.StatusConflict, `{"error": "duplicate", "message": "There already.", "document_id": "doc_1"}`))
		_, err := c.Upload(t.Context(), upload(t, "hello"), nil)
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Status != http.StatusConflict || refused.DocumentID != "doc_1" || err.Error() != "There already." {
			t.Errorf("got %v", err)
		}
	})

	t.Run("EarlyRefusalOfALargeFileIsRead", func(t *testing.T) {
		t.Parallel()

		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 1000)
			_ = r.ParseMultipartForm(1000)
			answer(http.StatusRequestEntityTooLarge, `{"message": "Too large."}`)(w, r)
		})
		_, err := c.Upload(t.Context(), upload(t, strings.Repeat("large ", 1<<20)), nil)
		if err == nil || err.Error() != "Too large." {
			t.Errorf("got %v", err)
		}
	})

	t.Run("MissingFileIsNotExist", func(t *testing.T) {
		t.Parallel()

		_, err := serve(t, answer(http.StatusAccepted, "{}")).Upload(t.Context(), filepath.Join(t.TempDir(), "none.md"), nil)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	})
}

func TestSearch(t *testing.T) {
	t.Parallel()

	c := serve(t, answer(http.StatusOK, `{"status": "strict_hit", "banner": null, "total_matches": 7, "results":
		[{"title": "Oil", "score": 0.08, "explain": {"fts_score": 4.5, "fts_rank": 1, "vec_score": null, "bonus": 0.05}}]}`))
	got, err := c.Search(t.Context(), map[string]any{"query": "oil"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != "strict_hit" || got.Banner != nil || got.TotalMatches != 7 || len(got.Results) != 1 {
		t.Fatalf("got %+v", got)
	}
	e := got.Results[0].Explain
	if e.FTSScore == nil || *e.FTSScore != 4.5 || e.FTSRank == nil || *e.FTSRank != 1 || e.VecScore != nil || e.VecRank != nil || e.Bonus != 0.05 {
		t.Errorf("got %+v", e)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()

	for name, row := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"MessageIsTheServers":      {answer(http.StatusBadRequest, `{"error": "invalid", "message": "The query is blank."}`), "The query is blank."},
		"NoJSONNamesTheStatus":     {answer(http.StatusBadGateway, "<html>"), "the server answered 502"},
		"StartingNamesTheStatus":   {answer(http.StatusServiceUnavailable, `{"status": "starting"}`), "the server answered 503"},
		"SuccessThatIsNoJSONIsOne": {answer(http.StatusOK, "<html>"), "read the server's answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := serve(t, row.handler).Health(t.Context())
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v", err)
			}
		})
	}

	t.Run("UnreachableServerNamesTheVariable", func(t *testing.T) {
		t.Parallel()

		err := client.New("http://127.0.0.1:1", "").Health(t.Context())
		if err == nil || !strings.Contains(err.Error(), "KB_URL") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("BrokenAddressIsSaid", func(t *testing.T) {
		t.Parallel()

		if err := client.New("http://a b", "").Health(t.Context()); err == nil || !strings.Contains(err.Error(), "http://a b") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("ContextEndsIt", func(t *testing.T) {
		t.Parallel()

		c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := c.Job(ctx, "job_1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestJobFinished(t *testing.T) {
	t.Parallel()

	for status, want := range map[string]bool{"queued": false, "processing": false, "done": true, "failed": true, "skipped": true, "cancelled": true} {
		if got := (client.Job{Status: status}).Finished(); got != want {
			t.Errorf("%s: finished %t", status, got)
		}
	}
}
