# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the guest's tests share: source it first, it prints the KTAP around them.
# qemu/tests/run says on which kernels and transports a script runs.
set -uo pipefail

# shellcheck source=qemu/hosts.sh
. ../hosts.sh

tests=0 failures=0
echo 'KTAP version 1'

diag() { sed 's/^/# /'; }

ok() { echo "ok $((++tests)) $*"; }

# not_ok NAME: what it reads says why. (Not at the end of a pipe: a pipe's parts
# count for themselves.)
not_ok() {
	echo "not ok $((++tests)) $*"
	((++failures))
	diag
}

skip() { echo "ok $((++tests)) $1 # SKIP $2"; }

# check NAME COMMAND...: shows the command and its output when it fails.
check() {
	local name=$1 status=0
	shift
	"$@" >"$scratch/output" 2>&1 </dev/null || status=$?
	if [[ $status = 0 ]]; then
		ok "$name"
	else
		not_ok "$name" < <(echo "$* ended with $status"; cat "$scratch/output")
	fi
	return "$status"
}

# check_equal NAME WANTED FOUND
check_equal() {
	if [[ $2 = "$3" ]]; then
		ok "$1"
	else
		not_ok "$1" < <(printf 'wanted: %s\nfound:  %s\n' "$2" "$3")
		return 1
	fi
}

# check_fails NAME COMMAND...: it must not succeed.
check_fails() {
	local name=$1
	shift
	if "$@" >"$scratch/output" 2>&1 </dev/null; then
		not_ok "$name" < <(echo "$* succeeded"; cat "$scratch/output")
		return 1
	fi
	ok "$name"
}

# What no later test can do without.
need() {
	check "$@" || exit 1
}

not_cleaned_up() { not_ok "cleaning up: $1"; }

finish() {
	local status=$?
	trap - EXIT
	clean_up not_cleaned_up
	[[ $status = 0 || $failures -gt 0 ]] || not_ok "the script ended with $status" </dev/null
	[[ $tests -gt 0 ]] || not_ok 'the script tested nothing' </dev/null
	echo "1..$tests"
	exit $((failures > 0))
}
trap finish EXIT
trap 'exit 143' TERM
