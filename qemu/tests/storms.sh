#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# A storm of attempts to connect by abusive peers in user space (peer.py), sixteen at a time,
# first with the largest max=, then with a small one. Well-behaved clients are accepted meanwhile,
# the counters add up, the memory stays within the limit of the guide, and nothing is left after the
# storm.
#
# A listener that has max= connections rejects every request. It rejects well-behaved clients as
# fast as other listeners accept them. The permit of a peer that only sends a REQ is given back
# after a time.
#
# soak: stock.rxe debug.rxe
. ./lib/lib.sh
. ./lib/module.sh

attempts=1000 may_fail_percent=2
[[ $KERNEL != stock ]] || attempts=10000 may_fail_percent=1
attempts=${ATTEMPTS:-$attempts}

# A timer ends an accepted connection without RTU after 30 seconds (src/connection/listener.rs).
# Five more, because guests are slow.
confirmation=35

# The port of a listener that is not the module. Its times show how slow the guest is.
yardstick=2100

# The largest value of max=, and a small one.
unlimited=65536 limit=8

# The event of a peer that is rejected. IB_CM_REJ_NO_RESOURCES is 3; iWARP has no reason.
refused='RDMA_CM_EVENT_REJECTED,_status_3'
[[ $TRANSPORT = rxe ]] || refused='RDMA_CM_EVENT_REJECTED,_status_-111'
# The event of a peer whose REQ was retransmitted, and whose connection was over when the second
# one arrived (IB_CM_REJ_STALE_CONN).
stale='RDMA_CM_EVENT_REJECTED,_status_10'

# How long a well-behaved client may wait, in milliseconds: the CM retransmits a lost REQ after 4.6
# seconds, and the first of these clients begin together with sixteen programs.
soon_ms=10000

# siw checks that a queue pair exists.
ghost=ghost
[[ $TRANSPORT = rxe ]] || ghost=mute

# The kind of each of the sixteen peers, and its share of the attempts in thousandths. The kind
# `refuse` is a server.
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

# behave_elsewhere: connects in the same way to the listener that is not the module, under the
# same load, to know how slow the guest and rdma_cm themselves are.
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

# calls_both_ways: makes calls at each end of the connection that does so during storms, if there is
# one.
beside=()
calls_both_ways() {
	local id
	for id in "${beside[@]}"; do
		control - call "connection $id echo size=100 count=40 jobs=8" || return
	done
}

# has_answered PROGRAM: whether an answer of the program can be read.
has_answered() { read -rt 0 -u "${from_program[$1]}"; }

# connects PORT COUNT: has the module connect, and prints how often it was rejected.
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
stats() { query stat stats; }

# notes_most PORT: sets $most to the number of connections of that listener, if it is higher.
notes_most() { held && { ((held[$1] <= most)) || most=${held[$1]}; }; }

