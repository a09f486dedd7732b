package db_test

import (
	"slices"
	"testing"

	"github.com/kb-search/kb/db"
	"github.com/kb-search/kb/db/dbtest"
)

// A table that is added later must not be forgotten when a project is erased.
func TestTenantTables(t *testing.T) {
	t.Parallel()
	tx := dbtest.Tx(t)
	rows, err := tx.Query(t.Context(), `SELECT c.table_name::text FROM information_schema.columns AS c
		JOIN information_schema.tables AS t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
		WHERE c.table_schema = 'public' AND c.column_name = 'project_id' AND t.table_type = 'BASE TABLE' AND c.table_name <> 'project_erasures'
		ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	erased := slices.Sorted(slices.Values(db.TenantTables))
	slices.Sort(tables)
	if !slices.Equal(tables, erased) {
		t.Errorf("the database has the tables %v, an erasure knows %v", tables, erased)
	}
}
