#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In a guest whose kernel has series/observe, for scripts/tests/series: what a mount negotiated, by
# the kernel alone, over $TRANSPORT.
# sysfs shows the transports of the namespace of the guest.
A_IS_GUEST=1
cd "$(dirname "$0")/tests" || exit
. ./lib/lib.sh
. ./lib/module.sh

trace=/sys/kernel/tracing/instances/observed
tool=/tmp/rpcrdma-cm

begin_trace() {
	mkdir -p "$trace" || return
	at_end rmdir "$trace"
	local event
	for event in cm_connect cm_accept cm_event_handler; do
		echo 1 >"$trace/events/rdma_cma/$event/enable" || return
	done
}
# traced EVENT MESSAGE: whether an event has private data that begins so.
traced() {
	grep -qE " $1\\b.* private_data=$2" "$trace/trace" && return
	cat "$trace/trace"
	return 1
}
# has SEND RECEIVE: whether the only RDMA transport has these thresholds, in octets.
has() {
	local info wanted="inline_send=$1"$'\n'"inline_recv=$2"$'\n'
	info=$(cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/xprt_info)
	echo "$info"
	[[ $info = *"$wanted"* && $info = *credits_granted=[1-9]* ]]
}
# served: prints what nfsd shows.
served() { on_b python3 -sS programs/nfsd-transports.py; }
# serves RECEIVE SEND: whether the server has one connection with these thresholds.
serves() {
	local found
	found=$(served) || return
	echo "$found"
	[[ $found =~ ^[0-9]+\ $1\ $2\ [1-9][0-9]*\ [01]$ ]]
}
says() {
	"$tool" mounts >"$scratch/mounts"
	cat "$scratch/mounts"
	grep -qF "$1" "$scratch/mounts"
}

need_pair
need_nfs_server
need 'the tool has been built' cp ../../build/tool/debug/rpcrdma-cm "$tool"
need 'the trace events are enabled' begin_trace
check_equal 'nfsd shows no connection before a mount' '' "$(served 2>&1)"
need 'a mount with the usual sizes' nfs_mount 4.2 /mnt/observed
check 'cm_connect has the private data of the client' traced cm_connect "$(offer 4096 4096 1)"
check 'cm_accept has the private data of the server' traced cm_accept "$(offer 4096 4096)"
check 'the event of the request has the private data of the client' \
	traced cm_event_handler.*CONNECT_REQUEST "$(offer 4096 4096 1)"
check 'the event of the connection has the private data of the server' \
	traced cm_event_handler.*ESTABLISHED "$(offer 4096 4096)"
check 'xprt_info has the usual thresholds' has 4096 4096
check 'nfsd shows the usual thresholds' serves 4096 4096
check 'the tool says that the mount is fine' says '/mnt/observed: fine'
need 'the mount with the usual sizes ends' nfs_unmount /mnt/observed
set_sysctl rdma_max_inline_write 2048
set_sysctl rdma_max_inline_read 1024
need 'a mount with smaller sizes' nfs_mount 4.2 /mnt/observed
check 'cm_connect has the smaller sizes' traced cm_connect "$(offer 2048 1024 1)"
check 'xprt_info has the smaller thresholds' has 2048 1024
check 'nfsd shows the smaller thresholds' wait_for 10 serves 2048 1024
check 'the tool says that calls go by chunks' says 'calls over 2048 octets go by chunks'
check 'the tool says that replies go by chunks' says 'replies over 1024 octets go by chunks'
