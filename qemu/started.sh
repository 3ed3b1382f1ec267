#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In a guest whose root is a Debian tree with the packages, for scripts/tests/deb: that tree starts
# while it has no RDMA device. systemd is the first process of a PID namespace, and mounts what
# /etc/fstab lists. udevd finds the device, and the timer of metrics runs.
A_IS_GUEST=1
cd "$(dirname "$0")/tests" || exit
. ./lib/lib.sh

system=
# start: starts systemd. It starts neither the tree's NFS server nor the drivers of the guest.
start() {
	mkdir /sys/fs/cgroup/system || return
	(
		echo 0 >/sys/fs/cgroup/system/cgroup.procs
		exec unshare --fork --kill-child --pid --mount --mount-proc --cgroup bash -euc '
			umount /sys/fs/cgroup
			mount -t cgroup2 cgroup /sys/fs/cgroup
			mount -t tmpfs run /run
			export container=other
			exec /usr/lib/systemd/systemd systemd.show_status=no \
				systemd.condition_needs_update=no \
				systemd.mask={nfs-server,systemd-udev-trigger}.service'
	) >/dev/null 2>&1 &
	at_end kill -9 "$!"
	wait_for 10 pgrep -P "$!" && system=$(<"$scratch/waiting")
}
# in_system COMMAND...: runs COMMAND in the namespaces of that systemd.
in_system() { nsenter --target "$system" --mount --pid --cgroup "$@"; }

need_pair
need_nfs_server
need 'the client has no RDMA device' rdma link delete "$A_RDMA"
mkdir /mnt/{plain,ordered,late}
cat >/etc/fstab <<END
$B4:/ /mnt/plain nfs vers=4.2,rdma,bg 0 0
$B4:/ /mnt/ordered nfs vers=4.2,rdma,_netdev,x-systemd.after=rdma-hw.target 0 0
$B4:/ /mnt/late nfs vers=4.2,rdma,x-systemd.after=rdma-hw.target 0 0
END
mkdir /etc/systemd/system/rdma-hw.target.d
printf '[Unit]\nWants=mnt-late.mount\n' >/etc/systemd/system/rdma-hw.target.d/nfs.conf
metrics=/var/lib/prometheus/node-exporter
mkdir -p "$metrics"
# Without an ID, this is a first start, which asks questions and enables units.
need 'the tree has an ID' systemd-machine-id-setup
need 'systemd starts' start
for name in plain ordered late; do
	check "without a device, the mount of fstab fails: $name" \
		wait_for 240 in_system systemctl --quiet is-failed "mnt-$name.mount"
done
in_system journalctl --boot --unit=mnt-plain.mount >"$scratch/journal" 2>&1
check 'the journal has the words of docs/symptoms.md' grep -F \
	'mount.nfs: Protocol error: is routing being done via an interface supporting RDMA?' \
	"$scratch/journal"
need 'the client gets its RDMA device' add_device a
check 'the mount that rdma-hw.target wants is made' wait_for 120 in_system mountpoint -q /mnt/late
check_fails 'the mount that is only ordered after rdma-hw.target is not made' \
	in_system mountpoint -q /mnt/ordered
check 'the timer of metrics writes its file' wait_for 120 test -s "$metrics/rpcrdma_cm.prom"
check 'the mount that rdma-hw.target wants ends' in_system umount /mnt/late
