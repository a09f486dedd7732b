package code

import (
	"testing"

	"github.com/kb-search/kb/worker/parse"
)

// parse says by a file's extension that this package reads it.
func TestExtensionsAreThoseOfParse(t *testing.T) {
	t.Parallel()

	for extension := range Languages() {
		if format, err := parse.Detect("file"+extension, ""); err != nil || format != parse.FormatCode {
			t.Errorf("parse takes %s for %s, %v", extension, format, err)
		}
	}
	for _, extension := range parse.SupportedExtensions(true) {
		format, err := parse.Detect("file"+extension, "")
		if _, known := Languages()[extension]; err != nil || (format == parse.FormatCode) != known {
			t.Errorf("parse takes %s for %s, which is known here: %t", extension, format, known)
		}
	}
}
