#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Networks that lose, reorder, duplicate, delay and corrupt packets, links that go down, and
# hosts that disappear. Every command ends in time, with correct data or with an errno of the
# guide. When the network works again, both ends show the same values. The times are those of
# docs/admin-guide.md.
#
# soak: stock.rxe debug.rxe debug.siw
. ./lib/lib.sh
. ./lib/module.sh

seed=${SEED:-20008797}
clients=6 seconds=6
[[ -n ${FULL:-} ]] || clients=3 seconds=3

# Added to the times of the guide, because guests are slow.
margin_ms=4000
# The time after which a transport gives up a message. Queue pairs of rxe have a retry_cnt
# of 6 and a timeout of 4.096 us * 2^17. For siw, TCP is configured below.
retries_s=5
[[ $TRANSPORT = rxe ]] || retries_s=8

# Diagnostics go here, because check hides the output of checks that pass.
exec 3>&1
connects=0 calls=0 flaps=0 failed=0 slowest=0

# About: the network between the two.

# device SIDE: prints the network interface of a side.
device() { [[ $1 = a ]] && echo "$A_DEV" || echo "$B_DEV"; }

# vanish: makes both hosts lose all packets that they send. heal: ends that.
vanish() { netem a loss 100% && netem b loss 100%; }

heal() { netem a && netem b; }

pause() { read -rt "$1" -u "$silence" || true; }

# About: clients.

# tally LINE: adds up the last line of clients.py.
tally() {
	local words
	read -ra words <<<"$1"
	((connects += words[0], calls += words[1], failed += words[2]))
	((words[3] <= slowest)) || slowest=${words[3]}
}

# load PORT SECONDS null|all KEY...: runs the clients on a, and prints their results.
load() {
	local status=0
	"${python[@]}" ./programs/clients.py call "/run/netns/$A" "$B4:$1" "$clients" "${@:2}" \
		>"$scratch/load" || status=$?
	loaded
	return "$status"
}

loaded() {
	mapfile -t outcome <"$scratch/load"
	diag <"$scratch/load" >&3
	tally "${outcome[-1]}"
}

# agree SECONDS PORT...: whether both ends of each connection agree within that time: see
# clients.py.
agree() {
	local status=0
	"${python[@]}" ./programs/clients.py agree "$@" >"$scratch/agree" || status=$?
	tail -n 1 "$scratch/agree" | diag >&3
	[[ $status = 0 ]] || cat "$scratch/agree"
	return "$status"
}

# later FILE LINE: writes the line in the background. ended: waits for it, and sets $errno,
# and $took in milliseconds.
later() {
	"${python[@]}" ./programs/clients.py write "/run/netns/$A" "$@" >"$scratch/later" &
	process=$!
}

ended() {
	wait "$process"
	read -r errno took <"$scratch/later" || return
	((took <= slowest)) || slowest=$took
}

# ends ERRNO FROM TO: whether the command of later ended with ERRNO, after FROM to TO milliseconds.
ends() {
	ended || return
	echo "# $errno after $took ms" >&3
	same errno "$1" "$errno" && (($2 <= took && took <= $3 + margin_ms)) && return
	echo "$errno after $took ms, wanted $1 after $2 to $3"
	return 1
}

# gone_within SECONDS ID: waits until the connection is removed, and prints how long it took.
gone_within() {
	timed wait_for "$1" is_gone "$2" || { cat "$DEBUGFS/connection/$2/info"; return 1; }
	echo "# gone after $took ms" >&3
}

