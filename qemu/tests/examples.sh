#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples in the documentation of src/base and src/rdma, each as a KUnit test with a connection
# of its own.
#
# test: debug.rxe
. ./lib/lib.sh

runs() {
	local -a octets
	IFS=. read -ra octets <<<"$A4"
	echo 'examples: start' >/dev/kmsg
	on_a timeout 600 insmod "${MODULE%/*}/rpcrdma_cm_examples.ko" \
		address=$((octets[0] << 24 | octets[1] << 16 | octets[2] << 8 | octets[3]))
}

need_pair
need_neighbours
need 'KUnit runs the examples' runs
need 'the module of the examples is removed' timeout 60 rmmod rpcrdma_cm_examples
# A line for each example, and one for the suite.
while read -r name result; do
	check "$name" [ "$result" = ok ]
	[[ $name != rpcrdma_cm_examples ]] || ended=1
done < <(dmesg --notime | tac | sed '/^examples: start$/,$d' | tac |
	sed -nE 's/^ *(ok|not ok) [0-9]+ (rpcrdma_cm_examples|[a-z_]+_[0-9]+)$/\2 \1/p')
check 'the suite has ended' [ -n "${ended-}" ]
