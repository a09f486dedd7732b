package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/kb-search/kb/embed/models"
)

// models fetches a model's files into the cache folder, or lists the known models and what is there of them.
func (a *app) models(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usageError("say what to do: kb models pull [NAME], or kb models list")
	}
	switch args[0] {
	case "list":
		return a.modelsList()
	case "pull":
		name := a.config.Model
		if len(args) > 1 {
			name = args[1]
		}
		return a.modelsPull(ctx, name)
	default:
		return usageError("there is no kb models %s: write pull or list", args[0])
	}
}

func (a *app) modelsPull(ctx context.Context, name string) error {
	precision := localPrecision(a.config)
	options := pullOptions(a.config, a.stderr, newLogger(a.stderr, a.config))
	model, err := models.Describe(ctx, options, name, precision)
	if err != nil {
		return err
	}
	dir, err := models.Pull(ctx, options, model, precision)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s %s is in %s\n", model.Name, precision, dir)
	return err
}

func (a *app) modelsList() error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "MODEL\tPRECISION\tDIMENSIONS\tWINDOW\tFETCHED")
	for _, status := range models.List(a.config.CacheDir) {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\n", status.Model.Name, status.Precision, status.Model.Dimensions, status.Model.Window, fetched(status))
	}
	return table.Flush()
}

func fetched(status models.Status) string {
	if status.Present {
		return "yes"
	}
	return "no"
}
