package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kb-search/kb/cmd/kb/client"
	"github.com/kb-search/kb/embed"
	"github.com/kb-search/kb/embed/onnx/onnxtest"
)

const (
	// searchRate is how many searches come in a second, whether the ones before are answered or not.
	searchRate = 20
	// idleTime is how long searches are measured before and after the ingestion.
	idleTime = 15 * time.Second
	// A file makes about 40 chunks of 190 tokens.
	filesBefore, filesBusy, sectionsPerFile = 50, 130, 40
	chunksBusy                              = 5000
)

// BenchmarkSearchWhileIngesting measures hybrid searches of a server with the embedded database and about 2,000 chunks:
// idle, while it ingests 5,000 more, and idle again. It takes two minutes or more, whatever -benchtime says.
func BenchmarkSearchWhileIngesting(b *testing.B) {
	for b.Loop() {
		library := newLibrary(b)
		kb, url := startForBench(b)
		before, more := library.files(b, "before", filesBefore), library.files(b, "busy", filesBusy)
		alone := kb.ingest(b, url, before)

		idle := library.search(b, url, after(idleTime))
		busy := make(chan struct{})
		var while ingested
		go func() {
			defer close(busy)
			while = kb.ingest(b, url, more)
		}()
		loaded := library.search(b, url, busy)
		again := library.search(b, url, after(idleTime))
		if b.Failed() {
			return
		}
		if while.chunks < chunksBusy {
			b.Fatalf("only %d chunks were ingested during the searches", while.chunks)
		}
		b.Logf("load average %s; %d chunks before, %d while searching; idle p95 %.1f ms before, %.1f ms after; busy p99 %.1f ms, max %.1f ms",
			loadAverage(), alone.chunks, while.chunks, quantile(idle, 0.95), quantile(again, 0.95), quantile(loaded, 0.99), quantile(loaded, 1))
		idle95 := (quantile(idle, 0.95) + quantile(again, 0.95)) / 2
		b.ReportMetric((quantile(idle, 0.5)+quantile(again, 0.5))/2, "idle-p50-ms")
		b.ReportMetric(idle95, "idle-p95-ms")
		b.ReportMetric(quantile(loaded, 0.5), "busy-p50-ms")
		b.ReportMetric(quantile(loaded, 0.95), "busy-p95-ms")
		b.ReportMetric(quantile(loaded, 0.95)/idle95, "busy/idle-p95")
		b.ReportMetric(alone.perSecond(), "chunks/s-alone")
		b.ReportMetric(while.perSecond(), "chunks/s-busy")
	}
}

// after gives a channel that closes at the end of a time.
func after(wait time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(wait, func() { close(done) })
	return done
}

// quantile gives a quantile of sorted times in milliseconds.
func quantile(times []time.Duration, q float64) float64 {
	return float64(times[int(q*float64(len(times)-1))]) / float64(time.Millisecond)
}

func loadAverage() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(load))[:3], " ")
}

// benchServer is a kb serve for a benchmark.
type benchServer struct{ stdout, stderr buffer }

