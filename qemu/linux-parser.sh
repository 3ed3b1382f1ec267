#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# For scripts/tests/linux, in a guest: private data that is shorter than the message of RFC
# 8797, over soft-iWARP, which delivers it without padding. The module reports it as
# truncated. The kernel's NFS server and client do not check its length
# (svc_rdma_parse_connect_private, rpcrdma_update_cm_private) and read beyond its end, which
# KASAN reports.
cd "$(dirname "$0")/tests" || exit
TRANSPORT=siw
. ./lib/lib.sh
. ./lib/module.sh

# These two static functions, and the ones into which the compiler may have inlined them.
by_server='svc_rdma_parse_connect_private|handle_connect_req|svc_rdma_listen_handler'
by_client='rpcrdma_update_cm_private|rpcrdma_cm_event_handler'

# to_module HEX: whether both ends of the module report this private data correctly.
port=20100
to_module() {
	local found='rejected: *truncated*' length=$((${#1} / 2)) id
	[[ $1 = f6ab0e18* ]] || found=absent
	[[ $1 != none ]] || length=0
	((++port))
	control b listen "$B4:$port private=$1" && connect a "$B4:$port private=$1 null=0" || return
	for id in "$client" "$server"; do
		same_info "$id" state=established peer_length="$length" remote_invalidation=no \
			{client_to_server,server_to_client}_threshold=1024 || return
		# shellcheck disable=SC2053 # a pattern
		[[ ${info[peer_private_data]} = $found ]] ||
			same peer_private_data "$found" "${info[peer_private_data]}" || return
	done
	control - close all
}

reported() { dmesg | ../log-faults; }

# reads_on FUNCTIONS HEX COMMAND...: whether KASAN reports that FUNCTIONS, and nothing else,
# read beyond these octets when COMMAND sends them.
reads_on() {
	dmesg --clear
	"${@:3}" "$2" || return
	if ! wait_for 10 reported; then
		echo "Linux no longer reads beyond the private data $2: drop this test"
		return 1
	fi
	! reported | grep -vE "BUG: KASAN: slab-out-of-bounds in ($1)\+"
}

to_nfs_server() { control a connect "$B4:20049 private=$1 null=0" && control - close all; }

# to_nfs_client: sends the octets to the NFS client. Its mount hangs, because it gets no
# reply.
to_nfs_client() {
	local process
	((++port))
	control b listen "$B4:$port private=$1 answer=0" || return
	nsenter --net="/run/netns/$A" mount.nfs "$B4:/" "$scratch/mount" \
		-o "proto=rdma,port=$port,vers=4.2,soft,timeo=50,retrans=0,retry=0" &
	process=$!
	wait_for 20 newest server && wait_for 10 is_state "$id" established || return
	kill -KILL "$process"
	wait "$process"
	control - close all && wait_for 20 none_live
}

need_pair
need_module
need_nfs_server
mkdir "$scratch/mount"

dmesg --clear
# No octets; a part of the Format Identifier; all of it; a message without its last octet.
for hex in none f6 f6ab0e18 f6ab0e18010107; do
	check "the module reports $hex as absent or truncated" to_module "$hex"
done
check_fails 'KASAN reports no read by the module' reported

# Without private data, Linux reads uninitialized memory, which KASAN does not report. The
# server does not read the sizes.
for hex in f6 f6ab0e18 f6ab0e1801; do
	check "Linux as server reads beyond the end of $hex" \
		reads_on "$by_server" "$hex" to_nfs_server
done
for hex in f6 f6ab0e18 f6ab0e18010107; do
	check "Linux as client reads beyond the end of $hex" \
		reads_on "$by_client" "$hex" to_nfs_client
done
