#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In a guest whose kernel has the series, for scripts/tests/series: the sample answers rdma_client
# of rdma-core, and is unloaded while the module is connected to it.
cd "$(dirname "$0")/tests" || exit
. ./lib/lib.sh
. ./lib/module.sh

# has_hello: whether the newest connection of the module got the sample's private data.
has_hello() {
	newest client && octets "connection/$id/received" || return
	echo "$octets"
	[[ $octets = 68656c6c6f* ]]
}

need_pair
need_neighbours
need_module
need 'the sample loads' on_b modprobe rust_rdma_cm
at_end remove_module rust_rdma_cm
check 'the sample sends a message back' on_a timeout 30 rdma_client -s "$B4" -p 20050
check 'the sample tells the length of the message' \
	wait_for 10 bash -c "dmesg | grep -q 'rust_rdma_cm: 16 bytes'"
need 'the module connects to the sample' control a connect "$B4:20050 null=0"
check "the module shows the sample's private data" wait_for 10 has_hello
need 'the sample is unloaded while it has a connection' rmmod rust_rdma_cm
check 'the connection to the unloaded sample ends' wait_for 10 is_gone "$id"
nobody_listens() {
	local status=0
	on_a timeout 30 rdma_client -s "$B4" -p 20050 || status=$?
	# 124: timeout has ended the client, because somebody listens and does not answer.
	# 125 to 127: it did not run.
	[[ $status != @(0|12[4-7]) ]]
}
check 'nobody listens at the port of the sample' nobody_listens
