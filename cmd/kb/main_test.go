package main

import (
	"context"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/kb-search/kb"
)

func runHere(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(t.Context(), args, environ, &stdout, &stderr)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestRun(t *testing.T) {
	t.Parallel()

	cache := []string{"KB_CACHE_DIR=cache"}
	for name, row := range map[string]struct {
		environ []string
		args    []string
		code    int
		want    []string
	}{
		"NoCommandGivesHelp":            {cache, nil, 0, []string{"usage: kb COMMAND", "docs/config.md"}},
		"HelpListsCommands":             {cache, []string{"help"}, 0, []string{"serve", "ingest PATH...", "search WORDS...", "eval DIR...", "models pull", "health"}},
		"VersionIsTheRelease":           {cache, []string{"version"}, 0, []string{kb.Version()}},
		"UnknownCommandIsUsage":         {cache, []string{"server"}, 2, []string{`there is no command "server"`, "usage: kb COMMAND"}},
		"UnknownFlagIsUsage":            {cache, []string{"search", "--loud", "oil"}, 2, []string{"-loud", "usage: kb search"}},
		"FlagHelpIsNoError":             {cache, []string{"search", "-h"}, 0, []string{"usage: kb search", "-top"}},
		"SearchWithoutWordsIsUsage":     {cache, []string{"search", " "}, 2, []string{"write what to look for"}},
		"SearchWithUnknownArmIsUsage":   {cache, []string{"search", "oil", "--arm", "left"}, 2, []string{`there is no arm "left"`}},
		"IngestWithoutPathIsUsage":      {cache, []string{"ingest"}, 2, []string{"name at least one file"}},
		"IngestOfMissingPathIsUsage":    {cache, []string{"ingest", "no/such/file.md"}, 2, []string{"there is no no/such/file.md"}},
		"IngestOfBrokenPatternIsUsage":  {cache, []string{"ingest", "a["}, 2, []string{"the pattern a["}},
		"EvalWithoutSetIsUsage":         {cache, []string{"eval"}, 2, []string{"corpus.jsonl"}},
		"EvalWithUnknownArmIsUsage":     {cache, []string{"eval", "nowhere", "--arm", "hybrid,left"}, 2, []string{`there is no arm "left"`}},
		"ServeWithArgumentIsUsage":      {cache, []string{"serve", "fast"}, 2, []string{`kb serve takes no "fast"`}},
		"WorkerWithUnknownFlagIsUsage":  {cache, []string{"worker", "--fast"}, 2, []string{"-fast"}},
		"ModelsWithoutDeedIsUsage":      {cache, []string{"models"}, 2, []string{"kb models list"}},
		"ModelsWithUnknownDeedIsUsage":  {cache, []string{"models", "push"}, 2, []string{"there is no kb models push"}},
		"ModelsPullOfUnknownOneFails":   {cache, []string{"models", "pull", "gpt"}, 1, []string{"gpt", "all-MiniLM-L6-v2"}},
		"ModelsListHasTheDefault":       {cache, []string{"models", "list"}, 0, []string{"all-MiniLM-L6-v2", "int8", "384", "no"}},
		"OpenAPIWithoutFolderIsUsage":   {cache, []string{"openapi"}, 2, []string{"kb openapi DIR"}},
		"UnreachableServerFails":        {append(cache, "KB_URL=http://127.0.0.1:1"), []string{"search", "oil"}, 1, []string{"reach the server (KB_URL names another one)", "refused"}},
		"WrongConfigurationIsAllListed": {append(cache, "KB_ADDR=8080", "KB_WORKERS=0", "KB_LOG_FORMAT=xml"), []string{"serve"}, 2, []string{"the configuration can't be used", `KB_ADDR is "8080"`, "KB_WORKERS is 0", `KB_LOG_FORMAT is "xml"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			runHere(t, row.environ, row.args...).want(t, row.code, row.want...)
		})
	}

	t.Run("WrongConfigurationEndsTheProcess", func(t *testing.T) {
		t.Parallel()

		execute(t, []string{"KB_ADDR=" + freeAddr(t), "KB_DATA_DIR=" + t.TempDir(), "KB_WORKERS=none", "KB_SEARCH_TIMEOUT=soon"}, "serve").
			want(t, 2, `"none"`, `"soon"`)
	})
}

func TestArguments(t *testing.T) {
	t.Parallel()

	for name, row := range map[string]struct {
		args, want []string
		top        int
	}{
		"FlagsFirst":           {[]string{"--top", "3", "a", "b"}, []string{"a", "b"}, 3},
		"FlagsLast":            {[]string{"a", "b", "--top", "3"}, []string{"a", "b"}, 3},
		"FlagsBetween":         {[]string{"a", "--top=3", "b"}, []string{"a", "b"}, 3},
		"DashesEndFlags":       {[]string{"a", "--", "--top", "3"}, []string{"a", "--top", "3"}, 10},
		"FlagsBeforeTheDashes": {[]string{"--top", "3", "--", "-x"}, []string{"-x"}, 3},
		"OneDashIsAnArgument":  {[]string{"a", "-", "b"}, []string{"a", "-", "b"}, 10},
		"None":                 {nil, nil, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			set := flag.NewFlagSet("kb", flag.ContinueOnError)
			set.SetOutput(io.Discard)
			top := set.Int("top", 10, "")
			got, err := arguments(set, row.args)
			if err != nil || !slices.Equal(got, row.want) || *top != row.top {
				t.Errorf("got %q, top %d, %v", got, *top, err)
			}
		})
	}
}

func TestHealthIsBounded(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &app{config: Config{URL: "http://127.0.0.1:1"}, stdout: io.Discard, stderr: io.Discard}
	if err := a.health(ctx, nil); err == nil {
		t.Error("no error")
	}
}
