#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The octets on the wire, as tshark decodes them, are the expected ones, and both ends show them.
# The dissector of tools/wireshark, which shares no code with the module, finds the same messages
# as both ends. FULL=1 adds private data.
#
# test: stock.rxe
# soak: debug.rxe debug.siw
. ./lib/lib.sh
. ./lib/module.sh

capture=$scratch/wire.pcap

# connected ADDRESS HEADER CLIENT_WORDS SERVER_WORDS REQUEST REPLY: connects. REQUEST and REPLY
# are the expected octets. HEADER is the header that rdma_cm puts before REQUEST on InfiniBand,
# with PORT in place of the client's port.
port=20048
connections=()
connected() {
	((++port))
	control b listen "$1:$port $4" && connect a "$1:$port $3 null=0" || return
	connections+=("$client $server ${*:5:2} $2")
}

# decode FILTER FIELD...: sets $packets to a line with these fields for each packet.
decode() {
	local fields=("${@:2}")
	mapfile -t packets < <(tshark -r "$capture" -Y "$1" -T fields -E separator=, \
		"${fields[@]/#/-e}" 2>"$scratch/tshark")
}

# packet REGEX: sets $packet to the fields of the first packet that matches.
packet() {
	local line
	for line in "${packets[@]}"; do
		[[ ! $line =~ ^$1$ ]] || { IFS=, read -ra packet <<<"$line"; return; }
	done
	echo "no packet $1 among these:"
	printf '%s\n' "${packets[@]}"
	return 1
}

# shows ID SENT RECEIVED: whether the files of that end have these octets.
shows() {
	local bad=0
	octets "connection/$1/sent"
	same "sent by $1" "$2" "$octets" || bad=1
	octets "connection/$1/received"
	same "received by $1" "$3" "$octets" || bad=1
	return "$bad"
}

# check_roce: the CM's REQ has 92 octets, of which rdma_cm's header is the first 36: version, IP
# version, port, addresses. Its REP has 196.
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

# check_iwarp: in frames of MPA the private data is behind the 4 octets of MPAv2 (RFC 6581, section
# 9). A bit in the header says that they are present.
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

# About: the dissector.

# install_dissector: installs it as users do it. tshark of root loads no scripts, and prints no
# error.
install_dissector() {
	local plugins=$scratch/home/.local/lib/wireshark/plugins
	chmod a+x "$scratch" && chmod a+r "$capture" &&
		install -D -m 644 -t "$plugins" ../../tools/wireshark/rpcrdma_cm.lua
}

# dissect FILTER FIELD...: does the same as decode, with the dissector. Uses two passes, so that the
# line of a request has fields of its reply.
dissect() {
	local fields=("${@:2}")
	mapfile -t packets < <(setpriv --reuid=65534 --regid=65534 --clear-groups \
		env HOME="$scratch/home" tshark -2 -n -r "$capture" -Y "$1" -T fields \
		-o rpc.dissect_unknown_programs:TRUE \
		-E 'separator=|' "${fields[@]/#/-e}" 2>"$scratch/tshark")
	! grep -q Lua "$scratch/tshark" || { cat "$scratch/tshark"; return 1; }
}

# Fields 0 to 6 identify a packet, fields 7 to 20 make up $dissected, and the fields from 21
# on are those of messages of version 2.
columns=(frame.number rpcrdma_cm.role infiniband.cm.req.serviceid.dport tcp.srcport tcp.dstport
	rpcrdma_cm.request_in rpcrdma_cm.octets
	rpcrdma_cm.status rpcrdma_cm.length rpcrdma_cm.offset rpcrdma_cm.version rpcrdma_cm.reserved
	rpcrdma_cm.r rpcrdma_cm.send_octets rpcrdma_cm.receive_octets
	rpcrdma_cm.rejected rpcrdma_cm.rejected.offset rpcrdma_cm.rejected.version
	rpcrdma_cm.client_to_server_threshold rpcrdma_cm.server_to_client_threshold
	rpcrdma_cm.remote_invalidation
	rpcrdma2.request_in rpcrdma2.from rpcrdma2.xid rpcrdma2.direction rpcrdma2.reads
	rpcrdma2.writes rpcrdma2.reply infiniband.bth.opcode iwarp_rdma.opcode rpc.xid)

