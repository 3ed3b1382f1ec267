#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# RPC-over-RDMA messages, between two ends of the module and with the kernel's
# NFS server and client: versions, inline thresholds, chunks, invalidation. rpc-peer.py has
# the messages of other peers.
#
# test: debug.rxe
# soak: debug.siw arm64.rxe
. ./lib.sh
. ./module.sh

# Length in octets of the parts of a message (RFC 8166, section 4.7, and the
# draft's section 4.2; RFC 5531, section 9, with AUTH_NONE; an opaque's length).
header=([1]=28 [2]=32)
call_head=40 reply_head=24 count=4

# greeted: whether the client's first NULL call has ended.
greeted() { info "$client" && [[ ${info[rpc_null]} != pending ]]; }

# connected LISTEN CONNECT: listens and connects with these keys, and waits for the first
# call. That is made only when the server's end is established: siw loses earlier ones.
port=20100
connected() {
	((++port))
	control b listen "$B4:$port $1" && connect a "$B4:$port null=0 $2" && first_call
}

first_call() {
	outcome=SUCCESS
	put a call "connection $client null" || outcome=$(<"$DEBUGFS/last_error")
}

# echoes SIZE [KEY=VALUE]...: calls ECHO from the client, which compares the octets.
echoes() { control a call "connection $client echo size=$1 ${*:2}"; }

close_both() { control a close "connection $client" && wait_for 20 is_gone "$server"; }

# About: versions.

# speak CLIENT SERVER USED|REASON: whether rpcvers= of both leads to that version or reason.
speak() {
	local bad=0
	connected "rpcvers=$2" "rpcvers=$1" || return
	case $3 in
	[12])
		same outcome SUCCESS "$outcome" || bad=1
		same_info "$client" rpc_version_used="$3" || bad=1
		same_info "$server" rpc_version_used="$3" || bad=1
		echoes 100 || bad=1
		;;
	*)
		same outcome "call: $3" "$outcome" || bad=1
		same_info "$client" rpc_version_used=none state=established || bad=1
		same_info "$server" rpc_version_used=none || bad=1
		;;
	esac
	close_both && return "$bad"
}

# About: what goes inline.

# at_threshold VERSION: whether the longest ECHO whose call and reply fit into the
# thresholds is sent inline, and an ECHO with one octet more by chunks.
at_threshold() {
	local fits reply
	info "$client"
	fits=$((info[client_to_server_threshold] - header[$1] - call_head - count))
	reply=$((info[server_to_client_threshold] - header[$1] - reply_head - count))
	((fits < reply)) || fits=$reply
	counted inline_calls=2 s:inline_calls=2 -- echoes "$fits" count=2 || return
	counted inline_calls=1 s:inline_calls=1 -- echoes $((fits - 1)) || return
	# XDR fills up the last block, so that this is four octets longer.
	counted chunked_calls=1 s:chunked_calls=1 local_invalidations=1 -- echoes $((fits + 1))
}

# thresholds VERSION SEND RECEIVE SEND RECEIVE: checks at_threshold with these sizes of the
# client and of the server.
thresholds() {
	connected "send=$4 recv=$5 rpcvers=$1" "send=$2 recv=$3 rpcvers=$1" || return
	check "version $1, client $2/$3, server $4/$5: around the threshold" at_threshold "$1"
	close_both
}

# -----------------------------------------------------------------------------

need_pair
need_module

other='the responder speaks other versions of RPC-over-RDMA'
check 'both speak version 1' speak 1 1 1
check 'both speak version 2' speak 2 2 2
check 'both speak both' speak auto auto 2
check 'a client of version 1' speak 1 auto 1
check 'a client of version 2' speak 2 auto 2
check 'a server of version 1' speak auto 1 1
check 'a server of version 2' speak auto 2 2
check 'version 1 to version 2' speak 1 2 "$other"
check 'version 2 to version 1' speak 2 1 "$other"
need 'again, to the server of version 1' connect a "$B4:$((port - 3)) null=0"
check 'a call of version 1 to it' first_call
check 'it was remembered: one message' same_info "$client" rpc_version_used=1 sends=1
need 'the connection that needed one message ends' close_both
if [[ $TRANSPORT = rxe ]]; then
	need 'a connection as by default' connect a "$B4:$((port - 6))"
	check 'begins with a call' wait_for 20 greeted
	check 'which is answered' same_info "$client" rpc_null=SUCCESS rpc_version_used=2 sends=1
	check 'in some time' test "${info[rpc_null_us]}" -ge 0
	need 'the connection as by default ends' close_both
fi

for version in 1 2; do
	thresholds "$version" 1024 1024 1024 1024
	thresholds "$version" 4096 1024 65536 4096
	thresholds "$version" 1024 262144 4096 4096
	thresholds "$version" 65536 65536 65536 65536
	[[ -n ${FULL:-} ]] || continue
	for to in 1024 4096 65536 262144; do
		for back in 1024 4096 65536 262144; do
			# These two are above.
			[[ $to$back = @(10241024|6553665536) ]] ||
				thresholds "$version" "$to" "$back" "$back" "$to"
		done
	done
done

