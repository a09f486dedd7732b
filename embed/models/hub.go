package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kb-search/kb/embed"
)

// attempts is how often a request is made before an answer of 429 or 5xx, or a cut connection, is final.
const attempts = 4

// hub is a client of the model hub: files at <endpoint>/<owner>/<name>/resolve/main/<path>.
type hub struct {
	endpoint string
	token    string
	client   *http.Client
	progress io.Writer
	// pause is the first wait before a request is made again; each later one is twice as long.
	pause time.Duration
	// stall is how long a download may stand still.
	stall time.Duration
}

func newHub(options Options) *hub {
	client := &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 15 * time.Second,
		IdleConnTimeout:       5 * time.Second,
		ForceAttemptHTTP2:     true,
	}}
	if options.HTTPClient != nil {
		own := *options.HTTPClient
		client = &own
	}
	client.CheckRedirect = checkRedirect
	return &hub{
		endpoint: strings.TrimRight(options.HubEndpoint, "/"), token: options.HubToken, client: client,
		progress: options.Progress, pause: time.Second, stall: time.Minute,
	}
}

// checkRedirect keeps the token on the host that it is for. (The standard library would pass it on to another port and
// to subdomains.)
func checkRedirect(request *http.Request, via []*http.Request) error {
	if request.Method == http.MethodHead {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
		return fmt.Errorf("refused a redirect from https to %s", request.URL.Scheme)
	}
	if request.URL.Host != via[0].URL.Host {
		request.Header.Del("Authorization")
	}
	return nil
}

// pull fills dir from a repository and returns the address that it came from.
func (h *hub) pull(ctx context.Context, files embed.HubFiles, dir string) (string, error) {
	for _, file := range []struct{ path, name string }{{files.Tokenizer, embed.TokenizerFile}, {files.Model, embed.ModelFile}} {
		address, err := url.JoinPath(h.endpoint, files.Repo, "resolve", "main", file.path)
		if err != nil {
			return "", fmt.Errorf("hub: %w", err)
		}
		if err := h.file(ctx, address, filepath.Join(dir, file.name)); err != nil {
			return "", fmt.Errorf("hub: %s of %s: %w", file.path, files.Repo, err)
		}
	}
	return url.JoinPath(h.endpoint, files.Repo)
}

// remote is what the hub says of a file before it is read.
type remote struct {
	// etag names the content; empty when the hub does not say.
	etag string
	// size is in bytes; -1 when the hub does not say.
	size int64
}

// describe asks for a file's headers. The hub answers with the content's own digest and size in X-Linked-Etag and
// X-Linked-Size, usually beside a redirect to where the bytes are, whose ETag may be anything.
func (h *hub) describe(ctx context.Context, address string) (remote, error) {
	for range 5 {
		response, err := h.do(ctx, http.MethodHead, address, nil)
		if err != nil {
			return remote{}, err
		}
		response.Body.Close()
		r := remote{etag: response.Header.Get("X-Linked-Etag"), size: response.ContentLength}
		if size, err := strconv.ParseInt(response.Header.Get("X-Linked-Size"), 10, 64); err == nil {
			r.size = size
		} else if response.StatusCode >= 300 {
			r.size = -1
		}
		next, err := response.Location()
		if response.StatusCode < 300 || r.etag != "" || err != nil || next.Host != response.Request.URL.Host {
			if r.etag == "" {
				r.etag = response.Header.Get("ETag")
			}
			r.etag = strings.Trim(strings.TrimPrefix(r.etag, "W/"), `"`)
			return r, nil
		}
		address = next.String()
	}
	return remote{}, errors.New("the hub redirects in a circle")
}

// do makes a request, again after an answer that asks for patience. A host that cannot be reached is an error at once.
func (h *hub) do(ctx context.Context, method, address string, header http.Header) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err != nil {
			return nil, err
		}
		for name, values := range header {
			request.Header[name] = values
		}
		request.Header.Set("User-Agent", "kb")
		request.Header.Set("Accept-Encoding", "identity") // a compressed answer has another size and ETag
		if h.token != "" {
			request.Header.Set("Authorization", "Bearer "+h.token)
		}
		response, err := h.client.Do(request)
		if err != nil {
			return nil, err
		}
		if response.StatusCode < 400 || response.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return response, nil
		}
		response.Body.Close()
		patience := response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500
		if !patience || attempt == attempts {
			return nil, statusError(response.StatusCode)
		}
		wait := h.pause << (attempt - 1)
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
			wait = min(time.Duration(seconds)*time.Second, 30*time.Second)
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// statusError says what an answer means for the one who configures kb.
func statusError(status int) error {
	switch status {
	case http.StatusUnauthorized:
		return errors.New("the hub wants a token (401): the model does not exist or is not public; " +
			"set HF_TOKEN to a token that may read it")
	case http.StatusForbidden:
		return errors.New("the hub refuses (403): the model is gated; " +
			"accept its terms on the hub and set HF_TOKEN to a token of that account")
	case http.StatusNotFound:
		return errors.New("the hub does not have it (404): check the model's name and HF_ENDPOINT")
	case http.StatusTooManyRequests:
		return errors.New("the hub is asked too often (429): try later, or set HF_TOKEN")
	}
	return fmt.Errorf("the hub answers %d %s", status, http.StatusText(status))
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// file downloads one file to path unless it is there already.
func (h *hub) file(ctx context.Context, address, path string) error {
	r, err := h.describe(ctx, address)
	if err != nil {
		return err
	}
	if len(checksums(r)) > 0 && check(path, r) == nil {
		return nil
	}
	d := download{hub: h, address: address, remote: r, path: path, part: path + ".part"}
	if err := d.run(ctx); err != nil {
		return err
	}
	if err := os.Rename(d.part, path); err != nil {
		return err
	}
	_ = os.Remove(d.stateFile()) // of no use any more, and harmless
	return nil
}
