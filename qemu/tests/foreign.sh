#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The other end is not the module but user space: peer.py sends all that a peer
# could say, ucmatose says nothing. What the module finds in it, and takes for
# negotiated, is what RFC 8797 says.
#
# test: debug.rxe
# soak: debug.siw
. ./lib.sh
. ./module.sh

own_send=8192 own_receive=16384
own_words="send=$own_send recv=$own_receive inv=1"
message "$own_send" "$own_receive" 1
own_octets=$message

# About: the peer.

peer_start() { program 1 && tell 1 listen "/run/netns/$B" "$B4" 2001; }

# About: what a peer says.

# same_peer ID ROLE FOUND [KEY=VALUE]...: whether the connection holds what the
# peer said in $padded. What is no message means the defaults (RFC 8797, 5.1).
same_peer() {
	local id=$1 word bad=0 c2s s2c
	local -A peer=([offset]=none [version]=none [reserved]=none
		[send]=1024 [receive]=1024 [r]=no)
	for word in "${@:4}"; do peer[${word%%=*}]=${word#*=}; done
	[[ ${peer[offset]} = none ]] || ((peer[offset] += start))
	# RFC 8797, section 4.2.
	if [[ $2 = client ]]; then
		c2s=$((own_send < peer[receive] ? own_send : peer[receive]))
		s2c=$((peer[send] < own_receive ? peer[send] : own_receive))
	else
		c2s=$((peer[send] < own_receive ? peer[send] : own_receive))
		s2c=$((own_send < peer[receive] ? own_send : peer[receive]))
	fi

	octets "connection/$id/received"
	same received "$padded" "$octets" || bad=1
	octets "connection/$id/sent"
	same sent "$own_octets" "$octets" || bad=1
	# As the module has offered R, it is the peer's that counts (section 4.1).
	same_info "$id" role="$2" state=established transport="$transport" \
		peer_length=$((${#padded} / 2)) peer_offset="${peer[offset]}" \
		peer_version="${peer[version]}" peer_reserved="${peer[reserved]}" \
		peer_send_size="${peer[send]}" peer_receive_size="${peer[receive]}" \
		peer_remote_invalidation="${peer[r]}" \
		client_to_server_threshold="$c2s" server_to_client_threshold="$s2c" \
		remote_invalidation="${peer[r]}" || bad=1
	# shellcheck disable=SC2053 # a pattern
	[[ ${info[peer_private_data]} = $3 ]] ||
		same peer_private_data "$3" "${info[peer_private_data]}" || bad=1
	return "$bad"
}

# to_server HEX FOUND...: the peer connects to the module.
to_server() {
	local bad=0
	tell 1 connect "/run/netns/$A" "$B4" 2000 "${1:-none}" || return
	arrives "$own_octets" "$reply_room"
	same 'the peer received' "$padded" "$said" || bad=1
	newest server && wait_for 10 is_state "$id" established || return
	arrives "$1" "$request_room"
	same_peer "$id" server "${@:2}" || bad=1
	tell 1 close && wait_for 10 is_gone "$id" && return "$bad"
}

# to_client HEX FOUND...: the module connects to the peer.
to_client() {
	local bad=0
	say 1 accept "${1:-none}"
	control a connect "$B4:2001 $own_words null=0" && hear 1 || return
	arrives "$own_octets" "$request_room"
	same 'the peer received' "$padded" "$said" || bad=1
	arrives "$1" "$reply_room"
	newest client && same_peer "$id" client "${@:2}" || bad=1
	say 1 ended
	control a close "connection $id" && hear 1 && return "$bad"
}

# says WHAT HEX FOUND [KEY=VALUE]...: in both directions. A HEX of ...HEX ends
# where the room does, and offsets count from its begin.
says() {
	local direction room hex start
	for direction in to_server to_client; do
		room=$request_room
		[[ $direction = to_server ]] || room=$reply_room
		hex=${2#...} start=0
		if [[ $hex != "$2" ]]; then
			start=$((room - ${#hex} / 2))
			printf -v hex '%*s%s' $((2 * start)) '' "$hex"
		fi
		check "$1, $direction" $direction "${hex// /a}" "${@:3}"
	done
}

# About: what the module says.

# hears WHAT WORDS HEX: whether the peer receives HEX, as request and as answer,
# when the module has been told WORDS.
hears() {
	check "$1, as client" heard_by_server "$2" "$3"
	check "$1, as server" heard_by_client "$2" "$3"
}

sent_and_heard() {
	local bad=0
	arrives "$2" "$3"
	same 'the peer received' "${padded:-none}" "$said" || bad=1
	octets "connection/$1/sent"
	same sent "$2" "$octets" || bad=1
	return "$bad"
}

heard_by_server() {
	local bad=0
	say 1 accept none
	control a connect "$B4:2001 $1 null=0" && hear 1 && newest client || return
	sent_and_heard "$id" "$2" "$request_room" || bad=1
	say 1 ended
	control a close "connection $id" && hear 1 && return "$bad"
}

heard_by_client() {
	local bad=0 listener
	control b listen "$B4:2002 $1" && lines listeners || return
	listener=${lines[-1]%% *}
	tell 1 connect "/run/netns/$A" "$B4" 2002 none && newest server || return
	sent_and_heard "$id" "$2" "$reply_room" || bad=1
	tell 1 close && wait_for 10 is_gone "$id" &&
		control b close "listener $listener" && return "$bad"
}

# About: ucmatose.

# Its server sends one message, its client waits for one; both until they are
# killed. Not by on_a and on_b, whose process that would not be.
ucmatose_connects() {
	local process bad=0
	nsenter --net="/run/netns/$A" ucmatose -s "$B4" -p 2000 -C 1 &
	process=$!
	wait_for 20 newest server && wait_for 10 is_state "$id" established || return
	arrives '' "$request_room"
	same_peer "$id" server absent || bad=1
	gone_after_kill "$process" && return "$bad"
}

ucmatose_listens() {
	local process bad=0 before
	counter messages_received && before=$count
	nsenter --net="/run/netns/$B" ucmatose -b "$B4" -C 1 &
	process=$!
	wait_for 20 control a connect "$B4:7471 $own_words null=0" && newest client || return
	arrives '' "$reply_room"
	same_peer "$id" client absent && wait_for 10 received_since "$before" || bad=1
	gone_after_kill "$process" && return "$bad"
}

received_since() { counter messages_received && ((count == $1 + 1)); }

gone_after_kill() {
	kill -KILL "$1"
	wait "$1"
	wait_for 10 is_gone "$id"
}

# -----------------------------------------------------------------------------

need 'a pair' pair
need 'they reach each other' on_a ping -c1 -W5 "$B4"
need 'the module loads' module_load
modprobe -q rdma_ucm
need 'it listens' control b listen "$B4:2000 $own_words"
need 'the peer starts' peer_start

start=0
says 'nothing' '' absent
says 'one octet' f6 absent
if [[ $TRANSPORT = siw ]]; then
	says 'the identifier alone' f6ab0e18 'rejected: *truncated*' offset=0
	says 'seven octets of a message' f6ab0e18010107 'rejected: *truncated*' offset=0
else
	# The padding makes more of it.
	says 'the identifier alone' f6ab0e18 'rejected: *version 0*' offset=0 version=0
	says 'seven octets of a message' f6ab0e18010107 present offset=0 version=1 reserved=0x00 \
		r=yes send=8192 receive=1024
fi
says 'a message' f6ab0e180101030f present offset=0 version=1 reserved=0x00 \
	r=yes send=4096 receive=16384
says 'the smallest sizes' f6ab0e1801000000 present offset=0 version=1 reserved=0x00
says 'the largest sizes' f6ab0e180100ffff present offset=0 version=1 reserved=0x00 \
	send=262144 receive=262144
says 'reserved bits, not R' f6ab0e1801fe0303 present offset=0 version=1 reserved=0xfe \
	send=4096 receive=4096
says 'reserved bits, and R' f6ab0e1801ff0303 present offset=0 version=1 reserved=0xfe \
	r=yes send=4096 receive=4096
says 'another identifier' f6ab0e1901010303 absent
says 'the identifier in the wrong order' 180eabf601010303 absent
says 'version 0' f6ab0e1800010303 'rejected: *version 0*' offset=0 version=0
says 'version 2' f6ab0e1802010303 'rejected: *version 2*' offset=0 version=2
says 'one octet before a message' 00f6ab0e180100071f present offset=1 version=1 \
	reserved=0x00 send=8192 receive=32768
says 'the begin of an identifier before a message' f6abf6ab0ef6ab0e1801011f07 present \
	offset=5 version=1 reserved=0x00 r=yes send=32768 receive=8192
says 'a message at the end' ...f6ab0e1801010101 present offset=0 version=1 reserved=0x00 \
	r=yes send=2048 receive=2048
says 'a message that the end cuts off' ...f6ab0e18010101 'rejected: *truncated*' offset=0
says 'version 2, then a message' f6ab0e1802ffffff00f6ab0e1801010203 present offset=9 \
	version=1 reserved=0x00 r=yes send=3072 receive=4096
says 'version 2, then a message cut off' ...f6ab0e1802fffffff6ab0e1801 \
	'rejected: *version 2*' offset=0 version=2
says 'two messages' 00f6ab0e1801010305f6ab0e1801000809 present offset=1 version=1 \
	reserved=0x00 r=yes send=4096 receive=6144

hears 'nothing' private=none ''
hears 'one octet' private=00 00
hears 'a message of its own' 'send=65536 recv=1024 inv=1' f6ab0e1801013f00
hears 'what no sender must' private=f6ab0e1802ff00ff0a f6ab0e1802ff00ff0a
printf -v octets '%0*x' $((2 * request_room)) 0xf6ab0e1801010303
hears 'all that a request has room for' "private=$octets" "$octets"

check 'ucmatose connects, says nothing, and is killed' ucmatose_connects
check 'ucmatose listens, says nothing, and is killed' ucmatose_listens
check 'nothing is left' wait_for 10 none_live