# counters_add_up: whether the counters of stats are consistent. No connection may be set up or
# closed meanwhile.
counters_add_up() {
	local -A counts=()
	local live=0 line bad=0
	lines connections
	for line in "${lines[@]}"; do
		[[ ! $line =~ ' module '.*' established ' ]] || ((++live))
	done
	lines stats
	for line in "${lines[@]}"; do counts[${line%%: *}]=${line#*: }; done
	same established $((counts[lost] + counts[closed] + live)) "${counts[established]}" || bad=1
	same 'established, by side' "${counts[established]}" \
		$((counts[connects] - counts[connects_failed] + counts[requests_accepted] -
			counts[requests_unconfirmed])) || bad=1
	same 'all that was asked for' $((connects + counts[reconnects])) "${counts[connects]}" &&
		return "$bad"
}

# stays: whether both ends are still established when rxe or TCP would have given up all
# retransmissions.
stays() {
	pause "$retries_s"
	is_state "$client" established && is_state "$server" established
}

# transmitted SIDE: sets $transmitted to the octets that its interface has sent.
transmitted() {
	transmitted=$("on_$1" ip -j -s link show "$(device "$1")" |
		grep -o '"tx":{"bytes":[0-9]*' | grep -o '[0-9]*$')
}
has_sent() { transmitted "$1" && ((transmitted > before + $2)); }

# lossy NAME TIMEOUT OPTION...: runs clients with that timeout, in milliseconds, over a
# network with these options of netem.
port=2000
lossy() {
	((++port, ++seed))
	need "$1: the module listens" \
		control b listen "$B4:$port send=65536 recv=8192 inv=1 max=1000 reverse=2"
	need "$1: the network is set up, with seeds $seed and $((seed + 1000))" impair "${@:3}"
	check "$1: each command ends in time and has an allowed result" \
		load "$port" "$seconds" all null=0 reverse=2 timeout_ms="$2"
	heal
}

impair() { netem a "$@" seed "$seed" && netem b "$@" seed "$((seed + 1000))"; }

# About: hosts that disappear.

# connected LINE: connects to the listener of b.
connected() { ((++connects)) && connect a "$B4:$1"; }

# while_connecting: over RoCE the server gets the REQ, and the client gets no REP. Over iWARP
# TCP's SYN-ACK is lost, so the server sees no request.
while_connecting() {
	local bad=0 patience=8000
	netem b loss 100% || return
	later connect "$B4:20 timeout_ms=8000"
	case $TRANSPORT in
	rxe) wait_for 10 newest server && wait_for 10 is_state "$id" connecting || bad=1 ;;
	# TCP gives up after 1 s + 2 s: see pair_make.
	siw) patience=3000 ;;
	esac
	netem a loss 100% || bad=1
	((++connects))
	ends ETIMEDOUT "$patience" "$patience" || bad=1
	# The module's time limit for the RTU is 30 s.
	[[ $TRANSPORT = siw ]] || gone_within 45 "$id" || bad=1
	heal && wait_for 20 none_live && return "$bad"
}

while_idle() {
	connected '20 null=0 reconnect=1 inv=1 timeout_ms=2000' &&
		control a call "connection $client null" && vanish && stays
}

# call_ends ERRNO FROM TO LINE: whether the client's call ends so.
call_ends() { ((++calls)) && later call "connection $client $4" && ends "${@:1:3}"; }

# first_call_fails: over RoCE a Send that is not acknowledged fails. Over iWARP it succeeds, because
# TCP buffers it.
first_call_fails() {
	case $TRANSPORT in
	rxe) call_ends ECONNRESET 0 5000 null ;;
	siw) call_ends ETIMEDOUT 2000 2000 null ;;
	esac || return
	wait_for 20 same_info "$client" generation=2 || return
	echo "# ${info[last_failure]}" >&3
	[[ $TRANSPORT = siw || ${info[last_failure]} = *': transport retry counter exceeded' ]]
}

# has_failed: whether more attempts to connect have failed than $before.
has_failed() { counter connects_failed && ((count > before)); }

# comes_back: an attempt fails before one succeeds. A server that was not told of the loss is left
# over.
comes_back() {
	local bad=0 before
	counter connects_failed && before=$count
	wait_for 45 has_failed || bad=1
	heal
	timed wait_for 45 is_generation "$client" 2 || bad=1
	echo "# established again after $took ms" >&3
	newest_peer && agree 30 20 && return "$bad"
}

# With rpcvers=1: otherwise the client would connect again when its first call, in version 2, gets
# no reply.
while_waiting() {
	local bad=0
	connected '30 null=0 rpcvers=1 timeout_ms=3000' || return
	((++calls))
	later call "connection $client null"
	wait_for 10 same_info "$client" sends=1 || bad=1
	vanish
	ends ETIMEDOUT 3000 3000 || bad=1
	is_state "$client" established || bad=1
	# The call that timed out keeps the only credit.
	call_ends EBUSY 0 0 null || bad=1
	heal
	control a close "connection $client" && wait_for 10 is_gone "$server" && return "$bad"
}

