#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The demo that runs in a guest: the module between the kernel's own NFS server and client.
# Prints a result that fits on two screens of 100 columns. With VERBOSE=1 prints every file
# before that. Arguments are parameters of the module.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=qemu/hosts.sh
. ./hosts.sh

trap 'clean_up echo "could not clean up:"' EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }

verbose() { [[ -n ${VERBOSE:-} ]]; }

# step TEXT: prints a heading, with VERBOSE=1.
step() { ! verbose || say "$@"; }

# show COMMAND: prints COMMAND as typed and its output, with VERBOSE=1.
show() {
	verbose || return 0
	printf '# %s\n' "$1"
	eval "$1"
}

# written HOST LINE FILE: writes LINE to a control file, in the network namespace of HOST.
written() {
	! verbose || printf '%s# echo %q > %s\n' "$1" "$2" "$3"
	nsenter --net="/run/netns/$1" bash -c "echo '$2' >$DEBUGFS/$3"
}

# number ORIGIN ROLE: prints the ID of the first such connection.
number() { awk -v a="$1" -v b="$2" '$2 == a && $3 == b { print $1; exit }' connections; }

# narrow FILE: prints a table with columns as wide as their widest word. The file itself
# needs more than 100 columns.
narrow() {
	awk '
		{ for (i = 1; i <= NF; i++) if (length($i) > width[i]) width[i] = length($i) }
		{ line[NR] = $0 }
		END {
			for (n = 1; n <= NR; n++) {
				split(line[n], word)
				for (i = 1; i < NF; i++) printf "%-" width[i] "s ", word[i]
				print word[NF]
			}
		}
	' "$1"
}

# The lines that matter. Each sentence holds for every value of its key; that of origin for nfs.
declare -A meaning=(
	[origin]="The connection belongs to the kernel's NFS, not to the module."
	[state]='Calls can be made while it is established.'
	[generation]='One more after each loss. Each generation negotiates afresh.'
	[peer_private_data]='Present if the server sent a message of RFC 8797.'
	[peer_send_size]='The longest message that the server says it sends.'
	[peer_receive_size]='The longest message that the server says it receives.'
	[client_to_server_threshold]='A longer call needs a chunk.'
	[server_to_client_threshold]='A longer reply needs a chunk.'
	[remote_invalidation]='Yes only if the messages of both sides allow it.'
	[remote_invalidation_in_use]='Yes if the server does it, allowed or not.'
	[reachable]='Yes if the server accepts a connection.'
	[rpc_version_1]='The result of NULL in version 1 of RPC-over-RDMA.'
	[credits_granted]='The number of calls that a client may have under way.'
)

# explain FILE KEY...: prints these lines of FILE, each with its sentence.
explain() {
	local key line
	for key in "${@:2}"; do
		line=$(grep -m1 "^$key: " "$1")
		if [[ -n ${meaning[$key]:-} ]]; then
			printf '%-34s %s\n' "$line" "${meaning[$key]}"
		else
			echo "$line"
		fi
	done
}

step 'Two hosts in this guest, each with soft-RoCE; the second is an NFS server'
pair rxe
nfs_server
show 'rdma link show'

step 'The module, loaded into an unmodified kernel'
show 'uname -rv'
MODULE_PARAMETERS=$*
module_load
show "ls $DEBUGFS"

cd "$DEBUGFS"
if grep -qx 'observing: no' stats; then
	reason=$(sed -n 's/^observing_reason: [a-z_]*: //p' stats | head -n1)
	echo "The demo needs a kernel on which the module observes NFS: here, $reason." >&2
	exit 1
fi

step 'A mount by the kernel, of the one host from the other: the module only observes it'
nfs_mount 4.2 /mnt/nfs
# A write of this size needs chunks, and chunks show whether the server invalidates remotely.
dd if=/dev/zero of=/mnt/nfs/data bs=1M count=1 conv=fsync status=none
show 'findmnt -n /mnt/nfs -o SOURCE,TARGET,FSTYPE'

step "As client: it connects to the kernel's NFS server"
written "$A" "$B4:20049 send=8192 recv=16384 inv=1" connect

step "As server: the kernel's NFS client connects to it. (The mount does not succeed.)"
written "$B" "$B4:20050 send=65536 recv=65536 inv=1 answer=0" listen
mkdir /mnt/demo
on_a timeout -s KILL 60 mount -t nfs -o "proto=rdma,port=20050,vers=4.2,timeo=600" \
	"$B4:/" /mnt/demo >/dev/null 2>&1 &
mount=$!
established() { grep -q ' module *server *established' "$DEBUGFS/connections"; }
wait_for 30 established
client=$(number nfs client) server=$(number nfs server) listening=$(number module server)

step 'What they negotiated'
show 'cat connections'
show "cat connection/$listening/info"
show "od -An -tx1 -N8 connection/$listening/received"

step "The server's end of the mount"
show "cat connection/$server/info"

step 'The resource tracker lists the connections of the module, too'
show 'rdma resource show cm_id | grep rpcrdma_cm'

step 'A probe of that server, as an administrator would probe an appliance'
written "$A" "$B4:20049" probe
show 'cat probe'

if verbose; then
	say 'Calls between two ends of the module: short ones are sent inline, long ones by chunks'
	written "$B" "$B4:20051 inv=1" listen
	written "$A" "$B4:20051 inv=1" connect
	own=$(awk '$2 == "module" && $3 == "client" { id = $1 } END { print id }' connections)
	written "$A" "connection $own echo size=1000" call
	written "$A" "connection $own echo size=1048576" call
	show "sed -n '/^rpc_version_used/,\$p' connection/$own/info"
	say 'The result'
fi

say "An NFS mount over RDMA, Linux $(uname -r): client and server are the kernel's"
findmnt -n /mnt/nfs -o SOURCE,TARGET,FSTYPE

say "connections: each end in this guest; those of \"module\" were made by connect and listen"
narrow connections

say "connection/$client/info: the client's end of the mount; ten of its lines"
explain "connection/$client/info" origin state generation peer_private_data peer_send_size \
	peer_receive_size client_to_server_threshold server_to_client_threshold \
	remote_invalidation remote_invalidation_in_use

say "connection/$server/info: the server's end; how the kernel's server departs from RFC 8797"
sed -n 's/^deviation: /- /p' "connection/$server/info" | fold -sw 98 | sed 's/^[^-]/  &/; s/ $//'

say "probe: what the module learns of that server by a connection and a call"
explain probe reachable rpc_version_1 program_version peer_private_data credits_granted

verbose || printf '\nVERBOSE=1 also prints every file. make shell boots a guest without a mount.\n'

# The shell would report the killed process during either of these commands.
{ kill -KILL "$mount"; wait "$mount"; } 2>/dev/null || :
cd /
