package api_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUploadRefused(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true, MaxUpload: 1 << 20})
	t.Run("Form", func(t *testing.T) {
		for _, test := range []struct {
			name   string
			parts  []part
			status int
			fields map[string]any
		}{
			{"UPL05EmptyFile", file("empty.txt", ""), 400, map[string]any{"field": "body.file"}},
			{"UPL05BlankFile", file("blank.txt", " \t\r\n\x00"), 400, map[string]any{"field": "body.file"}},
			{"UPL05BlankNote", note("title", " \t\n"), 400, map[string]any{"field": "body.note"}},
			{"UPL05EmptyNote", note("title", ""), 400, map[string]any{"error": "invalid request"}},
			{"UPL05FileWithoutName", []part{{"file", "", "The kiln is lit."}}, 400, map[string]any{"field": "body.file"}},
			{"NothingAtAll", nil, 400, map[string]any{"error": "invalid request"}},
			{"TitleAlone", []part{{"title", "", "a"}}, 400, map[string]any{"error": "invalid request"}},
			{"FileAndNote", append(file("a.txt", "text"), part{"note", "", "text"}), 400, map[string]any{"field": "body.note"}},
			{"TwoFiles", append(file("a.txt", "text"), file("b.txt", "other")...), 400, map[string]any{"error": "invalid request"}},
			{"TwoNotes", []part{{"note", "", "a"}, {"note", "", "b"}}, 400, map[string]any{"field": "body.note"}},
			{"FieldThatIsUnknown", append(note("", "text"), part{"tag", "", "x"}), 400, map[string]any{"field": "body.tag"}},
			{"UPL02DotName", file("..", "text"), 400, map[string]any{"field": "body.file"}},
			{"UnknownExtension", file("movie.mp4", "frames"), 422, map[string]any{"code": "unsupported_type"}},
			{"NoExtension", file("README", "text"), 422, map[string]any{"code": "unsupported_type"}},
			{"ExtensionOfAnotherName", file("a.md.exe", "text"), 422, map[string]any{"code": "unsupported_type"}},
			{"NULBeforeTheExtension", file("a.exe\x00.txt\x00.exe", "text"), 400, map[string]any{"error": "invalid request"}},
			{"UnknownDocType", append(file("a.txt", "text"), part{"doc_type", "", "poem"}), 422, map[string]any{"code": "unknown_doc_type"}},
			{"TitleTooLong", note(strings.Repeat("é", 1001), "text"), 400, map[string]any{"field": "body.title"}},
			{"TagTooLong", append(note("", "text"), part{"tags", "", strings.Repeat("é", 201)}), 400, map[string]any{"field": "body.tags"}},
			{"TooManyTags", append(note("", "text"), part{"tags", "", strings.Repeat("t,", 101)}), 400, map[string]any{"field": "body.tags"}},
			{"TagsAsBrokenJSON", append(note("", "text"), part{"tags", "", `{"a":`}), 400, map[string]any{"field": "body.tags"}},
			{"TagsAsJSONOfNumbers", append(note("", "text"), part{"tags", "", `{"a":1}`}), 400, map[string]any{"field": "body.tags"}},
			{"UPL03OneByteOver", file("a.txt", strings.Repeat("a ", 1<<19)+"b"), 413, map[string]any{"error": "too large"}},
			{"UPL03NoteOneByteOver", note("", strings.Repeat("a ", 1<<19)+"b"), 413, map[string]any{"error": "too large"}},
			{"UPL03FarOver", file("a.txt", strings.Repeat("a ", 3<<19)), 413, map[string]any{"error": "too large"}},
		} {
			t.Run(test.name, func(t *testing.T) {
				got := s.upload(t, test.parts...)
				got.wantError(t, test.status, test.fields)
				if supported, _ := got.object(t)["supported"].([]any); (test.status == 422) != slices.Contains(supported, any(".md")) {
					t.Errorf("supported: %v", supported)
				}
				if test.status == 413 && !strings.Contains(string(got.body), "1048576") {
					t.Errorf("the limit is not named: %s", got.body)
				}
			})
		}
	})

	t.Run("Body", func(t *testing.T) {
		whole, contentType := form(t, file("a.txt", "The kiln is lit."))
		post := func(t *testing.T, body io.Reader, contentType string) answer {
			t.Helper()
			return s.do(t, http.MethodPost, "/api/v1/jobs", body, "Content-Type", contentType)
		}
		for name, test := range map[string]struct{ body, contentType string }{
			"NoMultipart":     {`{"note":"a"}`, "application/json"},
			"NoContentType":   {whole.String(), ""},
			"NoBoundary":      {whole.String(), "multipart/form-data"},
			"AnotherBoundary": {whole.String(), "multipart/form-data; boundary=other"},
			"CutOff":          {whole.String()[:whole.Len()-20], contentType},
			"CutOffInAHeader": {whole.String()[:70], contentType},
			"Empty":           {"", contentType},
			"Garbage":         {"\x00\xff--\r\n\r\n", contentType},
			"HeaderTooLong":   {"--b\r\n" + "X-A: " + strings.Repeat("b", 2_000_000) + "\r\nv\r\n--b--\r\n", "multipart/form-data; boundary=b"},
		} {
			t.Run(name, func(t *testing.T) {
				post(t, strings.NewReader(test.body), test.contentType).wantError(t, 400, map[string]any{"error": "invalid request"})
			})
		}
		t.Run("UPL03ChunkedFarOver", func(t *testing.T) {
			head := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n"
			body := io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, 8<<20), strings.NewReader("\r\n--b--\r\n"))
			post(t, body, "multipart/form-data; boundary=b").wantError(t, 413, map[string]any{"error": "too large"})
		})
		t.Run("UPL03RefusedBeforeTheBodyIsSent", func(t *testing.T) {
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
			must(t, err)
			defer func() { _ = conn.Close() }()
			must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
			_, err = fmt.Fprintf(conn, "POST /api/v1/jobs HTTP/1.1\r\nHost: kb\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", 3<<20)
			must(t, err)
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil || !strings.Contains(line, "413") {
				t.Errorf("got %q, %v", line, err)
			}
		})
		t.Run("TheCallerGoesAwayInTheMiddle", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			reader, writer := io.Pipe()
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/v1/jobs", reader)
			must(t, err)
			request.Header.Set("Content-Type", contentType)
			go func() {
				_, _ = writer.Write(whole.Bytes()[:whole.Len()-10])
				time.Sleep(50 * time.Millisecond)
				cancel()
				_ = writer.Close()
			}()
			if response, err := s.client.Do(request); err == nil {
				_ = response.Body.Close()
				t.Errorf("got %s", response.Status)
			}
		})
	})

	t.Run("NothingIsStoredAndTheNextRequestWorks", func(t *testing.T) {
		s.wantNothing(t)
		s.upload(t, note("", "The kiln is lit.")...).want(t, 202)
	})
}

