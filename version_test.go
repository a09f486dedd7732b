package kb

import (
	"os"
	"regexp"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()

	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(Version()) {
		t.Errorf("%q is no version", Version())
	}

	t.Run("IsTheNewestInTheChangelog", func(t *testing.T) {
		t.Parallel()

		changelog, err := os.ReadFile("CHANGELOG.md")
		if err != nil {
			t.Fatal(err)
		}
		heading := regexp.MustCompile(`(?m)^## \[(\d[^\]]*)\] - \d{4}-\d{2}-\d{2}$`).FindSubmatch(changelog)
		if heading == nil {
			t.Fatal("CHANGELOG.md has no release")
		}
		if got := string(heading[1]); got != Version() {
			t.Errorf("the newest release in CHANGELOG.md is %s, VERSION says %s", got, Version())
		}
	})
}