# row_of REGEX: sets $row to the fields of the first packet that matches.
row_of() {
	local line
	row=()
	for line in "${packets[@]}"; do
		[[ ! $line =~ ^$1$ ]] || { IFS='|' read -ra row <<<"$line|"; return 0; }
	done
	return 1
}

# of_row: sets $dissected to the result of the dissector for the packet $row. The first one of
# several rejected candidates counts.
of_row() {
	local r=no
	dissected="${row[7]} ${row[8]}"
	case ${row[7]} in
	present)
		[[ ${row[12]} != True ]] || r=yes
		printf -v dissected '%s %s %s 0x%02x %s %s %s' "$dissected" \
			"${row[9]}" "${row[10]}" $((row[11] << 1)) "$r" "${row[13]}" "${row[14]}"
		;;
	rejected) dissected+=" ${row[16]%%,*} $(reason "${row[15]}")" ;;
	esac
}

# of_info: sets $shown to the same values of $info, about the private data received.
of_info() {
	local length=${info[peer_length]}
	case ${info[peer_private_data]} in
	present)
		shown="present $length ${info[peer_offset]} ${info[peer_version]}"
		shown+=" ${info[peer_reserved]} ${info[peer_remote_invalidation]}"
		shown+=" ${info[peer_send_size]} ${info[peer_receive_size]}"
		;;
	rejected:*)
		shown="rejected $length ${info[peer_offset]}"
		shown+=" $(reason "${info[peer_private_data]}")"
		;;
	*) shown="${info[peer_private_data]} $length" ;;
	esac
}

# reason TEXT: prints the reason of the first rejection in TEXT.
reason() { grep -oE -m1 'version [0-9]+|truncated' <<<"$1" | head -n1; }

# same_dissected CLIENT SERVER: whether the dissector has found the values of both ends.
same_dissected() {
	local client=$1 server=$2 bad=0 from to words yes_no=no request reply
	local -A of_server
	info "$server" && of_info || return
	request=$shown
	octets "connection/$server/received"
	for words in client_to_server_threshold server_to_client_threshold remote_invalidation; do
		of_server[$words]=${info[$words]}
	done
	info "$client" && of_info || return
	reply=$shown
	from=${info[local]##*:} to=${info[remote]##*:}

	if [[ ${request%% *} = absent && ${reply%% *} = absent ]]; then
		! request_row "$from" "$to" || { echo "not wanted: ${row[*]}"; bad=1; }
		return "$bad"
	fi
	request_row "$from" "$to" || { echo 'no request was dissected'; return 1; }
	of_row
	same 'the request, to the server and to the dissector' "$request" "$dissected" || bad=1
	same 'the octets of the request' "$octets" "${row[6]}" || bad=1
	row_of "[0-9]+[|]server[|][^|]*[|][^|]*[|][^|]*[|]${row[0]}[|].*" ||
		{ echo 'no reply was dissected'; return 1; }
	of_row
	same 'the reply, to the client and to the dissector' "$reply" "$dissected" || bad=1
	octets "connection/$client/received"
	same 'the octets of the reply' "$octets" "${row[6]}" || bad=1
	[[ ${row[20]} != True ]] || yes_no=yes
	words="${row[18]} ${row[19]} $yes_no"
	same 'negotiated, to the client and to the dissector' "${info[client_to_server_threshold]} \
${info[server_to_client_threshold]} ${info[remote_invalidation]}" "$words" || bad=1
	same 'negotiated, to the server and to the dissector' \
		"${of_server[client_to_server_threshold]} \
${of_server[server_to_client_threshold]} ${of_server[remote_invalidation]}" "$words" || bad=1
	return "$bad"
}

# same_calls CLIENT SERVER: whether the calls in the capture are those in the counters of
# both ends. A message that was retransmitted counts once.
same_calls() {
	local line request bad=0
	local -A inline=() chunked=() invalidated=() sent=()
	info "$1" || return
	request_row "${info[local]##*:}" "${info[remote]##*:}" ||
		{ echo 'no request was dissected'; return 1; }
	request=${row[0]}
	for line in "${packets[@]}"; do
		IFS='|' read -ra row <<<"$line|"
		[[ ${row[21]} = "$request" ]] || continue
		# SEND Only with Invalidate; Send with Invalidate.
		[[ ${row[28]} != 23 && ${row[29]} != 0x04 ]] || invalidated[${row[23]}]=1
		[[ ${row[22]} = client ]] || continue
		sent[${row[23]}]=1
		same 'its direction' 0 "${row[24]}" || bad=1
		if [[ ${row[25]} -gt 0 || ${row[26]} -gt 0 || ${row[27]} = True ]]; then
			chunked[${row[23]}]=1
		else
			inline[${row[23]}]=1
			same 'the XID of the RPC message' "${row[23]}" "${row[30]}" || bad=1
		fi
	done
	same sends "${info[sends]}" "${#sent[@]}" || bad=1
	same inline_calls "${info[inline_calls]}" "${#inline[@]}" || bad=1
	same chunked_calls "${info[chunked_calls]}" "${#chunked[@]}" || bad=1
	info "$2" || return
	same sends_with_invalidate "${info[sends_with_invalidate]}" "${#invalidated[@]}" || bad=1
	return "$bad"
}

# request_row FROM TO: sets $row to the packet with the request between these ports.
request_row() {
	local port
	printf -v port 0x%04x "$2"
	case $transport in
	roce) row_of "[0-9]+[|]client[|]${port}[|].*" ;;
	iwarp) row_of "[0-9]+[|]client[|][^|]*[|]$1[|]$2[|].*" ;;
	esac
}

