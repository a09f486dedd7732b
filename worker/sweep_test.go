package worker_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

func TestSweep(t *testing.T) {
	t.Parallel()
	b := setup(t, fake())
	waiting := b.enqueue(t, db.DefaultProjectID, "waiting.txt", long("pump"))
	ended := b.enqueue(t, db.DefaultProjectID, "ended.txt", long("valve"))
	_, err := b.pool.Exec(t.Context(), "UPDATE jobs SET status = 'processing', heartbeat_at = now() WHERE id = $1", waiting.ID)
	must(t, err)
	_, err = b.pool.Exec(t.Context(), "UPDATE jobs SET status = 'cancelled', completed_at = now() WHERE id = $1", ended.ID)
	must(t, err)

	orphan, recent, half, kept, expired := db.NewID(), db.NewID(), db.NewID(), db.NewID(), db.NewID()
	write := func(path string, age time.Duration) {
		t.Helper()
		must(t, b.bucket.WriteAll(t.Context(), path, []byte("text"), nil))
		b.age(t, path, age)
	}
	b.age(t, waiting.StagingPath, 5*time.Hour)
	b.age(t, ended.StagingPath, 5*time.Hour)
	write(job.StagingPath(orphan), 5*time.Hour)
	write(job.StagingPath(half)+".18a2.tmp", 5*time.Hour)
	write(job.StagingPath(recent), time.Minute)
	write("staging/of-somebody-else", 5*time.Hour)
	write(job.FailedPath(kept), 5*time.Hour)
	write(job.FailedPath(expired), 100*time.Hour)
	_, err = b.pool.Exec(t.Context(), `INSERT INTO searches (project_id, id, principal, structured, request, status, documents, chunks, total, created_at)
		SELECT $1, gen_random_uuid(), '', true, '{}', age, ARRAY[$1::uuid], ARRAY[$1::uuid], 1, now() - age::interval FROM unnest(ARRAY['1 hour', '47 hours', '49 hours', '1 year']) AS a (age)`, db.DefaultProjectID)
	must(t, err)
	_, err = b.pool.Exec(t.Context(), "INSERT INTO search_feedback (project_id, search_id, document_id, principal, rating, comment) SELECT project_id, id, project_id, '', 'up', '' FROM searches")
	must(t, err)

	b.start(t)
	eventually(t, "the sweep", func() bool {
		return b.count(t, "SELECT count(*) FROM river_job WHERE kind = 'sweep' AND state = 'completed'") == 1
	})
	want := []string{job.FailedPath(kept), "staging/of-somebody-else", job.StagingPath(recent), waiting.StagingPath}
	slices.Sort(want)
	if got := b.files(t, ""); !slices.Equal(got, want) {
		t.Errorf("left: %v, want %v", got, want)
	}
	for table, want := range map[string]int{"searches": 2, "search_feedback": 2} {
		if got := b.count(t, "SELECT count(*) FROM "+table); got != want {
			t.Errorf("%d of %s are left, want %d", got, table, want)
		}
	}
}

// age makes a file look as old as it is said to be.
func (b *bundle) age(t *testing.T, path string, age time.Duration) {
	t.Helper()
	then := time.Now().Add(-age)
	must(t, os.Chtimes(b.dir+"/"+path, then, then))
}
