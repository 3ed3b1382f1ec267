#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Networks that lose, reorder, repeat, delay and change what is sent, links that
# go down, and hosts that disappear: all that is asked for ends in time, with data
# that is right or with an errno that the guide names, and when the network is well
# again both ends say the same. The times are those of docs/admin-guide.md.
#
# soak: stock.rxe debug.rxe debug.siw
. ./lib.sh
. ./module.sh

seed=${SEED:-20008797}
clients=6 seconds=6
[[ -n ${FULL:-} ]] || clients=3 seconds=3

# Above what the guide says, since guests are slow.
margin_ms=4000
# By which a transport has given up a message: rxe, whose queue pairs have a
# retry_cnt of 6 and a timeout of 4.096 us * 2^17; siw, as TCP is told to below.
retries_s=5
[[ $TRANSPORT = rxe ]] || retries_s=8

# For what is said of checks that hold, too.
exec 3>&1
connects=0 calls=0 flaps=0 failed=0 slowest=0

# About: the network between the two.

# device SIDE: its interface.
device() { [[ $1 = a ]] && echo "$A_DEV" || echo "$B_DEV"; }

# Both hear nothing of each other.
vanish() { netem a loss 100% && netem b loss 100%; }

heal() { netem a && netem b; }

pause() { read -rt "$1" -u "$silence" || true; }

# About: clients.

# tally LINE: what clients.py says last.
tally() {
	local words
	read -ra words <<<"$1"
	((connects += words[0], calls += words[1], failed += words[2]))
	((words[3] <= slowest)) || slowest=${words[3]}
}

# load PORT SECONDS null|all KEY...: the clients of a; prints what came out.
load() {
	local status=0
	"${python[@]}" ./clients.py call "/run/netns/$A" "$B4:$1" "$clients" "${@:2}" \
		>"$scratch/load" || status=$?
	loaded
	return "$status"
}

loaded() {
	mapfile -t outcome <"$scratch/load"
	diag <"$scratch/load" >&3
	tally "${outcome[-1]}"
}

# agree SECONDS PORT...: see clients.py.
agree() {
	local status=0
	"${python[@]}" ./clients.py agree "$@" >"$scratch/agree" || status=$?
	tail -n 1 "$scratch/agree" | diag >&3
	[[ $status = 0 ]] || cat "$scratch/agree"
	return "$status"
}

# later FILE LINE: writes it meanwhile; ended: into $errno and $took with what and
# after how many milliseconds.
later() {
	"${python[@]}" ./clients.py write "/run/netns/$A" "$@" >"$scratch/later" &
	process=$!
}

ended() {
	wait "$process"
	read -r errno took <"$scratch/later" || return
	((took <= slowest)) || slowest=$took
}

# ends ERRNO FROM TO: whether it did, after so many milliseconds.
ends() {
	ended || return
	echo "# $errno after $took ms" >&3
	same errno "$1" "$errno" && (($2 <= took && took <= $3 + margin_ms)) && return
	echo "$errno after $took ms, wanted $1 after $2 to $3"
	return 1
}

# fails FILE LINE ERRNO FROM TO
fails() { later "$1" "$2" && ends "${@:3}"; }

# gone_within SECONDS ID: and says when.
gone_within() {
	local start
	now_ms
	start=$now
	wait_for "$1" is_gone "$2" || { cat "$DEBUGFS/connection/$2/info"; return 1; }
	now_ms
	echo "# gone after $((now - start)) ms" >&3
}

# counters_add_up: with no connection about to be made or closed.
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

# Until all that rxe or TCP try again has been tried.
stays() {
	pause "$retries_s"
	is_state "$client" established && is_state "$server" established
}

# transmitted SIDE: octets that its interface has sent, into $transmitted.
transmitted() {
	transmitted=$("on_$1" ip -j -s link show "$(device "$1")" |
		grep -o '"tx":{"bytes":[0-9]*' | grep -o '[0-9]*$')
}
has_sent() { transmitted "$1" && ((transmitted > before + $2)); }
has_info() { info "$1" && [[ ${info[$2]} = "$3" ]]; }

