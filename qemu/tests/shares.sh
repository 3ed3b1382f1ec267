#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# No program hides, delays or overwrites what is shown of the kernel's NFS, and no ordinary user
# what is shown of root's programs: an ordinary user floods rdma_cm while NFS is mounted, loses its
# server, and is mounted again, and while a program of root connects. Nor do many users together. A
# program that connects to a server may overwrite its events, as any peer: docs/admin-guide.md.
#
# test: stock.rxe
# soak: debug.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

# The default of max_observed, and the limits that docs/admin-guide.md derives from it.
max=16384
max_of_user=$((max / 64))
refused=20000
churned=1100

# tell NAME COMMAND...: does the same as in module.sh, with more time for the answer.
tell() { say "$@" && hear "$1" 250; }

# start NAME PORT UID COMMAND...: starts flood.py by COMMAND, on the host and with the address that
# $from has. UID may be empty.
start() {
	if [[ ! -e $scratch/flood.py ]]; then
		cp programs/flood.py "$scratch/flood.py"
		chmod 711 "$scratch"
		chmod 644 "$scratch/flood.py"
	fi
	program "$1" nsenter --net="/run/netns/${from[0]}" "${@:4}" \
		python3 -sS "$scratch/flood.py" "${from[1]}" "$2" ${3:+"$3"}
}
# opens NAME PORT UID COMMAND...: whether it can open rdma_cm.
opens() { start "$@" && answers "$1"; }
answers() { tell "$1" drop && same answer 'done' "$said"; }

# as UID: sets $as to the words that run a program as that ordinary user.
as() { as=(setpriv --reuid "$1" --regid "$1" --clear-groups); }

# in_namespace NAME PORT UID OWNER: as `opens`, in a user namespace that OWNER makes, where the
# program has the uid UID of the initial one.
in_namespace() {
	as "$4"
	# shellcheck disable=SC2016 # for the shell
	start "$1" "$2" '' "${as[@]}" unshare --user --keep-caps \
		sh -c 'read -r _; exec setpriv --reuid 0 "$@"' sh || return
	wait_for 10 is_in_namespace "$pid" || return
	echo "0 $3 1" >"/proc/$pid/uid_map" && say "$1" && answers "$1"
}
is_in_namespace() { [[ ! "/proc/$1/ns/user" -ef /proc/self/ns/user ]]; }

flood() { tell user "$@"; }

