#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The kernel's NFS server and client as peers. The module reads their offers, and negotiates the
# values of RFC 8797.
#
# test: stock.rxe
# soak: debug.rxe debug.siw arm64.rxe
. ./lib/lib.sh
. ./lib/module.sh

# same_linux ID ROLE ROOM SEND RECEIVE R KEY=VALUE...: whether the peer sent this offer as
# Linux does, at offset 0, and info has these values.
same_linux() {
	local bad=0 yes_no=(no yes)
	arrives "$(offer "$4" "$5" "$6")" "$3"
	octets "connection/$1/received"
	same received "$padded" "$octets" || bad=1
	same_info "$1" role="$2" state=established transport="$transport" \
		peer_private_data=present \
		peer_length=$((${#padded} / 2)) peer_offset=0 peer_version=1 peer_reserved=0x00 \
		peer_send_size="$4" peer_receive_size="$5" \
		peer_remote_invalidation="${yes_no[$6]}" "${@:7}" && return "$bad"
}

# About: Linux as server.

# linux_serves ADDRESS SIZE C2S S2C: the server offers one size in both directions, and no R.
linux_serves() {
	local bad=0
	control a connect "$1:20049 send=8192 recv=2048 inv=1" && newest client || return
	same_linux "$id" client "$reply_room" "$2" "$2" 0 remote_invalidation=no \
		client_to_server_threshold="$3" server_to_client_threshold="$4" || bad=1
	control a close "connection $id" && return "$bad"
}

# About: Linux as client.

# linux_mounts PROTOCOL ADDRESS SEND RECEIVE C2S S2C: the client negotiates the same values
# as the module. The mount hangs, because the module does not reply.
linux_mounts() {
	local process bad=0 before
	counter messages_received && before=$count
	nsenter --net="/run/netns/$A" mount.nfs "$2:/" "$scratch/mount" \
		-o "proto=$1,port=2000,vers=4.2,soft,timeo=50,retrans=0,retry=0" &
	process=$!
	if wait_for 20 newest server && wait_for 10 is_state "$id" established; then
		same_linux "$id" server "$request_room" "$3" "$4" 1 remote_invalidation=yes \
			client_to_server_threshold="$5" server_to_client_threshold="$6" || bad=1
		wait_for 10 received_since "$before" || bad=1
		tail -n1 "$traces/trace" | grep "neg send/recv=$5/$6," ||
			{ echo "not $5/$6:"; cat "$traces/trace"; bad=1; }
	else
		bad=1
	fi
	kill -KILL "$process"
	wait "$process"
	wait_for 20 none_live && return "$bad"
}

# called CONNECT: connects and waits for the first call. Sets $id. The call is made only
# when the server's end is established: siw loses earlier ones.
called() {
	control a connect "$1 null=0" && newest client && info "$id" &&
		wait_for 10 is_served "${info[local]}" && control a call "connection $id null"
}
is_served() { grep -Eq " nfs +server +established .* ${1//./\\.} " "$DEBUGFS/connections"; }

# is_asked_again VERSION: whether the report has that version of NFS, in place of one that the
# server refused, and the server answered NULL of it.
is_asked_again() {
	grep -qx 'rpc_version_1: SUCCESS' "$DEBUGFS/probe" &&
		grep -qx "program_version: $1" "$DEBUGFS/probe" &&
		grep -qx 'sends: 2' "$DEBUGFS/probe" && return
	cat "$DEBUGFS/probe"
	return 1
}

# mounts_and_is_called ADDRESS: mounts by NFS 4.1. Whether the client answers a call of the server's
# end meanwhile. The client can do that before its first COMPOUND (RFC 8167, section 6). The delay
# leaves time for the call before the mount fails.
mounts_and_is_called() {
	local process bad=0 name
	echo >"$traces/trace"
	netem a delay 800ms && netem b delay 400ms || return
	nsenter --net="/run/netns/$A" mount.nfs "$1:/" "$scratch/mount" \
		-o "proto=rdma,port=2002,vers=4.1,soft,timeo=50,retrans=0,retry=0" &
	process=$!
	wait_for 20 grep -q xprtrdma_cb_setup "$traces/trace" && newest server &&
		control b call "connection $id null program=1073741824 version=1" &&
		same_info "$id" reverse_inline_calls=1 reverse_credits_granted=16 bad_headers=0 \
			unexpected_messages=0 rpc_version_used=1 || bad=1
	for name in call reply; do
		same "cb_$name" 1 "$(grep -c "xprtrdma_cb_$name" "$traces/trace")" || bad=1
	done
	wait "$process"
	netem a && netem b && wait_for 20 none_live && return "$bad"
}

# called_back ADDRESS: whether the client answers a call. A queue pair sends one message at a time,
# so the call may wait behind the answer that makes the mount fail. Then it is made again.
called_back() {
	local attempt name
	for name in setup call reply; do
		echo 1 >"$traces/events/rpcrdma/xprtrdma_cb_$name/enable" || return
	done
	for attempt in {1..5}; do
		! mounts_and_is_called "$1" || return 0
		! grep -q xprtrdma_cb_call "$traces/trace" || return 1
		echo "attempt $attempt: the call came too late"
	done
	return 1
}

received_since() { counter messages_received && ((count > $1)); }

# About: calls to the server. It speaks version 1 only; "auto" begins with version 2.

calls() {
	local unasked='uses RDMA Send with Invalidate, although not both sides support'
	unasked+=' remote invalidation (RFC 8797, section 4.1)'
	need 'a connection to the NFS server without rpcvers=' called "$B4:20049"
	check 'without rpcvers= the NFS server is called in version 1 only' \
		same_info "$id" sends=1 generation=1 rpc_version_used=1
	need 'a connection to the NFS server' called "$B4:20049 inv=1 rpcvers=auto"
	check 'rpcvers=auto succeeds by a second message' \
		same_info "$id" sends=2 inline_calls=2 generation=1 \
			rpc_version_used=1 credits_granted="$max_requests" bad_headers=0
	check 'a program other than NFS gets PROG_UNAVAIL' \
		call_fails ENOTSUP PROG_UNAVAIL "connection $id echo"
	check 'NULL of an unknown version gets PROG_MISMATCH' \
		call_fails ENOTSUP PROG_MISMATCH "connection $id null version=77"
	check 'NULL with a Reply chunk succeeds' control a call "connection $id null chunks=1"
	check 'the NFS server accepts 64 NULL calls under way' control a call \
		"connection $id null count=1000 jobs=64"
	check 'each of the 1000 NULL calls was answered' grep -qx 'replies: 1000' "$DEBUGFS/call"
	check 'the NULL calls were made on one connection' \
		same_info "$id" generation=1 unexpected_messages=0
	# The server only looks at the client's R.
	check 'the NFS server invalidates the Reply chunk' \
		same_info "$id" remote_invalidations_received=1 local_invalidations=0 \
		chunked_calls=1 deviation="$unasked"
	need 'another connection to the NFS server' called "$B4:20049 rpcvers=auto"
	check 'the second connection begins with version 1' \
		same_info "$id" sends=1 rpc_version_used=1
	check 'all connections to the NFS server end' control - close all
}

probes() {
	local line report time
	need 'a probe of a port without a listener' control a probe "$B4:4"
	check 'the probe shows that nothing is reachable' grep -Eqx \
		"reachable: no: the peer('s host refused| rejected) the connection.*" \
		"$DEBUGFS/probe"
	# A probe calls at once. siw loses a call that arrives before the server has accepted.
	[[ $TRANSPORT = rxe ]] || { skip 'probes of the NFS server' 'siw loses calls'; return; }
	need 'a probe of the NFS server without rpcvers=' control a probe "$B4:20049"
	check_fails 'without rpcvers= a probe does not ask in version 2' \
		grep rpc_version_2 "$DEBUGFS/probe"
	check 'without rpcvers= a probe sends one message' grep -qx 'sends: 1' "$DEBUGFS/probe"
	check 'a probe of a version that the server has is answered at once' \
		grep -qx 'program_versions: unknown' "$DEBUGFS/probe"
	need 'a probe of the NFS server with rpcvers=2' control a probe "$B4:20049 rpcvers=2"
	check_equal 'a probe with rpcvers=2 asks in version 2 only' \
		"reachable: yes rpc_version_2: $other_versions" \
		"$(head -n 2 "$DEBUGFS/probe" | paste -sd ' ')"
	need 'a probe of an unknown version of NFS' control a probe "$B4:20049 version=77"
	check 'a probe of an unknown version of NFS asks again, in one that the server has' \
		is_asked_again 4
	need 'a probe of an unknown program' control a probe "$B4:20049 program=100005 version=3"
	check 'a probe of an unknown program gets PROG_UNAVAIL' \
		grep -q '^rpc_version_1: .*PROG_UNAVAIL' "$DEBUGFS/probe"
	need 'a probe of the NFS server' control a probe "$B4:20049 rpcvers=auto"
	mapfile -t report <"$DEBUGFS/probe"
	check_equal 'the NFS server is reachable' 'reachable: yes' "${report[0]}"
	check_equal 'the NFS server speaks version 1' 'rpc_version_1: SUCCESS' "${report[1]}"
	check_equal 'the NFS server does not speak version 2' \
		"rpc_version_2: $other_versions" "${report[2]}"
	for line in 'peer_private_data: present' 'client_to_server_threshold: 4096' \
		'rpc_version_used: 1' "credits_granted: $max_requests"; do
		check "the probe says $line" grep -qxF "$line" "$DEBUGFS/probe"
	done
	# The clock of the debug kernel ticks every 4 ms. A reply may arrive within one tick.
	time='[1-9][0-9]*'
	[[ $KERNEL != debug ]] || time+='|0'
	check 'the probe shows the time of NULL' grep -qxE "rpc_null_us: ($time)" "$DEBUGFS/probe"
}

server_offers() {
	check 'the offer of the NFS server' linux_serves "$B4" 4096 4096 2048
	check 'the offer of the NFS server over IPv6' linux_serves "[$B6]" 4096 4096 2048
	check 'the offer of the NFS server with another max_req_size' \
		with svc_rdma/max_req_size 16384 linux_serves "$B4" 16384 8192 2048
}

client_offers() {
	need 'the module listens for an NFS client' \
		control b listen "$B4:2000 send=2048 recv=65536 inv=1 answer=0"
	need 'the module listens for an NFS client over IPv6' \
		control b listen "[$B6]:2000 send=1024 recv=1024 inv=1 answer=0"
	echo 1 >"$traces/events/rpcrdma/xprtrdma_inline_thresh/enable"
	check 'the offer of the NFS client' linux_mounts rdma "$B4" 4096 4096 4096 2048
	check 'the offer of the NFS client over IPv6' linux_mounts rdma6 "[$B6]" 4096 4096 1024 1024
	if [[ -e /proc/sys/sunrpc/rdma_max_inline_write ]]; then
		check 'the offer of the NFS client with other inline sizes' \
			with rdma_max_inline_write 16384 with rdma_max_inline_read 1024 \
			linux_mounts rdma "$B4" 16384 1024 16384 1024
	fi
}

mounting() {
	on_a timeout -s KILL 60 mount.nfs "$B4:/" "$scratch/mount" \
		-o "proto=rdma,port=2001,vers=4.2,soft,timeo=50,retrans=0,retry=0" 2>&1
}

# The module serves only NULL of NFS.
client_answers() {
	local answer before
	need 'the module listens and answers an NFS client' control b listen "$B4:2001 inv=1"
	counter messages_received && before=$count
	answer=$(mounting)
	check_equal 'a mount from the module fails' 32 $?
	# mount.nfs has no text of its own for the errno that PROC_UNAVAIL becomes.
	check_equal 'a mount from the module fails by PROC_UNAVAIL' \
		"mount.nfs: mount system call failed for $scratch/mount" "$answer"
	check 'both NULL and EXCHANGE_ID have arrived' received_since $((before + 1))
	check 'nothing is left of the NFS client' wait_for 20 none_live
}

client_called() {
	need 'the module listens and can call an NFS client' \
		control b listen "$B4:2002 reverse=16 bind=0"
	check 'the NFS client answers CB_NULL' called_back "$B4"
}

need_pair
need_neighbours
need 'both hosts of the pair reach each other over IPv6' on_a ping -c1 -W5 "$B6"
need_module
need_nfs_server
other_versions='the responder speaks other versions of RPC-over-RDMA'
max_requests=$(</proc/sys/sunrpc/svc_rdma/max_requests)
mkdir "$scratch/mount"
traces=/sys/kernel/tracing/instances/nfs-peers
mkdir "$traces"
at_end rmdir "$traces"
group calls
group probes
group server_offers
group client_offers
group client_answers
group client_called
