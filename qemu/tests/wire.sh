#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The octets on the wire, as tshark decodes them, are those that were to be sent
# and those that both ends show.
#
# test: debug.rxe debug.siw
. ./lib.sh
. ./module.sh

capture=$scratch/wire.pcap

# connected ADDRESS HEADER CLIENT_WORDS SERVER_WORDS REQUEST REPLY: REQUEST and
# REPLY are the octets to be found; HEADER is of what rdma_cm puts before the
# former on InfiniBand, without the port.
port=20048
connections=()
connected() {
	((++port))
	control b listen "$1:$port $4" && connect a "$1:$port $3 null=0" || return
	connections+=("$client $server ${*:5:2} $2")
}

# decode FILTER FIELD...: into $packets, a line for each with these fields.
decode() {
	local filter=$1 field fields=()
	shift
	for field; do fields+=(-e "$field"); done
	mapfile -t packets < <(tshark -r "$capture" -Y "$filter" -T fields -E separator=, \
		"${fields[@]}" 2>"$scratch/tshark")
}

# packet REGEX: into the array of that name, the fields of the first that matches.
packet() {
	local line
	for line in "${packets[@]}"; do
		[[ ! $line =~ ^$1$ ]] || { IFS=, read -ra packet <<<"$line"; return; }
	done
	echo "no packet $1 among these:"
	printf '%s\n' "${packets[@]}"
	return 1
}

# shows ID SENT RECEIVED: whether that end does.
shows() {
	local bad=0
	octets "connection/$1/sent"
	same "sent by $1" "$2" "$octets" || bad=1
	octets "connection/$1/received"
	same "received by $1" "$3" "$octets" || bad=1
	return "$bad"
}

# The CM's REQ has 92 octets, of which rdma_cm's header is the first 36: version,
# IP version, port, addresses. Its REP has 196.
check_roce() {
	local client=$1 server=$2 request=$3 reply=$4 header=$5 from=$6 to=$7 bad=0
	local in_request in_reply
	padded "$request" 56; in_request=$padded
	padded "$reply" 196; in_reply=$padded
	printf -v from %04x "$from"
	printf -v to %04x "$to"

	packet "0x[0-9a-f]*,0x$from,0x$to,.*" || return
	same 'the request' "${header/PORT/$from}$in_request" "${packet[3]}" || bad=1
	packet ",,,,${packet[0]},.*" || return
	same 'the reply' "$in_reply" "${packet[5]}" || bad=1
	shows "$client" "$request" "$in_reply" || bad=1
	shows "$server" "$reply" "$in_request" || bad=1
	return "$bad"
}

# MPA's frames have what was sent behind the 4 octets of MPAv2 (RFC 6581, section
# 9), whose presence a bit of the header says that is reserved in MPA.
check_iwarp() {
	local client=$1 server=$2 request=$3 reply=$4 from=$6 to=$7 bad=0

	packet "$from,$to,[0-9a-f]+,,.*" || return
	same 'the request' "2,0x10,$((4 + ${#request} / 2)),$request" \
		"${packet[4]},${packet[5]},${packet[6]},${packet[7]:8}" || bad=1
	packet "$to,$from,,[0-9a-f]+,.*" || return
	same 'the reply' "2,0x10,$((4 + ${#reply} / 2)),$reply" \
		"${packet[4]},${packet[5]},${packet[6]},${packet[7]:8}" || bad=1
	shows "$client" "$request" "$reply" || bad=1
	shows "$server" "$reply" "$request" || bad=1
	return "$bad"
}

check_wire() {
	local client server request reply header
	read -r client server request reply header <<<"$1"
	info "$client"
	"check_$transport" "$client" "$server" "${request/none/}" "${reply/none/}" "$header" \
		"${info[local]##*:}" "${info[remote]##*:}"
}

need 'a pair' pair
need 'the module' module_load
need 'a capture' start_capture

IFS=. read -ra a <<<"$A4"
IFS=. read -ra b <<<"$B4"
n=${a[2]}
printf -v ipv4 '0040PORT%024d%02x%02x%02x%02x%024d%02x%02x%02x%02x' 0 "${a[@]}" 0 "${b[@]}"
# Of fd77:$n::1 and fd77:$n::2.
printf -v ipv6 '0060PORTfd77%04d%023d1fd77%04d%023d2' "$n" 0 "$n" 0
# No octet twice in a row, none of them zero.
printf -v filler '%02x' {1..255}
most=${filler::2 * request_room} most_back=${filler::2 * reply_room}

names=(messages 'messages over IPv6' 'as many octets as there can be' 'one octet' none)
need "${names[0]}" connected "$B4" "$ipv4" 'send=8192 recv=16384 inv=1' 'send=262144 recv=1024' \
	f6ab0e180101070f f6ab0e180100ff00
need "${names[1]}" connected "[$B6]" "$ipv6" 'send=1024 recv=262144' 'send=65536 recv=4096 inv=1' \
	f6ab0e18010000ff f6ab0e1801013f03
need "${names[2]}" connected "$B4" "$ipv4" "private=$most" "private=$most_back" "$most" "$most_back"
need "${names[3]}" connected "$B4" "$ipv4" private=a5 private=5a a5 5a
need "${names[4]}" connected "$B4" "$ipv4" private=none private=none none none

# RFC 8797, section 4.1: replies that invalidate, if both sides set R.
calls() {
	control b listen "$B4:$1 inv=1" && connect a "$B4:$1 inv=$2 null=0" &&
		control a call "connection $client echo size=10000 count=3" &&
		same_info "$server" chunked_calls=3 sends_with_invalidate="$3"
}
need 'calls, with remote invalidation' calls 20060 1 3
need 'calls, without' calls 20061 0 0

need 'the capture ends' stop_capture
case $transport in
roce)
	decode 'infiniband.cm.req or infiniband.cm.rep' \
		infiniband.cm.req infiniband.cm.req.ip_cm.sport infiniband.cm.req.serviceid.dport \
		infiniband.cm.req.ip_cm infiniband.cm.rep.remotecommid infiniband.cm.rep.private
	;;
iwarp)
	decode 'iwarp_mpa.req or iwarp_mpa.rep' tcp.srcport tcp.dstport \
		iwarp_mpa.key.req iwarp_mpa.key.rep iwarp_mpa.rev iwarp_mpa.res \
		iwarp_mpa.pdlength iwarp_mpa.privatedata
	;;
esac
for n in "${!connections[@]}"; do
	check "on the wire: ${names[n]}" check_wire "${connections[n]}"
done

# SEND Only with Invalidate; in iWARP the Send Message with Invalidate.
case $transport in
roce) decode 'infiniband.bth.opcode == 0x17' infiniband.bth.opcode ;;
iwarp) decode 'iwarp_rdma.opcode == 0x4' iwarp_rdma.opcode ;;
esac
check_equal 'on the wire: as many invalidate' 3 "${#packets[@]}"
