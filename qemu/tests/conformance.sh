#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The suite of tools/conformance: against its own test server, without faults and with each of
# them, against the module's listener, and against the kernel's NFS server. scripts/conformance
# builds it first. Over soft-iWARP it only runs against the module's listener.
#
# test: stock.rxe debug.siw
. ./lib/lib.sh
. ./lib/module.sh
. ./lib/suite.sh

server=/tmp/faulty-server

serve_faults() {
	on_b "$server" --listen "$B4:3000" >"$scratch/listening" 2>&1 &
	# The end of the NFS server has ended it if that ran in the same namespace.
	at_end eval "kill $! 2>/dev/null || true"
	wait_for 30 grep -q listening "$scratch/listening"
}

# as_expected FILE ARGUMENT...: whether the suite finds what the file lists.
as_expected() {
	# siw does not tell programs what was invalidated. The last two need a Receive that comes
	# late, and DREQ.
	known "$1" rfc8797/4/{3..11} rfc8797/4.1/{{1..4},6} rfc8797/5.1/{1..3} rfc8797/5.2/{9..15} \
		rfc8166/3.3.1/14 rfc8166/3.3.3/5 || return
	on_a "$suite" server "${@:2}" --quiet-ms 100 --expect "$scratch/known"
}

by_a_user() {
	on_a setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$suite" server "$B4:3000" rfc8166/3.3.1 rfc8166/3.5.3
}

# documents: whether JSON and JUnit are well-formed, and name every case.
documents() {
	local count
	on_a "$suite" server "$B4:3000" rfc8166/4.2.1 --json "$scratch/json" \
		--junit "$scratch/junit" --tap "$scratch/tap" --html "$scratch/html" || return
	count=$(jq '.cases | length' "$scratch/json") && [[ $count = 4 ]] &&
		[[ $(grep -c '<testcase' "$scratch/junit") = 4 ]] &&
		[[ $(grep -c '^ok' "$scratch/tap") = 4 ]] &&
		[[ $(grep -c 'rfc8166/4.2.1/' "$scratch/html") = 4 ]]
}

changed_result() {
	local status=0
	echo 'rfc8797/4/1 fail' >"$scratch/expected"
	on_a "$suite" server "$B4:3000" rfc8797/4/1 --expect "$scratch/expected" || status=$?
	same status 1 "$status"
}

# nothing_to_try: whether a case is skipped whose server has no reply that can be made long.
nothing_to_try() {
	echo 'rfc8797/5.1/1 skipped' >"$scratch/skipped"
	on_a "$suite" server "$B4:3000" rfc8797/{4,5.1}/1 --program 100003:3 \
		--expect "$scratch/skipped"
}

# answers_short: whether the kernel's NFS server answers the first 24 octets of a call with
# ERR_CHUNK (reports/svcrdma-short-message.txt). That harms no server of this series.
answers_short() {
	echo 'rfc8166/4.5/7 fail' >"$scratch/short"
	on_a "$suite" server "$B4" rfc8166/4.5/7 --destructive --expect "$scratch/short" \
		--json "$scratch/json" || return
	# Version 1, credits, RDMA_ERROR, ERR_CHUNK
	jq -e '.cases[].reason | test("is answered: .{8} 0{7}1 .{8} 0{7}4 0{7}2")' "$scratch/json"
}

# mortal OUTCOME RESTART: whether the second case has that outcome with `--restart RESTART`.
mortal() {
	printf '%s\n' 'rfc8166/3.3.1/8 fail' "rfc8166/3.3.1/9 $1" >"$scratch/mortal"
	pkill -f 'faulty-server --mortal'
	sh -c "$start" && wait_for 30 on_a "$suite" probe "$B4:2900" --program 0x20008797:1 &&
		on_a "$suite" server "$B4:2900" rfc8166/3.3.1/{8,9} --restart "$2" \
			--expect "$scratch/mortal"
}

need_pair
need_module
need 'programs can use rdma_cm for the suite' has_rdma_cm
need 'the suite has been built (scripts/conformance)' copies faulty-server
need 'a listener of the module for the suite' control b listen "$B4:2000 send=4096 recv=4096 inv=1"
check "the suite finds in the module's listener what is known" \
	as_expected rpcrdma_cm "$B4:2000" --destructive --draft-v2
[[ $TRANSPORT = rxe ]] || exit 0
need 'the test server of the suite listens' serve_faults
check 'every case passes without a fault, and fails with its own' \
	proves_itself on_a "$server" --test "$B4:3000"
check 'an ordinary user runs the suite' by_a_user
check 'the results of the suite have every format' documents
start="nsenter --net=/run/netns/$B $server --mortal dies-of-duplicates $B4:2900 >/dev/null 2>&1 &"
check 'the suite starts a server again that a case has killed' mortal pass "$start"
check 'the suite skips the other cases if that fails' mortal skipped false
pkill -f 'faulty-server --mortal'
check 'the suite reports a result that is not the expected one' changed_result
check 'a case that cannot be tried does not pass' nothing_to_try
need 'an NFS server for the suite' nfs_server
need 'a scratch file for the suite' scratch_file
# Most cases with --destructive are for a machine that may crash.
check "the suite finds in the kernel's NFS server what is known" \
	as_expected linux "$B4" --export scratch
check 'a message of 24 octets has an answer, as known' answers_short
