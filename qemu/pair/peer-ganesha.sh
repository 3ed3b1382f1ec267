#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# One column of the table of docs/peers.md: NFS-Ganesha in the guest b, as server, with the
# module watching it there. $GANESHA is the directory that scripts/peer/ganesha prints.
# scripts/peers calls this, and builds tools/rpcrdma-cm before.
# shellcheck disable=SC2016,SC2154 # for the guests; from lib.sh
cd "$(dirname "$0")" || exit
# shellcheck source=../pair/lib.sh
. ./lib.sh
# shellcheck source=../pair/cells.sh
. ./cells.sh

# copied VERSION MIB DIRECTORY: whether a reads back from a file there the data that it wrote.
copied() {
	on_a eval "head -c $2M /dev/urandom >/tmp/data && cp /tmp/data $3/data-$1-$2 &&
		echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/data $3/data-$1-$2"
}

# verdict WORDS: whether that is the verdict of the tool on the mount of a.
verdict() {
	on_a eval "$project/build/tool/debug/rpcrdma-cm mounts >/tmp/mounts
		cat /tmp/mounts
		grep -qF '/mnt/nfs: degraded: $1' /tmp/mounts"
}

cp -r "$GANESHA" "$share_b/ganesha"
begin_peers
put_cell release "$(<"$GANESHA/version")"
need 'Ganesha: the module loads on b' on_b module_load
need 'Ganesha: b reads ganesha.sh' on_b . ../pair/ganesha.sh
need 'Ganesha: b serves NFS' on_b ganesha_server

need 'Ganesha: the capture begins' start_capture
need 'Ganesha: a mounts from b, version 4.0' on_a nfs_mount 4.0 /mnt/nfs
for mib in 1 64; do
	check "Ganesha: $mib MiB are read as written, version 4.0" \
		copied 4.0 "$mib" /mnt/nfs/export
	[[ $mib != 1 ]] || need 'Ganesha: the capture ends' keep_capture server
done
need 'Ganesha: b has a long file' on_a eval \
	'head -c 1M /dev/urandom >/mnt/nfs/export/long && sync /mnt/nfs/export/long'
need 'Ganesha: a makes many calls with chunks' on_a sweep /mnt/nfs/export/sweep 4000 4400
check 'Ganesha: the tool says why the mount is slow' verdict \
	'messages over 1024 octets go by chunks: the server sends no RFC 8797 private data'
cell server_watched on_a watched nfs client
cell server_watches on_b watched user server
check 'Ganesha: a unmounts version 4.0' on_a umount /mnt/nfs
need 'Ganesha: a mounts from b, version 3' on_a nfs_mount 3 /mnt/nfs
for mib in 1 64; do
	check "Ganesha: $mib MiB are read as written, version 3" copied 3 "$mib" /mnt/nfs
done
check 'Ganesha: a unmounts version 3' on_a umount /mnt/nfs

need 'Ganesha: the capture of the lengths begins' start_capture
# Other lengths are not measured (SECURITY.md).
as_server export/long 8192 8292
need 'Ganesha: the capture of the lengths ends' keep_capture lengths
check 'Ganesha: the wire shows the same private data' \
	wire_sends server "${cells[server_sends]}"
check 'Ganesha: the server still listens' on_b ganesha_runs
check 'Ganesha: a closes all' on_a control - close all
