package models

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/kb-search/kb/embed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeMaven writes a jar and a program that stands for mvn: it copies the jar to where it is told and counts its runs.
func fakeMaven(t *testing.T) (program string, files embed.MavenFiles, runs func() int) {
	t.Helper()
	dir := t.TempDir()
	var jar bytes.Buffer
	archive := zip.NewWriter(&jar)
	digests := map[string]string{}
	for name, content := range map[string]string{"m.onnx": "weights", "m-tokenizer.json": "{}"} {
		entry, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(entry, content); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(content))
		digests[name] = hex.EncodeToString(sum[:])
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(dir, "mvn")
	script := fmt.Sprintf(`#!/bin/sh
cd %q
echo run >> runs
for argument; do
	case $argument in
	-Dartifact=group:broken:1) echo "[ERROR] Could not find artifact group:broken:1"; echo "[ERROR] Re-run with -X"; exit 1 ;;
	-DoutputDirectory=*) cp artifact.jar "${argument#-DoutputDirectory=}/" ;;
	esac
done
`, dir)
	for path, data := range map[string][]byte{program: []byte(script), filepath.Join(dir, "artifact.jar"): jar.Bytes()} {
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files = embed.MavenFiles{
		Artifact: "group:artifact:1", Model: "m.onnx", Tokenizer: "m-tokenizer.json",
		ModelSHA256: digests["m.onnx"], TokenizerSHA256: digests["m-tokenizer.json"],
	}
	return program, files, func() int {
		data, _ := os.ReadFile(filepath.Join(dir, "runs"))
		return bytes.Count(data, []byte("\n"))
	}
}

func testModel(source embed.Source) embed.Model {
	return embed.Model{Name: "test", Window: 8, Sources: map[string]embed.Source{embed.Int8: source}}
}

func TestPull(t *testing.T) {
	t.Parallel()

	t.Run("UnreachableHubFallsThroughToMavenOnce", func(t *testing.T) {
		t.Parallel()
		program, files, runs := fakeMaven(t)
		gone := httptest.NewServer(nil)
		gone.Close()
		options := Options{CacheDir: t.TempDir(), HubEndpoint: gone.URL, Maven: program}
		model := testModel(embed.Source{Hub: fakeFiles, Maven: files})
		var pulls sync.WaitGroup
		for range 4 {
			pulls.Go(func() {
				dir, err := Pull(t.Context(), options, model, embed.Int8)
				if err != nil || dir != Dir(options.CacheDir, "test", embed.Int8) {
					t.Errorf("got %q, %v", dir, err)
				}
			})
		}
		pulls.Wait()
		if got := runs(); got != 1 {
			t.Errorf("mvn ran %d times", got)
		}
		if err := checkLocal(Dir(options.CacheDir, "test", embed.Int8)); err != nil {
			t.Error(err)
		}
	})

	t.Run("HubComesBeforeMaven", func(t *testing.T) {
		t.Parallel()
		program, files, runs := fakeMaven(t)
		f := newFakeHub(t)
		options := Options{CacheDir: t.TempDir(), HubEndpoint: f.URL, Maven: program}
		dir, err := Pull(t.Context(), options, testModel(embed.Source{Hub: fakeFiles, Maven: files}), embed.Int8)
		if err != nil {
			t.Fatal(err)
		}
		f.requirePulled(t, dir)
		if m, err := readManifest(dir); err != nil || m.Source != f.URL+"/owner/name" {
			t.Errorf("manifest %+v, %v", m, err)
		}
		if runs() != 0 {
			t.Error("mvn ran")
		}
	})

	t.Run("DamagedFileIsFetchedAgain", func(t *testing.T) {
		t.Parallel()
		program, files, runs := fakeMaven(t)
		options := Options{CacheDir: t.TempDir(), Maven: program}
		model := testModel(embed.Source{Maven: files})
		for range 2 {
			dir, err := Pull(t.Context(), options, model, embed.Int8)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(filepath.Join(dir, embed.ModelFile)); string(got) != "weights" {
				t.Errorf("model file holds %q", got)
			}
			if err := os.WriteFile(filepath.Join(dir, embed.ModelFile), []byte("weighty"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := runs(); got != 2 {
			t.Errorf("mvn ran %d times", got)
		}
	})

	t.Run("LocalFolderIsUsedInPlace", func(t *testing.T) {
		t.Parallel()
		local := t.TempDir()
		options := Options{CacheDir: t.TempDir(), LocalDir: local, Offline: true}
		if _, err := Pull(t.Context(), options, embed.Model{Name: "own"}, embed.Int8); err == nil {
			t.Error("an empty folder passed")
		}
		for _, name := range []string{embed.ModelFile, embed.TokenizerFile} {
			if err := os.WriteFile(filepath.Join(local, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if dir, err := Pull(t.Context(), options, embed.Model{Name: "own"}, embed.Int8); err != nil || dir != local {
			t.Errorf("got %q, %v", dir, err)
		}
	})
}

func TestPullErrors(t *testing.T) {
	t.Parallel()
	program, files, _ := fakeMaven(t)
	wrongDigest := files
	wrongDigest.ModelSHA256 = strings.Repeat("0", 64)
	broken := files
	broken.Artifact = "group:broken:1"
	for name, test := range map[string]struct {
		options Options
		source  embed.Source
		want    string
	}{
		"OfflineTriesNothing":      {Options{Offline: true, Maven: program}, embed.Source{Maven: files}, "HF_HUB_OFFLINE"},
		"MissingMavenSaysWhatToDo": {Options{Maven: "no-such-mvn"}, embed.Source{Maven: files}, "install Maven"},
		"MavenErrorIsShown":        {Options{Maven: program}, embed.Source{Maven: broken}, "Could not find artifact"},
		"WrongDigestInJar":         {Options{Maven: program}, embed.Source{Maven: wrongDigest}, "expected 0000"},
		"NoSourceAtAll":            {Options{}, embed.Source{}, "neither"},
		"EveryFailureIsInTheMessage": {
			Options{HubEndpoint: "http://127.0.0.1:1", Maven: "no-such-mvn"},
			embed.Source{Hub: fakeFiles, Maven: files}, "hub: tokenizer.json of owner/name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.options.CacheDir = t.TempDir()
			_, err := Pull(t.Context(), test.options, testModel(test.source), embed.Int8)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want a sentence with %q", err, test.want)
			}
			dir := Dir(test.options.CacheDir, "test", embed.Int8)
			if _, err := os.Stat(filepath.Join(dir, manifestFile)); !os.IsNotExist(err) {
				t.Error("a failed pull left a manifest")
			}
			if parts, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(parts) > 0 {
				t.Errorf("left behind: %v", parts)
			}
		})
	}
	if _, err := Pull(t.Context(), Options{CacheDir: t.TempDir()}, testModel(embed.Source{}), "int4"); err == nil {
		t.Error("an unknown precision passed")
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	dir := Dir(cache, embed.DefaultModel, embed.Int8)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{embed.ModelFile, embed.TokenizerFile} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("1234"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeManifest(dir, embed.DefaultModel, embed.Int8, "here"); err != nil {
		t.Fatal(err)
	}
	present := 0
	all := List(cache)
	for _, status := range all {
		if status.Present {
			present++
			if status.Dir != dir || status.Bytes != 8 || status.Source != "here" {
				t.Errorf("got %+v", status)
			}
		}
	}
	fetchable := 0
	for _, model := range embed.Models() {
		fetchable += len(model.Sources)
	}
	if present != 1 || len(all) != fetchable {
		t.Errorf("%d of %d present", present, len(all))
	}
}
