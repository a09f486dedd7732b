package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/kb-search/kb/embed"
)

const manifestFile = "manifest.json"

// manifest says what a folder holds; that it is there says that the rest is.
type manifest struct {
	Model     string         `json:"model"`
	Precision string         `json:"precision"`
	Source    string         `json:"source"`
	Files     []manifestItem `json:"files"`
}

type manifestItem struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func readManifest(dir string) (manifest, error) {
	var m manifest
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read %s: %w", manifestFile, err)
	}
	if len(m.Files) == 0 {
		return m, fmt.Errorf("read %s: it names no files", manifestFile)
	}
	return m, nil
}

// verify checks all files of dir against its manifest. Without one the error is os.ErrNotExist.
func verify(dir string) error {
	m, err := readManifest(dir)
	if err != nil {
		return err
	}
	for _, item := range m.Files {
		size, digest, err := digestFile(filepath.Join(dir, item.Name), sha256.New())
		if err != nil {
			return fmt.Errorf("check %s: %w", item.Name, err)
		}
		if size != item.Size || digest != item.SHA256 {
			return fmt.Errorf("check %s: its content is not what was downloaded", item.Name)
		}
	}
	return nil
}

func writeManifest(dir, model, precision, source string) error {
	m := manifest{Model: model, Precision: precision, Source: source}
	for _, name := range []string{embed.ModelFile, embed.TokenizerFile} {
		size, digest, err := digestFile(filepath.Join(dir, name), sha256.New())
		if err != nil {
			return err
		}
		m.Files = append(m.Files, manifestItem{Name: name, Size: size, SHA256: digest})
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, manifestFile+".part")
	if err := os.WriteFile(temporary, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, manifestFile))
}

// digestFile returns a file's size and hex digest.
func digestFile(path string, h hash.Hash) (int64, string, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()
	size, err := io.Copy(h, file)
	if err != nil {
		return 0, "", err
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}