check_dissected() {
	local client server
	read -r client server _ <<<"$1"
	same_dissected "$client" "$server"
}

need_pair
need_module
need 'the capture of the private data begins' start_capture

IFS=. read -ra a <<<"$A4"
IFS=. read -ra b <<<"$B4"
n=${a[2]}
printf -v ipv4 '0040PORT%024d%02x%02x%02x%02x%024d%02x%02x%02x%02x' 0 "${a[@]}" 0 "${b[@]}"
# The header of rdma_cm for fd77:$n::1 and fd77:$n::2.
printf -v ipv6 '0060PORTfd77%04d%023d1fd77%04d%023d2' "$n" 0 "$n" 0
# Octets without zeros, in which neighbours differ.
printf -v filler '%02x' {1..255}
most=${filler::2 * request_room} most_back=${filler::2 * reply_room}

names=('messages of both sides' 'messages of both sides over IPv6'
	'as many octets as both messages can carry' 'one octet of each side'
	'no octets of either side')
need "${names[0]}" connected "$B4" "$ipv4" 'send=8192 recv=16384 inv=1' 'send=262144 recv=1024' \
	f6ab0e180101070f f6ab0e180100ff00
need "${names[1]}" connected "[$B6]" "$ipv6" 'send=1024 recv=262144' 'send=65536 recv=4096 inv=1' \
	f6ab0e18010000ff f6ab0e1801013f03
need "${names[2]}" connected "$B4" "$ipv4" "private=$most" "private=$most_back" "$most" "$most_back"
need "${names[3]}" connected "$B4" "$ipv4" private=a5 private=5a a5 5a
need "${names[4]}" connected "$B4" "$ipv4" private=none private=none none none

