#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In a guest whose root is a Debian tree with the packages, for scripts/tests/deb: the
# module is loaded and the tool is used, as the documents say.
cd "$(dirname "$0")/tests" || exit
. ./lib/lib.sh
. ./lib/module.sh

need 'the example for modprobe.d is installed' \
	cp /usr/share/doc/rpcrdma-cm/examples/rpcrdma_cm.conf /etc/modprobe.d/
need 'modprobe loads NFS over RDMA' modprobe rpcrdma
need 'loading NFS over RDMA loads the installed module' test -d /sys/module/rpcrdma_cm
check 'the installed module takes no commands' test ! -e "$DEBUGFS/probe"
need_pair
need_nfs_server
need 'a mount for the installed tool' nfs_mount 4.2 /mnt/packages
echo text >/mnt/packages/file
# verdict LINE: whether the installed tool prints that line.
verdict() {
	rpcrdma-cm mounts >"$scratch/mounts"
	cat "$scratch/mounts"
	grep -qxF "$1" "$scratch/mounts"
}
check 'the installed tool says that the mount is fine' verdict '/mnt/packages: fine'
prometheus=/var/lib/prometheus/node-exporter
mkdir -p "$prometheus"
service=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/rpcrdma-cm-metrics.service)
check "the service's command succeeds" bash -c "$service"
check "the service's command writes metrics" \
	grep -qx 'rpcrdma_cm_up 1' "$prometheus/rpcrdma_cm.prom"
need 'the mount for the installed tool ends' nfs_unmount /mnt/packages
need 'the connection of the mount for the installed tool ends' wait_for 20 none_shown
set_sysctl rdma_max_inline_write 65536
need 'a slow mount for the installed tool' nfs_mount 4.2 /mnt/slow
check 'the installed tool says why the mount is slow' verdict \
	"/mnt/slow: degraded: calls over 4096 octets go by chunks: the server's Receive Size is\
 4096, this client's rdma_max_inline_write 65536"
need 'the slow mount for the installed tool ends' nfs_unmount /mnt/slow
need 'modprobe removes the installed module' wait_for 10 modprobe -r rpcrdma_cm
need 'modprobe loads the installed module for commands' modprobe rpcrdma_cm control=1
check 'the installed module takes commands' test -e "$DEBUGFS/probe"
check 'the installed tool probes the server by the module' \
	on_a rpcrdma-cm probe --engine kernel "$B4"
check 'the installed tool probes the server' on_a rpcrdma-cm probe "$B4"
need 'modprobe removes the installed module again' wait_for 10 modprobe -r rpcrdma_cm
