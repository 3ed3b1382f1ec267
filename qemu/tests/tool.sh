#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/rpcrdma-cm with real mounts: its commands, and a real cause for each verdict. scripts/tool
# builds it first.
#
# test: stock.rxe
. ./lib/lib.sh
. ./lib/module.sh
. ./lib/tool.sh

# mounts [OPTION]: sets $document to the JSON of `rpcrdma-cm mounts`.
mounts() { document=$("$tool" mounts --json "$@"); }

# of_mount DIR FILTER: prints what jq finds in the JSON of that mount.
of_mount() {
	jq -r --arg dir "$1" ".mounts[] | select(.mount_point == \$dir) | $2" <<<"$document"
}

# verdicts DIR: sets $verdicts to the codes of the verdicts on that mount, worst first.
verdicts() {
	mounts || return
	verdicts=$(of_mount "$1" '[.verdicts[].code] | join(" ")')
}

# verdict DIR CODE: whether that is one of the verdicts on the mount.
verdict() {
	verdicts "$1" && [[ " $verdicts " = *" $2 "* ]] && return
	echo "$1: ${verdicts:-not there}"
	"$tool" mounts
	return 1
}

# verdicts_are DIR PATTERN: whether the list of all verdicts matches the pattern.
verdicts_are() {
	verdicts "$1" && [[ $verdicts =~ ^($2)$ ]] && return
	echo "$1: ${verdicts:-not there}"
	"$tool" mounts
	return 1
}

# no_verdict DIR: whether no verdict finds a fault of that mount.
no_verdict() { verdicts_are "$1" 'fine( invalidates-unoffered)?'; }

# one_line STATUS WORDS COMMAND...: whether `says` succeeds and the output is one line.
one_line() {
	says "$@" && [[ $tool_output != *$'\n'* ]]
}

# mounted VERSION DIR [OPTION,...]: mounts and uses the export, with calls that need chunks.
mounted() {
	nfs_mount "$@" && used "$2"
}

used() {
	head -c 300000 /dev/urandom >"$scratch/data"
	cp "$scratch/data" "$1/data" && sync "$1/data" && echo 3 >/proc/sys/vm/drop_caches &&
		cmp "$scratch/data" "$1/data" && rm "$1/data"
}

