package models

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kb-search/kb/embed"
)

// fakeHub speaks the hub's protocol: the hub's host redirects to another host that has the bytes.
type fakeHub struct {
	*httptest.Server
	storage *httptest.Server

	mu sync.Mutex
	// files maps a path inside the repository to its content.
	files map[string][]byte
	// cutAfter ends answers of storage after so many bytes of body; 0 lets them pass.
	cutAfter int
	// ignoreRange makes storage answer with everything, always.
	ignoreRange bool
	// digest, when set, is named instead of the true one.
	digest string
	// busy is the number of 503 answers to give first.
	busy int
	// refuse, when set, is the status of every answer of the hub.
	refuse int

	hubTokens, storageTokens []string
	ranges                   []string
}

func newFakeHub(t *testing.T) *fakeHub {
	t.Helper()
	f := &fakeHub{files: map[string][]byte{
		"onnx/model.onnx": bytes.Repeat([]byte("weights "), 20_000),
		"tokenizer.json":  []byte(`{"model": {}}`),
	}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serveHub))
	f.storage = httptest.NewServer(http.HandlerFunc(f.serveStorage))
	t.Cleanup(f.Server.Close)
	t.Cleanup(f.storage.Close)
	return f
}

func (f *fakeHub) serveHub(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hubTokens = append(f.hubTokens, r.Header.Get("Authorization"))
	if f.refuse != 0 {
		w.WriteHeader(f.refuse)
		return
	}
	if f.busy > 0 {
		f.busy--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/owner/name/resolve/main/")
	content, found := f.files[path]
	if !ok || !found {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+f.digestOf(content)+`"`)
	w.Header().Set("X-Linked-Size", fmt.Sprint(len(content)))
	http.Redirect(w, r, f.storage.URL+"/"+path, http.StatusFound)
}

func (f *fakeHub) digestOf(content []byte) string {
	if f.digest != "" {
		return f.digest
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (f *fakeHub) serveStorage(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	content := f.files[r.URL.Path[1:]]
	cut := f.cutAfter
	f.storageTokens = append(f.storageTokens, r.Header.Get("Authorization"))
	f.ranges = append(f.ranges, r.Header.Get("Range"))
	if f.ignoreRange {
		r.Header.Del("Range")
	}
	f.mu.Unlock()
	w.Header().Set("ETag", `"storage-`+f.digestOf(content)[:8]+`"`)
	if cut > 0 {
		w = &cutWriter{ResponseWriter: w, left: cut}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// cutWriter breaks the connection after so many bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

var fakeFiles = embed.HubFiles{Repo: "owner/name", Model: "onnx/model.onnx", Tokenizer: "tokenizer.json"}

// client is a hub client that does not wait between tries.
func (f *fakeHub) client(token string) *hub {
	h := newHub(Options{HubEndpoint: f.URL + "/", HubToken: token}.withDefaults())
	h.pause = time.Millisecond
	return h
}

func (f *fakeHub) requirePulled(t *testing.T, dir string) {
	t.Helper()
	for name, path := range map[string]string{embed.ModelFile: "onnx/model.onnx", embed.TokenizerFile: "tokenizer.json"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, f.files[path]) {
			t.Errorf("%s has %d bytes (%v), want the %d that the hub has", name, len(got), err, len(f.files[path]))
		}
	}
	if parts, _ := filepath.Glob(filepath.Join(dir, "*.part*")); len(parts) > 0 {
		t.Errorf("left behind: %v", parts)
	}
}

func TestHubPull(t *testing.T) {
	t.Parallel()

	t.Run("TokenStaysOnTheHub", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		if _, err := f.client("secret").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
		for _, token := range f.hubTokens {
			if token != "Bearer secret" {
				t.Errorf("the hub got the token %q", token)
			}
		}
		for _, token := range f.storageTokens {
			if token != "" {
				t.Errorf("another host got the token %q", token)
			}
		}
	})

	t.Run("CutConnectionIsResumed", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		f.cutAfter = 50_000
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
		if got := fmt.Sprint(f.ranges); got != "[  bytes=50000- bytes=100000- bytes=150000-]" {
			t.Errorf("ranges asked for: %s", got)
		}
	})

	t.Run("LaterPullResumes", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		interrupt(t, f, dir)
		f.ranges = nil
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
		if len(f.ranges) != 1 || !strings.HasPrefix(f.ranges[0], "bytes=") {
			t.Errorf("asked for %q: want the rest of the model and no tokenizer", f.ranges)
		}
	})

	t.Run("ChangedFileStartsAgain", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		interrupt(t, f, dir)
		f.files["onnx/model.onnx"] = bytes.Repeat([]byte("changed "), 20_000)
		f.ranges = nil
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
		if len(f.ranges) != 1 || f.ranges[0] != "" {
			t.Errorf("asked for %q, want the whole file once", f.ranges)
		}
	})

	t.Run("ChangedStorageETagStartsAgain", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		interrupt(t, f, dir)
		state := filepath.Join(dir, embed.ModelFile+".part.json")
		data, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(state, bytes.Replace(data, []byte("storage-"), []byte("replaced-"), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
	})

	t.Run("DamagedPartStartsAgain", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		interrupt(t, f, dir)
		part := filepath.Join(dir, embed.ModelFile+".part")
		data, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		data[10] ^= 1
		if err := os.WriteFile(part, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
	})

	t.Run("IgnoredRangeStartsAgain", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		interrupt(t, f, dir)
		f.ignoreRange = true
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
	})

	t.Run("BusyHubIsAskedAgain", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		f.busy = attempts - 1
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
	})

	t.Run("WrongChecksumLeavesNothing", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		f.digest = strings.Repeat("ab", 32)
		if _, err := f.client("").pull(t.Context(), fakeFiles, dir); !errors.Is(err, errMismatch) {
			t.Errorf("got %v", err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})

	t.Run("StandstillIsAnError", func(t *testing.T) {
		t.Parallel()
		f, dir := newFakeHub(t), t.TempDir()
		release := make(chan struct{})
		f.storage.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-release
		})
		defer close(release)
		h := f.client("")
		h.stall = 20 * time.Millisecond
		if _, err := h.pull(t.Context(), fakeFiles, dir); !errors.Is(err, errStalled) {
			t.Errorf("got %v", err)
		}
	})
}

