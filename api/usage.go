package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/kb-search/kb/db"
)

// usageFlush is how long embedded queries are counted in memory before they are added to the database.
const usageFlush = 5 * time.Second

// meter counts a query that is embedded for a project.
func (s *Server) meter(ctx context.Context, project uuid.UUID) { s.usage.add(ctx, project) }

// addUsage adds queries, each by its project, to the database.
func (s *Server) addUsage(ctx context.Context, queries []uuid.UUID) error {
	counts := map[uuid.UUID]int64{}
	for _, project := range queries {
		counts[project]++
	}
	var params db.UsageAddParams
	for project, n := range counts {
		params.ProjectIds, params.Queries = append(params.ProjectIds, project), append(params.Queries, n)
	}
	if err := s.queries.UsageAdd(ctx, s.Conn, params); err != nil {
		return fmt.Errorf("count %d queries: %w", len(queries), err)
	}
	return nil
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
	s.usage.flush(ctx)
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
