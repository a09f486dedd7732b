package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/embedtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sk-tell-nobody"

// server answers as OpenAI's API does, with the vectors of embedtest. The handlers of faults come first, one a request.
type server struct {
	mutex  sync.Mutex
	faults []http.HandlerFunc
	// always answers when no fault is left; nil answers as it should.
	always http.HandlerFunc
	// batches are the numbers of texts of all requests, inputs the texts.
	batches []int
	inputs  []string
	model   string
	key     string
	path    string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var question struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	s.batches = append(s.batches, len(question.Input))
	s.inputs = append(s.inputs, question.Input...)
	s.model, s.key, s.path = question.Model, r.Header.Get("Authorization"), r.URL.RequestURI()
	answer := s.always
	if len(s.faults) > 0 {
		answer, s.faults = s.faults[0], s.faults[1:]
	}
	s.mutex.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	writeVectors(w, question.Input)
}

// answer sets what all requests get from now on.
func (s *server) answer(handler http.HandlerFunc) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.always = handler
}

func (s *server) requests() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.batches)
}

// writeVectors answers with the right vectors, three times too long and in the wrong order.
func writeVectors(w io.Writer, texts []string) {
	vectors, err := embedtest.New().Embed(context.Background(), embed.Passage, texts)
	if err != nil {
		panic(err)
	}
	type item struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var items []item
	for i, vector := range vectors {
		for j := range vector {
			vector[j] *= 3
		}
		items = append(items, item{"embedding", i, vector})
	}
	slices.Reverse(items)
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": items, "model": "m", "usage": map[string]int{"total_tokens": 5}})
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"error": {"message": "no\nluck with %s", "type": "x"}}`, secret)
	}
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// cutOff breaks the connection in the middle of an answer.
func cutOff(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"data": [{"index": 0, "embedding": [0.1, `)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// hang answers when the client has gone.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// start gives the address of a server.
func start(t *testing.T, handler http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func options(address string) EmbedderOptions {
	return EmbedderOptions{
		URL: address, Key: secret, Batch: 4,
		Model: embed.Model{Name: "owner/m", Window: 64, QueryPrefix: "query: ", PassagePrefix: "passage: "},
	}
}

// opened is an embedder of a server that answers well at first, and waits for nothing between attempts.
func opened(t *testing.T, s *server) *Embedder {
	t.Helper()
	e, err := OpenEmbedder(t.Context(), options(start(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.random = func() float64 { return -0.5 }
	s.mutex.Lock()
	s.batches, s.inputs = nil, nil
	s.mutex.Unlock()
	return e
}

func TestEmbed(t *testing.T) {
	t.Parallel()

	t.Run("VectorsComeInOrderAndNormalized", func(t *testing.T) {
		t.Parallel()
		s := &server{}
		e := opened(t, s)
		texts := []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight"}
		got, err := e.Embed(t.Context(), embed.Passage, texts)
		if err != nil {
			t.Fatal(err)
		}
		prefixed := make([]string, len(texts))
		for i, text := range texts {
			prefixed[i] = "passage: " + text
		}
		want, err := embedtest.New().Embed(t.Context(), embed.Passage, prefixed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			for j := range want[i] {
				if math.Abs(float64(got[i][j]-want[i][j])) > 1e-6 {
					t.Fatalf("text %d has another vector", i)
				}
			}
		}
		if !slices.Equal(s.batches, []int{4, 4, 1}) || !slices.Equal(s.inputs, prefixed) {
			t.Errorf("batches of %v: %q", s.batches, s.inputs)
		}
		if s.model != "owner/m" || s.key != "Bearer "+secret || s.path != "/v1/embeddings" {
			t.Errorf("the server got model %q, %q, %q", s.model, s.key, s.path)
		}
	})

	t.Run("QueryHasItsOwnPrefix", func(t *testing.T) {
		t.Parallel()
		s := &server{}
		e := opened(t, s)
		if _, err := e.Embed(t.Context(), embed.Query, []string{"pump"}); err != nil || s.inputs[0] != "query: pump" {
			t.Errorf("got %q, %v", s.inputs, err)
		}
	})

	t.Run("TextsAreCutToTheWindow", func(t *testing.T) {
		t.Parallel()
		s := &server{}
		e := opened(t, s)
		for _, text := range []string{strings.Repeat("word ", 1000), strings.Repeat("x", 5000), strings.Repeat("知", 500)} {
			if _, err := e.Embed(t.Context(), embed.Passage, []string{text}); err != nil {
				t.Fatal(err)
			}
		}
		for _, input := range s.inputs {
			if n := e.CountTokens(input); n > e.Window()-2 || n < e.Window()-4 {
				t.Errorf("%d tokens of a window of %d: %q", n, e.Window(), input)
			}
		}
	})

	t.Run("BlankIsAnErrorBeforeAnyRequest", func(t *testing.T) {
		t.Parallel()
		s := &server{}
		e := opened(t, s)
		for _, blank := range []string{"", " \n", "\u200b"} {
			_, err := e.Embed(t.Context(), embed.Passage, []string{"text", blank})
			if !errors.Is(err, embed.ErrBlank) || !strings.Contains(err.Error(), "text 2 of 2") || e.CountTokens(blank) != 0 {
				t.Errorf("%q: %v", blank, err)
			}
		}
		if vectors, err := e.Embed(t.Context(), embed.Query, nil); err != nil || len(vectors) != 0 {
			t.Errorf("no text: %v, %v", vectors, err)
		}
		if s.requests() != 0 {
			t.Error("the server was asked")
		}
	})

	t.Run("SpaceIsNamedByTheModel", func(t *testing.T) {
		t.Parallel()
		a, b := opened(t, &server{}).Space(), opened(t, &server{}).Space()
		other := options("").Model
		other.QueryPrefix, other.Dimensions = "", a.Dimensions
		if a != b || a == Space(other) || a.Model != "owner/m" || a.Precision != embed.Remote || len(a.SHA256) != 64 ||
			a.Dimensions != embedtest.New().Space().Dimensions {
			t.Errorf("got %+v, %+v, %+v", a, b, Space(other))
		}
	})

	t.Run("ConcurrentUse", func(t *testing.T) {
		t.Parallel()
		s := &server{}
		e := opened(t, s)
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() {
				if _, err := e.Embed(t.Context(), embed.Kind(i%2), []string{"one", "two", "three", "four", "five"}); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	})
}

// What passes is asked for again until it works.
func TestEmbedTriesAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]http.HandlerFunc{
		"TooManyRequests":    status(429),
		"RetryAfterNow":      status(429, "Retry-After", "0"),
		"RetryAfterADate":    status(503, "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"),
		"RetryAfterNonsense": status(503, "Retry-After", "soon"),
		"ServerError":        status(500),
		"BadGateway":         status(502),
		"Timeout":            status(408),
		"CutConnection":      cutOff,
		"CutBeforeTheAnswer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{}
			e := opened(t, s)
			s.faults = slices.Repeat([]http.HandlerFunc{fault}, 4)
			if _, err := e.Embed(t.Context(), embed.Passage, []string{"text"}); err != nil || s.requests() != 5 {
				t.Errorf("passage: %d requests: %v", s.requests(), err)
			}
			s.faults = []http.HandlerFunc{fault}
			if _, err := e.Embed(t.Context(), embed.Query, []string{"text"}); err != nil || s.requests() != 7 {
				t.Errorf("query: %d requests: %v", s.requests(), err)
			}
			s.answer(fault)
			for kind, attempts := range map[embed.Kind]int{embed.Passage: 5, embed.Query: 2} {
				before := s.requests()
				_, err := e.Embed(t.Context(), kind, []string{"text"})
				if !errors.Is(err, embed.ErrUnavailable) || s.requests()-before != attempts || strings.Contains(err.Error(), secret) {
					t.Errorf("for ever: %d requests: %v", s.requests()-before, err)
				}
			}
		})
	}
}

// What does not pass is an error at once, with a sentence that says what is wrong.
func TestEmbedGivesUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"BadRequest":      {status(400), "it answers 400: no luck with …"},
		"WrongKey":        {status(401), "refuses the key (401)"},
		"NotFound":        {status(404), "404"},
		"TooLong":         {status(413), "413"},
		"Redirect":        {status(302, "Location", "/elsewhere"), "redirect (302)"},
		"NoJSON":          {body("<html>Welcome"), "not what this API answers"},
		"OtherJSON":       {body(`[1, 2]`), "not what this API answers"},
		"NothingInIt":     {body(`{}`), "0 vectors for 2 texts"},
		"TooFew":          {body(`{"data": [{"index": 0, "embedding": [1, 0]}]}`), "1 vectors for 2 texts"},
		"TooMany":         {body(`{"data": [{"index": 0}, {"index": 1}, {"index": 2}]}`), "3 vectors for 2 texts"},
		"WrongSize":       {answerWith(`[1, 0]`), "2 numbers"},
		"NoNumbers":       {answerWith(`[]`), "0 numbers"},
		"Base64":          {answerWith(`"AAAA"`), "not what this API answers"},
		"NaN":             {answerWith(`[NaN]`), "not what this API answers"},
		"Infinity":        {answerWith(`[1e999]`), "not what this API answers"},
		"TooLarge":        {answerWith(`[1e39]`), "not what this API answers"},
		"Null":            {answerWith(numbers("null")), "null for a number"},
		"Zero":            {answerWith(numbers("0")), "no direction"},
		"IndexTwice":      {pairWith(0, 0), "two vectors for text 1"},
		"IndexOutOfRange": {pairWith(0, 2), "for none of the texts"},
		"NegativeIndex":   {pairWith(0, -1), "for none of the texts"},
		"NoIndex":         {body(`{"data": [{"embedding": ` + numbers("1") + `}, {"embedding": ` + numbers("1") + `}]}`), "for none of the texts"},
		"EndlessAnswer":   {body(`{"data": "` + strings.Repeat("x", 4*maxAnswerPerText) + `"}`), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{}
			e := opened(t, s)
			s.answer(test.answer)
			vectors, err := e.Embed(t.Context(), embed.Passage, []string{"one", "two"})
			if err == nil || vectors != nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, embed.ErrUnavailable) ||
				strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
			if s.requests() != 1 {
				t.Errorf("%d requests", s.requests())
			}
		})
	}
}

