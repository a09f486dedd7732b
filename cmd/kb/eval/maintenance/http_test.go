package maintenance_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/kb-search/kb/api"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/cmd/kb/eval"
	"github.com/kb-search/kb/cmd/kb/eval/maintenance"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/job"
)

// TestAnswers asks all queries of a small corpus over HTTP: every status, first document, total and facet must be as expected.
func TestAnswers(t *testing.T) {
	t.Parallel()
	pool, embedder := dbtest.New(t), embedtest.New()
	space := embedder.Space()
	_, err := db.EnsureSpace(t.Context(), pool, db.EmbeddingSpaceInsertParams{Model: space.Model, Precision: space.Precision, Sha256: space.SHA256, Dimensions: int32(space.Dimensions)})
	if err != nil {
		t.Fatal(err)
	}
	spaces := worker.NewSpaces(pool, func(context.Context, embed.Space) (embed.Embedder, error) { return embedder, nil })
	set, err := maintenance.Set(maintenance.MinDocuments, maintenance.DefaultSeed)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := eval.Load(t.Context(), pool, worker.NewIngester(spaces, worker.Reader{}, job.Chunking{}), set, "test", func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	handler := api.New(api.Options{
		ProjectID: loaded.ProjectID, Conn: pool, Searcher: search.New(pool, spaces, search.DefaultSettings(), search.Reranking{}, quiet), SearchTimeout: time.Minute, Logger: quiet,
	})
	t.Cleanup(handler.Close)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	got, err := eval.MeasureStructured(t.Context(), server.Client(), server.URL, set, loaded, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got.Queries != 300 || got.Statuses.Of != 300 || got.Firsts.Of < 60 || got.Totals.Of < 200 || got.Facets.Of < 30 {
		t.Errorf("%d queries, statuses of %d, firsts of %d, totals of %d, facets of %d", got.Queries, got.Statuses.Of, got.Firsts.Of, got.Totals.Of, got.Facets.Of)
	}
	for _, wrong := range got.Wrong {
		t.Error(wrong)
	}
}
