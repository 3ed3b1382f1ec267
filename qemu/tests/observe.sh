#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The connections of others: of the kernel's NFS client and server, and of programs. Compares the
# files with the octets that Linux sends, with RFC 8797, and with the kernel's own trace events.
#
# test: stock.rxe
# soak: debug.rxe debug.siw rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

# ids ORIGIN ROLE: sets $ids to the established connections of that origin and role.
ids() { ids_of "$1" "$2" established; }

# observing WORD [REASON]...: whether stats says whether others are observed, and why not.
observing() {
	local wanted="observing: $1" word found
	for word in "${@:2}"; do wanted+=$'\n'"observing_reason: $word"; done
	found=$(grep '^observing' "$DEBUGFS/stats")
	[[ $found = "$wanted" ]] || { echo "$found"; return 1; }
}

has() { ids "$1" "$2" && ((${#ids[@]} == $3)); }

# said ID SENT RECEIVED: whether these octets were sent and received, apart from padding.
said() {
	octets "connection/$1/sent"
	[[ $octets = "$2" ]] || { echo "sent: wanted $2, found $octets"; return 1; }
	octets "connection/$1/received"
	[[ $octets =~ ^"$3"(00)*$ ]] || { echo "received: wanted $3, found $octets"; return 1; }
}

# same_client ID GENERATION WRITE READ SERVER: whether info of a client is right, with these
# inline sizes of client and server.
same_client() {
	local c2s=$(($3 < $5 ? $3 : $5)) s2c=$(($4 < $5 ? $4 : $5))
	said "$1" "$(offer "$3" "$4" 1)" "$(offer "$5" "$5")" || return
	same_info "$1" origin=nfs role=client generation="$2" local_remote_invalidation=yes \
		peer_private_data=present peer_send_size="$5" peer_remote_invalidation=no \
		client_to_server_threshold="$c2s" server_to_client_threshold="$s2c" \
		remote_invalidation=no inline_send_in_use="$c2s" \
		inline_receive_in_use="$s2c" || return
	# The mount itself may already have made calls with chunks.
	case ${info[remote_invalidation_in_use]} in
	yes) deviates "$uninvited" ;;
	unknown) [[ -z ${info[deviation]:-} ]] || { echo "deviates: ${info[deviation]}"; false; } ;;
	*) echo "remote_invalidation_in_use: ${info[remote_invalidation_in_use]}"; false ;;
	esac || return
	# The kernel's own trace event of the thresholds.
	grep -q "neg send/recv=$c2s/$s2c," "$traces/trace" ||
		{ echo "not traced: $c2s/$s2c"; cat "$traces/trace"; return 1; }
}

# deviates LINE...: whether info, as read last, has exactly these lines of deviations.
deviates() {
	local line found=()
	for line in "${lines[@]}"; do
		[[ $line != deviation:* ]] || found+=("${line#*: }")
	done
	[[ $(printf '%s\n' "${found[@]}") = "$(printf '%s\n' "$@")" ]] ||
		{ echo "deviates:"; printf '%s\n' "${found[@]}"; return 1; }
}

uninvited='uses RDMA Send with Invalidate, although not both sides support remote invalidation'
uninvited+=' (RFC 8797, section 4.1)'

# sends_more THRESHOLD: prints the deviation that follows from inline_send_in_use in info, as
# read last.
sends_more() {
	echo "may send ${info[inline_send_in_use]} octets inline, where the threshold is $1" \
		'(RFC 8797, section 4.2)'
}

# by_pieces: whether inline_send_in_use is a header and a number of pages, and more than
# inline_receive_in_use.
by_pieces() {
	local size=${info[inline_send_in_use]}
	if [[ ! $size =~ ^[0-9]+$ ]] || ((size <= info[inline_receive_in_use])) ||
		((size % $(getconf PAGESIZE) != 28)); then
		echo "inline_send_in_use: $size"
		return 1
	fi
}

# same_server ID WRITE READ SERVER: whether info of a server is right. Linux sends no R, and
# only looks at the client's R. It does not limit replies to the client's Receive Size.
same_server() {
	said "$1" "$(offer "$4" "$4")" "$(offer "$2" "$3" 1)" || return
	same_info "$1" origin=nfs role=server generation=1 local_remote_invalidation=no \
		peer_private_data=present peer_send_size="$2" peer_receive_size="$3" \
		peer_remote_invalidation=yes remote_invalidation=no \
		inline_receive_in_use="$4" remote_invalidation_in_use=yes || return
	by_pieces || return
	deviates "$(sends_more $(($3 < $4 ? $3 : $4)))" "$uninvited"
}

# transports: sets $n to the number of transports of the mount that have connected, by the
# counters of NFS.
transports() {
	n=$(awk '/^device / { ours = / \/mnt\/nfs / } ours && /xprt:/ { n += $5 > 0 }
		END { print n + 0 }' /proc/self/mountstats)
}

all_shown() { transports && ((n >= $1)) && has nfs client "$n" && has nfs server "$n"; }

# same_all N GENERATION WRITE READ SERVER: whether info of both ends of all connections is
# right. There are N or more, because Linux does not make all at once.
same_all() {
	local id bad=0
	wait_for 30 all_shown "$1" || return
	for id in "${ids[@]}"; do same_server "$id" "$3" "$4" "$5" || bad=1; done
	ids nfs client
	for id in "${ids[@]}"; do same_client "$id" "$2" "$3" "$4" "$5" || bad=1; done
	return "$bad"
}

# forget_thresholds: empties the trace of thresholds, so that same_client does not find those of
# earlier connections.
forget_thresholds() { echo >"$traces/trace"; }

# mounted NAME N VERSION [OPTION]: checks a mount with N connections or more, and that none is shown
# after umount.
mounted() {
	forget_thresholds
	need "$1: the mount succeeds" nfs_mount "$3" /mnt/nfs "${4:-}"
	check "$1: info of both ends is right" same_all "$2" 1 4096 4096 4096
	check "$1: umount succeeds" umount /mnt/nfs
	check "$1: no connection is left" wait_for 20 none_shown
}

# same_old GENERATION: whether info is right of a mount's connection that is older than the module.
same_old() {
	wait_for 10 has nfs client 1 && wait_for 10 has nfs server 1 || return
	same_info "${ids[0]}" peer_private_data=unknown client_to_server_threshold=unknown \
		inline_receive_in_use=4096 remote_invalidation_in_use=yes || return
	by_pieces || return
	[[ ${info[note]} = 'older than the module'* ]] || { echo 'no note'; return 1; }
	ids nfs client
	said "${ids[0]}" "$(offer 4096 4096 1)" '' || return
	same_info "${ids[0]}" device="$A_RDMA" generation="$1" local_send_size=4096 \
		client_to_server_threshold=4096 server_to_client_threshold=4096 \
		inline_send_in_use=4096 inline_receive_in_use=4096 \
		peer_private_data=unknown || return
	[[ ${info[note]} = 'older than the module'* ]] || { echo 'no note'; return 1; }
}

# invalidated: makes calls with a chunk. Whether the client's end then shows that the server
# invalidates remotely. A call that could not be sent resets the evidence, so use wait_for.
invalidated() {
	# 32 segments or more may be hidden after a call that could not be sent, and 32 more by each
	# callback.
	dd if=/dev/zero of=/mnt/nfs/chunked bs=8K count=100 oflag=direct status=none || return
	ids nfs client
	same_info "${ids[0]}" remote_invalidation_in_use=yes && return
	grep xprt: /proc/self/mountstats
	return 1
}

# undisturbed CONNECTS: whether the counters of NFS show that number of connects, and no errors.
undisturbed() {
	local words
	read -ra words < <(sed -n '/ mounted on \/mnt\/nfs /,/xprt:/s/.*xprt:[[:space:]]*//p' \
		/proc/self/mountstats)
	# Connections made, replies without a call, malformed replies.
	[[ ${words[0]} = rdma && ${words[3]} = "$1" && ${words[8]} = 0 && ${words[20]} = 0 ]] ||
		{ echo "${words[*]}"; return 1; }
}

# server_not_read: whether only the client's values in use are shown.
server_not_read() {
	wait_for 10 has nfs client 1 && wait_for 10 has nfs server 1 || return
	same_info "${ids[0]}" inline_send_in_use=unknown inline_receive_in_use=unknown \
		remote_invalidation_in_use=unknown || return
	ids nfs client
	same_info "${ids[0]}" inline_send_in_use=4096 inline_receive_in_use=4096
}

two_mounts() { has nfs server 2 && has nfs client 2; }

# keep_reading: reads all files of the module again and again.
keep_reading() {
	while [[ -e $scratch/reading ]]; do
		cat "$DEBUGFS"/{connections,listeners,stats,history,last_error} \
			"$DEBUGFS"/connection/*/*
	done >/dev/null 2>&1
	return 0
}

# has_generation N: whether generation N or a later one is established. Sets $id and
# $generation.
has_generation() {
	ids nfs client
	id=${ids[-1]:-0}
	info "$id" && generation=${info[generation]} && ((generation >= $1))
}

tries_again() { grep -q '^[0-9]* *nfs *client *connecting ' "$DEBUGFS/connections"; }

attached() {
	grep -qE '^rdma_(connect_locked|accept|disconnect) ' /sys/kernel/tracing/enabled_functions
}

trace_thresholds() {
	mkdir "$traces" && echo 1 >"$traces/events/rpcrdma/xprtrdma_inline_thresh/enable"
}

# refused: whether a refusal was counted since $before, and has its reason. Over siw, rdma_connect()
# itself fails.
refused() {
	local reason='the peer rejected the connection'
	[[ $TRANSPORT = rxe ]] || reason="the peer's host refused the connection"
	counter observed_refused && ((count > before)) &&
		event ORIGIN=nfs ROLE=client EVENT=refused REMOTE="$B4:1" REASON="$reason"
}

no_program_shown() { lines connections && [[ "${lines[*]}" != *' user '* ]]; }

case $KERNEL in
debug) mib=2 ;;
rt) mib=8 ;;
*) mib=${FULL:+256} mib=${mib:-8} ;;
esac
traces=/sys/kernel/tracing/instances/observe

need_pair
need_neighbours
need_nfs_server
trace_thresholds
at_end rmdir "$traces"
need_module

older() {
	need 'older than the module: the module is removed' wait_for 20 rmmod rpcrdma_cm
	need 'older than the module: the mount succeeds' nfs_mount 4.2 /mnt/nfs
	program 3
	need 'older than the module: a program listens at one address' \
		tell 3 listen "/run/netns/$A" "$A4" 20049
	need 'older than the module: the module loads' insmod "$MODULE"
	check 'older than the module: info of both ends is right' same_old 1
	check 'older than the module: info shows that the server invalidates' \
		wait_for 60 invalidated
	check 'older than the module: a listener is not shown' no_program_shown
	program_end 3
	check 'older than the module: umount succeeds' umount /mnt/nfs
	check 'older than the module: no connection is left' wait_for 20 none_shown
}

# is_unreachable: whether rdma_cm has said so of the client's connection.
is_unreachable() { grep -q UNREACHABLE "$traces-own/trace"; }

unreachable() {
	[[ $TRANSPORT = rxe ]] || { skip unreachable 'iWARP has no neighbours in rdma_cm'; return; }
	local mac move=(ip -n "$A" neighbour replace "$B4" dev "$A_DEV" nud permanent lladdr)
	read -r _ _ mac _ < <(ip -n "$B" -br link show dev "$B_DEV")
	need 'unreachable: the mount succeeds' nfs_mount 4.2 /mnt/nfs
	mkdir "$traces-own"
	echo 1 >"$traces-own/events/rdma_cma/cm_event_handler/enable"
	need 'unreachable: the server has another hardware address' "${move[@]}" 02:00:00:00:00:99
	check 'unreachable: rdma_cm says so' wait_for 10 is_unreachable
	need 'unreachable: the server has its hardware address again' "${move[@]}" "$mac"
	rmdir "$traces-own"
	check 'unreachable: small calls go on' timeout 20 stat /mnt/nfs
	need_reload unreachable
	check 'unreachable: info of both ends is right' same_old 1
	check 'unreachable: NFS made one connection and had no errors' undisturbed 1
	check 'unreachable: umount succeeds' umount /mnt/nfs
	check 'unreachable: no connection is left' wait_for 20 none_shown
	ip -n "$A" neighbour replace "$B4" dev "$A_DEV" nud reachable lladdr "$mac"
}

# has_sent_rep: whether the kernel's server has accepted a request of this device's.
has_sent_rep() { rdma resource show qp link "$B_RDMA" | grep -q 'state RTS'; }

# awaits_rtu: whether the connection of the kernel's server is shown, and not as established.
awaits_rtu() {
	id=$(awk '$2 == "nfs" && $3 == "server" { print $1 }' "$DEBUGFS/connections")
	same_info "$id" state=connecting \
		note='older than the module, so that what was received is not known'
}

unconfirmed() {
	[[ $TRANSPORT = rxe ]] || { skip unconfirmed 'MPA has no RTU'; return; }
	need 'unconfirmed: the module is removed' wait_for 20 rmmod rpcrdma_cm
	program 3
	need 'unconfirmed: a client sends no RTU' \
		tell 3 storm mute 1 "/run/netns/$A" "$B4" 20049
	need "unconfirmed: the kernel's server accepts" wait_for 20 has_sent_rep
	need 'unconfirmed: the module loads' insmod "$MODULE"
	check 'unconfirmed: the server is not shown as established' wait_for 10 awaits_rtu
	program_end 3
	check 'unconfirmed: no connection is left' wait_for 60 none_shown
}

traced() { [[ $(grep -c " $1: id=[0-9]* role=$2 .*$3" "$traces-own/trace") = 1 ]]; }

mounts() {
	# A trace instance of its own: the kernel empties the buffer with the module's events when
	# the module is unloaded.
	mkdir "$traces-own"
	echo 1 >"$traces-own/events/rpcrdma_cm/enable"
	mounted 'version 3' 1 3
	for role in client server; do
		check "traced: the octets that the $role sent" \
			traced message_sent "$role" 'octets=f6ab0e1801'
		check "traced: the message that the $role received" \
			traced message_parsed "$role" 'outcome=present'
		check "traced: the values of the $role" traced connection_negotiated "$role" \
			'client_to_server=4096 server_to_client=4096 remote_invalidation=0'
		check "traced: the end of the $role" traced connection_closed "$role" 'generation=1'
	done
	rmdir "$traces-own"

	mounted 'version 4.1, four connections' 4 4.1 nconnect=4
	if [[ -n ${FULL:-} ]]; then
		[[ $KERNEL = debug ]] ||
			mounted 'version 4.2, up to 16 connections' 5 4.2 nconnect=16
		if [[ -e /proc/sys/sunrpc/rdma_max_inline_write ]]; then
			set_sysctl rdma_max_inline_write 16384
			set_sysctl rdma_max_inline_read 2048
			forget_thresholds
			need 'other sizes: the mount succeeds' nfs_mount 4.1 /mnt/nfs
			check 'other sizes: info of both ends is right' same_all 1 1 16384 2048 4096
			set_sysctl rdma_max_inline_write 4096
			set_sysctl rdma_max_inline_read 4096
			check 'other sizes: umount succeeds' umount /mnt/nfs
			check 'other sizes: no connection is left' wait_for 20 none_shown
		fi
	fi
}

traffic() {
	# Replies may take long here, and after its timeout NFS would give the connection up.
	need 'traffic: the mount succeeds' nfs_mount 4.2 /mnt/nfs timeo=600
	# The second mount is made in another namespace, the server's own. Over siw all clients are
	# in one.
	if [[ $TRANSPORT = rxe ]]; then
		mkdir -p /mnt/other
		need 'traffic: a mount in another namespace succeeds' on_b mount -t nfs \
			-o proto=rdma,port=20049,vers=4.1 "$B4:/" /mnt/other
		check 'traffic: both ends of both mounts are shown' wait_for 10 two_mounts
		check 'traffic: umount in another namespace succeeds' on_b umount /mnt/other
		check 'traffic: the connection of another namespace is gone' \
			wait_for 20 has nfs server 1
	fi
	head -c "${mib}M" /dev/urandom >"$scratch/data"
	touch "$scratch/reading"
	keep_reading &
	readers=$!
	cp "$scratch/data" /mnt/nfs/data &
	writer=$!
	# rmmod fails while one of the module's files is open.
	need 'traffic: the module is removed' wait_for 20 rmmod rpcrdma_cm
	check_fails 'traffic: nothing is attached to rdma_cm' attached
	need 'traffic: the module loads again' insmod "$MODULE"
	check 'traffic: info of both ends is right' same_old 1
	wait "$writer"
	echo 3 >/proc/sys/vm/drop_caches
	check "traffic: $mib MiB are read as written" cmp "$scratch/data" /mnt/nfs/data
	check 'traffic: info shows that the server invalidates' wait_for 60 invalidated
	rm "$scratch/reading"
	wait "$readers"
	check 'traffic: NFS made one connection and had no errors' undisturbed 1

	check 'traffic: umount succeeds' umount /mnt/nfs
}

# writer_succeeds: whether the process $writer ends in time, and successfully.
writer_succeeds() { timeout 90 tail --pid "$writer" -f /dev/null && wait "$writer"; }

losses() {
	head -c 256K /dev/urandom >"$scratch/some"
	# NFS gives up a connection when replies do not arrive, also over siw.
	need 'lost: the mount succeeds' nfs_mount 4.2 /mnt/nfs
	set_sysctl svc_rdma/max_req_size 8192
	forget_thresholds
	need 'lost: all packets of the server are lost' netem b loss 100%
	cp "$scratch/some" /mnt/nfs/again &
	writer=$!
	check 'lost: the client is connecting again' wait_for 60 tries_again
	need 'lost: packets of the server arrive again' netem b
	check 'lost: generation 2 is established' wait_for 90 has_generation 2
	check 'lost: info has the new exchange' same_client "$id" "$generation" 4096 4096 8192
	wait "$writer"
	echo 3 >/proc/sys/vm/drop_caches
	check 'lost: no data was lost' cmp "$scratch/some" /mnt/nfs/again
	# The counters are those of the transport, so they include segments of lost connections.
	check 'lost: info shows that the server invalidates' wait_for 60 invalidated
	check 'lost: the server deviates by invalidating' deviates "$uninvited"
	set_sysctl svc_rdma/max_req_size 4096

	if [[ -n ${FULL:-} ]]; then
		# Other data than the file has.
		head -c 256K /dev/urandom >"$scratch/some"
		need 'link down: the link goes down' ip -n "$B" link set "$B_DEV" down
		cp "$scratch/some" /mnt/nfs/again &
		writer=$!
		need 'link down: the link comes up' ip -n "$B" link set "$B_DEV" up
		need 'link down: the link has its address again' \
			ip -n "$B" address add "$B6/64" dev "$B_DEV" nodad
		check 'link down: the writer succeeds' writer_succeeds
		echo 3 >/proc/sys/vm/drop_caches
		check 'link down: the data is read as written' cmp "$scratch/some" /mnt/nfs/again
		# An interruption that is short enough does not end the connection.
		check 'link down: this generation or a later one is established' \
			wait_for 60 has_generation "$generation"

		before=$generation
		forget_thresholds
		need 'restarted: the server stops' in_nfs_server rpc.nfsd 0
		need 'restarted: the server starts' in_nfs_server rpc.nfsd 4
		need 'restarted: the server listens over RDMA' nfs_over_rdma
		echo 3 >/proc/sys/vm/drop_caches
		check 'restarted: the file is read as written' \
			timeout 60 cmp "$scratch/some" /mnt/nfs/again
		check 'restarted: the next generation is established' \
			wait_for 60 has_generation $((before + 1))
		check 'restarted: info has the new exchange' \
			same_client "$id" "$generation" 4096 4096 4096
	fi
	check 'lost: umount succeeds' umount /mnt/nfs
	check 'lost: no connection is left' wait_for 60 none_shown

	counter observed_refused
	before=$count
	on_a timeout -s KILL 10 mount.nfs "$B4:/" /mnt/nfs \
		-o proto=rdma,port=1,vers=4.1,soft,timeo=10,retrans=0,retry=0 >/dev/null 2>&1
	check 'a refused mount is counted' refused
}

# refused_program: whether a program that connects to a port without a listener is rejected.
refused_program() {
	local said
	said=$(on_a timeout 20 rping -c -a "$B4" -p 9 -C 1 2>&1)
	[[ $said = *RDMA_CM_EVENT_REJECTED* ]] || { echo "$said"; return 1; }
}

btf() {
	# Debian's kernel has rpcrdma as a module, which can be unloaded.
	[[ $KERNEL = stock ]] || { skip 'other BTF' 'on the stock kernel only'; return; }
	nfs_server_end
	need 'rpcrdma loaded again: it is unloaded' wait_for 20 modprobe -r rpcrdma
	need 'rpcrdma loaded again: an NFS server loads it' nfs_server
	rmdir "$traces" && trace_thresholds
	mounted 'rpcrdma loaded again' 1 4.2

	# About: the BTF of rpcrdma has members of other sizes than the module wants.
	need 'other BTF: the module is removed' wait_for 20 rmmod rpcrdma_cm
	need 'other BTF: sizes in it change' insmod "${MODULE%/*}/qemu/modules/other_btf.ko"
	at_end remove_module other_btf
	need 'other BTF: the module loads' insmod "$MODULE"
	need 'other BTF: the mount succeeds' nfs_mount 4.2 /mnt/nfs
	check 'other BTF: the values of the server are unknown' server_not_read
	members='members: BTF lacks members of the structures of NFS, so that values that NFS uses,'
	members+=' or its counters, are unknown'
	causes='causes: some causes of the ends of connections are not noticed, so that a reason in'
	causes+=' history may be a consequence'
	check 'other BTF: stats says why' observing partial "$members" "$causes"
	check 'other BTF: umount succeeds' umount /mnt/nfs
	need 'other BTF: the module is removed again' wait_for 20 rmmod rpcrdma_cm
	need 'other BTF: its sizes are restored' remove_module other_btf
	need "other BTF: the sizes of the client's counters change" \
		insmod "${MODULE%/*}/qemu/modules/other_btf.ko" structure=rpcrdma_xprt
	need 'other BTF: the module loads without them' insmod "$MODULE"
	check 'other BTF: before a mount, all is observed' observing yes
	need 'other BTF: a mount without the counters succeeds' nfs_mount 4.2 /mnt/nfs
	check 'other BTF: stats says that the counters are unknown' \
		wait_for 10 observing partial "$members" "$causes"
	check 'other BTF: umount succeeds without the counters' umount /mnt/nfs
	need 'other BTF: the module is removed without them' wait_for 20 rmmod rpcrdma_cm
	need 'other BTF: the counters are restored' remove_module other_btf

	need 'other BTF: rdma_ucm is loaded' modprobe rdma_ucm
	need 'other BTF: the sizes of rdma_ucm change' \
		insmod "${MODULE%/*}/qemu/modules/other_btf.ko" structure=ucma_context
	need 'other BTF: the module loads beside them' insmod "$MODULE"
	check 'other BTF: before a program connects, all is observed' observing yes
	need 'other BTF: a program connects to nobody' refused_program
	reason='users: BTF does not have the members of the structures of rdma_ucm, so that the'
	reason+=' users of programs are unknown, and all programs have the limit of one user'
	check 'other BTF: stats says that users are unknown' wait_for 10 observing partial "$reason"
	need 'other BTF: the module is removed once more' wait_for 20 rmmod rpcrdma_cm
	need 'other BTF: the sizes of rdma_ucm are restored' remove_module other_btf
	need 'other BTF: the module loads again' insmod "$MODULE"
	mounted 'other BTF: restored' 1 4.2

	# About: the BTF of a module that is loaded later.
	need 'rdma_ucm loaded again: it is unloaded' modprobe -r rdma_ucm
	need 'rdma_ucm loaded again: it is loaded' modprobe rdma_ucm
	need 'rdma_ucm loaded again: a program connects to nobody' refused_program
	check 'rdma_ucm loaded again: the users of its programs are known' observing yes
}

# About: programs.

by_server() {
	same_info "${ids[0]}" server_to_client_threshold=4096 remote_invalidation_in_use=no &&
		by_pieces && ((info[inline_send_in_use] >= ${#said} / 2)) &&
		deviates "$(sends_more 4096)"
}

same_program() {
	wait_for 10 has user "$1" 1 || return
	same_info "${ids[0]}" command="$2" pid="$3" role="$1" "${@:4}"
}

# client_succeeds SERVER CLIENT: whether the command CLIENT succeeds on host a, with SERVER on host
# b. These servers end after one client, successful or not, so each attempt has its own.
# shellcheck disable=SC2086 # words
client_succeeds() {
	local server
	on_b timeout 30 $1 2>&1 &
	server=$!
	until on_a timeout 10 $2; do
		kill -0 "$server" 2>/dev/null || return
	done
	wait "$server" || true
}

# look_alike: connects by a module with a handler of NFS' name.
look_alike() {
	on_a insmod "${MODULE%/*}/qemu/modules/look_alike.ko" "address=$B4" port=11 &&
		at_end remove_module look_alike
}

programs() {
	need 'another protocol: a server listens' tell 1 listen "/run/netns/$B" "$B4" 8
	say 1 accept 0123456789abcdef
	need 'another protocol: a client connects' \
		tell 2 connect "/run/netns/$A" "$B4" 8 fedcba9876543210
	need 'another protocol: the server accepts' hear 1
	check 'another protocol: neither end is shown' none_shown
	need 'another protocol: the client closes' tell 2 close
	need 'another protocol: the server closes' tell 1 close
	# A handler's name does not make a module NFS. The connection has no queue pair, which siw
	# needs.
	if [[ $TRANSPORT = rxe ]]; then
		need 'look-alike: a server listens' tell 1 listen "/run/netns/$B" "$B4" 11
		say 1 accept 0123456789abcdef
		counter observed && observed=$count
		need 'look-alike: a module connects' look_alike
		need 'look-alike: the server accepts' hear 1
		counter observed
		check_equal 'look-alike: its connection is not counted' "$observed" "$count"
		check 'look-alike: its connection is not shown' none_shown
		need 'look-alike: rpcrdma_cm is removed' wait_for 20 rmmod rpcrdma_cm
		need 'look-alike: rpcrdma_cm loads again' insmod "$MODULE"
		check 'look-alike: the probes are attached to rdma_cm' attached
		check_fails 'look-alike: no probe is attached to the other module' \
			grep -F '[look_alike]' /sys/kernel/tracing/enabled_functions
		need 'look-alike: the module is removed' remove_module look_alike
		need 'look-alike: the server closes' tell 1 close
	fi

	need 'programs: a server listens' tell 1 listen "/run/netns/$B" "$B4" 7
	say 1 accept "$(offer 16384 8192 1)"
	need 'programs: a client connects without private data' \
		tell 2 connect "/run/netns/$A" "$B4" 7 none
	need 'programs: the server accepts' hear 1
	check 'programs: the server is shown' same_program server python3 "$server_pid" \
		local_send_size=16384 local_receive_size=8192 client_to_server_threshold=1024 \
		server_to_client_threshold=1024
	counter observed && observed=$count
	note='the version of RPC-over-RDMA is not known: in version 2, a threshold below 4096 is'
	check 'programs: the client is shown' same_program client python3 "$client_pid" \
		peer_private_data=present peer_send_size=16384 peer_receive_size=8192 \
		note="$note 4096"
	of_program='the values follow from RFC 8797: what the program makes of the messages is not'
	check_equal 'programs: info says that it does not show what the program does' \
		"note: $of_program known" "$(printf '%s\n' "${lines[@]}" | grep -m1 '^note: ')"
	octets "connection/${ids[0]}/sent"
	check_equal 'programs: the client is shown to have sent nothing' '' "$octets"
	# Over siw, rping does not end.
	if [[ $TRANSPORT = rxe ]]; then
		check 'programs: rping connects beside them' wait_for 20 client_succeeds \
			"rping -s -a $B4 -p 9 -C 2" "rping -c -a $B4 -p 9 -C 2"
		check 'programs: rdma_xclient connects beside them' wait_for 20 client_succeeds \
			'rdma_xserver -p 10' "rdma_xclient -s $B4 -p 10"
		check 'programs: rping and rdma_xclient are not shown' has user client 1
		counter observed
		check_equal 'programs: rping and rdma_xclient are not counted' "$observed" "$count"
	fi
	need 'programs: the client closes' tell 2 close
	local end=(EVENT=closed REASON='disconnected by this end')
	# librdmacm first makes the queue pair fail, and siw then closes the connection.
	[[ $TRANSPORT = rxe ]] ||
		end=(EVENT=lost REASON='unknown cause: the device closed the connection')
	check "programs: the client's event has its cause" wait_for 10 \
		event ORIGIN=user ROLE=client "${end[@]}"
	check "programs: the server's event has its cause" wait_for 10 \
		event ORIGIN=user ROLE=server EVENT=lost REASON='disconnected by the peer'
	need 'programs: the server closes' tell 1 close
	check 'programs: no connection is left' wait_for 20 none_shown

	# The client sends other octets, and the server's message shows that the protocol is
	# RPC-over-RDMA.
	need 'late: a server listens' tell 1 listen "/run/netns/$B" "$B4" 6
	say 1 accept "$(offer 4096 4096 1)"
	need 'late: a client connects with other octets' \
		tell 2 connect "/run/netns/$A" "$B4" 6 0123456789abcdef
	need 'late: the server accepts' hear 1
	check 'late: the server is shown' same_program server python3 "$server_pid" \
		local_send_size=4096 peer_private_data=absent
	octets "connection/${ids[0]}/received"
	check 'late: the server shows the octets of the client' \
		test "${octets:0:16}" = 0123456789abcdef
	check 'late: the client is shown' same_program client python3 "$client_pid" \
		local_send_size=1024 peer_private_data=present
	octets "connection/${ids[0]}/sent"
	check_equal 'late: the client shows its octets' 0123456789abcdef "$octets"
	need 'late: the client closes' tell 2 close
	need 'late: the server closes' tell 1 close
	check 'late: no connection is left' wait_for 20 none_shown
}

# About: a server whose message begins at octet 1. Linux' client looks at offset 0 only, and uses
# the defaults (RFC 8797, section 5.2).

misplaced='does not look for private data at other offsets than 0, and expects up to 1024 octets'
misplaced+=' inline, where the threshold is 4096 (RFC 8797, section 5.2)'
uses_defaults() {
	wait_for 10 has nfs client 1 || return
	same_info "${ids[0]}" peer_offset=1 peer_send_size=16384 server_to_client_threshold=4096 \
		inline_send_in_use=1024 inline_receive_in_use=1024 && deviates "$misplaced"
}

other_offset() {
	need 'offset 1: a server with Receives' tell 1 receives 8 4096
	need 'offset 1: the server listens' tell 1 listen "/run/netns/$B" "$B4" 5
	say 1 accept "00$(offer 16384 16384)"
	nsenter --net="/run/netns/$A" mount.nfs "$B4:/" /mnt/nfs \
		-o proto=rdma,port=5,vers=4.2,soft,timeo=50,retrans=0,retry=0 &
	mount=$!
	need 'offset 1: the NFS client connects' hear 1
	check 'offset 1: the NFS client uses the defaults' uses_defaults
	kill -KILL "$mount"
	wait "$mount" 2>/dev/null
	need 'offset 1: the server closes' tell 1 close
	check 'offset 1: no connection is left' wait_for 60 none_shown
}

# About: a client that reads more than its Receive Size.

# longer_than LENGTH: whether the next message to the program is longer.
longer_than() {
	tell 2 receive 10000 && ((${#said} > 2 * $1)) && return
	echo "received: ${said:0:200}"
	return 1
}

too_long() {
	need 'too long: the server has a file' \
		in_nfs_server sh -c 'head -c 20000 /dev/zero >/export/long'
	need 'too long: the client has large Receives' tell 2 receives 8 16384
	need 'too long: the client connects to the NFS server' \
		tell 2 connect "/run/netns/$A" "$B4" 20049 "$(offer 4096 4096)"
	nfs_read 8000 long
	need 'too long: the client sends a READ' tell 2 send "$message"
	check 'too long: the reply is longer than the Receive Size' longer_than 8000
	ids nfs server
	check "too long: info shows the server's own limit" by_server
	need 'too long: the client closes' tell 2 close
	check 'too long: no connection is left' wait_for 20 none_shown
}

# About: why others are not observed, or not all of them.

reasons() {
	check 'stats says that everything is observed' observing yes
	need_reload max_observed=0 max_observed=0
	need 'max_observed=0: the mount succeeds' nfs_mount 4.2 /mnt/nfs
	transports
	counter observed_missed
	check_equal 'max_observed=0: each end is counted as missed' $((2 * n)) "$count"
	reason='limit_nfs: connections of NFS were left out, because there were max_observed of'
	check 'max_observed=0: stats says that connections were left out' \
		observing partial "$reason them"
	need_reload observe=0 observe=0
	check_fails 'observe=0: nothing is attached to rdma_cm' attached
	check 'observe=0: stats says that nothing is observed, and why' \
		observing no 'parameter: the module was loaded with observe=0'
	check 'observe=0: the mount is not shown' none_shown
	need 'observe=0: umount succeeds' umount /mnt/nfs

	# The search looks at 16 million numbers of the resource tracker, which takes minutes on the
	# debug kernel.
	if [[ -n ${FULL:-} && $KERNEL != debug ]]; then
		need 'high numbers: ids get higher numbers than the search looks at' \
			insmod "${MODULE%/*}/qemu/modules/high_numbers.ko"
		at_end remove_module high_numbers
		need 'high numbers: the mount succeeds' nfs_mount 4.2 /mnt/nfs
		need_reload 'high numbers'
		reason='search: connections that are older than the module were not all found'
		check 'high numbers: stats says that connections were not found' \
			wait_for 120 observing partial "$reason"
		check 'high numbers: the mount is not shown' none_shown
		need 'high numbers: the module is removed again' rmmod rpcrdma_cm
		need 'high numbers: the module loads again' insmod "$MODULE"
		check 'high numbers: unloading stops the search' timeout 2 rmmod rpcrdma_cm
		need 'high numbers: umount succeeds' umount /mnt/nfs
	fi
}

group older
group unreachable
group unconfirmed
group mounts
group traffic
group losses
group btf
program 1
server_pid=$pid
program 2
client_pid=$pid
group programs
group other_offset
group too_long
program_end 1
program_end 2
group reasons
