# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions of the scripts for the table of docs/peers.md; sourced after qemu/pair/lib.sh. Each cell
# becomes a line of the file $CELLS: its key, a tab, its value. Captures are stored beside that
# file.
# shellcheck disable=SC2034,SC2154 # for and from the scripts

: "${CELLS:?is set by scripts/peers}"
declare -A cells=()

# put_cell KEY VALUE: adds a cell to the column.
put_cell() {
	cells[$1]=$2
	printf '%s\t%s\n' "$1" "$2" >>"$CELLS"
	ok "$1: $2"
}

# cell KEY COMMAND...: adds a cell with the last line that the command prints.
cell() {
	local key=$1 output status=0
	shift
	output=$("$@" 2>&1 </dev/null) || status=$?
	if [[ $status = 0 && -n $output ]]; then
		put_cell "$key" "${output##*$'\n'}"
	else
		not_ok "$key" < <(echo "$* ended with $status"; echo "$output")
	fi
	return "$status"
}

# keep_capture NAME: ends the capture, and stores it beside $CELLS.
keep_capture() { stop_capture && cp "$capture" "${CELLS%.cells}-$1.pcap"; }

# wire_sends ROLE HEX: whether that end sent this private data, as the dissector decodes the
# capture.
wire_sends() {
	dissect "rpcrdma_cm.role == \"$1\"" rpcrdma_cm.octets || return
	[[ ${#packets[@]} -gt 0 ]] || { echo "no message of a $1"; return 1; }
	padded "${2/none/}" "$((${#packets[0]} / 2))"
	same "private data of the $1" "$padded" "${packets[0]}"
}

# last HEX ROOM: sets $behind to ROOM octets that end with HEX. The octets before HEX are a
# filler.
last() {
	local filler
	printf -v filler '%02x' {1..255}
	behind=${filler::2 * $2 - ${#1}}$1
}

# as_server FILE ROOM HIGH: measures the NFS server of b. FILE is the path of a long file below its
# root. ROOM is the likely size of its Receives (see boundary). No inline reply longer than HIGH is
# requested.
as_server() {
	local server=$B4:20049
	cell server_sends on_a sent_by "$server"
	cell server_version_1 on_a probed "$server" rpc_version_1
	cell server_version_2 on_a probed "$server" rpc_version_2
	cell server_credits on_a probed "$server" credits_granted
	cell server_r on_a invalidates "$server" "$(offer 4096 4096 1)"
	cell server_no_r on_a invalidates "$server" "$(offer 4096 4096)"
	cell server_absent on_a invalidates "$server" none
	cell server_shifted_1 on_a invalidates "$server" "00$(offer 4096 4096 1)"
	cell server_shifted_4 on_a invalidates "$server" "a5a5a5a5$(offer 4096 4096 1)"
	last f6ab0e18010103 56
	cell server_truncated on_a invalidates "$server" "$behind"
	cell server_padded on_a invalidates "$server" f6ab0e180101
	cell server_version2 on_a invalidates "$server" "$(offer 4096 4096 1 2)"
	cell server_reserved on_a invalidates "$server" "$(offer 4096 4096 1 1 0xfe)"
	cell server_accepts on_a boundary "$2" 68 70000 4 accepts "$B4" 20049
	cell server_replies on_a longest_reply "$3" "$B4" 20049 "$(offer 4096 1024)" "$1"
	cell server_replies_large on_a longest_reply "$3" "$B4" 20049 "$(offer 4096 65536)" "$1"
}

# begin_peers: boots both guests, loads the module in a, and starts the program in a that can send
# and receive any octets.
begin_peers() {
	boot_both
	need 'peer: the module loads on a' on_a module_load
	need 'peer: a reads measure.sh' on_a . ../pair/measure.sh
	need 'peer: b reads measure.sh' on_b . ../pair/measure.sh
	need 'peer: a program starts on a' on_a program 1
}
