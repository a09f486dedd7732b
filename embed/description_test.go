package embed_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kb-search/kb/embed"
)

func TestReadDescription(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file string
		want embed.Model
	}{
		"Everything": {
			`{"window": 512, "dimensions": 384, "pooling": "cls", "query_prefix": "q: ", "passage_prefix": "p: "}`,
			embed.Model{Name: "own", Window: 512, Dimensions: 384, Pooling: embed.CLS, QueryPrefix: "q: ", PassagePrefix: "p: "},
		},
		"WindowOnly": {`{"window": 128}`, embed.Model{Name: "own", Window: 128}},
		"Mean":       {`{"window": 128, "pooling": "mean"}`, embed.Model{Name: "own", Window: 128}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := embed.ReadDescription("own", []byte(test.file)); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"NotJSON":            {`window: 5`, []string{"kb-model.json of own"}},
		"UnknownField":       {`{"window": 512, "poolling": "cls"}`, []string{`"poolling"`}},
		"AllProblemsAtOnce":  {`{"pooling": "max", "dimensions": -1}`, []string{`pooling is "max"`, "window is 0", "dimensions is -1"}},
		"NumbersAreNoString": {`{"window": "512"}`, []string{"window"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := embed.ReadDescription("own", []byte(test.file))
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want a sentence with %q", err, want)
				}
			}
		})
	}
}
