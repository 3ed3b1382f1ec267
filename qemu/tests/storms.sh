#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A storm of attempts to connect: abusive peers in user space (peer.py), sixteen at a
# time, first without a limit, then with one. Well-behaved clients are accepted meanwhile,
# the counters add up, the memory stays within the limit of the guide, and nothing is left
# after the storm.
#
# A listener whose limit is reached rejects every request. There, well-behaved clients are
# rejected as fast as they are accepted elsewhere. The permits of peers that send REQ and
# nothing more are given back after a time.
#
# soak: stock.rxe debug.rxe
. ./lib.sh
. ./module.sh

attempts=1000 second_ms=6000 may_fail_percent=2
[[ $KERNEL != stock ]] || attempts=10000 second_ms=1000 may_fail_percent=1
attempts=${ATTEMPTS:-$attempts}

# An accepted connection without RTU ends after 30 seconds, which is checked every five:
# src/connection/listener.rs, src/connection/connections.rs.
confirmation=35

# A listener of rdma_cm that is not the module, to compare with.
yardstick=2100

# The largest limit that a listener can have, and a small one.
unlimited=65536 limit=8

# The event of a peer that is rejected: IB_CM_REJ_NO_RESOURCES; iWARP has no reason.
refused='RDMA_CM_EVENT_REJECTED,_status_3'
[[ $TRANSPORT = rxe ]] || refused='RDMA_CM_EVENT_REJECTED,_status_-111'

# (siw checks that a queue pair exists.)
ghost=ghost
[[ $TRANSPORT = rxe ]] || ghost=mute

# The behaviour of each of the sixteen, and its share of the attempts in thousandths. Those
# that refuse are servers.
storm=(
	orderly\ 40 orderly\ 40 orderly\ 40 orderly\ 40
	"$ghost 150" "$ghost 150" "$ghost 150" "$ghost 150"
	mute\ 50 mute\ 50
	vanish\ 10 vanish\ 10
	flood\ 35 flood\ 35
	refuse\ 25 refuse\ 25
)

