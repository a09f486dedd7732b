package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"
	"gocloud.dev/blob"

	"github.com/kb-search/kb/api"
	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/postgres"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/models"
	"github.com/kb-search/kb/embed/onnx"
	"github.com/kb-search/kb/embed/remote"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/docling"
	"github.com/kb-search/kb/worker/job"
	"github.com/kb-search/kb/worker/parse/pdf"
)

// parts are what a server, or an evaluation, stands on. They are closed in the reverse order of their opening.
type parts struct {
	pool   *pgxpool.Pool
	bucket *blob.Bucket
	spaces *worker.Spaces
	// configured is the number of the embedding space of KB_MODEL, which is not always the active one.
	configured int32
	device     embed.Device
	reranking  search.Reranking
	closers    []func() error
}

// Close lets go of everything and reports all that went wrong.
func (p *parts) Close() error {
	var problems []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		problems = append(problems, p.closers[i]())
	}
	return errors.Join(problems...)
}

// open brings up database, storage and model. What it opened is closed again when a later part fails.
func open(ctx context.Context, config Config, progress io.Writer, logger *slog.Logger) (_ *parts, err error) {
	p := &parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.bucket, err = openStorage(ctx, config); err != nil {
		return nil, err
	}
	p.closers = append(p.closers, p.bucket.Close)
	if err := p.openDatabase(ctx, config, logger); err != nil {
		return nil, err
	}
	if err := p.openModels(ctx, config, progress, logger); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *parts) openDatabase(ctx context.Context, config Config, logger *slog.Logger) error {
	address := config.DatabaseURL.Reveal()
	if address == "" {
		server, err := postgres.Start(ctx, postgres.Options{
			CacheDir: config.CacheDir, DataDir: filepath.Join(config.DataDir, "postgres"), Logger: logger,
		})
		if err != nil {
			return err
		}
		p.closers = append(p.closers, func() error { return server.Stop(ctx) })
		address = server.URL()
		logger.InfoContext(ctx, "embedded database ready", slog.Bool("owner", server.Owner()))
	}
	pool, err := db.Open(ctx, address, config.DatabaseConns)
	if err != nil {
		return err
	}
	p.pool = pool
	p.closers = append(p.closers, func() error { pool.Close(); return nil })
	return db.Migrate(ctx, pool, logger)
}

// openModels opens the model of KB_MODEL, and the one that the stored vectors were made by when it is another: that one
// answers until a reindex has taken over.
func (p *parts) openModels(ctx context.Context, config Config, progress io.Writer, logger *slog.Logger) error {
	configured, err := p.openConfigured(ctx, config, progress, logger)
	if err != nil {
		return err
	}
	wanted := configured.Space()
	p.spaces = worker.NewSpaces(p.pool, func(ctx context.Context, space embed.Space) (embed.Embedder, error) {
		if space == wanted {
			return configured, nil
		}
		return p.openSpace(ctx, config, wanted.Model, space, progress, logger)
	})
	space, err := db.EnsureSpace(ctx, p.pool, db.EmbeddingSpaceInsertParams{
		Model: wanted.Model, Precision: wanted.Precision, Sha256: wanted.SHA256, Dimensions: int32(wanted.Dimensions),
	})
	if err != nil {
		return fmt.Errorf("prepare the embedding space: %w", err)
	}
	p.configured = space.ID
	active, err := p.spaces.Current(ctx)
	if err != nil {
		return fmt.Errorf("the stored vectors were made by another model than KB_MODEL, which has to answer until a reindex: %w", err)
	}
	if active.ID != space.ID {
		logger.WarnContext(ctx, "searches use another model than KB_MODEL until a reindex: POST /api/v1/reindex",
			slog.String("model", active.Space().Model), slog.String("configured", wanted.Model))
	}
	return worker.CheckChunking(configured, chunking(config))
}

// openConfigured opens the model of KB_MODEL.
func (p *parts) openConfigured(ctx context.Context, config Config, progress io.Writer, logger *slog.Logger) (embed.Embedder, error) {
	if config.ModelPrecision == embed.Remote {
		return p.openRemote(ctx, config, logger)
	}
	model, err := models.Describe(ctx, pullOptions(config, progress, logger), config.Model, config.ModelPrecision)
	if err != nil {
		return nil, fmt.Errorf("read KB_MODEL: %w", err)
	}
	return p.openModel(ctx, config, model, progress, logger)
}

