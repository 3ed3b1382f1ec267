#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Every allocation of an operation fails once: first the first one, then the second one, and
# so on. Each time the operation ends with a clear errno, or succeeds without the memory.
# Nothing is left behind, and the next attempt works.
#
# The kernel counts all allocations of the task that writes or reads (fail-nth).
# Allocations in other tasks (handlers of rdma_cm, completions, works, probes) are counted
# if the module's code is on their stack: see arm.
#
# soak: debug.rxe debug.siw
. ./lib/lib.sh
. ./lib/module.sh

# About: failing.

injection=/sys/kernel/debug
declare -A counts=([failslab]=0 [fail_page_alloc]=0)

# set_faults KEY=VALUE...: sets attributes of both kinds of fault injection.
set_faults() {
	local kind word
	for kind in "${!counts[@]}"; do
		for word; do echo "${word#*=}" >"$injection/$kind/${word%%=*}"; done
	done
}

# code SYMBOL: sets $start and $end to the addresses of a function.
code() {
	read -r start end < <(awk -v name="$1" '
		NR == FNR { if ($3 == name) start = $1; next }
		$1 "" > start "" && (end == "" || $1 "" < end "") { end = $1 }
		END { print start, end }' /proc/kallsyms /proc/kallsyms)
	start=0x$start end=0x$end
}

# spare SYMBOL: lets no allocation fail in that function and in functions that it calls.
spare() {
	local start end
	code "$1"
	set_faults reject-start="$start" reject-end="$end"
}

# fail_under SYMBOL|module|anything: lets allocations fail only in that function and in
# functions that it calls, or only under the module's code, or anywhere.
fail_under() {
	local start=0 end=0xffffffffffffffff
	case $1 in
	anything) ;;
	module)
		start=$(</sys/module/rpcrdma_cm/sections/.text)
		printf -v end '%#x' $((start + text_size))
		;;
	*) code "$1" ;;
	esac
	set_faults require-start="$start" require-end="$end"
}

prepare_faults() {
	local kind
	text_size=$(size -A "$MODULE" | awk '$1 == ".text" { print $2 }')
	at_end set_faults probability=0 interval=1 require-start=0 \
		require-end=0xffffffffffffffff task-filter=N
	set_faults probability=0 times=1 verbose=0 task-filter=Y ignore-gfp-wait=N \
		stacktrace-depth=32 || return
	echo N >"$injection/fail_page_alloc/ignore-gfp-highmem"
	echo 0 >"$injection/fail_page_alloc/min-order"
	# kmemleak allocates a record for each allocation. It has a reserve of its own.
	spare __alloc_object || return
	at_end set_faults reject-start=0 reject-end=0
	for kind in "${!counts[@]}"; do
		[[ ! -e /run/$kind ]] || counts[$kind]=$(<"/run/$kind")
	done
}

