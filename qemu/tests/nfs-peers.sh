#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The other end is Linux: the kernel's NFS server and its NFS client. Both say
# what they offer; what the module makes of it is what RFC 8797 says.
#
# kernels: debug stock
# transports: rxe siw
. ./lib.sh
. ./module.sh

# same_linux ID ROLE ROOM SEND RECEIVE R KEY=VALUE...: whether a peer that offers
# this has said it as Linux does, at offset 0, and what else the info holds.
same_linux() {
	local bad=0 yes_no=(no yes)
	message "$4" "$5" "$6"
	arrives "$message" "$3"
	octets "connection/$1/received"
	same received "$padded" "$octets" || bad=1
	same_info "$1" role="$2" state=established transport="$transport" \
		peer_private_data=present \
		peer_length=$((${#padded} / 2)) peer_offset=0 peer_version=1 peer_reserved=0x00 \
		peer_send_size="$4" peer_receive_size="$5" \
		peer_remote_invalidation="${yes_no[$6]}" "${@:7}" && return "$bad"
}

# with FILE VALUE COMMAND...: with a sysctl of sunrpc set for that time.
with() {
	local file=/proc/sys/sunrpc/$1 before status=0
	before=$(<"$file") && echo "$2" >"$file" || return
	"${@:3}" || status=$?
	echo "$before" >"$file" && return "$status"
}

# About: Linux as server.

# linux_serves ADDRESS SIZE C2S S2C: it offers one size in both directions, no R.
linux_serves() {
	local bad=0
	control a connect "$1:20049 send=8192 recv=2048 inv=1" && newest client || return
	same_linux "$id" client "$reply_room" "$2" "$2" 0 remote_invalidation=no \
		client_to_server_threshold="$3" server_to_client_threshold="$4" || bad=1
	control a close "connection $id" && return "$bad"
}

# About: Linux as client.

# linux_mounts PROTOCOL ADDRESS SEND RECEIVE C2S S2C: it takes the same for negotiated as
# the module does. The mount waits for an answer that the module does not give.
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

received_since() { counter messages_received && ((count > $1)); }

# -----------------------------------------------------------------------------

need 'a pair' pair
need 'they reach each other' on_a ping -c1 -W5 "$B4"
need 'over IPv6 too' on_a ping -c1 -W5 "$B6"
need 'the module loads' module_load

need 'an NFS server' nfs_server
check 'what it offers' linux_serves "$B4" 4096 4096 2048
check 'what it offers over IPv6' linux_serves "[$B6]" 4096 4096 2048
check 'what it offers with another max_req_size' \
	with svc_rdma/max_req_size 16384 linux_serves "$B4" 16384 8192 2048

need 'listen for an NFS client' control b listen "$B4:2000 send=2048 recv=65536 inv=1"
need 'listen over IPv6' control b listen "[$B6]:2000 send=1024 recv=1024 inv=1"
mkdir "$scratch/mount"
traces=/sys/kernel/tracing/instances/nfs-peers
mkdir "$traces"
at_end rmdir "$traces"
echo 1 >"$traces/events/rpcrdma/xprtrdma_inline_thresh/enable"
check 'what the client offers' linux_mounts rdma "$B4" 4096 4096 4096 2048
check 'what it offers over IPv6' linux_mounts rdma6 "[$B6]" 4096 4096 1024 1024
if [[ -e /proc/sys/sunrpc/rdma_max_inline_write ]]; then
	check 'what it offers with other inline sizes' \
		with rdma_max_inline_write 16384 with rdma_max_inline_read 1024 \
		linux_mounts rdma "$B4" 16384 1024 16384 1024
fi
