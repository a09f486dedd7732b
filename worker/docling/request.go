package docling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const maxDetail = 1 << 20 // Bytes of an answer that holds no document.

// fault is an ErrUnreachable with its reason.
type fault struct {
	message   string
	status    int  // 0 where no answer came.
	temporary bool // Whether to ask again at once.
}

func (f *fault) Error() string { return ErrUnreachable.Error() + ": " + f.message }

func (f *fault) Unwrap() error { return ErrUnreachable }

// request is what is asked of docling-serve.
type request struct {
	method, path string
	form         *form // Nil for none.
}

// do sends a request and has the answer read, of which no more than limit bytes may come. Errors are faults, apart from
// errTooLong and errTooManyNodes.
func (c *Client) do(ctx context.Context, r request, limit int64, read func(*json.Decoder) error) error {
	response, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return c.refusal(response)
	}

	body := &limitedReader{reader: response.Body, left: limit}
	err = read(json.NewDecoder(body))
	switch {
	case err == nil || errors.Is(err, errTooManyNodes):
		return err
	case errors.Is(body.err, errTooLong):
		return errTooLong
	case body.err != nil && !errors.Is(body.err, io.EOF):
		return &fault{message: "its answer broke off: " + reason(body.err), temporary: true}
	default:
		return &fault{message: "its answer is not what docling-serve answers: " + oneLine(err.Error())}
	}
}

func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, nil)
	if err != nil {
		return nil, &fault{message: "its URL can't be read"}
	}
	if r.form != nil {
		httpRequest.Header.Set("Content-Type", r.form.contentType)
		httpRequest.ContentLength = r.form.size()
		httpRequest.GetBody = r.form.body
		if httpRequest.Body, err = r.form.body(); err != nil {
			return nil, err
		}
	}
	httpRequest.Header.Set("Accept", "application/json")
	if c.key != "" {
		httpRequest.Header.Set("X-Api-Key", c.key)
	}
	response, err := c.http.Do(httpRequest)
	if err != nil {
		return nil, &fault{message: reason(err), temporary: true}
	}

	return response, nil
}

// refusal turns an answer that is no success into an error.
func (c *Client) refusal(response *http.Response) error {
	f := &fault{status: response.StatusCode}
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f.message = fmt.Sprintf("it refuses the key (%d); set the right one", code)
		if c.key == "" {
			f.message = fmt.Sprintf("it asks for a key (%d); set it", code)
		}

		return f
	case code >= 300 && code < 400:
		f.message = fmt.Sprintf("it answers with a redirect (%d), which is not followed; set its URL to where it really is", code)

		return f
	case code >= 500 || code == http.StatusTooManyRequests:
		f.temporary = true
	}
	f.message = fmt.Sprintf("it answered %d", response.StatusCode)
	if detail := c.detail(response.Body); detail != "" {
		f.message += ": " + detail
	}

	return f
}

// detail reads why a request was refused, empty where the answer doesn't say so.
func (c *Client) detail(body io.Reader) string {
	var answer struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.NewDecoder(io.LimitReader(body, maxDetail)).Decode(&answer) != nil {
		return ""
	}
	var text string
	var list []struct {
		Msg string `json:"msg"`
	}
	if json.Unmarshal(answer.Detail, &text) != nil && json.Unmarshal(answer.Detail, &list) == nil && len(list) > 0 {
		text = list[0].Msg
	}
	if c.key != "" {
		text = strings.ReplaceAll(text, c.key, "…")
	}

	return oneLine(text)
}

// reason is a network's error without the address, which the operator knows.
func reason(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}

	return oneLine(err.Error())
}

// errTooLong says that an answer is longer than allowed.
var errTooLong = errors.New("the answer is too long")

// limitedReader fails once more than left bytes come, and keeps the error, which decoders hide.
type limitedReader struct {
	reader io.Reader
	left   int64
	err    error
}

func (r *limitedReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.reader.Read(p)
	if r.left -= int64(n); r.left < 0 {
		n, err = 0, errTooLong
	}
	r.err = err

	return n, err
}
