#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# `rpcrdma-cm check`: a real cause for each of its lines. scripts/tool builds the tool first.
#
# test: stock.rxe
. ./lib/lib.sh
. ./lib/module.sh
. ./lib/tool.sh

# ends STATUS WORDS [ARGUMENT]...: whether `check` on host $A ends with that status and prints these
# words.
ends() { says "$1" "$2" on_a "$tool" check "${@:3}"; }

# mtus A B: sets the MTUs of both ends.
mtus() { ip -n "$A" link set dev "$A_DEV" mtu "$1" && ip -n "$B" link set dev "$B_DEV" mtu "$2"; }

# registers PORT: has the server's rpcbind name that port for NFS 3 over RDMA: RPCBPROC_SET of
# version 4 (RFC 1833), with the universal address of the port.
registers() {
	in_nfs_server "${python[@]}" - "$1" <<-'END'
		import socket, struct, sys
		def text(octets):
		    return struct.pack(">I", len(octets)) + octets + bytes(-len(octets) % 4)
		def call(procedure, address):
		    words = [7, 0, 2, 100000, 4, procedure, 0, 0, 0, 0, 100003, 3]
		    octets = struct.pack(">12I", *words)
		    octets += text(b"rdma") + text(address) + text(b"superuser")
		    rpcbind.sendall(struct.pack(">I", 0x80000000 | len(octets)) + octets)
		    return rpcbind.recv(100)[-1]
		rpcbind = socket.socket(socket.AF_UNIX)
		rpcbind.connect("/run/rpcbind.sock")
		port = int(sys.argv[1])
		unset, set_ = call(2, b""), call(1, b"0.0.0.0.%d.%d" % divmod(port, 256))
		sys.exit(set_ != 1)
	END
}

# nobody COMMAND...: runs COMMAND on host $A as an ordinary user.
nobody() { on_a setpriv --reuid 65534 --clear-groups "$@"; }

down() { ip -n "$A" link set dev "$A_DEV" down; }
# The interface has lost its IPv6 address.
up() {
	ip -n "$A" link set dev "$A_DEV" up && ip -n "$A" address add "$A6/64" dev "$A_DEV" nodad &&
		wait_for 10 on_a ping -c1 -W1 "$B4"
}

# MTUs and ports, without the module and without a server of NFS.
links() {
	need 'both interfaces have an MTU of 1500' mtus 1500 1500
	check 'check: an MTU of 1500' \
		ends 1 "degraded mtu: $A_DEV has an MTU of 1500: RoCE's path MTU is 1024" "$B4:/"
	check 'check: the remedy for an MTU of 1500' \
		also_says 1 "ip link set dev $A_DEV mtu 9000"
	need 'only the interface of the client has an MTU of 9000' mtus 9000 1500
	check 'check: the server has a smaller MTU' \
		ends 2 "failed   path: packets of 9000 octets are lost on the way to $B4" "$B4"
	need 'both interfaces have an MTU of 9000' mtus 9000 9000
	check 'check: an MTU of 9000' ends 0 "path MTU is 4096" "$B4"
	check 'check: the path takes 9000 octets' \
		also_says 0 "fine     path: 100 of 100 packets of 9000 octets reach $B4"
	check 'check says what the module would add' also_says 0 \
		'note     observer: not known without the files of the module rpcrdma_cm: what'
	check 'check says that nothing asks the server' \
		also_says 0 'note     engine: nothing here can ask the server'
	check 'check: rpcbind does not answer' \
		also_says 0 "note     rpcbind: rpcbind of $B4 gives no answer"
	check 'check names the device' ends 0 "port 1 of $A_RDMA (RoCE, of $A_DEV) is active"
	need 'the interface of the client is down' down
	check 'check: a port that is down' ends 2 \
		"port 1 of $A_RDMA (RoCE, of $A_DEV) is down" "$A4"
	check 'check: no route' ends 2 "failed   path: this host has no route to $B4" "$B4"
	need 'the interface of the client is up again' up
}

no_server() {
	check 'check works for an ordinary user' \
		says 0 "port 1 of $A_RDMA (RoCE, of $A_DEV) is active" nobody "$tool" check "$B4"
	check 'check says what an ordinary user cannot read' also_says 0 'try sudo'
	check 'check: nothing listens at the port' \
		ends 2 "echo 'rdma 20049' > /proc/fs/nfsd/portlist" "$B4"
}

