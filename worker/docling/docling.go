// Package docling has a docling-serve read PDF files and images: with its models it recognises the text of scans, the
// order of columns and the cells of tables. It owns the requests and the way from a DoclingDocument to blocks; when to use
// it instead of the parsers in the process is left to its caller. Its invariant: a conversion ends within Options.Timeout,
// with a document that keeps the rules of package parse or an error that says whether the file or the service is to blame.
package docling

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kb-search/kb/worker/parse"
)

const (
	defaultTimeout  = 10 * time.Minute
	defaultPollWait = 5 * time.Second

	maxAnswer = 256 << 20        // Bytes of a converted document, as JSON.
	patience  = 30 * time.Second // How much longer than PollWait an answer about a task may take.
)

// ErrUnreachable says that docling-serve can't be reached or can't work now: the network, a wrong key, an overload or an
// answer that is not docling-serve's. The file may well be fine, so it is worth trying again.
var ErrUnreachable = errors.New("docling-serve can't be used")

// Options says where docling-serve is and how long it may take.
type Options struct {
	// URL is the address of docling-serve, such as "http://localhost:5001"; it may have a path, which is put in front of
	// the API's own.
	URL string
	// Key is sent as X-Api-Key. Defaults to none.
	Key string
	// Timeout limits the time for one file, waiting for its turn included. Defaults to 10 minutes.
	Timeout time.Duration
	// HTTP makes the requests; its redirects are not followed. Defaults to a client without a time limit of its own.
	HTTP *http.Client
	// PollWait is how long docling-serve holds back its answer while a file is not done. Defaults to 5 seconds.
	PollWait time.Duration
}

// Client converts files. It is safe for concurrent use.
type Client struct {
	base     string
	key      string
	timeout  time.Duration
	pollWait time.Duration
	http     *http.Client

	maxAnswer int64
	patience  time.Duration
}

// New returns a client. It sends nothing; the error is about the options.
func New(opt Options) (*Client, error) {
	base, err := baseURL(opt.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(opt.Key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("the key for docling-serve holds a line end or another control character; remove it")
	}
	if opt.Timeout <= 0 {
		opt.Timeout = defaultTimeout
	}
	if opt.PollWait <= 0 {
		opt.PollWait = defaultPollWait
	}
	client := &http.Client{}
	if opt.HTTP != nil {
		*client = *opt.HTTP
	}
	// A redirect would carry the key to wherever it points.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	return &Client{
		base: base, key: opt.Key, timeout: opt.Timeout, pollWait: opt.PollWait, http: client,
		maxAnswer: maxAnswer, patience: patience,
	}, nil
}

// baseURL checks an address and returns it without a slash at the end. Its errors don't repeat the address, which may hold
// a password.
func baseURL(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", errors.New("the URL of docling-serve can't be read; write it as in http://localhost:5001")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", errors.New("the URL of docling-serve must begin with http:// or https:// and name a host, as in http://localhost:5001")
	case u.User != nil:
		return "", errors.New("the URL of docling-serve must not hold a user name or password; set the key instead")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("the URL of docling-serve must not hold a ? or a #")
	}

	return strings.TrimRight(u.String(), "/"), nil
}

// Convert has a file read; data is not changed. The name's extension tells docling-serve what the file is. The document's
// type is "pdf" or "image"; pages that could not be read are told in its metadata as docling_errors. The error is a
// *parse.Error where the file is to blame: its Code is "password_required", "no_text_layer", "corrupt", "unsupported_type",
// "too_large" or "timeout". Otherwise it is ErrUnreachable or the context's.
func (c *Client) Convert(ctx context.Context, filename string, data []byte) (parse.Document, error) {
	file := newFile(filename, data)
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, errors.New("the time for one file is over"))
	defer cancel()

	job := &job{client: c, file: file}
	doc, err := job.run(limited)
	var own *parse.Error
	var refused *fault
	switch {
	case err == nil || errors.As(err, &own):
		return doc, err
	case ctx.Err() != nil:
		return parse.Document{}, fmt.Errorf("convert with docling-serve: %w", context.Cause(ctx))
	case limited.Err() != nil && job.working:
		return parse.Document{}, file.errTimeout()
	case limited.Err() != nil:
		return parse.Document{}, &fault{message: fmt.Sprintf("it did not begin with the file within %s", c.timeout)}
	case errors.As(err, &refused) && refused.status == http.StatusRequestEntityTooLarge:
		return parse.Document{}, file.errTooLarge()
	default:
		return parse.Document{}, err
	}
}