// startForBench starts a server on an empty folder and gives its address when it is ready.
func startForBench(b *testing.B) (s *benchServer, url string) {
	b.Helper()
	s = &benchServer{}
	cmd := exec.Command(binary, "serve")
	cmd.Env = environ("KB_ADDR=127.0.0.1:0", "KB_DATA_DIR="+b.TempDir(), "KB_LOG_LEVEL=warn")
	cmd.Stdout, cmd.Stderr = &s.stdout, &s.stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || b.Failed() {
			b.Errorf("the server ended with %v:\n%s", err, s.stderr.String())
		}
	})
	announced := regexp.MustCompile(`kb listens on (http://\S+)`)
	for range 600 {
		if match := announced.FindStringSubmatch(s.stdout.String()); match != nil {
			return s, match[1]
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Fatal("not ready after a minute")
	return nil, ""
}

type ingested struct {
	chunks int
	took   time.Duration
}

func (i ingested) perSecond() float64 { return float64(i.chunks) / i.took.Seconds() }

// ingest sends a folder as kb ingest does, and waits for its jobs.
func (s *benchServer) ingest(b *testing.B, url, dir string) ingested {
	started := time.Now()
	cmd := exec.CommandContext(b.Context(), binary, "ingest", dir)
	cmd.Env = environ("KB_URL=" + url)
	out, err := cmd.CombinedOutput()
	stored := regexp.MustCompile(`stored \((\d+) chunks\), 0 skipped as duplicates, 0 failed`).FindSubmatch(out)
	if err != nil || stored == nil {
		b.Errorf("kb ingest: %v\n%s", err, out)
		return ingested{}
	}
	chunks, _ := strconv.Atoi(string(stored[1]))
	return ingested{chunks: chunks, took: time.Since(started)}
}

// library writes texts in the words of the model's vocabulary, which stand there by frequency, and asks for them. All of
// it follows from one seed.
type library struct {
	random *rand.Rand
	zipf   *rand.Zipf
	words  []string
	// topics has the words that each file written so far is about.
	topics [][]string
}

func newLibrary(b *testing.B) *library {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(onnxtest.Options(b).Dir, embed.TokenizerFile))
	if err != nil {
		b.Fatal(err)
	}
	var file struct {
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		b.Fatal(err)
	}
	l := &library{random: rand.New(rand.NewPCG(1, 2))}
	word := regexp.MustCompile(`^[a-z]{2,}$`)
	for token := range file.Model.Vocab {
		if word.MatchString(token) {
			l.words = append(l.words, token)
		}
	}
	slices.SortFunc(l.words, func(x, y string) int { return file.Model.Vocab[x] - file.Model.Vocab[y] })
	l.zipf = rand.NewZipf(l.random, 1.1, 2.7, uint64(len(l.words)-1))
	return l
}

// files writes Markdown files, each about something of its own, into a new folder.
func (l *library) files(b *testing.B, name string, count int) (dir string) {
	dir = b.TempDir()
	for i := range count {
		topic := make([]string, 30)
		for j := range topic {
			topic[j] = l.words[300+l.random.IntN(len(l.words)-300)]
		}
		l.topics = append(l.topics, topic)
		var text strings.Builder
		fmt.Fprintf(&text, "# %s\n", strings.Join(topic[:3], " "))
		for section := range sectionsPerFile {
			fmt.Fprintf(&text, "\n## %s\n\n", strings.Join(topic[section%25:section%25+3], " "))
			for words := 120 + l.random.IntN(100); words > 0; words-- {
				text.WriteString(l.word(topic, 0.3))
				text.WriteString([]string{" ", " ", " ", " ", " ", " ", " ", ", ", " ", ".\n"}[l.random.IntN(10)])
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.md", name, i)), []byte(text.String()), 0o600); err != nil {
			b.Error(err)
		}
	}
	return dir
}

// word gives a word of a topic, or any.
func (l *library) word(topic []string, share float64) string {
	if l.random.Float64() < share {
		return topic[l.random.IntN(len(topic))]
	}
	return l.words[l.zipf.Uint64()]
}

// search sends searches at searchRate until done closes, no query twice, and gives the sorted times from when each was due
// until it was answered.
func (l *library) search(b *testing.B, url string, done <-chan struct{}) (times []time.Duration) {
	b.Helper()
	kb := client.New(url, "")
	kb.HTTP.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	defer kb.HTTP.CloseIdleConnections()
	var mutex sync.Mutex
	var searches sync.WaitGroup
	for due := time.Now(); ; due = due.Add(time.Second / searchRate) {
		select {
		case <-done:
			searches.Wait()
			slices.Sort(times)
			return times
		case <-time.After(time.Until(due)):
		}
		topic := l.topics[l.random.IntN(filesBefore)]
		query := make([]string, 4+l.random.IntN(5))
		for i := range query {
			query[i] = l.word(topic, 0.5)
		}
		searches.Go(func() {
			answer, err := kb.Search(context.WithoutCancel(b.Context()), map[string]any{"query": strings.Join(query, " ")})
			took := time.Since(due)
			if err != nil || len(answer.Results) == 0 || len(answer.Degraded) > 0 {
				b.Errorf("%q was answered with %d results, %v, %v", query, len(answer.Results), answer.Degraded, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			times = append(times, took)
		})
	}
}
