package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kb-search/kb/db/dbtest"
)

// modelStatus is what a server says of its models.
type modelStatus struct {
	Model      string `json:"model_name"`
	Dimensions int    `json:"embedding_dim"`
	Device     string `json:"device"`
	Spaces     []struct {
		Model      string `json:"model"`
		Active     bool   `json:"active"`
		Configured bool   `json:"configured"`
	} `json:"embedding_spaces"`
}

// TestModelChange goes from one real model to others, of the same and of another size, and back, on the same documents.
func TestModelChange(t *testing.T) {
	t.Parallel()
	address, docs := dbtest.EmptyDatabase(t), t.TempDir()
	write(t, docs, map[string]string{
		"oil.md":   "# Engine\n\nReplace the lubricant every 10,000 km.\n",
		"tyres.md": "# Wheels\n\nRotate the tyres twice a year.\n",
		"wash.md":  "# Paint\n\nRinse off salt in winter.\n",
	})
	dir := t.TempDir()
	start := func(model string) *server {
		s := serve(t, dir, "KB_DATABASE_URL="+address, "KB_MODEL="+model)
		s.ready(t)
		return s
	}
	wantModel := func(s *server, model string, dimensions, spaces int) {
		t.Helper()
		var status modelStatus
		s.get(t, "/api/v1/status", &status)
		if status.Model != model || status.Dimensions != dimensions || status.Device != "cpu" || len(status.Spaces) != spaces {
			t.Errorf("status %+v, want %s of %d dimensions, %d spaces", status, model, dimensions, spaces)
		}
	}
	// The question shares no word with its answer, so that only the vectors of one model can find it.
	wantFound := func(s *server) {
		t.Helper()
		s.kb(t, "search", "how often is motor oil changed").want(t, 0, "Engine")
		first := strings.SplitN(s.kb(t, "search", "--top", "1", "how often is motor oil changed").stdout, "\n", 3)
		if !strings.Contains(strings.Join(first, "\n"), "Engine") {
			t.Errorf("the best result: %q", first)
		}
	}

	s := start("all-MiniLM-L6-v2")
	s.kb(t, "ingest", docs).want(t, 0, "3 stored")
	wantFound(s)
	s.signal(15)

	for i, model := range []struct {
		name, short string
		dimensions  int
	}{{"BAAI/bge-small-en-v1.5", "bge-small-en-v1.5", 384}, {"BAAI/bge-small-zh-v1.5", "bge-small-zh-v1.5", 512}} {
		before := []string{"all-MiniLM-L6-v2", "bge-small-en-v1.5"}[i]
		s = start(model.name)
		if !strings.Contains(s.stderr.String(), "searches use another model than KB_MODEL") {
			t.Errorf("%s: the log does not say that another model is in use", model.name)
		}
		wantModel(s, before, 384, i+2)
		wantFound(s)
		s.kb(t, "reindex").want(t, 0, "searches use "+model.short)
		time.Sleep(1100 * time.Millisecond) // until the server searches with the new space
		wantModel(s, model.short, model.dimensions, i+2)
		if model.dimensions == 384 {
			wantFound(s)
		} else {
			s.kb(t, "search", "tyres").want(t, 0, "Wheels")
		}
		extra := t.TempDir()
		write(t, extra, map[string]string{fmt.Sprintf("extra%d.md", i): fmt.Sprintf("# Extra %d\n\nThe horn is loud.\n", i)})
		s.kb(t, "ingest", extra).want(t, 0, "1 stored")
		s.signal(15)
	}

	s = start("BAAI/bge-small-zh-v1.5")
	s.kb(t, "reindex", "--rollback").want(t, 0, "searches use bge-small-en-v1.5")
	time.Sleep(1100 * time.Millisecond)
	wantModel(s, "bge-small-en-v1.5", 384, 3)
	wantFound(s)
}