# outcomes: adds the outcomes of a storm in $said to ${got[...]}. Fails if $said is another answer.
outcomes() {
	local word
	for word in $said; do
		case $word in
		slowest_ms=*)
			((${word#*=} <= ${got[slowest_ms]:-0})) || got[slowest_ms]=${word#*=}
			;;
		*=+([0-9])) ((got[${word%%=*}] += ${word#*=})) ;;
		*)
			echo "no outcomes: $said"
			return 1
			;;
		esac
	done
}

# storm_of PROGRAM HOW COUNT PORT: runs a storm of one kind. Sets $said to its outcomes.
storm_of() {
	say "$1" storm "$2" "$3" "/run/netns/$A" "$B4" "$4"
	hear "$1" 300
}

# behave PROGRAM PORT [TIMES]: connects as a well-behaved client. Adds the outcomes to
# ${good[...]}.
behave() {
	local -A got=()
	local outcome
	storm_of "$1" orderly "${3:-2}" "$2" && outcomes || return
	for outcome in "${!got[@]}"; do
		if [[ $outcome = slowest_ms ]]; then
			((got[$outcome] <= ${good[$2.slowest_ms]:-0})) ||
				good[$2.slowest_ms]=${got[$outcome]}
		else
			((good[$2.$outcome] += got[$outcome]))
		fi
	done
}

# behave_elsewhere: the same with a listener that is not the module, under the same load,
# to know how slow the guest and rdma_cm themselves are.
behave_elsewhere() {
	local n
	for n in 1 2; do
		say 18 accept none
		# The client may have closed before the server saw ESTABLISHED.
		behave 17 "$yardstick" 1 &&
			{ hear 18 60 || [[ $said = 'failed: disconnected' ]]; } &&
			tell 18 close || return
	done
}

# has_answered PROGRAM: whether there is something to hear.
has_answered() { read -rt 0 -u "${from_program[$1]}"; }

# connects PORT COUNT: the module connects, and is rejected each time.
connects() {
	# shellcheck disable=SC2016 # for the shell there
	on_a bash -c 'for ((n = 0; n < $1; n++)); do echo "$2 timeout_ms=60000"; done >"$3"' \
		- "$2" "$B4:$1" "$DEBUGFS/connect" 2>&1 | grep -c 'Connection refused'
}

# kib KEY...: sets $kib to the sum of these values of /proc/meminfo.
kib() {
	local key value
	kib=0
	while read -r key value _; do
		[[ " $* " != *" ${key%:} "* ]] || ((kib += value))
	done </proc/meminfo
}

# held: sets ${held[PORT]} to the number of connections of each listener.
declare -A held
held() {
	local line words
	held=()
	lines listeners
	for line in "${lines[@]:1}"; do
		read -ra words <<<"$line"
		held[${words[1]##*:}]=${words[5]}
	done
}

# stats: sets ${stat[...]} to all counters.
declare -A stat
stats() {
	local line
	lines stats
	for line in "${lines[@]}"; do stat[${line%%: *}]=${line#*: }; done
}

# storm PORT GOOD_PORT ATTEMPTS: runs all sixteen against the listener at PORT. Sets
# ${got[...]} to their outcomes, ${good[...]} to those of well-behaved clients at both
# ports, and $most to the highest number of connections of the listener.
storm() {
	local how share n=0 bad=0 pids=()
	got=() good=() most=0
	program 17 && program 18 && tell 18 listen "/run/netns/$B" "$B4" "$yardstick" &&
		behave_elsewhere && behave 17 "$2" && behave 17 "$1" || return
	for share in "${storm[@]}"; do
		read -r how share <<<"$share"
		program $((++n))
		share=$(($3 * share / 1000))
		if [[ $how = refuse ]]; then
			# Sixteen programs begin at once, so this one may need a while.
			say "$n" listen "/run/netns/$B" "$B4" $((3000 + n))
			hear "$n" 300 || bad=1
			say "$n" storm refuse "$share"
			connects $((3000 + n)) "$share" >"$scratch/refused$n" &
			pids+=($!)
		else
			say "$n" storm "$how" "$share" "/run/netns/$A" "$B4" "$1"
		fi
	done
	for ((n = 1; n <= ${#storm[@]}; n++)); do
		until has_answered "$n"; do
			kill -0 "${programs[$n]}" || { bad=1; break; }
			if ! { behave 17 "$2" && behave 17 "$1" && behave_elsewhere; }; then
				bad=1
				break
			fi
			held
			((held[$1] <= most)) || most=${held[$1]}
		done
		hear "$n" && outcomes || bad=1
	done
	wait "${pids[@]}"
	for ((n = 1; n <= ${#storm[@]} + 2; n++)); do program_end "$n" || bad=1; done
	for n in "$scratch"/refused*; do ((got[refusals] += $(<"$n"))); done
	return "$bad"
}

# only OUTCOMES NAME...: whether the array OUTCOMES has no other outcomes than these.
only() {
	local -n found=$1
	local outcome bad=0
	for outcome in "${!found[@]}"; do
		[[ " slowest_ms ${*:2} " = *" $outcome "* ]] && continue
		echo "${found[$outcome]} times $outcome"
		bad=1
	done
	return "$bad"
}

# between LOW HIGH NUMBER: whether NUMBER is in this range.
between() {
	(($1 <= $3 && $3 <= $2)) && return
	echo "wanted $1 to $2, found $3"
	return 1
}

# quick PORT...: whether well-behaved clients waited there for at most a second; or, if the
# guest is slow, not much longer than at the yardstick.
quick() {
	local port limit_ms=$((3 * good[$yardstick.slowest_ms]))
	((limit_ms >= second_ms)) || limit_ms=$second_ms
	for port in "$@"; do between 0 "$limit_ms" "${good[$port.slowest_ms]}" || return; done
}

# stormed NAME PORT: runs a storm, and checks what must hold after each. Adds to ${all[...]}.
declare -A got good all=([attempts]=0 [accepted]=0 [rejected]=0 [vanished]=0 [slowest_ms]=0)
stormed() {
	local name=$1 n asked answered silent
	local -A before more
	stats
	for n in "${!stat[@]}"; do before[$n]=${stat[$n]}; done
	need "$name: half of the storm" storm "$2" 2002 $((attempts / 2))
	check "$name: nothing is left" wait_for $((confirmation + 60)) nothing_left 'state LISTEN'
	check "$name: each connection of the history has its end" wait_for 10 consistent_history
	stats
	for n in "${!stat[@]}"; do more[$n]=$((stat[$n] - ${before[$n]})); done
	echo "# $name: at most $most connections; peers: ${got[*]@K}; behaving: ${good[*]@K}"

	check "$name: the peers were accepted, refused, or did not want to know" \
		only got established "$refused" unanswered vanished refuses refusals
	check "$name: well-behaved clients are accepted" \
		only good {2002,"$yardstick"}.{established,slowest_ms} \
		"$2".{established,slowest_ms,"$refused"}
	check "$name: well-behaved clients are answered soon" quick 2002 "$2"
	answered=$((got[established] + got[$refused]))
	for n in {2002,"$2"}.{established,"$refused"}; do ((answered += good[$n])); done
	silent=$((got[unanswered] + got[vanished]))
	asked=$((answered + silent))
	# A peer that vanishes may not have sent its request. A request that is retransmitted
	# after the storm counts as another one.
	check "$name: all requests were seen" \
		between $((asked - got[vanished])) $((asked * 101 / 100)) "${more[requests]}"
	check_equal "$name: each was accepted or refused, or failed" "${more[requests]}" \
		$((more[requests_accepted] + more[requests_refused] + more[requests_failed]))
	# Accepting fails if the peer gives up at the same moment.
	check "$name: hardly any failed" \
		between 0 $((silent * may_fail_percent / 100)) "${more[requests_failed]}"
	n=$((got[$refused] + good[2002.$refused] + good[$2.$refused]))
	check "$name: as many requests are refused as peers were rejected" \
		between "$n" $((n + silent)) "${more[requests_refused]}"
	check_equal "$name: what was established has ended" "${more[established]}" \
		$((more[lost] + more[closed]))
	check_equal "$name: each connect of the module failed" \
		"${got[refuses]} ${got[refuses]}" "${more[connects]} ${more[connects_failed]}"
	# A lost REJ is retransmitted, if the peer still exists.
	check "$name: the module was refused as often as it asked" \
		between $((got[refuses] * 9 / 10)) "${got[refuses]}" "${got[refusals]}"

	((all[attempts] += got[established] + got[$refused] + silent + got[refusals]))
	# Without the well-behaved clients.
	n=$((good[2002.established] + good[$2.established]))
	((all[accepted] += more[requests_accepted] - n))
	((all[rejected] += more[requests_refused] - good[$2.$refused] + got[refusals]))
	((all[vanished] += got[vanished]))
	for n in "${good[2002.slowest_ms]}" "${good[$2.slowest_ms]}"; do
		((n <= all[slowest_ms])) || all[slowest_ms]=$n
	done
}

# About: memory.

# The memory of a connection by docs/admin-guide.md, Limits. rdma_cm and the drivers take
# more at both ends.
full=50 receive=65536 credits=5 reverse=3
octets_each=$(((credits + reverse + 1) * receive + 4096 + 16384))
others_each=65536

# grown: sets $grown to the growth of the slabs since $before_kib.
grown() { kib Slab && grown=$((kib - before_kib)); }

within_bound() {
	grown
	between $((full * (credits + reverse) * receive / 1024)) \
		$((full * (octets_each + others_each) / 1024)) "$grown"
}

given_back() {
	local cache
	for cache in /sys/kernel/slab/*/shrink; do echo 1 >"$cache"; done
	grown
	between -65536 $((full * (credits + reverse) * receive / 1024 / 8)) "$grown"
}

# told OUTCOME=COUNT...: whether the last storm had these outcomes.
told() { same outcomes "$*" "${said% slowest_ms=*}"; }

holds() { held && same connections "$2" "${held[$1]}"; }

# About: peers that send REQ and nothing more.

cut_off() { netem a loss 100% && netem b loss 100%; }
reconnect() { netem a && netem b; }

# RFC 5044, section 7.1. (Not in the peer-to-peer mode of RFC 6581, section 9.2:
# docs/admin-guide.md, Limits.)
mpa_request='MPA ID Req Frame\x40\x01\x00\x00'

# speak N OCTETS: sends OCTETS to the listener with a limit, over N TCP connections.
speak() {
	local n fd
	fds=()
	for ((n = 0; n < $1; n++)); do
		exec {fd}<>"/dev/tcp/$B4/2001" && fds+=("$fd") || return
		# shellcheck disable=SC2059 # escapes
		printf "$2" >&"$fd"
	done
}

hang_up() {
	local fd
	for fd in "${fds[@]}"; do exec {fd}>&-; done
}

# all_closed: waits until the listener has closed them, and closes this side, too.
all_closed() {
	local fd status bad=0
	for fd in "${fds[@]}"; do
		status=0
		until [[ $status != 0 ]]; do
			read -rN1 -t 60 -u "$fd" || status=$?
		done
		# A status above 128: the time limit of read.
		((status <= 128)) || bad=1
	done
	hang_up
	return "$bad"
}

# -----------------------------------------------------------------------------

# listen WHEN: checks that the listeners can be made.
listen() {
	need "$1: a listener without a limit" control b listen "$B4:2000 max=$unlimited reverse=3"
	need "$1: a listener with a limit" control b listen "$B4:2001 max=$limit reverse=3"
	need "$1: a listener for well-behaved peers" control b listen "$B4:2002"
	need "$1: a listener with large Receives" control b \
		listen "$B4:2003 max=$full recv=$receive credits=$credits reverse=$reverse"
}

# rows COUNT: whether COUNT connections of programs are shown.
rows() {
	lines connections
	printf '%s\n' "${lines[@]}" >"$scratch/rows"
	same rows "$1" "$(grep -c ' user ' "$scratch/rows")"
}

need_pair
need_module
listen 'at first'

# A first storm that does not count, to fill the kernel's caches.
program 1
need 'a few connections' storm_of 1 orderly 20 2003
program_end 1
check 'none of them is left' wait_for 20 none_live
objects "$scratch/before"
kib Slab
before_kib=$kib
program 1
need 'as many connections as one may have, and more' \
	storm_of 1 hold $((full + 10)) 2003
check 'some are refused' told "established=$full $refused=10"
check 'the others take no more memory than stated' within_bound
echo "# $full connections: $((grown * 1024 / full)) octets each, both ends; stated: $octets_each"
program 2
need 'those that come then' storm_of 2 orderly 100 2003
check 'are all refused' told "$refused=100"
check 'and take no memory' within_bound
check 'the others are still there' holds 2003 "$full"
program_end 1
program_end 2
check 'they are gone when the peers are killed' wait_for 60 none_live
check 'and give back what they had' wait_for 60 given_back

if [[ $TRANSPORT = rxe ]]; then
	program 1
	need 'peers that ask and say no more' storm_of 1 mute 4 2001
	check 'they have their places' wait_for 10 holds 2001 4
	check 'but not for ever' wait_for $((confirmation + 15)) holds 2001 0
	program_end 1

	program 1
	need 'peers that are there' storm_of 1 hold 4 2001
	need 'they are cut off' cut_off
	program_end 1
	need 'and killed' reconnect
	check 'peers that were cut off still count against max=' holds 2001 4
	check 'peers that were cut off: close all' control b close all
	check 'peers that were cut off: nothing is left' wait_for 10 nothing_left 'state LISTEN'
	listen 'after peers that were cut off'
else
	need 'a third of a request' speak 8 'MPA I'
	check 'is not waited for' all_closed
	need 'a request' speak 4 "$mpa_request"
	check 'has its place' wait_for 10 holds 2001 4
	hang_up
	check 'until its connection of TCP ends' wait_for 30 holds 2001 0
fi

stormed 'no limit' 2000
check 'a limit of its own' between 1 "$unlimited" "$most"
stormed 'a limit' 2001
check 'it was reached' between 1 "$attempts" "${got[$refused]}"
check 'and held' between 0 "$limit" "$most"
check 'no slab cache has grown with the storms' wait_for 120 not_grown $((attempts / 10))
check 'the module unloads after the storms' module_unload

need 'it loads, to observe four' insmod "$MODULE" max_observed=4
program 1
need 'programs ask for six connections' storm_of 1 hold 6 20049
check 'four are shown' wait_for 10 rows 4
stats
check_equal 'two are counted' 2 "${stat[observed_missed]}"
program_end 1
check 'they go' wait_for 10 rows 0
program 1
need 'programs ask for three' storm_of 1 hold 3 20049
check 'which are shown' wait_for 10 rows 3
program_end 1

echo "# tried: storms: ${all[attempts]} attempts, ${all[accepted]} accepted," \
	"${all[rejected]} rejected, ${all[vanished]} vanished," \
	"slowest well-behaved peer ${all[slowest_ms]} ms"