# rows ORIGIN ROLE STATE: sets $n to the number of such connections.
rows() { ids_of "$@" && n=${#ids[@]}; }
shown() { rows "$1" "$2" "$3" && echo "$n lines of $1 $2 $3" && ((n == $4)); }
at_least() { rows "$1" "$2" "$3" && echo "$n lines of $1 $2 $3" && ((n >= $4)); }
at_most() { rows "$1" "$2" "$3" && echo "$n lines of $1 $2 $3" && ((n <= $4)); }
counts() { counter "$1" && echo "$1: $count" && ((count >= $2)); }
counts_none() { counter "$1" && echo "$1: $count" && ((count == 0)); }

# mounted NAME: checks a mount, and each line and event of it.
mounted() {
	need "$1: the mount succeeds" nfs_mount 4.2 /mnt/nfs
	check "$1: the client's line" wait_for 10 shown nfs client established 1
	check "$1: the server's line" wait_for 10 shown nfs server established 1
	event=()
	check "$1: the server's event" event ORIGIN=nfs ROLE=server EVENT=established
	check "$1: the server's directory" test -e "$DEBUGFS/connection/${event[ID]-none}/info"
	server_id=${event[ID]-none}
	event=()
	check "$1: the client's event" event ORIGIN=nfs ROLE=client EVENT=established
	[[ -n ${event[ID]-} ]] || return 0
	check "$1: the client's directory" test -e "$DEBUGFS/connection/${event[ID]}/info"
	mount_id=${event[ID]}
}

# About: many users. With max_observed=128, the programs of a user have 2 lines, those of all users
# together 32, and those of root as many.
many_users() {
	MODULE_PARAMETERS=max_observed=128
	need 'many users: the module loads' module_load
	# All at once, because each of them takes a while to start.
	for n in {1..15}; do
		as $((60000 + n))
		start "$n" $((6000 + n)) '' "${as[@]}"
	done
	for n in {1..15}; do
		need "many users: user $n may open rdma_cm" answers "$n"
		need "many users: user $n connects ids" tell "$n" rejected 2
	done
	check 'many users: each has its lines' wait_for 20 shown user client '[a-z]*' 30
	check 'many users: none was missed' counts_none observed_missed
	need "many users: one may open rdma_cm in a user namespace of its own" \
		in_namespace namespace 6100 61000 60001
	need 'many users: it connects an id there' tell namespace rejected 1
	check 'many users: that counts as an id of the user' \
		wait_for 20 counts observed_missed_user 1
	as 60016
	need 'many users: user 16 may open rdma_cm' opens 16 6016 '' "${as[@]}"
	need 'many users: user 16 connects ids' tell 16 rejected 2
	check 'many users: the share of users is used up' wait_for 20 shown user client '[a-z]*' 32
	as 60017
	need 'many users: user 17 may open rdma_cm' opens 17 6017 '' "${as[@]}"
	need 'many users: user 17 connects an id' tell 17 rejected 1
	check 'many users: it is missed' wait_for 20 counts observed_missed_programs 1
	reason='connections of programs were left out, because of the limit of all programs'
	check 'many users: stats names the limit of all programs' \
		grep -qx "observing_reason: limit_programs: $reason" "$DEBUGFS/stats"
	need 'many users: root may open rdma_cm' opens administrator 6200 '' env
	need 'many users: root connects an id' tell administrator rejected 1
	check "many users: it has its line beside theirs" wait_for 20 shown user client '[a-z]*' 33
	for n in {1..17} namespace administrator; do program_end "$n"; done
	check 'many users: no line is left' wait_for 30 shown user '[a-z]*' '[a-z]*' 0
	need 'many users: the module is removed' wait_for 20 rmmod rpcrdma_cm
}

# About: one user who floods rdma_cm.

# server_established_again: whether the server's latest connection is another one than $server_id.
server_established_again() {
	event ORIGIN=nfs ROLE=server EVENT=established && [[ ${event[ID]} != "$server_id" ]] &&
		return
	echo "the latest one is $server_id"
	return 1
}

floods() {
	check 'the user connects ids that cannot connect' flood refused "$refused"
	check_equal 'the kernel refuses each of these calls' "$refused" "$said"
	check 'refused calls: none has a line' shown user '[a-z]*' '[a-z]*' 0
	mounted 'refused calls'
	check 'refused calls: none of NFS was missed' counts_none observed_missed_nfs
	check 'refused calls: umount succeeds' umount /mnt/nfs
	check 'refused calls: the user destroys its ids' flood drop
	check 'refused calls: the event of the mount is still there' \
		event ID="$mount_id" EVENT=established
	check 'refused calls: umount has its event' event ID="$mount_id" EVENT=closed

	check 'the user connects more ids than it may have' flood pending $((2 * max_of_user))
	# The requests of these ids count against the limit, too, and have no lines. There is at
	# most one request more than clients.
	check 'pending calls: one user has lines for half of its limit at least' \
		wait_for 20 at_least user client '[a-z]*' $((max_of_user / 2))
	check 'pending calls: a request that was not accepted has no line' \
		shown user server '[a-z]*' 0
	check 'pending calls: those beyond the limit are counted' \
		counts observed_missed_user "$max_of_user"
	check 'pending calls: stats names the limit' \
		grep -q '^observing_reason: limit_user: ' "$DEBUGFS/stats"
	mounted 'pending calls'
	check 'pending calls: one user has no more lines than its limit' \
		at_most user '[a-z]*' '[a-z]*' "$max_of_user"
	check 'pending calls: none of NFS was missed' counts_none observed_missed_nfs
	check 'pending calls: the user destroys its ids' flood drop
	check 'a program of root connects and destroys an id' tell root churn 1
	check 'the program of root has its event' event ORIGIN=user
	root_id=${event[ID]-}
	check 'a listener of root refuses requests' tell root full 3
	refusal=(ORIGIN=user ROLE=server EVENT=refused LOCAL="$A4:4000")
	check "the refusal has its event" wait_for 10 event "${refusal[@]}"
	check 'the listener of root ends' tell root drop
	check 'the user connects and destroys ids' flood churn "$churned"
	check "churned ids: the event of root's program is still there" event ID="$root_id"
	check "churned ids: the event of root's refusal is still there" event "${refusal[@]}"
	check "churned ids: no event of root's programs was overwritten" \
		counts_none history_overwritten_root
	check 'churned ids: the event of the mount is still there' \
		event ID="$mount_id" EVENT=established
	need 'churned ids: the NFS server stops' in_nfs_server rpc.nfsd 0
	check 'churned ids: the loss has its event' wait_for 20 event ID="$mount_id" EVENT=lost
	check "churned ids: the server's end has its event" \
		wait_for 20 event ID="$server_id" ORIGIN=nfs ROLE=server EVENT=closed
	# While the mount is made again.
	say user churn "$churned"
	need 'churned ids: the NFS server starts' in_nfs_server rpc.nfsd 4
	need 'churned ids: the NFS server starts over RDMA' nfs_over_rdma
	check 'churned ids: the mount works' timeout 120 stat /mnt/nfs
	check 'churned ids: more of them' hear user 120
	check 'churned ids: the new connection has its line' \
		wait_for 20 shown nfs client established 1
	check 'churned ids: the new connection has its event' \
		event ORIGIN=nfs ROLE=client EVENT=re-established GEN=2
	check "churned ids: the server's new end has its line" \
		wait_for 20 shown nfs server established 1
	check "churned ids: the server's new end has its event" server_established_again
	check 'churned ids: the loss is still there' event ID="$mount_id" EVENT=lost
	check "churned ids: the event of the server's end is still there" \
		event ID="$server_id" EVENT=closed
	check 'churned ids: no event of NFS was overwritten' counts_none history_overwritten
	check 'churned ids: events of programs were overwritten' \
		counts history_overwritten_programs 1
	check 'no line of the user is left' wait_for 30 shown user '[a-z]*' '[a-z]*' 0
	check 'the last umount succeeds' umount /mnt/nfs
}

# About: an ordinary user of the NFS server's host, who connects to that server again and again. The
# mount comes from another address.

visits() {
	local from=("$B" "$B4")
	need_reload visits history=4
	mounted visits
	as 65534
	need "visits: a user of the server's host may open rdma_cm" opens visitor 9000 '' "${as[@]}"
	check 'visits: the user connects to the NFS server' tell visitor visit 10 20049
	check "visits: they overwrite events of servers" wait_for 20 counts history_overwritten 16
	for n in mount_id server_id; do
		check "visits: the connection of $n is still there" is_state "${!n}" established
		check "visits: the event of $n is still there" event ID="${!n}" EVENT=established
	done
	check 'visits: umount succeeds' umount /mnt/nfs
	program_end visitor
	need_reload 'after the visits'
}

# About: ids of a user whose handler mutexes are held, while the module is loaded.

are_held() { grep -qx Y,Y,Y /sys/module/hold_handlers/parameters/held; }
module_is_gone() { [[ ! -e /sys/module/rpcrdma_cm ]]; }

held() {
	need 'held ids: the module is removed' wait_for 20 rmmod rpcrdma_cm
	as 65534
	need 'held ids: an ordinary user may open rdma_cm' opens holder 7000 '' "${as[@]}"
	need 'held ids: the next ones are going to be held' \
		insmod "${MODULE%/*}/qemu/modules/hold_handlers.ko"
	at_end remove_module hold_handlers
	need 'held ids: the user binds some' tell holder bind 3
	need 'held ids: their handler mutexes are held' wait_for 10 are_held
	need 'held ids: a mount succeeds' nfs_mount 4.2 /mnt/nfs
	need 'held ids: root may open rdma_cm' opens late 20049 '' env
	need 'held ids: a program of root connects to the port of NFS' tell late pending 1
	need 'held ids: the module loads' insmod "$MODULE"
	check "held ids: the client's line" wait_for 10 shown nfs client established 1
	check "held ids: the server's line" wait_for 10 shown nfs server established 1
	check "held ids: the line of root's program" wait_for 20 shown user client '[a-z]*' 1
	check "held ids: info says how root's program is known" same_info "${ids[0]-}" \
		state=established note='older than the module, and known by its port alone'
	check 'held ids: stats says that connections may be missing' \
		wait_for 10 grep -q '^observing_reason: search: ' "$DEBUGFS/stats"
	check 'held ids: umount succeeds' umount /mnt/nfs
	rmmod rpcrdma_cm &
	check 'held ids: unloading does not wait' wait_for 5 module_is_gone
	module_is_gone || remove_module hold_handlers
	wait $!
	need 'held ids: the module loads again' insmod "$MODULE"
	rmmod rpcrdma_cm &
	check 'held ids: unloading stops the search' wait_for 5 module_is_gone
	remove_module hold_handlers
	program_end holder
	wait $!
	program_end late
	need 'held ids: the module loads at last' insmod "$MODULE"
}

# About: events that come faster than they are reported. 1024 are kept of
# ordinary users' programs, of root's programs, and of all others.

hold() {
	insmod "${MODULE%/*}/qemu/modules/hold_events.ko" "$@" && at_end remove_module hold_events
}
events_lost() { grep -q '^observing_reason: events: ' "$DEBUGFS/stats"; }
# older: whether the client's line is that of a connection that a search found.
older() {
	local id
	event ORIGIN=nfs ROLE=client EVENT=established && ids_of nfs client established || return
	id=${ids[-1]-}
	[[ -n $id && $id != "${event[ID]}" ]] && grep -q '^note: older than the module' \
		"$DEBUGFS/connection/$id/info"
}

# programs: sets $numbers to those of the lines of programs.
programs() { ids_of user && numbers=${ids[*]}; }
has_programs() {
	programs
	[[ $numbers = "$1" ]] || { echo "$numbers instead of $1"; return 1; }
}
none_lost() { counts_none observed_events_lost_nfs && counts_none observed_events_lost_root; }

lost_events() {
	check 'a program of root connects to a listener that does not accept' tell root pending 1
	check 'the program of root has its line' wait_for 20 shown user client connecting 1
	programs && programs_of_root=$numbers
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
}

# About: the memory that the ids of an ordinary user pin. docs/admin-guide.md says 2 MiB. It is
# freed when the module is removed, while the ids stay.

# settled: whether $least, the least size of all objects in slab caches in KiB, has hardly changed
# for some readings. Use it with wait_for. Each processor keeps free objects, which count as used:
# a reading may be too large, and none is too small.
settled() {
	local kib
	shrink_slabs
	kib=$(awk 'NR > 2 { octets += $2 * $4 } END { print int(octets / 1024) }' /proc/slabinfo)
	((kib > least - 16)) || stable=0
	((kib > least)) || least=$kib
	((++stable >= 8))
}
settles() { least=$((1 << 30)) stable=0 && wait_for 60 settled; }
freed_at_most() {
	echo "$before and $least KiB"
	((before > least && before - least <= $1))
}

memory() {
	usual_objects || { skip memory 'objects of slab caches have another size here'; return; }
	need 'memory: the user connects more ids than it may have' \
		flood pending $((2 * max_of_user))
	check 'memory: the user has reached its limit' \
		wait_for 10 counts observed_missed_user "$max_of_user"
	# Until then, RCU frees hundreds of KiB that the flood has used.
	check 'memory: RCU has freed what it frees' settles
	before=$least
	need 'memory: the module is removed' rmmod rpcrdma_cm
	check 'memory: RCU has freed what the module used' settles
	check 'memory: the ids of one user pinned at most 2 MiB' freed_at_most 2048
}

# About: the ids of rdma_cm itself, which a listener at all addresses has for each device. The
# search would find out that they are none of NFS, so there is no such listener before.

wildcards() {
	as 65534
	need 'wildcards: an ordinary user may open rdma_cm' opens listener 8000 '' "${as[@]}"
	need 'wildcards: no event is reported' hold
	need 'wildcards: the user listens at all addresses' tell listener wildcard 1200
	need 'wildcards: events are reported again' remove_module hold_events
	check 'wildcards: events of the user were lost' \
		wait_for 10 counts observed_events_lost_users 176
	check 'wildcards: none of others was lost' none_lost
	program_end listener
	need_reload wildcards
}

need_pair
from=("$A" "$A4")
modprobe -q rdma_ucm
group many_users
MODULE_PARAMETERS=
need_module
group wildcards
need_nfs_server
as 65534
need 'an ordinary user may open rdma_cm' opens user 3000 '' "${as[@]}"
need 'root may open rdma_cm' opens root 4000 '' env
need 'root may open rdma_cm as another user' opens other 5000 65534 env
group floods
group visits
group held
group lost_events
group memory
