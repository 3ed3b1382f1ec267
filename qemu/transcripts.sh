#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints the transcripts of the documents, in a guest, for scripts/transcripts. A transcript
# is between a line "transcript NAME" and a line "end of transcript". The function
# transcript_NAME prints it.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=qemu/hosts.sh
. ./hosts.sh

trap 'clean_up echo "could not clean up:"' EXIT
trap 'exit 130' INT TERM

# shown COMMAND: prints COMMAND as typed in the module's directory on host $A, and its
# output. COMMAND may fail: the shell's message belongs to the transcript.
shown() {
	printf '# %s\n' "$1"
	{ nsenter --net="/run/netns/$A" bash -c "cd $DEBUGFS; $1" 2>&1 || true; } |
		sed 's/^bash: line [0-9]*: /bash: /'
}

# docs/admin-guide.md: the result of make demo up to the tables.
transcript_demo() { ./demo.sh | sed '1d; /^== connection\/1\/info:/,$d'; }

transcript_probe() { shown "echo '$B4:20049 version=2' > probe; head -n 5 probe"; }

transcript_last_error() {
	shown "echo '$B4:20049 send=1000' > connect"
	shown 'cat last_error'
	shown "echo '$B4:4' > connect"
	shown 'cat last_error'
}

# README.md: a sound mount, and one whose server has smaller buffers.
transcript_mounts() {
	# By another address of the server, so that it has connections of its own.
	mkdir -p /mnt/home
	on_a mount -t nfs -o proto=rdma6,port=20049,vers=4.2 "[$B6]:/" /mnt/home
	at_end nfs_unmount /mnt/home
	set_sysctl rdma_max_inline_write 65536
	nfs_mount 3 /mnt/data
	head -c 30000 /dev/zero >/mnt/data/file
	ls /mnt/data /mnt/home >/dev/null
	echo '# rpcrdma-cm mounts'
	../build/tool/debug/rpcrdma-cm mounts
}

# docs/admin-guide.md: a server that grants few credits, through interfaces with an MTU of 1500.
transcript_check() {
	local before
	before=$(</proc/sys/sunrpc/svc_rdma/max_requests)
	echo 4 >/proc/sys/sunrpc/svc_rdma/max_requests
	echo "# rpcrdma-cm check $B4:/export"
	on_a ../build/tool/debug/rpcrdma-cm check "$B4:/export" | grep -v "$B_RDMA" || true
	echo "$before" >/proc/sys/sunrpc/svc_rdma/max_requests
}

print() {
	echo "transcript $1"
	"transcript_$1"
	echo 'end of transcript'
}

# The demo comes first, because it makes its own pair and deletes it.
print demo
pair rxe
nfs_server
module_load
print probe
print last_error
print check
print mounts
