#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# qemu/practice: each of its faults can be prepared, and rpcrdma-cm then prints cause and remedy.
# scripts/tool and scripts/conformance build what it needs.
#
# soak: stock.rxe
. ./lib/lib.sh

# finds N COMMAND WORDS...: whether COMMAND prints all of these words while fault N is prepared.
finds() {
	local said words missing=''
	said=$(../practice "$1" "$2" 2>&1)
	for words in "${@:3}"; do
		[[ $said = *"$words"* ]] || missing+="not printed: $words"$'\n'
	done
	[[ -n $missing ]] || return 0
	printf '%s%s\n' "$missing" "$said"
	return 1
}

# until_said WORDS COMMAND: prints a command line that repeats COMMAND until it prints WORDS.
until_said() {
	echo "for n in {1..40}; do
			$2 >/tmp/said 2>&1
			grep -q '$1' /tmp/said && break
			sleep 0.3
		done
		cat /tmp/said"
}

# shellcheck disable=SC2016 # for the shell in qemu/practice
server='rpcrdma-cm check $SERVER'
mounts='rpcrdma-cm mounts'
check 'practice 1: an MTU of 1500' \
	finds 1 "$server" 'degraded mtu: ' ' mtu 9000'
check 'practice 2: a firewall' \
	finds 2 "$server" 'failed   port: ' 'no answer in time' 'let UDP port 4791 (RoCE) through'
check 'practice 3: a server without private data' \
	finds 3 "$mounts" 'the server sends no RFC 8797 private data' 'ask the vendor'
check 'practice 4: a client that is older than the module' \
	finds 4 "$mounts" 'older than the module' 'unmount and mount while the module is loaded'
check 'practice 5: one credit' \
	finds 5 "$(until_said 'the server grants' "$mounts")" 'the server grants 1 credit,' \
	'/proc/sys/sunrpc/svc_rdma/max_requests' 'or ask its vendor'
check 'practice 6: a wrong port' \
	finds 6 "$server" 'failed   port: ' "echo 'rdma 20049' > /proc/fs/nfsd/portlist"
check 'practice 7: wrong sysctls' \
	finds 7 "$mounts" "this client's rdma_max_inline_write is 1024" \
	'echo 4096 > /proc/sys/sunrpc/rdma_max_inline_write'
check 'practice 8: a server that was started again with smaller sizes' \
	finds 8 "$mounts; rpcrdma-cm history" "the server's Receive Size is 4096" \
	'echo 16384 > /proc/sys/sunrpc/svc_rdma/max_req_size' '16384 -> 4096'
check 'practice 9: rpcbind without RDMA' \
	finds 9 "$server" 'names no port for RDMA' 'port=20049'
check 'practice 10: TCP in place of RDMA' \
	finds 10 "$mounts" 'not RDMA: this mount fell back to TCP' ': umount /mnt/data /mnt/old' \
	'proto=rdma,port=20049,vers=4.2 10.'
check 'practice 11: the module is not loaded' \
	finds 11 "$mounts; modprobe rpcrdma_cm; $mounts" 'modprobe rpcrdma_cm, then' \
	'older than the module: this client sends 4096' 'expects 4096, all that it offers'
check 'practice 12: a link that loses packets' \
	finds 12 "$server" 'degraded path: ' 'were lost' 'tc -s qdisc' 'the ports of the switch'
