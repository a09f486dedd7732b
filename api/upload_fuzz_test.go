package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzUpload sends any bytes as a multipart form, any text as its Content-Type: the answer is never an error of the server's
// own, and always JSON.
func FuzzUpload(f *testing.F) {
	const boundary = "multipart/form-data; boundary=b"
	part := func(header, value string) string {
		return "--b\r\nContent-Disposition: form-data; " + header + "\r\n\r\n" + value + "\r\n"
	}
	f.Add(boundary, []byte(part(`name="note"`, "Change the oil.")+part(`name="title"`, "Oil")+part(`name="tags"`, "a,b:c")+"--b--\r\n"))
	f.Add(boundary, []byte(part(`name="file"; filename="a.md"`, "# A\n\ntext")+part(`name="path"`, "/x/../y.md")+part(`name="metadata"`, `{"a":[1,null]}`)+"--b--\r\n"))
	f.Add(boundary, []byte(part(`name="file"; filename="a.pdf"`, "%PDF-1.7")+part(`name="chunk_size"`, "40")+part(`name="chunk_overlap"`, "9")+"--b--\r\n"))
	f.Add(boundary, []byte(part(`name="file"; filename*=UTF-8''%E4%BE%A1.txt`, "x")+part(`name="on_conflict"`, "reject")+part(`name="doc_type"`, "data")))
	f.Add("multipart/form-data; boundary=\"a b\"", []byte("--a b\r\n\r\n\r\n--a b--"))
	f.Add("application/json", []byte(`{"note": "x"}`))

	s := start(f, config{NoWorker: true})
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		request := httptest.NewRequest(http.MethodPost, "/api/v1/jobs", bytes.NewReader(body))
		request.Header["Content-Type"] = []string{contentType}
		response := httptest.NewRecorder()
		s.api.ServeHTTP(response, request)
		if response.Code >= http.StatusInternalServerError || !json.Valid(response.Body.Bytes()) {
			t.Fatalf("%d %s", response.Code, response.Body)
		}
	})
}
