package db

import "reflect"

// SearchSQL is the search statement, for tests that look at its plan.
const SearchSQL = search

// MemoryNearestSQL is the statement that looks for the nearest memory of a store, for tests that look at its plan.
const MemoryNearestSQL = memoryNearest

// Args gives the arguments of a generated query in their order.
func (p SearchParams) Args() []any { return args(p) }

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