# may_fail 0|1 [PID...]: sets whether allocations of these tasks may fail; by default those
# of all kernel threads. New kernel threads inherit it from kthreadd.
may_fail() {
	local process stat
	if (($# > 1)); then
		for process in "${@:2}"; do echo "$1" >"/proc/$process/make-it-fail"; done
		return
	fi
	for process in /proc/[0-9]*; do
		{ read -r stat <"$process/stat"; } 2>/dev/null || continue
		stat=${stat##*) }
		[[ $process != /proc/2 && $stat != [A-Z]' 2 '* ]] ||
			echo "$1" >"$process/make-it-fail"
	done 2>/dev/null
	return 0
}

# arm KIND N: makes the N-th matching allocation from now on fail, in the tasks of
# may_fail. The kernel fails the allocation at which its count is a multiple of the
# interval. It counts only while injection is enabled, so ${counts[KIND]} knows the count.
# With an interval of 1 the kernel does not count.
arm() {
	interval=$((${counts[$1]} + $2))
	echo "$interval" >"$injection/$1/interval"
	echo 1 >"$injection/$1/times"
	echo 100 >"$injection/$1/probability"
}

# disarm KIND: sets $fired to whether an allocation has failed.
disarm() {
	echo 0 >"$injection/$1/probability"
	fired=$((! $(<"$injection/$1/times")))
	((!fired || interval == 1)) || counts[$1]=$interval
	echo "${counts[$1]}" >"/run/$1"
}

# act SIDE put|get|load|unload [FILE [TEXT]]: has agent.py do this while allocation number
# $here of its task fails. Sets $errno.
here=0
act() {
	local netns=/proc/self/ns/net
	case $1 in
	a) netns=/run/netns/$A ;;
	b) netns=/run/netns/$B ;;
	esac
	ask failing "$here" "$netns" "$2" "${3-}" "${4-}"
	read -r errno fired_here <<<"$answer"
}

# walk NAME OPERATION WHERE ERRNO...: repeats OPERATION, and fails another one of its
# allocations each time. WHERE is "here" for the task that acts, or failslab or
# fail_page_alloc for other tasks. OPERATION_ready prepares it. OPERATION sets $errno, one of
# ERRNO..., and waits until everything has ended. OPERATION_after removes the rest.
total=0
walk() {
	local name=$1 operation=$2 where=$3 allowed=" ${*:4} " n=1 points=0 over=0 summary='' key
	local -A ended=()
	case $operation.$where in
	load.*) fail_under do_one_initcall ;;
	unload.*) ;;
	*.here) fail_under anything ;;
	*) fail_under module ;;
	esac
	: >"$scratch/bad"
	while step "$n" "$n"; do
		if ((fired)); then
			# The operation ended before the allocation was reached. Later
			# allocations may have been counted, so one attempt more is needed.
			((!over)) || break
			((++points))
			ended[$errno]=$((${ended[$errno]:-0} + 1))
			step 0 "after $n" || break
			[[ $errno = 0 ]] || echo "next after $n: $errno" >>"$scratch/bad"
			((++n))
		elif [[ $where = here || $n = 1 ]]; then
			break
		elif ((++over > 3)); then
			# Some unloading allocates nothing in other tasks.
			[[ $operation = unload && $points -gt 0 ]] ||
				echo "the kernel's count is not the one expected" >>"$scratch/bad"
			break
		fi
	done
	for key in "${!ended[@]}"; do summary+=", ${ended[$key]} ended with $key"; done
	total=$((total + points))
	((points)) || echo 'no allocation failed' >>"$scratch/bad"
	name+=": $points allocations failed one by one"
	check_equal "$name${summary/,/:}" '' "$(<"$scratch/bad")"
}

# step N NAME: runs the operation with allocation N failing, or none with 0. Sets $fired.
step() {
	here=0 fired=0
	leaves "$2: not ready" "${operation}_ready" || return
	if [[ $where = here ]]; then
		here=$1
		"$operation"
		fired=$(($1 && fired_here)) here=0
	elif (($1)); then
		arm "$where" "$1"
		"$operation"
		disarm "$where"
	else
		"$operation"
	fi
	((!fired)) || verify || echo "$2: $errno" >>"$scratch/bad"
	local outcome=$errno
	leaves "$2: $errno, left behind" "${operation}_after"
	errno=$outcome
}

# leaves NAME COMMAND...: runs COMMAND, and notes that NAME failed if it fails.
leaves() {
	"${@:2}" >"$scratch/why" 2>&1 || { echo "$1"; cat "$scratch/why"; false; } >>"$scratch/bad"
}

# verify: whether the errno is one of the expected ones, and last_error has a reason.
verify() {
	[[ $allowed = *" $errno "* ]] || return
	[[ $errno = 0 || $operation = @(get|load|unload) || $(<"$DEBUGFS/last_error") = *:* ]]
}

# third_fails: whether the third allocation fails, and no other one. A line that `close`
# refuses makes one allocation, so the third line gets ENOMEM.
third_fails() {
	local n outcome=''
	fail_under module
	act - put "$DEBUGFS/close" nothing
	may_fail 1 "$AGENT_PID"
	arm failslab 3
	for n in 1 2 3 4; do
		act - put "$DEBUGFS/close" nothing
		outcome+=" $errno"
	done
	disarm failslab
	may_fail 0 "$AGENT_PID"
	same outcome ' EINVAL EINVAL ENOMEM EINVAL' "$outcome"
}

# About: what is left.

# nothing_at_all: whether no connection is left, of the module or of others.
nothing_at_all() {
	none_shown || { printf '%s\n' "${lines[@]}"; return 1; }
	nothing_known 'state LISTEN'
}

