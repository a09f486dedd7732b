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

// reranking is the reranker that searches have, or why they have none.
type reranking struct {
	// reranker is nil when reranking is off, or err.
	reranker search.Reranker
	// model is KB_RERANKER_MODEL, empty when reranking is off.
	model string
	// err is why the reranker can't be used.
	err error
}

// openReranker opens the reranker of KB_RERANK_ENABLED. One that can't be opened is a warning: searches have their plain order
// then.
func (p *parts) openReranker(ctx context.Context, config Config, progress io.Writer, logger *slog.Logger) {
	if !config.RerankEnabled {
		return
	}
	p.reranking.model = config.RerankerModel
	var attributes []any
	if config.RerankerURL != "" {
		var reranker *remote.Reranker
		if reranker, p.reranking.err = remote.NewReranker(rerankerOptions(config)); p.reranking.err == nil {
			p.reranking.reranker = reranker
			p.closers = append(p.closers, reranker.Close)
			attributes = []any{slog.String("api", reranker.API())}
		}
	} else {
		var reranker *onnx.Reranker
		if reranker, p.reranking.err = loadReranker(ctx, config, progress, logger); p.reranking.err == nil {
			p.reranking.reranker = reranker
			p.closers = append(p.closers, reranker.Close)
			attributes = []any{slog.String("device", reranker.Device().Name), slog.String("reason", reranker.Device().Reason)}
		}
	}
	if p.reranking.err != nil {
		logger.WarnContext(ctx, "searches are not reranked: the reranker can't be used",
			slog.String("model", config.RerankerModel), slog.Any("error", p.reranking.err))
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
