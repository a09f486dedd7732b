package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/kb-search/kb/embed"
)

const (
	defaultTimeout = 30 * time.Second
	defaultBatch   = 32

	// firstPause is the wait before the second attempt, give or take a half; each later one is twice as long.
	firstPause = 500 * time.Millisecond
	// longestPause is how long a server that asks to be left alone is waited for.
	longestPause = time.Minute

	// specialTokens are those that a model puts around a text.
	specialTokens = 2
	// maxAnswerPerText is far more bytes than the largest vectors take as JSON.
	maxAnswerPerText = 1 << 20
)

// effort is what is done for a text until it is given up.
type effort struct {
	attempts int
	// within bounds all attempts; 0 leaves them to the caller.
	within time.Duration
}

// A search waits for its query, and does without the semantic arm rather than long. An ingestion waits for a server to start
// again, and so does the opening.
var (
	queryEffort   = effort{attempts: 2, within: 3 * time.Second}
	passageEffort = effort{attempts: 5}
	openEffort    = effort{attempts: 5, within: 20 * time.Second}
)

// EmbedderOptions say which server to ask and for what.
type EmbedderOptions struct {
	// URL is the address of an API like OpenAI's, such as http://localhost:8080/v1: /embeddings is put behind it, or
	// /v1/embeddings when it has no path. One that ends in /embeddings is taken as it is.
	URL string
	// Key is sent as a bearer token. Defaults to none.
	Key string
	// Model describes the model. Its Name is sent to the server as it is written; its Window is needed. Texts are cut to it,
	// by an estimate. Dimensions are those that the server must give; 0 accepts any when the embedder is opened.
	Model embed.Model
	// Timeout bounds one request. Defaults to 30 seconds.
	Timeout time.Duration
	// Batch is the largest number of texts of one request. Defaults to 32.
	Batch int
	// HTTP makes the requests; its redirects are not followed. Defaults to a client of its own.
	HTTP *http.Client
}

// Validate says what is wrong with the options, without asking the server.
func (o EmbedderOptions) Validate() error {
	_, err := newEmbedder(o)
	return err
}

// Embedder is a model behind HTTP. It is safe for concurrent use and implements embed.Embedder.
//
// A request that fails for now is made again, after a wait that doubles, or as long as the server asks for: for passages four
// times, for queries once and within three seconds. One that takes too long is not. When three queries in a row have failed,
// others fail at once, and after five seconds one is tried.
type Embedder struct {
	client *client
	model  embed.Model
	space  embed.Space
	batch  int
	// random gives numbers from 0 to 1, for waits that are not all alike.
	random func() float64
}

var _ embed.Embedder = (*Embedder)(nil)

// Space names the space of a model behind HTTP. The address is no part of it, so that a server may move; two models must not
// go by one name.
func Space(model embed.Model) embed.Space {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", model.Name, model.QueryPrefix, model.PassagePrefix))
	return embed.Space{Model: model.Name, Precision: embed.Remote, SHA256: hex.EncodeToString(sum[:]), Dimensions: model.Dimensions}
}

// OpenEmbedder asks the server for the vector of a word, which tells the dimensions. Its error wraps embed.ErrUnavailable when
// the server can't be reached or can't answer now. The caller closes the embedder.
func OpenEmbedder(ctx context.Context, options EmbedderOptions) (*Embedder, error) {
	e, err := newEmbedder(options)
	if err != nil {
		return nil, err
	}
	vectors, err := e.request(ctx, openEffort, []string{e.model.PassagePrefix + "probe"})
	if err != nil {
		e.client.close()
		return nil, fmt.Errorf("ask the embedding server (KB_EMBEDDER_URL) for a vector of %s: %w", e.model.Name, err)
	}
	e.model.Dimensions = len(vectors[0])
	e.space = Space(e.model)
	return e, nil
}

// NewEmbedder makes an embedder whose dimensions are known already, without asking the server.
func NewEmbedder(options EmbedderOptions) (*Embedder, error) {
	if options.Model.Dimensions <= 0 {
		return nil, fmt.Errorf("the dimensions of %s are not known", options.Model.Name)
	}
	return newEmbedder(options)
}

func newEmbedder(options EmbedderOptions) (*Embedder, error) {
	model := options.Model
	room := model.Window - specialTokens - max(estimate(model.QueryPrefix), estimate(model.PassagePrefix))
	if model.Name == "" || room < 1 {
		return nil, fmt.Errorf("the model's description has no name, or a window of %d tokens", model.Window)
	}
	if options.Timeout <= 0 {
		options.Timeout = defaultTimeout
	}
	if options.Batch <= 0 {
		options.Batch = defaultBatch
	}
	c, err := newClient("KB_EMBEDDER_URL", endpoint(options.URL), options.Key, options.Timeout, options.HTTP)
	if err != nil {
		return nil, err
	}
	return &Embedder{client: c, model: model, space: Space(model), batch: options.Batch, random: rand.Float64}, nil
}

