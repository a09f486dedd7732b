package api

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"
)

const healthPath = "/api/v1/health"

// Gate is the handler that listens from the first moment: until Open it answers that the server is starting.
type Gate struct {
	server atomic.Pointer[Server]
}

// Open lets requests through to a server that is ready.
func (g *Gate) Open(server *Server) { g.server.Store(server) }

// ServeHTTP implements http.Handler.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if server := g.server.Load(); server != nil {
		server.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	if r.URL.Path == healthPath {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(health{Status: "starting"})
		return
	}
	(&Error{status: http.StatusServiceUnavailable, Short: "starting", Code: "starting",
		Message: "The server is starting: it loads its model and prepares its database. Try again in a moment."}).write(w, r)
}

type health struct {
	Status string `json:"status" enum:"starting,healthy" doc:"Whether the server takes requests"`
}

type healthOutput struct {
	Body health
}

func (s *Server) registerHealth(api huma.API) {
	register(s, api, operation{
		ID: "getHealth", Method: http.MethodGet, Path: healthPath, Tag: "Status",
		Summary:     "Whether the server is ready",
		Description: "Needs no key. Answers 503 and `starting` until the model is loaded and the database is ready.",
		Errors:      []int{http.StatusServiceUnavailable},
	}, func(context.Context, *struct{}) (*healthOutput, error) {
		return &healthOutput{Body: health{Status: "healthy"}}, nil
	})
}
