#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# No program hides, delays or overwrites what is shown of the kernel's NFS, and no ordinary user
# what is shown of root's programs: an ordinary user floods rdma_cm while NFS is mounted, loses its
# server, and is mounted again, and while a program of root connects.
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

# tell NAME COMMAND...: sends a command to a program, and sets $said to its answer.
declare -A to from pids
tell() {
	local name=$1
	shift
	printf '%s\n' "$*" >&"${to[$name]}"
	IFS= read -rt 250 -u "${from[$name]}" said && [[ $said != failed* ]] && return
	echo "$name: ${said:-}"
	return 1
}

program_end() {
	local fd=${to[$1]}
	exec {fd}>&-
	wait "${pids[$1]}"
}

# program NAME PORT UID COMMAND...: COMMAND runs flood.py. UID may be empty.
program() {
	local name=$1 port=$2 uid=$3 in out
	shift 3
	cp programs/flood.py "$scratch/flood.py"
	chmod 711 "$scratch"
	chmod 644 "$scratch/flood.py"
	mkfifo "$scratch/$name.to" "$scratch/$name.from"
	nsenter --net="/run/netns/$A" "$@" python3 -sS "$scratch/flood.py" "$A4" "$port" \
		${uid:+"$uid"} <"$scratch/$name.to" >"$scratch/$name.from" \
		2>"$scratch/$name.errors" &
	pids[$name]=$!
	exec {in}>"$scratch/$name.to" {out}<"$scratch/$name.from"
	to[$name]=$in from[$name]=$out
	at_end program_end "$name"
	tell "$name" drop || { cat "$scratch/$name.errors"; return 1; }
}

flood() { tell user "$@"; }

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
need 'an ordinary user may open rdma_cm' program user 3000 '' \
	setpriv --reuid 65534 --regid 65534 --clear-groups
need 'root may open rdma_cm' program root 4000 '' env
need 'root may open rdma_cm as another user' program other 5000 65534 env

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
check 'a program of root connects and destroys an id' tell root churn 1
check 'the program of root has its event' event ORIGIN=user
root_id=${event[ID]-}
check 'the user connects and destroys ids' flood churn "$churned"
check "churned ids: the event of root's program is still there" event ID="$root_id"
check "churned ids: no event of root's programs was overwritten" \
	counts_none history_overwritten_root
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

# programs: sets $programs to the numbers of the lines of programs.
programs() {
	local line
	programs=
	lines connections
	for line in "${lines[@]}"; do
		[[ ! $line =~ ^([0-9]+)' '+user' ' ]] || programs+=" ${BASH_REMATCH[1]}"
	done
}
has_programs() {
	programs
	[[ $programs = "$1" ]] || { echo "$programs instead of $1"; return 1; }
}
none_lost() { counts_none observed_events_lost_nfs && counts_none observed_events_lost_root; }

check 'a program of root connects to a listener that does not accept' tell root pending 1
check 'the program of root has its line' wait_for 20 shown user client connecting 1
programs && programs_of_root=$programs
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
check 'events of programs: stats counts them as those of ordinary users' \
	counts observed_events_lost_users 176
check 'events of programs: none of others was lost' none_lost
check "events of programs: the line of root's program is still there" \
	has_programs "$programs_of_root"

# As sudo does, which an ordinary user can run with a file of rdma_cm open.
counter observed_events_lost_users && lost_of_users=$count
check "another user's ids" tell other refused 1200
need 'ids that root destroys: none is reported' hold
check 'ids that root destroys: root closes the file' tell other become-root
need 'ids that root destroys: they are reported again' remove_module hold_events
check 'ids that root destroys: they are those of the user who opened the file' \
	wait_for 20 counts observed_events_lost_users $((lost_of_users + 176))
check "ids that root destroys: none of others was lost" none_lost
check "ids that root destroys: the line of root's program is still there" \
	has_programs "$programs_of_root"
check "the program of root destroys its ids" tell root drop
check "no line of root's program is left" wait_for 20 has_programs ''

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
check 'events of others: stats counts those beyond 1024' counts observed_events_lost_nfs 176
check 'events of others: umount succeeds' umount /mnt/nfs
check 'events of others: no connection is left' wait_for 20 shown nfs '[a-z]*' '[a-z]*' 0

# About: the memory that the ids of an ordinary user pin. docs/admin-guide.md says 2 MiB. It is
# freed when the module is removed, while the ids stay. Objects of the debug kernel are larger.

# slabs: sets $kib to the size of all objects in slab caches.
slabs() {
	shrink_slabs
	kib=$(awk 'NR > 2 { octets += $2 * $4 } END { print int(octets / 1024) }' /proc/slabinfo)
}
freed_at_most() {
	slabs
	echo "$((before - kib)) KiB"
	((before > kib && before - kib <= $1))
}

[[ $KERNEL = stock ]] || exit 0
need 'memory: the user connects more ids than it may have' flood pending $((2 * max_of_user))
check 'memory: the user has reached its limit' \
	wait_for 10 counts observed_missed_user "$max_of_user"
# Until then, RCU frees some 260 KiB of what the flood has used.
sleep 2
slabs
before=$kib
need 'memory: the module is removed' rmmod rpcrdma_cm
check 'memory: the ids of one user pinned at most 2 MiB' freed_at_most 2048
