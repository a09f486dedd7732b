package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kb-search/kb/embed"
)

// ranker answers as rerankers do: the logit of a passage is its length minus 5.
type ranker struct {
	// always, when set, answers instead.
	always http.HandlerFunc

	mutex     sync.Mutex
	questions []map[string]any
	key       string
}

func (s *ranker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question map[string]any
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	s.questions, s.key = append(s.questions, question), r.Header.Get("Authorization")
	always := s.always
	s.mutex.Unlock()
	if always != nil {
		always(w, r)
		return
	}
	texts, tei := question["texts"].([]any)
	name, score := "score", func(logit float64) float64 { return logit }
	if !tei {
		texts, _ = question["documents"].([]any)
		name, score = "relevance_score", sigmoid
	}
	var items []map[string]any
	for i, text := range texts {
		items = append(items, map[string]any{"index": i, name: score(float64(len(text.(string)) - 5)), "document": map[string]any{"text": text}})
	}
	slices.Reverse(items)
	if tei {
		_ = json.NewEncoder(w).Encode(items)
	} else {
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "1", "results": items, "usage": map[string]any{"total_tokens": 9}})
	}
}

// answer sets what all requests get from now on.
func (s *ranker) answer(handler http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.always = handler
}

func sigmoid(logit float64) float64 { return 1 / (1 + math.Exp(-logit)) }

func newReranker(t *testing.T, s *ranker, api string) *Reranker {
	t.Helper()
	r, err := NewReranker(RerankerOptions{URL: start(t, s) + "/x", API: api, Key: secret, Model: "owner/m", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRerank(t *testing.T) {
	t.Parallel()
	passages := make([]string, 40)
	for i := range passages {
		passages[i] = strings.Repeat("x", 1+i*7%11)
	}
	for api, want := range map[string]struct {
		requests int
		fields   string
	}{
		TEI:    {2, `{"query":"pump","raw_scores":true,"texts":null,"truncate":true}`},
		Jina:   {1, `{"documents":null,"model":"owner/m","query":"pump","return_documents":false,"top_n":40}`},
		Cohere: {1, `{"documents":null,"model":"owner/m","query":"pump","top_n":40}`},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			s := &ranker{}
			r := newReranker(t, s, api)
			scores, err := r.Rerank(t.Context(), "pump", passages)
			if err != nil || len(scores) != len(passages) {
				t.Fatalf("%d scores: %v", len(scores), err)
			}
			for i, score := range scores {
				if want := sigmoid(float64(len(passages[i]) - 5)); math.Abs(score-want) > 1e-9 {
					t.Errorf("passage %d has %v, want %v", i, score, want)
				}
			}
			if len(s.questions) != want.requests || s.key != "Bearer "+secret {
				t.Errorf("%d requests, key %q", len(s.questions), s.key)
			}
			for name := range s.questions[0] {
				if name == "documents" || name == "texts" {
					s.questions[0][name] = nil
				}
			}
			if fields, _ := json.Marshal(s.questions[0]); string(fields) != want.fields {
				t.Errorf("asked %s", fields)
			}
			if r.Model() != "owner/m" || r.API() != api {
				t.Errorf("model %q, API %q", r.Model(), r.API())
			}
			if scores, err := r.Rerank(t.Context(), "pump", nil); err != nil || len(scores) != 0 || len(s.questions) != want.requests {
				t.Errorf("no passage: %v, %v", scores, err)
			}
		})
	}
}

func TestRerankFaults(t *testing.T) {
	t.Parallel()
	type scores []string // "index score"
	list := func(field, wrap string, s scores) http.HandlerFunc {
		var items []string
		for _, item := range s {
			index, score, _ := strings.Cut(item, " ")
			items = append(items, fmt.Sprintf(`{"index": %s, %q: %s}`, index, field, score))
		}
		return body(fmt.Sprintf(wrap, "["+strings.Join(items, ", ")+"]"))
	}
	forms := map[string]func(scores) http.HandlerFunc{
		TEI:    func(s scores) http.HandlerFunc { return list("score", "%s", s) },
		Jina:   func(s scores) http.HandlerFunc { return list("relevance_score", `{"results": %s}`, s) },
		Cohere: func(s scores) http.HandlerFunc { return list("relevance_score", `{"results": %s}`, s) },
	}
	type fault struct {
		answer http.HandlerFunc
		want   string
		is     error
	}
	for api, form := range forms {
		faults := map[string]fault{
			"TooManyRequests":  {status(429, "Retry-After", "1"), "429", embed.ErrBusy},
			"ServerError":      {status(500), "500", embed.ErrUnavailable},
			"Unavailable":      {status(503), "503", embed.ErrUnavailable},
			"CutConnection":    {cutOff, "broke off", embed.ErrUnavailable},
			"BadRequest":       {status(400), "no luck with …", nil},
			"WrongKey":         {status(401), "refuses the key", nil},
			"Redirect":         {status(307, "Location", "/"), "redirect", nil},
			"NoJSON":           {body("<html>"), "not what this API answers", nil},
			"OtherForm":        {body(`"scores"`), "not what this API answers", nil},
			"TooFew":           {form(scores{"0 0.5"}), "1 scores for 2 passages", nil},
			"TooMany":          {form(scores{"0 0.5", "1 0.5", "2 0.5"}), "3 scores for 2 passages", nil},
			"IndexTwice":       {form(scores{"1 0.5", "1 0.6"}), "two scores for passage 2", nil},
			"IndexOutOfRange":  {form(scores{"0 0.5", "2 0.6"}), "none of the passages", nil},
			"NegativeIndex":    {form(scores{"0 0.5", "-1 0.6"}), "none of the passages", nil},
			"NoIndex":          {form(scores{"null 0.5", "1 0.5"}), "none of the passages", nil},
			"NaN":              {form(scores{"0 NaN", "1 0.5"}), "not what this API answers", nil},
			"Infinity":         {form(scores{"0 1e999", "1 0.5"}), "not what this API answers", nil},
			"Null":             {form(scores{"0 null", "1 0.5"}), "no score for passage 1", nil},
			"UnknownFieldName": {list("points", map[bool]string{true: "%s", false: `{"results": %s}`}[api == TEI], scores{"0 1", "1 1"}), "no score for passage 1", nil},
		}
		if api != TEI {
			faults["Logits"] = fault{form(scores{"0 0.5", "1 3.2"}), "KB_RERANKER_API=tei", nil}
			faults["NegativeLogits"] = fault{form(scores{"0 -4", "1 0.5"}), "KB_RERANKER_API=tei", nil}
		}
		for name, test := range faults {
			t.Run(api+name, func(t *testing.T) {
				t.Parallel()
				s := &ranker{always: test.answer}
				got, err := newReranker(t, s, api).Rerank(t.Context(), "pump", []string{"one", "two"})
				if err == nil || got != nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), secret) {
					t.Fatalf("got %v, %v, want a sentence with %q", got, err, test.want)
				}
				if test.is != nil && !errors.Is(err, test.is) || test.is == nil && (errors.Is(err, embed.ErrBusy) || errors.Is(err, embed.ErrUnavailable)) {
					t.Errorf("got %v, want %v", err, test.is)
				}
				if len(s.questions) != 1 {
					t.Errorf("%d requests", len(s.questions))
				}
			})
		}
	}
}

