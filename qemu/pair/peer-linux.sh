#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# One column of the table of docs/peers.md: Linux in the guest b, without the module, as
# server and as client. scripts/peers calls this.
# shellcheck disable=SC2016,SC2154 # for the guests; from lib.sh
cd "$(dirname "$0")" || exit
# shellcheck source=../pair/lib.sh
. ./lib.sh
# shellcheck source=../pair/cells.sh
. ./cells.sh

# in_b FILE VALUE: sets a sysctl of sunrpc in b.
in_b() { on_b eval "echo $2 >/proc/sys/sunrpc/$1"; }

# Debian's 6.18.15 lacks fixes that 6.1 and 6.12 have (SECURITY.md).
fragile='' longest_reply=1000000
[[ $KERNEL_B != 6.18 ]] || fragile=+ longest_reply=4096

# As server. ---------------------------------------------------------------

linux_as_server() {
	need 'Linux: b serves NFS' on_b nfs_server
	need 'Linux: b has a long file' on_b in_nfs_server sh -c \
		'head -c 1M /dev/urandom >/export/long'
	as_server long "4096$fragile" "$longest_reply"
	need "Linux: b's server gets larger sizes" in_b svc_rdma/max_req_size 65536
	cell server_sends_large on_a sent_by "$B4:20049"
	cell server_accepts_large on_a boundary "65536$fragile" 68 70000 4 accepts "$B4" 20049
	need "Linux: b's server gets its usual sizes again" in_b svc_rdma/max_req_size 4096

	need "Linux: the capture of b's server begins" start_capture
	need 'Linux: a mounts from b' on_a nfs_mount 4.1 /mnt/nfs
	need 'Linux: a writes 1 MiB' on_a eval \
		'head -c 1M /dev/urandom >/tmp/data && cp /tmp/data /mnt/nfs/data'
	check 'Linux: a reads the data that it wrote' on_a eval \
		'echo 3 >/proc/sys/vm/drop_caches; cmp /tmp/data /mnt/nfs/data'
	need 'Linux: a makes many calls with chunks' on_a sweep /mnt/nfs/sweep 4000 4400
	cell server_watched on_a watched nfs client
	need "Linux: b's server grants delegations" on_b lockd_end_grace
	need 'Linux: a opens a file with a delegation' on_a opens /mnt/nfs/long
	on_b later writes in_nfs_server sh -c 'echo more >>/export/long'
	cell server_reverse on_a called_back
	check 'Linux: b has written to that file' \
		on_b eval 'wait_for 30 over writes && ended writes'
	check 'Linux: a unmounts' on_a umount /mnt/nfs
	need "Linux: the capture of b's server ends" keep_capture server
	check "Linux: the wire shows the same private data of b's server" \
		wire_sends server "${cells[server_sends]}"
}

# As client. ---------------------------------------------------------------

port=3000

# offered KEY PRIVATE_DATA: writes the cell KEY: the thresholds that b uses with a server that sends
# this private data.
offered() {
	((++port))
	need "$1: a listens" on_a control - listen "$A4:$port private=$2"
	cell "$1" on_b mounts "$A4" "$port"
}

# serves OFFER: accepts the next mount of b with that private data, by a program. Sets $sent to the
# private data of b.
serves() {
	((++port))
	on_a serve "$port" && on_b later mount mounts "$A4" "$port" || return
	sent=$(on_a tell 1 accept "$1" && on_a eval 'octets=$said; show_octets')
}
served() {
	on_a tell 1 close
	on_b eval 'pkill -KILL -x mount.nfs; wait_for 30 over mount'
}

# serves_long KEY LENGTH: writes the cell KEY: whether b accepts an inline reply of that length.
serves_long() {
	need "$1: b mounts" serves "$(offer 262144 262144)"
	need "$1: b calls" on_a first_call
	cell "$1" on_a takes "$2"
	served
}

