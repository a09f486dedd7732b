package api_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kb-search/kb/api/search"
	"github.com/kb-search/kb/embed/onnx"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

// timed posts a search and says how long the whole request takes.
func (s *server) timed(b *testing.B, body string) time.Duration {
	b.Helper()
	started := time.Now()
	response, err := s.client.Post(s.url+"/api/v1/search", "application/json", strings.NewReader(body))
	must(b, err)
	content, err := io.ReadAll(response.Body)
	must(b, err)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		b.Fatalf("%d %s", response.StatusCode, content)
	}
	if reranked := strings.Contains(string(content), `"reranked":true`); reranked == strings.Contains(body, `"rerank":false`) {
		b.Fatalf("%s: reranked %v", body, reranked)
	}
	return time.Since(started)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkSearchReranked is one request with 40 candidates of about 150 tokens, the query's embedding included.
func BenchmarkSearchReranked(b *testing.B) {
	c := rerankBy(onnxtest.Reranker(b), 40)
	c.Embedder = onnxtest.Real(b)
	s := start(b, c)
	s.ingestParts(b, 60, 135)
	var times []time.Duration
	for b.Loop() {
		times = append(times, s.timed(b, `{"query":"which pump leaks oil at the seal"}`))
	}
	b.ReportMetric(float64(median(times).Microseconds())/1000, "p50-ms")
}

// BenchmarkSearchBesideAReranker compares requests without reranking while a reranker is loaded and while none is, turn by
// turn. Each round is 50 requests of both.
func BenchmarkSearchBesideAReranker(b *testing.B) {
	loaded := &replaceable{}
	c := rerankBy(loaded, 40)
	c.Embedder = onnxtest.Real(b)
	s := start(b, c)
	s.ingestParts(b, 60, 135)
	measure := func() (times []time.Duration) {
		for range 50 {
			times = append(times, s.timed(b, `{"query":"which pump leaks oil at the seal","rerank":false}`))
		}
		return times
	}
	var with, without []time.Duration
	for b.Loop() {
		without = append(without, measure()...)
		reranker, err := onnx.OpenReranker(b.Context(), onnxtest.RerankerOptions(b))
		must(b, err)
		loaded.Reranker = reranker
		s.timed(b, `{"query":"which pump leaks oil at the seal"}`) // It has worked, and rests.
		with = append(with, measure()...)
		must(b, reranker.Close())
	}
	b.ReportMetric(float64(median(without).Microseconds())/1000, "p50-without-ms")
	b.ReportMetric(float64(median(with).Microseconds())/1000, "p50-with-ms")
	b.ReportMetric(float64(median(with))/float64(median(without)), "ratio")
}

// replaceable is the reranker of the moment.
type replaceable struct{ search.Reranker }

func (r *replaceable) Rerank(ctx context.Context, query string, passages []string) ([]float64, error) {
	return r.Reranker.Rerank(ctx, query, passages)
}