// openSpace opens the model that made the vectors of a space. configured is the name of KB_MODEL's.
func (p *parts) openSpace(ctx context.Context, config Config, configured string, space embed.Space, progress io.Writer, logger *slog.Logger) (embed.Embedder, error) {
	var embedder embed.Embedder
	if space.Precision == embed.Remote {
		if config.EmbedderURL == "" {
			return nil, fmt.Errorf("%s runs behind HTTP: set KB_EMBEDDER_URL, and KB_MODEL_PRECISION to int8 or fp32 for the other model", space.Model)
		}
		options := embedderOptions(config, space.Model)
		options.Model.Dimensions = space.Dimensions
		known, err := remote.NewEmbedder(options)
		if err != nil {
			return nil, err
		}
		embedder = p.addRemote(ctx, config, known, logger)
	} else {
		if space.Model != configured {
			config.ModelDir = "" // It holds the files of KB_MODEL.
		}
		config.ModelPrecision = space.Precision
		model, err := models.Describe(ctx, pullOptions(config, progress, logger), space.Model, space.Precision)
		if err != nil {
			return nil, err
		}
		if embedder, err = p.openModel(ctx, config, model, progress, logger); err != nil {
			return nil, err
		}
	}
	if found := embedder.Space(); found != space {
		return nil, fmt.Errorf("the files of %s (%s) have changed: SHA-256 %.12s, wanted %.12s", space.Model, space.Precision, found.SHA256, space.SHA256)
	}
	return embedder, nil
}

func (p *parts) openModel(ctx context.Context, config Config, model embed.Model, progress io.Writer, logger *slog.Logger) (embed.Embedder, error) {
	dir, err := models.Pull(ctx, pullOptions(config, progress, logger), model, config.ModelPrecision)
	if err != nil {
		return nil, err
	}
	embedder, err := onnx.Open(ctx, onnx.Options{
		Library: config.OnnxRuntime, Model: model, Dir: dir, Precision: config.ModelPrecision, Device: config.Device,
		Threads: config.EmbedThreads, Parallel: config.EmbedParallel,
	})
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, embedder.Close)
	p.device = embedder.Device()
	logger.InfoContext(ctx, "model ready", slog.String("model", model.Name), slog.String("precision", config.ModelPrecision),
		slog.Int("window", model.Window), slog.String("device", p.device.Name), slog.String("reason", p.device.Reason))
	return withCache(config, embedder), nil
}

// openRemote opens KB_MODEL behind KB_EMBEDDER_URL. A server that does not answer for some seconds is no error where the
// database knows the size of its vectors from before.
func (p *parts) openRemote(ctx context.Context, config Config, logger *slog.Logger) (embed.Embedder, error) {
	options := embedderOptions(config, config.Model)
	embedder, err := remote.OpenEmbedder(ctx, options)
	if errors.Is(err, embed.ErrUnavailable) {
		known, listErr := p.knownDimensions(ctx, remote.Space(options.Model))
		switch {
		case listErr != nil:
			return nil, errors.Join(err, listErr)
		case known == 0:
			return nil, fmt.Errorf("%w; it has to answer once, so that the size of its vectors is known", err)
		}
		logger.WarnContext(ctx, "the embedding server does not answer: until it does, searches go by words and uploads wait", slog.Any("error", err))
		options.Model.Dimensions = known
		embedder, err = remote.NewEmbedder(options)
	}
	if err != nil {
		return nil, err
	}
	return p.addRemote(ctx, config, embedder, logger), nil
}

// addRemote makes a model behind HTTP one of the parts.
func (p *parts) addRemote(ctx context.Context, config Config, embedder *remote.Embedder, logger *slog.Logger) embed.Embedder {
	p.closers = append(p.closers, embedder.Close)
	p.device = embed.Device{Name: embed.DeviceCPU, Reason: "a server runs the model (KB_EMBEDDER_URL)"}
	logger.InfoContext(ctx, "model ready", slog.String("model", embedder.Space().Model), slog.String("precision", embed.Remote),
		slog.Int("window", embedder.Window()), slog.Int("dimensions", embedder.Space().Dimensions))
	return withCache(config, embedder)
}

// knownDimensions gives the size of the vectors of a space whose size is not known, as the database has it; 0 when it has not.
func (p *parts) knownDimensions(ctx context.Context, space embed.Space) (int, error) {
	rows, err := db.New().EmbeddingSpaceList(ctx, p.pool)
	if err != nil {
		return 0, fmt.Errorf("list the embedding spaces: %w", err)
	}
	known := 0
	for _, row := range rows {
		if row.Model != space.Model || row.Precision != space.Precision || row.Sha256 != space.SHA256 {
			continue
		}
		if known = int(row.Dimensions); row.Active {
			break
		}
	}
	return known, nil
}

