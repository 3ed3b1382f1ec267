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
	tool_status=0
	tool_output=$("${@:3}" 2>&1) || tool_status=$?
	also_says "$1" "$2"
}

# says_without STATUS WORDS OTHERS COMMAND...: whether `says` succeeds and the output does not have
# the words OTHERS.
says_without() {
	says "$1" "$2" "${@:4}" || return
	[[ $tool_output = *"$3"* ]] || return 0
	printf 'wanted no "%s"\nfound %s: %s\n' "$3" "$tool_status" "$tool_output"
	return 1
}

# also_says STATUS WORDS: the same, of the command that the latest `says` has run.
also_says() {
	[[ $tool_status = "$1" && $tool_output = *"$2"* ]] && return
	printf 'wanted %s: %s\nfound %s: %s\n' "$1" "$2" "$tool_status" "$tool_output"
	return 1
}