func TestRerankLogitsOfAnySize(t *testing.T) {
	t.Parallel()
	s := &ranker{always: body(`[{"index": 0, "score": -5000}, {"index": 1, "score": 5000}, {"index": 2, "score": 0}]`)}
	scores, err := newReranker(t, s, TEI).Rerank(t.Context(), "pump", []string{"a", "b", "c"})
	if err != nil || !slices.Equal(scores, []float64{0, 1, 0.5}) {
		t.Errorf("got %v, %v", scores, err)
	}
}

func TestRerankObeysItsContext(t *testing.T) {
	t.Parallel()
	s := &ranker{always: hang}
	r := newReranker(t, s, TEI)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Rerank(ctx, "pump", slices.Repeat([]string{"seal"}, 100)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	r.client.timeout = 20 * time.Millisecond
	if _, err := r.Rerank(t.Context(), "pump", []string{"seal"}); !errors.Is(err, embed.ErrUnavailable) {
		t.Errorf("slow: %v", err)
	}
}

// A dead reranker costs three searches their time for reranking, then none, and is found again within five seconds.
func TestDeadRerankerCostsSearchesLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &ranker{always: hang}
		r, err := NewReranker(RerankerOptions{URL: "http://server/rerank", HTTP: &http.Client{Transport: inProcess{s}}, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		rerank := func() (time.Duration, error) {
			// The search has less time than the reranker.
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := r.Rerank(ctx, "pump", []string{"seal"})
			return time.Since(start), err
		}
		for i := range 10 {
			took, err := rerank()
			if want := 500 * time.Millisecond; err == nil || i < trips && took != want || i >= trips && took != 0 {
				t.Errorf("search %d took %v: %v", i, took, err)
			}
		}
		s.answer(nil)
		time.Sleep(rest + time.Millisecond)
		if took, err := rerank(); took != 0 || err != nil {
			t.Errorf("back: took %v: %v", took, err)
		}
	})
}

func TestNewReranker(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://h/rerank": TEI, "http://h": TEI, "http://h/v1/rerank": Jina, "http://h/v1/rerank/": Jina, "http://h/v2/rerank?x=1": Cohere,
	} {
		if r, err := NewReranker(RerankerOptions{URL: address}); err != nil || r.API() != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	r, err := NewReranker(RerankerOptions{URL: gone.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rerank(t.Context(), "pump", []string{"seal"}); !errors.Is(err, embed.ErrUnavailable) || !strings.Contains(err.Error(), "can't be reached") {
		t.Errorf("nobody there: %v", err)
	}
	for name, o := range map[string]RerankerOptions{
		"must begin with http": {URL: "host/rerank"},
		`"vespa"`:              {URL: "http://h", API: "vespa"},
		"line end":             {URL: "http://h", Key: "a\n"},
	} {
		if _, err := NewReranker(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want a sentence with %q", err, name)
		}
	}
}
