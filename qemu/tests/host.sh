#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The host tests, on a processor of another kind than the host's: scripts/test has built
# them beside the module.
#
# soak: arm64.rxe
set -uo pipefail

# The full forms take minutes without emulation.
unset FULL
echo 'KTAP version 1'
"${MODULE%/*}/host-tests" 2>&1 | awk '
	$1 == "test" && $3 == "..." {
		if ($4 == "ignored")
			print "ok " ++tests " " $2 " # SKIP"
		else
			print ($4 == "ok" ? "" : "not ") "ok " ++tests " " $2
		next
	}
	{ print "# " $0 }
	END { print "1.." tests + 0; exit !tests }
'
exit "$((PIPESTATUS[0] || PIPESTATUS[1]))"
