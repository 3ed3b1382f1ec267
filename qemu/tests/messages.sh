#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# RPC-over-RDMA messages between two ends of the module: versions, inline thresholds, chunks,
# invalidation. nfs-peers.sh has the messages of the kernel's NFS, rare-messages.py and calls.py
# those of other peers.
#
# test: debug.siw
# soak: debug.rxe stock.rxe arm64.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

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

# speak CLIENT SERVER USED|REASON: whether these values of rpcvers= lead to that version, or to
# that reason in last_error.
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

# About: the inline thresholds.

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
	# XDR pads the last block, so that this message is four octets longer.
	counted chunked_calls=1 s:chunked_calls=1 local_invalidations=1 -- echoes $((fits + 1))
}

# thresholds VERSION SEND RECEIVE SEND RECEIVE: checks at_threshold with these sizes, first of the
# client, then of the server.
thresholds() {
	local what="version $1, client $2/$3, server $4/$5"
	need "$what: the ends connect" \
		connected "send=$4 recv=$5 rpcvers=$1" "send=$2 recv=$3 rpcvers=$1"
	check "$what: inline up to the threshold" at_threshold "$1"
	need "$what: the connection ends" close_both
}

versions() {
	local other='the responder speaks other versions of RPC-over-RDMA' least=0
	need 'two ends without rpcvers=' connected '' ''
	check 'without rpcvers= the client begins with version 1' \
		same_info "$client" rpc_version_used=1 sends=1 generation=1
	need 'two ends without rpcvers= end' close_both
	check 'two ends with rpcvers=1 use version 1' speak 1 1 1
	check 'two ends with rpcvers=2 use version 2' speak 2 2 2
	check 'two ends with rpcvers=auto use version 2' speak auto auto 2
	check 'a client with rpcvers=1 uses version 1' speak 1 auto 1
	check 'a client with rpcvers=2 uses version 2' speak 2 auto 2
	check 'a server with rpcvers=1 is called in version 1' speak auto 1 1
	check 'a server with rpcvers=2 is called in version 2' speak auto 2 2
	check 'a client with rpcvers=1 fails at a server with rpcvers=2' speak 1 2 "$other"
	check 'a client with rpcvers=2 fails at a server with rpcvers=1' speak 2 1 "$other"
	need 'a second connection to the server with rpcvers=1' \
		connect a "$B4:$((port - 3)) rpcvers=auto null=0"
	check 'a call on the second connection succeeds' first_call
	check 'the version was remembered: the call took one message' \
		same_info "$client" rpc_version_used=1 sends=1
	need 'the connection that needed one message ends' close_both
	if [[ $TRANSPORT = rxe ]]; then
		need 'a connection with null=1, the default' \
			connect a "$B4:$((port - 6)) rpcvers=auto"
		check 'null=1: a first call is made' wait_for 20 greeted
		check 'null=1: the first call is answered' \
			same_info "$client" rpc_null=SUCCESS rpc_version_used=2 sends=1
		# The clock of the debug kernel ticks every 4 ms, so that a call may take no time.
		[[ $KERNEL = debug ]] || least=1
		check 'null=1: the time of the first call is shown' \
			test "${info[rpc_null_us]}" -ge "$least"
		need 'null=1: the connection ends' close_both
	fi
}

inline_thresholds() {
	local version to back
	for version in 1 2; do
		thresholds "$version" 1024 1024 1024 1024
		thresholds "$version" 4096 1024 65536 4096
		thresholds "$version" 1024 262144 4096 4096
		thresholds "$version" 65536 65536 65536 65536
		[[ -n ${FULL:-} ]] || continue
		for to in 1024 4096 65536 262144; do
			for back in 1024 4096 65536 262144; do
				# The loop above has these two.
				[[ $to$back = @(10241024|6553665536) ]] ||
					thresholds "$version" "$to" "$back" "$back" "$to"
			done
		done
	done
}

two() {
	on_a bash -c "echo connection $client echo size=3000 count=20 >$DEBUGFS/call" &
	control a call "connection $client null" && wait $!
}

invalidation() {
	local r of changes
	# RFC 8797, section 4.1. A chunk for the call, and one for the reply.
	for r in 0 1 2 3; do
		of="client R=$((r >> 1)), server R=$((r & 1))"
		need "a connection of $of" \
			connected "inv=$((r & 1))" "inv=$((r >> 1)) timeout_ms=60000"
		if [[ $r = 3 ]]; then
			changes=(s:sends_with_invalidate=1 remote_invalidations_received=1
				local_invalidations=1)
		else
			changes=(local_invalidations=2)
		fi
		check "two chunks are invalidated, $of" \
			counted chunked_calls=1 s:chunked_calls=1 "${changes[@]}" -- echoes 10000
		check "an inline call invalidates nothing, $of" \
			counted inline_calls=1 s:inline_calls=1 -- echoes 100
		check "an unused Reply chunk is invalidated, $of" \
			counted chunked_calls=1 s:chunked_calls=1 \
			"${changes[@]/local_invalidations=?/local_invalidations=$((r < 3))}" \
			-- echoes 100 chunks=1
		[[ $r = 3 ]] || need "the connection of $of ends" close_both
	done
	# A chunk may take ten seconds, and emulated, siw takes seconds for a MiB.
	many=1048576
	[[ $TRANSPORT = rxe ]] || many=300001
	check 'ECHO of many blocks' echoes "$many"
	check 'ECHO of no octets' echoes 0
	check '20 calls of ECHO with chunks' echoes 5000 count=20
	check 'two writers call at a time' two
	check 'the connection is established after all calls' same_info "$server" state=established
	need 'the last connection with two chunks ends' close_both
}

