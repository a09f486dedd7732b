package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/google/uuid"
	"go.jetify.com/typeid"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/cmd/kb/eval"
	"github.com/kb-search/kb/db"
)

// axes are the settings that a search can be tuned by, with the values that are tried unless others are named. hybrid and
// structured say which searches they are for.
var axes = []struct {
	name, flag, values string
	hybrid, structured bool
}{
	{"title_boost", "title-boost", "1,3,5", false, true},
	{"vector_weight", "vector-weight", "0,0.25,0.5,0.75", false, true},
	{"rrf_window", "rrf-window", "50,100", false, true},
	{"k1", "k1", "0.9,1.2", true, true},
	{"b", "b", "0.4,0.75", true, true},
	{"rrf_k", "rrf-k", "20,60", true, false},
	{"fusion", "fusion", "rrf,blend", true, false},
}

// tune replays judged searches over a grid of settings and prints how they do.
func (a *app) tune(ctx context.Context, args []string) (err error) {
	set := a.flags("tune", "[FLAGS] [DIR...]")
	kind := set.String("search", "structured", "which searches to tune: structured or hybrid")
	generated := set.Int("maintenance", 0, "tune on the generated maintenance corpus of `N` documents")
	queries := set.Int("queries", 0, "use the first `N` queries of a set only; 0 for all")
	rows := set.Int("rows", 20, "print the best `N` rows; 0 for all")
	apply := set.Bool("apply", false, "write the best settings to the project of KB_PROJECT_ID, unless they lose on held-out queries")
	asJSON := set.Bool("json", false, "print JSON in place of a table")
	values := map[string]*string{}
	for _, axis := range axes {
		values[axis.name] = set.String(axis.flag, axis.values, "the `values` of "+axis.name+" to try, separated by commas")
	}
	dirs, err := arguments(set, args)
	if err != nil {
		return err
	}
	grid, err := newGrid(*kind, values)
	if err != nil {
		return err
	}
	structured := *kind == "structured"
	sets, err := readSets(dirs, *generated)
	if err != nil {
		return err
	}
	if len(sets) > 1 {
		return usageError("kb tune takes one set at a time")
	}
	project, err := a.projectID()
	if err != nil {
		return err
	}
	logger := newLogger(a.stderr, a.config)
	p, err := open(ctx, a.config, a.stderr, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	settings, err := projectSettings(ctx, p, project)
	if err != nil {
		return err
	}
	judged, searched, err := a.judged(ctx, p, sets, project, structured, *queries, logger)
	if err != nil {
		return err
	}
	server, err := serveProject(ctx, p, a.config, searched, p.searcher(a.config, logger), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	bar := a.progressBar(len(grid.Points()), "tune")
	tuned, err := eval.Tune(ctx, http.DefaultClient, "http://"+server.Addr, judged, settings, grid, func(done, _ int) { _ = bar.Set(done) })
	if err != nil {
		return err
	}
	_ = bar.Finish()
	if *asJSON {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(tuned)
	} else {
		err = writeTuned(a.stdout, tuned, grid, *rows)
	}
	if err != nil || !*apply {
		return err
	}
	if refusal := tuned.Refusal(); refusal != "" {
		return fmt.Errorf("not applied: %s", refusal)
	}
	maps.Copy(settings, tuned.Tried[0].Tuning)
	return applyTuning(ctx, p, project, settings, a.stdout)
}

// newGrid reads the values to try for a kind of searches.
func newGrid(kind string, values map[string]*string) (eval.Grid, error) {
	if kind != "structured" && kind != "hybrid" {
		return nil, usageError("there is no search %q: write structured or hybrid", kind)
	}
	var grid eval.Grid
	for _, axis := range axes {
		if kind == "structured" && !axis.structured || kind == "hybrid" && !axis.hybrid || *values[axis.name] == "" {
			continue
		}
		read := eval.Axis{Name: axis.name}
		for text := range strings.SplitSeq(*values[axis.name], ",") {
			if axis.name == "fusion" {
				if _, err := search.ParseFusion(text); err != nil {
					return nil, usageError("--%s: %w", axis.flag, err)
				}
				read.Values = append(read.Values, text)
				continue
			}
			number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				return nil, usageError("--%s: %q is no number", axis.flag, text)
			}
			read.Values = append(read.Values, number)
		}
		grid = append(grid, read)
	}
	return grid, nil
}

// projectID is the project of KB_PROJECT_ID, or the default one.
func (a *app) projectID() (uuid.UUID, error) {
	if a.config.ProjectID == "" {
		return db.DefaultProjectID, nil
	}
	id, err := typeid.FromString(a.config.ProjectID)
	if err != nil || id.Prefix() != "proj" {
		return uuid.UUID{}, usageError("KB_PROJECT_ID is %q: write the id of a project, proj_ and 26 characters", a.config.ProjectID)
	}
	return uuid.FromBytes(id.UUIDBytes())
}

// judged gives the judged searches, and the project to search in: those of a set, in its scratch project, or what callers
// have rated in the project itself.
func (a *app) judged(ctx context.Context, p *parts, sets []*eval.Set, project uuid.UUID, structured bool, limit int, logger *slog.Logger) ([]eval.Judged, uuid.UUID, error) {
	if len(sets) == 0 {
		judged, err := ratedSearches(ctx, p, project, structured)
		return judged, project, err
	}
	ingester, err := p.ingester(a.config, logger)
	if err != nil {
		return nil, uuid.UUID{}, err
	}
	if sets[0].OfMemories() {
		return nil, uuid.UUID{}, usageError("%s is a set of memories: kb tune is for searches of documents", sets[0].Name)
	}
	fingerprint, err := a.fingerprint(ctx, p)
	if err != nil {
		return nil, uuid.UUID{}, err
	}
	bar := a.progressBar(len(sets[0].Documents), "load "+sets[0].Name)
	loaded, err := eval.Load(ctx, p.pool, ingester, sets[0], fingerprint, func(done int) { _ = bar.Set(done) })
	if err != nil {
		return nil, uuid.UUID{}, err
	}
	_ = bar.Finish()
	return eval.JudgedQueries(sets[0], loaded, structured, limit), loaded.ProjectID, nil
}

func ratedSearches(ctx context.Context, p *parts, project uuid.UUID, structured bool) ([]eval.Judged, error) {
	rows, err := db.New().FeedbackList(ctx, p.pool, project)
	if err != nil {
		return nil, fmt.Errorf("list the feedback: %w", err)
	}
	ratings := make([]eval.Rated, len(rows))
	for i, row := range rows {
		ratings[i] = eval.Rated{SearchID: row.SearchID.String(), Structured: row.Structured, Request: row.Request, DocumentID: eval.DocumentID(row.DocumentID), Up: row.Rating == "up"}
	}
	judged, without, err := eval.JudgedFeedback(ratings, structured)
	if err == nil && len(judged) == 0 {
		err = fmt.Errorf("there is no rated search of this kind to tune by (%d have no text: it is kept with KB_SEARCH__LOG_QUERIES=true)", without)
	}
	return judged, err
}

// projectSettings are the search settings of a project itself.
func projectSettings(ctx context.Context, p *parts, project uuid.UUID) (map[string]any, error) {
	row, err := db.New().ProjectGet(ctx, p.pool, project)
	if err != nil {
		return nil, fmt.Errorf("get the project (KB_PROJECT_ID): %w", err)
	}
	settings := map[string]any{}
	if err := json.Unmarshal(row.SearchSettings, &settings); err != nil {
		return nil, fmt.Errorf("read the settings of project %s: %w", row.Name, err)
	}
	return settings, nil
}

// applyTuning writes the search settings of a project.
func applyTuning(ctx context.Context, p *parts, project uuid.UUID, settings map[string]any, out io.Writer) error {
	encoded, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	name, err := db.New().ProjectTune(ctx, p.pool, db.ProjectTuneParams{ID: project, SearchSettings: encoded})
	if err != nil {
		return fmt.Errorf("write the settings of the project: %w", err)
	}
	_, err = fmt.Fprintf(out, "project %s now searches with %s\n", name, encoded)
	return err
}

func writeTuned(out io.Writer, tuned eval.Tuned, grid eval.Grid, rows int) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, axis := range grid {
		_, _ = fmt.Fprintf(table, "%s\t", axis.Name)
	}
	_, _ = fmt.Fprintln(table, "nDCG@10\t")
	for i, tried := range tuned.Tried {
		if rows > 0 && i == rows {
			break
		}
		for _, axis := range grid {
			_, _ = fmt.Fprintf(table, "%v\t", tried.Tuning[axis.Name])
		}
		_, _ = fmt.Fprintf(table, "%.4f\t\n", tried.NDCG10)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	best := tuned.Tried[0].Tuning
	var settings []string
	for _, name := range slices.Sorted(maps.Keys(best)) {
		settings = append(settings, fmt.Sprintf("%s %v", name, best[name]))
	}
	_, err := fmt.Fprintf(out, "current settings: %.4f on %d queries\nbest: %s\n  gain %s, on %d held-out queries %s; intervals of 95 %% by bootstrap over queries\n",
		tuned.Current, tuned.Queries, strings.Join(settings, ", "), tuned.Gain, tuned.HeldOut, tuned.HeldOutGain)
	return err
}
