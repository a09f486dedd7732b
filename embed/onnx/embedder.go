// Package onnx runs BERT-shaped embedding models and rerankers in the process: WordPiece tokens, one ONNX session, pooling. It
// fetches no files (models does) and needs cgo and libonnxruntime. Its invariant: the vector of a text depends on the text,
// its kind and the model only. Texts go through the graph one at a time and unpadded, because dynamic int8 gives another
// vector for the same text in another batch, and because batches are no faster on a CPU.
package onnx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"
	"golang.org/x/sync/errgroup"

	"github.com/kb-search/kb/embed"
)

// Options say what to load and how to run it.
type Options struct {
	// Library is the path of libonnxruntime, version 1.24 or newer. A process can load one.
	Library string
	// Model describes the model; its Name and Window are needed.
	Model embed.Model
	// Dir is the folder that holds model.onnx and tokenizer.json.
	Dir string
	// Precision names the weights in the Space. Defaults to embed.Int8.
	Precision string
	// Device is embed.DeviceAuto, DeviceCPU or DeviceCUDA. Defaults to DeviceAuto.
	Device string
	// Threads is the number of threads inside one run. Defaults to 1: more shorten one text a little and cost CPU time.
	Threads int
	// Parallel is the number of texts of one Embed call that run at once, or of a reranker's batches. Defaults to
	// runtime.GOMAXPROCS(0), which follows the CPU quota of a container. Calls of Embed never wait for one another, but
	// passages let queries go first.
	Parallel int
	// Queue is the number of pairs that may wait for a reranker, of all requests. Defaults to 128. An embedder has none.
	Queue int
}

// Embedder is a model in this process. It is safe for concurrent use and implements embed.Embedder.
type Embedder struct {
	model     embed.Model
	space     embed.Space
	tokenizer *Tokenizer
	session   *session
	gate      *gate
	threads   int
	parallel  int
}

var _ embed.Embedder = (*Embedder)(nil)

// Open loads a model, which takes under a second for the known ones. The caller closes it.
func Open(ctx context.Context, options Options) (*Embedder, error) {
	e, err := open(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("open model %s in %s: %w", options.Model.Name, options.Dir, err)
	}
	return e, nil
}

func open(ctx context.Context, options Options) (*Embedder, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	model := options.Model
	if model.Name == "" || model.Window < 3 {
		return nil, fmt.Errorf("the model's description has no name, or a window of %d tokens", model.Window)
	}
	if options.Precision == "" {
		options.Precision = embed.Int8
	}
	if options.Parallel <= 0 {
		options.Parallel = runtime.GOMAXPROCS(0)
	}
	tokenizer, err := LoadTokenizer(filepath.Join(options.Dir, embed.TokenizerFile))
	if err != nil {
		return nil, err
	}
	weights := filepath.Join(options.Dir, embed.ModelFile)
	digest, err := fileSHA256(weights)
	if err != nil {
		return nil, err
	}
	if err := loadRuntime(options.Library); err != nil {
		return nil, err
	}
	options.Threads = max(options.Threads, 1)
	session, err := openSession(weights, func(output ort.InputOutputInfo) (outputShape, error) {
		shape := output.Dimensions
		if len(shape) != 3 || output.DataType != ort.TensorElementDataTypeFloat || shape[2] <= 0 {
			return nil, fmt.Errorf("output %q is %s %v, wanted float [texts, tokens, dimensions]", output.Name, output.DataType, shape)
		}
		if model.Dimensions != 0 && int64(model.Dimensions) != shape[2] {
			return nil, fmt.Errorf("output %q has %d dimensions, wanted %d", output.Name, shape[2], model.Dimensions)
		}
		model.Dimensions = int(shape[2])
		return func(rows, length int64) ort.Shape { return ort.NewShape(rows, length, shape[2]) }, nil
	}, options.Threads, options.Device)
	if err != nil {
		return nil, fmt.Errorf("load graph %s: %w", embed.ModelFile, err)
	}
	return &Embedder{
		model: model, tokenizer: tokenizer, session: session, gate: process, threads: options.Threads, parallel: options.Parallel,
		space: embed.Space{Model: model.Name, Precision: options.Precision, SHA256: digest, Dimensions: model.Dimensions},
	}, nil
}

// Embed implements embed.Embedder. The error for a blank text wraps embed.ErrBlank; it is found before any text runs.
func (e *Embedder) Embed(ctx context.Context, kind embed.Kind, texts []string) ([][]float32, error) {
	for i, text := range texts {
		if e.tokenizer.Blank(text) {
			return nil, fmt.Errorf("embed text %d of %d: %w", i+1, len(texts), embed.ErrBlank)
		}
	}
	vectors := make([][]float32, len(texts))
	if len(texts) == 1 || e.parallel == 1 {
		for i, text := range texts {
			var err error
			if vectors[i], err = e.embedOne(ctx, kind, text); err != nil {
				return nil, fmt.Errorf("embed text %d of %d: %w", i+1, len(texts), err)
			}
		}
		return vectors, nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(e.parallel)
	for i, text := range texts {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			var err error
			if vectors[i], err = e.embedOne(groupCtx, kind, text); err != nil {
				return fmt.Errorf("embed text %d of %d: %w", i+1, len(texts), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("embed %d texts: %w", len(texts), err)
	}
	return vectors, nil
}

func (e *Embedder) embedOne(ctx context.Context, kind embed.Kind, text string) ([]float32, error) {
	if kind == embed.Query {
		defer e.gate.query()()
	} else {
		done, err := e.gate.passage(ctx, e.threads)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	ids := e.tokenizer.encode(e.model.Window, e.model.Prefix(kind), text)
	tokens, err := e.session.run(ctx, single(ids))
	if err != nil {
		return nil, err
	}
	return pool(tokens, e.model.Dimensions, e.model.Pooling)
}

// pool makes one vector of length 1 of the token vectors. It fails for an output that is not finite or all zero.
func pool(tokens []float32, dimensions int, pooling embed.Pooling) ([]float32, error) {
	sums := make([]float64, dimensions)
	if pooling == embed.CLS {
		tokens = tokens[:dimensions]
	}
	for ; len(tokens) >= dimensions; tokens = tokens[dimensions:] {
		for i, x := range tokens[:dimensions] {
			sums[i] += float64(x)
		}
	}
	var squares float64
	for _, x := range sums {
		squares += x * x
	}
	norm := math.Sqrt(squares)
	if norm == 0 || math.IsNaN(norm) || math.IsInf(norm, 0) {
		return nil, errors.New("the model's output is not a finite vector")
	}
	vector := make([]float32, dimensions)
	for i, x := range sums {
		vector[i] = float32(x / norm)
	}
	return vector, nil
}

// Space implements embed.Embedder.
func (e *Embedder) Space() embed.Space { return e.space }

// Device is what the model runs on.
func (e *Embedder) Device() embed.Device { return e.session.device }

// Window implements embed.Embedder.
func (e *Embedder) Window() int { return e.model.Window }

// CountTokens implements embed.Embedder; see Tokenizer.Count for what white space is.
func (e *Embedder) CountTokens(text string) int { return e.tokenizer.Count(text) }

// Close waits for the texts under way and frees the model. Later calls of Embed fail.
func (e *Embedder) Close() error {
	if err := e.session.close(); err != nil {
		return fmt.Errorf("close model %s: %w", e.model.Name, err)
	}
	return nil
}

func fileSHA256(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
