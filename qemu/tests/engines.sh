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
. ./lib/tool.sh

programs() {
	tool_runs && cp ../../build/conformance/release/rpcrdma-conformance /usr/local/bin/ &&
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

# ends STATUS WORDS COMMAND...: whether COMMAND on host a ends with that status and prints these
# words.
ends() { says "$1" "$2" on_a "${@:3}"; }

as_nobody() { ends "$1" "$2" setpriv --reuid 65534 --regid 65534 --clear-groups "$tool" "${@:3}"; }

# About: the results of both engines for the same servers.

both_answer='fine     null: NFS 3 answers NULL; NFS 4 answers NULL'

# The MTU is 1500, so the status is 1.
check_of() {
	local status=0
	on_a "$tool" check "$B4" --port 2001 --engine "$1" || status=$?
	echo "status $status"
}

same_check() {
	check_of kernel >"$scratch/kernel" && check_of user >"$scratch/user" &&
		grep -q "$both_answer" "$scratch/user" &&
		grep -q '^status 1' "$scratch/user" &&
		diff <(grep -v ' engine: ' "$scratch/kernel") <(grep -v ' engine: ' "$scratch/user")
}

servers() {
	need 'a server that sends private data' \
		control b listen "$B4:2001 send=8192 recv=16384 inv=1"
	need 'a server by IPv6' control b listen "[$B6]:2007"
	need 'a server without private data' control b listen "$B4:2002 private=none"
	need 'a server with private data of version 2' \
		control b listen "$B4:2003 private=$(offer 4096 4096 0 2)"
	need 'a server of another format' control b listen "$B4:2004 private=deadbeef"
	need 'a server whose message has an offset' \
		control b listen "$B4:2005 private=00$(offer 4096 4096)"
	need 'a server that does not answer' control b listen "$B4:2006 answer=0"
	check 'both engines: a sound server' same 0 '"credits_granted"' "$B4:2001"
	check 'both engines: each option' same 1 '"client_to_server_threshold": 16384' "$B4:2001" \
		--send 65536 --receive 2048 --invalidation --from "$A4" --timeout-ms 9000 \
		--rpcvers 1
	check 'both engines: IPv6' same 0 '"reachable": true' "[$B6]:2007"
	check 'both engines: no private data' same 1 'no-private-data' "$B4:2002"
	check 'both engines: a version that is unknown' same 1 'unrecognized version 2' "$B4:2003"
	check 'both engines: another format' same 1 '"peer_first_octets": "deadbeef' "$B4:2004"
	check 'both engines: an offset' same 0 '"peer_offset": 1' "$B4:2005"
	check 'both engines: no answer to NULL' same 1 'no-answer' "$B4:2006" --timeout-ms 1500
	check 'both engines: another version of NFS' \
		same 0 '"program_versions": "3 to 4"' "$B4:2001" --version 7
	check 'both engines: another program' \
		same 1 'PROG_UNAVAIL' "$B4:2001" --program 7 --version 1
	check 'both engines: nothing listens' same 2 'unreachable' "$B4:2099"
	check 'the engine user: no route' \
		ends 2 'failed: unreachable: ' "$tool" probe 203.0.113.1 --engine user
	check 'version 2 is for the engine kernel only' \
		ends 3 'only the engine kernel does that' \
		"$tool" probe "$B4:2001" --engine user --rpcvers 2
	check 'the module is the engine while it is loaded' \
		ends 1 'fine     engine: the module rpcrdma_cm asks' "$tool" check "$B4" --port 2001
	check 'both engines: check' same_check
}

# About: a program that answers NULL with other octets.

# On the debug kernel with one processor, some seconds pass until the peer's program has the call.
wait_ms=3000
[[ $TRANSPORT = rxe ]] || wait_ms=20000

# answers ENGINE STATUS LINE OCTETS...: whether `probe` ends with that status and prints that line
# where NULL is answered by these messages. XID stands for that of the call.
answers() {
	local probe octets=() xid status=0
	tell 1 receives 8 1024 && say 1 accept "$(offer 4096 4096)" || return
	on_a "$tool" probe "$B4:2008" --engine "$1" --timeout-ms "$wait_ms" >"$scratch/probe" 2>&1 &
	probe=$!
	if ! { hear 1 && tell 1 receive 10000 && [[ ${#said} -gt 8 ]]; }; then
		echo "the program received: $said"
		kill "$probe"
		wait "$probe"
		cat "$scratch/probe"
		return 1
	fi
	xid=${said:0:8}
	octets=("${@:4}")
	# The probe may have closed before these Sends complete.
	say 1 send "${octets[@]//XID/$xid}" && hear 1 || [[ $said = failed* ]] || return
	# Answers the DREQ.
	say 1 receive $((wait_ms + 20000)) && hear 1 60 && tell 1 close || return
	wait "$probe" || status=$?
	[[ $status = "$2" ]] && grep -qxF -e "$3" "$scratch/probe" && return
	echo "status $status"
	cat "$scratch/probe"
	return 1
}

# zeros COUNT: sets $zeros to that many octets.
zeros() {
	zeros=empty
	(($1 == 0)) || printf -v zeros '%0*d' $((2 * $1)) 0
}

# RFC 8166, section 4.2: xid, version, credits, RDMA_MSG, no lists. RFC 5531, section 9: xid, REPLY,
# MSG_ACCEPTED, AUTH_NONE, SUCCESS.
rdma_msg=0000000100000020$(printf %032d 0) success=00000001$(printf %032d 0)
answered='  degraded: NULL has no result: the server answered with'
unanswered='  degraded: it accepts connections and does not answer NULL: no reply in time; the'
unanswered+=' server sent a message with XID 0x12345678, which no call has'
succeeded='  NULL of NFS version 4 in version 1 of RPC-over-RDMA: SUCCESS'

bad_answers() {
	program 1
	need 'a program that answers with other octets listens' \
		tell 1 listen "/run/netns/$B" "$B4" 2008
	for engine in kernel user; do
		for n in 0 15 27; do
			zeros "$n"
			check "the engine $engine: an answer of $n octets" \
				answers "$engine" 1 "$answered a message of $n octets" "$zeros"
		done
		check "the engine $engine: an answer with another XID" \
			answers "$engine" 1 "$unanswered" "12345678${rdma_msg}12345678$success"
		zeros 15
		check "the engine $engine: a short message and the answer behind it" \
			answers "$engine" 0 "$succeeded" "$zeros" "XID${rdma_msg}XID$success"
	done
	program_end 1
}

# About: the user engine, without the module and without root.

without_module() {
	need 'the servers end' control - close all
	need 'the module is removed' rmmod rpcrdma_cm
	[[ $TRANSPORT = rxe ]] || return 0
	need_nfs_server
	check 'without the module, the engine kernel names modprobe' \
		ends 3 'modprobe rpcrdma_cm' "$tool" probe "$B4" --engine kernel
	check 'an ordinary user probes a server without the module' \
		as_nobody 0 'of RPC-over-RDMA: SUCCESS' probe "$B4"
	check 'an ordinary user checks a server without the module' \
		as_nobody 1 "$both_answer" check "$B4:/export"
	check 'without the module, nothing listens' \
		as_nobody 2 'failed   port: no connection' check "$B4" --port 2099
	need 'rpcrdma-conformance is removed' rm /usr/local/bin/rpcrdma-conformance
	check 'without both engines, the tool names them' \
		as_nobody 3 'or install rpcrdma-conformance' probe "$B4"
}

# -----------------------------------------------------------------------------

at_end rm -f /usr/local/bin/rpcrdma-conformance
need 'the programs of both engines have been built' programs
need_pair
need_module
group servers
group bad_answers
group without_module
