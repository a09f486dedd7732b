package docling

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kb-search/kb/worker/parse"
	"github.com/kb-search/kb/worker/parse/build/buildtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url, key, base, err string
	}{
		"SlashesAtTheEndGo":       {url: "http://localhost:5001//", base: "http://localhost:5001"},
		"APathStays":              {url: "https://example.org/docling/", base: "https://example.org/docling"},
		"AnEmptyURLIsRefused":     {err: "must begin with http"},
		"AnotherSchemeIsRefused":  {url: "ftp://example.org", err: "must begin with http"},
		"NoHostIsRefused":         {url: "http://:5001", err: "must begin with http"},
		"AQueryIsRefused":         {url: "http://example.org/?a=1", err: "must not hold a ?"},
		"AFragmentIsRefused":      {url: "http://example.org/#a", err: "must not hold a ?"},
		"APasswordIsNotRepeated":  {url: "http://joe:" + secret + "@example.org", err: "must not hold a user name"},
		"NonsenseIsNotRepeated":   {url: "http://" + secret + "%zz", err: "can't be read"},
		"ALineEndInTheKeyIsNamed": {url: "http://example.org", key: secret + "\n", err: "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := New(Options{URL: test.url, Key: test.key})
			switch {
			case test.err == "":
				if err != nil || client.base != test.base || client.timeout != defaultTimeout || client.pollWait != defaultPollWait {
					t.Errorf("got %+v, %v", client, err)
				}
			case err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), secret):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFileKind(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		name, data, want string
	}{
		"APDFByItsBytes":              {`C:\scans\letter`, pdfBytes, "pdf file.pdf"},
		"APDFByItsName":               {"a.PDF", "", "pdf a.PDF"},
		"AnImageNamedPDFIsAnImage":    {"a.pdf", "\x89PNG\r\n\x1a\n", "image a.pdf"},
		"AnImageByItsName":            {"dir/a.tiff", "II*\x00", "image a.tiff"},
		"AnImageWithoutAName":         {"", "\xff\xd8\xff", "image file.jpeg"},
		"BytesWithoutAnythingToGoOn":  {"scan", "", "image file.png"},
		"APDFWithBytesBeforeItsStart": {"a", "\r\n" + pdfBytes, "pdf file.pdf"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFile(test.name, []byte(test.data))
			if got := f.kind + " " + f.name; got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()

	t.Run("ATaskIsBegunAskedAboutAndFetched", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		doc, err := s.convertPDF(t)
		if err != nil {
			t.Fatal(err)
		}
		if doc.Type != parse.TypePDF || buildtest.Outline(doc) != "1 [] Hello there.\n" || doc.Metadata != nil {
			t.Errorf("got %+v", doc)
		}
		want := "POST /base/v1/convert/file/async, GET /base/v1/status/poll/b7c1%2F2?wait=0.01, " +
			"GET /base/v1/status/poll/b7c1%2F2?wait=0.01, GET /base/v1/result/b7c1%2F2"
		if got := strings.Join(s.requests, ", "); got != want {
			t.Errorf("requests are %s", got)
		}
		if s.file != "a.pdf="+pdfBytes {
			t.Errorf("file is %s", s.file)
		}
		fields := fmt.Sprint(s.form)
		if fields != "map[abort_on_error:[false] do_pdf_heading_hierarchy:[true] document_timeout:[9] image_export_mode:[placeholder] "+
			"include_images:[false] to_formats:[json]]" {
			t.Errorf("form is %s", fields)
		}
	})

	t.Run("TheKeyIsSentWithEachRequest", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		if _, err := s.convertPDF(t); err != nil {
			t.Fatal(err)
		}
		for i, key := range s.keys {
			if key != secret {
				t.Errorf("%s has key %q", s.requests[i], key)
			}
		}
	})

	t.Run("NoKeyMeansNoHeader", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.submit = func(w http.ResponseWriter, r *http.Request) {
			if _, found := r.Header["X-Api-Key"]; found {
				t.Error("the header is there")
			}
			reply(401, `{"detail": null}`)(w, r)
		}
		_, err := s.client(t, func(o *Options) { o.Key = "" }).Convert(t.Context(), "a.pdf", []byte(pdfBytes))
		if code(err) != "unreachable" || !strings.Contains(err.Error(), "asks for a key") {
			t.Errorf("got %v", err)
		}
	})

	for _, status := range []int{404, 405} {
		t.Run(fmt.Sprintf("Without%dOfTasksTheFileIsConvertedInOneRequest", status), func(t *testing.T) {
			t.Parallel()
			s := newServe(t)
			s.submit = reply(status, `{"detail": "Not Found"}`)
			s.convert = reply(200, outcome("success", onePage, "[]"))
			doc, err := s.convertPDF(t)
			if err != nil || len(doc.Blocks) != 1 || s.file != "a.pdf="+pdfBytes {
				t.Errorf("got %+v, %v, file %s", doc, err, s.file)
			}
		})
	}

	t.Run("An502TwiceIsBorneWith", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		good := s.poll
		s.poll = func(w http.ResponseWriter, r *http.Request) {
			if s.polls.Load() <= 2 {
				reply(502, "<html>Bad Gateway</html>")(w, r)

				return
			}
			good(w, r)
		}
		if _, err := s.convertPDF(t); err != nil {
			t.Error(err)
		}
	})

	t.Run("AConnectionThatBreaksIsBorneWith", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		good := s.result
		var broken atomic.Bool
		s.result = func(w http.ResponseWriter, r *http.Request) {
			if broken.CompareAndSwap(false, true) {
				w.Header().Set("Content-Length", "100000")
				_, _ = io.WriteString(w, `{"document": {`)
				panic(http.ErrAbortHandler)
			}
			good(w, r)
		}
		if _, err := s.convertPDF(t); err != nil {
			t.Error(err)
		}
	})

	t.Run("AServiceThatDiesIsGivenUp", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.poll = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		_, err := s.convertPDF(t)
		if code(err) != "unreachable" || s.polls.Load() < maxTries {
			t.Errorf("got %v after %d polls", err, s.polls.Load())
		}
	})

	t.Run("APollWithoutAnswerIsGivenUp", func(t *testing.T) {
		t.Parallel()
		s := newServe(t)
		s.poll = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		client := s.client(t, nil)
		client.patience = 20 * time.Millisecond
		_, err := client.Convert(t.Context(), "a.pdf", []byte(pdfBytes))
		if code(err) != "unreachable" || !strings.Contains(err.Error(), errNoAnswer.Error()) {
			t.Errorf("got %v", err)
		}
	})
}
