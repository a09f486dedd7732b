#!/usr/bin/env bash
# Runs each fuzz test of the tree for a while, one after another: fuzz.sh 30s
set -euo pipefail

grep -rHoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sort | while IFS=: read -r file target; do
	target=${target#func }
	echo "fuzz: $target in $(dirname "$file")"
	go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1" </dev/null
done
