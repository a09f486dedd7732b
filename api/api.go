// Package api is the HTTP face of kb: a request becomes a call of db, search or job, and what comes back becomes a
// response. It picks no implementation and reads no environment. Its invariant: every operation is registered by register,
// which documents it, and every error leaves as one JSON form.
package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"gocloud.dev/blob"

	"github.com/kb-search/kb"
	"github.com/kb-search/kb/api/auth"
	"github.com/kb-search/kb/api/memory"
	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/worker/job"
)

// Enqueuer inserts River jobs in the transaction of the rows that they are about.
type Enqueuer interface {
	InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error)
}

// Options are what the server stands on.
type Options struct {
	// ProjectID is the project of callers who have no other one. Defaults to the default project.
	ProjectID uuid.UUID
	Conn      db.Conn
	Bucket    *blob.Bucket
	Jobs      Enqueuer
	Searcher  *search.Searcher
	// Reviser changes notes.
	Reviser Reviser
	// CheckChunking says whether documents can be cut as a caller wants it.
	CheckChunking func(ctx context.Context, chunking job.Chunking) error
	// Memories writes memories.
	Memories *memory.Writer
	// FileTypes are the kinds of files that are taken in.
	FileTypes job.Types
	// ConfiguredSpace is the number of the embedding space that a reindex makes active.
	ConfiguredSpace int32
	// Device is what models run on, as /status shows it.
	Device embed.Device
	// Database says where the database comes from, as /status shows it: embedded or external.
	Database string
	// APIKey is the bearer token of an admin, and Tokens checks the tokens of others. With neither, requests need no token.
	APIKey string
	Tokens *auth.Tokens
	// Origins are the web origins whose pages may call the server; "*" stands for all.
	Origins []string
	// Knowledge has the defaults of knowledge searches.
	Knowledge Knowledge
	// MaxUploadBytes is the largest file or note.
	MaxUploadBytes int64
	// SearchTimeout bounds one search.
	SearchTimeout time.Duration
	// LogQueries keeps the texts of searches beside their other parameters. Unrecorded writes no searches down.
	LogQueries, Unrecorded bool
	Logger                 *slog.Logger
}

// Server answers the API's operations.
type Server struct {
	Options
	queries *db.Queries
	handler http.Handler
	openAPI *huma.OpenAPI
	live    liveProjects
	// usage has the projects of embedded queries, searches what was asked and answered.
	usage    later[uuid.UUID]
	searches later[searchRecord]
	// searchCount counts searches by status.
	searchCount *prometheus.CounterVec
	// closed ends when the server does.
	closed  chan struct{}
	closing sync.Once
}

// New builds a server. It opens nothing: what it stands on is there already.
func New(opts Options) *Server {
	s := &Server{Options: opts, queries: db.New(), closed: make(chan struct{})}
	s.ProjectID = cmp.Or(s.ProjectID, db.DefaultProjectID)
	s.usage = later[uuid.UUID]{delay: usageFlush, write: s.addUsage, closed: s.closed, logger: s.Logger}
	s.searches = later[searchRecord]{delay: searchFlush, write: s.addSearches, closed: s.closed, logger: s.Logger}
	mux := http.NewServeMux()
	api := humago.New(mux, config())
	s.openAPI = api.OpenAPI()

	s.registerHealth(api)
	s.registerErrorCatalog(mux)
	s.registerMetrics(mux)
	s.registerStatus(api)
	s.registerReindex(api)
	s.registerJobs(api)
	s.registerDocuments(api)
	s.registerFiles(api)
	s.registerNotes(api)
	s.registerVersions(api)
	s.registerTags(api)
	s.registerSearch(api)
	s.registerFeedback(api)
	s.registerKnowledge(api)
	s.registerMemoryStores(api)
	s.registerMemories(api)
	s.registerMemoryIO(api)
	s.registerProjects(api)
	s.registerUsage(api)
	s.registerPolicies(api)
	s.registerAPIKeys(api)
	documentErrors(s.openAPI)

	s.handler = s.recoverPanics(s.allowOrigins(s.logRequests(s.authenticate(s.refuseEncoded(jsonErrors(mux))))))
	return s
}

// Close writes down what the server has collected. No request may come after it.
func (s *Server) Close() {
	s.closing.Do(func() { close(s.closed) })
	s.usage.close()
	s.searches.close()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// OpenAPI gives the document that is generated from the operations.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.openAPI }

// setUpHuma sets what huma keeps in variables of its package; once, since a process may have several servers.
var setUpHuma = sync.OnceFunc(func() {
	huma.NewError = func(status int, message string, details ...error) huma.StatusError {
		return newHumaError(status, message, details...)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, details ...error) huma.StatusError {
		return newHumaError(status, message, details...).in(familyOf(ctx.Operation().Path))
	}
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

func config() huma.Config {
	setUpHuma()
	config := huma.DefaultConfig("kb", kb.Version())
	config.Info.Description = "A multi-tenant knowledge server: documents go in, one hybrid search brings the right passages back."
	config.Info.License = &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}
	config.OpenAPIPath = "/openapi"
	config.DocsPath = ""
	config.SchemasPath = ""
	config.CreateHooks = nil
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearerAuth": {Type: "http", Scheme: "bearer", BearerFormat: "JWT", Description: "A token, an API key (sk_...), or the key of KB_API_KEY; none where the server is configured for none."},
	}
	config.Security = []map[string][]string{{"bearerAuth": {}}}
	return config
}