// numbers is a vector of the right size whose last number is another.
func numbers(last string) string {
	n := embedtest.New().Space().Dimensions
	first := "0"
	if last == "1" {
		first = "1"
	}
	return "[" + strings.Repeat(first+", ", n-1) + last + "]"
}

func answerWith(vector string) http.HandlerFunc {
	return body(`{"data": [{"index": 0, "embedding": ` + vector + `}, {"index": 1, "embedding": ` + numbers("1") + `}]}`)
}

func pairWith(first, second int) http.HandlerFunc {
	return body(fmt.Sprintf(`{"data": [{"index": %[1]d, "embedding": %[3]s}, {"index": %[2]d, "embedding": %[3]s}]}`, first, second, numbers("1")))
}

func TestEmbedObeysItsContext(t *testing.T) {
	t.Parallel()
	s := &server{}
	e := opened(t, s)
	s.answer(hang)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := e.Embed(ctx, embed.Passage, []string{"text"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	s.answer(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, err := e.Embed(ctx, embed.Query, []string{"text"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	s.answer(status(429, "Retry-After", "30"))
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := e.Embed(ctx, embed.Passage, []string{"text"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it waits: %v", err)
	}
	e.client.timeout = 20 * time.Millisecond
	s.answer(hang)
	if _, err := e.Embed(t.Context(), embed.Passage, []string{"text"}); !errors.Is(err, embed.ErrUnavailable) || !strings.Contains(err.Error(), "within 20ms") {
		t.Errorf("slow: %v", err)
	}
}

func TestOpenEmbedderErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*EmbedderOptions)
		answer http.HandlerFunc
		want   string
	}{
		"NotAnAddress":    {func(o *EmbedderOptions) { o.URL = "localhost:8080" }, nil, "KB_EMBEDDER_URL must begin with"},
		"PasswordInIt":    {func(o *EmbedderOptions) { o.URL = "http://a:hush@host" }, nil, "user name or password"},
		"KeyWithALineEnd": {func(o *EmbedderOptions) { o.Key = "a\nb" }, nil, "line end"},
		"NoName":          {func(o *EmbedderOptions) { o.Model.Name = "" }, nil, "no name"},
		"NoWindow":        {func(o *EmbedderOptions) { o.Model.Window = 5 }, nil, "window of 5"},
		"AnotherModel":    {func(o *EmbedderOptions) { o.Model.Dimensions = 7 }, nil, "wanted 7"},
		"WrongKey":        {nil, status(401), "refuses the key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(start(t, &server{always: test.answer}))
			if test.change != nil {
				test.change(&o)
			}
			if _, err := OpenEmbedder(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, embed.ErrUnavailable) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
		})
	}
	if _, err := NewEmbedder(options("http://localhost")); err == nil {
		t.Error("made without dimensions")
	}
}

type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no route to host")
}

func TestOpenEmbedderWaitsForTheServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options("http://server")
		o.HTTP = &http.Client{Transport: inProcess{&server{faults: []http.HandlerFunc{status(503), status(503), status(503)}}}}
		if _, err := OpenEmbedder(t.Context(), o); err != nil {
			t.Errorf("a server that starts: %v", err)
		}
		for name, transport := range map[string]http.RoundTripper{"nobody there": noNetwork{}, "a dead server": inProcess{&server{always: hang}}} {
			o.HTTP = &http.Client{Transport: transport}
			start := time.Now()
			_, err := OpenEmbedder(t.Context(), o)
			if !errors.Is(err, embed.ErrUnavailable) || !strings.Contains(err.Error(), "KB_EMBEDDER_URL") {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
		}
	})
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://h:1":                     "http://h:1/v1/embeddings",
		"http://h/":                      "http://h/v1/embeddings",
		"http://h/v1":                    "http://h/v1/embeddings",
		"http://h/v1/":                   "http://h/v1/embeddings",
		"http://h/a/embeddings":          "http://h/a/embeddings",
		"https://h/deploy/x?version=1.0": "https://h/deploy/x/embeddings?version=1.0",
	} {
		if got := endpoint(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
