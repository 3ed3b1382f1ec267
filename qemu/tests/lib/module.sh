# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2153
#
# The module's files in debugfs, for the tests and the benchmark. Source it after lib.sh
# or hosts.sh. SIDE is a or b for a host of the pair, or - for the namespace of the
# script.
#
# A Python process, agent.py, does what bash cannot: it makes exactly one write, in a network
# namespace, and returns its errno; and it reads octets that may be NUL. It also reads and compares
# the files by lib/module.py, as the scripts in Python do.

shopt -s extglob

# The capacity of a REQ and of a REP for private data, in octets. InfiniBand's CM pads
# private data with zeros to a fixed length, and rdma_cm uses 36 of the 92 octets of a REQ.
# MPA has a length field. The kernel limits it to 255, and MPAv2 uses 4 octets (RFC 6581,
# section 9).
case $TRANSPORT in
rxe) transport=roce request_room=56 reply_room=196 ;;
siw) transport=iwarp request_room=251 reply_room=251 ;;
esac

# Python starts faster without the packages of the guest.
library=${BASH_SOURCE[0]%/*}
python=(env "PYTHONPATH=$library/.." python3 -sS)

# ask FUNCTION ARGUMENT...: calls a function of agent.py. Sets $answer to its result. A subshell
# cannot use the agent of its parent, so it starts one, which takes as long as some hundred calls.
ask() {
	if [[ ${asker_of_agent-} != "$BASHPID" ]]; then
		# shellcheck disable=SC2154 # from lib.sh
		asker_of_agent=$BASHPID told=$scratch/told-$BASHPID
		coproc AGENT { exec "${python[@]}" "$library/../programs/agent.py" "$told"; }
		at_end kill "$AGENT_PID"
	fi
	local IFS=$'\t'
	answer=
	printf '%s\n' "$*" >&"${AGENT[1]}" && read -r answer <&"${AGENT[0]}"
}

# query VARIABLES FUNCTION ARGUMENT...: sets the variables, if there are any, to what a function of
# agent.py returns. Fails if one is empty or if the function prints something, and prints that. The
# answer is in a file, because bash reads a pipe octet by octet.
query() {
	ask query "$@" || return
	# shellcheck source=/dev/null
	. "$told"
}

# put SIDE FILE TEXT: writes TEXT, which may have Python's escapes, in one write. Sets $errno to
# the errno or to 0, and fails if the write failed.
put() {
	local netns=/proc/self/ns/net
	case $1 in
	a) netns=/run/netns/$A ;;
	b) netns=/run/netns/$B ;;
	esac
	ask write "$netns" "$DEBUGFS/$2" "$3"
	errno=$answer
	[[ $answer = 0 ]]
}

# control SIDE FILE LINE: writes a line. If that fails, prints the errno and last_error.
control() {
	put "$1" "$2" "$3\\n" && return
	echo "$3 > $2: $errno, $(<"$DEBUGFS/last_error")"
	return 1
}

# call_fails ERRNO WORDS LINE: whether writing LINE to `call` fails so.
call_fails() {
	! put a call "$3" && [[ $errno = "$1" ]] && grep -qF -- "$2" "$DEBUGFS/last_error" && return
	echo "$errno, $(<"$DEBUGFS/last_error")"
	return 1
}

# octets FILE: sets $octets to the content of a file, such as connection/7/sent, in
# hexadecimal.
octets() {
	ask octets "$DEBUGFS/$1"
	octets=$answer
}

# lines FILE: sets $lines to the lines of a file.
lines() { mapfile -t lines <"$DEBUGFS/$1"; }

# What the functions below set.
id='' ids=() count=0 message=''
declare -A info event

# row FILE ID: sets $row to the columns of the line of ID in a table.
row() { row=() && query row row "$@"; }
# newest client|server: sets $id to the newest connection of the module in that role.
newest() { query id newest "$1"; }
# ids_of ORIGIN [ROLE [STATE]]: sets $ids to the numbers of these connections. The words may be
# patterns. Fails if the connections cannot be read.
ids_of() { ids=() && lines connections && { query ids ids_of "$@" || :; }; }
# peer_of ID: sets $id to the connection that is the other end of ID.
peer_of() { query id peer_of "$1"; }

# connect SIDE LINE: connects to a listener of the module, and waits until both ends are
# established. Sets $client and $server to their numbers.
connect() {
	client='' server=''
	control "$1" connect "$2" || return
	newest client && client=$id || return
	wait_for 10 newest_peer || return
	wait_for 10 is_state "$server" established
}

newest_peer() { peer_of "$client" && server=$id; }

# info ID: sets the array $info to the keys of a connection, and $lines to their lines. Fails if
# there is no such connection.
# same_info ID KEY=VALUE...: does the same, and prints each key that has another value.
info() { same_info "$1"; }
same_info() { info=() && query 'lines info' same_info "$@"; }

is_state() { info "$1" && [[ ${info[state]} = "$2" ]]; }
is_gone() { [[ ! -e $DEBUGFS/connection/$1 ]]; }
# is_generation ID N: whether the connection is established in generation N.
is_generation() { is_state "$1" established && [[ ${info[generation]} = "$2" ]]; }
# none_live: whether the module has no connection of its own.
none_live() { lines connections && [[ "${lines[*]}" != *' module '* ]]; }
# none_shown: whether no connection is listed, of the module or of others.
none_shown() { lines connections && [[ ${#lines[@]} = 1 ]]; }

# resources: prints the ids and queue pairs of the module, by the resource tracker. Starts only one
# process, because that takes a tenth of a second in the debug guest, and some scripts ask often.
resources() {
	local line
	# shellcheck disable=SC2154 # from lib.sh
	rdma -b - <<<$'resource show cm_id\nresource show qp' >"$scratch/resources" || return
	while IFS= read -r line; do
		[[ $line != *'[rpcrdma_cm]'* ]] || echo "$line"
	done <"$scratch/resources"
}

# nothing_known [EXCEPT]: whether the resource tracker has no object of the module, except
# lines that contain EXCEPT. Prints the others.
nothing_known() {
	local line status=0
	resources >"$scratch/known" 2>&1 || { cat "$scratch/known"; return 1; }
	while IFS= read -r line; do
		[[ -n ${1-} && $line = *"$1"* ]] || { echo "$line"; status=1; }
	done <"$scratch/known"
	return "$status"
}

# nothing_left [EXCEPT]: whether nothing_known succeeds and the module has no connection of its own.
nothing_left() {
	none_live || { cat "$DEBUGFS/connections"; return 1; }
	nothing_known "$@"
}

# object_counts: prints how many objects each device has, by the resource tracker.
object_counts() { rdma resource show | sed 's/^[0-9]*: //'; }

# has_objects COUNTS: whether these devices have exactly these counts of objects. Use it after the
# module is unloaded. The lists of objects, which `resources` reads, have names of owners, and the
# module's was freed with the module (reports/restrack-owner-name.txt).
has_objects() {
	local found
	found=$(object_counts) && [[ -n $1 ]] && ! grep -vxF -e "$found" <<<"$1" && return
	printf 'wanted:\n%s\nfound:\n%s\n' "$1" "$found"
	return 1
}

# counter NAME: sets $count to a counter of stats.
counter() { query count counter "$1"; }

# event COLUMN=VALUE...: sets ${event[COLUMN]} to the latest event of history with these values.
event() { query event event "$@"; }

# consistent_history: whether the events are in the order of their times, and each connection
# that was established has ended once, or is still established. Prints the exceptions. Use it
# with wait_for, because a connection may end between the two readings.
consistent_history() { query '' consistent_history; }

# shrink_slabs: takes freed objects, and those in KASAN's quarantine, out of the slab caches, so
# that /proc/slabinfo does not count them.
shrink_slabs() {
	local cache
	for cache in /sys/kernel/slab/*/shrink; do
		[[ -L ${cache%/shrink} ]] || echo 1 >"$cache"
	done
}

