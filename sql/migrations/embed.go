// Package migrations holds the schema as goose files; package db runs them.
package migrations

import "embed"

// FS holds the migrations, named by their effect and numbered in the order in which they run. Number 2 is River's schema
// and stands in package db.
//
//go:embed *.sql
var FS embed.FS
