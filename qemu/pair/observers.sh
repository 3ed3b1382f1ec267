#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The observers of both machines agree. Each shows its own end of a connection. The values match
# those of the other end and those that the dissector of tools/wireshark decodes from a capture.
#
# soak: stock.rxe
# shellcheck disable=SC2154 # from lib.sh
cd "$(dirname "$0")" || exit
# shellcheck source=../pair/lib.sh
. ./lib.sh

declare -A client=() server=()

# same_ends: whether both ends show the same values.
same_ends() {
	local key bad=0
	same 'role of a' client "${client[role]}" || bad=1
	same 'role of b' server "${server[role]}" || bad=1
	same 'address of a' "${client[local]}" "${server[remote]}" || bad=1
	same 'address of b' "${client[remote]}" "${server[local]}" || bad=1
	for key in send_size receive_size remote_invalidation; do
		same "$key of a" "${client[local_$key]}" "${server[peer_$key]}" || bad=1
		same "$key of b" "${server[local_$key]}" "${client[peer_$key]}" || bad=1
	done
	for key in client_to_server_threshold server_to_client_threshold remote_invalidation; do
		same "$key" "${client[$key]}" "${server[$key]}" || bad=1
	done
	# The CM fills up its messages (RoCE): 56 octets of a REQ, 196 of a REP.
	padded "${client[sent]}" 56
	same 'the octets of a' "$padded" "${server[received]}" || bad=1
	padded "${server[sent]}" 196
	same 'the octets of b' "$padded" "${client[received]}" || bad=1
	return "$bad"
}

# same_wire: whether the dissector shows the values of both ends.
columns=(rpcrdma_cm.role rpcrdma_cm.octets rpcrdma_cm.status rpcrdma_cm.offset
	rpcrdma_cm.send_octets rpcrdma_cm.receive_octets rpcrdma_cm.r
	rpcrdma_cm.client_to_server_threshold rpcrdma_cm.server_to_client_threshold
	rpcrdma_cm.remote_invalidation)
same_wire() {
	local line row bad=0 seen=''
	for line in "${packets[@]}"; do
		IFS='|' read -ra row <<<"$line|"
		# The CM may retransmit a message, so every copy is checked.
		seen+=" ${row[0]}"
		case ${row[0]} in
		client)
			same 'octets of the REQ' "${server[received]}" "${row[1]}" || bad=1
			same 'the REQ' "$(offer_to server)" \
				"${row[2]} ${row[3]} ${row[4]} ${row[5]} $(is "${row[6]}")" || bad=1
			;;
		server)
			same 'octets of the REP' "${client[received]}" "${row[1]}" || bad=1
			same 'the REP' "$(offer_to client)" \
				"${row[2]} ${row[3]} ${row[4]} ${row[5]} $(is "${row[6]}")" || bad=1
			same 'negotiated' "${client[client_to_server_threshold]} \
${client[server_to_client_threshold]} ${client[remote_invalidation]}" \
				"${row[7]} ${row[8]} $(is "${row[9]}")" || bad=1
			;;
		esac
	done
	[[ $seen = *' client'*' server'* ]] || { echo "no REQ and REP, only:$seen"; bad=1; }
	return "$bad"
}
is() { if [[ $1 = @(True|1) ]]; then echo yes; else echo no; fi; }

# offer_to END: prints the offer that this end has received.
offer_to() {
	local -n end=$1
	echo "${end[peer_private_data]} ${end[peer_offset]} ${end[peer_send_size]}" \
		"${end[peer_receive_size]} ${end[peer_remote_invalidation]}"
}

# ends ORIGIN: reads both ends of the newest connection of that origin.
ends() {
	number a "$1" client && learn a "$id" client &&
		number b "$1" server && learn b "$id" server
}

# invalidations COUNT: whether that many messages of the capture are a Send with Invalidate.
invalidations() {
	dissect 'infiniband.bth.opcode in {22, 23}' infiniband.bth.opcode &&
		same 'invalidating messages on the wire' "$1" "${#packets[@]}"
}

boot_both
need 'observers: the module loads on both' both module_load
need 'observers: b serves NFS' on_b nfs_server

need 'NFS: the capture begins' start_capture
need 'NFS: a mounts' on_a nfs_mount 4.2 /mnt/nfs
need 'NFS: a writes with chunks' on_a eval \
	'head -c 1M /dev/urandom >/mnt/nfs/data && sync /mnt/nfs/data'
need 'NFS: both ends are shown' ends nfs
need 'NFS: the capture ends' stop_capture
check 'NFS: the ends agree' same_ends
check_equal 'NFS: a shows that the server invalidates' yes \
	"${client[remote_invalidation_in_use]}"
check_equal 'NFS: b shows that the server invalidates' yes \
	"${server[remote_invalidation_in_use]}"
need 'NFS: the capture is dissected' dissect rpcrdma_cm "${columns[@]}"
check 'NFS: the wire agrees with the ends' same_wire
check 'NFS: a unmounts' on_a umount /mnt/nfs

need 'module: the capture begins' start_capture
need 'module: b listens' on_b control - listen "$B4:2000 send=65536 recv=6144 inv=1"
need 'module: a connects' on_a control - connect "$B4:2000 send=32768 recv=8192 inv=1 null=0"
need 'module: a shows its connection' number a module client
need 'module: three calls succeed' on_a control - call "connection $id echo size=20000 count=3"
need 'module: both ends are shown' ends module
need 'module: the capture ends' stop_capture
check 'module: the ends agree' same_ends
check_equal 'module: b shows three invalidations' 3 "${server[sends_with_invalidate]}"
check_equal 'module: a shows three invalidations' 3 "${client[remote_invalidations_received]}"
check 'module: the wire shows three invalidations' invalidations 3
need 'module: the capture is dissected' dissect rpcrdma_cm "${columns[@]}"
check 'module: the wire agrees with the ends' same_wire
check 'module: both close all' both control - close all

# Two programs whose messages are not at the beginning of the private data.
net=/proc/self/ns/net
need 'programs: the capture begins' start_capture
need 'programs: one starts on each' both program 1
need 'programs: b listens' on_b tell 1 listen "$net" "$B4" 7
need 'programs: b is going to accept' on_b say 1 accept "00$(offer 16384 8192 1)"
need 'programs: a connects' on_a tell 1 connect "$net" "$B4" 7 "a5a5a5$(offer 2048 4096)"
need 'programs: b has accepted' on_b hear 1
need 'programs: both ends are shown' ends user
need 'programs: the capture ends' stop_capture
check 'programs: the ends agree' same_ends
need 'programs: the capture is dissected' dissect rpcrdma_cm "${columns[@]}"
check 'programs: the wire agrees with the ends' same_wire
check 'programs: both close' both tell 1 close
check 'observers: the module is removed on both' both module_unload