without_private_data() {
	# The draft, section 5: without private data, the first message of version 2 raises the
	# thresholds on the same connection.
	need 'version 2 without private data' connected private=none 'private=none rpcvers=2'
	check 'version 2 raises the thresholds of the client' \
		same_info "$client" client_to_server_threshold=4096 \
		server_to_client_threshold=4096 generation=1 peer_send_size=4096
	check 'version 2 raises the thresholds of the server' \
		same_info "$server" client_to_server_threshold=4096 \
		server_to_client_threshold=4096 generation=1 peer_receive_size=4096
	check 'the thresholds of version 2 hold' at_threshold 2
	need 'version 1 without private data' connected private=none 'private=none rpcvers=1'
	check 'version 1 keeps the default thresholds' \
		same_info "$client" client_to_server_threshold=1024 \
		server_to_client_threshold=1024 peer_send_size=1024
	check 'the thresholds of version 1 hold' at_threshold 1
	need 'all connections without private data end' control - close all
}

# again: whether the client has connected a second time, without a reply.
again() {
	info "$client" && [[ ${info[generation]} = 2 && ${info[rpc_null]} = 'no reply in time' ]]
}

errors() {
	check 'a call on an unknown connection fails' \
		call_fails ENOENT 'no such connection' 'connection 999 null'
	need 'two ends without reverse=' connected '' ''
	check "a call of the server's end needs reverse=" \
		call_fails ENOTSUP 'no reverse=' "connection $server null"
	need 'a server that does not answer' control b listen "$B4:20099 answer=0"
	need 'a connection to a server that does not answer' \
		connect a "$B4:20099 rpcvers=1 timeout_ms=3000"
	check 'the first call to a server that does not answer ends' wait_for 20 greeted
	check 'the first call shows that no reply came' \
		same_info "$client" rpc_null='no reply in time' rpc_version_used=none
	# RFC 8166, section 3.3.3: there is one credit, until a reply says otherwise.
	check 'a second call without a credit fails' \
		call_fails EBUSY 'all credits' "connection $client null"
	check 'the connection without credits stays' same_info "$client" state=established sends=1
	need 'a connection with null=0 to a server that does not answer' \
		connect a "$B4:20099 rpcvers=1 timeout_ms=3000 null=0"
	check 'a call without a reply times out' \
		call_fails ETIMEDOUT 'no reply in time' "connection $client null"
	# The draft, section 5.2: with version 2, a call without a reply leads to a new connection.
	need 'a connection with rpcvers=auto to a server that does not answer' \
		connect a "$B4:20099 rpcvers=auto timeout_ms=3000"
	check 'no reply in version 2 leads to a second connection' wait_for 20 again
	check 'all connections without replies end' control - close all
}

# calling: makes calls in the background until the connection is lost. Sets $caller.
calling() {
	nsenter --net="/run/netns/$A" bash -c \
		"echo connection $client echo size=20000 count=1000000 >$DEBUGFS/call" 2>/dev/null &
	caller=$!
	wait_for 20 is_calling
}
is_calling() { info "$client" && ((info[chunked_calls] > 3)); }
caller_fails() { ! wait "$caller"; }
# is_waiting: whether the write is in the kernel. Before that, the shell would get the signal.
is_waiting() { grep -q vfs_write "/proc/$waiting/stack"; }
interrupted() { kill "$waiting" && ! wait "$waiting"; }

under_way() {
	local end waiting
	for end in client server; do
		need "a connection that the $end closes" connected inv=1 inv=1
		need "calls until the $end closes" calling
		check "the $end closes during a call" control - close "connection ${!end}"
		check "the call that the $end has interrupted fails" caller_fails
		check "both ends are gone after the $end has closed" wait_for 20 none_live
	done

	need 'a connection whose device is removed' connected inv=1 inv=1
	need 'calls until the device is removed' calling
	nsenter --net="/run/netns/$A" bash -c "echo connection $client null >$DEBUGFS/call" \
		2>/dev/null &
	waiting=$!
	need 'a call waits for its turn' wait_for 20 is_waiting
	check 'a call that waits for its turn can be interrupted' interrupted
	need 'the device is removed during a call' rdma link delete "$A_RDMA"
	check 'the call whose device was removed fails' caller_fails
	check 'both ends are gone after the device' wait_for 20 none_live
	need 'the device is added again' add_device a
}

need_pair
need_module
for checks in versions inline_thresholds invalidation without_private_data errors under_way; do
	group "$checks"
done
