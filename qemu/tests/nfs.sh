#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The ground that the other tests stand on: the kernel's own NFS client and
# server, over a pair, without the module.
#
# kernels: debug stock
# transports: rxe siw
. ./lib.sh

need 'a pair' pair
need 'they reach each other' on_a ping -c1 -W5 "$B4"
need 'over IPv6 too' on_a ping -c1 -W5 "$B6"
need 'an NFS server' nfs_server
# The older first: for the other, the server waits out its grace period.
for version in 3 4.2; do
	need "mount, version $version" nfs_mount "$version" /mnt/nfs
	check 'it is over RDMA' grep -q ' /mnt/nfs nfs.*proto=rdma' /proc/mounts
	check 'write' dd if=/dev/urandom of=/mnt/nfs/file bs=128k count=8 conv=fsync
	sum=$(sha256sum </mnt/nfs/file)
	check 'unmount' umount /mnt/nfs
	need 'mount again' nfs_mount "$version" /mnt/nfs
	check_equal 'what was written is read' "$sum" "$(sha256sum </mnt/nfs/file)"
	check 'unmount' umount /mnt/nfs
done
