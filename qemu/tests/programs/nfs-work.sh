#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: nfs-work DIR ADDRESS VERSION PATH
#
# The work of the kernel's NFS client for the suite of tools/conformance: calls and replies inline
# and in chunks, one at a time and several at once. Direct reads and writes do not stay in the page
# cache. DIR has the directory mount, and the file data, which the server has, too.
cd "$1" || exit
options=proto=rdma,port=3000,vers=$3,soft,timeo=30,retrans=1,retry=0
mount.nfs "$2:$4" mount -o "$options" || exit
trap 'umount -f mount || umount -fl mount' EXIT
for size in 2000 8000; do
	dd if=data of=mount/new bs=$size count=1 oflag=direct status=none &&
		dd if=mount/new bs=$size count=1 iflag=direct status=none |
		cmp -n $size - data || exit
done
# Less data than its Write chunk has room for.
dd if=data of=mount/short bs=2000 count=1 oflag=direct status=none &&
	dd if=mount/short bs=8000 count=1 iflag=direct status=none | cmp -n 2000 - data || exit
for n in 1 2; do
	dd if=data of=mount/new$n bs=8000 count=1 oflag=direct status=none &
done
wait
for n in 1 2; do
	dd if=mount/new$n bs=8000 count=1 iflag=direct status=none | cmp -n 8000 - data || exit
done
ls mount >/dev/null || exit
for n in 1 2 3 4; do
	dd if=mount/data of=copy$n bs=12000 count=1 iflag=direct status=none &
done
wait
for n in 1 2 3 4; do cmp data copy$n || exit; done
