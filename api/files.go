package api

import (
	"context"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"gocloud.dev/gcerrors"
)

func (s *Server) registerFiles(api huma.API) {
	binary := map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	responses := map[string]*huma.Response{
		"200": {Description: "The whole file", Content: binary},
		"206": {Description: "The ranges that were asked for", Content: binary},
		"304": {Description: "The file that the caller has is the same"},
	}
	register(s, api, operation{
		ID: "downloadDocument", Method: http.MethodGet, Path: "/api/v1/documents/{document_id}/file", Tag: "Documents",
		Summary:     "Download a document's original file",
		Description: "Answers byte ranges. The file always comes as an attachment, so that no browser shows it as a page of the server's.",
		Action:      "files:DownloadFile", Errors: []int{http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable},
		Responses: responses,
	}, s.documentFile)
	register(s, api, operation{
		ID: "downloadDocumentVersion", Method: http.MethodGet, Path: "/api/v1/documents/{document_id}/versions/{version}/file", Tag: "Documents",
		Summary: "Download the original file of an earlier version",
		Action:  "files:DownloadFile", Errors: []int{http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable},
		Responses: maps.Clone(responses),
	}, s.versionFile)
}

func (s *Server) documentFile(ctx context.Context, in *documentInput) (*huma.StreamResponse, error) {
	row, err := s.findDocument(ctx, in.DocumentID)
	if err != nil {
		return nil, err
	}
	return s.download(ctx, original{path: row.StoredPath, filename: row.OriginalFilename, hash: row.ContentHash, written: row.CreatedAt})
}

func (s *Server) versionFile(ctx context.Context, in *versionGetInput) (*huma.StreamResponse, error) {
	row, err := s.findVersion(ctx, in)
	if err != nil {
		return nil, err
	}
	return s.download(ctx, original{path: row.StoredPath, filename: row.OriginalFilename, hash: row.ContentHash, written: row.CreatedAt})
}

// original is a file to be downloaded.
type original struct {
	path, filename string
	hash           []byte
	written        time.Time
}

func (s *Server) download(ctx context.Context, file original) (*huma.StreamResponse, error) {
	reader, err := s.Bucket.NewReader(ctx, file.path, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, errNotFound("file")
	}
	if err != nil {
		return nil, fmt.Errorf("open the original %s: %w", file.path, err)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		defer func() { _ = reader.Close() }()
		r, w := humago.Unwrap(ctx)
		header := w.Header()
		header.Set("Content-Type", contentType(file.filename))
		header.Set("Content-Disposition", attachment(file.filename))
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("ETag", fmt.Sprintf(`"%x"`, file.hash))
		http.ServeContent(&rangeWriter{ResponseWriter: w, request: r}, r, "", file.written, reader)
	}}, nil
}

// rangeWriter gives the refusal of a range the form of every other error.
type rangeWriter struct {
	http.ResponseWriter
	request *http.Request
	refused bool
}

// WriteHeader implements http.ResponseWriter.
func (w *rangeWriter) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.refused = true
	w.Header().Del("Content-Disposition")
	(&Error{status: status, Short: "range not satisfiable", Code: "range_not_satisfiable",
		Message: "The file is shorter than the range that was asked for."}).write(w.ResponseWriter, w.request)
}

// Write implements io.Writer; the plain text that follows a refusal is dropped.
func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// contentType goes by the file's extension; what has none is bytes.
func contentType(filename string) string {
	switch extension := strings.ToLower(path.Ext(filename)); extension {
	case ".md", ".markdown", ".mdx":
		return "text/markdown; charset=utf-8"
	case "":
		return "application/octet-stream"
	default:
		if known := mime.TypeByExtension(extension); known != "" {
			return known
		}
		return "application/octet-stream"
	}
}

// attachment is a Content-Disposition for any name (RFC 6266): an ASCII form for old clients, and the name itself.
func attachment(filename string) string {
	ascii := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || unicode.IsControl(r) || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, filename)
	encoded := strings.ReplaceAll(url.QueryEscape(filename), "+", "%20")
	return fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, ascii, encoded)
}
