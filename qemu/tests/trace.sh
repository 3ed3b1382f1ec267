#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The module's tracepoints, through tracefs, trace-cmd and perf; its objects in the
# resource tracker of the RDMA core; and its counters.
#
# test: stock.rxe
# soak: debug.rxe
. ./lib/lib.sh
. ./lib/module.sh

tracefs=/sys/kernel/tracing
# An instance of its own: trace-cmd uses the top one.
instance=$tracefs/instances/rpcrdma_cm

# expect EVENT KEY=VALUE...: adds an event that must be traced.
expected=()
expect() { expected+=("$1: ${*:2}"); }

# expect_sent ID ROLE HEX: expects that this end sent these octets.
expect_sent() { expect message_sent id="$1" role="$2" length=$((${#3} / 2)) octets="$3"; }

# expect_parsed ID ROLE ROOM OUTCOME VERSION SEND RECEIVE R: expects that this end parsed private
# data of ROOM octets with this result.
expect_parsed() {
	expect message_parsed id="$1" role="$2" outcome="$4" length="$3" offset=0 version="$5" \
		send_size="$6" receive_size="$7" remote_invalidation="$8"
}

# expect_negotiated GENERATION C2S S2C R: expects these values at both ends. GENERATION is that of
# the client. A server's connection only has generation 1.
expect_negotiated() {
	local id generation=$1
	for id in "$client" "$server"; do
		info "$id"
		expect connection_negotiated id="$id" role="${info[role]}" \
			generation="$generation" local="${info[local]}" remote="${info[remote]}" \
			client_to_server="$2" server_to_client="$3" remote_invalidation="$4"
		generation=1
	done
}

# close_client GENERATION: closes the client's end, and waits until the server's is gone.
close_client() {
	control - close "connection $client" && wait_for 10 is_gone "$server" || return
	expect connection_closed id="$client" role=client generation="$1" error=0
	# ECONNRESET
	expect connection_closed id="$server" role=server generation=1 error=-104
}

# all_traced TOOL: whether exactly the expected events were traced.
all_traced() {
	local line bad=0
	local -A seen=()
	while IFS= read -r line; do seen[$line]=1; done <"$scratch/$1"
	for line in "${expected[@]}"; do
		[[ -n ${seen[$line]-} ]] || { echo "not seen: $line"; bad=1; }
		seen[$line]=expected
	done
	for line in "${!seen[@]}"; do
		[[ ${seen[$line]} = expected ]] || { echo "not expected: $line"; bad=1; }
	done
	return "$bad"
}

# comparable: reduces each line to the event: without task, time, system and extra spaces.
comparable() { sed -nE 's/^(.*[0-9]: +| *rpcrdma_cm:)([a-z_]+): +(.*)$/\2: \3/p'; }

# perf_records: starts perf, and waits until it says through a pipe that it records.
perf_records() {
	mkfifo "$scratch/control" "$scratch/answers"
	perf record -qBa -D -1 --control "fifo:$scratch/control,$scratch/answers" \
		-e 'rpcrdma_cm:*' -o "$scratch/perf.data" >"$scratch/perf-record" 2>&1 &
	perf=$!
	exec {control}<>"$scratch/control" {answers}<>"$scratch/answers"
	echo enable >&"$control"
	read -rt 60 -u "$answers" || { cat "$scratch/perf-record"; return 1; }
}

# has_resources CM_IDS_A QPS_A CM_IDS_B QPS_B: whether the module has these numbers of objects.
has_resources() {
	local device kind found=
	resources >"$scratch/known" || return
	for device in "$A_RDMA" "$B_RDMA"; do
		for kind in cm-idn lqpn; do
			found+=" $(grep -c "^link $device/[^ ]* $kind " "$scratch/known")"
		done
	done
	[[ $found != " $*" ]] || return 0
	echo "wanted $*, found$found:"
	cat "$scratch/known"
	return 1
}

recording() { [[ $(<"$tracefs/events/rpcrdma_cm/enable") = 1 ]]; }

# About: actions, and the events that they cause. The first group that needs them makes them.

acted=
act() {
	[[ -z $acted ]] || return 0
	acted=1
	need 'a traced listener' control b listen "$B4:20049 send=32768 recv=4096 inv=1"
	need 'a traced connection' connect a "$B4:20049 send=8192 recv=16384 inv=1 reconnect=1"
	expect_sent "$client" client "$(offer 8192 16384 1)"
	expect_sent "$server" server "$(offer 32768 4096 1)"
	expect_parsed "$server" server "$request_room" present 1 8192 16384 1
	expect_parsed "$client" client "$reply_room" present 1 32768 4096 1
	expect_negotiated 1 4096 16384 1
	one=$client
	info "$one"
	addresses="src-addr ${info[local]} dst-addr ${info[remote]}"

	need 'an IPv6 listener' control b listen "[$B6]:20050 send=1024 recv=262144"
	need 'an IPv6 connection' connect a "[$B6]:20050 send=65536 recv=2048 inv=1"
	expect_sent "$client" client "$(offer 65536 2048 1)"
	expect_sent "$server" server "$(offer 1024 262144)"
	expect_parsed "$server" server "$request_room" present 1 65536 2048 1
	expect_parsed "$client" client "$reply_room" present 1 1024 262144 0
	expect_negotiated 1 65536 1024 0
	two="$client $server"

	need 'a listener with another version' \
		control b listen "$B4:20051 private=$(offer 16384 16384 1 3)"
	need 'a connection without private data' connect a "$B4:20051 private=none null=0"
	expect_sent "$client" client ''
	expect_sent "$server" server "$(offer 16384 16384 1 3)"
	expect_parsed "$server" server "$request_room" absent 0 1024 1024 0
	expect_parsed "$client" client "$reply_room" unrecognized-version 3 1024 1024 0
	expect_negotiated 1 1024 1024 0

	check 'the resource tracker has the objects of the module' has_resources 3 3 6 3
	check 'the resource tracker has the addresses of a connection' \
		grep -q "^link $A_RDMA/.* $addresses " <(rdma resource show cm_id)
	need 'the first client closes' close_client 1
	read -r client server <<<"$two"
	need 'the second client closes' close_client 1

	# A connection that the server closes is lost for the client. The next one is another
	# generation.
	client=$one
	newest_peer
	need 'the first server closes' control - close "connection $server"
	expect connection_closed id="$server" role=server generation=1 error=0
	expect connection_closed id="$client" role=client generation=1 error=-104
	need 'the client of the first server reconnects' wait_for 10 is_generation "$client" 2
	need 'the client has a new server' wait_for 10 newest_peer
	need 'the new server is established' wait_for 10 is_state "$server" established
	expect_sent "$client" client "$(offer 8192 16384 1)"
	expect_sent "$server" server "$(offer 32768 4096 1)"
	expect_parsed "$server" server "$request_room" present 1 8192 16384 1
	expect_parsed "$client" client "$reply_room" present 1 32768 4096 1
	expect_negotiated 2 4096 16384 1
	need 'the client in generation 2 closes' close_client 2
}

# About: the events that each tool has seen.

traced() {
	need 'an instance of ftrace for the events' mkdir "$instance"
	at_end rmdir "$instance"
	echo 1 >"$instance/events/rpcrdma_cm/enable"
	trace-cmd record -q -e rpcrdma_cm -o "$scratch/trace.dat" >"$scratch/record" 2>&1 &
	recorder=$!
	need 'trace-cmd records' wait_for 20 recording
	tools=(tracefs trace-cmd)
	# Not on the debug kernel, where perf takes long to start.
	if [[ $KERNEL = stock ]]; then
		tools+=(perf)
		need 'perf records' perf_records
	fi

	act
	kill -INT "$recorder" ${perf:+"$perf"}
	wait "$recorder" ${perf:+"$perf"}
	comparable <"$instance/trace" >"$scratch/tracefs"
	trace-cmd report -q -i "$scratch/trace.dat" 2>"$scratch/report" |
		comparable >"$scratch/trace-cmd"
	[[ -z ${perf:-} ]] ||
		perf script -i "$scratch/perf.data" -F event,trace 2>"$scratch/script" |
		comparable >"$scratch/perf"
	echo 0 >"$instance/events/rpcrdma_cm/enable"
	for tool in "${tools[@]}"; do
		check "$tool shows exactly the expected events" all_traced "$tool"
		mapfile -t lines <"$scratch/$tool"
		check_equal "$tool shows each event once" "${#expected[@]}" "${#lines[@]}"
	done
}

counted() {
	act
	check_fails 'an attempt is refused before the counters are read' \
		control a connect "$B4:20052"
	check 'the resource tracker has only the listeners' wait_for 10 has_resources 0 0 3 0
	check 'everything that was traced is closed' control - close all
	check 'the resource tracker has nothing left' has_resources 0 0 0 0
	wanted=(
		connects:5 connects_failed:1 reconnects:1
		requests:4 requests_accepted:4 requests_refused:0 requests_failed:0
		established:8 lost:4 closed:4
		private_data_present:6 private_data_absent:1 private_data_rejected:1
	)
	for word in "${wanted[@]}"; do
		counter "${word%:*}"
		check_equal "the counter ${word%:*} is ${word#*:}" "${word#*:}" "$count"
	done
}

need_pair
need_module

check_equal 'the module has these tracepoints' \
	'connection_closed connection_negotiated message_parsed message_sent' \
	"$(cd "$tracefs/events/rpcrdma_cm" && echo */ | tr -d /)"
zero=$(sed -n 's/: 0$//p' "$DEBUGFS/stats" | wc -l)
check_equal 'all counters begin at zero' "$(grep -vc '^observing' "$DEBUGFS/stats")" "$zero"

group traced
group counted
check 'the traced module is removed' module_unload
check_fails 'the tracepoints are removed with the module' test -e "$tracefs/events/rpcrdma_cm"
