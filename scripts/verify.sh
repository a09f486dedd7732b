#!/usr/bin/env bash
# Generates anew and fails, with the difference, when that changes a file; the tree then holds the new files. It compares
# with a copy and not with git, so that it says the same before a commit as after it, and without git.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
wrong() {
	echo "verify: $1" >&2
	failed=1
}

snapshot() {
	mkdir "$1"
	find db docs openapi -type f \( -name '*.gen.go' -o -path docs/config.md -o -path 'openapi/*' \) -print0 |
		tar --null -T - -cf - | tar -xf - -C "$1"
}

mkdir -p openapi
snapshot "$work/before"
"${MAKE:-make}" --no-print-directory generate
snapshot "$work/after"
(cd "$work" && diff -ruN before after) || wrong "generated files were out of date; they are new now, commit them"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	unknown=$(git ls-files --others -- 'db/*.gen.go' docs/config.md openapi)
	[ -z "$unknown" ] || wrong "generated files that git does not have yet, add them: ${unknown//$'\n'/ }"
fi

version=$(cat VERSION)
changelog=$(sed -nE 's/^## \[?([0-9][^] ]*).*/\1/p' CHANGELOG.md | head -n 1)
[ "$changelog" = "$version" ] || wrong "VERSION is $version, the newest release in CHANGELOG.md ${changelog:-missing}"
for document in openapi/openapi.json openapi/openapi-3.0.json; do
	named=$("${PYTHON:-python3}" -c 'import json, sys; print(json.load(open(sys.argv[1]))["info"]["version"])' "$document")
	[ "$named" = "$version" ] || wrong "VERSION is $version, info.version in $document $named"
done
exit "$failed"
