#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The host tests on another architecture. scripts/test has built them beside the module.
#
# soak: arm64.rxe
set -uo pipefail

# All inputs would take minutes even without emulation, and fewer inputs run the same code.
unset FULL
export PROPTEST_CASES=1000
echo 'KTAP version 1'
"${MODULE%/*}/host-tests" 2>&1 | {
	tests=0
	while IFS= read -r line; do
		if [[ $line =~ ^test\ ([^ ]+)\ \.\.\.\ ([a-zA-Z]+) ]]; then
			case ${BASH_REMATCH[2]} in
			ok) echo "ok $((++tests)) host: ${BASH_REMATCH[1]}" ;;
			ignored) echo "ok $((++tests)) host: ${BASH_REMATCH[1]} # SKIP" ;;
			*) echo "not ok $((++tests)) host: ${BASH_REMATCH[1]}" ;;
			esac
		else
			echo "# $line"
		fi
	done
	echo "1..$tests"
	[[ $tests -gt 0 ]]
}
exit "$((PIPESTATUS[0] || PIPESTATUS[1]))"
