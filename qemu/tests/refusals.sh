#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A device refuses to move queue pairs to the error state, so operations are not flushed.
# No task waits for ever, and memory that the device may still access is leaked.
# refuse_qp.c makes rxe refuse.
#
# On the debug kernel it passes, too, but kmemleak reports that memory:
#   qemu/run --kernel debug --no-kmemleak -- env KERNEL=stock qemu/tests/run refusals
#
# test: stock.rxe
. ./lib.sh
. ./module.sh

refuse_qp=${MODULE%/*}/qemu/refuse_qp.ko
refuses() { insmod "$refuse_qp" && at_end obeys; }
obeys() { [[ ! -d /sys/module/refuse_qp ]] || rmmod refuse_qp; }
has_refused() { (($(</sys/module/refuse_qp/parameters/refused) > 0)); }

# says TEXT: whether the module has logged TEXT since the last call.
says() {
	dmesg | grep -F "rpcrdma_cm: $1" >"$scratch/said" || { dmesg | tail; return 1; }
}

# in_time SECONDS COMMAND...: whether COMMAND succeeds within that time.
in_time() {
	local start
	now_ms
	start=$now
	"${@:2}" && within 0 "$(($1 * 1000))" "$start"
}

# pair_kept: makes a pair that is never deleted. With leaked objects, rxe warns when its
# devices are removed (its pools are not empty), and no other script may use the pair.
pair_kept() { pair "$TRANSPORT" && cleanups[0]=:; }

need_pair
need_module
need 'a listener while the device still obeys' control b listen "$B4:1"
need 'a connection at rest' connect a "$B4:1"
need 'the device refuses' refuses

# About: nothing is under way.
check 'both ends close' in_time 10 control - close all
check '... and are gone' wait_for 10 nothing_left
check 'it was refused' has_refused
check 'the log says so' says 'a device refuses to fail a queue pair'

need 'a listener while the device refuses' control b listen "$B4:1"
need 'a connection at rest again' connect a "$B4:1"
need 'a connection that calls' connect a "$B4:1"
check 'a call with chunks before the device goes' \
	control a call "connection $client echo size=70001 chunks=1"
check 'the device goes, although it refuses' in_time 20 rdma link delete "$B_RDMA"
check '... and its connections' wait_for 10 is_gone "$server"
need 'the device that refused is back' \
	on_b rdma link add "$B_RDMA" type "$TRANSPORT" netdev "$B_DEV"
need 'it is up' wait_for 10 is_up "$B_RDMA"

need 'a listener for the unloading' control b listen "$B4:2"
need 'a connection for the unloading' connect a "$B4:2"
check 'the module unloads, although the device refuses' in_time 20 rmmod rpcrdma_cm
check_equal 'nothing is left of the module that the device refused' '' "$(resources 2>&1)"
need 'the device obeys again' obeys

# About: an operation is under way, because the peer takes no message.
need 'a pair of its own' pair_kept
need 'the module again' insmod "$MODULE"
modprobe -a rdma_ucm
program 1
need 'a peer' tell 1 receives 0 0 7
need '... that listens' tell 1 listen "/run/netns/$B" "$B4" 2000
need 'the device refuses again' refuses
say 1 accept none
need 'a connection to it' control a connect "$B4:2000 null=0"
need '... is accepted' hear 1
need '... by the module' newest client
client=$id
call() {
	! put a call "connection $client echo size=70001 chunks=1\\n" &&
		same errno ECONNRESET "$errno"
}
check 'a call with chunks returns' in_time 15 call
check 'the log says why' says 'a device does not end an operation'
check '... and that memory is leaked' says 'a device keeps a memory region: leaking its memory'
check 'the connection with an operation under way is gone' wait_for 15 is_gone "$client"
check '... and its queue pair' says 'destroying a queue pair with an operation under way'
check 'nothing of the module is left' wait_for 10 nothing_left
program_end 1
check 'the module unloads with memory leaked' in_time 20 rmmod rpcrdma_cm