# longest_sends: sets $from_a and $from_b to the lengths of the longest messages of the capture, in
# octets. The length of UDP includes 8 octets of UDP, 12 of the Base Transport Header, 4 of the key
# to invalidate, the padding, and 4 of the ICRC.
longest_sends() {
	dissect 'infiniband.bth.opcode < 3 or infiniband.bth.opcode == 4 or
		infiniband.bth.opcode == 22 or infiniband.bth.opcode == 23' \
		ip.src infiniband.bth.destqp infiniband.bth.opcode udp.length \
		infiniband.bth.padcnt || return
	read -r from_a from_b < <(printf '%s\n' "${packets[@]}" | awk -F '|' -v a="$A4" '
		{
			opcode = $3 + 0
			length_ = $4 - 24 - $5 - (opcode >= 22 ? 4 : 0)
			if (opcode == 0)
				sum[$2] = 0
			sum[$2] = opcode >= 4 && opcode != 22 ? length_ : sum[$2] + length_
			if (opcode != 0 && opcode != 1 && sum[$2] > most[$1])
				most[$1] = sum[$2]
			from[$1]
		}
		END {
			for (i in from)
				if (i == a) x = most[i]; else y = most[i]
			print x + 0, y + 0
		}')
	echo "$from_a from a, $from_b from b"
}

linux_as_client() {
	local sent='' from_a='' from_b=''
	need 'Linux: b traces what it negotiates' on_b trace_thresholds
	need 'Linux: b mounts from a program' serves "$(offer 4096 4096)"
	put_cell client_sends "$sent"
	cell client_first on_a first_call
	need 'Linux: b makes the next call' on_a answers 52
	cell client_reverse on_a calls_back
	served
	if on_b test -e /proc/sys/sunrpc/rdma_max_inline_write >/dev/null; then
		need 'Linux: b writes another size inline' in_b rdma_max_inline_write 16384
		need 'Linux: b reads another size inline' in_b rdma_max_inline_read 1024
		need 'Linux: b mounts with other sizes' serves "$(offer 4096 4096)"
		put_cell client_sends_other "$sent"
		served
		need 'Linux: b writes the usual size inline' in_b rdma_max_inline_write 4096
		need 'Linux: b reads the usual size inline' in_b rdma_max_inline_read 4096
	fi
	serves_long client_accepts_4096 4096
	[[ -n $fragile ]] || serves_long client_accepts_4100 4100

	# The client's sizes are 4096.
	offered client_present "$(offer 8192 2048)"
	offered client_absent none
	offered client_shifted_1 "00$(offer 8192 2048)"
	offered client_shifted_4 "a5a5a5a5$(offer 8192 2048)"
	last f6ab0e18010007 196
	offered client_truncated "$behind"
	offered client_padded f6ab0e18010007
	offered client_version2 "$(offer 8192 2048 0 2)"
	offered client_reserved "$(offer 8192 2048 0 1 0xfe)"
	((++port))
	need 'Linux: a listens with version 2 only' on_a control - listen "$A4:$port rpcvers=2"
	cell client_refused on_b refused "$A4" "$port"
	check 'Linux: a closes its listeners' on_a control - close all

	need 'Linux: a serves NFS' on_a nfs_server
	need "Linux: the capture of b's client begins" start_capture
	need 'Linux: b mounts from a' on_b eval 'B4=$A4 nfs_mount 4.1 /mnt/nfs'
	need 'Linux: b writes and reads every length up to 4200' on_b sweep /mnt/nfs/sweep 3400 4200
	need "Linux: the capture of b's client ends" keep_capture client
	check "Linux: the wire shows the same private data of b's client" \
		wire_sends client "${cells[client_sends]}"
	check 'Linux: the capture shows the longest messages' longest_sends
	put_cell client_longest_sent "$from_b"
	put_cell client_longest_received "$from_a"
	cell client_watched on_a watched nfs server
	check 'Linux: b unmounts version 4.1' on_b umount /mnt/nfs
	need 'Linux: b mounts by version 3' on_b eval 'B4=$A4 nfs_mount 3 /mnt/nfs'
	cell client_watched_3 on_a watched nfs server
	check 'Linux: b unmounts version 3' on_b umount /mnt/nfs
	need 'Linux: b mounts with four connections' on_b eval \
		'B4=$A4 nfs_mount 4.1 /mnt/nfs nconnect=4'
	need 'Linux: b uses its four connections' on_b sweep /mnt/nfs/sweep 100 200
	cell client_nconnect on_a eval "grep -c ' nfs  *server  *established ' $DEBUGFS/connections"
	check 'Linux: b unmounts with four connections' on_b umount /mnt/nfs
}

# -----------------------------------------------------------------------------

begin_peers
put_cell release "$(on_b uname -r)"
linux_as_server
linux_as_client
check 'Linux: a closes all' on_a control - close all
