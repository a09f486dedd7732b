package onnx

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/kb-search/kb/embed"
)

const (
	// maxPair is the largest number of tokens of a pair, whatever the model could read: the cost grows faster than the length.
	maxPair = 512
	// defaultQueue is three requests of 40 pairs: what a machine of two CPUs works off in some seconds.
	defaultQueue = 128
)

// Reranker is a cross-encoder in this process: it reads a query and a passage together and gives one logit. Requests share
// batches. It is safe for concurrent use.
//
// A pair that is longer than the window (512 tokens at most) loses the end of its passage; the query stays whole, unless it
// would leave the passage less than a quarter of the window: then the query is cut.
type Reranker struct {
	model     embed.Model
	tokenizer *Tokenizer
	session   *session
	gate      *gate
	queue     *queue
}

// OpenReranker loads a reranker. Of the model, Name and Window are needed. The caller closes it.
func OpenReranker(ctx context.Context, options Options) (*Reranker, error) {
	r, err := openReranker(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("open reranker %s in %s: %w", options.Model.Name, options.Dir, err)
	}
	return r, nil
}

func openReranker(ctx context.Context, options Options) (*Reranker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	model := options.Model
	if model.Name == "" || model.Window < 16 {
		return nil, fmt.Errorf("the model's description has no name, or a window of %d tokens", model.Window)
	}
	model.Window = min(model.Window, maxPair)
	tokenizer, err := LoadTokenizer(filepath.Join(options.Dir, embed.TokenizerFile))
	if err != nil {
		return nil, err
	}
	if err := loadRuntime(options.Library); err != nil {
		return nil, err
	}
	options.Threads = max(options.Threads, 1)
	session, err := openSession(filepath.Join(options.Dir, embed.ModelFile), oneLogit, options.Threads, options.Device)
	if err != nil {
		return nil, fmt.Errorf("load graph %s: %w", embed.ModelFile, err)
	}
	if options.Parallel <= 0 {
		options.Parallel = runtime.GOMAXPROCS(0)
	}
	if options.Queue <= 0 {
		options.Queue = defaultQueue
	}
	r := &Reranker{model: model, tokenizer: tokenizer, session: session, gate: process}
	r.queue = &queue{run: r.run, limit: options.Queue, parallel: options.Parallel}
	if options.Precision == embed.Int8 {
		r.queue.rows = 1 // In a padded batch a score would depend on the pairs beside it; see embed.Int8.
	}
	return r, nil
}

func oneLogit(output ort.InputOutputInfo) (outputShape, error) {
	shape := output.Dimensions
	if len(shape) != 2 || output.DataType != ort.TensorElementDataTypeFloat || shape[1] > 1 {
		return nil, fmt.Errorf("output %q is %s %v, wanted float [pairs, 1]: this is no reranker", output.Name, output.DataType, shape)
	}
	return func(rows, _ int64) ort.Shape { return ort.NewShape(rows, 1) }, nil
}

// Rerank returns a score from 0 to 1 for each passage, in order: the sigmoid of its logit. Its error wraps embed.ErrBusy when
// too many pairs wait already. When ctx ends it returns at once, and pairs that have not been run never are.
func (r *Reranker) Rerank(ctx context.Context, query string, passages []string) ([]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rerank %d passages: %w", len(passages), err)
	}
	head := r.head(query)
	pairs := make([]*pair, len(passages))
	for i, passage := range passages {
		pairs[i] = r.pair(head, passage)
	}
	if err := r.queue.score(ctx, pairs); err != nil {
		return nil, fmt.Errorf("rerank %d passages: %w", len(passages), err)
	}
	scores := make([]float64, len(pairs))
	for i, p := range pairs {
		scores[i] = p.score
	}
	return scores, nil
}

// head is the query as it stands in each pair.
func (r *Reranker) head(query string) []int64 {
	window := r.model.Window
	return r.tokenizer.Encode(query, window-window/4-1)
}

// pair is [CLS] query [SEP] passage [SEP].
func (r *Reranker) pair(head []int64, passage string) *pair {
	tail := r.tokenizer.Encode(passage, r.model.Window-len(head)+1)[1:] // [CLS] comes once
	ids := make([]int64, 0, len(head)+len(tail))
	return &pair{ids: append(append(ids, head...), tail...), passage: len(head)}
}

// run puts pairs through the graph together. What a request among them waits for is not known here: each runs to its end.
func (r *Reranker) run(pairs []*pair) error {
	defer r.gate.query()()
	longest := 0
	for _, p := range pairs {
		longest = max(longest, len(p.ids))
	}
	b := newBatch(len(pairs), longest)
	for row, p := range pairs {
		for i, id := range p.ids {
			at := row*longest + i
			b.ids[at], b.mask[at] = id, 1
			if i >= p.passage {
				b.types[at] = 1
			}
		}
	}
	logits, err := r.session.run(context.Background(), b)
	if err != nil {
		return err
	}
	for i, p := range pairs {
		p.score = 1 / (1 + math.Exp(-float64(logits[i])))
		if math.IsNaN(p.score) {
			return errors.New("the model's output is not a number")
		}
	}
	return nil
}

// Model is the model's name.
func (r *Reranker) Model() string { return r.model.Name }

// Device is what the model runs on.
func (r *Reranker) Device() embed.Device { return r.session.device }

// Close ends all requests, waits for the batches under way and frees the model. Later calls of Rerank fail.
func (r *Reranker) Close() error {
	r.queue.close()
	if err := r.session.close(); err != nil {
		return fmt.Errorf("close reranker %s: %w", r.model.Name, err)
	}
	return nil
}
