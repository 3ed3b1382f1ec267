#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: the module between the kernel's own NFS server and client.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=qemu/hosts.sh
. ./hosts.sh

trap 'clean_up echo "could not clean up:"' EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }

# show COMMAND: as one would type it, with what it prints.
show() {
	printf '# %s\n' "$1"
	eval "$1"
}

# written HOST LINE FILE: the same for a control file, from within a host.
written() {
	printf '%s# echo %q > %s\n' "$1" "$2" "$3"
	nsenter --net="/run/netns/$1" bash -c "echo '$2' >$DEBUGFS/$3"
}

say 'Two hosts in this guest, each with soft-RoCE; the second is an NFS server'
pair rxe
nfs_server
show 'rdma link show'

say 'The module, loaded into an unmodified kernel'
show 'uname -rv'
module_load
show "ls $DEBUGFS"

cd "$DEBUGFS"

say 'A mount by the kernel, of the one from the other: nothing of it is ours'
nfs_mount 4.2 /mnt/nfs
show 'findmnt -n /mnt/nfs -o SOURCE,TARGET,FSTYPE'

say "As client: it connects to the kernel's NFS server"
written "$A" "$B4:20049 send=8192 recv=16384 inv=1" connect

say "As server: the kernel's NFS client mounts from it, and gets no further than the connection"
written "$B" "$B4:20050 send=65536 recv=65536 inv=1 answer=0" listen
mkdir /mnt/demo
on_a timeout -s KILL 60 mount -t nfs -o "proto=rdma,port=20050,vers=4.2,timeo=600" \
	"$B4:/" /mnt/demo >/dev/null 2>&1 &
mount=$!
established() { grep -q ' module *server *established' "$DEBUGFS/connections"; }
wait_for 30 established

say 'What they negotiated'
show 'cat connections'
number() { awk -v a="$1" -v b="$2" '$2 == a && $3 == b { print $1; exit }' connections; }
show "cat connection/$(number module server)/info"
show "od -An -tx1 -N8 connection/$(number module server)/received"

say "What the kernel's NFS server makes of the mount"
show "cat connection/$(number nfs server)/info"

say 'The resource tracker knows them, too'
show 'rdma resource show cm_id | grep rpcrdma_cm'

say 'A probe of that server: what an administrator points at an appliance'
written "$A" "$B4:20049" probe
show 'cat probe'

say 'Calls between two ends of the module: what fits goes inline, what does not by chunks'
written "$B" "$B4:20051 inv=1" listen
written "$A" "$B4:20051 inv=1" connect
own=$(awk '$2 == "module" && $3 == "client" { id = $1 } END { print id }' connections)
written "$A" "connection $own echo size=1000" call
written "$A" "connection $own echo size=1048576" call
show "sed -n '/^rpc_version_used/,\$p' connection/$own/info"

kill -KILL "$mount"
wait "$mount" 2>/dev/null || :
cd /
