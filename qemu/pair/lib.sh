# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions of the scripts of qemu/run-pair, which source it first. The scripts run on the host and
# print KTAP by the functions of qemu/tests/lib/lib.sh. Commands run in the guests by
#   on_a COMMAND...    in the guest a, with its output and its status
#   on_b COMMAND...    in the guest b
# COMMAND can be a function of qemu/pair/agent. $A4, $A6, $B4 and $B6 are the guests' addresses.
# $share_a and $share_b are /share in them.
# shellcheck disable=SC2034,SC2154,SC2317 # for and from the scripts
set -uo pipefail

# shellcheck source=qemu/tests/lib/lib.sh
. ../tests/lib/lib.sh
# shellcheck source=qemu/tests/lib/module.sh
. ../tests/lib/module.sh
# shellcheck source=scripts/lib/lib.sh
. ../../scripts/lib/lib.sh
set +e
use_guests
share_a=$PAIR/share-a share_b=$PAIR/share-b
declare -A to_guest=() from_guest=()

# open_guest SIDE: opens the pipes to that guest. QEMU has their other ends.
open_guest() {
	local fd what
	for what in agent monitor; do
		exec {fd}<>"$PAIR/$1-$what.in"
		to_guest[$1-$what]=$fd
		exec {fd}<>"$PAIR/$1-$what.out"
		from_guest[$1-$what]=$fd
	done
}
open_guest a
open_guest b

# guest SIDE COMMAND...: runs COMMAND in that guest, with its output and its status.
guest() {
	local side=$1 line status output
	shift
	printf -v line '%q ' "$@"
	printf '%s\n' "$line" >&"${to_guest[$side-agent]}"
	if ! read -rt 180 -u "${from_guest[$side-agent]}" status output; then
		echo "the guest $side gave no answer to: $*"
		return 1
	fi
	if [[ $status = ready ]]; then
		echo "the guest $side has booted again during: $*"
		return 1
	fi
	base64 -d <<<"$output"
	return "$status"
}
on_a() { guest a "$@"; }
on_b() { guest b "$@"; }

# up SIDE [SECONDS]: waits until the guest has booted. That takes minutes on a busy machine.
up() {
	local word
	if ! read -rt "${2:-300}" -u "${from_guest[$1-agent]}" word || [[ $word != ready ]]; then
		echo "the guest $1 did not boot: ${word:-}"
		return 1
	fi
	guest "$1" link_up
}

# dies SIDE: resets the guest, so that it cannot disconnect. It boots again by itself: see `up`.
dies() { echo 'busybox reboot -f' >&"${to_guest[$1-agent]}"; }

# pause SIDE, resume SIDE: stops the processors and the clock of the guest, and starts them again.
pause() { monitor "$1" stop && monitor_says "$1" paused; }
resume() { monitor "$1" cont && monitor_says "$1" running; }
monitor() { printf '%s\n' "$2" >&"${to_guest[$1-monitor]}"; }
monitor_says() {
	local line
	monitor "$1" 'info status' || return
	while read -rt 10 -u "${from_guest[$1-monitor]}" line; do
		[[ $line != *"VM status: $2"* ]] || return 0
	done
	echo "the guest $1 is not $2"
	return 1
}

# both COMMAND...: runs the command in each guest.
both() { on_a "$@" && on_b "$@"; }

# number SIDE ORIGIN ROLE: sets $id to the newest connection of that kind.
number() {
	local output
	output=$(guest "$1" eval "newest_of $2 $3 && echo \$id") ||
		{ echo "in the guest $1: $output"; return 1; }
	id=$output
}

# start_capture, stop_capture: capture the packets that a sends and receives, into the file
# $capture.
captures=0
start_capture() {
	capture=$share_a/wire-$((++captures)).pcap
	# shellcheck disable=SC2016 # for the guest
	on_a eval 'capture=/tmp/'"${capture##*/}"'
		later tcpdump tcpdump -i "$A_DEV" -B 32768 -s 9216 -U \
			-w "$capture" "udp port 4791 or udp port 9" &&
			wait_for 20 grep -q "listening on" "$scratch/later-tcpdump"'
}
# Sends a packet and waits until the capture holds it, and so all earlier packets, too. tcpdump
# writes to /tmp, because a file in /share that was read while it was written had a page of
# zeros.
stop_capture() {
	# shellcheck disable=SC2016 # for the guest
	on_a eval 'echo that-is-all >/dev/udp/$B4/9; wait_for 20 grep -qa that-is-all "$capture" &&
		pkill -x tcpdump; wait_for 20 over tcpdump && cp "$capture" /share/ &&
		sync /share/* && ended tcpdump | grep "^0 packets dropped by kernel" ||
		{ ended tcpdump; false; }'
}

# dissect FILTER FIELD...: sets $packets to a line with these fields for each packet of $capture, as
# the dissector of tools/wireshark decodes them. Not run as root, because root's tshark loads no
# scripts. Uses two passes, so that a request refers to its reply.
dissect() {
	local fields=("${@:2}")
	# shellcheck disable=SC2016 # for the lab
	"$project/scripts/lab" bash -euc '
		plugin=$1 capture=$2
		shift 2
		install -D -m 644 -t /tmp/home/.local/lib/wireshark/plugins "$plugin"
		install -m 644 "$capture" /tmp/wire.pcap
		chmod -R a+rX /tmp/home
		exec setpriv --reuid=65534 --regid=65534 --clear-groups \
			env HOME=/tmp/home tshark -2 -n -r /tmp/wire.pcap "$@"
	' dissect "$project/tools/wireshark/rpcrdma_cm.lua" "$capture" \
		-Y "$1" -T fields -E 'separator=|' "${fields[@]/#/-e}" \
		>"$scratch/dissected" 2>"$scratch/tshark" || { cat "$scratch/tshark"; return 1; }
	! grep Lua "$scratch/tshark" || return
	mapfile -t packets <"$scratch/dissected"
}

# learn SIDE ID ARRAY: reads the info of that connection, and its private data as sent and received,
# into ARRAY.
learn() {
	local -n learned=$3
	local line
	learned=()
	while IFS= read -r line; do
		learned[${line%%: *}]=${line#*: }
	done < <(guest "$1" eval "cat $DEBUGFS/connection/$2/info
		for file in sent received; do
			echo \$file: \$(od -An -v -tx1 $DEBUGFS/connection/$2/\$file | tr -d ' \n')
		done")
	[[ -n ${learned[state]-} ]] || { echo "no connection $2 in the guest $1"; return 1; }
}

boot_both() {
	need 'the guest a boots' up a
	need 'the guest b boots' up b
}
