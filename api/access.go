package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"

	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/db"
)

// access is what a request may do: guard makes it before anything of the request's body is read.
type access struct {
	principal *auth.Principal
	action    string
	kind      string
	// write says that a resource that may be seen, but not touched, is refused; else it is hidden.
	write bool
	// project is the project of the request; nil while none is said.
	project uuid.UUID
	// inQuery is the project as the query names it, for links to further pages.
	inQuery string
	// filter is what the caller's policies leave of the project's resources of that kind; nil for all of them.
	filter json.RawMessage
}

func accessOf(ctx context.Context) *access {
	a, _ := ctx.Value(accessKey).(*access)
	if a == nil {
		return &access{principal: &auth.Principal{}}
	}
	return a
}

// projectOf gives the project that a request works in.
func projectOf(ctx context.Context) uuid.UUID { return accessOf(ctx).project }

// seen gives what the caller's policies leave of the project's resources, as the database reads it; nil for all.
func seen(ctx context.Context) json.RawMessage { return accessOf(ctx).filter }

// policies gives the same for a filter over several projects.
func policies(ctx context.Context) map[string]json.RawMessage {
	if seen(ctx) == nil {
		return nil
	}
	return map[string]json.RawMessage{projectOf(ctx).String(): seen(ctx)}
}

// compileMemories gives what a caller's policies leave of the memories of a project; nil for all of them.
func compileMemories(p *auth.Principal, project uuid.UUID, action string) (filter json.RawMessage, none bool, err error) {
	parse := func(prefix string) func(string) (uuid.UUID, bool) {
		return func(name string) (uuid.UUID, bool) { return parseID(prefix, name) }
	}
	compiled, none := p.MemoryFilter(action, publicID(prefixProject, project), parse(prefixMemory), parse(prefixMemoryStore))
	if compiled == nil {
		return nil, none, nil
	}
	filter, err = compiled.JSON()
	if err != nil {
		return nil, false, fmt.Errorf("write the compiled policies: %w", err)
	}
	return filter, none, nil
}

// getDocument is the action of those who may see a document.
const getDocument = "documents:GetDocument"

const (
	projectHeader = "X-Project-Id"
	projectQuery  = "project_id"
)

// guard decides whether the caller may try an operation at all, and in which project.
func (s *Server) guard(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		principal, _ := ctx.Context().Value(principalKey).(*auth.Principal)
		if principal == nil {
			principal = &auth.Principal{}
		}
		a := &access{principal: principal, action: op.Action, kind: auth.KindOf(op.Action), write: op.isWrite()}
		err := s.enter(ctx.Context(), r, op, a)
		if err != nil {
			s.known(ctx.Context(), op.ID, err).write(w, r)
			return
		}
		next(huma.WithContext(ctx, context.WithValue(ctx.Context(), accessKey, a)))
	}
}

// enter fills in the project of a request and what the caller may do there.
func (s *Server) enter(ctx context.Context, r *http.Request, op operation, a *access) error {
	if op.Admin && !(a.principal.Allows(op.Action, auth.Resource{}) && a.principal.Administers(op.Global)) {
		return errForbidden(op.Action)
	}
	if op.Global {
		return nil
	}
	a.inQuery = r.URL.Query().Get(projectQuery)
	named, err := namedProject(r)
	if err != nil {
		return err
	}
	if named == "" && op.ProjectInBody {
		// The handler reads the body first; see inProject. Who may do it nowhere need not send one.
		if a.write && !a.principal.MayTryAnywhere(op.Action, a.kind) && (a.kind != auth.KindMemory || !a.principal.MayTryAnywhere(op.Action, auth.KindMemoryStore)) {
			return errForbidden(op.Action)
		}
		return nil
	}
	return s.chooseProject(ctx, a, named)
}

