package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/remote"
	"github.com/kb-search/kb/worker/chunk"
	"github.com/kb-search/kb/worker/docling"
)

// Config is everything that the environment can say. docs/config.md is generated from it: each field's comment ends in
// its default.
type Config struct {
	// Addr is the address to listen on. Defaults to :8080.
	Addr string `env:"KB_ADDR" envDefault:":8080"`
	// DataDir holds uploads, originals and the embedded database. Defaults to /data.
	DataDir string `env:"KB_DATA_DIR" envDefault:"/data"`
	// StorageURL is where uploads and originals are kept: s3://, gs://, azblob:// or file:// and what gocloud.dev/blob takes
	// behind it, such as s3://bucket?region=eu-central-1&prefix=kb/; credentials come from where the provider's own tools
	// look for them. Defaults to the data folder.
	StorageURL string `env:"KB_STORAGE_URL"`
	// CacheDir holds the binaries and models that setup brings. Defaults to kb in the user's cache folder.
	CacheDir string `env:"KB_CACHE_DIR"`
	// DatabaseURL is the PostgreSQL to use. Defaults to an embedded one in the data folder.
	DatabaseURL Secret `env:"KB_DATABASE_URL"`
	// DatabaseConns is the largest number of database connections of one process. Defaults to 20.
	DatabaseConns int32 `env:"KB_DATABASE_CONNS" envDefault:"20"`

	// APIKey is the bearer token of an admin whose requests go to the default project; for the client commands, the key or token
	// to send. Defaults to none: without KB_JWT_SECRET and KB_JWKS_URL, requests are not authenticated then.
	APIKey Secret `env:"KB_API_KEY"`

	// JWTSecret checks tokens that are signed with HS256; 32 bytes or more. Defaults to none.
	JWTSecret Secret `env:"KB_JWT_SECRET"`
	// JWKSURL is the address of the public keys that check tokens signed with RS256, ES256 or EdDSA. Defaults to none.
	JWKSURL string `env:"KB_JWKS_URL"`
	// JWTIssuer must be the token's issuer; it needs an audience, too. Defaults to any.
	JWTIssuer string `env:"KB_JWT_ISSUER"`
	// JWTAudience must be among the token's audiences. Defaults to any.
	JWTAudience string `env:"KB_JWT_AUDIENCE"`
	// JWTAlgorithms narrows the algorithms that are accepted, separated by commas. Defaults to all that fit the secret or keys.
	JWTAlgorithms []string `env:"KB_JWT_ALGORITHMS"`
	// JWTClaimProject is the claim with the project, or the list of projects, that a token is bound to. Defaults to prj.
	JWTClaimProject string `env:"KB_JWT_CLAIM_PROJECT" envDefault:"prj"`
	// JWTClaimRole is the claim with the role; admin may do everything. Defaults to role.
	JWTClaimRole string `env:"KB_JWT_CLAIM_ROLE" envDefault:"role"`
	// JWTClaimScope is the claim with the actions that a token may do, separated by spaces. Defaults to scope.
	JWTClaimScope string `env:"KB_JWT_CLAIM_SCOPE" envDefault:"scope"`
	// JWTClaimPolicy is the claim with a policy document. Defaults to policy.
	JWTClaimPolicy string `env:"KB_JWT_CLAIM_POLICY" envDefault:"policy"`
	// CORSOrigins are the web origins whose pages may call the server, separated by commas; * stands for all. Defaults to none.
	CORSOrigins []string `env:"KB_CORS_ORIGINS"`

	// Model is the embedding model, by name; where KB_MODEL_PRECISION is remote, the name that the server knows it by. One that
	// kb does not know needs a file kb-model.json in its folder or hub repository, such as
	// {"window": 512, "pooling": "mean", "query_prefix": "query: ", "passage_prefix": "passage: "}. Defaults to all-MiniLM-L6-v2.
	Model string `env:"KB_MODEL" envDefault:"all-MiniLM-L6-v2"`
	// ModelPrecision is int8, fp32, or remote for what the server of KB_EMBEDDER_URL has. Defaults to int8, with KB_EMBEDDER_URL to
	// remote.
	ModelPrecision string `env:"KB_MODEL_PRECISION"`
	// Device is what models run on: cpu, cuda, or auto for the GPU where there is one. Defaults to auto.
	Device string `env:"KB_DEVICE" envDefault:"auto"`
	// ModelDir is a folder with model.onnx and tokenizer.json to take the model from, and kb-model.json for one that kb does not
	// know. Defaults to the cache folder, filled from the model hub or from Maven.
	ModelDir string `env:"KB_MODEL_DIR"`
	// EmbedderURL is the address of a server that runs the embedding model, with an API like OpenAI's, such as
	// http://localhost:8081/v1; /embeddings is put behind it. Defaults to none: the model runs in the process.
	EmbedderURL string `env:"KB_EMBEDDER_URL"`
	// EmbedderKey is sent to that server as a bearer token. Defaults to none.
	EmbedderKey Secret `env:"KB_EMBEDDER_KEY"`
	// EmbedderTimeout bounds one request to that server; the query of a search waits three seconds at most. Defaults to 30s.
	EmbedderTimeout time.Duration `env:"KB_EMBEDDER_TIMEOUT" envDefault:"30s"`
	// EmbedderBatch is the largest number of texts in one request to that server. Defaults to 32.
	EmbedderBatch int `env:"KB_EMBEDDER_BATCH" envDefault:"32"`
	// EmbedderWindow is the largest number of tokens of a text for that server, by an estimate that is meant to be too high; a known
	// model's own window bounds it. Defaults to 512.
	EmbedderWindow int `env:"KB_EMBEDDER_WINDOW" envDefault:"512"`
	// OnnxRuntime is the path of libonnxruntime. Defaults to the one in the cache folder.
	OnnxRuntime string `env:"KB_ONNXRUNTIME"`
	// EmbedThreads is the number of threads inside one run of the model. Defaults to 1.
	EmbedThreads int `env:"KB_EMBED_THREADS" envDefault:"1"`
	// EmbedParallel is the number of chunks that one ingestion embeds at once. Defaults to the number of CPUs that the
	// process may use.
	EmbedParallel int `env:"KB_EMBED_PARALLEL" envDefault:"0"`
	// QueryCacheBytes bounds the cache of query vectors; 0 switches it off. Defaults to 33554432 (32 MiB).
	QueryCacheBytes int64 `env:"KB_QUERY_CACHE_BYTES" envDefault:"33554432"`
	// HubEndpoint is the model hub's address. Defaults to the public one.
	HubEndpoint string `env:"HF_ENDPOINT"`
	// HubToken is sent to the model hub. Defaults to none.
	HubToken Secret `env:"HF_TOKEN"`
	// HubOffline forbids fetching models over the network. Defaults to false.
	HubOffline bool `env:"HF_HUB_OFFLINE" envDefault:"false"`

	// RerankEnabled loads a reranker, which reads query and candidates together. Defaults to false.
	RerankEnabled bool `env:"KB_RERANK_ENABLED" envDefault:"false"`
	// RerankerModel is the reranker, by name: in the process one with an ONNX form on the model hub and a WordPiece tokenizer, at the
	// precision of KB_MODEL_PRECISION; else what the server of KB_RERANKER_URL knows it by. The default needs that server. Defaults to
	// BAAI/bge-reranker-v2-m3.
	RerankerModel string `env:"KB_RERANKER_MODEL" envDefault:"BAAI/bge-reranker-v2-m3"`
	// RerankerDir is a folder with the reranker's model.onnx and tokenizer.json. Defaults to the cache folder, filled from the model
	// hub.
	RerankerDir string `env:"KB_RERANKER_DIR"`
	// RerankerURL is the full address of a server that runs the reranker, such as http://localhost:8082/rerank. Defaults to none: the
	// reranker runs in the process.
	RerankerURL string `env:"KB_RERANKER_URL"`
	// RerankerKey is sent to that server as a bearer token. Defaults to none.
	RerankerKey Secret `env:"KB_RERANKER_KEY"`
	// RerankerAPI is what that server speaks: tei, jina or cohere. Defaults to jina for an address that ends in /v1/rerank, cohere for
	// /v2/rerank, else tei.
	RerankerAPI string `env:"KB_RERANKER_API"`
	// RerankCandidates is how many results of a search are reranked. Defaults to 40.
	RerankCandidates int `env:"KB_RERANK_CANDIDATES" envDefault:"40"`
	// RerankTimeoutMS is how many milliseconds a search waits for its reranking; past it, it has its plain order. A reranker of six
	// layers takes 0.6 to 0.8 seconds for 40 chunks on two CPUs, and more when several searches come at once. It must be less than
	// KB_SEARCH_TIMEOUT. Defaults to 2000.
	RerankTimeoutMS int `env:"KB_RERANK_TIMEOUT_MS" envDefault:"2000"`

	// Workers is the number of ingestion jobs that a process works on at once. Defaults to 1.
	Workers int `env:"KB_WORKERS" envDefault:"1"`
	// ChunkSize is the largest chunk in tokens, title and section included. Defaults to 0: what the model's window holds.
	ChunkSize int `env:"KB_CHUNK_SIZE" envDefault:"0"`
	// ChunkOverlap is how many tokens of a chunk the next one repeats. Defaults to 0.
	ChunkOverlap int `env:"KB_CHUNK_OVERLAP" envDefault:"0"`
	// ChunkStrategy is section or page: what a chunk never reaches over. Defaults to section.
	ChunkStrategy string `env:"KB_CHUNK_STRATEGY" envDefault:"section"`
	// RetryKeep is how long the upload of a failed or cancelled job is kept for another try; 0 deletes it at the next sweep,
	// within the hour. Defaults to 72h.
	RetryKeep time.Duration `env:"KB_RETRY_KEEP" envDefault:"72h"`
	// MaxUploadBytes is the largest file; a note sent as a form field ends at 14 MiB. Defaults to 104857600 (100 MiB).
	MaxUploadBytes int64 `env:"KB_MAX_UPLOAD_BYTES" envDefault:"104857600"`

	// DoclingURL is a docling-serve that reads PDFs, with tables and text recognition, and images. Defaults to none: PDFs are
	// read in the process, images are refused.
	DoclingURL string `env:"KB_DOCLING_URL"`
	// DoclingKey is the API key of docling-serve. Defaults to none.
	DoclingKey Secret `env:"KB_DOCLING_KEY"`
	// DoclingTimeout bounds the conversion of one file. Defaults to 10m.
	DoclingTimeout time.Duration `env:"KB_DOCLING_TIMEOUT" envDefault:"10m"`

	// SearchTimeout bounds one search. Defaults to 10s.
	SearchTimeout time.Duration `env:"KB_SEARCH_TIMEOUT" envDefault:"10s"`
	// SearchRowBudget bounds the rows that the lexical arm of one search reads. Defaults to 2000.
	SearchRowBudget int32 `env:"KB_SEARCH_ROW_BUDGET" envDefault:"2000"`

	// KnowledgeRRFK is the k of reciprocal rank fusion in knowledge searches. Defaults to 60.
	KnowledgeRRFK int32 `env:"KNOWLEDGE_RRF_K" envDefault:"60"`
	// KnowledgeHalfLife is the time in days with which the score of memories halves in knowledge searches; 0 is no decay.
	// Defaults to 0.
	KnowledgeHalfLife float64 `env:"KNOWLEDGE_RECENCY_HALF_LIFE_DAYS" envDefault:"0"`
	// SearchFusion is how knowledge searches rank: rrf or blend. Defaults to rrf.
	SearchFusion string `env:"KB_SEARCH__FUSION" envDefault:"rrf"`

	// SearchStrictMaxHits is how many documents the strict stage of a structured search may find before the answer is too_many, from 1
	// to 10000. Defaults to 8.
	SearchStrictMaxHits int32 `env:"KB_SEARCH__STRICT_MAX_HITS" envDefault:"8"`
	// SearchTitleBoost is how much a word in the title or section counts against one in the text in structured searches, from 0 to
	// 100. Defaults to 3.0.
	SearchTitleBoost float64 `env:"KB_SEARCH__TITLE_BOOST" envDefault:"3.0"`
	// SearchRRFWindow is how many of the best documents of a structured search are ranked by their vectors, too, from 1 to 10000.
	// Defaults to 50.
	SearchRRFWindow int32 `env:"KB_SEARCH__RRF_WINDOW" envDefault:"50"`
	// SearchVectorWeight is the share of cosine similarity in their score, from 0 to 1. Defaults to 0.5.
	SearchVectorWeight float64 `env:"KB_SEARCH__VECTOR_WEIGHT" envDefault:"0.5"`
	// SearchMaxResultWindow is how deep the pages of a structured search reach: from and size together, from 1 to 100000. Defaults to
	// 10000.
	SearchMaxResultWindow int32 `env:"KB_SEARCH__MAX_RESULT_WINDOW" envDefault:"10000"`
	// SearchBannerLoose is the text that callers show with loose_hit. Defaults to one in Chinese: no exact match, for reference only.
	SearchBannerLoose string `env:"KB_SEARCH__BANNER_LOOSE"`
	// SearchBannerVectorOnly is the text that callers show with vector_only. Defaults to one in Chinese: similar in meaning only, of low
	// confidence.
	SearchBannerVectorOnly string `env:"KB_SEARCH__BANNER_VECTOR_ONLY"`
	// SearchLogQueries keeps the texts of searches with their other parameters, for kb tune. Defaults to false.
	SearchLogQueries bool `env:"KB_SEARCH__LOG_QUERIES" envDefault:"false"`
	// SearchLogKeep is how long answered searches and their feedback are kept. Defaults to 720h (30 days).
	SearchLogKeep time.Duration `env:"KB_SEARCH__LOG_KEEP" envDefault:"720h"`

	// LogLevel is debug, info, warn or error. Defaults to info.
	LogLevel string `env:"KB_LOG_LEVEL" envDefault:"info"`
	// LogFormat is text or json. Defaults to text.
	LogFormat string `env:"KB_LOG_FORMAT" envDefault:"text"`
	// ShutdownTimeout bounds how long running requests may take after a signal to stop. Defaults to 20s.
	ShutdownTimeout time.Duration `env:"KB_SHUTDOWN_TIMEOUT" envDefault:"20s"`

	// ProjectID is the project of kb ingest, kb search and kb reindex, by its id. Defaults to the one that the key or token has.
	ProjectID string `env:"KB_PROJECT_ID"`
	// URL is the server that kb ingest and kb search talk to. Defaults to http://localhost:8080.
	URL string `env:"KB_URL" envDefault:"http://localhost:8080"`
}

