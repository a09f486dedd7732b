package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ErrorKind sorts what a database can answer by what a caller can do about it.
type ErrorKind int

const (
	// KindOther is a fault of ours or of the server's.
	KindOther ErrorKind = iota
	// KindNotFound is a row that is not there.
	KindNotFound
	// KindConflict is a key that is taken.
	KindConflict
	// KindReference is a row that names another one that is not there.
	KindReference
	// KindInvalid is a value that a column refuses.
	KindInvalid
	// KindRetry is a failure that another try can mend: a lost connection, a deadlock, a server shutting down.
	KindRetry
)

// Kind sorts an error of this package's functions.
func Kind(err error) ErrorKind {
	if errors.Is(err, pgx.ErrNoRows) {
		return KindNotFound
	}
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		var connectErr *pgconn.ConnectError
		if errors.As(err, &connectErr) || pgconn.SafeToRetry(err) {
			return KindRetry
		}
		return KindOther
	}
	switch pgErr.Code {
	case "23505", "23P01":
		return KindConflict
	case "23503":
		return KindReference
	case "22P02", "22P05", "22021", "22003", "22001", "22007", "22008", "23514", "23502", "54000":
		return KindInvalid
	}
	switch pgErr.Code[:2] {
	case "08", "40", "53", "57":
		return KindRetry
	}
	return KindOther
}

// IsCancelled says whether an error comes from the caller's own context.
func IsCancelled(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// IsPathTaken says whether a document could not be stored since another one stands at its path.
func IsPathTaken(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.ConstraintName == "documents_path"
}
