#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Both ends are the module. Compares the offer of each side, the offer that the other side
# reads, and the values that both negotiate, with those of RFC 8797. tools/conformance has the
# private data of a peer that is not the module, and wire.py the octets on the wire. At the end
# the peers are ucmatose, and over soft-iWARP one that speaks version 1 of MPA.
#
# There are five parameters: two sizes of each side, and R of both sides together. All
# combinations of any two parameters are tested; with FULL=1 all combinations of all five.
#
# test: debug.rxe
# soak: debug.siw stock.rxe arm64.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

sizes=(1024 4096 65536 262144)
yes_no=(no yes)
port=20049

# The client and the server: the words of their command, the octets that they send, and the
# meaning of these octets.
declare -A C S

# built C|S SEND RECEIVE R: the side sends a message of RFC 8797 with these values.
built() {
	local -n side=$1
	message "$2" "$3" "$4"
	side=([words]="send=$2 recv=$3 inv=$4" [octets]=$message [send]=$2 [recv]=$3 [r]=$4
		[found]=present [offset]=0 [version]=1 [reserved]=0x00)
}

# raw C|S HEX FOUND [KEY=VALUE]...: the side sends these octets. Without a valid message the
# offer is the defaults (RFC 8797, section 5.1).
raw() {
	local word
	# shellcheck disable=SC2178 # a name
	local -n side=$1
	side=([words]="private=${2:-none}" [octets]=$2 [found]=$3 [send]=1024 [recv]=1024 [r]=0)
	# shellcheck disable=SC2034 # the same
	for word in "${@:4}"; do side[${word%%=*}]=${word#*=}; done
}

# same_end ID ROLE OWN PEER ROOM DEVICE LOCAL REMOTE: whether info of this end is right.
# ROOM is the capacity of the CM's message that it receives.
same_end() {
	local id=$1 bad=0 found from to c2s s2c inv
	local -n own=$3 peer=$4

	arrives "${peer[octets]}" "$5"
	# RFC 8797, section 4.2, and 4.1.
	c2s=$((C[send] < S[recv] ? C[send] : S[recv]))
	s2c=$((S[send] < C[recv] ? S[send] : C[recv]))
	inv=${yes_no[C[r] & S[r]]}

	same_info "$id" id="$id" origin=module role="$2" state=established device="$6" \
		transport="$transport" generation=1 \
		local_send_size="${own[send]}" local_receive_size="${own[recv]}" \
		local_remote_invalidation="${yes_no[own[r]]}" \
		peer_length=$((${#padded} / 2)) \
		${peer[offset]+peer_offset="${peer[offset]}"} \
		${peer[version]+peer_version="${peer[version]}"} \
		${peer[reserved]+peer_reserved="${peer[reserved]}"} \
		peer_send_size="${peer[send]}" peer_receive_size="${peer[recv]}" \
		peer_remote_invalidation="${yes_no[peer[r]]}" \
		client_to_server_threshold="$c2s" server_to_client_threshold="$s2c" \
		remote_invalidation="$inv" || bad=1
	# Any reason may follow "rejected".
	found=${info[peer_private_data]}
	same peer_private_data "${peer[found]}" "${found/#rejected: ?*/rejected}" || bad=1
	[[ ${info[age_ms]} = +([0-9]) ]] || same age_ms 'a number' "${info[age_ms]}" || bad=1
	# At the server's end, rdma_cm does not know the zone.
	from=${info[local]} to=${info[remote]}
	same 'local and remote' "$7 $8" "${from//%+([0-9])/} ${to//%+([0-9])/}" || bad=1

	octets "connection/$id/sent"
	same sent "${own[octets]}" "$octets" || bad=1
	octets "connection/$id/received"
	same received "$padded" "$octets" || bad=1

	row connections "$id"
	same 'the row' "$id module $2 established $6 $transport $from $to 1 $c2s $s2c $inv" \
		"${row[*]}" || bad=1
	return "$bad"
}

# exchange AT TO FROM [KEY=VALUE]...: the server listens at AT, and the client connects from
# the address FROM to TO. They offer what is in C and S.
exchange() {
	local at=$1 to=$2 from=$3 bad=0
	shift 3
	((++port))
	control b listen "$at:$port ${S[words]}" &&
		connect a "$to:$port null=0 ${C[words]} $*" || return

	info "$client"
	to=${to/\%*]/]}:$port
	# Any port, but both ends must show the same.
	[[ ${info[local]} =~ :[1-9][0-9]*$ ]]
	from+=${BASH_REMATCH[0]-}
	same_end "$client" client C S "$reply_room" "$A_RDMA" "$from" "$to" || bad=1
	same_end "$server" server S C "$request_room" "$B_RDMA" "$to" "$from" || bad=1
	return "$bad"
}

# link_local NAMESPACE DEVICE: sets $address to the link-local address of a device.
link_local() {
	local _
	read -r _ _ address _ < <(ip -n "$1" -6 -br address show dev "$2" scope link)
	[[ $address = fe80:* ]] && address=[${address%/*}]
}

# aligned: whether the columns of `connections` are aligned with the header line: numbers at
# their right, other columns at their left.
aligned() {
	local line name column=0 at edge count before
	lines connections
	for name in ${lines[0]}; do
		at=${lines[0]%%"$name"*}
		at=${#at} edge=' [! ]' count=$((column++))
		case $name in
		GEN | C2S | S2C) at=$((at + ${#name})) edge='[! ] ' count=$column ;;
		esac
		for line in "${lines[@]}"; do
			# shellcheck disable=SC2206 # words
			before=(${line:0:at}) line=" $line"
			# shellcheck disable=SC2053 # a pattern
			[[ ${line:at:2} = $edge && ${#before[@]} = "$count" ]] && continue
			echo "not where $name is:"
			printf '%s\n' "${lines[0]}" "$line"
			return 1
		done
	done
}

# About: peers that are not the module.

# ucmatose_ends ROLE SIDE WORD...: runs ucmatose, which sends no private data and waits for
# messages, until a connection of the module in ROLE has been compared. Then kills it.
ucmatose_ends() {
	local role=$1 room=$request_room pid before bad=0
	counter messages_received
	before=$count
	nsenter --net="/run/netns/$2" ucmatose "${@:3}" -C 1 >"$scratch/ucmatose" 2>&1 &
	pid=$!
	id=
	if [[ $role = client ]]; then
		room=$reply_room
		wait_for 20 control a connect "$B4:7471 null=0 inv=1" >"$scratch/output" || bad=1
		wait_for 10 has_received $((before + 1)) || bad=1
	fi
	arrives '' "$room"
	wait_for 20 newest "$role" && wait_for 10 is_state "$id" established &&
		same_info "$id" peer_private_data=absent peer_length=$((${#padded} / 2)) \
			client_to_server_threshold=1024 server_to_client_threshold=1024 \
			remote_invalidation=no || bad=1
	kill -9 "$pid"
	wait "$pid" 2>/dev/null
	wait_for 10 is_gone "${id:-none}" || bad=1
	return "$bad"
}

has_received() { counter messages_received && [[ $count = "$1" ]]; }

# by_mpa_1 HEX KEY=VALUE...: a peer that speaks version 1 of MPA connects with these octets (RFC
# 5044, section 7.1.1), and info of the server's end has these values. Peers with siw speak version
# 2.
by_mpa_1() {
	local frame pid answer bad=0
	printf -v frame '%04x%s' $((${#1} / 2)) "$1"
	# shellcheck disable=SC2001 # each pair of digits
	frame='MPA ID Req Frame\x40\x01'$(sed 's/../\\x&/g' <<<"$frame")
	# shellcheck disable=SC2016 # for the other shell
	nsenter --net="/run/netns/$A" bash -c 'exec 3<>"/dev/tcp/$0/2000" && printf "$1" >&3 &&
		head -c 28 <&3 >"$2" && exec sleep 60' "$B4" "$frame" "$scratch/mpa" &
	pid=$!
	wait_for 20 test -s "$scratch/mpa"
	answer=$(od -An -v -tx1 "$scratch/mpa" | tr -d ' \n')
	message 8192 16384 1
	same 'the answer' 4d504120494420526570204672616d65 "${answer:0:32}" || bad=1
	same 'its version and private data' "01 0008$message" "${answer:34:2} ${answer:36}" || bad=1
	wait_for 10 newest server && wait_for 10 is_state "$id" established &&
		same_info "$id" "${@:2}" || bad=1
	kill "$pid"
	wait "$pid" 2>/dev/null
	wait_for 10 is_gone "${id:-none}" || bad=1
	rm "$scratch/mpa"
	return "$bad"
}

pairwise() {
	local x y r
	# x and y count through the indices of two sizes. The other parameters are computed from
	# them in the field of four elements, so that each two parameters take all pairs of values.
	local twice=(0 2 3 1) thrice=(0 3 1 2)
	for x in 0 1 2 3; do
		for y in 0 1 2 3; do
			r=$((x ^ thrice[y]))
			built C "${sizes[x]}" "${sizes[x ^ twice[y]]}" $((r & 1))
			built S "${sizes[x ^ y]}" "${sizes[y]}" $((r >> 1))
			check "client ${C[words]}, server ${S[words]}" exchange "$B4" "$B4" "$A4"
		done
	done
	lines connections
	check_equal 'all connections of the pairwise combinations are shown' 33 "${#lines[@]}"
	check 'all connections of the pairwise combinations end' control - close all
}

addresses() {
	# Sizes that all differ, so that each result has one possible origin.
	built C 8192 16384 1
	built S 32768 4096 1
	check 'both negotiate over IPv6' exchange "[$B6]" "[$B6]" "[$A6]"
	check 'both negotiate at 0.0.0.0' exchange 0.0.0.0 "$B4" "$A4"
	check 'both negotiate at [::]' exchange '[::]' "[$B6]" "[$A6]"
	# siw reports the address as IPv6, and rdma_cm finds no device for that.
	[[ $TRANSPORT = siw ]] ||
		check 'both negotiate at [::] over IPv4' exchange '[::]' "$B4" "$A4"
	check 'both negotiate at link-local addresses' \
		exchange "${b_link/]/%$B_DEV]}" "${b_link/]/%$A_DEV]}" "$a_link"
	zone=$(ip -n "$A" -o link show "$A_DEV")
	zone=${zone%%:*}
	check 'a zone can be given by its number' exchange '[::]' "${b_link/]/%$zone]}" "$a_link"
	check 'the number of the zone is shown' \
		same_info "$client" remote="${b_link/]/%$zone]}:$port"

	# rxe notices a new address with a delay.
	need 'the client gets a second address' ip -n "$A" address add "${A4%.*}.3/24" dev "$A_DEV"
	at_end ip -n "$A" address delete "${A4%.*}.3/24" dev "$A_DEV"
	IFS=. read -ra octets <<<"${A4%.*}.3"
	printf -v gid '%02x%02x:%02x%02x' "${octets[@]}"
	[[ $TRANSPORT = siw ]] ||
		need 'the device has the second address' \
			wait_for 10 grep -qs ":$gid" "/sys/class/infiniband/$A_RDMA/ports/1/gids/"*
	check 'connect from the second address' exchange "$B4" "$B4" "${A4%.*}.3" from="${A4%.*}.3"
}

# Octets of private= (RFC 8797, sections 4, 5.1 and 5.2).
private_data() {
	message 65536 262144 1
	raw C "$(filler $((request_room - 8)))$message" present offset=$((request_room - 8)) \
		version=1 reserved=0x00 send=65536 recv=262144 r=1
	message 4096 1024 1
	raw S "$(filler $((reply_room - 8)))$message" present offset=$((reply_room - 8)) \
		version=1 reserved=0x00 send=4096 recv=1024 r=1
	check 'a message in the last octets of full private data is found' \
		exchange "$B4" "$B4" "$A4"
	raw C "$(filler $((request_room - 7)))${message%??}" rejected
	raw S "$(filler $((reply_room - 7)))${message%??}" rejected
	check 'a message without its last octet is rejected' exchange "$B4" "$B4" "$A4"
	raw C f6ab0e1802010f0f rejected
	raw S f6ab0e1800010f0f rejected
	check 'versions 2 and 0 of the message are rejected' exchange "$B4" "$B4" "$A4"
	raw C f6ab0e1801ff070f present offset=0 version=1 reserved=0xfe send=8192 recv=16384 r=1
	raw S f6ab0e1801aa0f07 present offset=0 version=1 reserved=0xaa send=16384 recv=8192 r=0
	check 'reserved bits of both sides are shown and ignored' exchange "$B4" "$B4" "$A4"
	raw C f6ab0e1802f6ab0e1801010307 present offset=5 version=1 reserved=0x00 \
		send=4096 recv=8192 r=1
	raw S f6f6abf6ab0e1801010703f6ab0e1801000000 present offset=3 version=1 reserved=0x00 \
		send=8192 recv=4096 r=1
	check 'the first valid message counts, at any offset' exchange "$B4" "$B4" "$A4"
	raw C 180eabf601010f0f absent
	raw S 00f6ab0e00010f0f absent
	check 'octets without a message count as absent' exchange "$B4" "$B4" "$A4"
	raw C f6 absent
	raw S 00 absent
	check 'one octet counts as absent' exchange "$B4" "$B4" "$A4"
	raw C f6ab0e18 rejected
	raw S "f6ab0e1802$(filler $((reply_room - 10)))f6ab0e1801" rejected offset=0 version=2
	check 'the first rejected message is shown' exchange "$B4" "$B4" "$A4"
	raw C f6ab0e18ff010f0f rejected version=255
	raw S f6ab0e1801fe0303 present offset=0 version=1 reserved=0xfe send=4096 recv=4096 r=0
	check 'version 255 is rejected, and reserved bits are not R' exchange "$B4" "$B4" "$A4"
	raw C 00f6ab0e1801010305f6ab0e1801000809 present offset=1 version=1 reserved=0x00 \
		send=4096 recv=6144 r=1
	raw S f6abf6ab0ef6ab0e1801011f07 present offset=5 version=1 reserved=0x00 \
		send=32768 recv=8192 r=1
	check 'the first of two messages counts, and parts of an identifier do not' \
		exchange "$B4" "$B4" "$A4"
	raw C '' absent
	raw S '' absent
	check 'no private data of either side counts as absent' exchange "$B4" "$B4" "$A4"
	built C 2048 3072 1
	check 'no private data of the server counts as absent' exchange "$B4" "$B4" "$A4"
}

other_peers() {
	need 'the module listens for other peers' \
		control b listen "$B4:2000 send=8192 recv=16384 inv=1"
	# The guest of arm64 does not have it.
	if [[ $(uname -m) = x86_64 ]]; then
		check 'ucmatose connects without private data, and is killed' \
			ucmatose_ends server "$A" -s "$B4" -p 2000
		check 'ucmatose listens without private data, and is killed' \
			ucmatose_ends client "$B" -b "$B4"
	fi
	if [[ $TRANSPORT = siw ]]; then
		# Send Size 4096 and Receive Size 16384, with R.
		values=(peer_private_data=present peer_send_size=4096 peer_receive_size=16384
			client_to_server_threshold=4096 server_to_client_threshold=8192
			remote_invalidation=yes)
		check 'a message by MPA version 1' \
			by_mpa_1 f6ab0e180101030f "${values[@]}" peer_length=8 peer_offset=0
		# The length field of rdma_cm holds 255 octets, 4 more than a peer of version 2 can
		# send.
		check 'a message at the end of 255 octets by MPA version 1' by_mpa_1 \
			"$(filler 247)f6ab0e180101030f" "${values[@]}" peer_length=255 \
			peer_offset=247
		# Linux delivers none of 256 (reports/iwcm-private-data-length.txt).
		check '256 octets by MPA version 1 count as absent' by_mpa_1 \
			"f6ab0e180101030f$(filler 248)" peer_private_data=absent peer_length=0 \
			client_to_server_threshold=1024 server_to_client_threshold=1024 \
			remote_invalidation=no
	fi
}

# Names of real devices are longer than those of the tests.
long_name() {
	long=${A_RDMA}_np0_23456789
	need 'the device gets a long name' rdma dev set "$A_RDMA" name "$long"
	at_end rdma dev set "$long" name "$A_RDMA"
	A_RDMA=$long
	check 'both negotiate by a device with a long name' exchange "$B4" "$B4" "$A4"
	check 'all columns are aligned, with a long name' aligned
}

all_combinations() {
	local x bad=0
	for x in {0..1023}; do
		built C "${sizes[x & 3]}" "${sizes[x >> 2 & 3]}" $((x >> 8 & 1))
		built S "${sizes[x >> 4 & 3]}" "${sizes[x >> 6 & 3]}" $((x >> 9))
		exchange "$B4" "$B4" "$A4" >"$scratch/output" 2>&1 || {
			((bad++)) || cp "$scratch/output" "$scratch/first"
		}
		((x % 16)) || control - close all
	done
	check_equal 'none of the 1024 combinations fails' 0 "$bad" || diag <"$scratch/first"

	bad=0
	for ((x = 0; x <= request_room - 8; x++)); do
		raw C "$(filler "$x")f6ab0e1801000101" present offset="$x" version=1 reserved=0x00 \
			send=2048 recv=2048 r=0
		raw S "$(filler "$x")f6ab0e1801000202" present offset="$x" version=1 reserved=0x00 \
			send=3072 recv=3072 r=0
		exchange "$B4" "$B4" "$A4" >"$scratch/output" 2>&1 || {
			((bad++)) || cp "$scratch/output" "$scratch/first"
		}
		((x % 16)) || control - close all
	done
	check_equal 'a message at any octet is found' 0 "$bad" || diag <"$scratch/first"
}

need_pair
need_module
need 'both have a link-local address' wait_for 10 link_local "$A" "$A_DEV"
a_link=$address
link_local "$B" "$B_DEV"
b_link=$address

group pairwise
group addresses
group private_data
check 'all columns are aligned, with link-local addresses' aligned
need 'the connections of the exchange end' control - close all
group other_peers
group long_name
[[ -z ${FULL:-} ]] || group all_combinations
