package kb

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/contracts.md says which test proves what; each test that it names has to be there.
func TestContractsNameTestsThatExist(t *testing.T) {
	t.Parallel()

	contracts, err := os.ReadFile("docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	sources := testSources(t)
	cells := regexp.MustCompile(`Test[A-Z][A-Za-z]+(?:/[A-Za-z0-9]+)*(?:, [A-Z][A-Za-z0-9]+)*`)
	found := 0
	for _, cell := range cells.FindAllString(string(contracts), -1) {
		for _, name := range regexp.MustCompile(`[/, ]+`).Split(cell, -1) {
			found++
			if !strings.Contains(sources, "func "+name+"(") && !strings.Contains(sources, `"`+name+`"`) {
				t.Errorf("there is no test %s", name)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d tests are named", found)
	}
}

// testSources gives the text of all test files.
func testSources(t *testing.T) string {
	t.Helper()
	var sources strings.Builder
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		sources.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources.String()
}
