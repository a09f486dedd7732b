package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/kb-search/kb/api"
)

// openapi writes the API's description in both versions of the format that clients are generated from.
func (a *app) openapi(_ context.Context, args []string) error {
	if len(args) != 1 {
		return usageError("name the folder to write to: kb openapi DIR")
	}
	document := api.New(api.Options{Logger: slog.New(slog.DiscardHandler)}).OpenAPI()
	current, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("write OpenAPI 3.1: %w", err)
	}
	downgraded, err := document.Downgrade()
	if err != nil {
		return fmt.Errorf("write OpenAPI 3.0: %w", err)
	}
	var older any
	if err := json.Unmarshal(downgraded, &older); err != nil {
		return fmt.Errorf("read OpenAPI 3.0: %w", err)
	}
	old, err := json.MarshalIndent(older, "", "  ")
	if err != nil {
		return fmt.Errorf("write OpenAPI 3.0: %w", err)
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	for name, content := range map[string][]byte{"openapi.json": current, "openapi-3.0.json": old} {
		if err := os.WriteFile(filepath.Join(args[0], name), append(content, '\n'), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
