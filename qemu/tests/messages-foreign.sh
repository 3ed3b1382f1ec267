#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Messages of RPC-over-RDMA, and at the other end is not the module but user
# space: peer.py sends all that a peer could send, and says what it receives,
# octet for octet. What is to be sent and received is written out here, word for
# word, from RFC 8166 (version 1), draft-cel-nfsv4-rpcrdma-version-two-01
# (version 2) and RFC 5531 (RPC).
#
# test: debug.siw
# soak: debug.rxe
. ./lib.sh
. ./module.sh

# Granted by the module as server, requested by it as client, and the peer's.
grants=5 requests=7 peers=9

# About: what messages consist of. Words are decimal or with 0x, X is the XID
# and Y another one.

# RFC 5531, section 9: xid, CALL, RPC version 2, program, version, procedure, and
# AUTH_NONE of length 0 twice; xid, REPLY, MSG_ACCEPTED, AUTH_NONE, SUCCESS.
auth='0 0  0 0'
call_null="X 0 2  100003 4 0  $auth"
echo=0x20008797
call_echo="X 0 2  $echo 1 1  $auth"
success='X 1 0  0 0  0'

# RFC 8166, section 4.1.2: xid, version, credits, RDMA_MSG, and no chunks; the
# draft, section 4.2: with the direction before these.
call1="X 1 32 0    0 0 0"
call2="X 2 32 0 0  0 0 0"
reply1="X 1 $grants 0    0 0 0"
reply2="X 2 $grants 0 1  0 0 0"
# RDMA_ERROR with ERR_CHUNK and RDMA2_ERR_BAD_HEADER.
err_chunk="X 1 $grants 4  2"
bad_header="X 2 $grants 4  2"
# RFC 8797, section 4, with R: sizes of 4096 and of 1024.
private=f6ab0e1801010303 private_1024=f6ab0e1801010000

# More than fits into any Send here: so many octets, and these.
size=4400
printf -v data %08x {1..1100}
# And so does memory look that nobody is to write to.
printf -v untouched 'a5%.0s' {1..6000}

xid=$((0x70000000))

