package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kb-search/kb/cmd/kb/eval"
)

// eval loads judged sets and prints how well each arm finds what it should.
func (a *app) eval(ctx context.Context, args []string) (err error) {
	set := a.flags("eval", "[FLAGS] DIR...")
	arms := set.String("arm", "lexical,semantic,hybrid", "the `arms` to measure, separated by commas")
	queries := set.Int("queries", 0, "measure the first `N` queries of each set only; 0 for all")
	asJSON := set.Bool("json", false, "print JSON in place of a table")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return usageError("name at least one folder with corpus.jsonl, queries.jsonl and qrels.tsv")
	}
	logger := newLogger(a.stderr, a.config)
	config := a.config
	config.QueryCacheBytes = 0 // each query is embedded, so that its time is measured
	p, err := open(ctx, config, a.stderr, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ingester, err := p.ingester(config)
	if err != nil {
		return err
	}
	searcher := p.searcher(config, logger)
	fingerprint := fmt.Sprintf("space %d size %d overlap %d", p.space.ID, config.ChunkSize, config.ChunkOverlap)
	var results []eval.Result
	for _, dir := range set.Args() {
		judged, err := eval.Read(dir)
		if err != nil {
			return err
		}
		bar := a.progressBar(len(judged.Documents), "load "+judged.Name)
		started := time.Now()
		loaded, err := eval.Load(ctx, p.pool, ingester, judged, fingerprint, func(done int) { _ = bar.Set(done) })
		if err != nil {
			return err
		}
		_ = bar.Finish()
		_, _ = fmt.Fprintf(a.stderr, "%s: %d documents, %d chunks, loaded in %s\n", judged.Name, len(judged.Documents), loaded.Chunks, time.Since(started).Round(time.Millisecond))
		for arm := range strings.SplitSeq(*arms, ",") {
			result, err := eval.Measure(ctx, searcher, judged, loaded, eval.Arm(strings.TrimSpace(arm)), *queries)
			if err != nil {
				return err
			}
			results = append(results, result)
		}
	}
	if *asJSON {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	return a.writeResults(results)
}

func (a *app) writeResults(results []eval.Result) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "set\tarm\tdocuments\tchunks\tqueries\tnDCG@10\trecall@100\tMRR\tstatement p50\tp95\tembed p50\tp95 ms\t")
	for _, r := range results {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%.3f\t%.3f\t%.3f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", r.Set, r.Arm, r.Documents, r.Chunks,
			r.Queries, r.NDCG10, r.Recall100, r.MRR, r.StatementP50, r.StatementP95, r.EmbedP50, r.EmbedP95)
	}
	return table.Flush()
}