# usual_objects: whether the objects of slab caches have their usual size. In the debug kernel they
# are larger, and with slub_debug, which make soak uses, some take twice their size.
usual_objects() { [[ $KERNEL = stock && $(</proc/cmdline) != *slub_debug* ]]; }

# objects FILE: writes the number of objects in each slab cache to FILE. Caches whose objects are
# freed later are left out: areas of vmalloc, records of the debugging tools, path names, and the
# sockets that TCP keeps for a minute after siw's connections.
objects() {
	shrink_slabs
	local kept='vmap_area|kmemleak_.*|debug_objects_cache|names_cache|tw_sock_TCP.*|tcp_bind.*'
	awk -v kept="^($kept)\$" 'NR > 2 && $1 !~ kept { print $1, $2 }' /proc/slabinfo | sort >"$1"
}

# not_grown N: whether no cache has N or more objects more than in $scratch/before. Prints those
# that have.
not_grown() {
	# shellcheck disable=SC2154 # from lib.sh
	objects "$scratch/after"
	join "$scratch/before" "$scratch/after" |
		awk -v n="$1" '$3 - $2 >= n { print; grown = 1 } END { exit grown }'
}

# offer SEND RECEIVE [R [VERSION [RESERVED]]]: prints the message of RFC 8797, section 4, with its
# sizes in octets, in hexadecimal. Like `offer` of messages.py.
offer() {
	printf 'f6ab0e18%02x%02x%02x%02x' "${4:-1}" $((${5:-0} | ${3:-0})) \
		$(($1 / 1024 - 1)) $(($2 / 1024 - 1))
}