# while_transferring SIDE: the network fails while the memory of SIDE is being transferred. The
# network is slow, so that the transfer takes 10 s, and TCP has not queued all of it when it fails.
while_transferring() {
	local bad=0
	connected '20 null=0 timeout_ms=9000' && control a call "connection $client null" &&
		netem "$1" rate 400kbit && transmitted "$1" || return
	before=$transmitted
	((++calls))
	later call "connection $client echo size=524288"
	wait_for 30 has_sent "$1" 60000 || bad=1
	# At that time the server has read the call.
	[[ $1 = a ]] || same_info "$server" chunked_calls=1 || bad=1
	vanish
	# The server ends the connection in time. Its DREQ is lost.
	gone_within 25 "$server" || bad=1
	ends ETIMEDOUT 9000 9000 || bad=1
	heal
	# The client has received a retransmitted DREQ, or notices with this call.
	((++calls))
	control a call "connection $client null"
	[[ $errno = @(ECONNRESET|ENOENT|ENOTCONN) ]] || bad=1
	wait_for 20 is_gone "$client" || bad=1
	return "$bad"
}

while_closing() {
	connected '20 null=0' && vanish && close_ends "$client" && is_state "$server" established
}

# close_ends ID: whether close returns within 10 s, though the peer does not answer.
close_ends() { later close "connection $1" && ends 0 0 10000 && is_gone "$1"; }

# close_other: closes the server's end after the client's.
close_other() { close_ends "$server" && heal; }

# rxe_count COUNTER: prints a counter of a's device.
rxe_count() { cat "/sys/class/infiniband/$A_RDMA/ports/1/$1"; }
# counts_more COUNTER: whether it is higher than $before.
counts_more() { (($(rxe_count "$1") > before)); }

# begin_close: starts to close the client, and waits until the DREQ or the FIN has been sent.
begin_close() {
	local before local_end
	info "$client" && local_end=${info[local]} || return
	[[ $TRANSPORT = siw ]] || before=$(rxe_count hw_counters/sent_pkts)
	later close "connection $client"
	wait_for 10 has_disconnected
}

has_disconnected() {
	case $TRANSPORT in
	rxe) is_state "$client" closing && counts_more hw_counters/sent_pkts ;;
	siw) on_a ss -Htn state fin-wait-1 src "$local_end" | grep -q . ;;
	esac
}

# disconnection_lost: only the retransmitted DREQ or FIN tells the server of the end.
disconnection_lost() {
	local before
	connected '20 null=0' && vanish || return
	[[ $TRANSPORT = siw ]] || before=$(rxe_count cm_tx_retries/dreq)
	begin_close || return
	heal
	gone_within 20 "$server" && ends 0 0 10000 || return
	[[ $TRANSPORT = siw ]] || wait_for 10 counts_more cm_tx_retries/dreq
}

# device_goes: whether removing the device ends a close that waits for the peer.
device_goes() {
	connected '20 null=0' && vanish && begin_close &&
		in_time 5000 rdma link delete "$A_RDMA" && ends 0 0 5000 || return
	heal
	add_device a &&
		wait_for 10 is_up "$A_RDMA" && control b close "connection $server"
}

unloading() {
	control b listen "$B4:22" && connected '22 null=0' && connected '22 null=0' && vanish &&
		in_time $((10000 + margin_ms)) module_unload && heal
}

# About: links that go down and come up.

# flap SIDE SECONDS: sets the link down for that time.
flap() {
	((++flaps))
	"on_$1" ip link set "$(device "$1")" down && pause "$2" &&
		"on_$1" ip link set "$(device "$1")" up
}

# idle_flaps: with no messages under way, nothing is lost.
idle_flaps() {
	connected '40 null=0' && flap a 0.3 && flap b 0.3 && flap b $((retries_s + 1)) &&
		same_info "$client" state=established generation=1 &&
		same_info "$server" state=established && control a call "connection $client null"
}