// endpoint completes an address; one that can't be read is left to newClient.
func endpoint(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	switch path := strings.TrimRight(u.Path, "/"); {
	case path == "":
		u.Path = "/v1/embeddings"
	case strings.HasSuffix(path, "/embeddings"):
		u.Path = path
	default:
		u.Path = path + "/embeddings"
	}
	u.RawPath = ""
	return u.String()
}

// Embed implements embed.Embedder. The error for a blank text wraps embed.ErrBlank; it is found before the server is asked.
// When the server can't be reached or can't answer now, the error wraps embed.ErrUnavailable.
func (e *Embedder) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	prefix := e.model.Prefix(kind)
	limit := e.model.Window - specialTokens - estimate(prefix)
	inputs := make([]string, len(texts))
	for i, text := range texts {
		if estimate(text) == 0 {
			return nil, fmt.Errorf("embed text %d of %d: %w", i+1, len(texts), embed.ErrBlank)
		}
		inputs[i] = prefix + cut(text, limit)
	}
	vectors := make([][]float32, 0, len(texts))
	for start := 0; start < len(inputs); start += e.batch {
		batch := inputs[start:min(start+e.batch, len(inputs))]
		var answer [][]float32
		embedBatch := func(effort effort) (err error) {
			answer, err = e.request(ctx, effort, batch)
			return err
		}
		var err error
		if kind == embed.Query {
			err = e.client.guarded(func() error { return embedBatch(queryEffort) })
		} else {
			err = embedBatch(passageEffort)
		}
		if err != nil {
			return nil, fmt.Errorf("embed texts %d to %d of %d by the server (KB_EMBEDDER_URL): %w", start+1, start+len(batch), len(inputs), err)
		}
		vectors = append(vectors, answer...)
	}
	return vectors, nil
}

// request has one batch embedded, again when it fails for now.
func (e *Embedder) request(ctx context.Context, effort effort, inputs []string) ([][]float32, error) {
	if effort.within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, effort.within,
			&fault{message: fmt.Sprintf("it did not answer within %s", effort.within), temporary: true, late: true})
		defer cancel()
	}
	pause := firstPause
	for attempt := 1; ; attempt++ {
		vectors, err := e.ask(ctx, inputs)
		var f *fault
		if err == nil || !errors.As(err, &f) || !f.temporary || f.late || attempt == effort.attempts {
			return vectors, err
		}
		wait := f.after + time.Duration((0.5+e.random())*float64(pause))
		pause *= 2
		if deadline, ok := ctx.Deadline(); wait > longestPause || ok && time.Until(deadline) <= wait {
			return nil, err // it would be in vain
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (e *Embedder) ask(ctx context.Context, inputs []string) ([][]float32, error) {
	question := struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}{e.model.Name, inputs}
	var answer struct {
		Data []struct {
			Index     *int       `json:"index"`
			Embedding []*float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := e.client.post(ctx, question, int64(len(inputs)+1)*maxAnswerPerText, &answer); err != nil {
		return nil, err
	}
	if len(answer.Data) != len(inputs) {
		return nil, &fault{message: fmt.Sprintf("it gives %d vectors for %d texts", len(answer.Data), len(inputs))}
	}
	vectors := make([][]float32, len(inputs))
	for _, item := range answer.Data {
		switch {
		case item.Index == nil || *item.Index < 0 || *item.Index >= len(inputs):
			return nil, &fault{message: "it gives a vector for none of the texts"}
		case vectors[*item.Index] != nil:
			return nil, &fault{message: fmt.Sprintf("it gives two vectors for text %d", *item.Index+1)}
		}
		vector, err := normalized(item.Embedding, e.model.Dimensions)
		if err != nil {
			return nil, err
		}
		vectors[*item.Index] = vector
	}
	return vectors, nil
}

// normalized checks a vector and makes it as long as 1; dimensions 0 accepts any number of them.
func normalized(numbers []*float32, dimensions int) ([]float32, error) {
	if len(numbers) == 0 || dimensions != 0 && len(numbers) != dimensions {
		return nil, &fault{message: fmt.Sprintf("it gives a vector of %d numbers, wanted %d: it runs another model", len(numbers), dimensions)}
	}
	var squares float64
	for _, x := range numbers {
		if x == nil {
			return nil, &fault{message: "it gives a vector with null for a number"}
		}
		squares += float64(*x) * float64(*x)
	}
	length := math.Sqrt(squares)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return nil, &fault{message: "it gives a vector that has no direction"}
	}
	vector := make([]float32, len(numbers))
	for i, x := range numbers {
		vector[i] = float32(float64(*x) / length)
	}
	return vector, nil
}

// Space implements embed.Embedder.
func (e *Embedder) Space() embed.Space { return e.space }

// Window implements embed.Embedder.
func (e *Embedder) Window() int { return e.model.Window }

// CountTokens implements embed.Embedder, by an estimate that is meant to be too high.
func (e *Embedder) CountTokens(text string) int { return estimate(text) }

// Close ends the connections that wait for a next request.
func (e *Embedder) Close() error {
	e.client.close()
	return nil
}
