package docling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/kb-search/kb/worker/parse"
)

const (
	pathConvert = "/v1/convert/file"
	pathAsync   = "/v1/convert/file/async"
	pathPoll    = "/v1/status/poll/"
	pathResult  = "/v1/result/"

	maxTries = 4 // Of one question about a task, before the service is given up.
)

var errNoAnswer = errors.New("no answer came in time")

// job is one conversion.
type job struct {
	client *Client
	file   file
	// working says that docling-serve had begun with the file, so that a timeout is the file's.
	working bool
}

// run converts the file by a task of docling-serve's, or in one request where the server knows no tasks.
func (j *job) run(ctx context.Context) (parse.Document, error) {
	form, err := newForm(j.file, j.client.timeout)
	if err != nil {
		return parse.Document{}, fmt.Errorf("convert with docling-serve: write the form: %w", err)
	}

	t, err := j.task(ctx, request{method: http.MethodPost, path: pathAsync, form: &form})
	var refused *fault
	if errors.As(err, &refused) && (refused.status == http.StatusNotFound || refused.status == http.StatusMethodNotAllowed) {
		j.working = true

		return j.outcome(ctx, request{method: http.MethodPost, path: pathConvert, form: &form})
	}
	if err != nil {
		return parse.Document{}, err
	}
	if t.ID == "" {
		return parse.Document{}, &fault{message: "its answer names no task; is the URL that of docling-serve?"}
	}
	if err := j.wait(ctx, t); err != nil {
		return parse.Document{}, err
	}

	var doc parse.Document
	err = j.tries(ctx, func() error {
		var err error
		doc, err = j.outcome(ctx, request{method: http.MethodGet, path: pathResult + url.PathEscape(t.ID)})

		return err
	})

	return doc, lost(err)
}

// wait asks about a task until it has ended with a result to fetch.
func (j *job) wait(ctx context.Context, t task) error {
	id := t.ID
	wait := strconv.FormatFloat(j.client.pollWait.Seconds(), 'f', -1, 64)
	ask := request{method: http.MethodGet, path: pathPoll + url.PathEscape(id) + "?wait=" + wait}
	for {
		switch t.Status {
		case "success", "partial_success", "skipped": // The last two are seen of conversions, so far not of tasks.
			return nil
		case "failure":
			if t.Failure == nil {
				t.Failure = &failure{Message: t.Message}
			}

			return j.file.taskError(*t.Failure)
		case "started":
			j.working = true
		case "pending":
		default:
			return &fault{message: fmt.Sprintf("its answer has the unknown task status %q", oneLine(t.Status))}
		}
		// A server that doesn't hold its answer back must not be asked all the time.
		if err := pause(ctx, j.client.pollWait/5); err != nil {
			return err
		}
		err := j.tries(ctx, func() error {
			limited, cancel := context.WithTimeoutCause(ctx, j.client.pollWait+j.client.patience, errNoAnswer)
			defer cancel()
			var err error
			t, err = j.task(limited, ask)

			return err
		})
		if err != nil {
			return lost(err)
		}
	}
}

// tries repeats a question whose error looks temporary, with growing pauses.
func (j *job) tries(ctx context.Context, ask func() error) error {
	for try := 1; ; try++ {
		err := ask()
		var refused *fault
		if !errors.As(err, &refused) || !refused.temporary || try == maxTries {
			return err
		}
		if err := pause(ctx, j.client.pollWait/5<<(try-1)); err != nil {
			return err
		}
	}
}

// task makes a request that is answered with the state of a task.
func (j *job) task(ctx context.Context, r request) (task, error) {
	var t task
	err := j.client.do(ctx, r, maxDetail, func(dec *json.Decoder) error { return dec.Decode(&t) })
	if errors.Is(err, errTooLong) {
		err = &fault{message: "its answer is far too long; is the URL that of docling-serve?"}
	}

	return t, err
}

// outcome makes a request that is answered with a converted document.
func (j *job) outcome(ctx context.Context, r request) (parse.Document, error) {
	var a answer
	err := j.client.do(ctx, r, j.client.maxAnswer, func(dec *json.Decoder) error {
		var err error
		a, err = readAnswer(dec)

		return err
	})
	switch {
	case errors.Is(err, errTooLong) || errors.Is(err, errTooManyNodes):
		return parse.Document{}, j.file.errTooLarge()
	case err != nil:
		return parse.Document{}, err
	}

	return j.file.result(a)
}

// lost makes clear what it means that docling-serve doesn't know a task that it began.
func lost(err error) error {
	var refused *fault
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return &fault{message: "it has lost the conversion, perhaps by a restart; " + refused.message}
	}

	return err
}

// pause waits; its error is the context's.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
