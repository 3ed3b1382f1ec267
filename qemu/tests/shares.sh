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
	cp programs/flood.py "$scratch/flood.py"
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

# About: events that come faster than they are reported. 1024 of programs are kept, and as many of
# others.

hold() {
	insmod "${MODULE%/*}/qemu/modules/hold_events.ko" "$@" && at_end remove_module hold_events
}
events_lost() { grep -q '^observing_reason: events: ' "$DEBUGFS/stats"; }
# older: whether the client's line is that of a connection that a search found.
older() {
	event ORIGIN=nfs ROLE=client EVENT=established && lines connections || return
	local line id=
	for line in "${lines[@]}"; do
		[[ ! $line =~ ^([0-9]+)' '+nfs' '+client' '+established' ' ]] ||
			id=${BASH_REMATCH[1]}
	done
	[[ -n $id && $id != "${event[ID]}" ]] && grep -q '^note: older than the module' \
		"$DEBUGFS/connection/$id/info"
}

check_fails 'no event was lost so far' events_lost
check 'stats counts no lost event so far' counts_none observed_events_lost
need 'events of programs: none is reported' hold
check 'events of programs: more of them than are kept' flood refused 1200
check 'events of programs: the ids are destroyed' flood drop
need 'events of programs: a mount succeeds meanwhile' nfs_mount 4.2 /mnt/nfs
need 'events of programs: they are reported again' remove_module hold_events
check "events of programs: the client's line" wait_for 20 shown nfs client established 1
check "events of programs: the server's line" wait_for 20 shown nfs server established 1
check "events of programs: the mount has its event" \
	event ORIGIN=nfs ROLE=client EVENT=established GEN=1
check_fails 'events of programs: the mount was not searched for' older
check 'events of programs: stats says that events were lost' events_lost
check 'events of programs: stats counts those beyond 1024' counts observed_events_lost 176

need 'events of others: the module is removed' rmmod rpcrdma_cm
need 'events of others: umount before them succeeds' umount /mnt/nfs
need 'events of others: the module loads' insmod "$MODULE"
need 'events of others: the mount succeeds' nfs_mount 4.2 /mnt/nfs
check "events of others: the client's line" wait_for 20 shown nfs client established 1
check_fails 'events of others: none was lost so far' events_lost
need 'events of others: more of them than are kept' hold ids=1200
check 'events of others: the mount is searched for, and found' wait_for 20 older
check "events of others: the server's line" wait_for 20 shown nfs server established 1
check 'events of others: stats says that events were lost' events_lost
check 'events of others: stats counts those beyond 1024' counts observed_events_lost 176
check 'events of others: umount succeeds' umount /mnt/nfs
check 'events of others: no connection is left' wait_for 20 shown nfs '[a-z]*' '[a-z]*' 0
