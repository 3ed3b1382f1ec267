#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: module-work ADDRESS:PORT RPCVERS [INV]
#
# The work of the module's client for the suite of tools/conformance. The option reverse= makes it
# call BIND. INV is 0 to clear R.
cd /sys/kernel/debug/rpcrdma_cm || exit
keys="send=4096 recv=4096 inv=${3:-1} credits=8 reverse=4 reconnect=1"
echo "$1 rpcvers=$2 $keys" >connect || exit
id=$(awk '$2 == "module" && $3 == "client" { id = $1 } END { print id }' connections)
trap 'echo "connection $id" >close' EXIT
for words in 'echo size=100' 'echo size=2000' 'echo size=8000' 'null chunks=1' \
	'echo size=100 count=16 jobs=8' 'echo size=8000 count=2 jobs=2' null; do
	for _ in {1..50}; do
		echo "connection $id $words" >call && continue 2
		# The module reconnects. It retransmits no call, neither a lost one nor one that
		# timed out.
		grep -qE -e 'disconnected by the peer|not connected|queue pair failed' \
			-e 'no reply in time' last_error ||
			break
		sleep 0.2
	done
	cat last_error
	exit 1
done