# storm PORT GOOD_PORT ATTEMPTS: runs all sixteen peers against the listener at PORT. Sets
# ${got[...]} to their outcomes, ${good[...]} to those of well-behaved clients at both ports,
# and $most to the highest number of connections of the listener.
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
			if ! { notes_most "$1" && behave 17 "$2" && notes_most "$1" &&
				behave 17 "$1" && behave_elsewhere && calls_both_ways &&
				notes_most "$1"; }; then
				bad=1
				break
			fi
		done
		hear "$n" && outcomes || bad=1
	done
	wait "${pids[@]}"
	for ((n = 1; n <= ${#storm[@]} + 2; n++)); do program_end "$n" || bad=1; done
	for n in "$scratch"/refused*; do ((got[refusals] += $(<"$n"))); done
	return "$bad"
}

# only OUTCOMES NAME...: whether the array OUTCOMES has only these outcomes.
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

# quick PORT...: whether well-behaved clients waited there for at most $soon_ms or, if the guest is
# slow, three times as long as at the yardstick.
quick() {
	local port limit_ms=$((3 * good[$yardstick.slowest_ms]))
	((limit_ms >= soon_ms)) || limit_ms=$soon_ms
	for port in "$@"; do between 0 "$limit_ms" "${good[$port.slowest_ms]}" || return; done
}

# stormed NAME PORT: runs a storm, and checks what must hold after each. Adds to ${all[...]}.
declare -A got good all=([attempts]=0 [accepted]=0 [rejected]=0 [vanished]=0 [slowest_ms]=0)
stormed() {
	local name=$1 n asked answered silent
	local -A before more
	stats
	for n in "${!stat[@]}"; do before[$n]=${stat[$n]}; done
	need "$name: the storm ends" storm "$2" 2002 $((attempts / 2))
	check "$name: nothing is left" wait_for $((confirmation + 60)) nothing_left 'state LISTEN'
	check "$name: each connection of the history has its end" wait_for 10 consistent_history
	stats
	for n in "${!stat[@]}"; do more[$n]=$((stat[$n] - ${before[$n]})); done
	echo "# $name: at most $most connections; peers: ${got[*]@K}; behaving: ${good[*]@K}"

	check "$name: each peer was accepted or refused, or did not wait" \
		only got established "$refused" "$stale" unanswered vanished refuses refusals
	check "$name: well-behaved clients are accepted" \
		only good {2002,"$yardstick"}.{established,slowest_ms} \
		"$2".{established,slowest_ms,"$refused"}
	check "$name: well-behaved clients are answered soon" quick 2002 "$2"
	answered=$((got[established] + got[$refused] + got[$stale]))
	for n in {2002,"$2"}.{established,"$refused"}; do ((answered += good[$n])); done
	silent=$((got[unanswered] + got[vanished]))
	asked=$((answered + silent))
	# A peer that vanishes may not have sent its request. A request that is retransmitted
	# after the storm counts as another one.
	check "$name: requests counts all requests" \
		between $((asked - got[vanished])) $((asked * 101 / 100)) "${more[requests]}"
	check_equal "$name: each request was accepted or refused, or failed" "${more[requests]}" \
		$((more[requests_accepted] + more[requests_refused] + more[requests_failed]))
	# Accepting fails if the peer vanishes, or gives up at the same moment.
	check "$name: at most $may_fail_percent % of the requests failed whose peers stayed" \
		between 0 $((got[vanished] + got[unanswered] * may_fail_percent / 100)) \
		"${more[requests_failed]}"
	n=$((got[$refused] + good[2002.$refused] + good[$2.$refused]))
	check "$name: as many requests are refused as peers were rejected" \
		between "$n" $((n + silent)) "${more[requests_refused]}"
	check_equal "$name: each established connection has ended" "${more[established]}" \
		$((more[lost] + more[closed]))
	check_equal "$name: each connect of the module failed" \
		"${got[refuses]} ${got[refuses]}" "${more[connects]} ${more[connects_failed]}"
	# A lost REJ is retransmitted, if the peer still exists.
	check "$name: the module's connects are refused by the peers that refuse" \
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

# The memory of a connection that has got no message. docs/admin-guide.md, Limits, counts the
# Receives twice. rdma_cm and the drivers take more at both ends.
full=50 receive=65536 credits=5 reverse=3
small_each=$(((credits + reverse) * (4096 + 768) + 16384))
octets_each=$(((credits + reverse + 1) * receive + small_each))
others_each=65536
usual_objects || others_each=$((2 * others_each + small_each))

# grown: sets $grown to the growth of the slabs since $before_kib, in KiB.
grown() { kib Slab && grown=$((kib - before_kib)); }

# Use it with wait_for: RCU frees memory later.
within_bound() {
	shrink_slabs
	grown
	between $((full * (credits + reverse) * receive / 1024)) \
		$((full * (octets_each + others_each) / 1024)) "$grown"
}

given_back() {
	shrink_slabs
	grown
	between -65536 $((full * (credits + reverse) * receive / 1024 / 8)) "$grown"
}

# check_memory NAME COMMAND...: checks the memory on Debian's kernel. The tools of the debug kernel
# take memory of their own for each object.
check_memory() {
	if [[ $KERNEL = stock ]]; then check "$@"; else skip "$1" 'not on the debug kernel'; fi
}

# told OUTCOME=COUNT...: whether the last storm had exactly these outcomes.
told() { same outcomes "$*" "${said% slowest_ms=*}"; }

holds() { held && same connections "$2" "${held[$1]}"; }

# About: peers that only send a REQ.

cut_off() { netem a loss 100% && netem b loss 100%; }
reconnect() { netem a && netem b; }

# RFC 5044, section 7.1
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

# all_closed: whether the listener closes all these TCP connections within 60 s. Closes this side.
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

# listen WHEN: makes the listeners.
listen() {
	need "$1: a listener with max=$unlimited" \
		control b listen "$B4:2000 max=$unlimited reverse=3"
	need "$1: a listener with max=$limit" control b listen "$B4:2001 max=$limit reverse=3"
	need "$1: a listener for well-behaved peers" control b listen "$B4:2002"
	need "$1: a listener with large Receives" control b \
		listen "$B4:2003 max=$full recv=$receive credits=$credits reverse=$reverse"
}

# rows COUNT: whether exactly COUNT connections of programs are shown.
rows() { ids_of user && same rows "$1" "${#ids[@]}"; }

memory() {
	kib Slab
	before_kib=$kib
	program 1
	need 'more connections than max= allows' \
		storm_of 1 hold $((full + 10)) 2003
	check 'the connections beyond max= are refused' told "established=$full $refused=10"
	check_memory 'max= connections take no more memory than the guide states' \
		wait_for 20 within_bound
	[[ $KERNEL != stock ]] ||
		echo "# $full connections: $((grown * 1024 / full)) octets each," \
			"expected: $octets_each"
	program 2
	need '100 more connections than max= allows' storm_of 2 orderly 100 2003
	check 'the 100 connections beyond max= are refused' told "$refused=100"
	check_memory 'refused connections take no memory' wait_for 20 within_bound
	check 'max= connections are still established' holds 2003 "$full"
	program_end 1
	program_end 2
	check 'max= connections are gone when their peer is killed' wait_for 60 none_live
	check_memory 'max= connections give back their memory' wait_for 60 given_back
}

only_requests() {
	if [[ $TRANSPORT = rxe ]]; then
		program 1
		need 'peers that only send a REQ' storm_of 1 mute 4 2001
		check 'peers that only send a REQ count against max=' wait_for 10 holds 2001 4
		check 'peers that only send a REQ count for a limited time' \
			wait_for $((confirmation + 15)) holds 2001 0
		program_end 1

		program 1
		need 'peers that are going to be cut off' storm_of 1 hold 4 2001
		need 'peers are cut off' cut_off
		program_end 1
		need 'the network is back after the peers were killed' reconnect
		check 'peers that were cut off still count against max=' holds 2001 4
		check 'close all ends connections of peers that were cut off' control b close all
		check 'nothing is left of peers that were cut off' \
			wait_for 10 nothing_left 'state LISTEN'
		listen 'after peers that were cut off'
	else
		need 'peers that send a part of an MPA request' speak 8 'MPA I'
		check 'the listener ends a connection with a part of an MPA request' all_closed
		need 'peers that only send an MPA request' speak 4 "$mpa_request"
		check 'peers that only send an MPA request count against max=' \
			wait_for 10 holds 2001 4
		hang_up
		check 'peers count against max= until their TCP connection ends' \
			wait_for 30 holds 2001 0
	fi
}

without_limit() {
	stormed "max=$unlimited" 2000
	check "max=$unlimited: the listener had connections" between 1 "$unlimited" "$most"
}

at_the_limit() {
	stormed "max=$limit" 2001
	check "max=$limit: the maximum was reached" between 1 "$attempts" "${got[$refused]}"
	check "max=$limit: the maximum was not exceeded" between 0 "$limit" "$most"
}

calls_beside() {
	need 'a listener for calls during a storm' control b listen "$B4:2004 reverse=8"
	need 'a connection for calls during a storm' connect a "$B4:2004 reverse=8"
	need 'its client allows calls in reverse' \
		wait_for 10 same_info "$client" reverse_direction=yes
	beside=("$client" "$server")
	need 'calls in both directions succeed during a storm' storm 2001 2002 $((attempts / 10))
	check 'the connection of these calls was not lost' \
		same_info "$client" state=established generation=1
	info "$client"
	check 'its calls in reverse were counted' test "${info[reverse_inline_calls]}" -ge 40
	check 'the connection of these calls is closed' control - close "connection $client"
	check 'nothing is left after these calls' \
		wait_for $((confirmation + 60)) nothing_left 'state LISTEN'
}

few_observed() {
	need 'the module loads with max_observed=16' insmod "$MODULE" max_observed=16
	program 1
	need 'max_observed=16: a program requests six connections' storm_of 1 hold 6 20049
	check 'max_observed=16: four are shown' wait_for 10 rows 4
	stats
	check_equal 'max_observed=16: two are counted as missed' 2 "${stat[observed_missed]}"
	program_end 1
	check 'max_observed=16: none is shown when the program has ended' wait_for 10 rows 0
	program 1
	need 'max_observed=16: a program requests three connections' storm_of 1 hold 3 20049
	check 'max_observed=16: all three are shown' wait_for 10 rows 3
	program_end 1
}

need_pair
need_module
listen 'at first'

# These connections fill the kernel's caches before they are measured.
program 1
need 'the first 20 connections' storm_of 1 orderly 20 2003
program_end 1
check 'none of the first 20 connections is left' wait_for 20 none_live
objects "$scratch/before"
group memory
group only_requests
group without_limit
group at_the_limit
group calls_beside
check 'no slab cache has grown with the storms' wait_for 120 not_grown $((attempts / 10))
check 'the module unloads after the storms' module_unload
group few_observed

echo "# tried: storms: ${all[attempts]} attempts, ${all[accepted]} accepted," \
	"${all[rejected]} rejected, ${all[vanished]} vanished," \
	"slowest well-behaved peer ${all[slowest_ms]} ms"
