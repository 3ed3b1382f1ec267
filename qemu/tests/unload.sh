#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The module can be unloaded at any moment, except while one of its files is open. Nothing of it
# is left then. Unloading waits for what the kernel may still use.
#
# test: debug.rxe stock.rxe
# soak: debug.siw arm64.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

# check_objects NAME: checks that the devices have the same objects as before the module was loaded.
check_objects() {
	check "$1: the resource tracker has nothing left" wait_for 30 has_objects "$before"
}

# unload NAME: unloads the module, and checks that nothing is left.
unload() {
	unload_beside "$1"
	check_objects "$1"
}

# unload_beside NAME: the same beside a program, which has objects. When it has ended, the caller
# calls check_objects.
unload_beside() {
	check "$1: the module unloads" rmmod rpcrdma_cm || { dmesg | tail -n 20 | diag; exit 1; }
	check "$1: no file is left" test ! -e "$DEBUGFS"
}

load() { need "$1: the module loads" insmod "$MODULE"; }

# keep_asking: starts a client that is not the module. It connects to the module as fast as it can,
# and goes on when connections end.
keep_asking() {
	"${python[@]}" ./programs/peer.py >"$scratch/asker" 2>&1 < <(
		while printf '%s\n' "connect /run/netns/$A $B4 7 none" close; do :; done
	) &
	asker=$!
	at_end stop_asking
}

stop_asking() {
	kill "$asker"
	wait "$asker" 2>/dev/null || true
}

# lose_answers: from now on all packets from $B are lost.
lose_answers() { netem b loss 100%; }
find_answers() { netem b; }

# says TEXT: whether the kernel's log has the text.
says() { dmesg | grep -q "$1"; }

# About: at any moment.

idle() {
	load idle
	unload idle
}

listening() {
	load listening
	need 'listening: at one address' control b listen "$B4:1"
	need 'listening: at all addresses' control b listen '[::]:2'
	unload listening
}

connected() {
	local n
	load connected
	need 'connected: a listener' control b listen "$B4:1"
	for n in 1 2 3 4; do
		need "connected: connection $n" \
			connect a "$B4:1 recv=262144 inv=1 reconnect=$((n % 2))"
	done
	unload connected
}

has_request() { counter requests && ((count > 0)); }

