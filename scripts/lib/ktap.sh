# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Prints the results of a script in KTAP. Source it first, with a directory in $scratch, and call
# `plan` at the end. Each result begins with the name of the script, so that it leads to one line.
# qemu/tests/lib/ktap.py is the same for Python.

# shellcheck disable=SC2154 # scratch
tests=0 failures=0
declare -A names_used=()
ktap_script=${0##*/} ktap_script=${ktap_script%.*}
echo 'KTAP version 1'

diag() { sed 's/^/# /'; }

# places: prints the file and the line of each call that led here, the outermost call first.
places() {
	local n
	for ((n = ${#FUNCNAME[@]} - 1; n > 0; n--)); do
		case ${BASH_SOURCE[n]##*/} in
		ktap.sh | lib.sh) ;;
		*) echo "at ${BASH_SOURCE[n]##*/}:${BASH_LINENO[n - 1]}" ;;
		esac
	done
}

# ok NAME: prints that a check passed. The check fails if another one of the script has its name.
ok() {
	if [[ -n ${names_used[$*]-} ]]; then
		not_ok "$*" <<<'another check has this name'
		return
	fi
	names_used[$*]=1
	echo "ok $((++tests)) $ktap_script: $*"
}

# not_ok NAME: prints that a check failed, and the reason, which it reads from stdin. Must not be
# the end of a pipe: a subshell would count the failure.
not_ok() {
	echo "not ok $((++tests)) $ktap_script: $*"
	((++failures))
	places | diag
	diag
}

skip() { echo "ok $((++tests)) $ktap_script: $1 # SKIP $2"; }

# check NAME COMMAND...: passes if COMMAND succeeds. Otherwise prints COMMAND and its output.
check() {
	# COMMAND sees these variables, and may use shorter names for its own.
	local check_name=$1 check_status=0
	shift
	"$@" >"$scratch/output" 2>&1 </dev/null || check_status=$?
	if [[ $check_status = 0 ]]; then
		ok "$check_name"
	else
		not_ok "$check_name" < <(echo "$* ended with $check_status"; cat "$scratch/output")
	fi
	return "$check_status"
}

# check_equal NAME WANTED FOUND: passes if both are equal. Otherwise prints both.
check_equal() {
	if [[ $2 = "$3" ]]; then
		ok "$1"
	else
		not_ok "$1" < <(printf 'wanted: %s\nfound:  %s\n' "$2" "$3")
		return 1
	fi
}

# check_fails NAME COMMAND...: passes if COMMAND runs and fails. A status of 126 or 127 means that
# COMMAND did not run.
check_fails() {
	local check_name=$1 check_status=0
	shift
	"$@" >"$scratch/output" 2>&1 </dev/null || check_status=$?
	if [[ $check_status = @(0|126|127) ]]; then
		not_ok "$check_name" < <(echo "$* ended with $check_status"; cat "$scratch/output")
		return 1
	fi
	ok "$check_name"
}

# plan: prints the number of checks. Succeeds if all of them have passed.
plan() {
	echo "1..$tests"
	((failures == 0))
}