# filler LENGTH: prints LENGTH octets in hexadecimal, none of them zero.
filler() { local hex; printf -v hex '%*s' "$1" ''; echo "${hex// /a5}"; }

# padded HEX LENGTH: sets $padded to HEX with zeros up to LENGTH octets.
padded() {
	printf -v padded '%*s' $((2 * $2 - ${#1})) ''
	padded=$1${padded// /0}
}

# words NUMBER...: sets $words to these numbers, as words of 32 bits in hexadecimal.
words() { printf -v words '%08x' "$@"; }

# nfs_read COUNT NAME...: sets $message to a COMPOUND of NFS 4.0 without chunks: PUTROOTFH, LOOKUP
# of each NAME, READ.
nfs_read() { query message nfs_read "$@"; }

# arrives HEX ROOM: sets $padded to the octets as the transport delivers them. ROOM is the
# capacity of the CM's message.
arrives() {
	padded=$1
	[[ $TRANSPORT = siw ]] || padded "$1" "$2"
}

# timed COMMAND...: runs COMMAND. Sets $took to the milliseconds that it took.
timed() {
	local start=${EPOCHREALTIME/./} status=0
	"$@" || status=$?
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	return "$status"
}

# within FROM TO: whether the command of timed took FROM to TO milliseconds.
within() {
	(($1 <= took && took <= $2)) && return
	echo "took $took ms, wanted $1 to $2"
	return 1
}

# in_time MILLISECONDS COMMAND...: whether COMMAND succeeds within that time.
in_time() { timed "${@:2}" && within 0 "$1"; }

# same NAME WANTED FOUND: whether both are equal. Otherwise prints both.
same() { [[ $2 = "$3" ]] || { echo "$1: wanted $2, found $3"; return 1; }; }

# counted KEY=CHANGE... -- COMMAND...: runs COMMAND. Whether the counters of $client and $server
# have changed by these numbers. Keys of the server begin with s:. Other counters must not change.
counters=(sends_with_invalidate remote_invalidations_received local_invalidations
	inline_calls chunked_calls bad_headers unexpected_messages)
counted() {
	local -A due=() counts=()
	local name bad=0
	while [[ $1 != -- ]]; do
		due[${1%%=*}]=${1#*=}
		shift
	done
	shift
	count_both
	for name in "${!counts[@]}"; do
		due[$name]=$((${counts[$name]} + ${due[$name]:-0}))
	done
	"$@" || return
	count_both
	for name in "${!counts[@]}"; do
		same "$name" "${due[$name]}" "${counts[$name]}" || bad=1
	done
	return "$bad"
}

# count_both: sets ${counts[...]} to the counters of $client and $server.
count_both() {
	local name
	info "$client"
	for name in "${counters[@]}"; do counts[$name]=${info[$name]}; done
	info "$server"
	for name in "${counters[@]}"; do counts[s:$name]=${info[$name]}; done
}

# renew: sets the links of the pair up, and makes its devices again. If rxe cannot send a packet,
# because there is no link or no route, it fails the queue pair. If that is the CM's, the device
# makes no more connections. siw has no such fault. The devices are removed before the links are up:
# otherwise a client might reconnect, and be lost again. Waits until both devices can be used.
renew() {
	if [[ $TRANSPORT = rxe ]]; then
		rdma link delete "$A_RDMA" && rdma link delete "$B_RDMA" || return
	fi
	on_a ip link set "$A_DEV" up && on_b ip link set "$B_DEV" up || return
	if [[ $TRANSPORT = rxe ]]; then
		add_device a && add_device b || return
	fi
	wait_for 20 has_gid "$A_RDMA" && wait_for 20 has_gid "$B_RDMA"
}

# has_gid DEVICE: whether rdma_cm can bind ids to the device. Its port is up, and the cache of its
# GIDs, which the kernel makes anew after each event of the port, holds the first one.
has_gid() { is_up "$1" && [[ $(<"/sys/class/infiniband/$1/ports/1/gids/0") != 0000:* ]]; }

# start_capture: captures all packets between the hosts that may carry RDMA, into $capture. With
# --immediate-mode each packet would take as much of the buffer (-B) as the longest one (-s).
# shellcheck disable=SC2154 # from lib.sh, and from the caller
start_capture() {
	# Not on_a, whose process would be a shell: stop_capture ends tcpdump itself.
	nsenter --net="/run/netns/$A" tcpdump -i "$A_DEV" -B 32768 -s 65549 -U \
		-w "$capture" 'udp port 4791 or udp port 9 or tcp' 2>"$scratch/tcpdump" &
	tcpdump=$!
	wait_for 20 grep -q 'listening on' "$scratch/tcpdump"
}

# stop_capture: sends a last packet, and waits until the capture holds it. Then it also
# holds all earlier packets, except those that tcpdump says it has lost.
# shellcheck disable=SC2154
stop_capture() {
	on_a bash -c "echo that-is-all >/dev/udp/$B4/9"
	wait_for 20 grep -qa that-is-all "$capture" || return
	kill "$tcpdump"
	wait "$tcpdump" || :
	grep -q '^0 packets dropped by kernel' "$scratch/tcpdump" ||
		{ cat "$scratch/tcpdump"; false; }
}

declare -A programs=() to_program=() from_program=()
# A write to a program that has died only fails: SIGPIPE must not end the script.
trap : PIPE
# program N [COMMAND...]: starts peer.py, a peer in user space, or another program that answers each
# line with one, as program N. Sets $pid.
program() {
	local fd starts=("${python[@]}" ./programs/peer.py)
	[[ $# = 1 ]] || starts=("${@:2}")
	# shellcheck disable=SC2154 # from lib.sh
	mkfifo "$scratch/to$1" "$scratch/from$1"
	"${starts[@]}" <"$scratch/to$1" >"$scratch/from$1" 2>&1 &
	pid=$!
	programs[$1]=$pid
	at_end program_end "$1"
	exec {fd}>"$scratch/to$1"
	to_program[$1]=$fd
	exec {fd}<"$scratch/from$1"
	from_program[$1]=$fd
}

# program_end N: ends program N, which ends its connections.
program_end() {
	local fd died=0
	[[ -n ${programs[$1]:-} ]] || return 0
	kill "${programs[$1]}" || died=1
	wait "${programs[$1]}" 2>/dev/null
	unset "programs[$1]"
	fd=${to_program[$1]}
	exec {fd}>&-
	fd=${from_program[$1]}
	exec {fd}<&-
	rm "$scratch/to$1" "$scratch/from$1"
	return "$died"
}

# say N COMMAND...: sends a command to program N.
# hear N [SECONDS]: sets $said to the answer. Fails if the answer begins with "failed", if there is
# none in time, or if the program has died by an exception.
# tell N COMMAND...: does both.
say() { printf '%s\n' "${*:2}" >&"${to_program[$1]}"; }

hear() {
	said=
	IFS= read -rt "${2:-30}" said <&"${from_program[$1]}" &&
		[[ $said != @(failed|Traceback)* ]] && return
	echo "program $1: ${said:-no answer}"
	[[ $said != Traceback* ]] || timeout 1 cat <&"${from_program[$1]}"
	return 1
}

tell() { say "$@" && hear "$1"; }
