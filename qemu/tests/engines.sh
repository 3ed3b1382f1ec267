#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# `rpcrdma-cm probe` and `check` by both engines: the module, and rpcrdma-conformance, which needs
# neither the module nor root. scripts/tool and scripts/conformance build them first.
#
# test: stock.rxe
# soak: debug.siw
. ./lib/lib.sh
. ./lib/module.sh

# A copy in memory: the guest reads a file of the project again each time that it is run.
tool=/tmp/rpcrdma-cm

programs() {
	cp ../../build/tool/debug/rpcrdma-cm "$tool" &&
		cp ../../build/conformance/release/rpcrdma-conformance /usr/local/bin/ &&
		modprobe -q rdma_ucm && [[ -e /dev/infiniband/rdma_cm ]]
}

# by ENGINE ARGUMENT...: prints the status and the document of `probe`, with the keys that are of
# the server and of both messages.
by() {
	local status=0 document
	document=$(on_a "$tool" probe --json --engine "$@") || status=$?
	echo "status $status"
	jq -S 'del(.engine) | .report.info |= with_entries(select(.value != null and
		(.key | test("^(role|state|device|transport|remote|local_[sr].*|peer_.*)$") or
		test("^(.*_threshold|remote_invalidation|credits_granted)$") or
		test("^(rpc_version_used|rpc_null)$"))))' <<<"$document"
}

# same STATUS WORDS ARGUMENT...: whether both engines find the same, with that status and these
# words.
same() {
	by kernel "${@:3}" >"$scratch/kernel" && by user "${@:3}" >"$scratch/user" || return
	if ! grep -q "^status $1" "$scratch/kernel" || ! grep -qF "$2" "$scratch/kernel"; then
		cat "$scratch/kernel"
		return 1
	fi
	diff "$scratch/kernel" "$scratch/user"
}

# ends STATUS WORDS COMMAND...: whether COMMAND ends with that status and prints these words.
ends() {
	local said status=0
	said=$(on_a "${@:3}" 2>&1) || status=$?
	[[ $status = "$1" && $said = *"$2"* ]] && return
	printf 'wanted %s: %s\nfound %s: %s\n' "$1" "$2" "$status" "$said"
	return 1
}

as_nobody() { ends "$1" "$2" setpriv --reuid 65534 --regid 65534 --clear-groups "$tool" "${@:3}"; }

# -----------------------------------------------------------------------------

at_end rm -f "$tool" /usr/local/bin/rpcrdma-conformance
need 'the programs of both engines have been built' programs
need_pair
need_module
need 'a server that sends private data' control b listen "$B4:2001 send=8192 recv=16384 inv=1"
need 'a server by IPv6' control b listen "[$B6]:2007"
need 'a server without private data' control b listen "$B4:2002 private=none"
need 'a server with private data of version 2' \
	control b listen "$B4:2003 private=f6ab0e1802000303"
need 'a server of another format' control b listen "$B4:2004 private=deadbeef"
need 'a server whose message has an offset' control b listen "$B4:2005 private=00f6ab0e1801000303"
need 'a server that does not answer' control b listen "$B4:2006 answer=0"
check 'both engines: a sound server' same 0 '"credits_granted"' "$B4:2001"
check 'both engines: each option' same 1 '"client_to_server_threshold": 16384' "$B4:2001" \
	--send 65536 --receive 2048 --invalidation --from "$A4" --timeout-ms 9000 --rpcvers 1
check 'both engines: IPv6' same 0 '"reachable": true' "[$B6]:2007"
check 'both engines: no private data' same 1 'no-private-data' "$B4:2002"
check 'both engines: a version that is unknown' same 1 'unrecognized version 2' "$B4:2003"
check 'both engines: another format' same 1 '"peer_first_octets": "deadbeef' "$B4:2004"
check 'both engines: an offset' same 0 '"peer_offset": 1' "$B4:2005"
check 'both engines: no answer to NULL' same 1 'no-answer' "$B4:2006" --timeout-ms 1500
check 'both engines: another version of NFS' same 0 '"program_versions": "3 to 4"' "$B4:2001" \
	--version 7
check 'both engines: another program' same 1 'PROG_UNAVAIL' "$B4:2001" --program 7 --version 1
check 'both engines: nothing listens' same 2 'unreachable' "$B4:2099"
check 'the engine user: no route' \
	ends 2 'failed: unreachable: ' "$tool" probe 203.0.113.1 --engine user
check 'version 2 is for the engine kernel only' \
	ends 3 'only the engine kernel does that' "$tool" probe "$B4:2001" --engine user --rpcvers 2
check 'the module is the engine while it is loaded' \
	ends 1 'fine     engine: the module rpcrdma_cm asks' "$tool" check "$B4" --port 2001
# The MTU is 1500, so the status is 1.
check_of() {
	local status=0
	on_a "$tool" check "$B4" --port 2001 --engine "$1" || status=$?
	echo "status $status"
}
same_check() {
	check_of kernel >"$scratch/kernel" && check_of user >"$scratch/user" &&
		grep -q 'fine     null: NFS 3 answers NULL; NFS 4 answers NULL' "$scratch/user" &&
		grep -q '^status 1' "$scratch/user" &&
		diff <(grep -v ' engine: ' "$scratch/kernel") <(grep -v ' engine: ' "$scratch/user")
}
check 'both engines: check' same_check

# About: the user engine, without the module and without root.
need 'the servers end' control - close all
need 'the module is removed' rmmod rpcrdma_cm
[[ $TRANSPORT = rxe ]] || exit 0
need_nfs_server
check 'without the module, the engine kernel names modprobe' \
	ends 3 'modprobe rpcrdma_cm' "$tool" probe "$B4" --engine kernel
check 'an ordinary user probes a server without the module' \
	as_nobody 0 'of RPC-over-RDMA: SUCCESS' probe "$B4"
check 'an ordinary user checks a server without the module' \
	as_nobody 1 'fine     null: NFS 3 answers NULL; NFS 4 answers NULL' check "$B4:/export"
check 'without the module, nothing listens' \
	as_nobody 2 'failed   port: no connection' check "$B4" --port 2099
need 'rpcrdma-conformance is removed' rm /usr/local/bin/rpcrdma-conformance
check 'without both engines, the tool names them' \
	as_nobody 3 'or install rpcrdma-conformance' probe "$B4"
