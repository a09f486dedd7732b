package models

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"

	"github.com/kb-search/kb/embed"
)

// defaultWindow is the window of a reranker that nothing describes: what BERT has.
const defaultWindow = 512

// hubName is a repository of the hub: "owner/name".
var hubName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Describe finds the description of an embedding model, in this order: in LocalDir's embed.DescriptionFile, among the models
// known by name, in the embed.DescriptionFile of the hub repository of that name. The error for a name without any wraps
// embed.ErrUnknownModel.
func Describe(ctx context.Context, options Options, name, precision string) (embed.Model, error) {
	model, err := describe(ctx, options.withDefaults(), embed.Lookup, name, precision)
	if errors.Is(err, embed.ErrUnknownModel) {
		return model, fmt.Errorf("%w; another one needs a file %s in its folder or hub repository", err, embed.DescriptionFile)
	}
	return model, err
}

// DescribeReranker is Describe for rerankers. One that nothing describes reads 512 tokens.
func DescribeReranker(ctx context.Context, options Options, name, precision string) (embed.Model, error) {
	model, err := describe(ctx, options.withDefaults(), embed.LookupReranker, name, precision)
	switch {
	case err == nil || !errors.Is(err, embed.ErrUnknownModel):
		return model, err
	case options.LocalDir != "":
		return embed.Model{Name: name, Window: defaultWindow}, nil
	case hubName.MatchString(name):
		return embed.Model{Name: name, Window: defaultWindow, Sources: hubSources(name)}, nil
	default:
		return model, fmt.Errorf("%w; another one needs its name on the hub, or a folder", err)
	}
}

func describe(ctx context.Context, options Options, lookup func(string) (embed.Model, error), name, precision string) (embed.Model, error) {
	known, unknown := lookup(name)
	if options.LocalDir != "" {
		model, err := readDescription(options.LocalDir, name)
		switch {
		case err == nil && unknown == nil:
			model.Name = known.Name
			return model, nil
		case err == nil || !errors.Is(err, os.ErrNotExist):
			return model, err
		}
		return known, unknown
	}
	if unknown == nil || !hubName.MatchString(name) {
		return known, unknown
	}
	dir := Dir(options.CacheDir, name, precision)
	model, err := readDescription(dir, name)
	if errors.Is(err, os.ErrNotExist) && !options.Offline {
		if err := pullDescription(ctx, options, name, dir); err != nil {
			return embed.Model{}, errors.Join(unknown, err)
		}
		model, err = readDescription(dir, name)
	}
	if errors.Is(err, os.ErrNotExist) {
		return embed.Model{}, unknown
	}
	model.Sources = hubSources(name)
	return model, err
}

func readDescription(dir, name string) (embed.Model, error) {
	data, err := os.ReadFile(filepath.Join(dir, embed.DescriptionFile))
	if err != nil {
		return embed.Model{}, err
	}
	return embed.ReadDescription(name, data)
}

func pullDescription(ctx context.Context, options Options, repo, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return fmt.Errorf("wait for another process that pulls %s: %w", repo, err)
	}
	defer unlock()
	h := newHub(options)
	address, err := url.JoinPath(h.endpoint, repo, "resolve", "main", embed.DescriptionFile)
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	if err := h.file(ctx, address, filepath.Join(dir, embed.DescriptionFile)); err != nil {
		return fmt.Errorf("hub: %s of %s: %w", embed.DescriptionFile, repo, err)
	}
	return nil
}

// hubSources are the places that exporters to ONNX agree on.
func hubSources(repo string) map[string]embed.Source {
	files := func(model string) embed.Source {
		return embed.Source{Hub: embed.HubFiles{Repo: repo, Model: model, Tokenizer: embed.TokenizerFile}}
	}
	return map[string]embed.Source{embed.Int8: files("onnx/model_quantized.onnx"), embed.FP32: files("onnx/model.onnx")}
}
