# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the guest's tests share: source it first, it prints the KTAP around them.
# qemu/tests/run says on which kernels and transports a script runs.
set -uo pipefail

# shellcheck source=qemu/hosts.sh
. ../hosts.sh
# shellcheck source=scripts/ktap.sh
. ../../scripts/ktap.sh

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
	plan
	exit "$?"
}
trap finish EXIT
trap 'exit 143' TERM
