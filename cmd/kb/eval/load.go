package eval

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/parse"
)

// Load puts a set into a scratch project, through the product's ingestion. The project is named by the corpus and by
// fingerprint (what else decides the outcome: model, chunk size), so a second load of the same finds all documents there,
// and an interrupted one goes on. progress is called as documents are done.
func Load(ctx context.Context, pool *pgxpool.Pool, ingester *worker.Ingester, set *Set, fingerprint string, progress func(done int)) (*Loaded, error) {
	project, err := scratchProject(ctx, pool, set, fingerprint)
	if err != nil {
		return nil, err
	}
	present, err := documentNames(ctx, pool, project.ID)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(present))
	for _, id := range present {
		there[id] = true
	}
	started := time.Now()
	workers := runtime.GOMAXPROCS(0)
	var embedding atomic.Int64
	done := make(chan struct{}, len(set.Documents))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	count := len(there)
	progress(count)
	for _, document := range set.Documents {
		if there[document.ID] || strings.TrimSpace(document.Text+document.Title) == "" {
			continue
		}
		group.Go(func() error {
			defer func() { done <- struct{}{} }()
			took, err := load(groupCtx, pool, ingester, project.ID, document)
			embedding.Add(int64(took))
			return err
		})
		for len(done) > 0 {
			<-done
			count++
			progress(count)
		}
		if groupCtx.Err() != nil {
			break
		}
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("load %s: %w", set.Name, err)
	}
	progress(len(set.Documents))
	took := time.Since(started)
	changed := count != len(there) || len(done) > 0
	names, err := documentNames(ctx, pool, project.ID)
	if err != nil {
		return nil, err
	}
	loaded := &Loaded{ProjectID: project.ID, names: names}
	if changed {
		loaded.Took = took
		loaded.EmbeddingShare = float64(embedding.Load()) / float64(took*time.Duration(workers))
	}
	return loaded, loaded.finish(ctx, pool, changed)
}

// scratchProject is the project that a set is loaded into.
func scratchProject(ctx context.Context, pool *pgxpool.Pool, set *Set, fingerprint string) (db.Project, error) {
	name := fmt.Sprintf("eval %s %.6x %s", set.Name, set.Hash, fingerprint)
	project, err := db.New().ProjectInsert(ctx, pool, db.ProjectInsertParams{ID: db.NewID(), Name: name, TextConfig: "pg_catalog.english"})
	if err != nil {
		return db.Project{}, fmt.Errorf("make the scratch project: %w", err)
	}
	return project, nil
}

// load ingests one document and says how long its embedding took.
func load(ctx context.Context, pool *pgxpool.Pool, ingester *worker.Ingester, projectID uuid.UUID, document Document) (time.Duration, error) {
	hash := sha256.Sum256([]byte(document.ID + "\x00" + document.Title + "\x00" + document.Text))
	if strings.TrimSpace(document.Text) == "" {
		document.Text = document.Title
	}
	source := worker.Source{
		ProjectID: projectID, Filename: document.ID, Title: document.Title, DocType: parse.TypeNote, Tags: db.TagBag(nil),
		ContentHash: hash[:], Size: int64(len(document.Text)), Data: []byte(document.Text),
	}
	if document.KnowledgeType != "" {
		source.KnowledgeType = &document.KnowledgeType
	}
	if len(document.Metadata) > 0 {
		metadata, err := json.Marshal(document.Metadata)
		if err != nil {
			return 0, fmt.Errorf("document %s: write the metadata: %w", document.ID, err)
		}
		source.Metadata = metadata
	}
	prepared, err := ingester.Prepare(ctx, source, func(string, int, int) {})
	if err != nil {
		return 0, fmt.Errorf("document %s: %w", document.ID, err)
	}
	return prepared.Timings[worker.PhaseEmbed], db.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := ingester.Store(ctx, tx, prepared)
		return err
	})
}

// finish folds the statistics and, after new rows, lets the planner see them.
func (l *Loaded) finish(ctx context.Context, pool *pgxpool.Pool, changed bool) error {
	if err := db.FoldStatistics(ctx, pool, l.ProjectID); err != nil {
		return err
	}
	if changed {
		if err := db.Analyze(ctx, pool); err != nil {
			return err
		}
	}
	stats, err := db.New().StatisticsGet(ctx, pool, l.ProjectID)
	if err != nil {
		return fmt.Errorf("read the statistics: %w", err)
	}
	l.Chunks = stats.N
	return nil
}

func documentNames(ctx context.Context, pool *pgxpool.Pool, projectID uuid.UUID) (map[uuid.UUID]string, error) {
	rows, err := db.New().DocumentExport(ctx, pool, projectID)
	if err != nil {
		return nil, fmt.Errorf("list the documents of the scratch project: %w", err)
	}
	names := make(map[uuid.UUID]string, len(rows))
	for _, row := range rows {
		names[row.ID] = row.OriginalFilename
	}
	return names, nil
}