unmount_all() {
	local dir
	for dir in /mnt/*; do nfs_unmount "$dir" || return; done
	# A transport that still exists would be shared.
	wait_for 20 no_client
}
no_client() { ! grep -q ' nfs *client ' "$DEBUGFS/connections"; }

# large_client: makes the client ask for sizes of 16384 octets until the script ends.
large_client() { set_sysctl rdma_max_inline_read 16384 && set_sysctl rdma_max_inline_write 16384; }

# connected DIR N: whether N connections to the server are established.
connected() {
	local established='.connections[] | select(.state == "established")'
	mounts || return
	[[ $(of_mount "$1" "[$established] | length") = "$2" ]] && return
	"$tool" mounts
	return 1
}

# About: mounts without a fault.

right_json() {
	mounts
	jq -e --arg server "$B4" '
		def is_sound:
			.stats.transports == (.nconnect // 1)
			and .stats.counters.read_chunks > 0
			and .stats.counters.sends >= .stats.counters.read_chunks
			and .reconnects == 0
			and .address == $server and .port == 20049
			and all(.connections[]; .client_to_server_threshold == 4096);
		# The buffers of each mount grow at its beginning. That is no fault.
		([.mounts[].stats.counters.hard_way_octets] | add) > 10000 and
		all(.mounts[]; is_sound) and [.mounts[].version] == ["3", "4.1", "4.2"]
	' <<<"$document" >/dev/null && return
	echo "$document"
	return 1
}

same_address() {
	ip -n "$A" address "$1" "${server%.*}.3/24" dev "$A_DEV" &&
		ip -n "$B" address "$1" "$server/24" dev "$B_DEV"
}
from_second() { grep "nfs *client *established .* ${server%.*}.3:" "$DEBUGFS/connections"; }

sound() {
	check 'without a mount the tool prints that none uses RDMA' \
		says 0 'no NFS mount uses RDMA' "$tool" mounts
	need 'a mount by NFS 3' mounted 3 /mnt/v3
	need 'a mount by NFS 4.1 with four connections' mounted 4.1 /mnt/v41 nconnect=4
	need 'a mount by NFS 4.2' mounted 4.2 /mnt/v42
	need 'a mount by NFS 3 over TCP' mounted 3 /mnt/beside proto=tcp,port=2049
	# Version 3 has one connection, 4.1 four, 4.2 one. All are to the same server.
	check 'the tool counts six connections to the server' wait_for 20 connected /mnt/v42 6
	for version in v3 v41 v42; do
		check "the mount $version has no fault" no_verdict "/mnt/$version"
		check "the mount $version has the verdict invalidates-unoffered" \
			verdict "/mnt/$version" invalidates-unoffered
	done
	check 'the verdict invalidates-unoffered in words' \
		says 0 'although it did not offer to: ' "$tool" mounts --wide
	check 'mounts without --wide leaves a note out' \
		says_without 0 '/mnt/v42: fine' ' note: ' "$tool" mounts
	check 'the JSON of mounts is right, and has none over TCP' right_json

	# About: a server of the same address in another network namespace. It is a listener of the
	# module, which sends no private data and does not answer.
	first=${A#a} server=$B4
	at_end use_pair "$first"
	need 'a second pair' pair
	need 'the second pair: its server has the address of the first one' same_address add
	need 'the second pair: a server listens' \
		wait_for 20 control b listen "$server:20049 private=none answer=0"
	mkdir -p /mnt/other
	on_a timeout -s KILL 120 mount.nfs "$server:/" /mnt/other \
		-o proto=rdma,port=20049,vers=4.2,soft,timeo=600,retrans=0,retry=0 >/dev/null 2>&1 &
	other=$!
	check 'the second pair: its client connects' wait_for 20 from_second
	check 'the second pair: the mount v42 of the first one has no fault' no_verdict /mnt/v42
	check 'the second pair: its connection is not counted for v42' connected /mnt/v42 6
	# A mount by NFS 3 does not show the client's address, so its verdict covers both servers.
	check 'the second pair: its server affects the verdict on v3' \
		verdict /mnt/v3 no-private-data
	# $other is a shell, so the mount is killed by its name.
	pkill -KILL -x mount.nfs
	wait "$other"
	need 'the second pair: its server ends' control - close all
	check 'the second pair: its address is removed' same_address delete
	use_pair "$first"
	need 'the sound mounts end' unmount_all
}

# About: each verdict, by its cause.

# advises COMMAND: whether the remedy of a verdict names this command.
advises() { says 0 "$1" "$tool" mounts; }
changed() { "$tool" history | grep -E " nfs +client +re-established .* $change $change "; }

end_inner() {
	[[ -z $inner ]] || { kill "$inner"; wait "$inner"; }
	inner=
}
others() { mounts --all-namespaces && [[ $document = *'"mount_point":"/mnt/inner"'* ]]; }

metrics() {
	local file=$scratch/rpcrdma_cm.prom labels='mount="/mnt/v3",server=".*:20049"'
	"$tool" metrics --output "$file" && grep -qx 'rpcrdma_cm_up 1' "$file" &&
		grep -q "^rpcrdma_cm_mount_reconnects_total{$labels} [1-9]" "$file" && return
	cat "$file"
	return 1
}

report() {
	"$tool" report >"$scratch/report" || return
	local name
	for name in kernel modules stats connections history mounts mountstats 'rdma link show' \
		"connection/$id/info" "ethtool -i $A_DEV"; do
		grep -qxF "== $name" "$scratch/report" || { echo "no $name"; return 1; }
	done
	grep -q "^link $A_RDMA/1 state ACTIVE" "$scratch/report" &&
		grep -q '^sys/sunrpc/svc_rdma/max_req_size = 4096' "$scratch/report" &&
		grep -q 'remote: <host-' "$scratch/report" && return
	cat "$scratch/report"
	return 1
}

addresses() { grep -F -e "$A4" -e "$B4" -e "$A6" -e "$B6" "$scratch/report"; }

# waits_for_connection: whether the tool says so between two attempts, when there is no connection.
# /sys shows the transports of one network namespace.
waits_for_connection() {
	# shellcheck disable=SC2016 # for that shell
	ip netns exec "$A" sh -c 'mount -t debugfs none /sys/kernel/debug && exec "$@"' - \
		"$tool" mounts >"$scratch/mounts" || return
	grep -E '^/mnt/v3: failed: not connected: [0-9]+ calls? waits?; last failure: the peer ' \
		"$scratch/mounts" && return
	cat "$scratch/mounts"
	return 1
}

faulty() {
	need 'a mount of a client with small sizes' with rdma_max_inline_write 1024 \
		with rdma_max_inline_read 1024 mounted 3 /mnt/v3
	check 'the verdict small-own-size' \
		verdicts_are /mnt/v3 'small-own-size small-own-size[a-z -]*'
	by_chunks="over 1024 octets go by chunks: this client's rdma_max_inline"
	check 'small-own-size names the first sysctl' \
		says 0 "/mnt/v3: degraded: calls ${by_chunks}_wr" "$tool" mounts
	check 'small-own-size names the other sysctl' \
		also_says 0 "  and: degraded: replies ${by_chunks}_re"
	need 'the mount with small sizes ends' unmount_all
	large_client
	need 'a mount from a server with sizes of 16384' \
		with svc_rdma/max_req_size 16384 mounted 3 /mnt/v3
	check 'the mount with sizes of 16384 has no fault' no_verdict /mnt/v3
	need 'the server with sizes of 16384 stops' in_nfs_server rpc.nfsd 0
	note='  and: note: not connected at present: the client connects again with the next call'
	check 'the verdict not-connected, without calls' wait_for 20 says 0 "$note" "$tool" mounts
	df /mnt/v3 >/dev/null &
	waiting=$!
	check 'the verdict not-connected, with calls that wait for a server that refuses' \
		wait_for 20 waits_for_connection
	program 1
	need 'a program listens and does not accept' tell 1 listen "/run/netns/$B" "$B4" 20049
	check 'the verdict not-connected, with calls that wait' \
		wait_for 60 says 0 '/mnt/v3: failed: not connected: connecting' "$tool" mounts
	program_end 1
	need 'the server starts with sizes of 4096' nfs_start
	wait "$waiting"
	need 'the mount works with sizes of 4096' wait_for 60 used /mnt/v3
	check 'the verdict small-receive-size' verdict /mnt/v3 small-receive-size
	check 'the verdict small-send-size' verdict /mnt/v3 small-send-size
	by_chunks="replies over 4096 octets go by chunks: the server's Send Size is 4096"
	check 'the verdicts small-send-size and small-receive-size in words' \
		says 0 "  and: degraded: $by_chunks" "$tool" mounts
	check 'the remedy names the host, the file and the value' advises \
		"$on_linux: echo 16384 > /proc/sys/sunrpc/svc_rdma/max_req_size"
	check 'one loss does not lead to the verdict lost-often' \
		verdicts_are /mnt/v3 'small-receive-size small-send-size[a-z -]*'
	change='16384 -> 4096'
	check 'history shows the change of the sizes' changed
	check 'history --follow shows the change of the sizes' \
		says 0 "$change" "$tool" history --follow --count 2 --interval 1

	# The module takes the place of the server and does not answer, so the calls wait.
	need 'the server with sizes of 4096 stops' in_nfs_server rpc.nfsd 0
	need 'the module listens in place of the server' \
		control b listen "$B4:20049 private=none answer=0"
	df /mnt/v3 >/dev/null &
	waiting=$!
	check 'the verdict no-private-data' wait_for 60 verdict /mnt/v3 no-private-data
	check 'the verdict no-private-data in words' says 0 \
		'messages over 1024 octets go by chunks: the server sends no RFC 8797' \
		"$tool" mounts
	need 'the listener without private data is closed' control - close all
	need 'the module listens with a message at offset 4' \
		control b listen "$B4:20049 private=00000000$(offer 16384 16384) answer=0"
	check 'the verdict less-in-use' wait_for 60 verdict /mnt/v3 less-in-use
	less="1024 octets inline, 16384 were negotiated: the server's message is at offset 4"
	check 'the verdict less-in-use in words' says 0 "sends $less" "$tool" mounts
	check 'the verdict deviates beside less-in-use' verdict /mnt/v3 deviates
	need 'the listener with a message at offset 4 is closed' control - close all
	need 'the server starts after the loss' nfs_start
	wait "$waiting"
	need 'the mount works after the loss' wait_for 60 used /mnt/v3
	check 'the verdict lost-often' verdict /mnt/v3 lost-often
	check 'the mount is connected after the loss' connected /mnt/v3 1

	# About: another mount namespace.
	unshare --mount bash -c '
		mkdir -p /mnt/inner && mount --bind /mnt/v3 /mnt/inner && umount /mnt/v3 &&
			exec sleep infinity' &
	inner=$!
	at_end end_inner
	check '--all-namespaces shows a mount of another namespace' wait_for 10 others
	check 'a mount of another namespace is hidden without --all-namespaces' \
		says_without 0 '"mount_point":"/mnt/v3"' /mnt/inner "$tool" mounts --json
	end_inner

	# About: the other commands.
	ids_of nfs client established
	id=${ids[0]}
	check 'show explains a connection' says 0 'Format Identifier' "$tool" show "$id"
	check 'show fails for an unknown connection' \
		one_line 3 'there is no connection 999999' "$tool" show 999999
	check 'the tool without a command prints the table' says 0 "$B4:20049" "$tool"
	check 'watch prints the table' says 0 "$B4:20049" "$tool" watch --count 2 --interval 1
	nobody=(setpriv --reuid 65534 --clear-groups)
	check 'an ordinary user is told to try sudo' one_line 3 'try sudo' "${nobody[@]}" "$tool"
	check 'an ordinary user gets the verdicts from the counters of NFS' \
		says 0 'unknown what it negotiated' "${nobody[@]}" "$tool" mounts
	check 'metrics writes the reconnects of a mount' metrics

	check 'report has a section for each source' report
	check_fails 'report has no address' addresses
	check 'report --addresses has them' says 0 "$B4:20049" "$tool" report --addresses

	# The Linux server invalidates remotely, although it does not set R.
	need 'the module connects to the server' \
		control a connect "$B4:20049 inv=1 rpcvers=1 null=0"
	need "the module's connection to the server is shown" newest client
	need "the module's call with a chunk succeeds" \
		control - call "connection $id null chunks=1"
	check 'show prints the deviation' \
		says 0 'deviation of the server: uses RDMA Send with Invalidate' "$tool" show "$id"
	need "the server's end of it is shown" wait_for 10 peer_of "$id"
	uninvited='uses RDMA Send with Invalidate, although not both sides support remote'
	check "show of the server's end prints the deviation of this server" says 0 \
		"note: deviation of this server: $uninvited invalidation (RFC 8797, section 4.1)" \
		"$tool" show "$id"
	need "the module's connection to the server is closed" control - close all

	# About: a module that keeps no history.
	need_reload 'no history kept' history=0
	check 'no history kept: lost-often' verdict /mnt/v3 lost-often
	check 'no history kept: lost-often in words' says 0 \
		'/mnt/v3: degraded: connected again ' "$tool" mounts
	# The client offers 16384, the server 4096.
	check 'a connection older than the module: unknown' wait_for 20 verdict /mnt/v3 unknown
	check 'a connection older than the module, in words' says 0 \
		'older than the module: this client sends 4096 octets inline and expects 4096' \
		"$tool" mounts
	need 'the mount without history ends' unmount_all
}

# About: the remedy for small sizes of the server, carried out.

sysctl_was() { echo "$before" >/proc/sys/sunrpc/svc_rdma/max_req_size; }

remedied() {
	large_client
	need 'a mount that needs a remedy' mounted 3 /mnt/v3
	remedy=$("$tool" mounts | sed -n 's/.*there has .rdma 20049.: //p' | head -n1)
	need 'the mount ends for its remedy' unmount_all
	before=$(</proc/sys/sunrpc/svc_rdma/max_req_size)
	need 'the command of the remedy succeeds' bash -c "$remedy"
	need 'the mount after its remedy' mounted 3 /mnt/v3
	check 'the mount after its remedy has no fault' no_verdict /mnt/v3
	check 'a sound mount shows what goes inline' says 0 \
		'calls of up to 16384 octets and replies of up to 16384 go inline' "$tool" mounts
	need 'the sysctl of the remedy is set back' sysctl_was
	check 'mounts prints no table' says_without 0 '/mnt/v3: fine' RECONN "$tool" mounts
	check 'mounts --wide prints the table, too' says 0 ' RECONN' "$tool" mounts --wide
	need 'the mount after its remedy ends' unmount_all
}

# About: calls that wait. The transports are shown in their own network namespace, in which there
# is no debugfs: the tool works without the module.

in_namespace() { ip netns exec "$A" "$tool" mounts "$@"; }

# readers DIR: starts 32 processes that read by small calls until readers_end.
readers() {
	local n
	truncate -s 1G "$1/long" || return
	for ((n = 0; n < 32; n++)); do
		dd if="$1/long" of=/dev/null bs=4096 iflag=direct status=none &
		readers+=($!)
	done
}

readers_end() {
	[[ ${#readers[@]} -gt 0 ]] || return 0
	kill "${readers[@]}"
	wait "${readers[@]}" 2>/dev/null
	readers=()
}

credits() {
	in_namespace --json 2>/dev/null |
		jq -e '.mounts[] | .transports[] | select(.connected and .credits == 4)' >/dev/null
}

waiting() {
	readers=()
	at_end readers_end
	need 'a mount from a server with few credits' \
		with svc_rdma/max_requests 4 mounted 3 /mnt/few
	check 'few credits without calls that wait are no fault' \
		says_without 0 '/mnt/few: ' 'credits, this client' in_namespace
	need 'calls wait for credits' readers /mnt/few
	check 'the verdict few-credits, without the module' wait_for 20 says 0 \
		'the server grants 4 credits, this client asks for 128' in_namespace
	check 'few-credits names the host, the file and the value' wait_for 20 says 0 \
		"$on_linux: echo 128 > /proc/sys/sunrpc/svc_rdma/max_requests" \
		in_namespace
	check 'the JSON of mounts has the credits' credits
	readers_end
	need 'the mount with few credits ends' unmount_all
	need 'a mount with few slots' with rdma_slot_table_entries 4 mounted 3 /mnt/slots
	need 'calls wait for slots' readers /mnt/slots
	check 'the verdict backlog' wait_for 20 says 0 \
		' for a slot: all 4 of a transport are in use' in_namespace
	check 'few slots do not lead to the verdict few-credits' says_without 0 \
		' for a slot: all 4 of a transport are in use' 'credits, this client' in_namespace
	readers_end
	need 'the mount with few slots ends' unmount_all
}

# About: TCP in place of RDMA.

fallen_back() {
	need 'a mount over TCP' mounted 4.2 /mnt/tcp proto=tcp,port=2049
	check 'a mount that asks for TCP is not shown' \
		says 0 'no NFS mount uses RDMA' "$tool" mounts
	need 'a mount that asks for RDMA succeeds' mounted 4.2 /mnt/v42 nosharecache
	check 'the client takes TCP instead' grep -q ' /mnt/v42 .*proto=tcp' /proc/self/mountinfo
	check 'the verdict not-rdma' verdict /mnt/v42 not-rdma
	need 'the mount that fell back to TCP ends' nfs_unmount /mnt/v42
	# The superblock is that of /mnt/tcp, and has its options.
	need 'a mount that shares the superblock succeeds' nfs_mount 4.2 /mnt/v42
	check 'a mount that shares the superblock has no verdict' verdicts_are /mnt/v42 ''
	cp /etc/fstab "$scratch/fstab"
	at_end cp "$scratch/fstab" /etc/fstab
	echo "$B4:/ /mnt/v42 nfs proto=rdma,vers=4.2 0 0" >>/etc/fstab
	check 'the verdict not-rdma, by /etc/fstab' verdict /mnt/v42 not-rdma
	need 'the mounts over TCP end' unmount_all
}

# About: probes.

program_server() {
	id=$(awk '$2 == "user" && $3 == "server" { print $1 }' "$DEBUGFS/connections")
	[[ -n $id ]]
}

# asked [OPTION...]: prints in how many versions of RPC-over-RDMA a probe has asked.
asked() { grep -c 'of RPC-over-RDMA: ' < <(on_a "$tool" probe "$B4" "$@"); }

probes() {
	check 'probe of the NFS server: fine' says 0 '  fine' on_a "$tool" probe "$B4"
	check 'probe of the NFS server over IPv6: fine' \
		says 0 '  fine' on_a "$tool" probe "[$B6]:20049"
	need 'a server without private data' control b listen "$B4:20050 private=none"
	check 'probe of a server without private data: degraded' \
		says 1 'sends no RFC 8797 private data' on_a "$tool" probe "$B4:20050"
	# The other end of a connection whose server is the cause.
	need 'the module connects to the server without private data' connect a "$B4:20050 null=0"
	check "show of the server's end says that this server sends no private data" says 0 \
		' over 1024 octets go by chunks: this server sends no RFC 8797 private data' \
		"$tool" show "$server"
	check "show of the client's end says that the server sends no private data" says 0 \
		' go by chunks: the server sends no RFC 8797 private data' "$tool" show "$client"
	need 'a server with small sizes' control b listen "$B4:20054 recv=1024"
	need 'the module connects to the server with small sizes' connect a "$B4:20054 null=0"
	check "show of the server's end says that this server has a small Receive Size" \
		says 0 "calls over 1024 octets go by chunks: this server's Receive Size is 1024" \
		"$tool" show "$server"
	check "show of the client's end says that the server has a small Receive Size" \
		says 0 "calls over 1024 octets go by chunks: the server's Receive Size is 1024" \
		"$tool" show "$client"
	program 1
	need 'a program without private data listens' tell 1 listen "/run/netns/$B" "$B4" 20055
	say 1 accept none
	need 'the module connects to the program' control a connect "$B4:20055 null=0"
	need 'the program accepts' hear 1
	need "the program's end is shown" wait_for 10 program_server
	check "show of a program's end says that this server sends no private data" says 0 \
		' over 1024 octets go by chunks: this server sends no RFC 8797 private data' \
		"$tool" show "$id"
	program_end 1
	need 'a server of an unknown version' \
		control b listen "$B4:20052 private=$(offer 4096 4096 1 2)"
	check 'probe of a server of an unknown version: degraded' \
		says 1 "private data cannot be used (unrecognized version 2)" \
		on_a "$tool" probe "$B4:20052"
	need 'a server that never answers' control b listen "$B4:20053 answer=0"
	check 'probe of a server that never answers: no-answer' \
		says 1 'it accepts connections and does not answer NULL: ' \
		on_a "$tool" probe "$B4:20053" --timeout-ms 1000
	check 'probe of a port without a server: unreachable' \
		says 2 'unreachable: ' on_a "$tool" probe "$B4:20051"
	check 'probe with a size that the module refuses' \
		one_line 3 'send=1000' on_a "$tool" probe "$B4" --send 1000

	# The first server does not know the version that is asked for. The second one has version
	# 3 only, as some appliances have.
	check 'probe of an unknown version of NFS: asked again' \
		says 0 'only versions 3 to 4 of NFS: this is the result of NFS version 4' \
		on_a "$tool" probe "$B4" --version 77
	need 'the NFS server stops' in_nfs_server rpc.nfsd 0
	need 'the NFS server starts with version 3 only' in_nfs_server sh -euc '
		rpc.nfsd --no-nfs-version 4 4
		echo "rdma 20049" >/proc/fs/nfsd/portlist'
	check 'probe of a server with version 3 only: asked again, and fine' says 0 \
		'only version 3 of NFS: this is the result of NFS version 3' \
		on_a "$tool" probe "$B4"
	check 'probe of a server with version 3 only shows the version that was answered' \
		also_says 0 'NULL of NFS version 3 in version 1 of RPC-over-RDMA: SUCCESS'
	check 'probe asks in version 1 only' says 0 1 asked
	check 'probe asks in both versions with --rpcvers auto' says 0 2 asked --rpcvers auto
	need 'a client of the server that is no mount' \
		control a connect "$B4:20049 rpcvers=1 null=0"
	check 'a server without mounts' \
		one_line 0 "this host's NFS server has connections" "$tool" mounts
	need 'the client that is no mount ends' control - close all
}

# About: a module that shows only its own connections.

first_line() {
	local line
	line=$("$tool" | head -n1)
	[[ $line = *'observing is off'*'the module was loaded with observe=0'* ]] && return
	echo "$line"
	return 1
}

metrics_say_off() {
	local file=$scratch/off.prom
	"$tool" metrics >"$file" && grep -qx 'rpcrdma_cm_observing 0' "$file" &&
		grep -qx 'rpcrdma_cm_observing_limited{reason="parameter"} 1' "$file" && return
	grep observing "$file"
	return 1
}

# demo_ends: whether the demo ends with one sentence. It makes a pair and a server of its own.
demo_ends() {
	local said status=0 why='the module was loaded with observe=0'
	said=$(env -u TRANSPORT ../demo.sh observe=0 2>&1 >"$scratch/demo") || status=$?
	same 'the status' 1 "$status" && [[ $said = 'The demo needs a kernel on which '*$why. ]] &&
		return
	echo "$said"
	return 1
}

not_observing() {
	need_reload 'observing off' observe=0
	check 'observing off: the first line of the tool says so, and why' first_line
	check 'observing off: the metrics say so, and why' metrics_say_off
	need 'observing off: the module is removed for the demo' rmmod rpcrdma_cm
	check 'observing off: the demo ends with one sentence' demo_ends
}

# -----------------------------------------------------------------------------

need 'the tool has been built (scripts/tool)' tool_runs
need_pair
check 'without the module the tool names modprobe' one_line 3 'modprobe rpcrdma_cm' "$tool"
need_module
need_nfs_server
on_linux="    on $B4, if /proc/fs/nfsd/portlist there has \`rdma 20049\`"
group sound
group faulty
group remedied
group waiting
group fallen_back
group probes
group not_observing
