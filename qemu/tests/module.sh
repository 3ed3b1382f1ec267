# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2153
#
# What the tests of the module and the benchmark share, about its files in
# debugfs; source it after lib.sh or hosts.sh. SIDE is a or b: a host of the pair;
# or -: where the script runs.
#
# One process of Python, agent.py, does what bash cannot: write once and know the
# errno, from within a network namespace, and read octets that are NUL.

shopt -s extglob

# InfiniBand's CM has fields of a fixed size for private data, padded with zeros,
# and rdma_cm takes 36 of a request's 92 octets. MPA counts: in one octet in the
# kernel, and MPAv2 takes 4 (RFC 6581, section 9).
case $TRANSPORT in
rxe) transport=roce request_room=56 reply_room=196 ;;
siw) transport=iwarp request_room=251 reply_room=251 ;;
esac

# Without what the guest's packages add to Python, which would take it long to start.
python=(python3 -EsSB)
library=${BASH_SOURCE[0]%/*}

# ask FUNCTION ARGUMENT...: into $answer.
ask() {
	if [[ -z ${AGENT_PID:-} ]]; then
		coproc AGENT { exec "${python[@]}" "$library/agent.py"; }
		at_end kill "$AGENT_PID"
	fi
	local IFS=$'\t'
	answer=
	printf '%s\n' "$*" >&"${AGENT[1]}" && read -r answer <&"${AGENT[0]}"
}

# put SIDE FILE TEXT: in one write, with Python's escapes. Into $errno what it
# failed with, or 0; fails too.
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

# control SIDE FILE LINE: and show on failure what the module says about it.
control() {
	put "$1" "$2" "$3\\n" && return
	echo "$3 > $2: $errno, $(<"$DEBUGFS/last_error")"
	return 1
}

# octets FILE: into $octets, in hex; FILE as in connection/7/sent.
octets() {
	ask octets "$DEBUGFS/$1"
	octets=$answer
}

# lines FILE: into $lines.
lines() { mapfile -t lines <"$DEBUGFS/$1"; }

# row FILE ID: into the array of that name the columns of a table's line.
row() {
	local line
	row=()
	lines "$1"
	for line in "${lines[@]}"; do
		[[ $line != "$2 "* ]] || { read -ra row <<<"$line"; return; }
	done
	return 1
}

# newest client|server: into $id the newest connection of that role.
newest() {
	local line
	id=
	lines connections
	for line in "${lines[@]}"; do
		[[ ! $line =~ ^([0-9]+)' '+module' '+"$1 " ]] || id=${BASH_REMATCH[1]}
	done
	[[ -n $id ]]
}

# peer_of ID: into $id the module's connection that is the other end of it.
peer_of() {
	local line from to zone='%+([0-9])'
	row connections "$1" || return
	# Each end has zones of its own.
	# shellcheck disable=SC2295 # a pattern
	from=${row[6]//$zone/} to=${row[7]//$zone/}
	id=
	for line in "${lines[@]}"; do
		# shellcheck disable=SC2295
		[[ $line != *%* ]] || line=${line//$zone/}
		[[ $line != *" $to "*( )"$from "* ]] || id=${line%% *}
	done
	[[ -n $id ]]
}

# connect SIDE LINE: into $client and $server the two ends, both established.
# For a server that is the module, too.
connect() {
	client='' server=''
	control "$1" connect "$2" || return
	newest client && client=$id || return
	wait_for 10 newest_peer || return
	wait_for 10 is_state "$server" established
}

newest_peer() { peer_of "$client" && server=$id; }

# info ID: into the array of that name; fails where there is no such connection, or
# none any more when it is read.
declare -A info
info() {
	local line
	info=()
	[[ -e $DEBUGFS/connection/$1 ]] && lines "connection/$1/info" || return
	for line in "${lines[@]}"; do
		info[${line%%: *}]=${line#*: }
	done
	[[ -n ${info[state]-} ]]
}

is_state() { info "$1" && [[ ${info[state]} = "$2" ]]; }
is_gone() { [[ ! -e $DEBUGFS/connection/$1 ]]; }
# is_generation ID N: whether it is established for the N-th time.
is_generation() { is_state "$1" established && [[ ${info[generation]} = "$2" ]]; }
# Of the module's own.
none_live() { lines connections && [[ "${lines[*]}" != *' module '* ]]; }
# Nor any that is observed.
none_shown() { lines connections && [[ ${#lines[@]} = 1 ]]; }

# same_info ID KEY=VALUE...: whether it says all that; prints where it does not.
same_info() {
	local id=$1 word same=0
	shift
	info "$id" || { echo "no connection $id"; return 1; }
	for word in "$@"; do
		[[ ${info[${word%%=*}]-missing} = "${word#*=}" ]] && continue
		echo "connection $id: wanted $word, found ${info[${word%%=*}]-nothing}"
		same=1
	done
	return "$same"
}

# resources: prints what the resource tracker, which names who made an id or a
# queue pair, knows of the module.
resources() {
	printf 'resource show %s\n' cm_id qp | rdma -b - | grep -F '[rpcrdma_cm]'
	return "${PIPESTATUS[1]}"
}

# nothing_known [EXCEPT]: whether the resource tracker knows nothing of the module's,
# except lines with that; prints what it knows.
nothing_known() {
	# shellcheck disable=SC2154 # from lib.sh
	resources >"$scratch/known" 2>&1 || { cat "$scratch/known"; return 1; }
	! grep -v -e "${1:-^$}" "$scratch/known"
}

# nothing_left [EXCEPT]: likewise, and no connection of the module's is shown.
nothing_left() {
	none_live || { cat "$DEBUGFS/connections"; return 1; }
	nothing_known "$@"
}

# counter NAME: into $count one of those of stats.
counter() {
	local line
	lines stats
	for line in "${lines[@]}"; do
		[[ $line != "$1: "* ]] || { count=${line#*: }; return 0; }
	done
	return 1
}

# consistent_history: whether the events are in the order of their times, and each
# connection that was established has ended once, or still is. Prints those that
# have not. (One that ends between the two readings has not: wait_for it.)
consistent_history() {
	counter history_overwritten && cat "$DEBUGFS/history" "$DEBUGFS/connections" |
		awk -v overwritten="$count" '
		/^(TIME|ID) / {
			for (n = 1; n <= NF; n++) at[$n] = n
			live = $1 == "ID"
			next
		}
		{ key = $at["ID"] " " $at["GEN"] }
		live {
			if ($at["STATE"] == "established") delete open[key]
			next
		}
		$1 + 0 < last { print "before the event in front of it: " $0; bad = 1 }
		{ last = $1 + 0 }
		$at["EVENT"] ~ /established$/ {
			if (key in open) { print "established twice: " $0; bad = 1 }
			open[key] = $0
		}
		$at["EVENT"] == "lost" || $at["EVENT"] == "closed" && $at["LASTED_MS"] != "-" {
			if (!(key in open) && !overwritten && $at["LASTED_MS"] != "-") {
				print "ends, and was not established: " $0
				bad = 1
			}
			delete open[key]
		}
		END {
			for (key in open) { print "has not ended: " open[key]; bad = 1 }
			exit bad
		}'
}

# What was freed is given back before it is counted, KASAN's quarantine too. Not
# counted are the areas of vmalloc, which the kernel frees when there are many,
# what the debug kernel remembers of them and of all else, the paths of who opens
# files, and what TCP keeps of siw's connections for a minute.
objects() {
	local cache
	for cache in /sys/kernel/slab/*/shrink; do
		[[ -L ${cache%/shrink} ]] || echo 1 >"$cache"
	done
	local kept='vmap_area|kmemleak_.*|debug_objects_cache|names_cache|tw_sock_TCP.*|tcp_bind.*'
	awk -v kept="^($kept)\$" 'NR > 2 && $1 !~ kept { print $1, $2 }' /proc/slabinfo | sort >"$1"
}