server() {
	check 'check of a sound server' ends 0 "fine     port: $B4:20049 accepts" "$B4:/export"
	check 'check of a sound server over IPv6' ends 0 'fine     port: ' "[$B6]:/export"
	check 'check calls NULL in both versions of NFS' \
		ends 0 'fine     null: NFS 3 answers NULL; NFS 4 answers NULL' "$B4"
	check 'check shows the thresholds' also_says 0 \
		'private-data: calls of up to 4096 octets and replies of up to 4096 would'
	check 'check shows the credits' also_says 0 "fine     credits: $B4 grants"
	check 'check: rpcbind does not know RDMA' \
		also_says 0 "note     rpcbind: rpcbind of $B4 names no port for RDMA"
	check 'check: a server that grants few credits' with svc_rdma/max_requests 4 \
		ends 1 "degraded credits: $B4 grants 4 credits of 64" "$B4"
	check 'check: a server with small sizes' with rdma_max_inline_write 16384 \
		ends 1 "degraded private-data: calls over 4096 octets go by chunks: the server's" \
		"$B4"
	check 'check: a client with small sizes' with rdma_max_inline_write 1024 \
		ends 1 'echo 4096 > /proc/sys/sunrpc/rdma_max_inline_write' "$B4"
	need 'rpcbind names another port' registers 20050
	check 'check: rpcbind names another port' \
		ends 1 "has NFS over RDMA at port 20050, not at 20049" "$B4"
	need 'rpcbind names the port' registers 20049
	check 'check: rpcbind names the port' \
		ends 0 "fine     rpcbind: rpcbind of $B4 has NFS over RDMA at port 20049" "$B4"
	check 'check: a wrong port' ends 2 'failed   port: no connection' "$B4" --port 20051
	need 'a server without private data listens' control b listen "$B4:20052 private=none"
	check 'check: a server without private data' \
		ends 1 'by chunks: the server sends no RFC 8797 private data' "$B4" --port 20052
	need 'the server without private data ends' control - close all
}

loses() {
	local said
	said=$(on_a "$tool" check "$B4")
	[[ $said = *"degraded path: "*" of 100 packets of 9000 octets to $B4 were lost"* ]] &&
		[[ $said = *'ethtool -S'* ]] && return
	echo "$said"
	return 1
}

# The status also depends on whether one of the CM's packets is lost.
loss() {
	need 'one packet of ten is lost' netem b loss 10%
	check 'check: a path that loses packets' loses
	need 'no packet is lost' netem b
}

blocked() {
	on_b tc qdisc add dev "$B_DEV" ingress &&
		on_b tc filter add dev "$B_DEV" parent ffff: protocol ip u32 \
			match ip protocol 17 0xff match ip dport 4791 0xffff action drop
}
unblocked() { on_b tc qdisc delete dev "$B_DEV" ingress; }

# A firewall that drops the packets of RoCE. Others pass.
firewall() {
	need 'the packets of RoCE are dropped' blocked
	check 'check: the port is blocked' ends 2 'over RDMA: no answer in time' "$B4"
	check 'check: the remedy for a blocked port' also_says 2 'let UDP port 4791 (RoCE) through'
	need 'the packets of RoCE pass' unblocked
}

json() {
	local document
	document=$(on_a "$tool" check --json "$B4:/")
	jq -e '.kind == "check" and .status == 2 and
		([.checks[] | select(.severity == "failed") | .check] == ["fstab"])' \
		<<<"$document" >/dev/null && return
	echo "$document"
	return 1
}

fstab() {
	cp /etc/fstab "$scratch/fstab"
	at_end cp "$scratch/fstab" /etc/fstab
	echo "$B4:/ /mnt/boot nfs proto=rdma,vers=4.2 0 0" >>/etc/fstab
	check 'check: fstab asks for RDMA, and nothing is mounted' \
		ends 2 'failed   fstab: /mnt/boot asks for RDMA and is not mounted' "$B4:/"
	need 'the mount of fstab' nfs_mount 4.2 /mnt/boot
	check 'check: the mount of fstab' ends 0 'fine     fstab: /mnt/boot is mounted over RDMA'
	need 'the mount of fstab ends' nfs_unmount /mnt/boot
	need 'a mount of fstab over TCP' nfs_mount 4.2 /mnt/boot proto=tcp,port=2049
	check 'check: the mount of fstab got TCP' \
		ends 2 'failed   fstab: /mnt/boot asks for RDMA and is mounted over TCP'
	need 'the mount of fstab over TCP ends' nfs_unmount /mnt/boot
	check 'check --json' json
	need 'fstab is set back' cp "$scratch/fstab" /etc/fstab
}

observed() { "$tool" | grep " nfs  *client established .* $B4:20049"; }

no_commands() {
	need_reload 'no commands' control=0
	need 'no commands: a mount' nfs_mount 4.2 /mnt/observed
	check_equal 'no commands: no file can be written' '' "$(find "$DEBUGFS" -type f -perm /222)"
	check 'no commands: the mount is observed' wait_for 10 observed
	check 'no commands: check says how to allow them' \
		ends 0 "on this host: $DEBUGFS/probe: the module takes no commands: modprobe -r" \
		"$B4"
}

need 'the tool for check has been built (scripts/tool)' tool_runs
need_pair
need_neighbours
before=$(ip -n "$A" -j link show dev "$A_DEV" | jq '.[0].mtu')
at_end mtus "$before" "$before"
group links
need 'the path takes packets of 9000 octets' mtus 9000 9000
need_module
group no_server
need_nfs_server
group server
group loss
group firewall
group fstab
group no_commands
