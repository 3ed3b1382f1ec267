#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A device refuses to map the memory of a call: only the call fails. A device refuses to move queue
# pairs to the error state, so that operations are not flushed: no task waits for ever, and memory
# that the device may still access is leaked. A device refuses to destroy queue pairs, too: they are
# leaked with all that they use. refuse_qp.c makes rxe refuse.
#
# The script also passes on the debug kernel, where kmemleak reports that memory:
#   qemu/run --kernel debug --no-kmemleak -- env KERNEL=stock qemu/tests/run refusing-devices
#
# test: stock.rxe
. ./lib/lib.sh
. ./lib/module.sh

refuse_qp=${MODULE%/*}/qemu/modules/refuse_qp.ko
refuses() { insmod "$refuse_qp" "$@" && at_end obeys; }
obeys() { remove_module refuse_qp; }
has_refused() { (($(</sys/module/refuse_qp/parameters/refused) > 0)); }

# says TEXT: whether the module has logged TEXT.
says() {
	dmesg | grep -F "rpcrdma_cm: $1" >"$scratch/said" || { dmesg | tail; return 1; }
}

# references: prints how many references the device has that has refused.
references() { cat /sys/module/refuse_qp/parameters/references; }

# pair_kept: makes a pair that is never deleted and that no other script uses. rxe would warn if
# its devices were removed with leaked objects.
pair_kept() { pair "$TRANSPORT" && cleanups[0]=:; }

# About: memory cannot be mapped.

unmapped() {
	! put a call "$chunked\\n" && same errno EIO "$errno" &&
		same last_error 'call: the device cannot register the memory of a call' \
			"$(<"$DEBUGFS/last_error")"
}

mappings() {
	local chunked="connection $client echo size=70001 chunks=1"
	need 'the device refuses to map memory once' refuses mappings=1
	check 'a call whose memory is not mapped fails' unmapped
	check 'the connection of that call works' control a call "$chunked"
	check 'the connection of that call was not made again' is_generation "$client" 1
	need 'the device maps memory again' obeys
}

# About: nothing is under way.

at_rest() {
	need 'the device refuses' refuses
	check 'both ends close in time' in_time 10000 control - close all
	check 'both ends are gone' wait_for 10 nothing_left
	check 'the device has refused' has_refused
	check 'the log names the refusal' says 'a device refuses to fail a queue pair'

	need 'a listener while the device refuses' control b listen "$B4:1"
	need 'a second connection at rest' connect a "$B4:1"
	need 'a connection that calls' connect a "$B4:1"
	check 'a call with chunks before the device is removed' \
		control a call "connection $client echo size=70001 chunks=1"
	check 'the device is removed in time, although it refuses' \
		in_time 20000 rdma link delete "$B_RDMA"
	check 'the connections of the removed device are gone' wait_for 10 is_gone "$server"
	need 'the device that refused is added again' add_device b
	need 'the device that refused is up' wait_for 10 is_up "$B_RDMA"

	need 'a listener for the unloading' control b listen "$B4:2"
	need 'a connection for the unloading' connect a "$B4:2"
	check 'the module unloads in time, although the device refuses' \
		in_time 20000 rmmod rpcrdma_cm
	check 'nothing is left of the module that the device refused' \
		wait_for 30 has_objects "$before"
	need 'the device obeys again' obeys
}

# About: an operation is under way, because the peer has no Receive for the message.

to_peer() {
	say 1 accept none
	control a connect "$B4:2000 null=0" && hear 1
}

call() {
	! put a call "connection $client echo size=70001 chunks=1\\n" &&
		same errno ECONNRESET "$errno"
}

under_way() {
	local usual
	need 'the module loads before memory is leaked' insmod "$MODULE"
	program 1
	need 'a peer posts no Receives' tell 1 receives 0 0 7
	need 'the peer without Receives listens' tell 1 listen "/run/netns/$B" "$B4" 2000
	need 'the device refuses again' refuses
	need 'the module connects to the peer without Receives, and sends nothing' to_peer
	need 'the connection without messages closes' control - close all
	need 'the connection without messages is gone' wait_for 10 nothing_left
	usual=$(references)
	need 'the module connects to the peer without Receives' to_peer
	need 'the connection to the peer without Receives is shown' newest client
	client=$id
	check 'a call with chunks fails in time' in_time 15000 call
	check 'the log names the operation that does not end' \
		says 'a device does not end an operation'
	check 'the log says that memory is leaked' \
		says 'a device keeps a memory region: leaking its memory'
	check 'the connection with an operation under way is gone' wait_for 15 is_gone "$client"
	check 'the log says that its queue pair is destroyed' \
		says 'destroying a queue pair with an operation under way'
	check 'only the leaked memory is left' wait_for 10 nothing_left
	program_end 1
	check 'the module unloads with memory leaked' in_time 20000 rmmod rpcrdma_cm
	check_equal 'a device stays that has leaked memory' $((usual + 1)) "$(references)"
	need 'the device obeys after memory is leaked' obeys
}

# About: the device keeps queue pairs, and they go on receiving.

not_set_up() { ! put a connect "$B4:2001 null=0\\n" && same errno ENOTSUP "$errno"; }

# owned_by_device N: whether the device is the owner of N queue pairs by the resource tracker. The
# module enters the device's name for those that it leaks.
owned_by_device() {
	rdma resource show qp >"$scratch/known"
	same 'queue pairs of the device' "$1" "$(grep -c "comm \[$A_RDMA\]" "$scratch/known")" ||
		{ cat "$scratch/known"; return 1; }
}

kept() {
	need 'the module loads before queue pairs are kept' insmod "$MODULE"
	program 2
	need 'the peer of a kept queue pair listens' tell 2 listen "/run/netns/$B" "$B4" 2001
	say 2 accept none
	need 'the module connects to the peer of a kept queue pair' \
		control a connect "$B4:2001 null=0"
	need 'the peer of a kept queue pair accepts' hear 2
	need 'the device keeps queue pairs' refuses keep=1
	check 'a connection fails whose queue pair is not set up' not_set_up
	check 'the log says that the queue pair that is not set up is leaked' \
		says 'a device keeps a queue pair that could not be set up: leaking it'
	check 'everything closes in time, although queue pairs are kept' \
		in_time 20000 control - close all
	check 'the log says that the queue pair of the connection is leaked' \
		says 'a device refuses to destroy a queue pair: leaking all that it uses'
	check 'only leaked queue pairs are left' wait_for 10 nothing_left
	check 'the module unloads with queue pairs leaked' in_time 20000 rmmod rpcrdma_cm
	# rdma_cm owns the other one, which was not set up.
	check 'kept queue pairs are not those of the module' owned_by_device 1
	# The module is unloaded, so a handler of the completion would be freed code, which the
	# kernel's log would report. It would run within this second.
	check 'a kept queue pair gets a message' tell 2 send 00
	sleep 1
	program_end 2
}

need_pair
modprobe rdma_cm
before=$(object_counts)
need_module
need 'a listener while the device still obeys' control b listen "$B4:1"
need 'a connection at rest' connect a "$B4:1"
group mappings
group at_rest
# The other groups load the module. Group at_rest has unloaded it, if it ran.
module_unload
modprobe -a rdma_ucm
need 'a pair for leaked objects' pair_kept
group under_way
group kept
