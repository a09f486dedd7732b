package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
)

// usageFlush is how long embedded queries are counted in memory before they are added to the database: searches do not wait
// for a write, nor for each other. A server that is killed loses the counts of that time.
const usageFlush = 5 * time.Second

// usage counts embedded queries by project.
type usage struct {
	mu       sync.Mutex
	counts   map[uuid.UUID]int64
	flushing bool
	waiting  sync.WaitGroup
}

// meter counts a query that is embedded for a project.
func (s *Server) meter(ctx context.Context, project uuid.UUID) {
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	if s.usage.counts == nil {
		s.usage.counts = map[uuid.UUID]int64{}
	}
	s.usage.counts[project]++
	if s.usage.flushing {
		return
	}
	s.usage.flushing = true
	ctx = context.WithoutCancel(ctx)
	s.usage.waiting.Go(func() {
		select {
		case <-time.After(usageFlush):
		case <-s.closed:
		}
		if err := s.flushUsage(ctx); err != nil {
			s.Logger.WarnContext(ctx, "usage not counted", slog.Any("error", err))
		}
	})
}

// flushUsage adds what was counted to the database.
func (s *Server) flushUsage(ctx context.Context) error {
	s.usage.mu.Lock()
	counts := s.usage.counts
	s.usage.counts, s.usage.flushing = nil, false
	s.usage.mu.Unlock()
	var params db.UsageAddParams
	for project, n := range counts {
		params.ProjectIds, params.Queries = append(params.ProjectIds, project), append(params.Queries, n)
	}
	if len(params.ProjectIds) == 0 {
		return nil
	}
	if err := s.queries.UsageAdd(ctx, s.Conn, params); err != nil {
		s.usage.mu.Lock()
		defer s.usage.mu.Unlock()
		if s.usage.counts == nil {
			s.usage.counts = map[uuid.UUID]int64{}
		}
		for project, n := range counts {
			s.usage.counts[project] += n // the next flush takes them
		}
		return fmt.Errorf("add %d counts: %w", len(params.ProjectIds), err)
	}
	return nil
}

// Close writes down what the server has counted. No request may come after it.
func (s *Server) Close() {
	s.closing.Do(func() { close(s.closed) })
	s.usage.waiting.Wait()
}

func (s *Server) registerUsage(api huma.API) {
	register(s, api, operation{
		ID: "getProjectUsage", Method: http.MethodGet, Path: "/api/v1/projects/{project_id}/usage", Tag: "Projects", Global: true,
		Summary: "How many queries were embedded for a project", Action: "projects:GetProject", Errors: []int{http.StatusNotFound},
	}, s.usageGet)
}

type usageBody struct {
	_         struct{}   `additionalProperties:"true"`
	ProjectID string     `json:"project_id" doc:"The project's id"`
	Days      []usageDay `json:"days" doc:"The last year's days with any, the last first"`
}

type usageDay struct {
	_       struct{} `additionalProperties:"true"`
	Day     string   `json:"day" format:"date" doc:"The day, in UTC"`
	Queries int64    `json:"queries" doc:"How many queries were embedded"`
}

type usageOutput struct {
	Body usageBody
}

func (s *Server) usageGet(ctx context.Context, in *projectInput) (*usageOutput, error) {
	project, err := s.projectOfPath(ctx, in.ProjectID)
	if err != nil {
		return nil, err
	}
	if err := s.flushUsage(ctx); err != nil {
		return nil, err
	}
	rows, err := s.queries.UsageList(ctx, s.Conn, db.UsageListParams{ProjectID: project.ID, MaxResults: 366})
	if err != nil {
		return nil, fmt.Errorf("list the usage of project %s: %w", project.ID, err)
	}
	out := &usageOutput{Body: usageBody{ProjectID: in.ProjectID, Days: make([]usageDay, len(rows))}}
	for i, row := range rows {
		out.Body.Days[i] = usageDay{Day: row.Day.Time.Format(time.DateOnly), Queries: row.Queries}
	}
	return out, nil
}