// interrupt pulls until the model's file is cut for good, and checks that no half file is in place.
func interrupt(t *testing.T, f *fakeHub, dir string) {
	t.Helper()
	f.cutAfter = 50_000
	ctx, cancel := context.WithCancel(t.Context())
	h := f.client("")
	h.pause = time.Hour // the first cut puts it to sleep
	part := filepath.Join(dir, embed.ModelFile+".part")
	go func() {
		defer cancel()
		for range 1000 {
			if info, err := os.Stat(part); err == nil && info.Size() == 50_000 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if _, err := h.pull(ctx, fakeFiles, dir); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, embed.ModelFile)); !os.IsNotExist(err) {
		t.Fatal("an interrupted download left a half file in place")
	}
	if info, err := os.Stat(part); err != nil || info.Size() != 50_000 {
		t.Fatalf("part file: %v %v", info, err)
	}
	f.cutAfter = 0
}

func TestHubRefusals(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		http.StatusUnauthorized:        "HF_TOKEN",
		http.StatusForbidden:           "gated",
		http.StatusNotFound:            "check the model's name",
		http.StatusTooManyRequests:     "asked too often",
		http.StatusInternalServerError: "answers 500",
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			f := newFakeHub(t)
			f.refuse = status
			_, err := f.client("").pull(t.Context(), fakeFiles, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want a sentence with %q", err, want)
			}
		})
	}
}

func TestCheckGitDigest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const (
		blob  = "ce013625030ba8dba906f756967f9e9ca394464a" // git hash-object
		plain = "f572d396fae9206628714fb2ce00f72e94f2258f" // sha1sum
	)
	for _, etag := range []string{blob, plain} {
		if err := check(path, remote{etag: etag, size: 6}); err != nil {
			t.Error(err)
		}
	}
	if err := check(path, remote{etag: strings.Replace(blob, "c", "d", 1), size: 6}); !errors.Is(err, errMismatch) {
		t.Errorf("got %v", err)
	}
	if err := check(path, remote{etag: "opaque", size: 7}); !errors.Is(err, errMismatch) {
		t.Errorf("got %v", err)
	}
}

func TestRedirectToPlainHTTPIsRefused(t *testing.T) {
	t.Parallel()
	request := func(address string) *http.Request {
		return httptest.NewRequest(http.MethodGet, address, nil)
	}
	if err := checkRedirect(request("http://storage.test/a"), []*http.Request{request("https://hub.test/a")}); err == nil {
		t.Error("a redirect from https to http was followed")
	}
	if err := checkRedirect(request("https://storage.test/a"), []*http.Request{request("https://hub.test/a")}); err != nil {
		t.Error(err)
	}
}
