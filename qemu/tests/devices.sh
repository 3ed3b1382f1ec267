#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A device with live connections is removed: its connections end, and others stay.
#
# test: debug.siw
# soak: debug.rxe
. ./lib.sh
. ./module.sh

gone() { is_gone "$1"; }
listener_gone() { ! row listeners "$1"; }

need_pair
first=${A#a}
need 'another pair' pair
second=${A#a}
need_module

use_pair "$second"
need 'a listener at the second pair' control b listen "$B4:1"
need 'a connection of the second pair' connect a "$B4:1"
other_client=$client other_server=$server

use_pair "$first"
need 'a listener at an address of the first pair' control b listen "$B4:1"
bound=2
need 'a listener at all addresses' control b listen '0.0.0.0:2'
need 'a connection by the first' connect a "$B4:1"
one_client=$client one_server=$server
need 'a connection by the second, which reconnects' connect a "$B4:2 reconnect=1"
two_client=$client two_server=$server

need "the server's device goes" rdma link delete "$B_RDMA"
check 'a connection of the removed device is gone' wait_for 10 gone "$one_server"
check 'the reconnecting connection of the removed device is gone' wait_for 10 gone "$two_server"
check "so is the peer's end" wait_for 10 gone "$one_client"
check 'the listener at its address is gone' wait_for 10 listener_gone "$bound"
check 'the listener at all addresses is not' row listeners 3
check 'a client with reconnect=1 reconnects' wait_for 10 is_state "$two_client" reconnecting
check "the second pair lives on without the server's device" is_state "$other_client" established
check "both ends live on without the server's device" is_state "$other_server" established

need "the server's device is back" on_b rdma link add "$B_RDMA" type "$TRANSPORT" netdev "$B_DEV"
check "the connection is back with the server's device" wait_for 20 is_generation "$two_client" 2

need "the client's device goes" rdma link delete "$A_RDMA"
check 'it tries again' wait_for 10 is_state "$two_client" reconnecting
need "the client's device is back" on_a rdma link add "$A_RDMA" type "$TRANSPORT" netdev "$A_DEV"
check "the connection is back with the client's device" wait_for 30 is_generation "$two_client" 3
need 'a third connection' connect a "$B4:2"

need "the server's network interface goes" ip -n "$B" link delete "$B_DEV"
check 'the connection of a network interface is gone' wait_for 20 gone "$server"
check "so is the client's end, whose interface went with it" wait_for 20 gone "$client"
check 'the second pair lives on without the network interface' is_state "$other_client" established
check 'both ends live on without the network interface' is_state "$other_server" established
check 'everything is closed at both pairs' control - close all
check 'no connection is left of the devices' wait_for 10 none_live
