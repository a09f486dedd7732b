// Package embed owns what the rest of kb knows about embedding models: the vector, the space it lives in, and the
// description of a model. Implementations live below it: onnx runs models in the process, models fetches their files. It
// knows no database and no HTTP server. Its invariant: two vectors are comparable exactly when their Space is equal.
package embed

import (
	"context"
	"errors"
)

// ErrBlank is what Embed returns (wrapped, with the text's index) for a text in which the model sees no token: empty,
// white space, or nothing but control and format characters.
var ErrBlank = errors.New("text is blank: it holds no token")

// ErrBusy is what a model returns (wrapped) that has too much to do already. It is returned at once, not after a wait.
var ErrBusy = errors.New("the model has too much to do already")

// ErrUnavailable is what a model behind HTTP returns (wrapped) when its server can't be reached or can't answer now. It may
// well answer later. A server that refuses a request, or whose answer is wrong, gives other errors.
var ErrUnavailable = errors.New("the model's server can't be used")

// Kind says what a text is to the model; some models put a different prefix before each.
type Kind int

const (
	// Query is a text to search with.
	Query Kind = iota
	// Passage is a text to be found.
	Passage
)

// Space names a set of comparable vectors: model, precision and weights.
type Space struct {
	// Model is the model's short name, such as "all-MiniLM-L6-v2".
	Model string
	// Precision is Int8, FP32 or Remote.
	Precision string
	// SHA256 is the hex digest of the weights file; for a model behind HTTP, of what is known of it.
	SHA256 string
	// Dimensions is the number of components of each vector.
	Dimensions int
}

// Embedder turns texts into vectors. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector of Euclidean length 1 for each text, in order. A text longer than the window is cut at
	// its end. It stops early with ctx's error. A text without any token (blank) is an error, never a zero vector.
	Embed(ctx context.Context, kind Kind, texts []string) ([][]float32, error)

	// Space names the space of all vectors that this embedder makes.
	Space() Space

	// Window is the largest number of tokens that the model reads, special tokens included.
	Window() int

	// CountTokens returns how many tokens text takes, special tokens not included. It is additive over pieces of a
	// text cut at white space.
	CountTokens(text string) int
}

// Stored is an embedder whose vectors a database keeps, under the number of their space.
type Stored struct {
	Embedder

	// ID is the number of the space in the database.
	ID int32
}

// Device is what a model runs on.
type Device struct {
	// Name is "cpu" or "cuda".
	Name string
	// Reason says why it is not the GPU, when one was asked for or looked for; empty on one.
	Reason string
}

// The devices, and what leaves the choice to the machine.
const (
	DeviceAuto = "auto"
	DeviceCPU  = "cpu"
	DeviceCUDA = "cuda"
)