# hex WORDS: into $hex, as octets; =OCTETS are these octets.
hex() {
	local words=${1//X/$xid}
	# shellcheck disable=SC2086 # words
	case $1 in
	=*) hex=${1#=} ;;
	*) printf -v hex %08x ${words//Y/$((xid ^ 0x8000))} ;;
	esac
	hex=${hex:-empty}
}

# sends WORDS: the peer does.
sends() { hex "$1" && tell 1 send "$hex"; }

# next_message: of the module, into $said. What arrives while siw accepts, siw
# only looks at when more arrives.
next_message() {
	tell 1 receive 1000 || return
	[[ $said = none ]] || return 0
	[[ $TRANSPORT != siw ]] || tell 1 nudge && tell 1 receive 5000
}

# tries COMMAND...: what the peer then does may fail.
tries() { say 1 "$@"; hear 1 || [[ $said = failed:* ]]; }

# receives WORDS: whether that is what the peer receives next.
receives() {
	next_message && hex "$1" && same 'the peer received' "$hex" "${said% inv=*}"
}

# offer SIZE read|write: memory of the peer's; its key into $key, and into
# $segment what a header says of it (RFC 8166, section 4.7: HLOO).
offer() {
	tell 1 register "$1" "$2" || return
	key=${said% *} address=${said#* }
	segment="0x$key $1 0x${address::8} 0x${address:8}"
}

# About: the module as server.

# peer_connects PORT PRIVATE
peer_connects() {
	tell 1 connect "/run/netns/$A" "$B4" "$1" "$2" && newest server && server=$id &&
		wait_for 10 is_state "$server" established
}

peer_leaves() { tell 1 close && wait_for 10 is_gone "$server"; }

# answered WORDS ANSWER: what the module answers; to `nothing` it is the answer
# to the next call.
answered() {
	((++xid))
	sends "$1" || return
	if [[ $2 != nothing ]]; then
		receives "$2"
	else
		answers_next
	fi
}

answers_next() {
	((++xid))
	sends "$call1 $call_null" && receives "$reply1 $success"
}

answers() { check "$1" answered "$2" "$3"; }

# refuses NAME WORDS ANSWER: the same, with a header that is none.
refuses() {
	((++bad))
	answers "$@"
}

# In both versions, which differ by the direction.
answers_both() {
	answers "$1, version 1" "$call1 $2" "$reply1 $3"
	answers "$1, version 2" "$call2 $2" "$reply2 $3"
}

# refuses_both NAME PROC LISTS...: LISTS begins with the chunk lists.
refuses_both() {
	refuses "$1, version 1" "X 1 32 $2  $3" "$err_chunk"
	refuses "$1, version 2" "X 2 32 $2 0  $3" "$bad_header"
}

# Offers an ECHO of $data, to call by Read chunk.
offer_call() {
	hex "$call_echo $size"
	offer $((40 + 4 + size)) read && tell 1 fill "$key" "$hex$data"
}

# by_chunks VERSION: the call by Read chunk, the reply by Reply chunk.
by_chunks() {
	local direction='' reply_direction='' before call call_key length=$((24 + 4 + size))
	[[ $1 = 1 ]] || direction=0 reply_direction=1
	info "$server" && before=${info[sends_with_invalidate]}
	((++xid))
	offer_call && call=$segment call_key=$key && offer 6000 write &&
		tell 1 fill "$key" "$untouched" || return
	sends "X $1 32 1 $direction  1 0 $call 0  0  1 1 $segment" || return
	receives "X $1 $grants 1 $reply_direction  0  0  1 1 ${segment/ 6000 / $length }" || return
	# siw does not tell user space.
	[[ $TRANSPORT = siw || $said = *" inv=$key" || $said = *" inv=$call_key" ]] ||
		{ echo "not invalidated: $said"; return 1; }
	tell 1 memory "$key" 6000 && hex "$success $size" &&
		same 'the Reply chunk has' "$hex$data${untouched:2 * length}" "$said" || return
	same_info "$server" sends_with_invalidate=$((before + 1))
}

# Nobody has said what it can receive. So it is the default of the version, which
# in version 2 is larger, once there has been a reply (the draft, section 5.1).
thresholds() {
	local words
	printf -v words '%d ' {1..275}
	answered "$call2 $call_echo 1100 $words" "$bad_header" &&
		answered "$call2 $call_null" "$reply2 $success" &&
		answered "$call2 $call_echo 1100 $words" "$reply2 $success 1100 $words" &&
		answered "$call1 $call_echo 1100 $words" "$err_chunk" &&
		answered "$call1 $call_null" "$reply1 $success"
}

# Segments are filled in order (RFC 8166, section 3.4.6).
in_pieces() {
	local first second third call
	((++xid))
	offer_call || return
	# Its first 1000 octets are a piece of their own.
	printf -v call '1 0 0x%s 1000 0x%s 0x%s 1 0 0x%s %d %d %d' \
		"$key" "${address::8}" "${address:8}" "$key" $((40 + 4 + size - 1000)) \
		$(((16#$address + 1000) >> 32)) $(((16#$address + 1000) & 0xffffffff))
	offer 1000 write && first=$segment && offer 4000 write && second=$segment &&
		offer 500 write && third=$segment || return
	sends "X 1 32 1  $call 0  0  1 3 $first $second $third" || return
	receives "X 1 $grants 1  0  0  1 3 $first ${second/ 4000 / 3428 } ${third/ 500 / 0 }" &&
		hex "$success $size" || return
	hex+=$data
	tell 1 memory "${first:2:8}" 1000 && same 'the first' "${hex::2000}" "$said" &&
		tell 1 memory "${second:2:8}" 3428 && same 'the second' "${hex:2000}" "$said"
}

# A reply that does not fit into a Send.
long_reply_without_chunk() {
	((++xid))
	offer_call && sends "X 1 32 1  1 0 $segment 0  0  0" && receives "$err_chunk"
}

# Chunks come back, with what was written to them: nothing.
reply_chunk_unused() {
	((++xid))
	offer 64 write && sends "X 1 32 0  0  0  1 1 $segment  $call_null" &&
		receives "X 1 $grants 0  0  0  1 1 ${segment/ 64 / 0 }  $success"
}

write_chunk_unused() {
	((++xid))
	offer 64 write && sends "X 1 32 0  0  1 1 $segment 0  0  $call_null" &&
		receives "X 1 $grants 0  0  1 1 ${segment/ 64 / 0 } 0  0  $success"
}

# The message in the Read chunk is of another XID than its header.
long_call_of_another() {
	((++xid))
	offer_call && ((++xid)) && sends "X 1 32 1  1 0 $segment 0  0  0" && receives "$err_chunk"
}

# refused_or_ended WORDS: the message, or the connection. Which it is depends on
# who sees first that it cannot be done: the module or the device.
refused_or_ended() {
	hex "$1"
	tries send "$hex" && tell 1 receive 10000 && hex "$err_chunk" || return
	[[ $said = closed ]] || same 'the peer received' "$hex" "$said" || return
	only_that_ended
}

ended() { tell 1 receive 10000 && same 'the peer received' closed "$said" && only_that_ended; }

# All else lives on.
only_that_ended() {
	peer_leaves && control - call "connection $bystander null" && info "$bystander" &&
		same generation 1 "${info[generation]}"
}

# breaks NAME COMMAND...: checks that on a connection of its own.
breaks() { check "$1" on_its_own "${@:2}"; }
on_its_own() { peer_connects 2000 "$private_1024" && "$@"; }

# not_read KEY LENGTH: a call that the peer does not let it read.
not_read() {
	((++xid))
	offer 64 read && refused_or_ended \
		"X 1 32 1  1 0 0x${1:-$key} $2 0x${address::8} 0x${address:8} 0  0  0"
}

# not_written KEY LENGTH
not_written() {
	local call
	((++xid))
	offer_call && call=$segment && offer 64 write && refused_or_ended \
		"X 1 32 1  1 0 $call 0  0  1 1 0x${1:-$key} $2 0x${address::8} 0x${address:8}"
}

# The connection has Receives of 4096 octets.
too_long() {
	printf -v hex '%010000d' 0
	tries send "$hex" && ended
}

# receives_only COUNT SIZE: too little for a reply.
receives_only() {
	tell 1 receives "$1" "$2" && peer_connects 2000 none && ((++xid)) || return
	hex "$call1 $call_null"
	tries send "$hex" && ended && tell 1 receives 32 4096
}

# More than are granted. RoCE makes them wait, on iWARP that may be the end.
at_once() {
	local messages=() first=$((xid + 1)) n replies=0
	for n in {1..20}; do
		((++xid))
		hex "$call1 $call_null"
		messages+=("$hex")
	done
	say 1 send "${messages[@]}"
	hear 1 || [[ $TRANSPORT = siw ]] || return
	while tell 1 receive 5000 && [[ $said != closed ]]; do
		xid=$((first + replies))
		hex "$reply1 $success"
		same "reply $replies" "$hex" "$said" || return
		((++replies < 20)) || break
	done
	xid=$((first + 20))
	((replies == 20)) || { same transport siw "$TRANSPORT" && only_that_ended; return; }
	answers_next && peer_leaves
}

# About: the module as client.

# listens_at PORT: the peer does.
listens_at() { tell 1 listen "/run/netns/$B" "$B4" "$1"; }

# module_connects PORT WORDS
module_connects() {
	local status=0
	say 1 accept "$private"
	control a connect "$B4:$1 credits=$requests $2" || status=$?
	hear 1 && newest client && client=$id && return "$status"
}

module_leaves() {
	control a close "connection $client" && tell 1 receive 5000 &&
		same 'the peer received' closed "$said" && tell 1 close
}

# message_arrives: into $said; its XID is X from now on.
message_arrives() {
	next_message || return
	[[ $said =~ ^[0-9a-f]{56} ]] || { echo "instead of a message: $said"; return 1; }
	xid=$((16#${said::8}))
}

# asked WORDS: whether that is what the module sends next.
asked() { message_arrives && hex "$1" && same 'the module sent' "$hex" "$said"; }

# asked_echo LENGTH: the same, of an ECHO, whose octets are the module's choice.
# Into $arguments.
asked_echo() {
	message_arrives && hex "$asks $call_echo $1" || return
	arguments=${said:${#hex}}
	same 'the module sent' "$hex" "${said::${#hex}}" &&
		same 'digits of the argument' $((2 * $1)) "${#arguments}"
}

# sends_echo LENGTH OCTETS: of the peer.
sends_echo() { hex "$replies $success $1" && tell 1 send "$hex$2"; }

# speaks VERSION: its calls and the replies to them are like this from now on,
# and replies in chunks begin with $long.
speaks() {
	case $1 in
	1) asks="X 1 $requests 0    0 0 0" replies="X 1 $peers 0    0 0 0" long="X 1 $peers 1  " ;;
	2) asks="X 2 $requests 0 0  0 0 0" replies="X 2 $peers 0 1  0 0 0" long="X 2 $peers 1 1" ;;
	esac
}

# null_is STATUS VERSION: what the module says of its NULL call.
null_is() { wait_for 10 same_info "$client" rpc_null="$1" rpc_version_used="$2"; }

# begin_call WORDS: of the module, which waits for its reply; end_call ERRNO.
begin_call() {
	printf 'write\t/proc/self/ns/net\t%s\tconnection %s\\n\n' \
		"$DEBUGFS/call" "$client $1" >&"${AGENT[1]}"
}

end_call() {
	answer='nothing in time'
	read -rt 20 answer <&"${AGENT[0]}"
	same 'the call ended with' "$1" "$answer" || { cat "$DEBUGFS/last_error"; return 1; }
}

# outlives COUNTER MESSAGE...: whether a call gets its reply although these come
# first; and whether they are counted there.
outlives() {
	local before message status=0
	info "$client" && before=${info[$1]}
	begin_call null
	asked "$asks $call_null" || status=$?
	for message in "${@:2}"; do sends "$message" || status=$?; done
	sends "$replies $success" || status=$?
	end_call 0 || status=$?
	same_info "$client" "$1=$((before + $# - 1))" && return "$status"
}

# ends ERRNO [MESSAGE]...: whether a call does, when it is answered so.
ends() {
	local message status=0
	begin_call null
	asked "$asks $call_null" || status=$?
	for message in "${@:2}"; do sends "$message" || status=$?; done
	end_call "$1" && return "$status"
}

# Before it is answered, no other is sent (RFC 8166, section 3.3.3).
first_call() {
	local status=0 first
	asked "$asks $call_null" && first=$xid || return
	begin_call null
	tell 1 receive 300 && same 'before a reply, the module sent' none "$said" || status=1
	sends "$replies $success" && null_is SUCCESS "$1" || status=1
	asked "$asks $call_null" && [[ $xid != "$first" ]] || status=1
	sends "$replies $success" || status=1
	end_call 0 && same_info "$client" credits_granted="$peers" && return "$status"
}

first_call_answered() { asked "$asks $call_null" && answers_null "$1"; }

# Which is not allowed, and counts as one (RFC 8166, section 3.3.1).
no_credits() {
	ends 0 "${replies/ $peers / 0 } $success" && outlives bad_headers
}

# Two at a time, when two are granted; they are answered last come first.
within_credits() {
	local message messages count=0 status=0 reply="${replies/ $peers / 2 } $success"
	ends 0 "$reply" || return
	begin_call 'echo size=4 count=3'
	while ((count < 3)); do
		messages=()
		while tell 1 receive 200 && [[ $said != none ]]; do
			messages=("$said" "${messages[@]}")
		done
		if ((${#messages[@]} < 1 || ${#messages[@]} > 2)); then
			echo "${#messages[@]} calls at once"
			status=1
			break
		fi
		((count += ${#messages[@]}))
		for message in "${messages[@]}"; do
			xid=$((16#${message::8}))
			# Its last two words are the argument.
			sends "$reply 0x${message: -16:8} 0x${message: -8}" || status=1
		done
	done
	end_call 0 && return "$status"
}

# one_more COUNTER: than info said last.
one_more() { wait_for 10 same_info "$client" "$1=$((info[$1] + 1))"; }

# An option that is not known (the draft, section 3.1).
refuses_option() {
	info "$client"
	sends "Y 2 $peers 5  0 7 0" && receives "Y 2 $requests 4  3" && one_more unexpected_messages
}

# Again, when it has been answered.
duplicate() {
	outlives bad_headers && sends "$replies $success" &&
		one_more unexpected_messages
}

# Too late.
late() {
	ends ETIMEDOUT && late_reply
}

# A call of the peer's with the XID of the module's is no answer to that, and so
# does not give its credit back.
not_late() {
	ends 0 "${replies/ $peers / 1 } $success" && ends ETIMEDOUT && info "$client" &&
		sends "$asks $call_null" && one_more unexpected_messages || return
	begin_call null
	end_call EBUSY && late_reply && ends 0 "$replies $success"
}

late_reply() { info "$client" && sends "$replies $success" && one_more unexpected_messages; }

# echo_inline ERRNO [OCTETS]: the peer returns others.
echo_inline() {
	local status=0 arguments
	begin_call 'echo size=20 chunks=0'
	asked_echo 20 && sends_echo 20 "${2:-$arguments}" || status=1
	end_call "$1" && return "$status"
}

# The call is in memory of the module's, and the reply goes there: asked for in
# a header whose words are in $words then, without the direction.
asked_by_chunks() {
	local direction='' at
	message_arrives || return
	words=()
	for ((at = 0; at < ${#said}; at += 8)); do words+=("0x${said:at:8}"); done
	if [[ $1 = 2 ]]; then
		direction=0
		words=("${words[@]::4}" "${words[@]:5}")
	fi
	read_key=${words[6]#0x} read_address=${words[8]#0x}${words[9]#0x}
	reply_key=${words[14]#0x} reply_address=${words[16]#0x}${words[17]#0x}
	hex "X $1 $requests 1 $direction  1 0 ${words[*]:6:4} 0  0  1 1 ${words[*]:14:4}"
	same 'the module sent' "$hex" "$said" &&
		same 'the length of the call' $((40 + 4 + size)) $((words[7])) || return
	((words[15] >= 24 + 4 + size)) || same 'the Reply chunk' long "${words[15]}"
}

# echo_by_chunks VERSION send|send_invalidate
echo_by_chunks() {
	local status=0 call length=$((24 + 4 + size))
	begin_call "echo size=$size chunks=1"
	asked_by_chunks "$1" && tell 1 read "$read_key" "$read_address" $((words[7])) || status=1
	call=$said
	hex "$call_echo $size"
	same 'the call' "$hex" "${call::${#hex}}" || status=1
	call=${call:${#hex}}
	hex "$success $size"
	tell 1 write "$reply_key" "$reply_address" "$hex$call" || status=1
	hex "$long  0  0  1 1 ${words[14]} $length ${words[*]:16:2}"
	[[ $2 = send ]] || set -- "$1" send_invalidate "$reply_key"
	tell 1 "${@:2}" "$hex" || status=1
	end_call 0 && return "$status"
}

# by_chunks_counted VERSION send|send_invalidate
by_chunks_counted() {
	local calls remote
	info "$client" && calls=${info[chunked_calls]} remote=${info[remote_invalidations_received]}
	[[ $2 = send ]] || ((++remote))
	echo_by_chunks "$@" && same_info "$client" chunked_calls=$((calls + 1)) \
		remote_invalidations_received="$remote"
}

# A Reply chunk that is not the one that was offered: it comes back longer, with
# another key, or as two.
another_chunk() {
	local chunk status=0
	for chunk in "1 H $((24 + 4 + size + 4)) A" "1 0x12345678 40 A" \
		"2 H 40 A 0x12345678 40 A" 0; do
		begin_call "echo size=$size chunks=1"
		asked_by_chunks "$1" || status=1
		chunk=${chunk//H/${words[14]}}
		sends "$long  0  0  1 ${chunk//A/${words[*]:16:2}}" || status=1
		end_call EPROTO || status=1
	done
	return "$status"
}

# Larger ones would do, but the responder may not know that (RFC 8166, section
# 3.3.3; the draft, section 5). Then they do.
first_is_short() {
	local direction='' key address status=0 call arguments
	[[ $1 = 1 ]] || direction=00000000
	module_connects 2001 "rpcvers=$1 null=0" || return
	begin_call 'echo size=1100 count=2 chunks=0'
	message_arrives || status=1
	call=${said::32}${said:32 + ${#direction}}
	key=${call:48:8} address=${call:64:16}
	hex "X $1 $requests 1"
	hex+=${direction}0000000100000000${key}00000478${address}000000000000000000000000
	same 'the module sent' "$hex" "$said" && hex "$call_echo 1100" &&
		tell 1 read "$key" "$address" 1144 && same 'the call' "$hex" "${said::${#hex}}" &&
		sends_echo 1100 "${said:${#hex}}" || status=1
	asked_echo 1100 && sends_echo 1100 "$arguments" || status=1
	end_call 0 && module_leaves && return "$status"
}

# loses COMMAND...: what the peer does is the end of a connection. All else lives
# on.
loses() {
	local status=0
	module_connects 2001 'rpcvers=1 null=0' && speaks 1 || return
	begin_call null
	asked "$asks $call_null" || status=1
	"$@" || status=1
	end_call ECONNRESET && tries close && wait_for 10 is_gone "$client" &&
		control - call "connection $bystander null" && return "$status"
}

# Of a call that is over (RFC 8166, section 4.4.1).
memory_is_gone() {
	say 1 "$@"
	! hear 1 && same 'the peer failed' failed "${said%%:*}"
}

# unanswered_chunks VERSION: the peer does not keep the memory for that.
unanswered_chunks() {
	local status=0
	begin_call "echo size=$size chunks=1"
	asked_by_chunks "$1" && tell 1 read "$read_key" "$read_address" 8 || status=1
	end_call ETIMEDOUT && memory_is_gone read "$read_key" "$read_address" 8 && return "$status"
}

# About: which version (the draft, section 5).

# first_null PORT WORDS VERSION: a connection, and its NULL call in that version.
first_null() {
	module_connects "$1" "$2" && speaks "$3" && asked "$asks $call_null"
}

# And it is answered.
answers_null() {
	sends "$replies $success" && null_is SUCCESS "$1"
}

# falls_back PORT MESSAGE: the peer answers version 2 so, and then speaks 1.
falls_back() {
	listens_at "$1" && first_null "$1" rpcvers=auto 2 && sends "$2" && speaks 1 &&
		asked "$asks $call_null" && answers_null 1 && same_info "$client" generation=1 &&
		module_leaves
}

# connects_anew PORT COMMAND...: version 2 is not answered, but COMMAND happens.
# Who has been so once is spoken to in version 1.
connects_anew() {
	listens_at "$1" && first_null "$1" 'rpcvers=auto timeout_ms=2000' 2 && "${@:2}" &&
		tell 1 close && tell 1 accept "$private" && speaks 1 &&
		asked "$asks $call_null" && answers_null 1 && module_leaves || return
	first_null "$1" rpcvers=auto 1 && answers_null 1 && module_leaves
}

# has_no_version PORT WORDS VERSION MESSAGE: the NULL call fails.
has_no_version() {
	listens_at "$1" && first_null "$1" "$2" "$3" && sends "$4" && wait_for 10 null_failed &&
		same_info "$client" rpc_version_used=none && module_leaves
}

# A peer that says that it speaks 1, and does not.
refuses_each() {
	listens_at "$1" && first_null "$1" rpcvers=auto 2 && sends "X 2 $peers 4  1 1 1" &&
		speaks 1 && asked "$asks $call_null" && sends "X 1 $peers 4  1 1 1" &&
		wait_for 10 null_failed && module_leaves
}

null_failed() { info "$client" && [[ ${info[rpc_null]} != @(pending|SUCCESS) ]]; }

dropped() { tell 1 receive 10000 && same 'the peer received' closed "$said"; }

# As it is told.
another_program() {
	module_connects 2001 'rpcvers=1 program=305419896 version=9' && speaks 1 &&
		asked "$asks  X 0 2  0x12345678 9 0  $auth" && answers_null 1 && module_leaves
}

no_null() {
	module_connects 2001 'rpcvers=1 null=0' && tell 1 receive 500 &&
		same 'the module sent' none "$said" && module_leaves
}

# -----------------------------------------------------------------------------

need 'a pair' pair
need 'they reach each other' on_a ping -c1 -W5 "$B4"
need 'the module loads' module_load
modprobe -q rdma_ucm
need 'it listens' control b listen "$B4:2000 recv=4096 inv=1 credits=$grants"
need 'it listens, for version 1' control b listen "$B4:2002 rpcvers=1 credits=$grants"
need 'it listens, for version 2' control b listen "$B4:2003 rpcvers=2 credits=$grants"
need 'the peer starts' program 1
need 'the peer listens' listens_at 2001
need 'the peer has Receives' tell 1 receives 32 4096
need 'a connection beside the others' connect a "$B4:2000"
bystander=$client

need 'the peer connects' peer_connects 2000 none

bad=0
answers_both 'NULL' "$call_null" "$success"
answers_both 'NULL of any program' "X 0 2  0x12345678 9 0  $auth" "$success"
answers_both 'ECHO' "$call_echo 5 0x68656c6c 0x6f000000" "$success 5 0x68656c6c 0x6f000000"
answers_both 'ECHO of nothing' "$call_echo 0" "$success 0"
answers_both 'another procedure of NFS' "X 0 2  100003 4 1  $auth" 'X 1 0  0 0  1'
answers_both 'another version of ECHO' "X 0 2  $echo 2 1  $auth 0" 'X 1 0  0 0  2 1 1'
answers_both 'another procedure of ECHO' "X 0 2  $echo 1 2  $auth 0" 'X 1 0  0 0  3'
answers_both 'ECHO of less than it says' "$call_echo 9 0x68656c6c" 'X 1 0  0 0  4'
answers_both 'credentials' "X 0 2  100003 4 0  1 8 0 0  0 0" "$success"
answers_both 'a call that is cut off' "X 0 2  100003 4" 'X 1 0  0 0  4'
answers_both 'version 3 of RPC' "X 0 3  100003 4 0  $auth" 'X 1 1  0 2 2'
answers_both 'credentials that are too long' "X 0 2  100003 4 0  1 401 0 0" 'X 1 1  1 1'
answers_both 'a verifier that is too long' "X 0 2  100003 4 0  0 0  1 401 0" 'X 1 1  1 3'

for vers in 0 3 0xffffffff; do
	refuses "version $vers" "X $vers 32 0  0 0 0  $call_null" "X $vers $grants 4  1 1 2"
done
refuses 'version 3, and nothing else is known' "X 3 32 99  Y Y Y" "X 3 $grants 4  1 1 2"

refuses 'no octet' = nothing
refuses 'one octet' =00 nothing
refuses 'four octets' =70000001 nothing
refuses '16 octets of version 3' 'X 3 32 0' nothing
refuses '27 octets' '=700000010000000100000020000000000000000000000000000000' nothing
refuses 'RDMA_MSGP' "X 1 32 2  0 0  0 0 0  $call_null" "$err_chunk"
refuses 'RDMA_DONE' 'X 1 32 3  0 0 0' nothing
refuses 'RDMA_MSGP, version 2' "X 2 32 2  0 0  0 0 0  $call_null" "$bad_header"
refuses 'RDMA_DONE, version 2' 'X 2 32 3  0 0 0' "$bad_header"
refuses_both 'an unknown procedure' 6 '0 0 0'
refuses_both 'the last procedure' 0xffffffff '0 0 0'
refuses_both 'RDMA_NOMSG without a chunk' 1 '0 0 0'
refuses_both 'RDMA_MSG without a message' 0 '0 0 0'
refuses_both 'RDMA_MSG with another XID' 0 "0 0 0  Y 0 2  100003 4 0  $auth"
refuses_both 'a Read list that is neither there nor not' 0 "2 0 0  $call_null"
refuses_both 'a Read list at an odd Position' 0 "1 42 1 4 0 0  0 0 0  $call_null"
refuses_both 'a Read list that is cut off' 0 '1 0 1 4'
refuses_both 'a Read list that does not end' 0 '1 0 1 4 0 0'
refuses_both 'a Write list that is neither there nor not' 0 "0 2 0 0  $call_null"
refuses_both 'a Write chunk of more segments than there are' 0 "0 1 99 1 4 0 0 0 0  $call_null"
refuses_both 'a Write chunk of 2^28 segments' 0 "0 1 0x10000000 1 4 0 0 0 0  $call_null"
refuses_both 'a Reply chunk that is neither there nor not' 0 "0 0 0x100  $call_null"
refuses_both 'a Reply chunk of more segments than any' 0 "0 0 1 0xffffffff 1 4 0 0  $call_null"
refuses_both 'no Reply chunk, nor none' 0 '0 1 0 0'
refuses 'a direction that is none' "X 2 32 0 2  0 0 0  $call_null" "$bad_header"
refuses 'a call in the direction of a reply' "X 2 32 0 1  0 0 0  $call_null" "$bad_header"
refuses 'a reply in the direction of a call' "X 2 32 0 0  0 0 0  $success" "$bad_header"
refuses 'an option in no direction' 'X 2 32 5 2  77 0' "$bad_header"
refuses 'an option of less than it says' 'X 2 32 5 0  77 9 1' "$bad_header"
refuses 'an option that is not filled up with zeros' 'X 2 32 5 0  77 3 1' "$bad_header"
refuses 'an error that is none' 'X 1 32 4  9 0 0' nothing
check 'each malformed header was counted' same_info "$server" bad_headers="$bad"

answers 'no credits asked for' "X 1 0 0  0 0 0  $call_null" "$reply1 $success"
answers 'an unknown option' 'X 2 32 5 0  77 0' "X 2 $grants 4  3"
answers 'an unknown option, with octets' "X 2 32 5 0  78 5 1 0x02000000  $call_null" \
	"X 2 $grants 4  3"
# Nothing that the module serves is DDP-eligible (RFC 8166, sections 3.4.1 and 4.3.2.2).
answers 'a Read chunk within the call' "X 1 32 0  1 40 1 4 0 0  0 0 0  $call_null" "$err_chunk"
answers 'a Read chunk within the call, version 2' \
	"X 2 32 0 0  1 40 1 4 0 0  0 0 0  $call_null" "$bad_header"

check 'nothing was unexpected' same_info "$server" unexpected_messages=0
answers 'a reply' "X 1 32 0  0 0 0  $success" nothing
answers 'a reply, version 2' "X 2 32 0 1  0 0 0  $success" nothing
answers 'ERR_VERS' 'X 3 32 4  1 1 1' nothing
answers 'ERR_CHUNK' 'X 1 32 4  2' nothing
answers 'RDMA2_ERR_INVALID_OPTION' 'X 2 32 4  3' nothing
answers 'an option in the direction of a reply' 'X 2 32 5 1  77 0' nothing
answers 'neither a call nor a reply' "X 1 32 0  0 0 0  X 2" nothing
check_fails 'it makes no calls' control - call "connection $server null"
check 'but for those' same_info "$server" unexpected_messages=7 bad_headers="$bad" \
	credits_granted="$grants" sends_with_invalidate=0 generation=1
check 'the peer disconnects' peer_leaves

need 'the peer connects, for version 1 alone' peer_connects 2002 none
answers 'version 1' "$call1 $call_null" "$reply1 $success"
answers 'version 2 of who speaks version 1' "$call2 $call_null" "X 2 $grants 4  1 1 1"
check 'the peer disconnects' peer_leaves
need 'the peer connects, for version 2 alone' peer_connects 2003 none
answers 'version 2' "$call2 $call_null" "$reply2 $success"
answers 'version 1 of who speaks version 2' "$call1 $call_null" "X 1 $grants 4  1 2 2"
check 'the peer disconnects' peer_leaves

need 'the peer connects, and says nothing about sizes' peer_connects 2000 none
check 'ECHO of more than the inline threshold' thresholds
check 'the peer disconnects' peer_leaves

need 'the peer connects, and allows remote invalidation' peer_connects 2000 "$private_1024"
check 'a Long Call and a Long Reply' by_chunks 1
check 'a Long Call and a Long Reply, version 2' by_chunks 2
check 'in pieces' in_pieces
check 'a Long Reply without a Reply chunk' long_reply_without_chunk
check 'a Reply chunk that is not needed' reply_chunk_unused
check 'a Write chunk that is not needed' write_chunk_unused
check 'a Long Call with another XID' long_call_of_another
check 'the peer disconnects' peer_leaves

breaks 'a Read chunk that is not registered' not_read 12345678 64
breaks 'a Read chunk that is longer than the memory' not_read '' 65536
breaks 'a Read chunk that is longer than any' not_read '' 4294967295
breaks 'a Read chunk of no octets' not_read '' 0
breaks 'a Reply chunk that is not registered' not_written 12345678 65536
breaks 'a Reply chunk that is longer than the memory' not_written '' 65536
breaks 'a Reply chunk that is too short' not_written '' 64
breaks 'a Send that is longer than a Receive' too_long
breaks 'more calls than are granted' at_once
check 'a peer that has no Receives' receives_only 0 0
check 'a peer whose Receives are too small' receives_only 4 16


# check_too NAME COMMAND...: in this version, too.
check_too() { check "$1, version $vers" "${@:2}"; }

for vers in 1 2; do
	speaks "$vers"
	need "the module connects, for version $vers" module_connects 2001 \
		"rpcvers=$vers inv=1"
	check_too 'the first call is the only one' first_call "$vers"
	check_too 'a call' outlives bad_headers
	check_too 'no credits' no_credits
	check_too 'a reply to another call, then that' outlives unexpected_messages \
		"${replies//X/Y} ${success//X/Y}"
	check_too 'two replies' duplicate
	check_too 'a call, then the reply' outlives unexpected_messages \
		"${asks//X/Y} ${call_null//X/Y}"
	check_too 'errors that answer nothing' outlives unexpected_messages \
		"Y $vers $peers 4  2" "Y $vers $peers 4  1 1 1" "Y 3 $peers 4  1 1 1"
	[[ $vers = 1 ]] || check_too 'an option' refuses_option
	check_too 'what is too short' outlives bad_headers = =00 'X 1 9 0' \
		=7000000100000001000000090000000000000000000000000000
	check_too 'what is malformed' outlives bad_headers \
		"X $vers $peers 99  0 0 0 0" "X $vers $peers 3  0 0 0 0" "$replies" \
		"$replies ${success//X/Y}" "${replies%0 0 0} 2 0 0 $success" \
		"${replies%0 0 0} 0 1 0x10000000 0 $success" "${replies%0 0 0} 0 0 1 9 $success" \
		"X $vers $peers 4  9 0 0 0" "X 9 $peers 0 0  0 0 0  $success"
	check_too 'a header that cannot be read' ends EPROTO "X $vers $peers 4  2"
	check_too 'no such version any more' ends EPROTONOSUPPORT "X $vers $peers 4  1 3 4"
	check_too 'no such program' ends ENOTSUP "$replies X 1 0  0 0  1"
	check_too 'no such version of the program' ends ENOTSUP "$replies X 1 0  0 0  2 1 1"
	check_too 'no such procedure' ends ENOTSUP "$replies X 1 0  0 0  3"
	check_too 'arguments that make no sense' ends EINVAL "$replies X 1 0  0 0  4"
	check_too 'a responder out of order' ends EREMOTEIO "$replies X 1 0  0 0  5"
	check_too 'another version of RPC' ends ENOTSUP "$replies X 1 1  0 3 3"
	check_too 'no credentials' ends EACCES "$replies X 1 1  1 5"
	check_too 'a reply that is cut off' ends EPROTO "$replies X 1 0"
	check_too 'results that nobody wants' ends EBADMSG "$replies $success 1"
	check_too 'a reply in a chunk that was not offered' ends EPROTO \
		"$long 0  0  1 1 0x1234 24 0 0x1000"
	check_too 'no more calls than are granted' within_credits
	check_too 'ECHO' echo_inline 0
	printf -v zeros '%040d' 0
	check_too 'ECHO of something else' echo_inline EBADMSG "$zeros"
	check_too 'a Long Call and a Long Reply' by_chunks_counted "$vers" send
	check_too 'the same, and remote invalidation' by_chunks_counted "$vers" send_invalidate
	check_too 'another Reply chunk' another_chunk "$vers"
	check_too 'a call after all that' outlives bad_headers
	check_too 'the memory of a call that is over' \
		memory_is_gone read "$read_key" "$read_address" 8
	check_too 'the peer closes' tell 1 close
	check_too 'the connection is gone' wait_for 10 is_gone "$client"

	check_too 'a first call of 1100 octets' first_is_short "$vers"
	need "the module connects again, for version $vers" module_connects 2001 \
		"rpcvers=$vers timeout_ms=1500"
	check_too 'NULL' first_call_answered "$vers"
	check_too 'no reply' late
	check_too 'no reply, but a call' not_late
	check_too 'a Long Call without a reply' unanswered_chunks "$vers"
	check_too 'the peer closes' tell 1 close
	check_too 'the connection is gone' wait_for 10 is_gone "$client"
done
check 'NULL of another program' another_program
check 'no NULL' no_null

check 'a call when the peer disconnects' loses tell 1 close
check 'a Send that is longer than a Receive' loses tries send "$(printf '%010000d' 0)"
check 'a key that is none' loses tries send_invalidate 12345678 00

check 'ERR_VERS, in version 2' falls_back 2011 "X 2 $peers 4  1 1 1"
check 'ERR_VERS, in version 1' falls_back 2012 "X 1 $peers 4  1 1 1"
check 'ERR_VERS of other versions' has_no_version 2013 rpcvers=auto 2 "X 2 $peers 4  1 3 4"
check 'ERR_VERS of that version' has_no_version 2014 rpcvers=auto 2 "X 2 $peers 4  1 2 3"
check 'ERR_VERS of no version' has_no_version 2015 rpcvers=auto 2 "X 2 $peers 4  1 2 1"
check 'ERR_VERS, and version 2 alone' has_no_version 2016 rpcvers=2 2 "X 2 $peers 4  1 1 1"
check 'ERR_VERS, and version 1 alone' has_no_version 2017 rpcvers=1 1 "X 1 $peers 4  1 2 2"
check 'RDMA2_ERR_BAD_HEADER' has_no_version 2018 rpcvers=auto 2 "X 2 $peers 4  2"
check 'ERR_VERS to each version' refuses_each 2019
check 'version 2 is dropped' connects_anew 2021 dropped
check 'version 2 ends the connection' connects_anew 2022 true

check 'the connection beside them is as it was' same_info "$bystander" state=established \
	generation=1 bad_headers=0 unexpected_messages=0
check 'all are closed' control - close all
check 'nothing is left' wait_for 10 none_live
