package docling

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestConvertLimits(t *testing.T) {
	t.Parallel()

	t.Run("PagesThatFailedAreInTheMetadata", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		problems := `{"error_message": "Page 3 is\ncut off", "category": "backend_failure", "page_no": 3}` +
			strings.Repeat(`, {"component_type": "model", "error_message": "`+strings.Repeat("é", 300)+`", "page_no": null}`, 30)
		s.result = reply(200, outcome("partial_success", onePage, "["+problems+"]"))
		doc, err := s.convertPDF(t)
		if err != nil {
			t.Fatal(err)
		}
		list, _ := doc.Metadata["docling_errors"].([]string)
		if len(list) != maxErrors+1 || list[0] != "page 3: Page 3 is cut off" || len(list[1]) > maxReason+5 || list[maxErrors] != "and 11 more" {
			t.Errorf("got %q", list)
		}
	})

	t.Run("AHugeAnswerIsRefused", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.result = func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"document": {"json_content": {"texts": [`)
			for range 3000 {
				if _, err := io.WriteString(w, `{"label": "text", "text": "`+strings.Repeat("x", 1000)+`"}, `); err != nil {
					return
				}
			}
		}
		client := s.client(t, nil)
		client.maxAnswer = 1 << 20
		if _, err := client.Convert(t.Context(), "a.pdf", []byte(pdfBytes)); code(err) != "too_large" {
			t.Errorf("got %v", err)
		}
	})

	t.Run("AHugeAnswerAboutATaskIsRefused", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.submit = reply(200, `{"task_id": "`+strings.Repeat("x", maxDetail)+`"}`)
		if _, err := s.convertPDF(t); code(err) != "unreachable" {
			t.Errorf("got %v", err)
		}
	})

	t.Run("ARedirectIsNotFollowed", func(t *testing.T) {
		t.Parallel()
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
		t.Cleanup(other.Close)
		for _, status := range []int{301, 302, 307, 308} {
			s := newServe(t)
			s.submit = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) }
			if _, err := s.convertPDF(t); code(err) != "unreachable" || !strings.Contains(err.Error(), "redirect") {
				t.Errorf("got %v", err)
			}
		}
	})

	short := func(o *Options) { o.Timeout = 300 * time.Millisecond }

	t.Run("AFileThatIsNeverDoneTimesOut", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.submit, s.poll = reply(200, taskBody("started")), reply(200, taskBody("started"))
		if _, err := s.client(t, short).Convert(t.Context(), "a.png", []byte("\x89PNG\r\n\x1a\n")); code(err) != "timeout" {
			t.Errorf("got %v", err)
		}
	})

	t.Run("AFileWhoseTurnNeverComesIsNotToBlame", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.poll = reply(200, taskBody("pending"))
		if _, err := s.client(t, short).Convert(t.Context(), "a.pdf", nil); code(err) != "unreachable" || !strings.Contains(err.Error(), "within 300ms") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("ASlowSyncRequestTimesOut", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.submit = reply(404, `{"detail": "Not Found"}`)
		s.convert = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		if _, err := s.client(t, short).Convert(t.Context(), "a.pdf", []byte(pdfBytes)); code(err) != "timeout" {
			t.Errorf("got %v", err)
		}
	})

	t.Run("AContextThatEndsIsTheCallers", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		stop := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		s.poll = func(_ http.ResponseWriter, r *http.Request) { cancel(stop); <-r.Context().Done() }
		_, err := s.client(t, nil).Convert(ctx, "a.pdf", []byte(pdfBytes))
		if !errors.Is(err, stop) || errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("NoServerIsUnreachable", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.Close()
		if _, err := s.convertPDF(t); code(err) != "unreachable" {
			t.Errorf("got %v", err)
		}
	})

	t.Run("AnUntrustedCertificateIsUnreachable", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		client, err := New(Options{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Convert(t.Context(), "a.pdf", nil); code(err) != "unreachable" || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got %v", err)
		}
	})
}
