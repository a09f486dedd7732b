#!/usr/bin/env bash
# Runs the benchmarks ten times on the commit given and ten times on the working tree, and compares: bench-compare.sh main
set -euo pipefail

work=$(mktemp -d)
trap 'git worktree remove --force "$work/base"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/base" "$1"

bench() { (cd "$1" && go test -run '^$' -bench . -benchmem -count 10 ./...); }
bench "$work/base" >"$work/$1.txt"
bench . >"$work/here.txt"
cd "$work"
go run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da "$1.txt" here.txt
