// Command withdb runs another command beside a PostgreSQL for tests and ends with its exit code:
//
//	withdb [-migrated] command [argument ...]
//
// The command finds the server's URL in KB_TEST_DATABASE_URL. With -migrated the server's database has the schema, and
// KB_VET_DATABASE_URL names it, too. SIGINT and SIGTERM go on to the command; the server ends after it in any case.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

// envMigratedURL is the variable that sqlc.yaml reads.
const envMigratedURL = "KB_VET_DATABASE_URL"

func main() {
	migrated := flag.Bool("migrated", false, "give the database its schema and set "+envMigratedURL)
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: withdb [-migrated] command [argument ...]")
		os.Exit(2)
	}
	code, err := run(*migrated, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "withdb:", err)
	}
	os.Exit(code)
}

// run gives the exit code to end with; an error comes with one, too.
func run(migrated bool, command []string) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Until the command runs, a signal ends the start of the server.
	child := make(chan *os.Process, 1)
	go forward(signals, child, cancel)

	address, stop, err := dbtest.StartServer(ctx)
	if err != nil {
		return 1, err
	}
	defer stop()
	environment := append(os.Environ(), dbtest.EnvURL+"="+address)
	if migrated {
		if err := migrate(ctx, address); err != nil {
			return 1, err
		}
		environment = append(environment, envMigratedURL+"="+address)
	}

	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // the signal itself goes to the command, not a kill
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment, os.Stdin, os.Stdout, os.Stderr
	if ctx.Err() != nil {
		return 1, ctx.Err()
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	child <- cmd.Process
	return exitCode(cmd.Wait())
}

// forward ends the start on the first signal before the command runs, and afterwards hands each signal on to it.
func forward(signals <-chan os.Signal, child <-chan *os.Process, cancel context.CancelFunc) {
	var process *os.Process
	for {
		select {
		case process = <-child:
		case received := <-signals:
			if process == nil {
				cancel()
				continue
			}
			_ = process.Signal(received)
		}
	}
}

func migrate(ctx context.Context, address string) error {
	pool, err := db.Open(ctx, address, 2)
	if err != nil {
		return err
	}
	defer pool.Close()
	return db.Migrate(ctx, pool, slog.New(slog.DiscardHandler))
}

// exitCode follows the shell: a command that a signal ended gives 128 and the signal's number.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 1, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
