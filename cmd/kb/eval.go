package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/kb-search/kb/api"
	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/cmd/kb/eval"
	"github.com/kb-search/kb/cmd/kb/eval/maintenance"
	"github.com/kb-search/kb/worker"
)

// eval loads judged sets and prints how well each arm finds what it should.
func (a *app) eval(ctx context.Context, args []string) (err error) {
	set := a.flags("eval", "[FLAGS] DIR...")
	arms := set.String("arm", "lexical,semantic,hybrid,rrf,blend", "the `arms` to measure, separated by commas")
	queries := set.Int("queries", 0, "measure the first `N` queries of each set only; 0 for all")
	generated := set.Int("maintenance", 0, "also measure the generated maintenance corpus of `N` documents, 2000 or more; 20000 is the usual one")
	asJSON := set.Bool("json", false, "print JSON in place of a table")
	dirs, err := arguments(set, args)
	if err != nil {
		return err
	}
	measured, err := parseArms(*arms)
	if err != nil {
		return err
	}
	if len(dirs) == 0 && *generated == 0 {
		return usageError("name at least one folder with corpus.jsonl, queries.jsonl and qrels.tsv, or use --maintenance")
	}
	sets, err := readSets(dirs, *generated)
	if err != nil {
		return err
	}
	logger := newLogger(a.stderr, a.config)
	config := a.config
	config.QueryCacheBytes = 0 // each query is embedded, so that its time is measured
	p, err := open(ctx, config, a.stderr, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if slices.Contains(measured, eval.ArmReranked) {
		if err := p.openEvalReranker(ctx, config, a.stderr, logger); err != nil {
			return err
		}
	}
	ingester, err := p.ingester(config, logger)
	if err != nil {
		return err
	}
	searcher := p.searcher(config, logger)
	fingerprint, err := a.fingerprint(ctx, p)
	if err != nil {
		return err
	}
	var results []eval.Result
	for _, judged := range sets {
		bar := a.progressBar(len(judged.Documents), "load "+judged.Name)
		loaded, err := load(ctx, p, ingester, judged, fingerprint, logger, func(done int) { _ = bar.Set(done) })
		if err != nil {
			return err
		}
		_ = bar.Finish()
		a.writeLoaded(judged, loaded)
		server, err := serveProject(ctx, p, config, loaded.ProjectID, searcher, logger)
		if err != nil {
			return err
		}
		for _, arm := range measured {
			result, err := eval.Measure(ctx, searcher, judged, loaded, arm, *queries)
			if err == nil {
				err = eval.MeasureRequests(ctx, http.DefaultClient, "http://"+server.Addr, judged, loaded, *queries, &result)
			}
			if err != nil {
				return errors.Join(err, server.Close())
			}
			results = append(results, result)
		}
		if err := server.Close(); err != nil {
			return err
		}
	}
	if *asJSON {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	return a.writeResults(results)
}

// openEvalReranker opens the reranker of the configuration, whether it is enabled or not, and lets searches wait for it.
func (p *parts) openEvalReranker(ctx context.Context, config Config, progress io.Writer, logger *slog.Logger) error {
	config.RerankEnabled, config.RerankTimeoutMS = true, int(config.SearchTimeout.Milliseconds())
	if p.openReranker(ctx, config, progress, logger); p.reranking.Reranker == nil {
		return errors.New("the arm reranked has no reranker: see the warning, and KB_RERANKER_MODEL, KB_RERANKER_DIR and KB_RERANKER_URL")
	}
	return nil
}

// fingerprint says what else than a corpus decides what is loaded of it.
func (a *app) fingerprint(ctx context.Context, p *parts) (string, error) {
	active, err := p.spaces.Current(ctx)
	if err != nil {
		return "", err
	}
	if active.ID != p.configured {
		return "", fmt.Errorf("the scratch database holds vectors of %s: name another folder with KB_DATA_DIR to measure %s", active.Space().Model, a.config.Model)
	}
	return fmt.Sprintf("space %d size %d overlap %d", active.ID, a.config.ChunkSize, a.config.ChunkOverlap), nil
}

// readSets reads the sets of folders, and generates one of so many documents unless they are 0.
func readSets(dirs []string, generated int) ([]*eval.Set, error) {
	var sets []*eval.Set
	for _, dir := range dirs {
		set, err := eval.Read(dir)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	if generated > 0 {
		set, err := maintenance.Set(generated, maintenance.DefaultSeed)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// load puts a set into a scratch project: as documents, or, where its documents name stores, as memories.
func load(ctx context.Context, p *parts, ingester *worker.Ingester, set *eval.Set, fingerprint string, logger *slog.Logger, progress func(done int)) (*eval.Loaded, error) {
	if set.OfMemories() {
		return eval.LoadMemories(ctx, p.pool, memory.NewWriter(p.pool, p.spaces, logger), set, fingerprint, progress)
	}
	return eval.Load(ctx, p.pool, ingester, set, fingerprint, progress)
}

// serveProject serves one project on a loopback address, so that whole requests can be timed.
func serveProject(ctx context.Context, p *parts, config Config, projectID uuid.UUID, searcher *search.Searcher, logger *slog.Logger) (*http.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	quiet := slog.New(slog.DiscardHandler)
	server := &http.Server{Addr: listener.Addr().String(), ReadHeaderTimeout: readHeaderTimeout, Handler: api.New(api.Options{
		ProjectID: projectID, Conn: p.pool, Bucket: p.bucket, Searcher: searcher, Unrecorded: true,
		MaxUploadBytes: config.MaxUploadBytes, SearchTimeout: config.SearchTimeout, Logger: quiet,
	})}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.ErrorContext(ctx, "serve the scratch project", slog.Any("error", err))
		}
	}()
	return server, nil
}

func (a *app) writeLoaded(set *eval.Set, loaded *eval.Loaded) {
	_, _ = fmt.Fprintf(a.stderr, "%s: %d documents, %d chunks", set.Name, len(set.Documents), loaded.Chunks)
	if loaded.Took > 0 {
		_, _ = fmt.Fprintf(a.stderr, ", loaded in %s: %.0f chunks/s, %.0f %% of the time embedding",
			loaded.Took.Round(time.Millisecond), float64(loaded.Chunks)/loaded.Took.Seconds(), 100*loaded.EmbeddingShare)
	}
	_, _ = fmt.Fprintln(a.stderr)
}

// parseArms reads the arms before anything is loaded for them.
func parseArms(names string) ([]eval.Arm, error) {
	var arms []eval.Arm
	for name := range strings.SplitSeq(names, ",") {
		arm := eval.Arm(strings.TrimSpace(name))
		if _, err := arm.Mode(); err != nil {
			return nil, usageError("%w", err)
		}
		arms = append(arms, arm)
	}
	return arms, nil
}

func (a *app) writeResults(results []eval.Result) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "set\tarm\tdocuments\tchunks\tqueries\tnDCG@10\trecall@100\tMRR\tstatement p50\tp95\tembed p50\tp95\trequest p50\tp95 ms\t")
	for _, r := range results {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", r.Set, r.Arm, r.Documents, r.Chunks,
			r.Queries, r.NDCG10, r.Recall100, r.MRR, r.StatementP50, r.StatementP95, r.EmbedP50, r.EmbedP95, r.RequestP50, r.RequestP95)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if s := r.Structured; s != nil {
			_, _ = fmt.Fprintf(a.stdout, "%s, %d queries that say what must come of them: status right %s, first %s, total %s, facets %s; request p50 in ms %v\n",
				r.Set, s.Queries, s.Statuses, s.Firsts, s.Totals, s.Facets, s.P50)
			for _, wrong := range s.Wrong {
				_, _ = fmt.Fprintln(a.stdout, "  "+wrong)
			}
		}
	}
	return nil
}
