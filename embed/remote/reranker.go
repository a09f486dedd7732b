package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kb-search/kb/embed"
)

// The forms of reranking APIs.
const (
	// TEI is Hugging Face's text-embeddings-inference. It gives logits.
	TEI = "tei"
	// Jina is Jina's, which vLLM and others speak, too. It gives scores from 0 to 1.
	Jina = "jina"
	// Cohere is Cohere's. It gives scores from 0 to 1.
	Cohere = "cohere"
)

const (
	defaultRerankTimeout = 2 * time.Second
	// teiBatch is what TEI takes in one request unless it is told otherwise.
	teiBatch = 32
	// maxAnswerPerPassage has room for servers that send the passages back.
	maxAnswerPerPassage = 1 << 16
)

// RerankerOptions say which server to ask and how.
type RerankerOptions struct {
	// URL is the full address, such as http://localhost:8080/rerank.
	URL string
	// API is the form of requests and answers: TEI, Jina or Cohere. Defaults to Jina for an address that ends in /v1/rerank, to
	// Cohere for one that ends in /v2/rerank, else to TEI.
	API string
	// Key is sent as a bearer token. Defaults to none.
	Key string
	// Model is the model's name, which is sent to Jina and Cohere.
	Model string
	// Timeout bounds one request. Defaults to two seconds.
	Timeout time.Duration
	// HTTP makes the requests; its redirects are not followed. Defaults to a client of its own.
	HTTP *http.Client
}

// Reranker is a reranker behind HTTP. It is safe for concurrent use. A request is made once: a search has its plain order, and
// no time. When three calls in a row have failed, others fail at once, and after five seconds one is tried.
type Reranker struct {
	client *client
	api    string
	model  string
}

// NewReranker makes a reranker. It does not ask the server, which may start later.
func NewReranker(options RerankerOptions) (*Reranker, error) {
	if options.Timeout <= 0 {
		options.Timeout = defaultRerankTimeout
	}
	c, err := newClient("KB_RERANKER_URL", options.URL, options.Key, options.Timeout, options.HTTP)
	if err != nil {
		return nil, err
	}
	r := &Reranker{client: c, api: options.API, model: options.Model}
	switch r.api {
	case TEI, Jina, Cohere:
	case "":
		r.api = guessAPI(c.address)
	default:
		return nil, fmt.Errorf("the API %q of KB_RERANKER_URL is unknown: write %s, %s or %s", r.api, TEI, Jina, Cohere)
	}
	return r, nil
}

func guessAPI(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return TEI
	}
	switch path := strings.TrimRight(u.Path, "/"); {
	case strings.HasSuffix(path, "/v1/rerank"):
		return Jina
	case strings.HasSuffix(path, "/v2/rerank"):
		return Cohere
	default:
		return TEI
	}
}

// API is the form of requests and answers.
func (r *Reranker) API() string { return r.api }

// Model is the model's name.
func (r *Reranker) Model() string { return r.model }

// Close ends the connections that wait for a next request.
func (r *Reranker) Close() error {
	r.client.close()
	return nil
}

// Rerank returns a score from 0 to 1 for each passage, in order; of logits, it is the sigmoid. Its error wraps embed.ErrBusy
// when the server has too much to do, and embed.ErrUnavailable when it can't be reached or can't answer now.
func (r *Reranker) Rerank(ctx context.Context, query string, passages []string) ([]float64, error) {
	if len(passages) == 0 {
		return nil, nil
	}
	scores := make([]float64, len(passages))
	batch := len(passages)
	if r.api == TEI {
		batch = teiBatch
	}
	err := r.client.guarded(func() error {
		group, ctx := errgroup.WithContext(ctx)
		for start := 0; start < len(passages); start += batch {
			end := min(start+batch, len(passages))
			group.Go(func() error { return r.ask(ctx, query, passages[start:end], scores[start:end]) })
		}
		return group.Wait()
	})
	if err != nil {
		var f *fault
		if errors.As(err, &f) && f.status == http.StatusTooManyRequests {
			err = fmt.Errorf("%w: %w", embed.ErrBusy, err)
		}
		return nil, fmt.Errorf("rerank %d passages by the server (KB_RERANKER_URL): %w", len(passages), err)
	}
	return scores, nil
}

// teiQuestion and rankQuestion are the requests of TEI, and of Jina and Cohere.
type (
	teiQuestion struct {
		Query     string   `json:"query"`
		Texts     []string `json:"texts"`
		RawScores bool     `json:"raw_scores"`
		Truncate  bool     `json:"truncate"`
	}
	rankQuestion struct {
		Model     string   `json:"model"`
		Query     string   `json:"query"`
		Documents []string `json:"documents"`
		TopN      int      `json:"top_n"`
		// Return is asked of Jina only, which else sends the documents back; Cohere does not know it.
		Return *bool `json:"return_documents,omitempty"`
	}
)

// scored is what all answers say of a passage: TEI has score, the others have relevance_score.
type scored struct {
	Index     *int     `json:"index"`
	Score     *float64 `json:"score"`
	Relevance *float64 `json:"relevance_score"`
}

// ask fills in the scores of passages by one request.
func (r *Reranker) ask(ctx context.Context, query string, passages []string, scores []float64) error {
	limit := int64(len(passages)+1) * maxAnswerPerPassage
	for _, p := range passages {
		limit += 8 * int64(len(p)) // each byte may come back as an escape
	}
	if r.api == TEI {
		var list []scored
		if err := r.client.post(ctx, teiQuestion{Query: query, Texts: passages, RawScores: true, Truncate: true}, limit, &list); err != nil {
			return err
		}
		return fill(scores, list, func(s scored) *float64 { return s.Score }, func(logit float64) (float64, error) {
			return 1 / (1 + math.Exp(-logit)), nil
		})
	}
	question := rankQuestion{Model: r.model, Query: query, Documents: passages, TopN: len(passages)}
	if r.api == Jina {
		question.Return = new(bool)
	}
	var answer struct {
		Results []scored `json:"results"`
	}
	if err := r.client.post(ctx, question, limit, &answer); err != nil {
		return err
	}
	return fill(scores, answer.Results, func(s scored) *float64 { return s.Relevance }, func(score float64) (float64, error) {
		if score < 0 || score > 1 {
			return 0, &fault{message: fmt.Sprintf("it gives the score %g, wanted one from 0 to 1: a server that gives logits is used with KB_RERANKER_API=tei", score)}
		}
		return score, nil
	})
}

// fill puts each passage's score in its place; each must come once.
func fill(scores []float64, list []scored, score func(scored) *float64, toOne func(float64) (float64, error)) error {
	if len(list) != len(scores) {
		return &fault{message: fmt.Sprintf("it gives %d scores for %d passages", len(list), len(scores))}
	}
	seen := make([]bool, len(scores))
	for _, item := range list {
		value := score(item)
		switch {
		case item.Index == nil || *item.Index < 0 || *item.Index >= len(scores):
			return &fault{message: "it gives a score for none of the passages"}
		case seen[*item.Index]:
			return &fault{message: fmt.Sprintf("it gives two scores for passage %d", *item.Index+1)}
		case value == nil:
			return &fault{message: fmt.Sprintf("it gives no score for passage %d", *item.Index+1)}
		}
		seen[*item.Index] = true
		var err error
		if scores[*item.Index], err = toOne(*value); err != nil {
			return err
		}
	}
	return nil
}