# raw NAME REQUEST REPLY: connects with this private data.
raw() {
	names+=("$1")
	need "$1" connected "$B4" "$ipv4" "private=$2" "private=$3" "$2" "$3"
}
# behind ROOM HEX: sets $behind to ROOM octets that end with HEX.
behind() {
	behind=${filler::2 * $1 - ${#2}}$2
}
raw 'one octet before the messages' 00f6ab0e180100071f 5af6ab0e180101030f
raw 'versions 2 and 0 in a capture' f6ab0e1802010f0f f6ab0e1800010f0f
raw 'two messages of each side' \
	f6ab0e1801010305f6ab0e1801000809 00f6ab0e1801000000f6ab0e180101ffff
behind "$request_room" f6ab0e1801013f00 && request=$behind
behind "$reply_room" f6ab0e1801003f07
raw 'messages in the last octets' "$request" "$behind"
more() {
	raw 'no octets of the server' f6ab0e1801010303 none
	raw 'no octets of the client' none f6ab0e1801010303
	raw 'smallest and largest sizes' f6ab0e180100ff00 f6ab0e18010100ff
	raw 'reserved bits in a capture' f6ab0e1801ff070f f6ab0e1801aa0f07
	raw 'another version before a message' \
		f6ab0e1802f6ab0e1801010307 f6f6abf6ab0e1801010703f6ab0e1801000000
	raw 'octets behind the messages' f6ab0e1801010303a5a5 f6ab0e180101030300
	# On RoCE the receiver sees a whole message, because the CM pads with zeros. The sender
	# takes its offer from the seven octets. Both ends agree, because R is clear.
	raw 'seven of eight octets' f6ab0e18010007 f6ab0e18010007
	raw 'the identifier alone' f6ab0e18 f6ab0e18
	raw 'other format identifiers' f6ab0e1901010303 180eabf601010303
	behind "$request_room" f6ab0e1801013f && request=$behind
	behind "$reply_room" f6ab0e1801013f
	raw 'truncated messages' "$request" "$behind"
}
[[ -z ${FULL:-} ]] || more

# RFC 8797, section 4.1: replies that invalidate, if both sides set R.
calls() {
	control b listen "$B4:$1 inv=1" && connect a "$B4:$1 inv=$2 null=0 rpcvers=2" &&
		control a call "connection $client echo size=10000 count=3" &&
		same_info "$server" chunked_calls=3 sends_with_invalidate="$3"
}
need 'calls with remote invalidation' calls 20160 1 3
callers=("$client $server")
need 'calls without remote invalidation' calls 20161 0 0
callers+=("$client $server")
need 'inline calls' control a call "connection $client echo size=100 count=2"

need 'the capture of the private data ends' stop_capture
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

# none_again: whether no REQ and no REP wants a message retransmitted that finds no Receive. A peer
# that exceeds its credits loses its connection (RFC 8166, section 3.3.1).
none_again() {
	local line bad=0
	decode "infiniband.cm.$1" "infiniband.cm.$1.rnrretrcount"
	[[ ${#packets[@]} -gt 0 ]] || { echo 'no packets'; return 1; }
	for line in "${packets[@]}"; do
		same 'retransmissions' 0 "$((line))" || bad=1
	done
	return "$bad"
}
if [[ $transport = roce ]]; then
	check 'on the wire: a REQ wants no message retransmitted' none_again req
	check 'on the wire: a REP wants no message retransmitted' none_again rep
fi

# SEND Only with Invalidate; in iWARP the Send Message with Invalidate.
case $transport in
roce) decode 'infiniband.bth.opcode == 0x17' infiniband.bth.opcode ;;
iwarp) decode 'iwarp_rdma.opcode == 0x4' iwarp_rdma.opcode ;;
esac
check_equal 'on the wire: three messages invalidate' 3 "${#packets[@]}"

# same_counters: whether the counters of private data, over all connections and both ends, are as
# high as the number of messages of that kind in the capture.
same_counters() {
	local status line bad=0
	local key
	local -A seen=() found=([present]=0 [rejected]=0)
	for line in "${packets[@]}"; do
		IFS='|' read -ra row <<<"$line|"
		# Without retransmissions of the CM: a connection has one REQ and one REP.
		key="${row[1]} ${row[2]} ${row[3]} ${row[4]} ${row[5]}"
		[[ -n ${row[1]} && -z ${seen[$key]-} ]] || continue
		seen[$key]=1
		[[ ${row[7]} = absent ]] || ((found[${row[7]}]++))
	done
	for status in "${!found[@]}"; do
		counter "private_data_$status"
		same "private_data_$status" "$count" "${found[$status]}" || bad=1
	done
	return "$bad"
}

need 'the dissector is installed' install_dissector
need 'the dissector runs' dissect 'rpcrdma_cm or rpcrdma2' "${columns[@]}"
for n in "${!connections[@]}"; do
	check "dissected: ${names[n]}" check_dissected "${connections[n]}"
done
for n in "${!callers[@]}"; do
	# shellcheck disable=SC2086 # two words
	check "dissected: the calls of connection $n" same_calls ${callers[n]}
done
check 'dissected: as many messages as the counters say' same_counters
