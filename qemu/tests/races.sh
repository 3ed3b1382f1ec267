#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Everything at once and at random, for RACES_SECONDS: connections, calls, readers, signals,
# devices, network namespaces, programs, mounts, and the module itself come and go. Nothing
# hangs, every failure is one that the guide names, and everything can be ended. With RACES_SEED
# each worker makes the same choices again, but they interleave differently.
#
# soak: debug.rxe debug.siw kcsan.rxe
. ./lib/lib.sh
. ./lib/module.sh

seed=${RACES_SEED:-$SRANDOM}
seconds=${RACES_SECONDS:-$((${FULL:+110} + 10))}

no_listeners() { lines listeners && ((${#lines[@]} == 1)); }

# devices_left: whether no device of a deleted namespace is left. Otherwise prints the first one.
devices_left() {
	local device
	for device in /sys/class/infiniband/*; do
		case ${device##*/} in
		"${TRANSPORT}"_[ab]"$work" | "${TRANSPORT}"_[ab]"$still") ;;
		*) echo "${device##*/}"; return 1 ;;
		esac
	done
}

# all_call: only makes calls, at both ends of each connection and many at a time, so that their
# handlers run at the same time as often as possible.
all_call() {
	local id process processes=() bad=0
	for _ in {1..4}; do
		connect a "$B4:2000 reverse=4" &&
			wait_for 10 same_info "$client" reverse_direction=yes || return
		for id in "$client" "$server"; do
			echo "connection $id echo size=100 count=500 jobs=4" >"$DEBUGFS/call" &
			processes+=($!)
		done
	done
	for process in "${processes[@]}"; do wait "$process" || bad=1; done
	return "$bad"
}

many_calls() {
	need 'a listener for many calls' control b listen "$B4:2000 reverse=4"
	check 'many calls at a time succeed, in both directions' all_call
	check 'everything is closed before the races' control - close all
}

at_random() {
	if [[ $KERNEL = kcsan ]]; then
		# KCSAN watches more accesses, because real races are rare.
		echo 100 >/sys/module/kcsan/parameters/skip_watch
		echo 500 >/sys/module/kcsan/parameters/udelay_task
	fi
	"${python[@]}" ./programs/workers.py "$DEBUGFS" "$MODULE" "$TRANSPORT" "$seed" "$seconds" \
		"$work" "$still" $((still + 10)) >"$scratch/races" 2>&1
	status=$?
	sed 's/^/# /' "$scratch/races"
	# The newest lines have the reason of a connection that failed.
	[[ $status = 0 ]] || tail -n 40 "$DEBUGFS/history" | diag
	[[ $status != 2 ]] || dmesg | tail -n 400 | diag
	check_equal 'every action returns, with a result that the guide names' 0 "$status"
	[[ $status != 2 ]] || exit

	check 'everything is closed after the races' control - close all
	check 'no connection is left of the races' wait_for 60 none_live
	check 'each connection of the history has its end, after the races' \
		wait_for 10 consistent_history
	check 'no listener is left of the races' no_listeners
	check 'the resource tracker has nothing left of the races' wait_for 10 nothing_known
	kept=
	wait_for 60 devices_left >"$scratch/kept" || kept=1
	[[ $TRANSPORT = siw ]] || check_equal 'no namespace is kept' '' "$kept"
	use_pair "$work"
	need 'the devices whose links went down are made again' renew
	need 'a listener after the races' control b listen "$B4:2000 inv=1"
	need 'a connection with remote invalidation' connect a "$B4:2000 inv=1"
	check 'an inline call after the races' control - call "connection $client echo size=100"
	check 'a call with chunks after the races' \
		control - call "connection $client echo size=100000"
	! devices_left >"$scratch/kept" || kept=
	need 'the module unloads after the races' rmmod rpcrdma_cm
	check 'nothing is left of the unloaded module' wait_for 30 has_objects "$before"
	# A namespace that stays after the module is unloaded was not kept by the module.
	name='no namespace is kept by the module'
	if [[ $TRANSPORT = siw && $kept ]] && ! wait_for 20 devices_left >"$scratch/kept"; then
		skip "$name" "siw keeps one: $(tail -n 1 "$scratch/kept")"
	elif [[ $TRANSPORT = siw ]]; then
		check_equal "$name" '' "$kept"
	fi
	need 'the module loads after the races' insmod "$MODULE"
	need 'a listener of the module loaded again' control b listen "$B4:2000"
	need 'a connection of the module loaded again' connect a "$B4:2000"
	check 'a call of the module loaded again' \
		control - call "connection $client null program=$((0x20008797)) version=1"
}

echo "# seed $seed"
need 'a pair whose devices come and go' pair
work=${A#a}
need 'a pair whose devices stay' pair
still=${A#a}
need_nfs_server
modprobe rdma_cm
before=$(object_counts)
need_module
# The kernel logs an error if removing a network interface takes longer. On a slow machine
# its RDMA device needs more time.
echo 60 >/proc/sys/net/core/netdev_unregister_timeout_secs
# The cleanup of nfs_server expects its own pair to be the current one.
at_end use_pair "$still"
rm -f /run/races-sites
group many_calls
group at_random