func TestUploadNoteLimit(t *testing.T) {
	t.Parallel()
	s := start(t, config{NoWorker: true})
	got := s.upload(t, note("", strings.Repeat("a long note ", 1_700_000))...)
	got.wantError(t, 413, map[string]any{"error": "too large"})
	if !strings.Contains(string(got.body), "as a file") {
		t.Errorf("no way out is named: %s", got.body)
	}
	s.wantNothing(t)
}

func TestUploadAccepted(t *testing.T) {
	t.Parallel()
	s := start(t, config{MaxUpload: 6 << 20})

	t.Run("UPL03ExactlyTheLimit", func(t *testing.T) {
		t.Parallel()
		small := start(t, config{NoWorker: true, MaxUpload: 1 << 20})
		small.upload(t, file("a.txt", strings.Repeat("a ", 1<<19))...).want(t, 202)
		small.upload(t, note("", strings.Repeat("b ", 1<<19))...).want(t, 202)
	})

	t.Run("FiveMegabyteNote", func(t *testing.T) {
		t.Parallel()
		s := start(t, config{})
		var text strings.Builder
		for i := 0; text.Len() < 5_000_000; i++ {
			fmt.Fprintf(&text, "Correspondence%06d acknowledges administrative responsibilities throughout neighbourhoods.\n", i)
		}
		text.WriteString("The last entry names the Quillon lot.")
		job := s.ingest(t, note("Ledger", text.String())...)
		if got := s.ask(t, "Quillon", `,"fts_only":true`); len(got.Results) != 1 || got.Results[0].DocumentID != job["document_id"] {
			t.Errorf("got %v", got.titles())
		}
	})

	t.Run("UPL05BlankInUnicodeFailsAsAJob", func(t *testing.T) {
		t.Parallel()
		accepted := s.upload(t, file("whitespace.txt", " \t\r\n\u00a0\u200b\n\n")...).want(t, 202).object(t)
		job := s.wait(t, accepted["job_id"].(string))
		if job["status"] != "failed" || job["error_code"] != "empty" || job["error"] == "" || job["document_id"] != nil || job["attempts"] != 1.0 {
			t.Errorf("got %v", job)
		}
	})

	t.Run("NamesOfManyForms", func(t *testing.T) {
		t.Parallel()
		for i, test := range []struct{ name, header, want string }{
			{"UPL01Unicode", `filename="価格 表 – größe.txt"`, "価格 表 – größe.txt"},
			{"UPL01RFC5987", `filename*=UTF-8''%E4%BE%A1%E6%A0%BC.txt`, "価格.txt"},
			{"UPL01QuoteAndNewline", `filename="a\"b%0D%0AX-Evil: 1.txt"`, `a"b%0D%0AX-Evil: 1.txt`},
			{"UPL02Traversal", `filename="../../outside.txt"`, "outside.txt"},
			{"UPL02Backslashes", `filename="..\\..\\outside.txt"`, "outside.txt"},
			{"UPL02Absolute", `filename="/etc/passwd.txt"`, "passwd.txt"},
			{"UPL02Drive", `filename="C:\\temp\\x.txt"`, "x.txt"},
			{"Hidden", `filename=". .hidden.txt"`, "hidden.txt"},
			{"InvalidUTF8", "filename=\"a\xffb.txt\"", "a\uFFFDb.txt"},
			{"VeryLong", `filename="` + strings.Repeat("é", 400) + `.txt"`, strings.Repeat("é", 125) + ".txt"},
		} {
			t.Run(test.name, func(t *testing.T) {
				body := fmt.Sprintf("--b\r\nContent-Disposition: form-data; name=\"file\"; %s\r\nContent-Type: text/plain\r\n\r\nThe Redgrave kiln is lit on Fridays. %d\r\n--b--\r\n", test.header, i)
				got := s.do(t, http.MethodPost, "/api/v1/jobs", strings.NewReader(body), "Content-Type", "multipart/form-data; boundary=b").want(t, 202).object(t)
				if got["filename"] != test.want {
					t.Errorf("got %q, want %q", got["filename"], test.want)
				}
				document := s.document(t, s.wait(t, got["job_id"].(string)))
				if document["original_filename"] != test.want || document["has_file"] != true {
					t.Errorf("got %v", document)
				}
			})
		}
		for _, key := range s.files(t, "") {
			if !slices.Contains([]string{"documents", "staging", "failed"}, strings.Split(key, "/")[0]) {
				t.Errorf("written to %s", key)
			}
		}
	})

	t.Run("DAT01NULAndBrokenBytes", func(t *testing.T) {
		t.Parallel()
		nul := s.ingest(t, file("nul.txt", "Pump log, unit 7\x00\x00 bearing noise at 40 Hz\r\nsecond line \x0c third \x1b[31mred\x1b[0m line\n")...)
		broken := s.ingest(t, file("broken.txt", "Caf\xe9 inventory: 12 cups \xff\xfe\n")...)
		noted := s.ingest(t, part{"note", "", "A note\x00 about the Zirkel\xff gasket."}, part{"title", "", "a\x00b\xffc"}, part{"tags", "", "x\x00y,\xff"})
		for query, job := range map[string]map[string]any{"bearing noise": nul, "café inventory": broken, "Zirkel gasket": noted} {
			if got := s.ask(t, query, `,"fts_only":true`); len(got.Results) == 0 || got.Results[0].DocumentID != job["document_id"] || strings.ContainsRune(got.Results[0].Text, 0) {
				t.Errorf("%s: got %v", query, got.titles())
			}
		}
		if document := s.document(t, noted); document["title"] != "ab\uFFFDc" || fmt.Sprint(document["tags"]) != "[xy \uFFFD]" {
			t.Errorf("got %v", document)
		}
		if n := s.count(t, `chunks WHERE content ~ '[\x01-\x08\x0b-\x1f]'`); n != 0 {
			t.Errorf("%d chunks with control characters", n)
		}
	})

	t.Run("TheOriginalIsKeptByteForByte", func(t *testing.T) {
		t.Parallel()
		content := "\ufeffpart,place\r\nE-77,sh\xe9lf\r\n"
		document := s.document(t, s.ingest(t, file("t.CSV", content)...))
		kept, err := s.bucket.ReadAll(t.Context(), "documents/"+document["content_hash"].(string)+".csv")
		if err != nil || !bytes.Equal(kept, []byte(content)) || document["size"] != float64(len(content)) {
			t.Errorf("%v: %q, %v", document, kept, err)
		}
	})
}
