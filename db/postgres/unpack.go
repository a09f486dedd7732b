package postgres

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// unpack lays out the server's files from the pg0 binary, once. pg0 knows no unpacking alone, so it starts a throw-away
// server; the result is moved into place whole.
func unpack(ctx context.Context, pg0, installDir string) error {
	if exists(filepath.Join(installDir, "bin", "postgres")) {
		return nil
	}
	if !exists(pg0) {
		return fmt.Errorf("%s is missing: run make setup, or set KB_DATABASE_URL to a PostgreSQL of your own", pg0)
	}
	if err := os.MkdirAll(filepath.Dir(installDir), 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w", err)
	}
	home, err := os.MkdirTemp(filepath.Dir(installDir), "unpack-")
	if err != nil {
		return fmt.Errorf("make a folder to unpack in: %w", err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	run := func(args ...string) error {
		cmd := exec.CommandContext(ctx, pg0, args...)
		cmd.Env = append(os.Environ(), "HOME="+home)
		cmd.SysProcAttr = processAttributes()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("unpack the server with pg0 %s: %w: %s", args[0], err, lastLine(out))
		}
		return nil
	}
	startErr := run("start", "--name", "unpack", "--data-dir", filepath.Join(home, "data"), "--port", fmt.Sprint(port))
	if err := run("stop", "--name", "unpack"); startErr != nil || err != nil {
		if startErr != nil {
			return startErr
		}
		return err
	}
	unpacked, err := filepath.Glob(filepath.Join(home, ".pg0", "installation", "*", "bin", "postgres"))
	if err != nil || len(unpacked) != 1 {
		return fmt.Errorf("unpack the server: pg0 left %d installations", len(unpacked))
	}
	err = os.Rename(filepath.Dir(filepath.Dir(unpacked[0])), installDir)
	if err != nil && !exists(filepath.Join(installDir, "bin", "postgres")) {
		return fmt.Errorf("put the server's files in place: %w", err)
	}
	return nil
}
