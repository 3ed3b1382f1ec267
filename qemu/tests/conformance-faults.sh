#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Every client case of tools/conformance passes on the suite's own test client, and fails with its
# own fault. scripts/conformance builds the suite first.
#
# test: stock.rxe
. ./lib/lib.sh
. ./lib/module.sh

# Copies in memory: the guest reads a file of the project again each time that it is run.
suite=/tmp/rpcrdma-conformance client=/tmp/faulty-client

copies() {
	local built=../../build/conformance/release
	cp "$built/rpcrdma-conformance" "$suite" && cp "$built/faulty-client" "$client" &&
		"$suite" --version
}

# in_a COMMAND...: prints a command line that runs COMMAND in host a.
in_a() { echo "nsenter --net=/run/netns/$A $*"; }

# proves_itself: prints what the self-test has found wrong.
proves_itself() {
	local status=0
	on_b "$client" --test "$B4:3000" "$(in_a "$client" "$B4:3000")" \
		>"$scratch/self-test" 2>&1 || status=$?
	grep -A12 '^not ok' "$scratch/self-test"
	tail -n1 "$scratch/self-test"
	return "$status"
}

no_client() { on_b "$suite" client --listen "$B4:3001" --run false --limit 5; }

program_file() {
	modprobe -q rdma_ucm
	[[ -e /dev/infiniband/rdma_cm ]]
}

need_pair
need_neighbours
need 'programs can use rdma_cm for the test client' program_file
need 'the suite has been built with its test client (scripts/conformance)' copies
check 'every client case passes without a fault, and fails with its own' proves_itself
check_fails 'the suite reports that no client connects' no_client