func withCache(config Config, embedder embed.Embedder) embed.Embedder {
	if config.QueryCacheBytes > 0 {
		return embed.NewCache(embedder, config.QueryCacheBytes)
	}
	return embedder
}

// embedderOptions are those of a model behind KB_EMBEDDER_URL. What kb knows of it by name is used; its name is sent as it is
// written.
func embedderOptions(config Config, name string) remote.EmbedderOptions {
	model, err := embed.Lookup(name)
	if err != nil || config.EmbedderWindow < model.Window {
		model.Window = config.EmbedderWindow
	}
	model.Name = name
	return remote.EmbedderOptions{
		URL: config.EmbedderURL, Key: config.EmbedderKey.Reveal(), Model: model, Timeout: config.EmbedderTimeout, Batch: config.EmbedderBatch,
	}
}

func chunking(config Config) job.Chunking {
	return job.Chunking{Size: config.ChunkSize, Overlap: &config.ChunkOverlap, Strategy: config.ChunkStrategy}
}

func (p *parts) ingester(config Config, logger *slog.Logger) (*worker.Ingester, error) {
	inProcess := pdf.New(pdf.Options{CacheDir: filepath.Join(config.CacheDir, "pdfium"), Workers: config.Workers})
	p.closers = append(p.closers, inProcess.Close)
	reader := worker.Reader{PDF: inProcess, Logger: logger}
	if config.DoclingURL != "" {
		converter, err := docling.New(doclingOptions(config))
		if err != nil {
			return nil, fmt.Errorf("use docling-serve (KB_DOCLING_URL): %w", err)
		}
		reader.Converter = converter
	}
	return worker.NewIngester(p.spaces, reader, chunking(config)), nil
}

func doclingOptions(config Config) docling.Options {
	return docling.Options{URL: config.DoclingURL, Key: config.DoclingKey.Reveal(), Timeout: config.DoclingTimeout}
}

// startWorker takes jobs up until stop is called, which waits for the running ones.
func (p *parts) startWorker(ctx context.Context, config Config, ingester *worker.Ingester, logger *slog.Logger) (stop func() error, err error) {
	w, err := worker.New(worker.Options{Pool: p.pool, Bucket: p.bucket, Ingest: ingester, Workers: config.Workers, RetryKeep: config.RetryKeep, SearchKeep: config.SearchLogKeep, Logger: logger})
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	return func() error { return w.Stop(ctx) }, w.Start(ctx)
}

func (p *parts) searcher(config Config, logger *slog.Logger) *search.Searcher {
	settings := search.DefaultSettings()
	settings.RowBudget = config.SearchRowBudget
	settings.StrictMaxHits, settings.TitleBoost = config.SearchStrictMaxHits, config.SearchTitleBoost
	settings.RRFWindow, settings.VectorWeight = config.SearchRRFWindow, config.SearchVectorWeight
	settings.MaxResultWindow = config.SearchMaxResultWindow
	settings.BannerLoose = cmp.Or(config.SearchBannerLoose, settings.BannerLoose)
	settings.BannerVectorOnly = cmp.Or(config.SearchBannerVectorOnly, settings.BannerVectorOnly)
	return search.New(p.pool, p.spaces, settings, p.reranking, logger)
}

// tokens makes the checker of tokens; nil when none is configured.
func tokens(ctx context.Context, config Config, logger *slog.Logger) (*auth.Tokens, error) {
	if config.JWTSecret == "" && config.JWKSURL == "" {
		return nil, nil
	}
	options := config.tokenOptions()
	options.OnError = func(ctx context.Context, err error) {
		logger.WarnContext(ctx, "key set not fetched (KB_JWKS_URL)", slog.Any("error", err))
	}
	return auth.NewTokens(ctx, options)
}

// knowledge has the defaults of knowledge searches.
func knowledge(config Config) api.Knowledge {
	defaults := api.Knowledge{RRFK: config.KnowledgeRRFK, HalfLifeDays: config.KnowledgeHalfLife}
	if config.SearchFusion == "blend" {
		defaults.Fusion = search.Blend
	}
	return defaults
}

func pullOptions(config Config, progress io.Writer, logger *slog.Logger) models.Options {
	return models.Options{
		CacheDir: config.CacheDir, LocalDir: config.ModelDir, HubEndpoint: config.HubEndpoint, HubToken: config.HubToken.Reveal(),
		Offline: config.HubOffline, Progress: progress, Logger: logger,
	}
}