# not_grown N: by as many objects in a cache since `objects "$scratch/before"`;
# prints what was.
not_grown() {
	# shellcheck disable=SC2154 # from lib.sh
	objects "$scratch/after"
	join "$scratch/before" "$scratch/after" |
		awk -v n="$1" '$3 - $2 >= n { print; grown = 1 } END { exit grown }'
}

# message SEND RECEIVE R: into $message what RFC 8797, section 4 says, in hex.
message() {
	printf -v message 'f6ab0e1801%02x%02x%02x' "$3" $(($1 / 1024 - 1)) $(($2 / 1024 - 1))
}

# padded HEX LENGTH: into $padded, with zeros up to LENGTH octets.
padded() {
	printf -v padded '%*s' $((2 * $2 - ${#1})) ''
	padded=$1${padded// /0}
}

# arrives HEX ROOM: into $padded, how octets arrive where there is that room.
arrives() {
	padded=$1
	[[ $TRANSPORT = siw ]] || padded "$1" "$2"
}

now_ms() { now=$((${EPOCHREALTIME/./} / 1000)); }

# within FROM TO SINCE: whether so many milliseconds have passed.
within() {
	now_ms
	(($1 <= now - $3 && now - $3 <= $2)) && return
	echo "took $((now - $3)) ms, wanted $1 to $2"
	return 1
}

# same NAME WANTED FOUND: prints where it is not.
same() { [[ $2 = "$3" ]] || { echo "$1: wanted $2, found $3"; return 1; }; }

# counted KEY=CHANGE... -- COMMAND...: by how much the counters of $client and $server
# change; keys of the server begin with s:. Counters that are not named stay.
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

# count_both: into ${counts[...]}, those of $client and $server.
count_both() {
	local name
	info "$client"
	for name in "${counters[@]}"; do counts[$name]=${info[$name]}; done
	info "$server"
	for name in "${counters[@]}"; do counts[s:$name]=${info[$name]}; done
}

# start_capture: of all packets between the hosts that RDMA may be in, to $capture.
# shellcheck disable=SC2154 # from lib.sh, and from who calls it
start_capture() {
	on_a tcpdump -i "$A_DEV" -U --immediate-mode -w "$capture" \
		'udp port 4791 or udp port 9 or tcp' 2>"$scratch/tcpdump" &
	tcpdump=$!
	wait_for 20 grep -q 'listening on' "$scratch/tcpdump"
}

# stop_capture: it holds all that came before a packet of ours once it holds that.
# shellcheck disable=SC2154
stop_capture() {
	on_a bash -c "echo that-is-all >/dev/udp/$B4/9"
	wait_for 20 grep -qa that-is-all "$capture" || return
	kill "$tcpdump"
	wait "$tcpdump" || :
}

# program N: number N is peer.py, which speaks librdmacm; its process is in $pid.
programs=() to_program=() from_program=()
# One that has died is a failure, not the end of the script.
trap : PIPE
program() {
	local fd
	# shellcheck disable=SC2154 # from lib.sh
	mkfifo "$scratch/to$1" "$scratch/from$1"
	"${python[@]}" ./peer.py <"$scratch/to$1" >"$scratch/from$1" 2>&1 &
	pid=$!
	programs[$1]=$pid
	at_end program_end "$1"
	exec {fd}>"$scratch/to$1"
	to_program[$1]=$fd
	exec {fd}<"$scratch/from$1"
	from_program[$1]=$fd
}

# program_end N: and with it all that it has.
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

# say N COMMAND...: to a program; hear N [SECONDS]: its answer, into $said; tell:
# both.
say() { printf '%s\n' "${*:2}" >&"${to_program[$1]}"; }

hear() {
	said=
	IFS= read -rt "${2:-30}" said <&"${from_program[$1]}" && [[ $said != failed* ]] && return
	echo "program $1: ${said:-no answer}"
	return 1
}

tell() { say "$@" && hear "$1"; }
