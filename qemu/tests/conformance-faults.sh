#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Every client case of tools/conformance passes on the suite's own test client, and fails with its
# own fault. scripts/conformance builds the suite first.
#
# test: stock.rxe
. ./lib/lib.sh
. ./lib/suite.sh

client=/tmp/faulty-client

# no_client: whether the suite fails where no client connects, and says so.
no_client() {
	local said status=0
	said=$(on_b "$suite" client --listen "$B4:3001" --run false --limit 5 2>&1) || status=$?
	[[ $status = 2 && $said = *'no client has connected'* ]] && return
	echo "ended with $status: $said"
	return 1
}

# gives RESULT CASE FAULT [OPTION]: whether the case has that result with the fault.
gives() {
	echo "$2 $1" >"$scratch/known"
	on_b "$suite" client --listen "$B4:3002" --run "$(in_a "$client $B4:3002 $3")" "$2" \
		--expect "$scratch/known" "${@:4}"
}

# ends_early: whether a run that a signal ends writes the results so far.
ends_early() {
	local status=0
	on_b timeout 15 "$suite" client --listen "$B4:3003" \
		--run "$(in_a "$client $B4:3003 none")" \
		--junit "$scratch/early.xml" --json "$scratch/early.json" || status=$?
	[[ $status = 124 ]] && grep -q '<testcase classname="rfc' "$scratch/early.xml" &&
		grep -q '<error message="a signal' "$scratch/early.xml" &&
		grep -q '</testsuite>' "$scratch/early.xml" &&
		grep -q '"complete": false' "$scratch/early.json"
}

need_pair
need_neighbours
need 'programs can use rdma_cm for the test client' has_rdma_cm
need 'the suite has been built with its test client (scripts/conformance)' \
	copies faulty-client
check 'every client case passes without a fault, and fails with its own' \
	proves_itself on_b "$client" --test "$B4:3010" "$(in_a "$client")"
check 'a client that ignores an error and gives up is inconclusive' \
	gives inconclusive rfc8166/4.5.1/c1 ignores-errors
check 'a client may make several connections' gives pass rfc8166/4.6.2/c1 probes-first
check 'a client may begin with version 2 on each connection' \
	gives pass draft-v2/5.2/c1 'probes-first two' --draft-v2
check 'a client that does not connect again is inconclusive' \
	gives inconclusive rfc8797/4/c4 gives-up
check 'a client that makes a refused call again with its XID is non-strict' \
	gives non-strict rfc8267/6.4.2/c4 retries-refusals
check 'a client that ends the connection when it is called fails' \
	gives fail rfc8167/5.3/c1 ends-when-called
check 'a client that ends the connection at a second XID fails' \
	gives fail rfc8166/4.2.1/c2 ends-at-two-xids
check 'a client whose Read chunks cannot be read fails' \
	gives fail rfc8166/3.4.5/c2 wrong-handles
check 'a run that a signal ends leaves the results so far' ends_early
check 'the suite reports that no client connects' no_client
