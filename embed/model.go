package embed

import "fmt"

// Names of a model's two files in its folder.
const (
	ModelFile     = "model.onnx"
	TokenizerFile = "tokenizer.json"
)

// Precisions of a model's weights. The vectors of one are never compared with those of the other.
const (
	// Int8 is dynamic int8: a third of fp32's cost and as good at search, but exact only for one text at a time.
	Int8 = "int8"
	// FP32 is 32-bit floating point.
	FP32 = "fp32"
	// Remote is whatever the server has that runs the model.
	Remote = "remote"
)

// Pooling says how a model's token vectors become one vector.
type Pooling int

const (
	// Mean averages all tokens, special tokens included.
	Mean Pooling = iota
	// CLS takes the first token.
	CLS
)

// String returns "mean" or "cls".
func (p Pooling) String() string {
	switch p {
	case Mean:
		return "mean"
	case CLS:
		return "cls"
	}
	return fmt.Sprintf("Pooling(%d)", int(p))
}

// Model describes an embedding model, or a reranker: how to feed it, how to read its output, and where its files are. A
// reranker has no pooling, dimensions or prefixes.
type Model struct {
	// Name is the short name, used in Space and as the name of the cache folder.
	Name string
	// HubRepo is the name that the model's authors gave it on the hub; Lookup takes it for Name.
	HubRepo string
	// Pooling makes one vector of the token vectors.
	Pooling Pooling
	// Window is the largest number of tokens that the model reads, special tokens included.
	Window int
	// Dimensions is the length of a vector; 0 leaves it to the graph.
	Dimensions int
	// QueryPrefix and PassagePrefix go before each text of their kind; they count towards Window.
	QueryPrefix, PassagePrefix string
	// SentencePiece says that its tokenizer can't be read here: the model is used over HTTP only.
	SentencePiece bool
	// Sources has an entry for each precision that can be fetched.
	Sources map[string]Source
}

// Source says where the two files of one precision come from.
type Source struct {
	Hub   HubFiles
	Maven MavenFiles
}

// HubFiles are a model's two files in a repository of the hub. They are checked against the hub's own digests.
type HubFiles struct {
	// Repo is "owner/name".
	Repo string
	// Model and Tokenizer are paths inside Repo.
	Model, Tokenizer string
}

// MavenFiles are a model's two files at the top of a jar.
type MavenFiles struct {
	// Artifact is "group:artifact:version".
	Artifact string
	// Model and Tokenizer are names of entries of the jar.
	Model, Tokenizer string
	// ModelSHA256 and TokenizerSHA256 are the hex digests that the entries must have.
	ModelSHA256, TokenizerSHA256 string
}

// Prefix returns what goes before a text of the given kind.
func (m Model) Prefix(kind Kind) string {
	if kind == Query {
		return m.QueryPrefix
	}
	return m.PassagePrefix
}
