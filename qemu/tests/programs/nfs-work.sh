#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: nfs-work DIR ADDRESS VERSION PATH
#
# The work of the kernel's NFS client for the suite of tools/conformance: calls and replies inline
# and in chunks, one at a time and several at once. Direct reads and writes do not stay in the page
# cache. DIR has the directory mount, and the file data, which the server has, too. The entries
# of PATH take more than 4096 octets in a reply to READDIR, which needs a Reply chunk.
#
# Ends with 1 if an operation reports an error, and with 3 if none does and the data is wrong.
cd "$1" || exit 1
options=proto=rdma,port=3000,vers=$3,soft,timeo=30,retrans=1,retry=0
mount.nfs "$2:$4" mount -o "$options" || exit 1
trap 'umount -f mount || umount -fl mount' EXIT

# writes FILE SIZE: writes the first SIZE octets of data.
writes() { dd if=data of="$1" bs="$2" count=1 oflag=direct status=none; }

# reads FILE SIZE COPY
reads() { dd if="$1" of="$3" bs="$2" count=1 iflag=direct status=none; }

# same SIZE COPY: whether the copy is the first SIZE octets of data.
failed=0
same() { head -c "$1" data | cmp - "$2" || exit $((failed ? 1 : 3)); }

# all JOB...: waits for these jobs. Notes it if one of them has failed, and goes on.
all() {
	local job
	for job; do wait "$job" || failed=1; done
}

for size in 2000 7999 8000 8001; do
	{ writes mount/new "$size" && reads mount/new "$size" copy; } || exit 1
	same "$size" copy
done
# Less data than its Write chunk has room for.
{ writes mount/short 2000 && reads mount/short 8000 copy; } || exit 1
same 2000 copy
jobs=()
for n in 1 2; do
	writes mount/new$n 8000 &
	jobs+=($!)
done
all "${jobs[@]}"
for n in 1 2; do
	reads mount/new$n 8000 copy || exit 1
	same 8000 copy
done
ls mount >/dev/null || exit 1
jobs=()
for n in 1 2 3 4; do
	reads mount/data 12000 copy$n &
	jobs+=($!)
done
all "${jobs[@]}"
for n in 1 2 3 4; do same 12000 copy$n; done
exit $failed
