package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kb-search/kb/api/auth"
)

const metricsPath = "/metrics"

// registerMetrics serves counters to Prometheus. They are about all projects, so only admins of the whole deployment may read
// them, where requests are authenticated at all.
func (s *Server) registerMetrics(mux *http.ServeMux) {
	s.searchCount = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kb_searches_total", Help: "Searches that were answered, by their status.",
	}, []string{"status"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.searchCount, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.Searcher != nil {
		registry.MustRegister(s.Searcher.Metrics()...)
	}
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	mux.HandleFunc("GET "+metricsPath, func(w http.ResponseWriter, r *http.Request) {
		if principal, _ := r.Context().Value(principalKey).(*auth.Principal); principal == nil || !principal.Administers(true) {
			errForbidden("status:GetStatus").write(w, r)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}
