package models

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var (
	errStalled  = errors.New("no byte came for too long")
	errMismatch = errors.New("the checksum of what came is not the one that the hub names")
)

// download fetches one file into a part file that survives an interruption.
type download struct {
	*hub
	remote

	address string
	// path is where the file goes in the end, part where it grows.
	path, part string
	// resumed says that part began in an earlier try.
	resumed bool
}

// partState stands beside a part file and says what its bytes belong to.
type partState struct {
	// Content is the hub's name for the content, ETag that of the server that sent the bytes.
	Content string `json:"content"`
	ETag    string `json:"etag"`
}

func (d *download) stateFile() string { return d.part + ".json" }

// run fills the part file and checks it, trying again where that can help.
func (d *download) run(ctx context.Context) error {
	meter := newMeter(d.progress, filepath.Base(d.path), d.size)
	defer meter.Close()
	for attempt := 1; ; attempt++ {
		before := d.have()
		err := d.attempt(ctx, meter)
		if err == nil {
			err = check(d.part, d.remote)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errMismatch) {
			resumed := d.resumed
			d.discard()
			if !resumed {
				return err
			}
			continue // bytes of two files, perhaps: once more from the start
		}
		if d.have() > before {
			attempt = 1 // it moves
		}
		var final finalError
		if attempt >= attempts || errors.As(err, &final) {
			return err
		}
		if err := sleep(ctx, d.pause<<(attempt-1)); err != nil {
			return err
		}
	}
}

// finalError marks an error that trying again does not mend.
type finalError struct{ error }

// have returns how many bytes of the wanted content the part file holds.
func (d *download) have() int64 {
	var state partState
	data, err := os.ReadFile(d.stateFile())
	if err != nil || json.Unmarshal(data, &state) != nil || state.Content != d.etag || d.etag == "" {
		return 0
	}
	info, err := os.Stat(d.part)
	if err != nil || d.size >= 0 && info.Size() > d.size {
		return 0
	}
	return info.Size()
}

func (d *download) discard() {
	os.Remove(d.part)
	os.Remove(d.stateFile())
	d.resumed = false
}

// attempt makes one request for what is missing and appends what comes.
func (d *download) attempt(ctx context.Context, meter *meter) error {
	have := d.have()
	if have == d.size {
		d.resumed = true
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := http.Header{}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if etag := d.serverETag(); etag != "" {
			header.Set("If-Range", etag)
		}
	}
	response, err := d.do(ctx, http.MethodGet, d.address, header) //nolint:bodyclose // the deferred function below closes it
	if err != nil {
		var transport *url.Error // the connection, not the answer
		if !errors.As(err, &transport) {
			err = finalError{err}
		}
		return err
	}
	defer response.Body.Close()
	flags := os.O_CREATE | os.O_WRONLY
	switch {
	case response.StatusCode == http.StatusPartialContent && have > 0 &&
		strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)):
		flags |= os.O_APPEND
		d.resumed = true
	case response.StatusCode == http.StatusOK:
		flags |= os.O_TRUNC
		have, d.resumed = 0, false
	default:
		d.discard()
		return fmt.Errorf("the hub answers a request for bytes %d- with %s", have, response.Status)
	}
	part, err := os.OpenFile(d.part, flags, 0o644)
	if err != nil {
		return finalError{err}
	}
	defer part.Close()
	if have == 0 {
		if err := d.writeState(response.Header.Get("ETag")); err != nil {
			return finalError{err}
		}
	}
	meter.Set(have)

	watchdog := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	var body io.Reader = readerFunc(func(p []byte) (int, error) {
		watchdog.Reset(d.stall)
		return response.Body.Read(p)
	})
	if d.size >= 0 {
		body = io.LimitReader(body, d.size-have+1) // one too many is enough to see that it is wrong
	}
	n, err := io.Copy(io.MultiWriter(part, meter), body)
	if err == nil && have+n < d.size {
		err = io.ErrUnexpectedEOF
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("after %d bytes: %w", have+n, err)
	}
	return part.Sync()
}

// serverETag returns the strong ETag that came with the part file's bytes, or "".
func (d *download) serverETag() string {
	var state partState
	data, err := os.ReadFile(d.stateFile())
	if err != nil || json.Unmarshal(data, &state) != nil || strings.HasPrefix(state.ETag, "W/") {
		return ""
	}
	return state.ETag
}

func (d *download) writeState(etag string) error {
	data, err := json.Marshal(partState{Content: d.etag, ETag: etag})
	if err != nil {
		return err
	}
	return os.WriteFile(d.stateFile(), data, 0o644)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// checksums returns what an ETag may be a digest of: SHA-256 for the hub's large files; for small ones git's blob SHA-1,
// or a plain SHA-1 where a mirror answers. None when it looks like no digest.
func checksums(r remote) []hash.Hash {
	if _, err := hex.DecodeString(r.etag); err != nil {
		return nil
	}
	switch len(r.etag) {
	case 2 * sha256.Size:
		return []hash.Hash{sha256.New()}
	case 2 * sha1.Size: // against damage, not against forgery
		blob := sha1.New()
		fmt.Fprintf(blob, "blob %d\x00", r.size)
		return []hash.Hash{blob, sha1.New()}
	}
	return nil
}

// check compares a file with what the hub says of it.
func check(path string, r remote) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	hashes := checksums(r)
	sinks := make([]io.Writer, len(hashes))
	for i, h := range hashes {
		sinks[i] = h
	}
	size, err := io.Copy(io.MultiWriter(sinks...), file)
	if err != nil {
		return err
	}
	same := func(h hash.Hash) bool { return strings.EqualFold(hex.EncodeToString(h.Sum(nil)), r.etag) }
	if r.size >= 0 && size != r.size || len(hashes) > 0 && !slices.ContainsFunc(hashes, same) {
		return fmt.Errorf("%w (%d bytes came, %d were promised)", errMismatch, size, r.size)
	}
	return nil
}
