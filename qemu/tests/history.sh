#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The history: each kind of event by a real cause, at both ends; the changes after a loss; the
# times; overwriting.
#
# test: stock.rxe
# soak: debug.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

# recorded NAME COLUMN=VALUE...: checks that such an event appears within 20 s.
recorded() { check "$1" wait_for 20 event "${@:2}"; }

# lasted TIME: whether LASTED_MS of the event is the time since that TIME of an earlier event. The
# module reads the clocks one after the other, and the processor of a guest may pause in between.
lasted() {
	local ms=${event[LASTED_MS]} between=$(((10#${event[TIME]/./} - 10#${1/./}) / 1000))
	[[ $ms =~ ^[0-9]+$ ]] && ((ms > 0 && between - 200 <= ms && ms <= between + 200)) && return
	echo "LASTED_MS is $ms, and $between ms are between the two events"
	return 1
}

# log_time WORD: sets $us to the time of that message in the kernel's log.
log_time() {
	us=$(dmesg | sed -nE "s/^\[ *([0-9]+)\.([0-9]{6})\].*$1\$/\1\2/p" | tail -n 1)
	[[ -n $us ]]
}

# between_messages: whether the event is between the two messages, by the log's clock.
between_messages() {
	local from
	log_time 'history: before' && from=$us && log_time 'history: after' || return
	((from < 10#${event[TIME]/./} && 10#${event[TIME]/./} < us)) ||
		{ echo "not between $from and $us: ${event[TIME]}"; return 1; }
}

# between_dates FROM: whether DATE of the event is between FROM and now.
between_dates() {
	local now
	now=$(date -u +%FT%T.%3NZ)
	[[ ! ${event[DATE]} < $1 && ! ${event[DATE]} > $now ]] ||
		{ echo "not between $1 and $now: ${event[DATE]}"; return 1; }
}

refused_by_module() { ! put a connect "$1\\n"; }
has_lines() { lines history && same lines "$1" "${#lines[@]}"; }

# The columns of an attempt that failed.
never=(GEN=1 LASTED_MS=- C2S=- S2C=- INV=-)

# About: attempts of the module.

attempts() {
	at_client=(ORIGIN=module ROLE=client)
	at_server=(ORIGIN=module ROLE=server)
	check 'a port without a listener: connect fails' refused_by_module "$B4:9"
	recorded 'a port without a listener: refused' \
		"${at_client[@]}" EVENT=refused REMOTE="$B4:9" "${never[@]}" \
		REASON='the peer rejected the connection: invalid service ID'
	check 'an address without a host: connect fails' \
		refused_by_module "${B4%.*}.99:2000 timeout_ms=1000"
	recorded 'an address without a host: failed' \
		"${at_client[@]}" EVENT=failed REMOTE="${B4%.*}.99:2000" "${never[@]}" \
		REASON='the address was not resolved in time'

	need 'a listener with max=1' control b listen "$B4:2000 max=1 private=none"
	since=$(date -u +%FT%T.%3NZ)
	echo 'history: before' >/dev/kmsg
	need 'a recorded connection' \
		connect a "$B4:2000 send=131072 recv=32768 inv=1 reconnect=1 null=0"
	echo 'history: after' >/dev/kmsg
	ends=("$client" "$server")
	ids=(ID="$client" ID="$server")
	recorded 'a recorded connection: established' \
		"${at_client[@]}" "${ids[0]}" EVENT=established REMOTE="$B4:2000" GEN=1 \
		LASTED_MS=- C2S=1024 S2C=1024 INV=no REASON=-
	client_began=${event[TIME]}
	check 'a recorded connection: TIME is that of the log' between_messages
	check 'a recorded connection: DATE is that of the day' between_dates "$since"
	recorded 'a recorded connection: established at the server' \
		"${at_server[@]}" "${ids[1]}" EVENT=established LOCAL="$B4:2000" GEN=1 \
		LASTED_MS=- C2S=1024 S2C=1024 INV=no REASON=-
	server_began=${event[TIME]}
	check 'a connection beyond the maximum: connect fails' refused_by_module "$B4:2000"
	recorded 'a connection beyond the maximum: refused at the client' \
		"${at_client[@]}" EVENT=refused REMOTE="$B4:2000"
	recorded 'a connection beyond the maximum: refused at the server, without an ID' \
		ID=- "${at_server[@]}" EVENT=refused \
		LOCAL="$B4:2000" GEN=- LASTED_MS=- C2S=- S2C=- INV=- \
		REASON='the listener has its maximum of connections'

	lines listeners
	need 'the listener with max=1 ends' control b close "listener ${lines[-1]%% *}"
	need 'a listener with other sizes' control b listen "$B4:2000 send=65536 recv=262144 inv=1"
	need 'the recorded server closes' control b close "connection ${ends[1]}"
	recorded 'the recorded server closes: closed at the server' \
		"${at_server[@]}" "${ids[1]}" EVENT=closed GEN=1 REASON=-
	check 'the recorded server closes: LASTED_MS of the server' lasted "$server_began"
	recorded 'the recorded server closes: lost at the client' \
		"${at_client[@]}" "${ids[0]}" EVENT=lost GEN=1 C2S=1024 S2C=1024 \
		INV=no REASON='disconnected by the peer'
	check 'the recorded server closes: LASTED_MS of the client' lasted "$client_began"
	recorded 'the recorded server closes: re-established with the changes' \
		"${at_client[@]}" "${ids[0]}" \
		EVENT=re-established GEN=2 LASTED_MS=- C2S='1024>131072' S2C='1024>32768' \
		INV='no>yes' REASON=-
	need 'the recorded client closes' control a close "connection ${ends[0]}"
	recorded 'the recorded client closes: closed at the client' \
		"${at_client[@]}" "${ids[0]}" EVENT=closed GEN=2 C2S=131072 S2C=32768 INV=yes
	check 'each recorded connection has its end' wait_for 10 consistent_history

	# Without private data, version 2 has thresholds of 4096 octets
	# (draft-cel-nfsv4-rpcrdma-version-two-01, section 2.3).
	need 'a listener without private data' control b listen "$B4:2001 private=none"
	need 'a recorded connection in version 2' \
		connect a "$B4:2001 rpcvers=2 private=none"
	need 'the recorded client in version 2 has called NULL' \
		wait_for 10 same_info "$client" rpc_null=SUCCESS
	need 'the recorded client in version 2 closes' control a close "connection $client"
	recorded 'the recorded client in version 2 closes: its thresholds' \
		"${at_client[@]}" ID="$client" EVENT=closed C2S=4096 S2C=4096
}

# About: a mount.

of_mount() {
	at_client=(ORIGIN=nfs ROLE=client REMOTE="$B4:20049")
	at_server=(ORIGIN=nfs ROLE=server LOCAL="$B4:20049")
	before=4096 after=4096
	if [[ -e /proc/sys/sunrpc/rdma_max_inline_write ]]; then
		set_sysctl rdma_max_inline_write 16384
		after='4096>8192'
	fi
	need 'a recorded mount' nfs_mount 4.2 /mnt/nfs
	echo text >/mnt/nfs/file
	recorded 'a recorded mount: established at the client' \
		"${at_client[@]}" EVENT=established GEN=1 C2S="$before" S2C=4096 INV=no
	id=${event[ID]}
	client_began=${event[TIME]}
	recorded 'a recorded mount: established at the server' \
		"${at_server[@]}" EVENT=established GEN=1 C2S="$before" S2C=4096 INV=no
	server_began=${event[TIME]}
	need 'the recorded NFS server stops' in_nfs_server rpc.nfsd 0
	recorded 'the recorded NFS server stops: closed at the server' \
		"${at_server[@]}" EVENT=closed GEN=1 REASON='disconnected by this end'
	check 'the recorded NFS server stops: LASTED_MS of the server' lasted "$server_began"
	recorded 'the recorded NFS server stops: lost at the client' \
		"${at_client[@]}" ID="$id" EVENT=lost GEN=1 C2S="$before" \
		REASON='disconnected by the peer'
	check 'the recorded NFS server stops: LASTED_MS of the client' lasted "$client_began"
	set_sysctl svc_rdma/max_req_size 8192
	need 'the recorded NFS server starts' in_nfs_server rpc.nfsd 4
	need 'the recorded NFS server starts: over RDMA' nfs_over_rdma
	check 'the recorded NFS server starts: the mount works' timeout 120 stat /mnt/nfs/file
	recorded 'the recorded NFS server starts: re-established with the changes' \
		"${at_client[@]}" EVENT=re-established GEN=2 C2S="$after" S2C=4096
	sed 's/^/# /' "$DEBUGFS/history"
	need 'the recorded mount ends' umount /mnt/nfs
	recorded 'the recorded mount ends: closed at the client' \
		"${at_client[@]}" EVENT=closed GEN=2 REASON='disconnected by this end'
	recorded 'the recorded mount ends: lost at the server' \
		"${at_server[@]}" EVENT=lost REASON='disconnected by the peer'
	on_a timeout -s KILL 10 mount.nfs "$B4:/" /mnt/nfs \
		-o proto=rdma,port=1,vers=4.1,soft,timeo=10,retrans=0,retry=0 >/dev/null 2>&1
	recorded 'a mount that fails: refused' ORIGIN=nfs ROLE=client REMOTE="$B4:1" EVENT=refused \
		"${never[@]:1}" REASON='the peer rejected the connection'
	check 'each connection of a recorded mount has its end' wait_for 10 consistent_history
}

# About: how many events are kept.

kept() {
	counter history_overwritten
	check_equal 'no event was overwritten' 0 "$count"
	need_reload history=4 history=4
	need 'history=4: a listener' control b listen "$B4:2000"
	need 'history=4: a listener of IPv6' control b listen "[$B6]:2000"
	need 'history=4: another peer connects' connect a "[$B6]:2000 null=0"
	need 'history=4: its connection is closed' control a close "connection $client"
	recorded 'history=4: its connection is lost at the server' ID="$server" EVENT=lost
	other=$server
	for n in 1 2 3; do
		need "history=4: connection $n" connect a "$B4:2000 null=0"
		need "history=4: connection $n is closed" control a close "connection $client"
		recorded "history=4: connection $n: lost at the server" ID="$server" EVENT=lost
	done
	check 'history=4: four events of clients, four and two of servers are shown' has_lines 11
	counter history_overwritten
	check_equal 'history=4: six overwritten events are counted' 6 "$count"
	check 'history=4: the latest event is shown' event ID="$client" EVENT=closed
	check_fails 'history=4: the first event is not shown' event ID=1
	check 'history=4: a peer overwrites no event of the other peer' \
		event ID="$other" ROLE=server EVENT=established
	check 'history=4: each connection has its end' wait_for 10 consistent_history
	need_reload history=0 history=0
	check 'history=0: connect fails' refused_by_module "$B4:9"
	check 'history=0: nothing is recorded' has_lines 1
	need_reload history=4294967295 history=4294967295
	check 'history=4294967295: connect fails' refused_by_module "$B4:9"
	recorded 'history=4294967295: refused' EVENT=refused
}

need_pair
need_nfs_server
need_module
check 'the history begins without an event' has_lines 1
group attempts
group of_mount
group kept
