// Package job is the only part of worker that the API imports: the arguments of River jobs, to enqueue in the transaction of
// its own writes, and what an upload must be for a job to read it.
package job

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/kb-search/kb/db"
)

// The queues.
const (
	// QueueIngest runs one job at a time in a process, unless configured otherwise.
	QueueIngest = "ingest"
	// QueueReindex runs one job at a time in a process; it can take hours.
	QueueReindex = "reindex"
	// QueueErase erases one project at a time in a process.
	QueueErase = "erase"
	// QueueMaintenance is for short work of the server itself.
	QueueMaintenance = "maintenance"
)

// MaxAttempts is how often an ingestion is tried: a file that kills the process three times has failed.
const MaxAttempts = 3

// IngestArgs is one turn of the ingestion: it takes up whichever kb job is next. There are as many turns as queued jobs.
// Turns and jobs are apart because River keeps neither the order of a retried job nor a turn for each project.
type IngestArgs struct{}

// Kind implements river.JobArgs.
func (IngestArgs) Kind() string { return "ingest" }

// InsertOpts implements river.JobArgsWithInsertOpts. The attempts of a turn are not bounded by River: the kb job counts.
func (IngestArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: QueueIngest, MaxAttempts: 1000}
}

// StatisticsArgs folds pending statistics of all projects.
type StatisticsArgs struct{}

// Kind implements river.JobArgs.
func (StatisticsArgs) Kind() string { return "statistics" }

// InsertOpts implements river.JobArgsWithInsertOpts. It must not be unique: to River, a completed job and one that died
// with its process count as there until they are cleaned up a day later.
func (StatisticsArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: QueueMaintenance, MaxAttempts: 1}
}

// ReindexArgs takes up the running reindex, if no other process works on it.
type ReindexArgs struct{}

// Kind implements river.JobArgs.
func (ReindexArgs) Kind() string { return "reindex" }

// InsertOpts implements river.JobArgsWithInsertOpts. River does not try it again: the upkeep looks for a reindex that
// nobody works on.
func (ReindexArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: QueueReindex, MaxAttempts: 1}
}

// SweepArgs deletes uploads that nobody will ask for any more.
type SweepArgs struct{}

// Kind implements river.JobArgs.
func (SweepArgs) Kind() string { return "sweep" }

// InsertOpts implements river.JobArgsWithInsertOpts; why it is not unique: see StatisticsArgs.
func (SweepArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: QueueMaintenance, MaxAttempts: 1}
}

// EraseArgs erases what is left of a project that nobody sees any more.
type EraseArgs struct {
	ProjectID uuid.UUID `json:"project_id"`
}

// Kind implements river.JobArgs.
func (EraseArgs) Kind() string { return "erase" }

// InsertOpts implements river.JobArgsWithInsertOpts. The upkeep looks for erasures that ended in the middle.
func (EraseArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: QueueErase, MaxAttempts: 1}
}

// NewInserter gives a client that only inserts jobs.
func NewInserter(pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		// River swallows the notification of a job that comes within the cooldown of the one before, and the job then waits
		// for the worker's next poll.
		FetchCooldown: time.Millisecond,
	})
	if err != nil {
		return nil, fmt.Errorf("make the job client: %w", err)
	}
	return client, nil
}

// StoredFolder is where a project's originals are kept: apart for each project but the default one.
func StoredFolder(projectID uuid.UUID) string {
	if projectID == db.DefaultProjectID {
		return "documents/"
	}
	return "documents/" + projectID.String() + "/"
}

// StoredPath is where an original is kept: by its content's hash.
func StoredPath(projectID uuid.UUID, contentHash []byte, filename string) string {
	return StoredFolder(projectID) + hex.EncodeToString(contentHash) + strings.ToLower(path.Ext(filename))
}
