# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The library of the test scripts in the shell. A script sources it first. It prints the
# KTAP around the checks, and cleans up at the end.
set -uo pipefail

# shellcheck source=qemu/hosts.sh
. ../hosts.sh
# shellcheck source=scripts/lib/ktap.sh
. ../../scripts/lib/ktap.sh

# need NAME COMMAND...: a check without which the rest makes no sense: ends the script if
# it fails.
need() {
	check "$@" || exit 1
}

# group NAME: calls a function, which checks one subject and makes its own connections. With
# `qemu/tests/run -k PATTERN`, only if the name matches. A script in which none matches fails.
groups=0
group() { [[ ! $1 =~ ${CHECK_GROUPS-} ]] || { ((++groups)); "$1"; }; }

# The checks that many scripts begin with.
need_pair() { need 'the pair of hosts is made' pair; }
need_neighbours() { need 'both hosts of the pair reach each other' on_a ping -c1 -W5 "$B4"; }
need_module() { need 'the module loads' module_load; }
need_nfs_server() { need 'the NFS server of the pair starts' nfs_server; }

# need_reload NAME [PARAMETER...]: loads the module again, with these parameters.
need_reload() {
	need "$1: the module is removed" rmmod rpcrdma_cm
	need "$1: the module loads" insmod "$MODULE" "${@:2}"
}

not_cleaned_up() { not_ok "cleaning up: $1"; }

finish() {
	local status=$? output
	trap - EXIT
	# An error of the shell within a check ends the script. The reason is in the output of the
	# check, where everything else may go, too.
	output=$(readlink "/proc/$$/fd/1")
	[[ $output != "$scratch"/* ]] || exec >"/proc/$PPID/fd/1" 2>&1
	[[ $status = 0 || $failures -gt 0 ]] || not_ok "the script ended with $status" \
		< <(cat "$scratch"/{output,waiting} 2>/dev/null)
	clean_up not_cleaned_up
	[[ -z ${CHECK_GROUPS-} || $groups -gt 0 ]] ||
		not_ok "no group of checks matches -k $CHECK_GROUPS" </dev/null
	[[ $tests -gt 0 ]] || not_ok 'the script tested nothing' </dev/null
	plan
	exit "$?"
}
trap finish EXIT
trap 'exit 143' TERM
