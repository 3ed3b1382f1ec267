# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Begins a script that prints KTAP. Source it after `set -uo pipefail`. $scratch is a directory that
# is removed at the end.

# shellcheck source=scripts/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
scratch=$(mktemp -d "$cache/test-XXXXXX")
trap 'remove "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
# shellcheck source=scripts/lib/ktap.sh
. "$project/scripts/lib/ktap.sh"

# in_debian TREE COMMAND...: runs COMMAND in a Debian tree. It may install packages.
in_debian() { lab --tree "$1" env DEBIAN_FRONTEND=noninteractive "${@:2}"; }

# subtest NAME COMMAND...: passes if COMMAND succeeds. Its results are those of a subtest.
subtest() {
	"${@:2}" 2>"$scratch/errors" | sed -u 's/^/    /'
	if [[ ${PIPESTATUS[0]} = 0 ]]; then ok "$1"; else not_ok "$1" <"$scratch/errors"; fi
}
