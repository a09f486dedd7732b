// Package remote uses models that a server runs: embeddings as OpenAI's API has them, reranking as TEI, Jina and Cohere have it.
// It owns requests, patience and the check of every answer; what runs behind the address is left to the operator. Its
// invariant: what it returns is complete and finite, whatever the server sends.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/kb-search/kb/embed"
)

const (
	// trips is how many requests of a search may fail in a row before no further is made.
	trips = 3
	// rest is how long none is made then. One request that comes afterwards finds out whether the server is back.
	rest = 5 * time.Second
	// maxReason is how many bytes of a server's words an error has.
	maxReason = 200
	// maxRefusal is how many bytes of a refusal are read.
	maxRefusal = 1 << 16
)

// client sends requests to one address.
type client struct {
	address, key string
	timeout      time.Duration
	http         *http.Client
	breaker      *gobreaker.CircuitBreaker[struct{}]
}

// newClient checks an address, which goes by the variable's name in errors; these don't repeat it, because it may hold a
// password.
func newClient(variable, address, key string, timeout time.Duration, base *http.Client) (*client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s can't be read: write it as in http://localhost:8080/path", variable)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%s must begin with http:// or https:// and name a host", variable)
	case u.User != nil:
		return nil, fmt.Errorf("%s must not hold a user name or password: set the key instead", variable)
	case u.Fragment != "":
		return nil, fmt.Errorf("%s must not hold a #", variable)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return nil, fmt.Errorf("the key for %s holds a line end or another control character: remove it", variable)
	}
	c := &client{address: u.String(), key: key, timeout: timeout, http: &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     time.Minute,
		ForceAttemptHTTP2:   true,
	}}}
	if base != nil {
		*c.http = *base
	}
	// A redirect would carry the key, and texts, to wherever it points.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.breaker = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      rest,
		ReadyToTrip:  func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= trips },
		IsSuccessful: func(err error) bool { return err == nil || answered(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) }, // the caller went away
	})
	return c, nil
}

// fault is what went wrong between here and the server.
type fault struct {
	message string
	// status is that of the answer, 0 where none came.
	status int
	// temporary says that it may well go right later.
	temporary bool
	// late says that the server had all its time. To ask again would only add to what it has to do.
	late bool
	// after is how long the server asks to be left alone, 0 when it does not say.
	after time.Duration
}

func (f *fault) Error() string { return f.message }

// Is makes a temporary fault an embed.ErrUnavailable.
func (f *fault) Is(target error) bool { return f.temporary && target == embed.ErrUnavailable }

// answered reports that the server is there and refuses this request only, or asks to slow down.
func answered(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.status >= 300 && f.status < 500
}

// guarded makes a request that a search waits for, unless the last ones have failed: then it fails at once.
func (c *client) guarded(request func() error) error {
	_, err := c.breaker.Execute(func() (struct{}, error) { return struct{}{}, request() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return &fault{message: fmt.Sprintf("it failed %d times in a row and is not asked for up to %s", trips, rest), temporary: true}
	}
	return err
}

// post sends question as JSON and reads the answer, at most limit bytes, into answer. Errors are faults, or ctx's.
func (c *client) post(ctx context.Context, question any, limit int64, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	err = c.exchange(within, body, limit, answer)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case within.Err() != nil:
		return &fault{message: fmt.Sprintf("it did not answer within %s", c.timeout), temporary: true, late: true}
	default:
		return err
	}
}

func (c *client) exchange(ctx context.Context, body []byte, limit int64, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "kb")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return &fault{message: "it can't be reached: " + reason(err), temporary: true}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return c.refusal(response)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return &fault{message: "its answer broke off: " + reason(err), temporary: true}
	case int64(len(data)) > limit:
		return &fault{message: fmt.Sprintf("its answer is longer than %d bytes", limit)}
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return &fault{message: "its answer is not what this API answers: " + oneLine(err.Error())}
	}
	return nil
}

// refusal turns an answer that is no success into a fault.
func (c *client) refusal(response *http.Response) error {
	f := &fault{status: response.StatusCode}
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f.message = fmt.Sprintf("it refuses the key (%d): set the right one", code)
		if c.key == "" {
			f.message = fmt.Sprintf("it asks for a key (%d): set it", code)
		}
		return f
	case code >= 300 && code < 400:
		f.message = fmt.Sprintf("it answers with a redirect (%d), which is not followed: set its address to where it really is", code)
		return f
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		f.temporary = true
		f.after = retryAfter(response.Header.Get("Retry-After"), time.Now())
	}
	f.message = fmt.Sprintf("it answers %d", response.StatusCode)
	if detail := c.detail(response.Body); detail != "" {
		f.message += ": " + detail
	}
	return f
}

// longestRetryAfter is longer than anybody waits; a date of another age must not overflow.
const longestRetryAfter = time.Hour

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return min(max(date.Sub(now), 0), longestRetryAfter)
	}
	return 0
}

// detail reads why a request was refused, from the places where servers say so; empty where this one does not.
func (c *client) detail(body io.Reader) string {
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	data, err := io.ReadAll(io.LimitReader(body, maxRefusal))
	if err != nil || json.Unmarshal(data, &answer) != nil {
		return ""
	}
	for _, field := range []json.RawMessage{answer.Error, answer.Message, answer.Detail} {
		var text string
		var object struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(field, &text) != nil && json.Unmarshal(field, &object) == nil {
			text = object.Message
		}
		if text != "" {
			if c.key != "" {
				text = strings.ReplaceAll(text, c.key, "…")
			}
			return oneLine(text)
		}
	}
	return ""
}

func (c *client) close() { c.http.CloseIdleConnections() }

// reason is a network's error without the address, which the operator knows.
func reason(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return oneLine(err.Error())
}

// oneLine makes a server's words fit into a message.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if len(s) <= maxReason {
		return s
	}
	return strings.TrimSpace(strings.ToValidUTF8(s[:maxReason], "")) + "…"
}