# flaps: flaps of random length while clients call. Some are longer than the transport's
# retransmissions.
flaps() {
	local process sides=(a b) n status=0
	"${python[@]}" ./programs/clients.py call "/run/netns/$A" "$B4:40" "$clients" 15 all \
		null=0 reconnect=1 timeout_ms=3000 >"$scratch/load" &
	process=$!
	wait_for 30 are_established $((2 * clients + 2)) || status=1
	RANDOM=$seed
	for n in {1..15}; do
		if ((n % 5)); then
			flap "${sides[RANDOM % 2]}" "0.$((RANDOM % 5 + 1))"
		else
			flap "${sides[RANDOM % 2]}" $((retries_s + 1))
		fi || status=1
		pause "$((RANDOM % 2)).$((RANDOM % 10))"
	done
	wait "$process" || status=$?
	loaded
	renew && return "$status"
}

are_established() {
	lines connections
	[[ $(printf '%s\n' "${lines[@]}" | grep -c ' module .* established ') = "$1" ]]
}

# negotiates_afresh: the link goes down with a call under way. When it is up again, the
# server has another offer.
negotiates_afresh() {
	connected '50 null=0 reconnect=1 send=32768 recv=32768 inv=1 timeout_ms=2000' &&
		same_info "$client" generation=1 peer_receive_size=2048 remote_invalidation=no &&
		control a call "connection $client null" || return
	lines listeners
	control b close "listener ${lines[-1]%% *}" &&
		control b listen '0.0.0.0:50 send=16384 recv=65536 inv=1' || return
	((++flaps))
	on_b ip link set "$B_DEV" down
	((++calls))
	later call "connection $client null"
	ended
	wait_for 20 is_state "$client" reconnecting || return
	renew || return
	# The pause before an attempt is at most 30 s.
	wait_for 45 is_generation "$client" 2 || return
	same_info "$client" peer_receive_size=65536 client_to_server_threshold=32768 \
		server_to_client_threshold=16384 remote_invalidation=yes && newest_peer &&
		control a call "connection $client null"
}

# About: peers that are not the module.

# foreign: a program calls NULL of NFS as in RFC 8166, section 4.1.2, and RFC 5531, section 9. Fails
# if it gets a reply of other octets, or none at all. Calls without a reply are counted.
foreign() {
	local xid call reply answered=0 bad=0
	for xid in 1879048{001..004}; do
		((++connects))
		tell 1 connect "/run/netns/$A" "$B4" 21 none || {
			((++failed))
			tell 1 close
			continue
		}
		printf -v call %08x "$xid" 1 32 0 0 0 0 "$xid" 0 2 100003 4 0 0 0 0 0
		printf -v reply %08x "$xid" 1 8 0 0 0 0 "$xid" 1 0 0 0 0
		((++calls))
		if tell 1 send "$call" && tell 1 receive 15000 &&
			[[ $said != @(none|closed) ]]; then
			((++answered))
			same reply "$reply" "${said%% *}" || bad=1
		else
			((++failed))
		fi
		tell 1 close
	done >"$scratch/foreign"
	diag <"$scratch/foreign" >&3
	((answered)) || { echo 'no call was answered'; return 1; }
	return "$bad"
}

# some_succeeded WHAT...: whether clients.py succeeded at least once with each of these.
some_succeeded() {
	local what
	for what in "$@"; do
		grep -q "^$what: [1-9][0-9]* 0" "$scratch/load" && continue
		echo "no $what"
		return 1
	done
}

lossy_networks() {
	lossy 'no fault' 30000 delay 0
	check 'no fault: each kind of call succeeds' \
		some_succeeded connect null 'echo size='{100,1000,65536,1048576} \
		{,'reverse '}'echo size=100 count=32 jobs=8' 'reverse echo size=1000'
	lossy '1 % lost' 15000 loss 1%
	check '1 % lost: each kind of call up to 64 KiB succeeds' \
		some_succeeded connect null 'echo size='{100,1000,65536}
	timeout_ms=15000
	for percent in 5 10 20 30; do
		((percent <= 10)) || timeout_ms=5000
		lossy "$percent % lost" "$timeout_ms" loss "$percent%"
	done
	lossy 'reordered' 15000 delay 5ms reorder 25% 50%
	check 'reordered: connect and NULL succeed' some_succeeded connect null
	lossy 'duplicated' 15000 duplicate 20%
	check 'duplicated: connect and NULL succeed' some_succeeded connect null
	lossy 'delayed by 2 to 18 ms' 15000 delay 10ms 8ms
	check 'delayed by 2 to 18 ms: connect and NULL succeed' some_succeeded connect null
	lossy 'corrupted' 15000 corrupt 5%
	lossy 'all faults' 15000 loss 5% duplicate 5% corrupt 2% delay 5ms 4ms reorder 20%
	check 'the ends agree after the lossy networks' agree 90 2005 2006
	check 'the counters add up after the lossy networks' counters_add_up
	check 'all connections are closed after the lossy networks' control - close all
	check 'nothing is left of the lossy networks' wait_for 10 none_live
}

