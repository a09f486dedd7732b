// Package client talks to a kb server for the command line. It owns the requests of kb ingest, kb search and kb health,
// and nothing of what they print.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Client is a server's address and the key for it.
type Client struct {
	BaseURL string
	APIKey  string
	// Project is the project's id, for callers who have several; empty for the one that the server takes.
	Project string
	HTTP    *http.Client
}

// New makes a client. Uploads take as long as they take, so it has no time limit of its own; contexts do that.
func New(baseURL, apiKey string) *Client {
	return &Client{BaseURL: strings.TrimRight(baseURL, "/"), APIKey: apiKey, HTTP: &http.Client{}}
}

// Error is an answer that is no success.
type Error struct {
	Status     int    `json:"-"`
	Short      string `json:"error"`
	Message    string `json:"message"`
	DocumentID string `json:"document_id"`
	JobID      string `json:"job_id"`
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the server answered %d", e.Status)
	}
	return e.Message
}

// Job is what the command line shows of a job.
type Job struct {
	JobID      string  `json:"job_id"`
	Status     string  `json:"status"`
	Error      *string `json:"error"`
	Warning    *string `json:"warning"`
	DocumentID *string `json:"document_id"`
	ChunkCount *int    `json:"chunk_count"`
}

// Finished says whether the job has ended.
func (j Job) Finished() bool { return j.Status != "queued" && j.Status != "processing" }

// Result is what the command line shows of a search result.
type Result struct {
	DocumentID string   `json:"document_id"`
	Title      string   `json:"title"`
	Section    string   `json:"section"`
	Text       string   `json:"text"`
	Score      float64  `json:"score"`
	Tags       []string `json:"tags"`
	Explain    struct {
		FTSScore *float64 `json:"fts_score"`
		FTSRank  *int64   `json:"fts_rank"`
		VecScore *float64 `json:"vec_score"`
		VecRank  *int64   `json:"vec_rank"`
		Bonus    float64  `json:"bonus"`
	} `json:"explain"`
}

// Answer is a search's answer.
type Answer struct {
	Status       string   `json:"status"`
	Banner       *string  `json:"banner"`
	TotalMatches int      `json:"total_matches"`
	Degraded     []string `json:"degraded"`
	Results      []Result `json:"results"`
}

// Upload sends a file and gives the job that takes it up. A duplicate is an *Error of status 409.
func (c *Client) Upload(ctx context.Context, path string, fields url.Values) (Job, error) {
	file, err := os.Open(path)
	if err != nil {
		return Job{}, err
	}
	defer func() { _ = file.Close() }()
	body, form := io.Pipe()
	writer := multipart.NewWriter(form)
	go func() { form.CloseWithError(writeForm(writer, file, fields)) }()
	defer func() { _ = body.Close() }()
	var job Job
	err = c.do(ctx, http.MethodPost, "/api/v1/jobs", writer.FormDataContentType(), body, &job)
	return job, err
}

func writeForm(writer *multipart.Writer, file *os.File, fields url.Values) error {
	for name, values := range fields {
		for _, value := range values {
			if err := writer.WriteField(name, value); err != nil {
				return err
			}
		}
	}
	part, err := writer.CreateFormFile("file", filepath.Base(file.Name()))
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, file); err != nil {
		return err
	}
	return writer.Close()
}

// Job gives a job's state.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	var job Job
	err := c.do(ctx, http.MethodGet, "/api/v1/jobs/"+url.PathEscape(id), "", nil, &job)
	return job, err
}

// Reindex is what the command line shows of a reindex.
type Reindex struct {
	State string  `json:"state"`
	Error *string `json:"error"`
	Done  int     `json:"done"`
	Total int     `json:"total"`
	Space struct {
		Model     string `json:"model"`
		Precision string `json:"precision"`
	} `json:"space"`
}

// StartReindex has all chunks embedded anew, or the previous model put back.
func (c *Client) StartReindex(ctx context.Context, rollback bool) (Reindex, error) {
	path := "/api/v1/reindex"
	if rollback {
		path += "/rollback"
	}
	var reindex Reindex
	err := c.do(ctx, http.MethodPost, path, "", nil, &reindex)
	return reindex, err
}

// Reindex gives the state of the last reindex.
func (c *Client) Reindex(ctx context.Context) (Reindex, error) {
	var reindex Reindex
	err := c.do(ctx, http.MethodGet, "/api/v1/reindex", "", nil, &reindex)
	return reindex, err
}

// Search asks a query; request is the body.
func (c *Client) Search(ctx context.Context, request map[string]any) (Answer, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	err = c.do(ctx, http.MethodPost, "/api/v1/search", "application/json", bytes.NewReader(body), &answer)
	return answer, err
}

// Health gives nil when the server is ready.
func (c *Client) Health(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/api/v1/health", "", nil, &struct{}{})
}

func (c *Client) do(ctx context.Context, method, path, contentType string, body io.Reader, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.BaseURL+path, body)
	if err != nil {
		return fmt.Errorf("read the server's address %s: %w", c.BaseURL, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if c.Project != "" {
		request.Header.Set("X-Project-Id", c.Project)
	}
	if c.APIKey != "" {
		request.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return fmt.Errorf("reach the server (KB_URL names another one): %w", errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		failure := &Error{Status: response.StatusCode}
		_ = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(failure)
		failure.Status = response.StatusCode
		return failure
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}
