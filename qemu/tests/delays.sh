#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Peers that do not answer delay no connection of others: neither those of NFS over another device,
# nor those of the module.
#
# test: debug.siw stock.rxe
. ./lib/lib.sh
. ./lib/module.sh

# How long a connection may take to be made again, in addition to the time that it takes otherwise.
margin_ms=10000
# How many clients have a server that is gone. A work queue of the kernel runs 2048 works at a time,
# so that only more of them show works that sleep. 5000 need a guest with more memory than 1 GiB.
many=100
# How many clients have a server that does not answer: fewer than first calls run at a time, 2048.
silent=200
# Over soft-iWARP, on the debug kernel, there is no memory for more.
full=
[[ -z ${FULL:-} || $TRANSPORT = siw ]] || full=1 many=2200 silent=2000
# Diagnostics go here, because check hides the output of checks that pass.
exec 3>&1

# About: NFS over soft-RoCE, beside clients of the module over soft-iWARP.

# over_siw COMMAND...: runs COMMAND with the pair over soft-iWARP as the current one.
over_siw() {
	# shellcheck disable=SC2034 # set by use_pair
	local TRANSPORT=siw A B A_DEV B_DEV A_RDMA B_RDMA A4 B4 A6 B6
	use_pair "$siw"
	"$@"
}

# mute: makes the host of the server lose all packets that it sends. It stays a neighbour.
mute() {
	local mac
	read -r _ _ mac _ < <(ip -n "$B" -br link show dev "$B_DEV")
	ip -n "$A" neighbour replace "$B4" lladdr "$mac" dev "$A_DEV" nud permanent &&
		netem b loss 100%
}

# syn_retries N: how often TCP retransmits a SYN over soft-iWARP: see pair_make.
syn_retries() { echo "$1" >/proc/sys/net/ipv4/tcp_syn_retries; }

# gives_up: whether a client gives up a host that does not answer. The id stays until TCP has given
# up, too.
gives_up() {
	put a connect "$B4:2000 timeout_ms=1000\\n"
	same errno ETIMEDOUT "$errno"
}

# closing N: whether N connections wait until their ids can be destroyed.
closing() {
	local count
	count=$(grep -c ' closing ' "$DEBUGFS/connections")
	same 'connections that are closing' "$1" "$count"
}

# remount: restarts the NFS server, and waits until the mount works again. Sets $took.
remount() {
	in_nfs_server rpc.nfsd 0 && nfs_start 20049 && timed timeout 120 stat /mnt/nfs || return
	echo "# the mount was back after $took ms" >&3
}

# not_later MILLISECONDS: whether the mount is back after at most that time and a margin.
not_later() { remount && within 0 $(($1 + margin_ms)); }

beside_siw() {
	local siw=${A#a}
	need 'a pair over soft-RoCE' pair rxe
	need_nfs_server
	need 'the mount succeeds' nfs_mount 3 /mnt/nfs actimeo=0
	need 'the mount is made again without others' remount
	usual=$took
	need 'the host of a server over soft-iWARP does not answer' over_siw mute
	need 'TCP gives up after 31 s' syn_retries 4
	for client in 1 2 3 4; do
		check "no answer to SYN: client $client gives up" over_siw gives_up
	done
	check 'no answer to SYN: TCP has not given up' closing 4
	check 'no answer to SYN: the mount is back in its usual time' not_later "$usual"
	check 'no answer to SYN: TCP still has not given up' closing 4
	need 'TCP gives up after 3 s' syn_retries 1
	need 'the host answers again' over_siw netem b
	check 'no answer to SYN: the clients are removed' wait_for 60 none_live
	check 'no answer to SYN: umount succeeds' umount /mnt/nfs
	# While the pair over soft-RoCE is the current one.
	nfs_server_end
	use_pair "$siw"
	TRANSPORT=siw
}

# About: NFS and requests for large connections, on one device.

# available: sets $available to the memory that is left, in KiB.
available() { available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo); }

# fill: leaves 200 MiB of memory. 160 of them are that of a file, which is freed last: a Receive
# takes 64 pages in a row.
fill() {
	available && mkdir -p "$scratch/fill" && mount -t tmpfs -o size=100% fill "$scratch/fill" &&
		at_end eval "umount $scratch/fill || true" &&
		head -c "$((available - 200 * 1024))K" /dev/zero >"$scratch/fill/zeros" &&
		head -c 160M /dev/zero >"$scratch/fill/room" && rm "$scratch/fill/room"
}

# taken MIB: whether so much memory has been taken since $before_kib was noted.
taken() {
	available
	local taken_kib=$((before_kib - available))
	echo "# $((taken_kib / 1024)) MiB are taken, $((available / 1024)) MiB are left" >&3
	((taken_kib >= $1 * 1024))
}

# of_requests: sets ${counts[...]} to the counters of requests.
declare -A counts
of_requests() {
	local name
	for name in requests requests_{accepted,failed,refused}; do
		counter "$name" && counts[$name]=$count
	done
}

# waiting N: whether N requests have arrived since $before, and one of them is not answered yet.
waiting() {
	of_requests
	echo "requests: ${counts[*]}"
	((counts[requests] >= before + $1 &&
		counts[requests] > counts[requests_accepted] + counts[requests_failed] +
		counts[requests_refused]))
}

all_answered() { of_requests && ! waiting 0; }