// namedProject reads the project that the request names beside its body, and takes it out of the query, which the
// operations do not know it in.
func namedProject(r *http.Request) (string, error) {
	named := r.Header.Get(projectHeader)
	if r.URL.RawQuery == "" {
		return named, nil
	}
	query := r.URL.Query()
	values, there := query[projectQuery]
	if !there {
		return named, nil
	}
	query.Del(projectQuery)
	r.URL.RawQuery = query.Encode()
	for _, value := range values {
		if value != cmp.Or(named, values[0]) {
			return "", errInvalid("query."+projectQuery, "The request names two projects; name one.")
		}
	}
	return cmp.Or(named, values[0]), nil
}

// inProject gives the context of a request whose body names a project; blank is the one that the rest of the request says.
func (s *Server) inProject(ctx context.Context, named string) (context.Context, error) {
	a := *accessOf(ctx)
	switch {
	case a.project != uuid.Nil && (named == "" || named == publicID(prefixProject, a.project)):
		return ctx, nil
	case a.project != uuid.Nil:
		return nil, errInvalid("body."+projectQuery, "The request names two projects; name one.")
	}
	if err := s.chooseProject(ctx, &a, named); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, accessKey, &a), nil
}

// chooseProject settles the project of a request.
func (s *Server) chooseProject(ctx context.Context, a *access, named string) error {
	project, err := s.findProject(ctx, a.principal, named)
	if err != nil {
		return err
	}
	a.project = project
	filter, none, err := a.compile(a.action, a.kind)
	if err != nil {
		return err
	}
	if a.write && (none || project == uuid.Nil) {
		return errForbidden(a.action)
	}
	a.filter = filter
	return nil
}

// findProject gives the project that a caller names, or the only one that it has. A caller without any gets none.
func (s *Server) findProject(ctx context.Context, p *auth.Principal, named string) (uuid.UUID, error) {
	if named != "" {
		id, ok := parseID(prefixProject, named)
		if !ok || !p.Sees(id, named) {
			return uuid.Nil, errNotFound("project")
		}
		row, err := s.liveProject(ctx, id)
		return row.ID, err
	}
	if p.Default != nil {
		row, err := s.liveProject(ctx, *p.Default)
		return row.ID, err
	}
	projects, err := s.projectsOf(ctx, p, 2)
	switch {
	case err != nil:
		return uuid.Nil, err
	case len(projects) > 1:
		return uuid.Nil, &Error{
			status: http.StatusBadRequest, Short: "project required", Code: "project_required", Field: "query." + projectQuery,
			Message: "The caller has several projects; name one with the header " + projectHeader + " or the parameter " + projectQuery + ".",
		}
	case len(projects) == 1:
		return projects[0], nil
	}
	return uuid.Nil, nil
}

// projectsOf gives the projects that a caller sees, at most limit of them, oldest first.
func (s *Server) projectsOf(ctx context.Context, p *auth.Principal, limit int) ([]uuid.UUID, error) {
	params := db.ProjectListParams{Ids: p.Projects}
	if named, all := p.Named(); !all {
		params.Ids = []uuid.UUID{}
		for _, public := range named {
			if id, ok := parseID(prefixProject, public); ok && p.Sees(id, public) {
				params.Ids = append(params.Ids, id)
			}
		}
	}
	rows, err := s.queries.ProjectList(ctx, s.Conn, params)
	if err != nil {
		return nil, fmt.Errorf("list projects: %w", err)
	}
	var projects []uuid.UUID
	for _, row := range rows {
		if len(projects) < limit && p.Sees(row.ID, publicID(prefixProject, row.ID)) {
			projects = append(projects, row.ID)
		}
	}
	return projects, nil
}

// projectFresh is how long a project that was there is taken to be there still: what is written into a project that is being
// erased, its erasure takes away, too.
const projectFresh = time.Second

// liveProjects remembers the projects that were there a moment ago.
type liveProjects struct {
	mu   sync.Mutex
	seen map[uuid.UUID]seenProject
}

type seenProject struct {
	db.Project
	at time.Time
}