# About: the operations. They also set $errno to words in small letters, for other faults.

# Few Receives, so that an operation makes fewer allocations of the same kind.
usual_terms='credits=2 rpcvers=auto' terms=$usual_terms
# The other side learns of a failure within $soon seconds, long before its own time limit.
soon=30 patience=timeout_ms=60000

load_ready() { :; }
load() { act - load "$scratch/module"; }
load_after() {
	[[ ! -d /sys/module/rpcrdma_cm ]] || { act - unload && [[ $errno = 0 ]]; } || return
	wait_for "$soon" has_objects "$before" && [[ ! -e $DEBUGFS ]]
}

# fail_under is needed here: the module has another address each time it is loaded.
unload_ready() {
	act - load "$scratch/module" && fail_under module && control b listen "$B4:1 $terms" &&
		connected
}
unload() { act - unload; }
unload_after() { load_after; }

listen_ready() { :; }
listen() { act b put "$DEBUGFS/listen" "$B4:2 $terms"; }
# Another listener must be able to use the port.
listen_after() {
	end_listener && control b listen "$B4:2" && end_listener
}
end_listener() {
	local line
	lines listeners
	for line in "${lines[@]}"; do
		[[ $line != *" $B4:2 "* ]] || control b close "listener ${line%% *}" || return
	done
}

# settled: whether both ends are established and their first call was answered, or neither exists.
settled() {
	none_live && return
	newest client && is_state "$id" established && [[ ${info[rpc_null]-} != pending &&
		${info[reverse_direction]-} != pending ]] &&
		peer_of "$id" && is_state "$id" established
}

set_up_ready() { :; }
set_up() {
	act a put "$DEBUGFS/connect" "$B4:1 $terms $patience"
	wait_for "$soon" settled || errno=unsettled
}
set_up_after() {
	! newest client || control a close "connection $id" || return
	wait_for "$soon" nothing_at_all
}

connected() { connect a "$B4:1 $terms $patience" && wait_for "$soon" settled; }

close_ready() { connected; }
close() {
	act "$side" put "$DEBUGFS/close" "connection ${!end}"
	if [[ $errno = 0 ]]; then
		wait_for "$soon" is_gone "$client" &&
			wait_for "$soon" is_gone "$server" || errno=stuck
	fi
}
close_after() { set_up_after; }

call_ready() { is_state "${client:-0}" established || connected; }
call() {
	act "$side" put "$DEBUGFS/call" "connection ${!end} $words"
	wait_for "$soon" settled || errno=unsettled
}
# After a failed call the connection is either established or removed.
call_after() { is_state "$client" established || wait_for "$soon" nothing_at_all; }

probe_ready() { :; }
probe() {
	act a put "$DEBUGFS/probe" "$B4:1 $terms $patience"
	wait_for "$soon" none_live || errno=unsettled
	[[ $errno != 0 || $(<"$DEBUGFS/probe") = 'reachable: yes'* ]] || errno=unreachable
}
probe_after() { wait_for "$soon" nothing_at_all; }

get_ready() { :; }
get() { act - get "$DEBUGFS/$file"; }
get_after() { :; }