beside_requests() {
	need_nfs_server
	need 'the mount succeeds' nfs_mount 3 /mnt/nfs actimeo=0
	need 'the mount is made again without others' remount
	usual=$took
	# 129 Receives of 256 KiB for each connection.
	need "a listener on the device of the mount, with 32 MiB a connection" \
		control a listen "$A4:2002 recv=262144 credits=64 reverse=64"
	modprobe -q rdma_ucm
	program 1
	need 'the memory is filled' fill
	need 'connections take long to be set up' on_a insmod \
		"${MODULE%/*}/qemu/modules/slow_setup.ko" netdev="$A_DEV" milliseconds=15000
	at_end remove_module slow_setup
	of_requests && before=${counts[requests]}
	available && before_kib=$available
	need 'four requests are sent' say 1 storm mute 4 "/run/netns/$B" "$A4" 2002
	check 'large requests: they wait' wait_for 20 waiting 4
	check 'large requests: two of them or more have their memory' wait_for 10 taken 64
	check 'large requests: the mount is back in its usual time' not_later "$usual"
	check 'large requests: they have not been answered meanwhile' waiting 4
	check 'large requests: they still have their memory' taken 64
	check 'large requests: all are answered' wait_for 60 all_answered
	need 'connections are set up at once again' remove_module slow_setup
	check 'large requests: the memory is freed' umount "$scratch/fill"
	check 'large requests: umount succeeds' umount /mnt/nfs
	check 'large requests: the peer has sent them all' hear 1
	program_end 1
	check 'large requests: all connections are closed' control - close all
	check 'large requests: none is left' wait_for 60 none_live
}

# About: clients of the module alone.

# servers PORT: sets ${servers[@]} to the connections that were accepted at PORT.
servers() {
	local line
	servers=()
	lines connections
	for line in "${lines[@]}"; do
		[[ ! $line =~ ^([0-9]+)' '+module' '+server' '.*":$1 " ]] ||
			servers+=("${BASH_REMATCH[1]}")
	done
}

# many_clients: connects many clients, to a listener that is closed afterwards, like their
# connections. None of them has a server any more.
many_clients() {
	local n
	for ((n = 0; n < many; n++)); do
		control a connect "$B4:2000 reconnect=1 null=0 credits=1" || return
	done
	servers 2000
	same 'connections of the listener' "$many" "${#servers[@]}" || return
	control b close "listener $1" || return
	for n in "${servers[@]}"; do control b close "connection $n" || return; done
}

# soon WHAT COMMAND...: whether COMMAND succeeds soon. Prints WHAT, and how long COMMAND took.
soon() {
	timed "${@:2}" || return
	echo "# $1 after $took ms" >&3
	within 0 "$margin_ms"
}

# is_back N: whether the client with a server is established again soon after a loss.
is_back() { soon 'the client was back' lose "$1"; }
lose() {
	control b close "connection $server" && wait_for 60 is_generation "$client" "$1" &&
		newest_peer
}

dead_servers() {
	local gone
	need 'a listener that will be gone' control b listen "$B4:2000 max=$many"
	lines listeners
	gone=${lines[-1]%% *}
	need 'a listener that stays' control b listen "$B4:2001"
	need 'a client with a server that stays' connect a "$B4:2001 reconnect=1 null=0"
	check 'the client is back after a loss' is_back 2
	need "$many clients lose their server" many_clients "$gone"
	check 'dead servers: the client with a live one is back after a loss' is_back 3
	check 'dead servers: and again' is_back 4
	check 'everything is closed' control - close all
	check 'nothing is left' wait_for 60 nothing_left
}

# About: clients whose servers are there, and do not answer NULL.

# first_call STATE SENDS: whether the first call of $client is in that state.
first_call() { same_info "$client" rpc_null="$1" sends="$2"; }

# silent_clients N: connects N clients to the server that answers no call. Sets $client to the last.
silent_clients() {
	local n
	for ((n = 0; n < $1; n++)); do
		control a connect "$B4:2010 credits=1 timeout_ms=600000" || return
	done
	newest client && client=$id && wait_for 120 is_state "$client" established
}

# is_answered: whether a new client of the server that answers has the answer to NULL soon.
is_answered() { soon 'NULL was answered' connect_and_call; }
connect_and_call() { connect a "$B4:2011" && wait_for 60 first_call SUCCESS 1; }

# calls_meanwhile: whether a client whose first call has not begun can make calls all the same.
calls_meanwhile() {
	soon 'a call was answered' control a call "connection $client null" &&
		same_info "$client" rpc_null=pending
}

# close_silent N: closes the first N of these clients.
close_silent() {
	local n
	ids_of module client established
	# Behind the first client of is_answered.
	for n in "${ids[@]:1:$1}"; do control a close "connection $n" || return; done
}

silent_servers() {
	local live
	need 'a listener that does not answer' control b listen "$B4:2010 max=4096 answer=0"
	need 'a listener that answers' control b listen "$B4:2011"
	check 'NULL is answered soon' is_answered
	need "$silent clients of a server that does not answer connect" silent_clients "$silent"
	check 'silent servers: the last of these calls is under way' \
		wait_for 10 first_call pending 1
	check 'silent servers: NULL at the one that answers is answered soon' is_answered
	if [[ -n $full ]]; then
		need 'more clients than first calls at a time' silent_clients 200
		check 'too many silent servers: the last call has not begun' first_call pending 0
		need 'too many silent servers: a client of the one that answers is established' \
			connect a "$B4:2011"
		live=$client
		sleep 5
		check 'too many silent servers: its first call waits' first_call pending 0
		check 'too many silent servers: its other calls are answered soon' calls_meanwhile
		need 'too many silent servers: 200 clients of theirs end' close_silent 200
		check 'fewer silent servers: its first call is answered' \
			wait_for 20 same_info "$live" rpc_null=SUCCESS
	fi
	check 'silent servers: everything is closed' control - close all
	check 'silent servers: nothing is left' wait_for 120 nothing_left
}

need_pair
need_module
if [[ $TRANSPORT = siw ]]; then group beside_siw; else group beside_requests; fi
group dead_servers
group silent_servers