setting_up() {
	local slow_setup=${MODULE%/*}/qemu/modules/slow_setup.ko
	[[ $TRANSPORT = rxe ]] ||
		{ skip 'setting up' 'siw sets connections up where requests arrive'; return; }
	load 'setting up'
	need 'setting up: a listener' control b listen "$B4:7"
	need 'setting up: it takes long' \
		on_b insmod "$slow_setup" netdev="$B_DEV" milliseconds=12000
	at_end remove_module slow_setup
	on_a timeout 60 rping -c -a "$B4" -p 7 -C 1 >/dev/null 2>&1 &
	asker=$!
	need 'setting up: a request has arrived' wait_for 20 has_request
	unload_beside 'setting up'
	check 'setting up: the log says which listener unloading waits for' \
		says 'closing listener 1 waits for the requests that it accepts'
	wait "$asker"
	remove_module slow_setup
	check_objects 'setting up'
}

reconnecting() {
	load reconnecting
	need 'reconnecting: a listener' control b listen "$B4:1"
	need 'reconnecting: a connection' connect a "$B4:1 reconnect=1 timeout_ms=60000"
	need 'reconnecting: the listener is closed' control - close 'listener 1'
	need 'reconnecting: the server closes' control - close "connection $server"
	need 'reconnecting: the client is reconnecting' \
		wait_for 10 is_state "$client" reconnecting
	unload reconnecting
}

client_mid_handshake() {
	load 'client mid-handshake'
	need 'client mid-handshake: a listener' control b listen "$B4:1"
	need 'client mid-handshake: a connection' connect a "$B4:1 reconnect=1 timeout_ms=60000"
	need 'client mid-handshake: the listener is closed' control - close 'listener 1'
	need 'client mid-handshake: the server closes' control - close "connection $server"
	need 'client mid-handshake: the client is reconnecting' \
		wait_for 10 is_state "$client" reconnecting
	lose_answers
	need 'client mid-handshake: the client is connecting' \
		wait_for 10 is_state "$client" connecting
	unload 'client mid-handshake'
	find_answers
}

has_server() { newest server && is_state "$id" connecting; }

server_mid_handshake() {
	[[ $TRANSPORT = rxe ]] || { skip 'server mid-handshake' 'MPA has no RTU'; return; }
	load 'server mid-handshake'
	need 'server mid-handshake: a listener' control b listen "$B4:7"
	on_a ping -c1 -W5 "$B4" >/dev/null
	lose_answers
	on_a timeout 20 rping -c -a "$B4" -p 7 -C 1 >/dev/null 2>&1 &
	asker=$!
	need 'server mid-handshake: the server is connecting' wait_for 20 has_server
	unload_beside 'server mid-handshake'
	stop_asking
	find_answers
	check_objects 'server mid-handshake'
}

# rests: whether unloading uses less than half of a processor for two seconds.
rests() {
	local from to
	read -ra from <"/proc/$unloading/stat" && sleep 2 &&
		read -ra to <"/proc/$unloading/stat" || return
	# The time in the kernel, in hundredths of a second.
	echo "$((to[14] - from[14])) of 200"
	((to[14] - from[14] < 100))
}

peer_gone() {
	local unloading
	[[ $TRANSPORT = rxe ]] ||
		{ skip 'peer gone' 'over iWARP, unloading does not wait for the peer'; return; }
	load 'peer gone'
	need 'peer gone: a listener' control b listen "$B4:1"
	need 'peer gone: a connection' connect a "$B4:1 null=0"
	lose_answers
	env --default-signal=INT rmmod rpcrdma_cm &
	unloading=$!
	need 'peer gone: unloading has begun' \
		wait_for 10 grep -qF '[rpcrdma_cm]' "/proc/$unloading/stack"
	need 'peer gone: a signal arrives' kill -INT "$unloading"
	check 'peer gone: unloading waits in spite of it, and rests' rests
	check 'peer gone: the log says which connection unloading waits for' \
		wait_for 4 says "unloading waits for connection $client\$"
	wait "$unloading"
	check_equal 'peer gone: the signal ends rmmod' 130 "$?"
	check 'peer gone: no file is left' test ! -e "$DEBUGFS"
	check_objects 'peer gone'
	find_answers
}

# asked N: whether N requests have arrived.
asked() { counter requests && ((count >= $1)); }

stormed() {
	local n
	keep_asking
	for n in 1 2 3; do
		load "stormed $n"
		need "stormed $n: a listener" control b listen "$B4:7"
		need "stormed $n: peers connect" wait_for 120 asked $((2 * n))
		unload_beside "stormed $n"
	done
	stop_asking
	check_objects stormed
}

# About: what the kernel may still use.

keep() { insmod "${MODULE%/*}/qemu/modules/keep_hold.ko" && at_end remove_module keep_hold; }
waits() { grep -q shim_unload_wait "/proc/$unloading/stack"; }

forgotten() {
	local unloading
	load forgotten
	need 'forgotten: a listener' control b listen "$B4:1"
	need 'forgotten: a connection' connect a "$B4:1"
	need 'forgotten: the next hold that ends is kept' keep
	need 'forgotten: everything is closed' control - close all
	need 'forgotten: nothing is left' wait_for 10 nothing_left
	check_equal 'forgotten: a hold is kept' 1 "$(</sys/module/keep_hold/parameters/kept)"
	rmmod rpcrdma_cm &
	unloading=$!
	check 'forgotten: unloading waits' wait_for 20 waits
	check 'forgotten: the log says that unloading waits for one object' wait_for 10 \
		says 'unloading waits for 1 ids, queue pairs, work queues, regions and files'
	need 'forgotten: the hold ends' remove_module keep_hold
	check 'forgotten: the module unloads' wait "$unloading"
	check_objects forgotten
}

# About: open files.

can_read() { head -c1 <&"$fd"; }

file_open() {
	local file fd
	load 'file open'
	need 'file open: a listener' control b listen "$B4:1"
	need 'file open: a connection' connect a "$B4:1"
	for file in stats connections connect "connection/$client/info" \
		"connection/$server/received"; do
		if [[ $file = connect ]]; then
			exec {fd}>"$DEBUGFS/$file"
		else
			exec {fd}<"$DEBUGFS/$file"
		fi
		rmmod rpcrdma_cm 2>"$scratch/rmmod"
		check "file open: $file keeps the module" grep -q 'in use' "$scratch/rmmod"
		exec {fd}>&-
	done
	exec {fd}<"$DEBUGFS/connection/$client/info"
	need 'file open: the connection is closed' control - close "connection $client"
	check_fails 'file open: the open file of a closed connection cannot be read' can_read
	exec {fd}>&-
	unload 'file open'
}

need_pair
modprobe -a rdma_cm 2>/dev/null
at_end module_unload
need 'the resource tracker counts objects' rdma resource show
before=$(object_counts)
group idle
group listening
group connected
group setting_up
group forgotten
group file_open
group reconnecting
group client_mid_handshake
group server_mid_handshake
group peer_gone
group stormed
