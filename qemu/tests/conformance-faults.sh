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

no_client() { on_b "$suite" client --listen "$B4:3001" --run false --limit 5; }

need_pair
need_neighbours
need 'programs can use rdma_cm for the test client' has_rdma_cm
need 'the suite has been built with its test client (scripts/conformance)' \
	copies faulty-client
check 'every client case passes without a fault, and fails with its own' \
	proves_itself on_b "$client" --test "$B4:3010" "$(in_a "$client")"
check_fails 'the suite reports that no client connects' no_client
