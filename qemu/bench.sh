#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: what it costs NFS over RDMA to be observed. Mounts, and writes
# and reads through a mount, without the module, with observe=0 and with
# observe=1, in turn. Prints "MODE MOUNT_MS WRITE_MIB_S READ_MIB_S" for each.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=qemu/hosts.sh
. ./hosts.sh

rounds=$1 mounts=5 mib=48
modes=(absent observe=0 observe=1)

trap 'clean_up echo "could not clean up:" >&2' EXIT
trap 'exit 130' INT TERM

now() { echo "${EPOCHREALTIME/./}"; }

load() {
	[[ $1 = absent ]] || insmod "$MODULE" "$1"
}

# rate COMMAND...: in MiB/s
rate() {
	local start took
	start=$(now)
	"$@" 2>/dev/null
	took=$(($(now) - start))
	echo $((mib * 1000000 / took))
}

mount_nfs() { on_a mount -t nfs -o proto=rdma,port=20049,vers=4.2 "$B4:/" /mnt/nfs; }

measure() {
	local n start mount write read
	start=$(now)
	for ((n = 0; n < mounts; n++)); do
		mount_nfs
		on_a umount /mnt/nfs
	done
	mount=$((($(now) - start) / mounts / 1000))
	mount_nfs
	write=$(rate dd if=/dev/zero of=/mnt/nfs/data bs=1M count="$mib" conv=fsync)
	echo 3 >/proc/sys/vm/drop_caches
	read=$(rate dd if=/mnt/nfs/data of=/dev/null bs=1M)
	on_a umount /mnt/nfs
	echo "$1 $mount $write $read"
}

pair rxe
nfs_server
mkdir -p /mnt/nfs
at_end module_unload
measure warm-up >/dev/null
for ((round = 0; round < rounds; round++)); do
	echo "round $((round + 1)) of $rounds" >&2
	# Another one begins each time.
	for ((turn = 0; turn < ${#modes[@]}; turn++)); do
		mode=${modes[(round + turn) % ${#modes[@]}]}
		load "$mode"
		measure "$mode"
		module_unload
	done
done
