#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The processors of a machine stop for a time. If that time is shorter than the transport's
# retries, nothing is lost. If it is longer, the connection is lost and made again.
#
# soak: stock.rxe
# shellcheck disable=SC2154 # from lib.sh
cd "$(dirname "$0")" || exit
# shellcheck source=../pair/lib.sh
. ./lib.sh

# packets: prints how many packets the device of a has sent. sent_more COUNT: whether it has sent
# more than that.
packets() { on_a cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
sent_more() { [[ $(packets) -gt $1 ]]; }

boot_both
need 'pause: the module loads on both' both module_load
need 'pause: b listens' on_b control - listen "$B4:2000 inv=1"
need 'pause: b serves NFS' on_b nfs_server
need 'pause: a connects' on_a control - connect \
	"$B4:2000 inv=1 reconnect=1 timeout_ms=60000 rpcvers=1 null=0"
need 'pause: a shows its connection' number a module client
client=$id
need 'pause: b shows its connection' number b module server
server=$id
check 'pause: a call succeeds before b pauses' on_a control - call \
	"connection $client echo size=10000"

need 'pause: b pauses' pause b
sent=$(packets)
on_a call_later "connection $client null"
check 'pause: a sends a call' wait_for 10 sent_more "$sent"
check 'pause: the call waits while b pauses' on_a eval '! over call'
need 'pause: b resumes' resume b
check 'pause: the call ends after b resumes' on_a wait_for 20 over call
check 'pause: the call succeeds' on_a call_ends 0
check 'pause: the connection of a is still the first one' on_a same_info "$client" \
	state=established generation=1 last_failure=none
check 'pause: the connection of b is still the first one' on_b same_info "$server" \
	state=established generation=1 bad_headers=0 unexpected_messages=0

need 'pause: a mounts' on_a nfs_mount 4.2 /mnt/nfs
need 'pause: a makes data' on_a eval 'head -c 32M /dev/urandom >/tmp/data'
on_a later copy cp /tmp/data /mnt/nfs/data
need 'pause: b pauses during a copy' pause b
sent=$(packets)
check 'pause: a sends during the copy' wait_for 10 sent_more "$sent"
check 'pause: the copy waits while b pauses' on_a eval '! over copy'
need 'pause: b resumes during the copy' resume b
check 'pause: the copy ends' on_a wait_for 120 over copy
check 'pause: the copy succeeds' on_a ended copy
check 'pause: the copy is the same data' on_a eval \
	'echo 3 >/proc/sys/vm/drop_caches; cmp /tmp/data /mnt/nfs/data'

need 'pause: a pauses' pause a
check 'pause: b shows the connection as established while a pauses' on_b same_info "$server" \
	state=established
need 'pause: a resumes' resume a
check 'pause: a call succeeds after a resumes' on_a control - call \
	"connection $client echo size=10000"
check 'pause: a keeps its connection over its own pause' on_a same_info "$client" \
	state=established generation=1

need 'pause: b pauses for longer' pause b
on_a call_later "connection $client null"
check 'pause: the transport gives up' on_a wait_for 40 over call
check 'pause: the call fails with ECONNRESET' on_a call_ends ECONNRESET
need 'pause: b resumes after the longer pause' resume b
check 'pause: a reconnects' on_a wait_for 60 has_reached "$client" 2
check 'pause: a call succeeds after a has reconnected' on_a control - call \
	"connection $client echo size=10000"
check 'pause: b loses the old connection' on_b wait_for 40 is_gone "$server"
check 'pause: both close all' both control - close all
check 'pause: a unmounts' on_a umount /mnt/nfs
check 'pause: the module is removed on both' both module_unload
