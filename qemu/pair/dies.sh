#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A server's machine resets without disconnecting, boots again and offers other sizes. The
# module's connection and the kernel's mount are established again, and show the sizes that they
# negotiated this time.
#
# soak: stock.rxe
# shellcheck disable=SC2154 # from lib.sh
cd "$(dirname "$0")" || exit
# shellcheck source=../pair/lib.sh
. ./lib.sh

# loses ID: the next call reports the loss as docs/admin-guide.md says.
# shellcheck disable=SC2016 # for the guest
loses() {
	on_a eval "! put a call 'connection $1 null' && same errno ECONNRESET \"\$errno\"" &&
		on_a eval "info $1 &&
			[[ \${info[last_failure]} = *'transport retry counter exceeded' ]]"
}

boot_both
need 'reset: the module loads on both' both module_load
need 'reset: b listens' on_b control - listen "$B4:2000 send=65536 recv=2048"
need 'reset: b serves NFS' on_b nfs_server
need 'reset: a connects' on_a control - connect \
	"$B4:2000 send=32768 recv=32768 inv=1 reconnect=1 timeout_ms=2000 rpcvers=1 null=0"
need 'reset: a shows its connection' number a module client
client=$id
check 'reset: the module shows the sizes before the reset' on_a same_info "$client" generation=1 \
	client_to_server_threshold=2048 server_to_client_threshold=32768 remote_invalidation=no
check 'reset: a call succeeds before the reset' on_a control - call \
	"connection $client echo size=10000"
need 'reset: a mounts' on_a nfs_mount 4.2 /mnt/nfs
need 'reset: a observes the mount' number a nfs client
check 'reset: the mount shows the sizes before the reset' on_a same_info "$id" generation=1 \
	peer_send_size=4096 peer_receive_size=4096 client_to_server_threshold=4096

dies b
# Calls succeed until b stops.
check 'reset: a call reports the loss' wait_for 30 loses "$client"
check 'reset: the client is reconnecting' on_a eval \
	"is_state $client reconnecting || is_state $client connecting"
on_a later touch touch /mnt/nfs/touched

need 'reset: b boots again' up b
need 'reset: b loads the module again' on_b module_load
need 'reset: b has other sizes for NFS' on_b eval \
	'modprobe rpcrdma && echo 16384 >/proc/sys/sunrpc/svc_rdma/max_req_size'
need 'reset: b listens with other sizes' on_b control - listen \
	"$B4:2000 send=16384 recv=65536 inv=1"
need 'reset: b serves NFS again' on_b nfs_server
check 'reset: the module reconnects' on_a wait_for 60 has_reached "$client" 2
check 'reset: the module shows the new sizes' on_a same_info "$client" peer_receive_size=65536 \
	client_to_server_threshold=32768 server_to_client_threshold=16384 remote_invalidation=yes
check 'reset: a call succeeds after the reset' on_a control - call \
	"connection $client echo size=10000"
check "reset: the server's end shows the new sizes" on_b eval "newest server &&
	same_info \$id generation=1 \
	state=established client_to_server_threshold=32768 server_to_client_threshold=16384 \
	remote_invalidation=yes"
check 'reset: the mount reconnects' on_a wait_for 120 newest_has_reached nfs client 2
check 'reset: the mount shows the new sizes' on_a eval "newest_of nfs client && same_info \$id \
	peer_send_size=16384 peer_receive_size=16384 client_to_server_threshold=4096"
check "reset: the NFS server's end shows the new sizes" on_b eval "newest_of nfs server &&
	same_info \$id \
	local_send_size=16384 peer_receive_size=4096 client_to_server_threshold=4096"
check 'reset: the access that waited ends' on_a wait_for 60 over touch
check 'reset: the access that waited succeeds' on_a ended touch
check 'reset: both close all' both control - close all
check 'reset: a unmounts' on_a umount /mnt/nfs
check 'reset: the module is removed on both' both module_unload
