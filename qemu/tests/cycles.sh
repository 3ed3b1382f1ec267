#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Connections come and go, and leave no memory behind: no slab cache grows with the number
# of connections. (At the end of the debug guest, kmemleak looks for leaks.)
#
# test: debug.rxe
# soak: debug.siw
. ./lib.sh
. ./module.sh

CYCLES=300
[[ -z ${FULL:-} ]] || CYCLES=500

# Each cycle connects and closes both ends.
cycle() {
	ask cycles "/run/netns/$A" "$B4:1" "$1"
	same 'the cycles ended with' 0 "$answer"
}

need_pair
need_module
need 'a listener for the cycles' control b listen "$B4:1 recv=65536 inv=1"
need 'a few cycles, until all caches are warm' cycle 20
need 'none is left of them' wait_for 20 none_live
objects "$scratch/before"
need "$CYCLES cycles" cycle "$CYCLES"
check 'no connection is left of the cycles' wait_for 20 none_live
counter connects
check_equal 'as many attempts as cycles' $((CYCLES + 20)) "$count"
counter connects_failed
check_equal 'none of them failed' 0 "$count"
# The CM keeps its records of a connection for a while. Each processor also keeps some
# dozens of free objects, which are counted.
check 'no slab cache has grown with the cycles' wait_for 40 not_grown $((CYCLES / 2))