# lossy NAME TIMEOUT OPTION...: the network is like that, and clients with that
# timeout in milliseconds go about it.
port=2000
lossy() {
	((++port, ++seed))
	need "$1: it listens" control b listen "$B4:$port send=65536 recv=8192 inv=1 max=1000"
	need "$1: the network, with seeds $seed and $((seed + 1000))" impair "${@:3}"
	check "$1: all ends in time, and right" load "$port" "$seconds" all null=0 timeout_ms="$2"
	heal
}

impair() { netem a "$@" seed "$seed" && netem b "$@" seed "$((seed + 1000))"; }

# About: hosts that disappear.

# connected LINE: to the module of b.
connected() { ((++connects)) && connect a "$B4:$1"; }

# The server has the request, the client never has the answer. TCP, of which the
# latter comes first, says nothing to a server then.
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
	# The module gives it 30 s, and looks every five.
	[[ $TRANSPORT = siw ]] || gone_within 45 "$id" || bad=1
	heal && wait_for 20 none_live && return "$bad"
}

while_idle() {
	connected '20 null=0 reconnect=1 inv=1 timeout_ms=2000' &&
		control a call "connection $client null" && vanish && stays
}

# call_ends ERRNO FROM TO LINE: whether the client's call does.
call_ends() { ((++calls)) && later call "connection $client $4" && ends "${@:1:3}"; }

# A Send is acknowledged on RoCE: not by a peer that is not there. TCP takes it.
call_fails() {
	case $TRANSPORT in
	rxe) call_ends ECONNRESET 0 5000 null ;;
	siw) call_ends ETIMEDOUT 2000 2000 null ;;
	esac || return
	wait_for 20 has_info "$client" generation 2 || return
	echo "# ${info[last_failure]}" >&3
	[[ $TRANSPORT = siw || ${info[last_failure]} = *': transport retry counter exceeded' ]]
}

# Some attempts fail before that. Who had not been told of the loss, is left over.
comes_back() {
	local start bad=0
	pause 3
	heal
	now_ms
	start=$now
	wait_for 45 is_generation "$client" 2 || bad=1
	now_ms
	echo "# established again after $((now - start)) ms" >&3
	newest_peer && agree 30 20 && return "$bad"
}

# The first call of version 2 would have another connection made, for version 1.
while_waiting() {
	local bad=0
	connected '30 null=0 rpcvers=1 timeout_ms=3000' || return
	((++calls))
	later call "connection $client null"
	wait_for 10 has_info "$client" sends 1 || bad=1
	vanish
	ends ETIMEDOUT 3000 3000 || bad=1
	is_state "$client" established || bad=1
	# It has no credits left, and so cannot find out.
	call_ends EBUSY 0 0 null || bad=1
	heal
	control a close "connection $client" && wait_for 10 is_gone "$server" && return "$bad"
}

# while_transferring SIDE: which side's memory goes over the network: slowly.
while_transferring() {
	local bad=0
	connected '20 null=0 timeout_ms=9000' && control a call "connection $client null" &&
		netem "$1" rate 400kbit && transmitted "$1" || return
	before=$transmitted
	((++calls))
	later call "connection $client echo size=262144"
	wait_for 30 has_sent "$1" 60000 || bad=1
	# By then, the call has been read.
	[[ $1 = a ]] || has_info "$server" chunked_calls 1 || bad=1
	vanish
	# It finds out in time, and says so in vain.
	gone_within 25 "$server" || bad=1
	ends ETIMEDOUT 9000 9000 || bad=1
	heal
	# Either it has been told, or now it finds out.
	((++calls))
	control a call "connection $client null"
	[[ $errno = @(ECONNRESET|ENOENT|ENOTCONN) ]] || bad=1
	wait_for 20 is_gone "$client" || bad=1
	return "$bad"
}

while_closing() {
	connected '20 null=0' && vanish && close_ends "$client" && is_state "$server" established
}

