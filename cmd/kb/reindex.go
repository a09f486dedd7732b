package main

import (
	"context"
	"fmt"
	"time"
)

// reindex has a server embed all chunks anew, or put the previous model back, and waits for the end.
func (a *app) reindex(ctx context.Context, args []string) error {
	set := a.flags("reindex", "[FLAGS]")
	rollback := set.Bool("rollback", false, "put the previous model back")
	background := set.Bool("background", false, "do not wait for the end")
	if rest, err := arguments(set, args); err != nil {
		return err
	} else if len(rest) > 0 {
		return usageError("kb reindex takes no %q", rest[0])
	}
	server := a.client()
	state, err := server.StartReindex(ctx, *rollback)
	if err != nil || *background {
		return err
	}
	bar := a.progressBar(state.Total, "reindex")
	for state.State == "running" {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the reindex goes on without this command: %w", ctx.Err())
		case <-time.After(pollPause):
		}
		if state, err = server.Reindex(ctx); err != nil {
			return err
		}
		_ = bar.Set(state.Done)
	}
	_ = bar.Finish()
	if state.State != "done" {
		reason := "it was cancelled"
		if state.Error != nil {
			reason = *state.Error
		}
		return fmt.Errorf("the reindex has %s: %s", state.State, reason)
	}
	_, err = fmt.Fprintf(a.stdout, "%d chunks are embedded; searches use %s (%s)\n", state.Total, state.Space.Model, state.Space.Precision)
	return err
}
