package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kb-search/kb/db/dbtest"
)

func TestExpand(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.md": "a", "b.txt": "b", "picture.png": "p", ".hidden.md": "h", ".git/config.txt": "g", "noextension": "n",
		"sub/c.MD": "c", "sub/.deep/d.md": "d", "sub/e.json": "{}", "[draft].md": "x", ".dot/f.md": "f",
	})
	if err := os.Symlink(filepath.Join(dir, "sub"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		args    []string
		want    []string
		ignored int
	}{
		"FolderWithoutHiddenAndUnsupported": {[]string{""}, []string{"[draft].md", "a.md", "b.txt", "sub/c.MD", "sub/e.json"}, 2},
		"FileItself":                        {[]string{"a.md"}, []string{"a.md"}, 0},
		"NamedUnsupportedFileIsSent":        {[]string{"picture.png"}, []string{"picture.png"}, 0},
		"NamedHiddenFileIsSent":             {[]string{".hidden.md"}, []string{".hidden.md"}, 0},
		"NamedHiddenFolderIsWalked":         {[]string{".dot"}, []string{".dot/f.md"}, 0},
		"GlobOfFiles":                       {[]string{"*.txt"}, []string{"b.txt"}, 0},
		"GlobOfFolders":                     {[]string{"s*"}, []string{"sub/c.MD", "sub/e.json"}, 0},
		"NameWithBracketsIsNoPattern":       {[]string{"[draft].md"}, []string{"[draft].md"}, 0},
		"LinkToAFolderIsWalked":             {[]string{"link"}, []string{"link/c.MD", "link/e.json"}, 0},
		"SlashAtTheEnd":                     {[]string{"sub/"}, []string{"sub/c.MD", "sub/e.json"}, 0},
		"SeveralInTheirOrder":               {[]string{"b.txt", "a.md"}, []string{"b.txt", "a.md"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var args []string
			for _, arg := range row.args {
				args = append(args, dir+string(filepath.Separator)+arg)
			}
			got, ignored, err := expand(args, false)
			if err != nil {
				t.Fatal(err)
			}
			var paths []string
			for _, file := range got {
				path, err := filepath.Rel(dir, file.path)
				if err != nil || !strings.HasSuffix(filepath.ToSlash(path), file.place) {
					t.Fatal(file, err)
				}
				paths = append(paths, path)
			}
			if !slices.Equal(paths, row.want) || ignored != row.ignored {
				t.Errorf("got %q and %d ignored, want %q and %d", paths, ignored, row.want, row.ignored)
			}
		})
	}

	t.Run("MissingPathIsUsage", func(t *testing.T) {
		t.Parallel()

		_, _, err := expand([]string{filepath.Join(dir, "a.md"), filepath.Join(dir, "*.pdf")}, false)
		if code := exitCode(err, command{name: "ingest"}, &strings.Builder{}); err == nil || code != exitUsage {
			t.Errorf("got %v, code %d", err, code)
		}
	})

	t.Run("BrokenLinkIsAnError", func(t *testing.T) {
		t.Parallel()

		link := filepath.Join(t.TempDir(), "broken.md")
		if err := os.Symlink("nowhere", link); err != nil {
			t.Fatal(err)
		}
		if _, _, err := expand([]string{link}, false); err == nil {
			t.Error("no error")
		}
	})
}

func TestIngestAndSearch(t *testing.T) {
	t.Parallel()

	s := serve(t, t.TempDir(), "KB_DATABASE_URL="+dbtest.URL(t), "KB_MAX_UPLOAD_BYTES=1000000")
	s.ready(t)
	docs := t.TempDir()
	write(t, docs, map[string]string{
		"oil.md":      "# Engine oil\n\nChange the oil every 10,000 km.\n",
		"brakes.md":   "# Brakes\n\nBrake fluid is replaced every two years.\n",
		"codes.csv":   "code,meaning\nE-4711,pressure sensor failed\nE-4712,pump blocked\n",
		"faults.json": `{"faults": [{"code": "X9", "text": "valve stuck"}]}`,
		"image.png":   "no text",
		".secret.md":  "# Hidden\n",
	})

	s.kb(t, "ingest", docs, "--tags", "car,manual:v2").want(t, 0, "4 stored (4 chunks), 0 skipped as duplicates, 0 failed",
		"1 files of other types are left out")
	s.kb(t, "ingest", docs).want(t, 0, "0 stored (0 chunks), 4 skipped as duplicates, 0 failed")

	write(t, docs, map[string]string{"blank.txt": " \n\t\n", "large.txt": strings.Repeat("many words ", 200_000), "new.txt": "The clutch slips.\n"})
	failing := s.kb(t, "ingest", docs, filepath.Join(docs, "image.png"))
	failing.want(t, 1, "1 stored (1 chunks)", "4 skipped as duplicates", "blank.txt: The upload has no text in it.", "large.txt: The request is larger than the limit",
		"image.png: ", "files failed")
	if !strings.Contains(failing.stderr, "files failed") || strings.Contains(failing.stdout, "image.png") {
		t.Errorf("failures belong on stderr:\n%s", failing.stdout)
	}

	synced := t.TempDir()
	write(t, synced, map[string]string{"sub/gear.md": "# Gear\n\nThe gear is steel.\n"})
	s.kb(t, "ingest", synced, "--path-prefix", "/synced").want(t, 0, "1 stored")
	write(t, synced, map[string]string{"sub/gear.md": "# Gear\n\nThe gear is bronze.\n"})
	s.kb(t, "ingest", synced, "--path-prefix", "/synced").want(t, 0, "1 stored")
	var versions []struct {
		Path    string `json:"path"`
		Version int    `json:"version"`
	}
	if s.get(t, "/api/v1/documents?path_prefix=/synced/", &versions); len(versions) != 1 || versions[0].Version != 2 || versions[0].Path != "/synced/sub/gear.md" {
		t.Errorf("the changed file: %+v", versions)
	}

	s.kb(t, "ingest", filepath.Join(docs, "no*.md")).want(t, 2, "there is no ")
	s.kb(t, "ingest", "--type", "poem", filepath.Join(docs, "oil.md")).want(t, 1, "poem")

	found := s.kb(t, "search", "how", "often", "to", "change", "oil")
	found.want(t, 0, "SCORE", "BM25", "COSINE", "BONUS", "Engine oil", "Change the oil every 10,000 km.")
	if !regexp.MustCompile(`(?m)^1 +0\.08\d\d +\d\.\d\d +1 +0\.\d{3} +1 +0\.05 +Engine oil`).MatchString(found.stdout) {
		t.Errorf("the first row is not the oil's:\n%s", found.stdout)
	}
	s.kb(t, "search", "E-4711", "--arm", "lexical", "--top", "1").want(t, 0, "strict_hit, 1 of", "codes")
	s.kb(t, "search", "motor lubricant", "--arm", "semantic").want(t, 0, "vector_only", "未找到关键词匹配的知识", "Engine oil")
	s.kb(t, "search", "clutch", "--tags", "car").want(t, 0, "vector_only, 4 of 4 candidates")
	s.kb(t, "search", "oil", "--tags", "car, manual:v2", "--type", "markdown").want(t, 0, "Engine oil")
	s.kb(t, "search", "oil", "--tags", "boat").want(t, 0, "no_hit, 0 of 0 candidates")
	s.kb(t, "search", "--", "--top").want(t, 0)
}