# close_ends ID: as soon as it is clear that nobody answers.
close_ends() { later close "connection $1" && ends 0 0 10000 && is_gone "$1"; }

# close_other: by when nothing is left of the first.
close_other() { close_ends "$server" && heal; }

# begin_close ID: about to be closed, and not so soon.
begin_close() {
	later close "connection $1"
	[[ $TRANSPORT = siw ]] || wait_for 10 is_state "$1" closing
}

disconnection_lost() {
	connected '20 null=0' && vanish && begin_close "$client" || return
	pause 0.5
	heal
	gone_within 20 "$server" && ends 0 0 10000
}

# The device does not wait for who does not answer.
device_goes() {
	local start
	connected '20 null=0' && vanish && begin_close "$client" || return
	now_ms
	start=$now
	rdma link delete "$A_RDMA" && within 0 5000 "$start" && ends 0 0 5000 || return
	heal
	on_a rdma link add "$A_RDMA" type "$TRANSPORT" netdev "$A_DEV" &&
		wait_for 10 is_up "$A_RDMA" && control b close "connection $server"
}

unloading() {
	local start
	connected '21 null=0' && connected '21 null=0' && vanish || return
	now_ms
	start=$now
	module_unload && within 0 $((10000 + margin_ms)) "$start" && heal
}

# About: links that go down and come up.

# flap SIDE SECONDS
flap() {
	((++flaps))
	"on_$1" ip link set "$(device "$1")" down && pause "$2" &&
		"on_$1" ip link set "$(device "$1")" up
}

# Nothing is sent that could get lost.
idle_flaps() {
	connected '40 null=0' && flap a 0.3 && flap b 0.3 && flap b $((retries_s + 1)) &&
		same_info "$client" state=established generation=1 &&
		same_info "$server" state=established && control a call "connection $client null"
}

# Short ones and some that are longer than a transport goes on trying, at random;
# meanwhile there are clients that call.
flaps() {
	local process sides=(a b) n status=0
	"${python[@]}" ./clients.py call "/run/netns/$A" "$B4:40" "$clients" 15 all \
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

# What rxe cannot send, for there is no link or no route, fails the queue pair. Also
# that of the connection manager: from then on, the device makes no connections.
renew() {
	[[ $TRANSPORT = rxe ]] || return 0
	rdma link delete "$A_RDMA" && rdma link delete "$B_RDMA" &&
		on_a rdma link add "$A_RDMA" type rxe netdev "$A_DEV" &&
		on_b rdma link add "$B_RDMA" type rxe netdev "$B_DEV" &&
		wait_for 20 is_up "$A_RDMA" && wait_for 20 is_up "$B_RDMA"
}

are_established() {
	lines connections
	[[ $(printf '%s\n' "${lines[@]}" | grep -c ' module .* established ') = "$1" ]]
}

# It goes down with a call under way, and the server is another one when it is up.
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
	on_b ip link set "$B_DEV" up && renew || return
	# After 30 s at the latest it tries again.
	wait_for 45 is_generation "$client" 2 || return
	same_info "$client" peer_receive_size=65536 client_to_server_threshold=32768 \
		server_to_client_threshold=16384 remote_invalidation=yes && newest_peer &&
		control a call "connection $client null"
}

# About: who is not the module.

# NULL of NFS by RFC 8166, section 4.1.2, and RFC 5531, section 9; and its reply.
foreign() {
	local xid call reply bad=0
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
			same reply "$reply" "${said%% *}" || bad=1
		else
			((++failed))
		fi
		tell 1 close
	done >"$scratch/foreign"
	diag <"$scratch/foreign" >&3
	return "$bad"
}

# some_succeeded WHAT...: of each of these that clients.py does.
some_succeeded() {
	local what
	for what in "$@"; do
		grep -q "^$what: [1-9][0-9]* 0" "$scratch/load" && continue
		echo "no $what"
		return 1
	done
}