// LoadConfig reads environment and checks it. A secret may come from a file: X_FILE names the file whose trimmed content
// is X.
func LoadConfig(environment map[string]string) (Config, error) {
	environment, err := withSecretFiles(environment)
	if err != nil {
		return Config{}, fmt.Errorf("read the environment: %w", err)
	}
	config, err := env.ParseAsWithOptions[Config](env.Options{Environment: environment})
	if err != nil {
		var aggregate env.AggregateError
		if errors.As(err, &aggregate) {
			err = errors.Join(aggregate.Errors...)
		}
		return Config{}, fmt.Errorf("read the environment: %w", err)
	}
	if config.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return Config{}, fmt.Errorf("find the user's cache folder (or set KB_CACHE_DIR): %w", err)
		}
		config.CacheDir = filepath.Join(dir, "kb")
	}
	if config.ModelPrecision == "" {
		config.ModelPrecision = embed.Int8
		if config.EmbedderURL != "" {
			config.ModelPrecision = embed.Remote
		}
	}
	if config.OnnxRuntime == "" {
		config.OnnxRuntime = filepath.Join(config.CacheDir, "onnxruntime-1.32.0", "libonnxruntime.so.1.32.0")
	}
	return config, config.Validate()
}

// tokenOptions say which tokens are accepted.
func (c Config) tokenOptions() auth.TokenOptions {
	return auth.TokenOptions{
		Secret: c.JWTSecret.Reveal(), JWKSURL: c.JWKSURL, Issuer: c.JWTIssuer, Audience: c.JWTAudience, Algorithms: c.JWTAlgorithms,
		Claims: auth.ClaimNames{Project: c.JWTClaimProject, Role: c.JWTClaimRole, Scope: c.JWTClaimScope, Policy: c.JWTClaimPolicy},
	}
}

