package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kb-search/kb/cmd/kb/client"
	"github.com/kb-search/kb/worker/parse"
)

// maxInFlight bounds how many uploads wait in the server's queue at once.
const maxInFlight = 64

// pollPause is how long kb ingest waits before it asks for a job's state again.
const pollPause = 100 * time.Millisecond

// ingestion is one run of kb ingest.
type ingestion struct {
	app    *app
	client *client.Client
	fields url.Values
	// prefix goes before a file's place to make its path; empty sends none.
	prefix  string
	step    func()
	pending []pendingJob
	stored  int
	skipped int
	chunks  int
	failed  []string
	warned  []string
}

type pendingJob struct{ path, id string }

// localFile is a file to be sent.
type localFile struct {
	path string
	// place is where it is in the folder that was named, with slashes; its name for a file that was named itself.
	place string
}

// ingest uploads files, waits for their jobs, and says how each ended. The exit code is 1 when one failed, 2 when the
// command can't be understood.
func (a *app) ingest(ctx context.Context, args []string) error {
	set := a.flags("ingest", "[FLAGS] PATH...")
	tags := set.String("tags", "", "tag `names`, separated by commas")
	docType := set.String("type", "", "the document `type`; by default content and extension say it")
	prefix := set.String("path-prefix", "", "give each file the path `PREFIX`/ and its place in the folder that is named, so that a changed file replaces its earlier version")
	images := set.Bool("images", false, "send the images in folders, too: the server reads them with Docling")
	rest, err := arguments(set, args)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return usageError("name at least one file, folder or glob")
	}
	files, ignored, err := expand(rest, *images)
	if err != nil {
		return err
	}
	if ignored > 0 {
		_, _ = fmt.Fprintf(a.stderr, "%d files of other types are left out (supported: %s)\n", ignored, strings.Join(parse.SupportedExtensions(*images), " "))
	}
	fields := url.Values{}
	if *tags != "" {
		fields.Set("tags", *tags)
	}
	if *docType != "" {
		fields.Set("doc_type", *docType)
	}
	bar := a.progressBar(len(files), "ingest")
	run := &ingestion{
		app: a, client: a.client(), fields: fields, prefix: *prefix, step: func() { _ = bar.Add(1) },
	}
	started := time.Now()
	if err := run.all(ctx, files); err != nil {
		return err
	}
	_ = bar.Finish()
	return run.report(time.Since(started))
}

func (run *ingestion) all(ctx context.Context, files []localFile) error {
	for _, file := range files {
		if err := run.upload(ctx, file); err != nil {
			return err
		}
		for len(run.pending) >= maxInFlight {
			if err := run.await(ctx); err != nil {
				return err
			}
		}
	}
	for len(run.pending) > 0 {
		if err := run.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// upload sends one file. Only a server that can't be used ends the run; a refused file is reported at its end.
func (run *ingestion) upload(ctx context.Context, file localFile) error {
	path, fields := file.path, maps.Clone(run.fields)
	if run.prefix != "" {
		fields.Set("path", run.prefix+"/"+file.place)
	}
	job, err := run.client.Upload(ctx, path, fields)
	var refused *client.Error
	switch {
	case err == nil:
		run.pending = append(run.pending, pendingJob{path: path, id: job.JobID})
	case errors.As(err, &refused) && refused.Status == http.StatusConflict:
		run.skipped++
		run.step()
	case errors.As(err, &refused) && refused.Status != http.StatusUnauthorized && refused.Status < http.StatusInternalServerError:
		run.fail(path, refused.Error())
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		run.fail(path, err.Error())
	default:
		return err
	}
	return nil
}

// await waits until the oldest job has ended; jobs end in the order of their uploads.
func (run *ingestion) await(ctx context.Context) error {
	oldest := run.pending[0]
	for {
		job, err := run.client.Job(ctx, oldest.id)
		if err != nil {
			return err
		}
		if !job.Finished() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollPause):
			}
			continue
		}
		run.pending = run.pending[1:]
		switch {
		case job.Status == "done":
			run.stored++
			if job.ChunkCount != nil {
				run.chunks += *job.ChunkCount
			}
			if job.Warning != nil {
				run.warned = append(run.warned, oldest.path+": "+*job.Warning)
			}
			run.step()
		case job.Status == "skipped":
			run.skipped++
			run.step()
		case job.Error != nil:
			run.fail(oldest.path, *job.Error)
		default:
			run.fail(oldest.path, "the job ended as "+job.Status)
		}
		return nil
	}
}

func (run *ingestion) fail(path, reason string) {
	run.failed = append(run.failed, path+": "+reason)
	run.step()
}

func (run *ingestion) report(took time.Duration) error {
	_, _ = fmt.Fprintf(run.app.stdout, "%d stored (%d chunks), %d skipped as duplicates, %d failed, in %s\n",
		run.stored, run.chunks, run.skipped, len(run.failed), took.Round(time.Millisecond))
	for _, line := range slices.Concat(run.warned, run.failed) {
		_, _ = fmt.Fprintln(run.app.stderr, line)
	}
	if len(run.failed) > 0 {
		return &exitError{code: exitFailure, err: fmt.Errorf("%d files failed", len(run.failed))}
	}
	return nil
}

// expand turns files, folders and globs into the list of files to send. Within folders, files of unsupported types, images
// unless they are wanted, and hidden ones are left out; a file that is named is always sent.
func expand(args []string, images bool) (files []localFile, ignored int, err error) {
	for _, arg := range args {
		matches, err := match(arg)
		if err != nil {
			return nil, 0, err
		}
		for _, path := range matches {
			info, err := os.Stat(path)
			if err != nil {
				return nil, 0, err
			}
			if !info.IsDir() {
				files = append(files, localFile{path: path, place: filepath.Base(path)})
				continue
			}
			// With a separator at its end, a link to a folder is walked as the folder.
			found, left, err := walk(path+string(filepath.Separator), images)
			if err != nil {
				return nil, 0, err
			}
			files, ignored = append(files, found...), ignored+left
		}
	}
	return files, ignored, nil
}

// match gives what a path or glob stands for. A path that is there stands for itself, whatever characters are in it.
func match(arg string) ([]string, error) {
	if _, err := os.Lstat(arg); err == nil {
		return []string{arg}, nil
	}
	matches, err := filepath.Glob(arg)
	if err != nil {
		return nil, usageError("the pattern %s can't be read: %w", arg, err)
	}
	if len(matches) == 0 {
		return nil, usageError("there is no %s", arg)
	}
	return matches, nil
}

func walk(root string, images bool) (files []localFile, ignored int, err error) {
	supported := parse.SupportedExtensions(images)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && path != root
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return filepath.SkipDir
		case entry.IsDir(), hidden, !entry.Type().IsRegular():
			return nil
		}
		if !slices.Contains(supported, strings.ToLower(filepath.Ext(entry.Name()))) {
			ignored++
			return nil
		}
		place, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files = append(files, localFile{path: path, place: filepath.ToSlash(place)})
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("walk %s: %w", root, err)
	}
	return files, ignored, nil
}