need_pair
need_module
# So that TCP gives up after 0.2 s + 0.4 s + ... and not after a quarter of an hour.
for side in a b; do
	echo 4 | "on_$side" tee /proc/sys/net/ipv4/tcp_retries2 >/dev/null
	# A link that goes down takes other addresses with it.
	echo 1 | "on_$side" tee /proc/sys/net/ipv6/conf/all/keep_addr_on_down >/dev/null
	at_end "on_$side" sh -c 'cd /proc/sys/net &&
		echo 15 >ipv4/tcp_retries2 && echo 0 >ipv6/conf/all/keep_addr_on_down'
done

lossy 'nothing' 30000 delay 0
check '... and succeeds' some_succeeded connect null 'echo size='{100,1000,65536,1048576}
lossy '1 % lost' 15000 loss 1%
check '... and succeeds, too' some_succeeded connect null 'echo size='{100,1000,65536}
timeout_ms=15000
for percent in 5 10 20 30; do
	((percent <= 10)) || timeout_ms=5000
	lossy "$percent % lost" "$timeout_ms" loss "$percent%"
done
lossy 'reordered' 15000 delay 5ms reorder 25% 50%
lossy 'repeated' 15000 duplicate 20%
lossy 'delayed, by more or less' 15000 delay 10ms 8ms
lossy 'changed' 15000 corrupt 5%
lossy 'all of that' 15000 loss 5% duplicate 5% corrupt 2% delay 5ms 4ms reorder 20%
check 'the ends agree after the lossy networks' agree 90 2005 2006
check 'the counters add up after the lossy networks' counters_add_up
check 'all are closed after the lossy networks' control - close all
check 'nothing is left of the lossy networks' wait_for 10 none_live

need 'it listens for hosts that disappear' control b listen "$B4:20 send=8192"
need 'it listens, and does not answer' control b listen "$B4:30 answer=0"
need 'they know each other' on_a ping -c 1 "$B4"
check 'a host disappears before it answers a request' while_connecting
check 'a host disappears, and nobody asks' while_idle
check '... until there is a call' call_fails
check '... and it is back' comes_back
check 'a host disappears before it answers a call' while_waiting
check 'a host disappears while it is read from' while_transferring a
check 'a host disappears while it is written to' while_transferring b
check 'a host disappears, and the connection is closed' while_closing
check '... by the other one, too' close_other
check 'a disconnection is lost, and said again' disconnection_lost
[[ $TRANSPORT = siw ]] || check 'a disconnection is lost, and then the device' device_goes
check 'all are closed after the hosts disappeared' control - close all
check 'nothing is left of the hosts that disappeared' wait_for 10 none_live
check 'the counters add up after the hosts disappeared' counters_add_up

need 'it listens for links that go down' control b listen '0.0.0.0:40 send=65536 recv=16384 inv=1'
check 'links go down and come up, and nobody talks' idle_flaps
((++seed))
check "links go down and come up, with seed $seed" flaps
check 'the ends agree after the flaps' agree 60
check 'all are closed after the flaps' control - close all
need 'it listens, and is going to be another' control b listen '0.0.0.0:50 recv=2048'
check 'a link goes down, and the server is another one' negotiates_afresh
check 'all are closed after the server has changed' control - close all
check 'nothing is left of the links that went down' wait_for 20 none_live

((++seed))
need 'it listens for programs' control b listen "$B4:21"
need 'a program that calls' program 1
need '10 % lost, for user space' impair loss 10%
need 'it has room for replies' tell 1 receives 4 4096
check "user space's calls, with seeds $seed and $((seed + 1000))" foreign
heal
check 'all that it left is gone' wait_for 80 none_live
if [[ $TRANSPORT = rxe ]]; then
	need "the kernel's NFS server" nfs_server
	need '10 % lost, for NFS' impair loss 10%
	check 'calls to it' load 20049 "$seconds" null rpcvers=auto timeout_ms=5000
	heal
fi
check 'unloading, with peers that have disappeared' unloading
echo "# tried: networks: $connects connects, $calls calls, $flaps flaps;" \
	"$failed failed as documented; slowest end $((slowest / 1000)).$((slowest % 1000 / 100)) s"
