# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# In the guests of scripts/peers, beside qemu/pair/agent: measures what the peer in the other
# guest does. Each function prints one cell of the table of docs/peers.md.
# shellcheck disable=SC2034,SC2154,SC2317 # for and from the agent

net=/proc/self/ns/net

# About: a server, measured by the module.

# invalidates ADDRESS HEX|none: whether the server at that address uses Send with Invalidate for a
# client with that private data. The client makes a call with a Reply chunk.
invalidates() {
	control - connect "$1 private=$2 rpcvers=1 null=0" && newest client || return
	control - call "connection $id null chunks=1" || { close_mine; return 1; }
	info "$id"
	if [[ ${info[remote_invalidations_received]} = 1 ]]; then echo yes; else echo no; fi
	close_mine
}
close_mine() { control - close "connection $id"; }

# sent_by ADDRESS: prints the server's private data, without the padding of the CM.
sent_by() {
	control - connect "$1 rpcvers=1 null=0" && newest client || return
	octets "connection/$id/received"
	show_octets
	close_mine
}
# show_octets: prints $octets without the zeros at their end, but at least the 8 octets of a
# message.
show_octets() {
	local rest=${octets##*[!0]}
	octets=${octets%"$rest"}
	[[ -n $octets ]] || { echo none; return; }
	((${#octets} >= 16)) || printf -v octets '%-16s' "$octets"
	octets=${octets// /0}
	echo "$octets$([[ $((${#octets} % 2)) = 0 ]] || echo 0)"
}

# probed ADDRESS KEY: prints the value of that key in the report of a probe.
probed() {
	control - probe "$1 rpcvers=auto" && sed -n "s/^$2: //p" "$DEBUGFS/probe"
}

# About: a server, measured by a program that sends and receives any octets.

# longest LOW HIGH STEP COMMAND...: the largest number from LOW to HIGH by STEP for which
# COMMAND, with it as its last argument, succeeds.
longest() {
	local low=$1 high=$2 step=$3 middle
	shift 3
	"$@" "$low" >&2 || { echo "less than $low"; return; }
	! "$@" "$high" >&2 || { echo "at least $high"; return; }
	while ((high - low > step)); do
		# shellcheck disable=SC2017 # a multiple of $step
		middle=$((low + (high - low) / step / 2 * step))
		if "$@" "$middle" >&2; then low=$middle; else high=$middle; fi
	done
	echo "$low"
}

# boundary GUESS[+] LOW HIGH STEP COMMAND...: the same as longest, but tries GUESS first, because
# each Send that fails costs a connection. With +, nothing larger than GUESS is tried.
boundary() {
	local guess=$1
	shift
	if [[ ${guess%+} != "$guess" ]]; then
		"${@:4}" "${guess%+}" >&2 && echo "at least ${guess%+}"
	elif "${@:4}" "$guess" >&2 && ! "${@:4}" "$((guess + $3))" >&2; then
		echo "$guess"
	else
		longest "$@"
	fi
}

# accepts ADDRESS PORT LENGTH: whether the server answers a message of that length: a call of NULL
# with arguments, which NULL ignores.
accepts() {
	local message bad=0
	words 7 1 8 0 0 0 0 && message=$words
	words 7 0 2 100003 4 0 0 0 0 0 && message+=$words
	tell 1 receives 2 4096 && tell 1 connect "$net" "$1" "$2" "$(offer 262144 4096)" || return
	{ tell 1 send_padded "$message" "$3" && tell 1 receive 5000 &&
		[[ $said = 00000007* ]]; } || bad=1
	tell 1 close
	return "$bad"
}

# replies ADDRESS PORT OFFER FILE LENGTH: whether the server sends a reply of at least that length
# inline to a client with the private data OFFER. Sets $length to the length of the reply.
replies() {
	local message bad=0 name=()
	IFS=/ read -ra name <<<"$4"
	# The reply has some 100 octets besides the data of READ.
	nfs_read $(($5 - 100)) "${name[@]}"
	length=0
	tell 1 receives 2 1200000 && tell 1 connect "$net" "$1" "$2" "$3" || return
	if tell 1 send "$message" && tell 1 length 4000 && [[ $said = 0000000700000001* ]]; then
		length=${said#* }
	fi
	((length >= $5 - 100 && length > 200)) || { bad=1; echo "$5: $said"; }
	tell 1 close
	return "$bad"
}

# longest_reply HIGH ADDRESS PORT OFFER FILE: prints the length of the longest inline reply.
longest_reply() {
	local best=0
	longest 512 "$1" 4 replies_best "${@:2}" >"$scratch/longest"
	[[ $(<"$scratch/longest") != 'at least'* ]] || best="at least $best"
	echo "$best"
}
replies_best() {
	replies "$@" || return
	((length <= best)) || best=$length
}

# About: connections that the module observes.

# watched ORIGIN ROLE: prints the cell for the newest connection of that kind.
watched() {
	local line sections=''
	newest_of "$1" "$2" && info "$id" || return
	for line in "${lines[@]}"; do
		[[ $line != deviation:*section* ]] || sections+=", ${line##*section }"
	done
	sections=${sections//)/}
	line="${info[peer_private_data]}, ${info[client_to_server_threshold]}"
	line+="/${info[server_to_client_threshold]}, R ${info[remote_invalidation]}"
	[[ -z ${info[remote_invalidation_in_use]-} ]] ||
		line+=", in use ${info[remote_invalidation_in_use]}"
	echo "$line${sections:+; deviations: ${sections#, }}"
}

# opens FILE: opens a file of the server, with a delegation until another client writes to it. Fails
# if the server grants no delegation.
# called_back: whether the server has recalled it since, by a call in the reverse direction (RFC
# 8167).
opens() {
	mkdir -p "$traces" && : >"$traces/trace" &&
		echo 1 >"$traces/events/rpcrdma/xprtrdma_cb_call/enable" &&
		echo 1 >"$traces/events/nfs4/nfs4_set_delegation/enable" &&
		exec {opened}<"$1" && head -c 10 <&"$opened" >"$scratch/read" || return
	grep -q "nfs4_set_delegation:.* fileid=[^ ]*:$(stat -c %i "$1") " "$traces/trace" && return
	exec {opened}<&-
	echo "the server grants no delegation of $1"
	return 1
}
called_back() {
	local answer=no
	! wait_for 15 grep -q xprtrdma_cb_call: "$traces/trace" || answer=yes
	exec {opened}<&-
	echo "$answer"
}

# About: a client, in this guest.

# trace_thresholds: enables the tracepoint that shows the client's thresholds.
traces=/sys/kernel/tracing/instances/peers
trace_thresholds() {
	modprobe rpcrdma && mkdir -p "$traces" /mnt/peer &&
		echo 1 >"$traces/events/rpcrdma/xprtrdma_inline_thresh/enable"
}

# mounts ADDRESS PORT [VERSION]: tries a mount, which will fail. Prints the client's thresholds,
# client-to-server and server-to-client, from its tracepoint.
mounts() {
	: >"$traces/trace"
	timeout -s KILL 60 mount.nfs "$1:/" /mnt/peer \
		-o "proto=rdma,port=$2,vers=${3:-4.1},soft,timeo=50,retrans=0,retry=0" 2>&1
	sed -n 's,.*neg send/recv=\([0-9]*\)/\([0-9]*\).*,\1/\2,p' "$traces/trace" | tail -n1
}

# refused ADDRESS PORT: prints how a mount ends if the server refuses it.
refused() {
	local said
	said=$(timeout -s KILL 60 mount.nfs -v "$1:/" /mnt/peer \
		-o "proto=rdma,port=$2,vers=4.1,soft,timeo=50,retrans=0,retry=0" 2>&1) && return 1
	echo "mount fails: $(sed -n 's/.*mount(2): //p' <<<"$said" | tail -n1)"
}

# sweep FILE FROM TO: writes and reads FROM to TO octets in steps of four, each by one call.
sweep() {
	python3 -ISc '
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT)
for length in range(int(sys.argv[2]), int(sys.argv[3]), 4):
    os.pwrite(file, b"x" * length, 0)
    if len(os.pread(file, length, 0)) != length:
        sys.exit(f"read less than {length}")
' "$@"
}

# About: a client in the other guest, whose server is a program in this one.

# hears MS: receives a call within that time, into $said, and sets $xid to its XID.
hears() {
	tell 1 receive "$1" && [[ $said != @(none|closed) ]] || return
	xid=${said:0:8}
}

# null_reply: sets $message to the reply to the NULL call $xid.
null_reply() {
	words 1 32 0 0 0 0 && message=$xid$words$xid
	words 1 0 0 0 0 && message+=$words
}

# serve PORT: starts another program that listens. Clients of an earlier program do not connect to
# it again.
serve() {
	program_end 1 && program 1 && tell 1 receives 16 65536 && tell 1 listen "$net" "$A4" "$1"
}

# first_call: prints the first message of the client, as "VERSION CREDITS PROCEDURE-OF-RPC".
first_call() {
	hears 20000 || return
	echo "$((16#${said:8:8})) $((16#${said:16:8}))"
}

# answers LENGTH: sends the reply to NULL, padded to LENGTH octets. Whether another call follows.
answers() {
	null_reply
	tell 1 send_padded "$message" "$1" && hears 10000
}
takes() { if answers "$1"; then echo yes; else echo no; fi; }

# calls_back: sends CB_NULL, a call in the reverse direction (RFC 8167), and prints with how many
# credits the client answers, or its other answer.
calls_back() {
	local message
	words 0x777 1 8 0 0 0 0 && message=$words
	words 0x777 0 2 0x40000000 1 0 0 0 0 0 && message+=$words
	tell 1 send "$message" && tell 1 receive 10000 || return
	if [[ $said = 0000077700000001* ]]; then
		echo "answers with $((16#${said:16:8})) credits"
	else
		echo "${said:0:64}"
	fi
}
