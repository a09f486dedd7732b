// Package kb is a multi-tenant knowledge server on PostgreSQL: documents go in over HTTP, one search brings the right
// passages back. The architecture in one page:
//
//	cmd/kb       the composition root: reads the environment, picks implementations, starts and stops them
//	api          HTTP: request -> db, search, job -> response
//	api/search   a request becomes parameters, the parameters one SQL statement, its rows results
//	worker       River jobs: parse -> chunk -> embed -> store, in one transaction a document
//	embed        models: vectors of texts, in the process through ONNX Runtime
//	db           every byte of SQL that runs, generated from sql/queries; the embedded PostgreSQL
//
// Imports point one way: cmd -> api, worker -> db, embed. Search is one statement, sql/queries/search.sql; what a caller
// sees is what was committed, decided and explained by the database itself. Tenancy is a column: every query of a
// tenant's table compares project_id.
package kb

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var version string

// Version is the release, as the VERSION file has it.
func Version() string { return strings.TrimSpace(version) }
