package eval

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
	"github.com/kb-search/kb/worker"
	"github.com/kb-search/kb/worker/job"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

func TestLoadKeepsMetadata(t *testing.T) {
	t.Parallel()

	pool, embedder := dbtest.New(t), embedtest.New()
	space := embedder.Space()
	_, err := db.EnsureSpace(t.Context(), pool, db.EmbeddingSpaceInsertParams{
		Model: space.Model, Precision: space.Precision, Sha256: space.SHA256, Dimensions: int32(space.Dimensions),
	})
	if err != nil {
		t.Fatal(err)
	}
	spaces := worker.NewSpaces(pool, func(context.Context, embed.Space) (embed.Embedder, error) { return embedder, nil })
	set, err := New("tiny", []Document{
		{ID: "plain", Title: "Oil", Text: "Change it."},
		{ID: "full", Title: "E-1234", Text: "It leaks.", KnowledgeType: "alarm", Metadata: map[string]any{"equipment": "CNC-07", "error_codes": []any{"E-1234", "ALM_0421"}}},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(t.Context(), pool, worker.NewIngester(spaces, worker.Reader{}, job.Chunking{}), set, "test", func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]db.Document{}
	for id, name := range loaded.names {
		if stored[name], err = db.New().DocumentGet(t.Context(), pool, db.DocumentGetParams{ProjectID: loaded.ProjectID, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if plain := stored["plain"]; plain.KnowledgeType != nil || string(plain.Metadata) != "{}" {
		t.Errorf("without any: %v, %s", plain.KnowledgeType, plain.Metadata)
	}
	full := stored["full"]
	var metadata struct {
		Equipment  string   `json:"equipment"`
		ErrorCodes []string `json:"error_codes"`
	}
	if err := json.Unmarshal(full.Metadata, &metadata); err != nil {
		t.Fatal(err)
	}
	if full.KnowledgeType == nil || *full.KnowledgeType != "alarm" || metadata.Equipment != "CNC-07" || len(metadata.ErrorCodes) != 2 {
		t.Errorf("got %v, %s", full.KnowledgeType, full.Metadata)
	}
}
