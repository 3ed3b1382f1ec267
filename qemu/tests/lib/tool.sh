# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For the scripts that run tools/rpcrdma-cm, which scripts/tool builds. Source it after lib.sh.

# A copy in memory: the guest reads a file of the project again each time that it is run.
tool=/tmp/rpcrdma-cm
at_end rm -f "$tool"
tool_runs() { cp ../../build/tool/debug/rpcrdma-cm "$tool" && "$tool" --version; }

# says STATUS WORDS COMMAND...: whether COMMAND ends with that status and prints these words, on
# stdout or stderr.
says() {
	local said status=0
	said=$("${@:3}" 2>&1) || status=$?
	[[ $status = "$1" && $said = *"$2"* ]] && return
	printf 'wanted %s: %s\nfound %s: %s\n' "$1" "$2" "$status" "$said"
	return 1
}
