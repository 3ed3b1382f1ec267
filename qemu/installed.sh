#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In a guest whose root is a Debian tree with the packages, for scripts/test-deb: the
# module is loaded and the tool is used, as the documents say.
cd "$(dirname "$0")/tests" || exit
. ./lib.sh
. ./module.sh

need 'the example for modprobe.d' \
	cp /usr/share/doc/rpcrdma-cm/examples/rpcrdma_cm.conf /etc/modprobe.d/
need 'NFS over RDMA is loaded' modprobe rpcrdma
check 'the installed module came with it' test -d /sys/module/rpcrdma_cm
need 'modprobe loads it' modprobe rpcrdma_cm
need_pair
need_nfs_server
need 'a mount of the packages' nfs_mount 4.2 /mnt/packages
echo text >/mnt/packages/file
# verdict LINE: whether the tool prints that line.
verdict() {
	rpcrdma-cm mounts >"$scratch/mounts"
	cat "$scratch/mounts"
	grep -qxF "$1" "$scratch/mounts"
}
check 'the installed tool says that it is fine' verdict '/mnt/packages: fine'
prometheus=/var/lib/prometheus/node-exporter
mkdir -p "$prometheus"
service=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/rpcrdma-cm-metrics.service)
check 'the command of the service' bash -c "$service"
check 'it wrote metrics' grep -qx 'rpcrdma_cm_up 1' "$prometheus/rpcrdma_cm.prom"
need 'the mount of the packages ends' nfs_unmount /mnt/packages
need 'the mount of the packages ends: its connection, too' wait_for 20 none_shown
set_sysctl rdma_max_inline_write 65536
need 'a slow mount of the packages' nfs_mount 4.2 /mnt/slow
check 'the installed tool says why it is slow' verdict \
	"/mnt/slow: the server's Receive Size is 4096, this client's rdma_max_inline_write 65536"
need 'the slow mount of the packages ends' nfs_unmount /mnt/slow
need 'modprobe removes it' wait_for 10 modprobe -r rpcrdma_cm
