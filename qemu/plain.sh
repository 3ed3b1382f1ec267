#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In a guest, for scripts/tests/plain: an ordinary user runs the suite from each tree of /share
# against the kernel's NFS server.
# shellcheck disable=SC2016 # for the shell that runs there
cd "$(dirname "$0")/tests" || exit
. ./lib/lib.sh
. ./lib/suite.sh

# in_container HOST TREE COMMAND...: runs COMMAND in that host as an ordinary user, with TREE as its
# root. Of the devices, it has those of every container, and /dev/infiniband.
in_container() {
	"on_$1" unshare --mount --pid --fork bash -euc '
		cd "$1"
		shift
		mount -t tmpfs dev dev
		mkdir dev/infiniband
		mount --bind /dev/infiniband dev/infiniband
		for device in full null random urandom zero; do
			>dev/$device
			mount --bind /dev/$device dev/$device
		done
		mount -t proc proc proc
		mount --rbind /sys sys
		exec chroot --userspec=65534:65534 . "$@"
	' container "${@:2}"
}

need_pair
need_neighbours
need 'programs can use rdma_cm in a container' modprobe rdma_ucm
need 'an NFS server for the containers' nfs_server
need 'a scratch file for the containers' scratch_file
for tree in /share/*; do
	name=${tree##*/}
	check "$name: an ordinary user lists the cases" \
		in_container a "$tree" rpcrdma-conformance server --list
	check "$name: an ordinary user finds what is known of Linux" in_container a "$tree" \
		rpcrdma-conformance server "$B4" --export scratch \
		--expect /usr/share/rpcrdma-conformance/expectations/linux.txt
done
check 'the server and the suite use one device, as in a CI' \
	in_container b "$tree" rpcrdma-conformance server "$B4" rfc8797/4.2 rfc8166/3.3.1
