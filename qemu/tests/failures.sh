#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A connection cannot be made, is given up, or is lost. The command fails with the right
# errno and reason, reconnecting negotiates afresh, and nothing is left.
#
# test: debug.rxe debug.siw
# soak: stock.rxe
. ./lib/lib.sh
. ./lib/module.sh

# A connect that fails may take this much longer than its timeout, because guests are slow. Over
# siw it must end before TCP gives up, after three seconds.
margin_ms=3000
[[ $TRANSPORT = rxe ]] || margin_ms=1500

# fails ERRNO LINE [FROM]: whether connect fails with ERRNO, after at least FROM milliseconds
# and not much later than its timeout of one second.
fails() {
	if timed put a connect "$2 timeout_ms=1000\\n"; then
		echo 'it did not fail'
		return 1
	fi
	within "${3:-0}" $((1000 + margin_ms)) || return
	same errno "$1" "$errno" && [[ $(<"$DEBUGFS/last_error") = connect:* ]]
}

# leaves_nothing NAME COMMAND...: checks COMMAND, and that nothing is left after it.
leaves_nothing() {
	check "$@"
	check "$1, and leaves nothing" wait_for 10 nothing_left 'state LISTEN'
}

# About: never established.

# mute COMMAND...: runs COMMAND while all packets of $B are lost. $B is a known neighbour and
# still receives.
mute() {
	local status=0
	netem b loss 100% || return
	"$@" || status=$?
	netem b && return "$status"
}

# speechless: whether connect times out at a TCP server that accepts and sends nothing.
speechless() {
	local process status=0
	mkfifo "$scratch/nothing"
	nsenter --net="/run/netns/$B" busybox nc -l -p 2100 <>"$scratch/nothing" >"$scratch/heard" &
	process=$!
	wait_for 10 listens_tcp
	fails ETIMEDOUT "$B4:2100" 1000 || status=$?
	kill "$process"
	wait "$process"
	# It has received the MPA request.
	grep -q '^MPA ID Req Frame' "$scratch/heard" && return "$status"
}

listens_tcp() { on_b ss -Htln | grep ':2100 '; }

# interrupted: whether SIGINT ends a connect. Bash starts background commands with SIGINT
# ignored, so env sets the default.
interrupted() {
	local process bad=0
	# shellcheck disable=SC2016 # for the shell there
	nsenter --net="/run/netns/$A" env --default-signal=INT \
		bash -c 'echo "$1" >"$2"' - "$B4:2000 timeout_ms=60000" "$DEBUGFS/connect" &
	process=$!
	wait_for 10 newest client && wait_for 10 is_state "$id" connecting || bad=1
	kill -INT "$process"
	timed wait "$process"
	same status 130 "$?" || bad=1
	within 0 "$margin_ms" || bad=1
	[[ $(<"$DEBUGFS/last_error") = 'connect: interrupted' ]] && return "$bad"
}

# narrow: whether connect fails while the interface of $A is too narrow for RoCE.
narrow() {
	local status=0
	ip -n "$A" link set "$A_DEV" mtu 351 || return
	fails EIO "$B4:2000" && grep -q 'no usable route' "$DEBUGFS/last_error" || status=1
	ip -n "$A" link set "$A_DEV" mtu 1500 && return "$status"
}

# About: lost.

