package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/worker/job"
)

// maxName bounds the names of projects, policies and keys, in characters.
const maxName = 200

func (s *Server) registerProjects(api huma.API) {
	register(s, api, operation{
		ID: "listProjects", Method: http.MethodGet, Path: "/api/v1/projects", Tag: "Projects", Global: true,
		Summary: "List the projects that the caller may see, the oldest first", Action: "projects:ListProjects", Errors: []int{http.StatusBadRequest},
	}, s.projectList)
	register(s, api, operation{
		ID: "createProject", Method: http.MethodPost, Path: "/api/v1/projects", Tag: "Projects", Status: http.StatusCreated, Admin: true, Global: true,
		Summary: "Make a project", Action: "projects:CreateProject", Errors: []int{http.StatusBadRequest, http.StatusConflict},
	}, s.projectCreate)
	register(s, api, operation{
		ID: "getProject", Method: http.MethodGet, Path: "/api/v1/projects/{project_id}", Tag: "Projects", Global: true,
		Summary: "Get a project", Action: "projects:GetProject", Errors: []int{http.StatusNotFound},
	}, s.projectGet)
	register(s, api, operation{
		ID: "updateProject", Method: http.MethodPut, Path: "/api/v1/projects/{project_id}", Tag: "Projects", Admin: true, Global: true,
		Summary: "Rename a project, or set how it searches", Action: "projects:UpdateProject", Errors: []int{http.StatusBadRequest, http.StatusNotFound, http.StatusConflict},
	}, s.projectUpdate)
	register(s, api, operation{
		ID: "deleteProject", Method: http.MethodDelete, Path: "/api/v1/projects/{project_id}", Tag: "Projects", Status: http.StatusAccepted,
		Admin: true, Global: true, Summary: "Erase a project and all that is in it",
		Description: "From the answer on nobody sees the project. A job erases its documents, memories, vectors, versions, statistics, jobs, keys and originals, " +
			"and leaves a receipt. The default project can't be erased.",
		Action: "projects:DeleteProject", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.projectDelete)
	register(s, api, operation{
		ID: "getProjectErasure", Method: http.MethodGet, Path: "/api/v1/projects/{project_id}/erasure", Tag: "Projects", Admin: true, Global: true,
		Summary: "Get the receipt of an erased project", Action: "projects:DeleteProject", Errors: []int{http.StatusNotFound},
	}, s.erasureGet)
}

type projectBody struct {
	_              struct{}      `additionalProperties:"true"`
	ID             string        `json:"id" doc:"The project's id" example:"proj_01kb9q5s7ze4gr6tcx3k0z9ykn"`
	Name           string        `json:"name" doc:"Its name, which no other project has"`
	TextConfig     string        `json:"text_config" doc:"The text search configuration of PostgreSQL that its text is analysed by" example:"english"`
	SearchSettings search.Tuning `json:"search_settings" doc:"What goes before the server's search settings in this project, as in the tuning of a search"`
	CreatedAt      time.Time     `json:"created_at" doc:"When it was made"`
	UpdatedAt      *time.Time    `json:"updated_at" doc:"When it was changed; null when never"`
}

func newProject(row db.Project) projectBody {
	tuning, _ := search.ReadTuning(row.SearchSettings) // The column holds nothing else.
	return projectBody{
		ID: publicID(prefixProject, row.ID), Name: row.Name, TextConfig: strings.TrimPrefix(row.TextConfig, "pg_catalog."), SearchSettings: tuning, CreatedAt: row.CreatedAt.UTC(), UpdatedAt: utc(row.UpdatedAt),
	}
}

type projectOutput struct {
	Body projectBody
}

// mayProject says whether the caller may do something to a project as a whole.
func mayProject(p *auth.Principal, action string, id uuid.UUID) bool {
	public := publicID(prefixProject, id)
	return p.Sees(id, public) && p.Allows(action, auth.Resource{Project: public, Kind: auth.KindProject, Names: []string{public}})
}

func (s *Server) projectList(ctx context.Context, in *OffsetInput) (*pageOutput[projectBody], error) {
	a := accessOf(ctx)
	all, err := s.queries.ProjectList(ctx, s.Conn, db.ProjectListParams{Ids: a.principal.Projects})
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	var rows []db.Project
	for _, row := range all {
		if mayProject(a.principal, a.action, row.ID) {
			rows = append(rows, row)
		}
	}
	return pageOf(*in, rows, newProject), nil
}

type projectInput struct {
	ProjectID string `path:"project_id" doc:"The project's id"`
}

// projectOfPath gives the project that a path names, if the caller may do the operation to it.
func (s *Server) projectOfPath(ctx context.Context, public string) (db.Project, error) {
	a := accessOf(ctx)
	id, ok := parseID(prefixProject, public)
	if !ok || !mayProject(a.principal, a.action, id) {
		return db.Project{}, errNotFound("project")
	}
	row, err := s.queries.ProjectGet(ctx, s.Conn, id)
	if db.Kind(err) == db.KindNotFound {
		return db.Project{}, errNotFound("project")
	}
	if err != nil {
		return db.Project{}, fmt.Errorf("get project %s: %w", id, err)
	}
	return row, nil
}

func (s *Server) projectGet(ctx context.Context, in *projectInput) (*projectOutput, error) {
	row, err := s.projectOfPath(ctx, in.ProjectID)
	if err != nil {
		return nil, err
	}
	return &projectOutput{Body: newProject(row)}, nil
}

type projectCreateInput struct {
	Body struct {
		Name       string `json:"name" doc:"The name, which no other project has" example:"acme"`
		TextConfig string `json:"text_config,omitempty" default:"english" maxLength:"63" doc:"The text search configuration of PostgreSQL to analyse text by; it can't be changed later"`
	}
}

func (s *Server) projectCreate(ctx context.Context, in *projectCreateInput) (*projectOutput, error) {
	name, err := cleanName("body.name", in.Body.Name)
	if err != nil {
		return nil, err
	}
	config, err := s.queries.TextConfigFind(ctx, s.Conn, in.Body.TextConfig)
	if db.Kind(err) == db.KindNotFound {
		return nil, errInvalid("body.text_config", "The database has no such text search configuration; english, german and simple are some that it has.")
	}
	if err != nil {
		return nil, fmt.Errorf("look for a text search configuration: %w", err)
	}
	row, err := s.queries.ProjectCreate(ctx, s.Conn, db.ProjectCreateParams{ID: db.NewID(), Name: name, TextConfig: config})
	if db.Kind(err) == db.KindConflict {
		return nil, errNameTaken("project")
	}
	if err != nil {
		return nil, fmt.Errorf("make a project: %w", err)
	}
	return &projectOutput{Body: newProject(row)}, nil
}

type projectUpdateInput struct {
	ProjectID string `path:"project_id" doc:"The project's id"`
	Body      struct {
		Name           string         `json:"name" doc:"The new name, which no other project has"`
		SearchSettings *search.Tuning `json:"search_settings,omitempty" doc:"What goes before the server's search settings in this project, in place of all that it has; left alone when absent"`
	}
}

func (s *Server) projectUpdate(ctx context.Context, in *projectUpdateInput) (*projectOutput, error) {
	found, err := s.projectOfPath(ctx, in.ProjectID)
	if err != nil {
		return nil, err
	}
	name, err := cleanName("body.name", in.Body.Name)
	if err != nil {
		return nil, err
	}
	update := db.ProjectUpdateParams{ID: found.ID, Name: name}
	if in.Body.SearchSettings != nil {
		if update.SearchSettings, err = json.Marshal(in.Body.SearchSettings); err != nil {
			return nil, fmt.Errorf("write the search settings: %w", err)
		}
	}
	row, err := s.queries.ProjectUpdate(ctx, s.Conn, update)
	switch db.Kind(err) {
	case db.KindConflict:
		return nil, errNameTaken("project")
	case db.KindNotFound:
		return nil, errNotFound("project")
	}
	if err != nil {
		return nil, fmt.Errorf("change project %s: %w", found.ID, err)
	}
	s.live.forget(found.ID)
	return &projectOutput{Body: newProject(row)}, nil
}

type erasureBody struct {
	_           struct{}         `additionalProperties:"true"`
	ProjectID   string           `json:"project_id" doc:"The project's id"`
	Name        string           `json:"name" doc:"The name that it had"`
	Status      string           `json:"status" enum:"erasing,erased" doc:"Whether anything is left to do"`
	Erased      map[string]int64 `json:"erased" doc:"How many rows of each table, and how many files, were erased"`
	Remaining   map[string]int64 `json:"remaining" doc:"How many were left when it was done: none"`
	RequestedBy string           `json:"requested_by" doc:"Who asked for it; empty for a caller without a name"`
	RequestedAt time.Time        `json:"requested_at" doc:"When it was asked for"`
	CompletedAt *time.Time       `json:"completed_at" doc:"When it was done; null until then"`
}

type erasureOutput struct {
	Body erasureBody
}

func newErasure(row db.ProjectErasure) (*erasureOutput, error) {
	body := erasureBody{
		ProjectID: publicID(prefixProject, row.ProjectID), Name: row.Name, Status: "erasing", RequestedBy: row.RequestedBy,
		RequestedAt: row.RequestedAt.UTC(), CompletedAt: utc(row.CompletedAt),
	}
	if row.CompletedAt != nil {
		body.Status = "erased"
	}
	for counts, stored := range map[*map[string]int64]json.RawMessage{&body.Erased: row.Erased, &body.Remaining: row.Remaining} {
		if err := json.Unmarshal(stored, counts); err != nil {
			return nil, fmt.Errorf("read the receipt of project %s: %w", row.ProjectID, err)
		}
	}
	return &erasureOutput{Body: body}, nil
}

func (s *Server) projectDelete(ctx context.Context, in *projectInput) (*erasureOutput, error) {
	found, err := s.projectOfPath(ctx, in.ProjectID)
	if err != nil {
		return nil, err
	}
	if found.ID == db.DefaultProjectID || found.ID == s.ProjectID {
		return nil, &Error{
			status: http.StatusConflict, Short: "conflict", Code: "default_project", Message: "The default project can't be erased; delete its documents and memory stores.",
		}
	}
	var receipt db.ProjectErasure
	err = db.InTx(ctx, s.Conn, func(tx pgx.Tx) error {
		if _, err := s.queries.ProjectMarkErased(ctx, tx, found.ID); err != nil {
			return fmt.Errorf("hide project %s: %w", found.ID, err)
		}
		var err error
		receipt, err = s.queries.ErasureInsert(ctx, tx, db.ErasureInsertParams{ProjectID: found.ID, Name: found.Name, RequestedBy: accessOf(ctx).principal.Subject})
		if err != nil {
			return fmt.Errorf("begin the receipt of project %s: %w", found.ID, err)
		}
		if _, err := s.Jobs.InsertTx(ctx, tx, job.EraseArgs{ProjectID: found.ID}, nil); err != nil {
			return fmt.Errorf("enqueue the erasure of project %s: %w", found.ID, err)
		}
		return nil
	})
	if db.Kind(err) == db.KindNotFound {
		return nil, errNotFound("project")
	}
	if err != nil {
		return nil, err
	}
	s.live.forget(found.ID)
	return newErasure(receipt)
}

func (s *Server) erasureGet(ctx context.Context, in *projectInput) (*erasureOutput, error) {
	id, ok := parseID(prefixProject, in.ProjectID)
	if !ok {
		return nil, errNotFound("receipt")
	}
	row, err := s.queries.ErasureGet(ctx, s.Conn, id)
	if db.Kind(err) == db.KindNotFound {
		return nil, errNotFound("receipt")
	}
	if err != nil {
		return nil, fmt.Errorf("get the receipt of project %s: %w", id, err)
	}
	return newErasure(row)
}

func errNameTaken(what string) *Error {
	return &Error{status: http.StatusConflict, Short: "conflict", Code: "name_conflict", Message: "Another " + what + " has that name."}
}

// cleanName gives a name as it is stored.
func cleanName(field, text string) (string, error) {
	name := cleanLine(text)
	if name == "" || utf8.RuneCountInString(name) > maxName {
		return "", errInvalid(field, "The name needs 1 to %d characters.", maxName)
	}
	return name, nil
}