# RFC 8797, section 4.1. A chunk for the call, and one for the reply.
for r in 0 1 2 3; do
	of="client R=$((r >> 1)), server R=$((r & 1))"
	need "a connection, $of" connected "inv=$((r & 1))" "inv=$((r >> 1)) timeout_ms=60000"
	if [[ $r = 3 ]]; then
		changes=(s:sends_with_invalidate=1 remote_invalidations_received=1
			local_invalidations=1)
	else
		changes=(local_invalidations=2)
	fi
	check "chunks are invalidated, $of" \
		counted chunked_calls=1 s:chunked_calls=1 "${changes[@]}" -- echoes 10000
	check "nothing to invalidate, $of" counted inline_calls=1 s:inline_calls=1 -- echoes 100
	check "a chunk that is not needed, $of" counted chunked_calls=1 s:chunked_calls=1 \
		"${changes[@]/local_invalidations=?/local_invalidations=$((r < 3))}" \
		-- echoes 100 chunks=1
	[[ $r = 3 ]] || need "the connection ends, $of" close_both
done
check '1 MiB' echoes 1048576
check 'nothing' echoes 0
check 'again and again' echoes 5000 count=20
two() {
	on_a bash -c "echo connection $client echo size=3000 count=20 >$DEBUGFS/call" &
	control a call "connection $client null" && wait $!
}
check 'two at a time' two
check 'they are still there' same_info "$server" state=established

# The draft, section 5: without private data, version 2 brings larger thresholds,
# and the connection stays.
need 'version 2 without private data' connected private=none 'private=none rpcvers=2'
check 'raises the thresholds' same_info "$client" client_to_server_threshold=4096 \
	server_to_client_threshold=4096 generation=1 peer_send_size=4096
check 'on both sides' same_info "$server" client_to_server_threshold=4096 \
	server_to_client_threshold=4096 generation=1 peer_receive_size=4096
check 'the thresholds of version 2 hold' at_threshold 2
need 'version 1 without private data' connected private=none 'private=none rpcvers=1'
check 'does not' same_info "$client" client_to_server_threshold=1024 \
	server_to_client_threshold=1024 peer_send_size=1024
check 'the thresholds of version 1 hold' at_threshold 1

# About: errors.

failed() { # ERRNO WORDS LINE
	! put a call "$3" && [[ $errno = "$1" ]] && grep -qF -- "$2" "$DEBUGFS/last_error" && return
	echo "$errno, $(<"$DEBUGFS/last_error")"
	return 1
}
check 'no such connection' failed ENOENT 'no such connection' 'connection 999 null'
check "the server's end" failed ENOTSUP 'no reverse=' "connection $server null"
need 'a server that does not answer' control b listen "$B4:20099 answer=0"
need 'a connection to a server that does not answer' connect a "$B4:20099 rpcvers=1 timeout_ms=300"
check 'its first call is over' wait_for 20 greeted
check 'without an answer' same_info "$client" rpc_null='no reply in time' rpc_version_used=none
# RFC 8166, section 3.3.3: there is one credit, until a reply says otherwise.
check 'another must not be made' failed EBUSY 'all credits' "connection $client null"
check 'the connection lives on' same_info "$client" state=established sends=1
need 'a connection without a first call' connect a "$B4:20099 rpcvers=1 timeout_ms=300 null=0"
check 'no reply' failed ETIMEDOUT 'no reply in time' "connection $client null"
# The draft, section 5.2: with version 2, a call without a reply leads to a new connection.
need 'version 2 first' connect a "$B4:20099 timeout_ms=300"
again() {
	info "$client" && [[ ${info[generation]} = 2 && ${info[rpc_null]} = 'no reply in time' ]]
}
check 'is tried once' wait_for 20 again
check 'all connections without answers end' control - close all

# About: calls that are under way.

# calling: calls in the background until the connection is lost. Sets $caller.
calling() {
	nsenter --net="/run/netns/$A" bash -c \
		"echo connection $client echo size=20000 count=1000000 >$DEBUGFS/call" 2>/dev/null &
	caller=$!
	wait_for 20 is_calling
}
is_calling() { info "$client" && ((info[chunked_calls] > 3)); }
caller_fails() { ! wait "$caller"; }

for end in client server; do
	need "a connection that the $end closes" connected inv=1 inv=1
	need "calls until the $end closes" calling
	check "the $end closes it" control - close "connection ${!end}"
	check "the call fails that the $end has ended" caller_fails
	check "both ends go after the $end has closed" wait_for 20 none_live
done

need 'a connection whose device goes' connected inv=1 inv=1
need 'calls until the device goes' calling
nsenter --net="/run/netns/$A" bash -c "echo connection $client null >$DEBUGFS/call" 2>/dev/null &
waiting=$!
# Waits until the write is in the kernel: before that, the shell would get the signal.
is_waiting() { grep -q vfs_write "/proc/$waiting/stack"; }
need 'a call waits for its turn' wait_for 20 is_waiting
interrupted() { kill "$waiting" && ! wait "$waiting"; }
check 'a call that waits for its turn can be interrupted' interrupted
need 'the device goes while there are calls' rdma link delete "$A_RDMA"
check 'the call fails whose device is gone' caller_fails
check 'both ends go after the device' wait_for 20 none_live
need 'the device comes back' on_a rdma link add "$A_RDMA" type "$TRANSPORT" netdev "$A_DEV"