# counts NAME=N...: whether these counters are higher by N than in ${before[...]}.
declare -A before
counts() {
	local word bad=0
	for word in "$@"; do
		counter "${word%=*}"
		same "${word%=*}" $((${before[${word%=*}]} + ${word#*=})) "$count" || bad=1
	done
	return "$bad"
}

# later FILE LINE: writes the line in the background, from a. The task has the lowest
# priority, so that the loops of `crowd` on the same processor delay it.
later() {
	nsenter --net="/run/netns/$A" taskset 1 chrt --idle 0 bash -c "echo $2 >$DEBUGFS/$1" &
	process=$!
}

crowd() {
	local n
	others=()
	for n in 1 2 3; do
		rm -f "$scratch/other$n"
		taskset 1 bash -c ": >$scratch/other$n; while :; do :; done" &
		others+=($!)
		wait_for 10 test -e "$scratch/other$n" || return
	done
}

ended() {
	kill "${others[@]}"
	wait "$process" "${others[@]}"
}

# lost_at_once: whether the counters are right if the peer accepts and closes before connect
# has returned.
lost_at_once() {
	local process others name bad=0
	for name in connects connects_failed established lost; do
		counter "$name" && before[$name]=$count
	done
	tell 1 listen "/run/netns/$B" "$B4" 2200 || return
	later connect "$B4:2200 null=0 timeout_ms=60000"
	wait_for 10 newest client && wait_for 10 is_state "$id" connecting || bad=1
	crowd && tell 1 accept none && tell 1 close && wait_for 20 counts lost=1 || bad=1
	ended
	counts connects=1 connects_failed=0 established=1 lost=1 && return "$bad"
}

# ended_at_once: whether connect fails with EIO and names the cause if the peer ends the connection
# while the CM handles its REP.
ended_at_once() {
	local process bad=0
	program 2
	tell 2 listen "/run/netns/$B" "$B4" 2300 || return
	insmod "${MODULE%/*}/qemu/modules/slow_reply.ko" || return
	at_end remove_module slow_reply
	say 2 accept none
	nsenter --net="/run/netns/$A" bash -c \
		"echo $B4:2300 null=0 timeout_ms=60000 >$DEBUGFS/connect" 2>"$scratch/refused" &
	process=$!
	wait_for 20 is_delayed && program_end 2 || bad=1
	wait "$process"
	grep -q 'Input/output error' "$scratch/refused" || bad=1
	grep -q 'the peer ended the connection at once' "$DEBUGFS/last_error" || bad=1
	[[ $bad = 0 ]] || cat "$scratch/refused" "$DEBUGFS/last_error"
	return "$bad"
}

is_delayed() { (($(</sys/module/slow_reply/parameters/delayed) > 0)); }

# says_why: whether last_failure is the reason why the queue pair failed, not an error that
# followed from it.
says_why() {
	local process others peer bad=0
	# The next attempt must not fail before this one's failure has been read.
	connect a "$B4:2000 reconnect=1 null=0 timeout_ms=60000" &&
		netem a loss 100% || return
	later call "connection $client null"
	wait_for 10 same_info "$client" sends=1 || bad=1
	crowd && wait_for 20 same_info "$client" generation=2 || bad=1
	# On a busy machine, the module's limit of 5 s may pass before the device gives up.
	[[ ${info[last_failure]} = 'the queue pair failed: an operation took too long' ]] ||
		same last_failure 'the queue pair failed: transport retry counter exceeded' \
			"${info[last_failure]}" || bad=1
	ended
	netem a
	control a close "connection $client" || bad=1
	# On a busy machine, every DREQ to the server's end may have been lost.
	for peer in "$DEBUGFS"/connection/*; do
		put b close "connection ${peer##*/}\\n"
	done
	wait_for 20 none_live && return "$bad"
}

serve() { control b listen "$B4:2000 $1"; }

# Closing a listener does not close its connections.
serve_not() { lines listeners && control b close "listener ${lines[-1]%% *}"; }

lose() { peer_of "$client" && control b close "connection $id"; }

both_gone() {
	control "$@" && wait_for 10 is_gone "$client" && wait_for 10 is_gone "$server"
}

# established GENERATION SEND RECEIVE R C2S S2C: whether the client is established in that
# generation, with a peer that offers this.
established() {
	local yes_no=(no yes) message
	message=$(offer "$2" "$3" "$4")
	wait_for 20 same_info "$client" state=established generation="$1" || return
	octets "connection/$client/received"
	same received "$message" "${octets::${#message}}" || return
	same_info "$client" peer_private_data=present peer_send_size="$2" \
		peer_receive_size="$3" remote_invalidation="${yes_no[$4]}" \
		client_to_server_threshold="$5" server_to_client_threshold="$6"
}

# reconnecting GENERATION: whether the client is reconnecting, and shows nothing of the
# peer any more.
reconnecting() {
	local limit=$((SECONDS + 10)) key bad=0
	until info "$client" && [[ ${info[state]} = reconnecting ]]; do
		((SECONDS < limit)) || { echo "not reconnecting, ${info[state]-gone}"; return 1; }
	done
	same generation "$1" "${info[generation]}" || bad=1
	for key in peer_{private_data,length,send_size,receive_size} \
		{client_to_server,server_to_client}_threshold remote_invalidation; do
		same "$key" unknown "${info[$key]}" || bad=1
	done
	octets "connection/$client/received"
	same received '' "$octets" && return "$bad"
}

never_established() {
	leaves_nothing 'a port without a listener refuses' fails ECONNREFUSED "$B4:9"
	leaves_nothing 'reconnect=1 does not retry a refusal' fails ECONNREFUSED "$B4:9 reconnect=1"
	leaves_nothing 'an address without a host is unreachable' \
		fails EHOSTUNREACH "${B4%.*}.99:2000"
	leaves_nothing 'a network without a route is unreachable' \
		fails ENETUNREACH 192.0.2.1:2000
	[[ $TRANSPORT = siw ]] || leaves_nothing 'an MTU of 351 octets is too small for RoCE' narrow
	leaves_nothing 'connect times out without a REP' mute fails ETIMEDOUT "$B4:2000" 1000
	[[ $TRANSPORT = rxe ]] || leaves_nothing 'connect times out without an MPA reply' speechless
	leaves_nothing 'SIGINT ends a connect' mute interrupted
}

closed() {
	for end in a b; do
		check "a connection that $end closes is established" \
			connect a "$B4:2000" || continue
		[[ $end = a ]] && id=$client || id=$server
		leaves_nothing "both ends are gone after $end closes" \
			both_gone "$end" close "connection $id"
	done
	# Not over siw, which does all of its work on one processor.
	[[ $TRANSPORT = siw ]] || check 'last_failure has the reason of the queue pair' says_why
}

at_once() {
	[[ $TRANSPORT = rxe ]] || { skip 'connections that are lost at once' 'RoCE only'; return; }
	need 'a program starts that closes at once' program 1
	leaves_nothing 'a connection is lost before connect returns' lost_at_once
	leaves_nothing 'a connection is ended while the REP is handled' ended_at_once
}

reconnection() {
	need 'the module listens without private data' serve private=none
	need 'a connection with reconnect=1' \
		connect a "$B4:2000 send=131072 recv=32768 inv=1 reconnect=1 null=0"
	check 'both thresholds are the default' same_info "$client" generation=1 \
		peer_private_data=absent {client_to_server,server_to_client}_threshold=1024 \
		remote_invalidation=no
	check 'the listener without private data ends' serve_not
	check 'the peer ends the connection without private data' lose
	check 'the client without private data is reconnecting' reconnecting 2
	need 'the module listens with larger sizes' serve 'send=65536 recv=262144 inv=1'
	check 'the client is established with the larger sizes' \
		established 2 65536 262144 1 131072 32768
	check 'the listener with the larger sizes ends' serve_not
	need 'the module listens with smaller sizes' serve 'send=2048 recv=4096'
	check 'the peer ends the connection with the larger sizes' lose
	check 'the client is established with the smaller sizes' \
		established 3 2048 4096 0 4096 2048
	check 'the listener with the smaller sizes ends' serve_not
	check 'the peer ends the connection with the smaller sizes' lose
	check 'the client with the smaller sizes is reconnecting' reconnecting 4
	leaves_nothing 'a client is closed while it is reconnecting' \
		control a close "connection $client"
}

need_pair
need_module
need 'the module listens with its defaults' serve ''
group never_established
group closed
check 'the listener with its defaults ends' serve_not
group at_once
group reconnection
