package db

import "reflect"

// SearchSQL is the search statement, for tests that look at its plan.
const SearchSQL = search

// Args gives the arguments of a generated query in their order.
func (p SearchParams) Args() []any {
	value := reflect.ValueOf(p)
	args := make([]any, value.NumField())
	for i := range args {
		args[i] = value.Field(i).Interface()
	}
	return args
}