lost_hosts() {
	need 'the module listens for hosts that disappear' control b listen "$B4:20 send=8192"
	need 'the module listens without answering' control b listen "$B4:30 answer=0"
	need 'the hosts know each other' on_a ping -c 1 "$B4"
	check 'connect times out if the host disappears before its REP' while_connecting
	check 'an idle connection stays if the host disappears' while_idle
	check 'the first call after the host has disappeared fails' first_call_fails
	check 'the client reconnects when the host is back' comes_back
	check 'a call times out if the host disappears before its reply' while_waiting
	check 'a call fails if the network fails during RDMA Reads' while_transferring a
	check 'a call fails if the network fails during RDMA Writes' while_transferring b
	check 'the client closes although the host has disappeared' while_closing
	check 'the server closes although the host has disappeared' close_other
	check 'a lost DREQ is retransmitted' disconnection_lost
	[[ $TRANSPORT = siw ]] || check 'removing the device ends a close without DREP' device_goes
	check 'all connections are closed after the hosts disappeared' control - close all
	check 'nothing is left of the hosts that disappeared' wait_for 10 none_live
	check 'the counters add up after the hosts disappeared' counters_add_up
}

flapping_links() {
	need 'the module listens for links that go down' \
		control b listen '0.0.0.0:40 send=65536 recv=16384 inv=1'
	check 'an idle connection stays while links go down and come up' idle_flaps
	((++seed))
	check "calls end in time while links go down and come up, with seed $seed" flaps
	# A TCP that gives up says nothing to its peer. A server that sends nothing does not notice.
	left_over=()
	[[ $TRANSPORT = rxe ]] || left_over=(40)
	check 'the ends agree after the flaps' agree 60 "${left_over[@]}"
	check 'all connections are closed after the flaps' control - close all
	need 'the module listens before its offer changes' control b listen '0.0.0.0:50 recv=2048'
	check 'the client negotiates the new offer after the link was down' negotiates_afresh
	check 'all connections are closed after the offer has changed' control - close all
	check 'nothing is left of the links that went down' wait_for 20 none_live
}

programs() {
	((++seed))
	need 'the module listens for programs' control b listen "$B4:21"
	need 'a program starts that calls' program 1
	need '10 % lost, for user space' impair loss 10%
	need 'the program has Receives for replies' tell 1 receives 4 4096
	check "the program's replies are right, with seeds $seed and $((seed + 1000))" foreign
	heal
	check 'no connection of the program is left' wait_for 80 none_live
	if [[ $TRANSPORT = rxe ]]; then
		need "the kernel's NFS server starts" nfs_server
		need '10 % lost, for NFS' impair loss 10%
		check "calls to the kernel's NFS server end in time" \
			load 20049 "$seconds" null rpcvers=auto timeout_ms=5000
		heal
	fi
}

need_pair
need_module
# With these TCP gives up after 0.2 s + 0.4 s + ... instead of a quarter of an hour.
for side in a b; do
	echo 4 | "on_$side" tee /proc/sys/net/ipv4/tcp_retries2 >/dev/null
	# Otherwise a link that goes down loses its IPv6 addresses.
	echo 1 | "on_$side" tee /proc/sys/net/ipv6/conf/all/keep_addr_on_down >/dev/null
	at_end "on_$side" sh -c 'cd /proc/sys/net &&
		echo 15 >ipv4/tcp_retries2 && echo 0 >ipv6/conf/all/keep_addr_on_down'
done
group lossy_networks
group lost_hosts
group flapping_links
group programs
check 'the module unloads in time although peers have disappeared' unloading
echo "# tried: networks: $connects connects, $calls calls, $flaps flaps;" \
	"$failed failed as documented; slowest end $((slowest / 1000)).$((slowest % 1000 / 100)) s"
