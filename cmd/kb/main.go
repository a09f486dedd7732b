// Command kb is the knowledge server and its tools. This package is the composition root: the only place that reads the
// environment and picks implementations.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/kb-search/kb"
	"github.com/kb-search/kb/cmd/kb/client"
)

// app is what every subcommand gets from outside.
type app struct {
	config Config
	stdout io.Writer
	stderr io.Writer
}

// client talks to the server of KB_URL.
func (a *app) client() *client.Client {
	c := client.New(a.config.URL, a.config.APIKey.Reveal())
	c.Project = a.config.ProjectID
	return c
}

type command struct {
	name    string
	usage   string
	summary string
	run     func(a *app, ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"serve", "", "serve HTTP and work on jobs", (*app).serve},
		{"worker", "", "work on jobs only, beside servers with --no-worker", (*app).worker},
		{"ingest", "PATH...", "upload files, folders and globs to a server", (*app).ingest},
		{"search", "WORDS...", "search on a server", (*app).search},
		{"reindex", "", "embed all chunks anew, or put the previous model back", (*app).reindex},
		{"token", "", "mint a token for development", (*app).token},
		{"eval", "DIR...", "measure retrieval quality on judged sets", (*app).eval},
		{"tune", "[DIR]", "try search settings on judged or rated searches", (*app).tune},
		{"models", "pull [NAME] | list", "fetch models, list the known ones", (*app).models},
		{"health", "", "ask a server whether it is ready", (*app).health},
		{"openapi", "DIR", "write the OpenAPI documents", (*app).openapi},
		{"configdoc", "", "print the table of configuration variables", (*app).configdoc},
		{"version", "", "print the version", (*app).version},
	}
}

// exitError ends the process with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		writeUsage(stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name != args[0] {
			continue
		}
		config, err := LoadConfig(environment(environ))
		if err != nil {
			_, _ = fmt.Fprintf(stderr, "kb: the configuration can't be used:\n%v\n", err)
			return exitUsage
		}
		a := &app{config: config, stdout: stdout, stderr: stderr}
		return exitCode(c.run(a, ctx, args[1:]), c, stderr)
	}
	_, _ = fmt.Fprintf(stderr, "kb: there is no command %q\n", args[0])
	writeUsage(stderr)
	return exitUsage
}

func exitCode(err error, c command, stderr io.Writer) int {
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &exit):
		_, _ = fmt.Fprintf(stderr, "kb %s: %v\n", c.name, err)
		return exit.code
	default:
		_, _ = fmt.Fprintf(stderr, "kb %s: %v\n", c.name, err)
		return exitFailure
	}
}

func environment(environ []string) map[string]string {
	values := make(map[string]string, len(environ))
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}

func writeUsage(out io.Writer) {
	_, _ = fmt.Fprintf(out, "kb %s, a knowledge server on PostgreSQL\n\nusage: kb COMMAND [ARGUMENTS]\n\n", kb.Version())
	for _, c := range commands() {
		_, _ = fmt.Fprintf(out, "  %-30s %s\n", strings.TrimSpace(c.name+" "+c.usage), c.summary)
	}
	_, _ = fmt.Fprint(out, "\nConfiguration comes from the environment, see docs/config.md.\n")
}

// flags makes a flag set that reports to stderr and gives errors instead of ending the process.
func (a *app) flags(name, usage string) *flag.FlagSet {
	set := flag.NewFlagSet("kb "+name, flag.ContinueOnError)
	set.SetOutput(a.stderr)
	set.Usage = func() {
		_, _ = fmt.Fprintf(a.stderr, "usage: kb %s %s\n", name, usage)
		set.PrintDefaults()
	}
	return set
}

// arguments reads flags and gives the other arguments; flags may stand behind those, too, up to a lone "--". What can't be
// understood ends with exitUsage.
func arguments(set *flag.FlagSet, args []string) ([]string, error) {
	var literal []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, literal = args[:i], args[i+1:]
	}
	var positional []string
	for {
		if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, err
		} else if err != nil {
			return nil, usageError("%w", err)
		}
		if set.NArg() == 0 {
			return append(positional, literal...), nil
		}
		positional = append(positional, set.Arg(0))
		args = set.Args()[1:]
	}
}

func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func (a *app) version(context.Context, []string) error {
	_, err := fmt.Fprintln(a.stdout, kb.Version())
	return err
}

func (a *app) configdoc(context.Context, []string) error { return writeConfigDoc(a.stdout) }
