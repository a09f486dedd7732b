package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestConfigDoc(t *testing.T) {
	t.Parallel()

	t.Run("FileIsUpToDate", func(t *testing.T) {
		t.Parallel()

		var want strings.Builder
		if err := writeConfigDoc(&want); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../docs/config.md")
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want.String() {
			t.Error("docs/config.md differs from the comments in config.go: run make generate")
		}
	})

	t.Run("EveryFieldHasARow", func(t *testing.T) {
		t.Parallel()

		variables, err := configVariables(configSource)
		if err != nil {
			t.Fatal(err)
		}
		fields := reflect.VisibleFields(reflect.TypeFor[Config]())
		if len(variables) != len(fields) {
			t.Fatalf("%d rows for %d fields", len(variables), len(fields))
		}
		for i, field := range fields {
			if got, want := variables[i].name, field.Tag.Get("env"); got != want {
				t.Errorf("row %d is about %s, field %s about %s", i, got, field.Name, want)
			}
			if got, want := variables[i].secret, field.Type == reflect.TypeFor[Secret](); got != want {
				t.Errorf("%s is marked secret: %t, want %t", variables[i].name, got, want)
			}
		}
	})

	t.Run("CommentNamesTheDefaultThatIsUsed", func(t *testing.T) {
		t.Parallel()

		variables, err := configVariables(configSource)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variables {
			// A 0 may stand for something that has a better name.
			if v.envDefault != "0" && !strings.HasPrefix(v.preset, v.envDefault) {
				t.Errorf("%s defaults to %q, its comment says %q", v.name, v.envDefault, v.preset)
			}
		}
	})

	for name, field := range map[string]string{
		"NoCommentIsRefused":  "Addr string `env:\"KB_ADDR\"`",
		"NoDefaultIsRefused":  "// Addr is the address.\nAddr string `env:\"KB_ADDR\"`",
		"NoFullStopIsRefused": "// Addr is the address. Defaults to :8080\nAddr string `env:\"KB_ADDR\"`",
		"OtherNameIsRefused":  "// Address is the address. Defaults to :8080.\nAddr string `env:\"KB_ADDR\"`",
		"NoTagIsRefused":      "// Addr is the address. Defaults to :8080.\nAddr string",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if _, err := configVariables("package main\n\ntype Config struct {\n" + field + "\n}\n"); err == nil {
				t.Error("no error")
			}
		})
	}
}
