package db

import (
	"context"
	"reflect"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Statements, for tests that look at their plans.
const (
	SearchSQL        = search
	SearchLadderSQL  = searchLadder
	DocumentCountSQL = documentCount
)

// MigrateDownTo takes back the migrations after a version.
func MigrateDownTo(ctx context.Context, pool *pgxpool.Pool, version int64) error {
	provider, closeDB, err := migrationProvider(pool)
	if err != nil {
		return err
	}
	defer closeDB()
	_, err = provider.DownTo(ctx, version)
	return err
}

// MemoryNearestSQL is the statement that looks for the nearest memory of a store, for tests that look at its plan.
const MemoryNearestSQL = memoryNearest

// Args gives the arguments of a generated query in their order.
func (p SearchParams) Args() []any { return args(p) }

// Args gives the arguments of a generated query in their order.
func (p SearchLadderParams) Args() []any { return args(p) }

// Args gives the arguments of a generated query in their order.
func (p MemoryNearestParams) Args() []any { return args(p) }

func args(params any) []any {
	value := reflect.ValueOf(params)
	args := make([]any, value.NumField())
	for i := range args {
		args[i] = value.Field(i).Interface()
	}
	return args
}

// TenantTables are the tables that an erasure empties.
var TenantTables = tenantTables