// withSecretFiles gives a copy of environment in which each secret that is named by a file has its value.
func withSecretFiles(environment map[string]string) (map[string]string, error) {
	values := maps.Clone(environment)
	var problems []error
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		name := field.Tag.Get("env")
		path := environment[name+"_FILE"]
		if field.Type != reflect.TypeFor[Secret]() || path == "" {
			continue
		}
		if environment[name] != "" {
			problems = append(problems, fmt.Errorf("%[1]s and %[1]s_FILE are both set: keep one", name))
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s_FILE: %w", name, err))
			continue
		}
		values[name] = strings.TrimSpace(string(content))
	}
	return values, errors.Join(problems...)
}

// Validate reports all that is wrong at once, each with what to change.
func (c Config) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	_, _, err := net.SplitHostPort(c.Addr)
	check(err == nil, "KB_ADDR is %q: write host:port or :port", c.Addr)
	check(c.DataDir != "", "KB_DATA_DIR is empty: name a folder")
	check(c.StorageURL == "" || validStorage(c.StorageURL), "KB_STORAGE_URL is %q: write an address that begins with s3://, gs://, azblob:// or file:///", c.StorageURL)
	check(c.DatabaseConns >= 4, "KB_DATABASE_CONNS is %d: at least 4 are needed", c.DatabaseConns)
	check(c.Model != "", "KB_MODEL is empty: name a model")
	check(slices.Contains([]string{embed.Int8, embed.FP32, embed.Remote}, c.ModelPrecision), "KB_MODEL_PRECISION is %q: write int8, fp32 or remote", c.ModelPrecision)
	check(c.ModelPrecision != embed.Remote || c.EmbedderURL != "", "KB_MODEL_PRECISION is remote: that needs KB_EMBEDDER_URL")
	check(c.ModelPrecision != embed.Remote || c.ModelDir == "", "KB_MODEL_DIR is set, but the model is the one of KB_EMBEDDER_URL: keep one")
	if c.EmbedderURL != "" {
		err := embedderOptions(c, c.Model).Validate()
		check(err == nil, "KB_EMBEDDER_*: %v", err)
	}
	check(c.EmbedderTimeout > 0, "KB_EMBEDDER_TIMEOUT is %s: write a time above 0, such as 30s", c.EmbedderTimeout)
	check(c.EmbedderBatch >= 1, "KB_EMBEDDER_BATCH is %d: write 1 or more", c.EmbedderBatch)
	check(c.EmbedderWindow >= 64, "KB_EMBEDDER_WINDOW is %d: write 64 or more", c.EmbedderWindow)
	check(c.RerankerModel != "", "KB_RERANKER_MODEL is empty: name a model")
	check(c.RerankerURL == "" || c.RerankerDir == "", "KB_RERANKER_URL and KB_RERANKER_DIR are both set: keep one")
	if c.RerankerURL != "" {
		_, err := remote.NewReranker(rerankerOptions(c))
		check(err == nil, "KB_RERANKER_*: %v", err)
	}
	check(slices.Contains([]string{"", remote.TEI, remote.Jina, remote.Cohere}, c.RerankerAPI), "KB_RERANKER_API is %q: write tei, jina or cohere", c.RerankerAPI)
	check(c.RerankCandidates >= 1 && c.RerankCandidates <= 200, "KB_RERANK_CANDIDATES is %d: write a number from 1 to 200", c.RerankCandidates)
	check(c.RerankTimeoutMS >= 1, "KB_RERANK_TIMEOUT_MS is %d: write 1 or more", c.RerankTimeoutMS)
	check(!c.RerankEnabled || time.Duration(c.RerankTimeoutMS)*time.Millisecond < c.SearchTimeout,
		"KB_RERANK_TIMEOUT_MS is %d: write less than KB_SEARCH_TIMEOUT, which is %s", c.RerankTimeoutMS, c.SearchTimeout)
	check(slices.Contains([]string{embed.DeviceAuto, embed.DeviceCPU, embed.DeviceCUDA}, c.Device), "KB_DEVICE is %q: write auto, cpu or cuda", c.Device)
	check(c.EmbedThreads >= 1, "KB_EMBED_THREADS is %d: write 1 or more", c.EmbedThreads)
	check(c.EmbedParallel >= 0, "KB_EMBED_PARALLEL is %d: write 0 or more", c.EmbedParallel)
	check(c.QueryCacheBytes >= 0, "KB_QUERY_CACHE_BYTES is %d: write 0 or more", c.QueryCacheBytes)
	check(c.Workers >= 1, "KB_WORKERS is %d: write 1 or more", c.Workers)
	check(c.ChunkSize >= 0, "KB_CHUNK_SIZE is %d: write 0 or more", c.ChunkSize)
	check(c.ChunkOverlap >= 0, "KB_CHUNK_OVERLAP is %d: write 0 or more", c.ChunkOverlap)
	check(c.ChunkStrategy == chunk.BySection || c.ChunkStrategy == chunk.ByPage, "KB_CHUNK_STRATEGY is %q: write section or page", c.ChunkStrategy)
	check(c.RetryKeep >= 0, "KB_RETRY_KEEP is %s: write a time of 0 or more, such as 72h", c.RetryKeep)
	check(c.MaxUploadBytes >= 1, "KB_MAX_UPLOAD_BYTES is %d: write 1 or more", c.MaxUploadBytes)
	if c.JWTSecret != "" || c.JWKSURL != "" {
		err := c.tokenOptions().Validate()
		check(err == nil, "KB_JWT_*: %v", err)
	} else {
		check(c.JWTIssuer == "" && c.JWTAudience == "", "KB_JWT_ISSUER and KB_JWT_AUDIENCE need KB_JWT_SECRET or KB_JWKS_URL: without them no token is checked")
	}
	if c.DoclingURL != "" {
		_, err := docling.New(doclingOptions(c))
		check(err == nil, "KB_DOCLING_URL: %v", err)
	}
	check(c.DoclingTimeout > 0, "KB_DOCLING_TIMEOUT is %s: write a time above 0, such as 10m", c.DoclingTimeout)
	check(c.SearchTimeout > 0, "KB_SEARCH_TIMEOUT is %s: write a time above 0, such as 10s", c.SearchTimeout)
	check(c.SearchRowBudget >= 100, "KB_SEARCH_ROW_BUDGET is %d: write 100 or more", c.SearchRowBudget)
	check(c.KnowledgeRRFK >= 1, "KNOWLEDGE_RRF_K is %d: write 1 or more", c.KnowledgeRRFK)
	check(c.KnowledgeHalfLife >= 0 && c.KnowledgeHalfLife <= math.MaxFloat32, "KNOWLEDGE_RECENCY_HALF_LIFE_DAYS is %v: write a number of days, or 0", c.KnowledgeHalfLife)
	check(c.SearchFusion == "rrf" || c.SearchFusion == "blend", "KB_SEARCH__FUSION is %q: write rrf or blend", c.SearchFusion)
	between := func(name string, value, least, most float64) {
		check(value >= least && value <= most, "%s is %v: write a number from %v to %v", name, value, least, most)
	}
	between("KB_SEARCH__STRICT_MAX_HITS", float64(c.SearchStrictMaxHits), 1, 10_000)
	between("KB_SEARCH__TITLE_BOOST", c.SearchTitleBoost, 0, 100)
	between("KB_SEARCH__RRF_WINDOW", float64(c.SearchRRFWindow), 1, 10_000)
	between("KB_SEARCH__VECTOR_WEIGHT", c.SearchVectorWeight, 0, 1)
	between("KB_SEARCH__MAX_RESULT_WINDOW", float64(c.SearchMaxResultWindow), 1, 100_000)
	check(c.SearchLogKeep > 0, "KB_SEARCH__LOG_KEEP is %s: write a time above 0, such as 720h", c.SearchLogKeep)
	check(c.ShutdownTimeout > 0, "KB_SHUTDOWN_TIMEOUT is %s: write a time above 0, such as 20s", c.ShutdownTimeout)
	_, err = parseLevel(c.LogLevel)
	check(err == nil, "KB_LOG_LEVEL is %q: write debug, info, warn or error", c.LogLevel)
	check(c.LogFormat == "text" || c.LogFormat == "json", "KB_LOG_FORMAT is %q: write text or json", c.LogFormat)
	check(strings.HasPrefix(c.URL, "http://") || strings.HasPrefix(c.URL, "https://"), "KB_URL is %q: write an http or https address", c.URL)
	return errors.Join(problems...)
}
