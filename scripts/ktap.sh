# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# KTAP: what scripts that test print. Source it first, with a directory in $scratch;
# at the end comes `plan`. qemu/tests/lib/ktap.py is the same for Python.

# shellcheck disable=SC2154 # scratch
tests=0 failures=0
declare -A names_used=()
echo 'KTAP version 1'

diag() { sed 's/^/# /'; }

# places: the file and the line of each call that led here, the script's own first.
places() {
	local n
	for ((n = ${#FUNCNAME[@]} - 1; n > 0; n--)); do
		case ${BASH_SOURCE[n]##*/} in
		ktap.sh | lib.sh) ;;
		*) echo "at ${BASH_SOURCE[n]##*/}:${BASH_LINENO[n - 1]}" ;;
		esac
	done
}

# ok NAME: it fails where another check has that name, which then leads to two lines.
ok() {
	if [[ -n ${names_used[$*]-} ]]; then
		not_ok "$*" <<<'another check has this name'
		return
	fi
	names_used[$*]=1
	echo "ok $((++tests)) $*"
}

# not_ok NAME: what it reads says why. (Not at the end of a pipe: a pipe's parts
# count for themselves.)
not_ok() {
	echo "not ok $((++tests)) $*"
	((++failures))
	places | diag
	diag
}

skip() { echo "ok $((++tests)) $1 # SKIP $2"; }

# check NAME COMMAND...: shows the command and its output when it fails.
check() {
	# COMMAND sees these, and may have variables of more common names.
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
	local check_name=$1
	shift
	if "$@" >"$scratch/output" 2>&1 </dev/null; then
		not_ok "$check_name" < <(echo "$* succeeded"; cat "$scratch/output")
		return 1
	fi
	ok "$check_name"
}

# plan: how many checks there were, and whether all of them passed.
plan() {
	echo "1..$tests"
	((failures == 0))
}
