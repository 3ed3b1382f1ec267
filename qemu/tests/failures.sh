#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A connection that cannot be made, that is given up, or that is lost: the command fails
# with the right errno and reason, reconnecting negotiates afresh, and nothing is left.
#
# test: debug.rxe debug.siw
. ./lib.sh
. ./module.sh

# Above its timeout, a connect that fails may take this long: guests are slow.
margin_ms=1500

# fails ERRNO LINE [FROM]: whether connecting fails so, after at least FROM milliseconds,
# and not much later than its timeout of one second.
fails() {
	local start
	now_ms
	start=$now
	if put a connect "$2 timeout_ms=1000\\n"; then
		echo 'it did not fail'
		return 1
	fi
	within "${3:-0}" $((1000 + margin_ms)) "$start" || return
	same errno "$1" "$errno" && [[ $(<"$DEBUGFS/last_error") = connect:* ]]
}

# leaves_nothing NAME COMMAND...: checks COMMAND, and that nothing is left after it.
leaves_nothing() {
	check "$@"
	check "$1, and leaves nothing" wait_for 10 nothing_left 'state LISTEN'
}

# About: never established.

# mute COMMAND...: runs COMMAND while $B, a known neighbour, receives everything and sends
# nothing.
mute() {
	local status=0
	netem b loss 100% || return
	"$@" || status=$?
	netem b && return "$status"
}

# Over iWARP: a TCP server that accepts the connection, and sends nothing.
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

# A command that gets SIGINT, as by Ctrl-C. (Bash starts background commands with SIGINT
# ignored, so env sets the default.)
interrupted() {
	local process start bad=0
	# shellcheck disable=SC2016 # for the shell there
	nsenter --net="/run/netns/$A" env --default-signal=INT \
		bash -c 'echo "$1" >"$2"' - "$B4:2000 timeout_ms=60000" "$DEBUGFS/connect" &
	process=$!
	wait_for 10 newest client && wait_for 10 is_state "$id" connecting || bad=1
	kill -INT "$process"
	now_ms
	start=$now
	wait "$process"
	same status 130 "$?" || bad=1
	within 0 "$margin_ms" "$start" || bad=1
	[[ $(<"$DEBUGFS/last_error") = 'connect: interrupted' ]] && return "$bad"
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

# later FILE LINE: writes the line in the background, from a. The task is idle, so the
# loops of `crowd` on its processor hold it up.
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

# The peer accepts and closes before the client's connect has returned.
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

# last_failure is the reason why the queue pair failed, not an error that followed from it.
says_why() {
	local process others bad=0
	# The next attempt must not fail before this one's failure has been read.
	connect a "$B4:2000 reconnect=1 null=0 timeout_ms=60000" &&
		netem a loss 100% || return
	later call "connection $client null"
	wait_for 10 grep -q queue_pair "/proc/$process/stack" || bad=1
	crowd && wait_for 20 has_generation 2 || bad=1
	same last_failure 'the queue pair failed: transport retry counter exceeded' \
		"${info[last_failure]}" || bad=1
	ended
	netem a
	control a close "connection $client" && wait_for 20 none_live && return "$bad"
}

# has_generation N: in any state.
has_generation() { info "$client" && [[ ${info[generation]} = "$1" ]]; }

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
	local yes_no=(no yes)
	message "$2" "$3" "$4"
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


need_pair
need_module

need 'it listens with its defaults' serve ''
leaves_nothing 'a closed port' fails ECONNREFUSED "$B4:9"
leaves_nothing 'a closed port, to reconnect' fails ECONNREFUSED "$B4:9 reconnect=1"
leaves_nothing 'an address that no host answers for' fails EHOSTUNREACH "${B4%.*}.99:2000"
leaves_nothing 'no route' fails ENETUNREACH 192.0.2.1:2000
leaves_nothing 'no answer' mute fails ETIMEDOUT "$B4:2000" 1000
[[ $TRANSPORT = rxe ]] || leaves_nothing 'a peer that does not speak MPA' speechless
leaves_nothing 'interrupted' mute interrupted

for end in a b; do
	check "a connection to be closed by $end" connect a "$B4:2000" || continue
	[[ $end = a ]] && id=$client || id=$server
	leaves_nothing "closed by $end" both_gone "$end" close "connection $id"
done
# Not over siw, where all of this runs on one processor.
[[ $TRANSPORT = siw ]] || check 'no message arrives' says_why
check 'end the listener' serve_not
if [[ $TRANSPORT = rxe ]]; then
	need 'a program that is to close at once' program 1
	leaves_nothing 'closed by the peer at once' lost_at_once
fi

need 'it listens, says nothing' serve private=none
need 'connect, to reconnect' connect a "$B4:2000 send=131072 recv=32768 inv=1 reconnect=1 null=0"
check 'both defaults hold' same_info "$client" generation=1 peer_private_data=absent \
	{client_to_server_threshold,server_to_client_threshold}=1024 remote_invalidation=no
check 'the listener that says nothing ends' serve_not
check 'the peer ends the connection without private data' lose
check 'it is reconnecting, and knows of no peer' reconnecting 2
need 'there is another listener, with larger sizes' serve 'send=65536 recv=262144 inv=1'
check 'it is established with the larger sizes' established 2 65536 262144 1 131072 32768
check 'the listener with the larger sizes ends' serve_not
need 'there is another listener, with smaller sizes' serve 'send=2048 recv=4096'
check 'the peer ends the connection with the larger sizes' lose
check 'it is established with the smaller sizes' established 3 2048 4096 0 4096 2048
check 'the listener with the smaller sizes ends' serve_not
check 'the peer ends the connection with the smaller sizes' lose
check 'it is reconnecting' reconnecting 4
leaves_nothing 'closed while reconnecting' control a close "connection $client"