// liveProject gives a project that is not being erased, at most projectFresh old.
func (s *Server) liveProject(ctx context.Context, id uuid.UUID) (db.Project, error) {
	s.live.mu.Lock()
	seen, known := s.live.seen[id]
	s.live.mu.Unlock()
	if known && time.Since(seen.at) < projectFresh {
		return seen.Project, nil
	}
	row, err := s.queries.ProjectGet(ctx, s.Conn, id)
	if db.Kind(err) == db.KindNotFound {
		return db.Project{}, errNotFound("project")
	}
	if err != nil {
		return db.Project{}, fmt.Errorf("get project %s: %w", id, err)
	}
	s.live.mu.Lock()
	defer s.live.mu.Unlock()
	if s.live.seen == nil || len(s.live.seen) > 10_000 {
		s.live.seen = map[uuid.UUID]seenProject{}
	}
	s.live.seen[id] = seenProject{row, time.Now()}
	return row, nil
}

// forget has the next request look whether a project is there.
func (l *liveProjects) forget(id uuid.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, id)
}

// compile gives what the caller's policies leave of a kind of resources in the request's project.
func (a *access) compile(action, kind string) (filter json.RawMessage, none bool, err error) {
	if kind == auth.KindMemory {
		return compileMemories(a.principal, a.project, action)
	}
	return compileFilter(a.principal, a.project, action, kind)
}

func compileFilter(p *auth.Principal, project uuid.UUID, action, kind string) (filter json.RawMessage, none bool, err error) {
	compiled, none := p.Filter(action, publicID(prefixProject, project), kind, func(name string) (uuid.UUID, bool) { return parseID(prefixOf[kind], name) })
	if compiled == nil {
		return nil, none, nil
	}
	filter, err = compiled.JSON()
	if err != nil {
		return nil, false, fmt.Errorf("write the compiled policies: %w", err)
	}
	return filter, none, nil
}

// may says whether the caller may do something to a resource of the request's project.
func (a *access) may(action, kind string, tags map[string]string, names ...string) bool {
	return a.principal.Allows(action, auth.Resource{Project: publicID(prefixProject, a.project), Kind: kind, Names: names, Tags: tags})
}

// mayDocument says whether the caller may do something to a document.
func (a *access) mayDocument(action string, row db.Document) bool {
	names := []string{publicID(prefixDocument, row.ID)}
	if row.Path != nil {
		names = append(names, *row.Path)
	}
	return a.may(action, auth.KindDocument, bagOf(row.Tags), names...)
}

// mayStore says whether the caller may do something to a memory store.
func (a *access) mayStore(action string, row db.MemoryStore) bool {
	return a.may(action, auth.KindMemoryStore, bagOf(row.Tags), publicID(prefixMemoryStore, row.ID))
}

// mayMemory says whether the caller may do something to a memory of a store.
func (a *access) mayMemory(action string, row db.Memory, store db.MemoryStore) bool {
	project := publicID(prefixProject, a.project)
	return a.principal.AllowsMemory(action,
		auth.Resource{Project: project, Kind: auth.KindMemory, Names: []string{publicID(prefixMemory, row.ID)}, Tags: bagOf(row.Tags)},
		auth.Resource{Project: project, Kind: auth.KindMemoryStore, Names: []string{publicID(prefixMemoryStore, store.ID)}, Tags: bagOf(store.Tags)})
}

// bagOf reads a stored bag of tags.
func bagOf(tags json.RawMessage) map[string]string {
	var bag map[string]string
	_ = json.Unmarshal(tags, &bag) // The column holds nothing else.
	return bag
}

// projectParameters document how a request names its project.
func projectParameters() []*huma.Param {
	const doc = "The project, for callers who have several"
	return []*huma.Param{
		{Name: projectHeader, In: "header", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}},
		{Name: projectQuery, In: "query", Description: doc + "; the same as the header " + projectHeader, Schema: &huma.Schema{Type: huma.TypeString}},
	}
}
