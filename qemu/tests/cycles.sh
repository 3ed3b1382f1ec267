#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Connections come and go, and leave no memory behind: no slab cache grows with the number
# of connections. At the end of the debug guest, kmemleak also looks for leaks.
#
# test: debug.siw
# soak: debug.rxe
. ./lib/lib.sh
. ./lib/module.sh

CYCLES=300
[[ -z ${FULL:-} ]] || CYCLES=500

# cycle COUNT: connects and closes both ends, COUNT times.
cycle() {
	ask cycles "/run/netns/$A" "$B4:1" "$1"
	same 'the cycles ended with' 0 "$answer"
}

need_pair
need_module
need 'a listener for the cycles' control b listen "$B4:1 recv=65536 inv=1 max=1000"
need '20 cycles, which fill the caches' cycle 20
need 'no connection is left of the 20 cycles' wait_for 20 none_live
objects "$scratch/before"
need "$CYCLES cycles" cycle "$CYCLES"
check 'no connection is left of the cycles' wait_for 20 none_live
counter connects
check_equal 'connects counts each cycle' $((CYCLES + 20)) "$count"
counter connects_failed
check_equal 'no connect of the cycles failed' 0 "$count"
# The CM keeps its records of a connection for a while. Each processor also keeps some dozens
# of free objects, which slabinfo counts.
check 'no slab cache has grown with the cycles' wait_for 40 not_grown $((CYCLES / 2))
