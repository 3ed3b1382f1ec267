#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The control files: their refusals, their effects, and the permission to use them.
#
# test: debug.rxe
# soak: debug.siw stock.rxe arm64.rxe rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

has_connections() {
	lines connections
	[[ ${#lines[@]} = $(($1 + 1)) ]] || { printf '%s\n' "${lines[@]}"; return 1; }
}

# count_from NAME...: notes the counters, for has_risen.
declare -A counted
count_from() {
	local name
	for name in "$@"; do counter "$name" && counted[$name]=$count; done
}

# has_risen NAME NUMBER: whether a counter is higher by NUMBER than at count_from.
has_risen() {
	counter "$1"
	[[ $((count - counted[$1])) = "$2" ]] ||
		{ echo "$1: $count, wanted $2 more than ${counted[$1]}"; return 1; }
}

# end_connection: ends $client, and waits for its other end.
end_connection() { control a close "connection $client" && wait_for 10 none_live; }

# last FILE: sets $last to the last ID of a table.
last() { lines "$1"; last=${lines[-1]%% *}; }

said() { lines last_error; said=${lines[0]-}; }

# refused ERRNO FILE LINE [WORD]: whether the line is refused, and last_error names WORD.
refused() {
	put a "$2" "$3\\n"
	said
	[[ $errno = "$1" && $said != none && -n $said && $said = *"${4-}"* ]] && return
	echo "$3 > $2: wanted $1 because of '${4-}', found $errno: $said"
	return 1
}

# all_refused FILE PREFIX: whether each line of stdin is refused with EINVAL because of its
# last word, and has no effect.
all_refused() {
	local line bad=0
	while IFS= read -r line; do
		refused EINVAL "$1" "$2$line" "${line##* }" || bad=1
	done
	nothing_live || bad=1
	return "$bad"
}

nothing_live() {
	none_live || { printf '%s\n' "${lines[@]}"; return 1; }
	lines listeners
	[[ ${#lines[@]} = 1 ]] || { printf '%s\n' "${lines[@]}"; return 1; }
}

# Each list is in a function, because check redirects the input of its command.
malformed_addresses() {
	all_refused "$1" '' <<-END
		nonsense
		10.0.0.1
		10.0.0.1:
		10.0.0.1:0
		10.0.0.1:65536
		10.0.0.1:-1
		10.0.0.1:0x10
		10.0.0.1:1x
		10.0.0.256:1
		10.0.0:1
		:1
		fd77::1:1
		[fd77::1]
		[fd77::1]1
		[fd77::1:1
		fd77::1]:1
		[]:1
		[10.0.0.1]:1
		[fd77::1::2]:1
		[fe80::1%]:1
		[fe80::1%0]:1
		[fe80::1%0123456789abcdef]:1
		send=1024
	END
}

malformed_keys() {
	all_refused "$1" "$B4:20049 inv=0 " <<-END
		send
		send=
		=1024
		=
		send=0
		send=1023
		send=1025
		send=1536
		send=262145
		send=263168
		send=4294968320
		send=18446744073709552640
		send=-1024
		send=+1024
		send=0x400
		send=1k
		recv=0
		recv=1023
		recv=2000
		recv=263168
		send=1024 send=1024
		recv=1024 send=1024 recv=2048
		recv=1024 inv=1
		Send=1024
		sends=1024
		send=1024,recv=1024
		private=00
	END
	all_refused "$1" "$B4:20049 " <<-END
		inv=2
		inv=yes
		inv=
		private=
		private=0
		private=000
		private=0g
		private=0x00
		private=NONE
		private=00 private=00
		private=00 send=1024
		private=none recv=1024
		inv=0 private=none
		10.0.0.1:1
	END
}

malformed_connect() {
	all_refused connect "$B4:20049 " <<-END
		from=
		from=nonsense
		from=10.0.0.1:1
		from=fd77::1
		from=[fd77::1]
		from=10.0.0.1 from=10.0.0.1
		reconnect=2
		reconnect=
		reconnect=0 reconnect=0
		timeout_ms=
		timeout_ms=0
		timeout_ms=-1
		timeout_ms=1s
		timeout_ms=1 timeout_ms=1
		reverse=-1
		bind=
		max=1
	END
	all_refused connect "[$B6]:20049 " <<-END
		from=10.0.0.1
	END
}

malformed_listen() {
	all_refused listen "$B4:20049 " <<-END
		max=0
		max=-1
		max=x
		max=
		max=1 max=1
		from=10.0.0.1
		reconnect=0
		timeout_ms=0
		reverse=65
		reverse=1 reverse=1
		bind=2
	END
}

malformed_close() {
	all_refused close '' <<-END
		nonsense
		connection x
		connection -1
		connection 0x1
		connection 18446744073709551616
		connection all
		listener x
		listener -1
		connection 1 1
		listener 1 1
		all all
		all 1
		ALL
		1
	END
}

# Lines of white space only, and lines that lack a word.
missing() {
	local file bad=0
	for file in connect listen close call probe; do
		refused EINVAL "$file" '' || bad=1
		refused EINVAL "$file" ' \t ' || bad=1
	done
	refused EINVAL close connection || bad=1
	refused EINVAL close listener || bad=1
	return "$bad"
}

# One write is one line: octets behind its end are refused.
one_line() {
	local line bad=0
	for line in "$B4:1\\n$B4:2" "$B4:1 max=1\\n$B4:2 max=1" "$B4:1\\n" "$B4:1\\r" \
		"$B4:1\\x00" "$B4:1 max=1\\x00" "$B4:1\\xa0" "$B4:1 m\\xe4x=1" \
		"$B4:1$long x=1" "$long$B4:1 x=1"; do
		refused EINVAL listen "$line" || bad=1
	done
	refused EINVAL close 'all\nall' || bad=1
	nothing_live || bad=1
	return "$bad"
}
printf -v long '%*s' 5000 ''

malformed() {
	local word
	check 'connect refuses malformed addresses' malformed_addresses connect
	check 'listen refuses malformed addresses' malformed_addresses listen
	check 'connect refuses malformed offers' malformed_keys connect
	check 'listen refuses malformed offers' malformed_keys listen
	check 'connect refuses unknown keys and malformed values' malformed_connect
	check 'listen refuses unknown keys and malformed values' malformed_listen
	check 'close refuses malformed lines' malformed_close
	check 'lines that lack a word are refused' missing
	check 'a write of more than one line is refused' one_line
	word=$(filler 128)
	check 'an unknown key of 256 letters is refused' refused EINVAL listen "$B4:1 $word=1"
	check 'last_error escapes octets that cannot be printed' \
		refused EINVAL listen "$B4:1 a\\x07b=1" 'a\x07b=1'
	check 'close of an unknown connection fails' refused ENOENT close 'connection 4711'
	check 'close of an unknown listener fails' refused ENOENT close 'listener 4711'
	check 'close all succeeds when there is nothing' control - close all
	said
	check_equal 'a command that succeeds clears last_error' none "$said"
}

# About: listeners.

listening() {
	local one any
	check 'a line without a newline is accepted' put b listen "$B4:20050"
	check 'a line with more white space is accepted' \
		put b listen " \\t $B4:20051 \\t max=7  send=1024\\t\\n"
	check 'listen at an address of another host fails' refused EADDRNOTAVAIL listen "$B4:20052"
	check 'listen at an IPv6 address of another host fails' \
		refused EADDRNOTAVAIL listen "[$B6]:20052"
	check 'listen in an unknown zone fails' refused ENODEV listen '[fe80::1%nonsense]:20052'
	check 'listen at a link-local address without a zone fails' \
		refused EINVAL listen '[fe80::1]:20052' 'a link-local one needs a zone'
	check 'connect from a link-local address without a zone fails' \
		refused EINVAL connect "[$B6]:20049 from=[fe80::1]" 'a link-local one needs a zone'
	check_fails 'listen at a port that is taken fails' put b listen "$B4:20049"
	check_equal 'a port that is taken: EADDRINUSE' EADDRINUSE "$errno"
	check_fails 'listen at a port that is taken fails for all addresses, too' \
		put b listen '0.0.0.0:20049'
	check_equal 'a port that is taken, at all addresses: EADDRINUSE' EADDRINUSE "$errno"
	check 'a port that is taken is free on the other host' control a listen "$A4:20049"
	for one in "$A4" "[$A6]"; do
		[[ $one = "$A4" ]] && any=0.0.0.0 || any='[::]'
		check "a listener at $any" control a listen "$any:20054"
		last listeners
		check "a listener at $any takes its port at $one, too" \
			refused EADDRINUSE listen "$one:20054" 'port is taken'
		check "a listener at $any is closed" control a close "listener $last"
		check "a closed listener at $any frees its port at $one" \
			control a listen "$one:20054"
		last listeners
		check "a listener at $one is closed" control a close "listener $last"
	done
	row listeners 3
	check_equal 'the row of a listener has its words and defaults' \
		"3 $B4:20051 1024 4096 no 0 7" "${row[*]}"
	lines listeners
	check_equal 'listeners that failed are not shown' 5 "${#lines[@]}"
}

# About: failures to connect.

failing() {
	local file
	check 'connect from an address of another host fails' \
		refused EADDRNOTAVAIL connect "$B4:20049 from=$B4"
	check 'connect from an address that no device has fails' \
		refused EADDRNOTAVAIL connect "$B4:20049 from=${B4%.*}.9"
	need 'there is a network without RDMA' ip -n "$A" link add plain type dummy
	at_end ip -n "$A" link delete plain
	ip -n "$A" address add 192.0.2.1/24 dev plain
	ip -n "$A" link set plain up
	check 'connect to an address of a network without RDMA fails' \
		refused EADDRNOTAVAIL connect 192.0.2.2:20049
	check 'connect from an address of a network without RDMA fails' \
		refused EADDRNOTAVAIL connect "$B4:20049 from=192.0.2.1"
	check 'listen at an address of a network without RDMA fails' \
		refused EADDRNOTAVAIL listen 192.0.2.1:20052
	check 'connect to a port without a listener fails' refused ECONNREFUSED connect "$B4:1"
	check 'connect to an address that no host has fails' \
		timed refused EHOSTUNREACH connect "${B4%.*}.9:20049 timeout_ms=300"
	check "connect to an address that no host has fails in time: $took ms" \
		test "$took" -ge 300 -a "$took" -lt 3000
	check 'more octets than a REQ can carry are refused' \
		refused EMSGSIZE connect "$B4:20049 private=$(filler $((request_room + 1)))"
	for file in connect listen; do
		check "$file refuses more octets than any message can carry" \
			refused EMSGSIZE $file "$B4:20053 private=$(filler 256)"
		check "$file refuses far more octets than any message can carry" \
			refused EMSGSIZE $file "$B4:20053 private=$(filler 700)"
	done
	check 'as many octets as a REQ can carry are accepted' \
		connect a "$B4:20049 private=$(filler "$request_room")"
	check 'nothing is left of the attempts that failed' wait_for 10 has_connections 2

	check 'a listener with more octets than a REP can carry' \
		control b listen "$B4:20060 private=$(filler $((reply_room + 1)))"
	count_from requests_failed
	check 'a listener with more octets than a REP can carry rejects' \
		refused ECONNREFUSED connect "$B4:20060"
	check 'requests_failed counts the request that failed' has_risen requests_failed 1
	check 'history says why that request failed' event ROLE=server EVENT=failed \
		REASON='the transport cannot carry that many octets of private data'
	check 'nothing is left of the request that failed' wait_for 10 has_connections 2
	need 'the connection with a full REQ ends' end_connection
}

# About: the maximum of a listener, and closing.

# ends ID: whether the write that closes this connection returns only when it is gone.
ends() {
	ask write_then_stat /proc/self/ns/net "$DEBUGFS/close" "connection $1\\n" \
		"$DEBUGFS/connection/$1"
	[[ $answer = '0 gone' ]] || { echo "$answer"; return 1; }
}

takes() { row listeners "$listener" && same taken "$1" "${row[5]}"; }

closing() {
	local listener first first_server second second_server server_before
	check 'a listener with max=2' control b listen "$B4:20070 max=2"
	last listeners
	listener=$last
	count_from requests requests_refused
	check 'max=2: the first connection is accepted' connect a "$B4:20070"
	first=$client first_server=$server
	check 'max=2: the second connection is accepted' connect a "$B4:20070"
	second=$client second_server=$server
	check 'max=2: a third connection is refused' refused ECONNREFUSED connect "$B4:20070"
	check 'max=2: a fourth connection is refused' refused ECONNREFUSED connect "$B4:20070"
	check 'max=2: requests_refused counts the refused ones' has_risen requests_refused 2
	check 'max=2: requests counts all of them' has_risen requests 4
	row listeners "$listener"
	check_equal 'max=2: the listener shows two connections' \
		"$listener $B4:20070 4096 4096 no 2 2" "${row[*]}"
	check 'max=2: nothing is left of the refused attempts' wait_for 10 has_connections 4

	count_from closed lost
	check 'a client closes, and the write waits for that' ends "$first"
	check 'the server of a closed client is gone' wait_for 10 is_gone "$first_server"
	check 'closed counts the client that closes' has_risen closed 1
	check 'lost counts the server of the client that closes' has_risen lost 1
	check 'a connection is not closed twice' refused ENOENT close "connection $first"
	check 'the other client stays established' is_state "$second" established
	check 'the other server stays established' is_state "$second_server" established
	check 'max=2: the place of the closed connection is free' wait_for 10 takes 1
	check 'max=2: a closed connection makes room for another' connect a "$B4:20070"
	check 'max=2: it makes room for only one' refused ECONNREFUSED connect "$B4:20070"

	count_from closed lost
	check 'a server closes, and the write waits for that' ends "$server"
	check 'the client of a closed server is gone' wait_for 10 is_gone "$client"
	check 'closed counts the server that closes' has_risen closed 1
	check 'lost counts the client of the server that closes' has_risen lost 1

	check 'a listener is closed' control a close "listener $listener"
	check_fails 'a closed listener is gone at once' row listeners "$listener"
	check 'connect to the port of a closed listener fails' \
		refused ECONNREFUSED connect "$B4:20070"
	check 'the server of a closed listener stays' is_state "$second_server" established
	check 'the client of a closed listener stays' is_state "$second" established
	check 'a listener is not closed twice' refused ENOENT close "listener $listener"
	check 'the port of a closed listener is free' control b listen "$B4:20070"
	last listeners
	check 'a listener after a closed one has another number' test "$last" -gt "$listener"
	listener=$last

	check 'a connection to be closed with all' connect a "$B4:20070"
	check 'all connections and listeners are closed' control a close all
	check 'nothing is left as soon as close all has returned' nothing_live
	check 'connect after all listeners were closed fails' \
		refused ECONNREFUSED connect "$B4:20049"
	check 'a listener after all were closed' control b listen "$B4:20049"
	last listeners
	check 'a listener after all were closed has another number' test "$last" -gt "$listener"
	server_before=$server
	check 'a connection after all were closed' connect a "$B4:20049"
	check 'a connection after all were closed has another number' \
		test "$client" -gt "$server_before"
	need 'the connection after all were closed ends' end_connection
}

# About: open files. Each shows one moment.

# read_slowly ID: sets $slowly to the lines of info, read one by one. Meanwhile the age gets
# one more digit. Bash reads ahead, and seeks back to the end of each line.
read_slowly() {
	local line age rest
	slowly=()
	while IFS= read -r line; do
		slowly+=("$line")
		[[ $line = age_ms:* ]] || continue
		age=${line#*: }
		rest=$((10 ** ${#age} - age))
		sleep "$((rest / 1000)).$(printf %03d $((rest % 1000)))"
	done <"$DEBUGFS/connection/$1/info"
}

# whole_lines ID: whether info read slowly differs from a later reading only in the age.
whole_lines() {
	local i differs=''
	read_slowly "$1"
	lines "connection/$1/info"
	for i in "${!lines[@]}"; do
		[[ ${slowly[i]-} = "${lines[i]}" ]] || differs+="${slowly[i]-} / ${lines[i]};"
	done
	[[ ${#slowly[@]} = "${#lines[@]}" &&
		$differs =~ ^'age_ms: '([0-9]+)' / age_ms: '([0-9]+)';'$ &&
		${#BASH_REMATCH[1]} -lt ${#BASH_REMATCH[2]} ]] && return
	echo "$differs"
	printf '%s\n' "${slowly[@]}"
	return 1
}

open_files() {
	check 'a connection without calls' connect a "$B4:20049 null=0"
	check 'info read line by line shows whole lines of one moment' whole_lines "$client"
	ask moments "$DEBUGFS/connection/$client/info"
	check_equal 'info rewound shows another moment' 'one moment, another' "$answer"
	check 'the connection without calls is closed' control a close "connection $client"
	check 'the other end of the connection without calls is gone' wait_for 10 is_gone "$server"
	ask reports "/run/netns/$A" "$DEBUGFS/probe" "$B4:1" "$B4:20049"
	check_equal \
		'the report of a probe is read where it was written and where the file is rewound' \
		'no no yes no yes' "$answer"
	check 'nothing is left of the probe' wait_for 10 has_connections 0
}

# About: permission to open the files.

permission() {
	local modes wanted file
	need 'a connection whose files nobody may open' connect a "$B4:20049"
	modes=$(cd "$DEBUGFS" && find . -type f -printf '%P %m %u:%g\n' | sort)
	wanted=$({
		printf '%s 200 root:root\n' connect listen close
		printf '%s 600 root:root\n' call probe
		printf '%s 400 root:root\n' connections listeners last_error stats history \
			connection/{"$client","$server"}/{info,sent,received}
	} | sort)
	check_equal 'the files have these modes and owners' "$wanted" "$modes"
	# The directory above is opened up, so that the files themselves must refuse.
	need 'all users may look into debugfs' mount -o remount,mode=755 /sys/kernel/debug
	at_end mount -o remount,mode=700 /sys/kernel/debug
	while read -r file _; do
		ask nobody "$DEBUGFS/$file"
		check_equal "an ordinary user can neither read nor write $file" \
			'EACCES EACCES' "$answer"
	done <<<"$wanted"
}

need_pair
need_module
check_equal 'the module has the version of the project' \
	"$(<../../VERSION)" "$(</sys/module/rpcrdma_cm/version)"

group malformed
# Each of the other groups leaves this listener, or one like it, and no connection.
check "a listener at the host's address" control b listen "$B4:20049"
group listening
group failing
group closing
group open_files
group permission

exec {fd}<"$DEBUGFS/stats"
rmmod rpcrdma_cm 2>"$scratch/rmmod"
check 'the module cannot be removed while a file is open' grep -q 'in use' "$scratch/rmmod"
exec {fd}<&-
check 'the module can be removed when the file is closed' rmmod rpcrdma_cm
