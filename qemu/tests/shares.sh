#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# No program hides, delays or overwrites what is shown of the kernel's NFS: an ordinary user
# floods rdma_cm while NFS is mounted, loses its server, and is mounted again.
#
# test: stock.rxe
# soak: debug.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

# The default of max_observed, and the limits that docs/admin-guide.md derives from it.
max=16384
max_of_user=$((max / 64))
refused=$((max + max / 8))
churned=1100

# flood COMMAND...: sends a command to the user's program, and sets $said to its answer.
mkfifo "$scratch/to" "$scratch/from"
flood() {
	printf '%s\n' "$*" >&3
	IFS= read -rt 250 -u 4 said && [[ $said != failed* ]] && return
	echo "the flood: ${said:-}"
	return 1
}

flood_end() { exec 3>&-; wait "$flooder"; }

flood_begin() {
	cp flood.py "$scratch/flood.py"
	chmod 711 "$scratch"
	chmod 644 "$scratch/flood.py"
	nsenter --net="/run/netns/$A" setpriv --reuid 65534 --regid 65534 --clear-groups \
		python3 -sS "$scratch/flood.py" "$A4" \
		<"$scratch/to" >"$scratch/from" 2>"$scratch/errors" &
	flooder=$!
	exec 3>"$scratch/to" 4<"$scratch/from"
	at_end flood_end
	flood drop || { cat "$scratch/errors"; return 1; }
}

# rows ORIGIN ROLE STATE: sets $n to the number of such lines of connections.
rows() {
	local line
	n=0
	lines connections
	for line in "${lines[@]}"; do
		[[ ! $line =~ ^[0-9]+' '+$1' '+$2' '+$3' ' ]] || n=$((n + 1))
	done
}
shown() { rows "$1" "$2" "$3"; ((n == $4)) || { echo "$n lines of $1 $2 $3"; return 1; }; }
at_most() { rows "$1" "$2" "$3"; ((n <= $4)) || { echo "$n lines of $1 $2 $3"; return 1; }; }
counts() { counter "$1" && echo "$1: $count" && ((count >= $2)); }
counts_none() { counter "$1" && echo "$1: $count" && ((count == 0)); }

# mounted NAME: checks a mount, and each line and event of it.
mounted() {
	need "$1: the mount succeeds" nfs_mount 4.2 /mnt/nfs
	check "$1: the client's line" wait_for 10 shown nfs client established 1
	check "$1: the server's line" wait_for 10 shown nfs server established 1
	check "$1: the client's event" event ORIGIN=nfs ROLE=client EVENT=established
	[[ -n ${event[ID]-} ]] || return 0
	check "$1: the client's directory" test -e "$DEBUGFS/connection/${event[ID]}/info"
	mount_id=${event[ID]}
}

need_pair
modprobe -q rdma_ucm
need_module
need_nfs_server
need 'an ordinary user may open rdma_cm' flood_begin

check 'the user connects ids that cannot connect' flood refused "$refused"
check_equal 'the kernel refuses each of these calls' "$refused" "$said"
check 'refused calls: none has a line' shown user '[a-z]*' '[a-z]*' 0
mounted 'refused calls'
check 'refused calls: none of NFS was missed' counts_none observed_missed_nfs
check 'refused calls: umount succeeds' umount /mnt/nfs
check 'refused calls: the user destroys its ids' flood drop
check 'refused calls: the event of the mount is still there' event ID="$mount_id" EVENT=established
check 'refused calls: umount has its event' event ID="$mount_id" EVENT=closed

check 'the user connects more ids than it may have' flood pending $((2 * max_of_user))
check 'pending calls: one user has no more lines than its limit' \
	at_most user '[a-z]*' '[a-z]*' "$max_of_user"
check 'pending calls: those beyond the limit are counted' counts observed_missed_user "$max_of_user"
check 'pending calls: stats names the limit' \
	grep -q '^observing_reason: limit_user: ' "$DEBUGFS/stats"
mounted 'pending calls'
check 'pending calls: none of NFS was missed' counts_none observed_missed_nfs
check 'pending calls: the user destroys its ids' flood drop
check 'the user connects and destroys ids' flood churn "$churned"
check 'churned ids: the event of the mount is still there' event ID="$mount_id" EVENT=established
need 'churned ids: the NFS server stops' in_nfs_server rpc.nfsd 0
check 'churned ids: the loss has its event' wait_for 20 event ID="$mount_id" EVENT=lost
check 'churned ids: more of them' flood churn "$churned"
need 'churned ids: the NFS server starts' in_nfs_server rpc.nfsd 4
need 'churned ids: the NFS server starts over RDMA' \
	in_nfs_server sh -c 'echo "rdma 20049" >/proc/fs/nfsd/portlist'
echo Y | in_nfs_server tee /proc/fs/nfsd/v4_end_grace >/dev/null 2>&1
check 'churned ids: the mount works' timeout 120 stat /mnt/nfs
check 'churned ids: the new connection has its line' wait_for 20 shown nfs client established 1
check 'churned ids: the new connection has its event' \
	event ORIGIN=nfs ROLE=client EVENT=re-established GEN=2
check 'churned ids: the loss is still there' event ID="$mount_id" EVENT=lost
check 'churned ids: no event of NFS was overwritten' counts_none history_overwritten
check 'churned ids: events of programs were overwritten' counts history_overwritten_programs 1
check 'no line of the user is left' wait_for 30 shown user '[a-z]*' '[a-z]*' 0
check 'the last umount succeeds' umount /mnt/nfs
