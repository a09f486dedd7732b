// Package embedtest has a model for unit tests: deterministic, instant, and with vectors that are near when texts share
// words. It is for tests of other packages; what a real model does is tested in embed/onnx.
package embedtest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/kb-search/kb/embed"
)

// Embedder hashes each word of a text, in lower case, to one of its dimensions, and scales the counts to length 1. It is
// safe for concurrent use once its fields are set.
type Embedder struct {
	// Dimensions is the length of a vector. Defaults to 384.
	Dimensions int
	// Tokens is the window. Defaults to 256; words past it are cut.
	Tokens int
	// Model is the name in Space. Defaults to "fake".
	Model string
	// Fail, when set, is asked before each text; what it returns ends Embed.
	Fail func(text string) error
	// Block, when set, holds Embed up until it is closed or ctx ends.
	Block <-chan struct{}

	calls, texts atomic.Int64
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns an Embedder with the default model's dimensions and window.
func New() *Embedder { return &Embedder{} }

// Calls returns how often Embed was called.
func (e *Embedder) Calls() int { return int(e.calls.Load()) }

// Texts returns how many texts were embedded.
func (e *Embedder) Texts() int { return int(e.texts.Load()) }

// Embed implements embed.Embedder. Both kinds give the same vector.
func (e *Embedder) Embed(ctx context.Context, _ embed.Kind, texts []string) ([][]float32, error) {
	e.calls.Add(1)
	if e.Block != nil {
		select {
		case <-e.Block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e.Fail != nil {
			if err := e.Fail(text); err != nil {
				return nil, fmt.Errorf("embed text %d of %d: %w", i+1, len(texts), err)
			}
		}
		words := tokens(text)
		if len(words) == 0 {
			return nil, fmt.Errorf("embed text %d of %d: %w", i+1, len(texts), embed.ErrBlank)
		}
		vectors[i] = e.vector(words[:min(len(words), e.Window()-2)])
		e.texts.Add(1)
	}
	return vectors, nil
}

func (e *Embedder) vector(words []string) []float32 {
	vector := make([]float32, e.Space().Dimensions)
	var squares float64
	for _, word := range words {
		hash := fnv.New32a()
		hash.Write([]byte(strings.ToLower(word)))
		x := &vector[hash.Sum32()%uint32(len(vector))]
		squares += float64(2**x + 1) // (x+1)² - x²
		*x++
	}
	for i := range vector {
		vector[i] /= float32(math.Sqrt(squares))
	}
	return vector
}

// Space implements embed.Embedder.
func (e *Embedder) Space() embed.Space {
	space := embed.Space{Model: e.Model, Precision: embed.FP32, SHA256: strings.Repeat("0", 64), Dimensions: e.Dimensions}
	if space.Model == "" {
		space.Model = "fake"
	}
	if space.Dimensions == 0 {
		space.Dimensions = 384
	}
	return space
}

// Window implements embed.Embedder.
func (e *Embedder) Window() int {
	if e.Tokens == 0 {
		return 256
	}
	return e.Tokens
}

// CountTokens implements embed.Embedder: runs of letters and digits are one token, every other visible character is one.
func (e *Embedder) CountTokens(text string) int { return len(tokens(text)) }

func tokens(text string) []string {
	var found []string
	start := -1
	for i, r := range text {
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		if inWord && start < 0 {
			start = i
		}
		if !inWord && start >= 0 {
			found = append(found, text[start:i])
			start = -1
		}
		if !inWord && unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			found = append(found, string(r))
		}
	}
	if start >= 0 {
		found = append(found, text[start:])
	}
	return found
}
