package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/models"
	"github.com/kb-search/kb/embed/onnx"
	"github.com/kb-search/kb/embed/remote"
)

// openReranker opens the reranker of KB_RERANK_ENABLED. One that can't be opened is a warning: searches have their plain order
// then.
func (p *parts) openReranker(ctx context.Context, config Config, progress io.Writer, logger *slog.Logger) {
	if !config.RerankEnabled {
		return
	}
	p.reranking = search.Reranking{
		Model: config.RerankerModel, Candidates: config.RerankCandidates, Timeout: time.Duration(config.RerankTimeoutMS) * time.Millisecond,
	}
	var attributes []any
	var err error
	if config.RerankerURL != "" {
		var reranker *remote.Reranker
		if reranker, err = remote.NewReranker(rerankerOptions(config)); err == nil {
			p.reranking.Reranker = reranker
			p.closers = append(p.closers, reranker.Close)
			attributes = []any{slog.String("api", reranker.API())}
		}
	} else {
		var reranker *onnx.Reranker
		if reranker, err = loadReranker(ctx, config, progress, logger); err == nil {
			p.reranking.Reranker = reranker
			p.closers = append(p.closers, reranker.Close)
			attributes = []any{slog.String("device", reranker.Device().Name), slog.String("reason", reranker.Device().Reason)}
		}
	}
	if err != nil {
		logger.WarnContext(ctx, "searches are not reranked: the reranker can't be used",
			slog.String("model", config.RerankerModel), slog.Any("error", err))
		return
	}
	logger.InfoContext(ctx, "reranker ready", append([]any{slog.String("model", config.RerankerModel)}, attributes...)...)
}

// loadReranker loads a reranker into this process.
func loadReranker(ctx context.Context, config Config, progress io.Writer, logger *slog.Logger) (*onnx.Reranker, error) {
	precision := localPrecision(config)
	options := pullOptions(config, progress, logger)
	options.LocalDir = config.RerankerDir
	model, err := models.DescribeReranker(ctx, options, config.RerankerModel, precision)
	if err != nil {
		return nil, err
	}
	dir, err := models.Pull(ctx, options, model, precision)
	if err != nil {
		return nil, err
	}
	return onnx.OpenReranker(ctx, onnx.Options{
		Library: config.OnnxRuntime, Model: model, Dir: dir, Precision: precision, Device: config.Device, Threads: config.EmbedThreads,
		Queue: 3 * config.RerankCandidates,
	})
}

// localPrecision is that of models in the process.
func localPrecision(config Config) string {
	if config.ModelPrecision == embed.Remote {
		return embed.Int8
	}
	return config.ModelPrecision
}

func rerankerOptions(config Config) remote.RerankerOptions {
	return remote.RerankerOptions{
		URL: config.RerankerURL, API: config.RerankerAPI, Key: config.RerankerKey.Reveal(), Model: config.RerankerModel,
		Timeout: time.Duration(config.RerankTimeoutMS) * time.Millisecond,
	}
}
