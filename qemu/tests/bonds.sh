#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A bond fails over, and gets the hardware address of its other leg: the connections over it end,
# those with reconnect=1 come back, and a listener at all addresses goes on.
#
# test: stock.rxe
. ./lib/lib.sh
. ./lib/module.sh

BOND4=10.78.0.1 BRIDGE4=10.78.0.2

bond_make() {
	at_end bond_delete
	modprobe bonding max_bonds=0 || return
	ip -batch - <<-END &&
		link add bond netns $A type bond mode active-backup fail_over_mac active
		link add bridge netns $B type bridge
		link add leg1 netns $A type veth peer leg1 netns $B
		link add leg2 netns $A type veth peer leg2 netns $B
	END
		ip -n "$B" -batch - <<-END &&
			link set leg1 up master bridge
			link set leg2 up master bridge
			address add $BRIDGE4/24 dev bridge
			link set bridge up
		END
		ip -n "$A" -batch - <<-END &&
			link set leg1 master bond
			link set leg2 master bond
			address add $BOND4/24 dev bond
			link set bond up type bond active_slave leg1
		END
		on_a rdma link add rxe_bond type rxe netdev bond &&
		on_b rdma link add rxe_bridge type rxe netdev bridge &&
		wait_for 10 has_gid rxe_bond && wait_for 10 has_gid rxe_bridge
}

bond_delete() {
	rdma link delete rxe_bond && rdma link delete rxe_bridge &&
		printf 'link delete %s\n' bond leg1 leg2 | ip -n "$A" -batch - &&
		ip -n "$B" link delete bridge
}

# ended_by_change ID ROLE: whether this end at the bond has recorded why it lost the connection.
ended_by_change() {
	event ID="$1" ROLE="$2" EVENT=lost REASON='the network interface has changed'
}

need_pair
need 'a bond of two legs is made' bond_make
need_module

need 'a listener at the bridge' control b listen "$BRIDGE4:1"
need 'a listener at all addresses of the host with the bond' control a listen '0.0.0.0:2'
need 'a connection from the bond, with reconnect=1' connect a "$BRIDGE4:1 reconnect=1"
one_client=$client
need 'a connection from the bond, without reconnect=1' connect a "$BRIDGE4:1"
two_client=$client
need 'a connection to the bond' connect b "$BOND4:2 reconnect=1"
three_client=$client three_server=$server

need 'the bond fails over' ip -n "$A" link set bond type bond active_slave leg2
check 'the client with reconnect=1 loses its connection' \
	wait_for 10 ended_by_change "$one_client" client
# An end waits up to ten seconds for the answer to its DREQ, which may be lost.
check 'the client without reconnect=1 ends' wait_for 20 is_gone "$two_client"
check 'the client without reconnect=1 records why' ended_by_change "$two_client" client
check 'the server at the bond ends' wait_for 20 is_gone "$three_server"
check 'the server at the bond records why' ended_by_change "$three_server" server
check 'the client with reconnect=1 connects again' wait_for 20 is_generation "$one_client" 2
check 'the listener at all addresses accepts a connection again' \
	wait_for 20 is_generation "$three_client" 2
need 'a new connection over the other leg' connect a "$BRIDGE4:1"
check 'everything is closed' control - close all
check 'nothing is left' wait_for 20 nothing_left
