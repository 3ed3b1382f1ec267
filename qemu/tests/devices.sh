#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A device with live connections is removed: its connections end, and others stay.
#
# test: debug.siw
# soak: debug.rxe stock.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

listener_gone() { ! row listeners "$1"; }

servers_device() {
	local one_client one_server bound
	need 'a listener at an address of the first pair' control b listen "$B4:1"
	lines listeners
	bound=${lines[-1]%% *}
	need 'a connection to the listener at an address' connect a "$B4:1"
	one_client=$client one_server=$server
	need "the server's device is removed" rdma link delete "$B_RDMA"
	check 'the server of the first connection is gone with its device' \
		wait_for 10 is_gone "$one_server"
	check 'the server of the second connection is gone with its device' \
		wait_for 10 is_gone "$two_server"
	check 'the client of the first connection is gone' wait_for 10 is_gone "$one_client"
	check "the listener at the removed device's address is gone" \
		wait_for 10 listener_gone "$bound"
	check 'the listener at all addresses stays' row listeners 2
	check 'a client with reconnect=1 reconnects' wait_for 10 is_state "$two_client" reconnecting
	check "the second pair's client stays when the server's device is removed" \
		is_state "$other_client" established
	check "the second pair's server stays when the server's device is removed" \
		is_state "$other_server" established
	need "the server's device is added again" add_device b
	check "the client reconnects to the server's new device" \
		wait_for 20 is_generation "$two_client" $((++generation))
}

clients_device() {
	need "the client's device is removed" rdma link delete "$A_RDMA"
	check 'the client is reconnecting without its device' \
		wait_for 10 is_state "$two_client" reconnecting
	need "the client's device is added again" add_device a
	check 'the client reconnects by its new device' \
		wait_for 30 is_generation "$two_client" $((++generation))
}

interface() {
	need 'a third connection' connect a "$B4:2"
	# Deleting one end of a veth deletes the other one, too.
	need "the server's network interface is deleted" ip -n "$B" link delete "$B_DEV"
	check 'the server of the third connection is gone with its interface' \
		wait_for 20 is_gone "$server"
	check 'the client of the third connection is gone with its interface' \
		wait_for 20 is_gone "$client"
	check "the second pair's client stays when the interface is deleted" \
		is_state "$other_client" established
	check "the second pair's server stays when the interface is deleted" \
		is_state "$other_server" established
}

need_pair
first=${A#a}
need 'another pair of hosts' pair
second=${A#a}
need_module

use_pair "$second"
need 'a listener at the second pair' control b listen "$B4:1"
need 'a connection of the second pair' connect a "$B4:1"
other_client=$client other_server=$server

use_pair "$first"
need 'a listener at all addresses' control b listen '0.0.0.0:2'
need 'a connection to the listener at all addresses, with reconnect=1' \
	connect a "$B4:2 reconnect=1"
two_client=$client two_server=$server generation=1
group servers_device
group clients_device
# The last one: the first pair has no link after it.
group interface
check 'everything is closed at both pairs' control - close all
check 'no connection is left of the devices' wait_for 10 none_live
