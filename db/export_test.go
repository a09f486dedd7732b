package db

import (
	"context"
	"reflect"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Statements, for tests that look at their plans.
const (
	SearchSQL        = search
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

// Args gives the arguments of a generated query in their order.
func (p SearchParams) Args() []any {
	value := reflect.ValueOf(p)
	args := make([]any, value.NumField())
	for i := range args {
		args[i] = value.Field(i).Interface()
	}
	return args
}