# observed: whether both ends of the programs' connection are shown, or counted as missed.
observed() {
	counter observed_missed
	lines connections
	((${#lines[@]} - 1 + count - missed == 2)) && [[ "${lines[*]}" != *connecting* ]]
}

observe_ready() { counter observed_missed && missed=$count; }
observe() {
	errno=0
	say 1 accept "$message" && tell 2 connect "/run/netns/$A" "$B4" 3 "$message" && hear 1 &&
		wait_for "$soon" observed || errno=unseen
} >"$scratch/observe"
observe_after() { tell 2 close && tell 1 close && wait_for "$soon" nothing_at_all; }

loading() {
	walk load load here 0 ENOMEM
}

at_a_port() {
	# rxe makes a socket for each queue pair, siw for each connection and listener. Without
	# memory, making a socket fails with ENFILE, and binding it with EADDRINUSE.
	listening=(0 ENOMEM ENFILE)
	[[ $TRANSPORT = rxe ]] || listening+=(EADDRINUSE)
	walk 'listen, in the writing task' listen here "${listening[@]}"
}

connecting() {
	walk 'connect, in the writing task' set_up here 0 ENOMEM
	# Not over siw, because of its withheld faults (SECURITY.md).
	if [[ $TRANSPORT = rxe ]]; then
		elsewhere=(0 ENOMEM ENFILE ECONNREFUSED ECONNRESET)
		walk 'connect, in other tasks' set_up failslab "${elsewhere[@]}"
		terms+=' send=65536 recv=65536'
		walk 'connect, in other tasks, by pages' set_up fail_page_alloc "${elsewhere[@]}"
		terms=$usual_terms
	fi

	terms='credits=2 reverse=2 rpcvers=auto'
	walk 'connect with BIND, in the writing task' set_up here 0 ENOMEM
	terms=$usual_terms
}

calling() {
	terms='credits=2 reverse=2 rpcvers=auto'
	side=a end=client
	for words in null 'echo size=100 count=4 jobs=2' 'echo size=65536'; do
		# siw leaks a page list here (reports/siw-page-list-leak.txt).
		[[ $TRANSPORT$words != siw*65536 ]] || spare siw_mr_add_mem
		walk "$words, in the writing task" call here 0 ENOMEM
	done
	spare __alloc_object
	# Only calls with chunks allocate in other tasks.
	walk "$words, in other tasks" call failslab 0 ENOMEM ECONNRESET
	walk "$words, in other tasks, by pages" call fail_page_alloc 0 ENOMEM ECONNRESET
	side=b end=server
	[[ $TRANSPORT = rxe ]] || spare siw_mr_add_mem
	walk "$words by the server, in the writing task" call here 0 ENOMEM
	spare __alloc_object
	walk "$words by the server, in other tasks" call failslab 0 ENOMEM ECONNRESET
	need 'the connection of the calls closes' set_up_after
	terms=$usual_terms
}

reading() {
	need 'there is a connection whose files are read' call_ready
	for file in connections listeners stats history last_error probe \
		"connection/$client"/{info,sent,received}; do
		walk "reading $file" get here 0 ENOMEM
	done
	need 'the connection whose files were read closes' set_up_after
}

probing() {
	# In other tasks a probe makes the allocations of two connects, which are tested above.
	walk 'probe, in the writing task' probe here 0 ENOMEM
}

closing() {
	side=a end=client
	walk 'close, in the writing task' close here 0 ENOMEM
	# Over siw, other tasks allocate only by chance when an end closes: nothing, once or twice.
	if [[ $TRANSPORT = rxe ]]; then
		# Without memory ib_cm drops the DREQ, without an error. The peer would learn of
		# the end only when it sends something.
		spare ib_send_cm_dreq
		walk 'close, in other tasks' close failslab 0
		side=b end=server
		walk 'close by the server, in other tasks' close failslab 0
	fi
	spare __alloc_object
}

observing() {
	message=$(offer 4096 4096 1)
	program 1 && listener=$pid && program 2
	need 'a program listens for an observed connection' tell 1 listen "/run/netns/$B" "$B4" 3
	may_fail 1 "$listener" "$pid"
	walk "observing a program's connection" observe failslab 0
	program_end 1
	program_end 2
}

unloading() {
	# In its own task, unloading allocates only outside of the module's code. Over siw, other
	# tasks allocate only by chance here, too.
	if [[ $TRANSPORT = rxe ]]; then
		spare ib_send_cm_dreq
		walk 'unload, in other tasks' unload failslab 0
	fi
}

need_pair
modprobe rdma_cm
before=$(object_counts)
need_module
need 'the module unloads before any allocation fails' module_unload
need 'fault injection is set up' prepare_faults
# Each load reads the file, so it is made smaller.
strip --strip-debug -o "$scratch/module" "$MODULE"
need 'another fprobe exists' insmod "${MODULE%/*}/qemu/modules/keep_fprobe.ko"
at_end remove_module keep_fprobe
group loading

need 'the module loads after all allocations had failed' module_load
need 'the third allocation is the one that fails' third_fails
may_fail 1
at_end may_fail 0
need 'the module listens while allocations may fail' control b listen "$B4:1 $terms reverse=2"

group at_a_port
group connecting
group calling
group reading
group probing
group closing
group observing
need 'the module unloads after the programs' module_unload
group unloading
echo "# tried: allocations: $total points failed"
