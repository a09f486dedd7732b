#!/usr/bin/env bash
# Runs the govulncheck given. A finding fails. A vulnerability database that cannot be reached is said and passes: that is
# no fact about the code.
set -euo pipefail

code=0
report=$("$1" ./... 2>&1) || code=$?
if [ "$code" != 0 ] && grep -q '^govulncheck: fetching vulnerabilities: ' <<<"$report"; then
	echo "vuln: left out, the vulnerability database cannot be reached from here"
	exit 0
fi
echo "$report"
exit "$code"
