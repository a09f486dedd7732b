package models

import (
	"slices"

	"github.com/kb-search/kb/embed"
)

// Status is one model in one precision and what the cache holds of it.
type Status struct {
	Model     embed.Model
	Precision string
	// Dir is where Pull keeps it.
	Dir string
	// Present reports a complete folder. Its files are not read; Pull does that.
	Present bool
	// Source says where the files came from: a hub address or a Maven artifact. Empty when not present.
	Source string
	// Bytes is the size of the files on disk. 0 when not present.
	Bytes int64
}

// List returns the known models, each with its precisions in order of name.
func List(cacheDir string) []Status {
	var all []Status
	for _, model := range embed.Models() {
		for _, precision := range precisions(model) {
			status := Status{Model: model, Precision: precision, Dir: Dir(cacheDir, model.Name, precision)}
			if m, err := readManifest(status.Dir); err == nil {
				status.Present, status.Source = true, m.Source
				for _, item := range m.Files {
					status.Bytes += item.Size
				}
			}
			all = append(all, status)
		}
	}
	return all
}

func precisions(model embed.Model) []string {
	var names []string
	for name := range model.Sources {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
