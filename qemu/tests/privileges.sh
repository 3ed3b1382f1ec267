#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Opening the module's files needs CAP_SYS_ADMIN: an ordinary user, root without it, and root of
# a user namespace cannot open any. No kernel address is shown or sent: in a capture, the
# offsets of all segments are the module's own. With FULL=1 also: no uninitialized memory is
# sent, which make soak fills with a pattern.
#
# test: stock.rxe
# soak: debug.siw rt.rxe
. ./lib/lib.sh
. ./lib/module.sh

capture=$scratch/wire.pcap
traces=/sys/kernel/tracing/instances/privileges

# opens [COMMAND...]: prints the results of opening each file in each mode, by Python that COMMAND
# runs.
try='
import errno, os, sys
seen = set()
for file in sys.argv[1:]:
    for flags in os.O_RDONLY, os.O_WRONLY, os.O_RDWR:
        try:
            os.close(os.open(file, flags))
            seen.add("0")
        except OSError as e:
            seen.add(errno.errorcode[e.errno])
print(*sorted(seen))
'
opens() { "$@" python3 -ISc "$try" "${files[@]}"; }

ordinary=(setpriv --reuid 65534 --regid 65534 --clear-groups)
namespace=(unshare --user --map-root-user --net)

# shown: prints everything that the module shows. Octets are printed in hexadecimal.
shown() {
	local file
	for file in "${files[@]}"; do
		case $file in
		*/sent | */received) od -An -v -tx1 "$file" | tr -d ' \n' ;;
		*/connect | */listen | */close) ;;
		# Results are the octets of the peer.
		*/call) sed '/^results: /d' "$file" ;;
		*) cat "$file" ;;
		esac
		echo
	done
	cat "$traces/trace"
	dmesg | grep rpcrdma_cm
}

# Matches kernel addresses, with page tables of four or five levels, in either order of octets,
# and the text that %p prints.
address='ff[0-9a-f]{14}|[0-9a-f]{14}ff|(^|[^0-9a-f])0{8}[0-9a-f]{8}($|[^0-9a-f])'

# talk: makes two calls. With FULL=1 also with other private data, in both versions, inline and by
# chunks, with padding of all lengths.
talk() {
	local words size port=20080
	for words in private=none private=a5 inv=1 rpcvers=2; do
		((++port))
		control b listen "$B4:$port $words" &&
			connect a "$B4:$port $words" || return
		for size in 1 2 3 5000 70001; do
			control a call "connection $client echo size=$size" || return
			control a call "connection $client echo size=$size chunks=1" || return
			[[ -n ${FULL:-} ]] || return 0
		done
	done
}

# Emulated, siw takes seconds for a MiB, and an operation may take five.
largest=1048576 segments=27
[[ $TRANSPORT != siw ]] || largest=300001 segments=18
# chunked: makes calls by chunks, in both versions, of one segment and of two.
chunked() {
	local words size port=20090
	for words in rpcvers=1 rpcvers=2 'rpcvers=2 inv=1'; do
		((++port))
		control b listen "$B4:$port $words" &&
			connect a "$B4:$port $words" || return
		for size in 3 70001 $largest; do
			control a call "connection $client echo size=$size chunks=1" || return
		done
	done
}

# foreign_offsets: prints segments whose offsets are not the module's own: the XID and the
# position in the chunk. Also prints RDMA Reads whose local memory does not begin at the
# module's own offset.
foreign_offsets() {
	awk '
	$1 == "segment" {
		if ($7 != $2 sprintf("%08x", $6))
			print
	}
	$1 == "sink" && substr($4, 1, 12) != "000000010000"
	' "$scratch/segments"
}

need_pair
need_module
need 'an instance of ftrace for the addresses' mkdir "$traces"
at_end rmdir "$traces"
echo 1 >"$traces/events/rpcrdma_cm/enable"
need 'the capture of the connections and calls begins' start_capture
need 'the connections and calls succeed' talk
need 'the calls by chunks succeed' chunked
need 'the capture of the connections and calls ends' stop_capture
mapfile -t files < <(find "$DEBUGFS" -type f)
# Its reason is among the texts that are searched for addresses.
check_fails 'a connect fails before the files are searched' control a connect "$B4:1"

# About: permission to open the files. The files themselves must refuse, not the directory.
check 'the files of two connections are there' test "${#files[@]}" -ge $((10 + 2 * 3))
check_equal 'root opens all files' 0 "$(opens)"
need 'ordinary users may look into debugfs' mount -o remount,mode=755 /sys/kernel/debug
at_end mount -o remount,mode=700 /sys/kernel/debug
check_equal 'an ordinary user opens no file' EACCES "$(opens "${ordinary[@]}")"
check_equal 'an ordinary user opens no file as root of a user namespace' EACCES \
	"$(opens "${ordinary[@]}" "${namespace[@]}")"
check_equal 'root opens no file in a user namespace' EPERM \
	"$(opens "${namespace[@]}")"
check_equal 'root without CAP_SYS_ADMIN opens no file' EPERM \
	"$(opens setpriv --bounding-set -sys_admin --inh-caps -sys_admin)"

# A process can inherit an open file. The command then acts in the namespace of the writer.
exec {fd}>"$DEBUGFS/listen"
check_fails 'a command by an inherited file acts in the namespace of the writer' \
	"${ordinary[@]}" "${namespace[@]}" bash -c "echo $B4:20099 >&$fd"
check_equal 'the namespace of the writer has no RDMA device' \
	'listen: no RDMA device has that address' "$(<"$DEBUGFS/last_error")"
exec {fd}>&-

# About: addresses in the files.
shown >"$scratch/shown"
check 'the searched texts have info' grep -q '^last_failure: none' "$scratch/shown"
check 'the searched texts have traced events' grep -q 'connection_negotiated: id=' "$scratch/shown"
check 'the search finds an address of the module' \
	grep -qE "$address.*\[rpcrdma_cm\]" /proc/kallsyms
check_fails 'no kernel address is shown' grep -nE "$address" "$scratch/shown"
check_fails 'no format of an event prints a kernel pointer' \
	grep -nE 'field:.*(\*|long|ptr)|%p[^I]' /sys/kernel/tracing/events/rpcrdma_cm/*/format

# About: addresses and uninitialized memory in messages.
segments() { "${python[@]}" ./programs/segments.py "$capture" >"$scratch/segments"; }
need 'the capture has segments' segments
lists=$(cut -d ' ' -f 1,3 "$scratch/segments" | sort -u | grep -c '^segment [rw]')
check_equal 'the capture has segments of calls and of replies' 2 "$lists"
check 'the capture has the segments of every call' \
	test "$(grep -c '^segment' "$scratch/segments")" -ge "$segments"
[[ $TRANSPORT = siw ]] || check 'the capture has second segments of chunks' \
	grep -qE '^segment [^ ]+ read [^ ]+ [^ ]+ 1048576 ' "$scratch/segments"
[[ $TRANSPORT != siw ]] ||
	check 'the capture has the memory of RDMA Reads' grep -q ^sink "$scratch/segments"
check_equal "the offsets of all segments are the module's own" '' "$(foreign_offsets)"

[[ -n ${FULL:-} && $KERNEL = stock ]] || exit 0
# holds PATTERN: whether the capture matches the regular expression of Python. Ends with 126 if it
# cannot tell.
search='import re, sys
try:
    with open(sys.argv[2], "rb") as file:
        found = re.search(sys.argv[1].encode(), file.read(), re.DOTALL)
except (OSError, re.error) as why:
    print(why)
    sys.exit(126)
sys.exit(not found)'
holds() { python3 -ISc "$search" "$1" "$capture"; }
check 'the capture holds private data' holds '\xf6\xab\x0e\x18\x01\x01\x03\x03'
# The patterns of include/linux/poison.h, for SLUB and for pages.
check_fails 'the capture holds no uninitialized memory' holds '(\x6b|\x5a|\xbb|\xcc|\xaa)\1{7}'
# A call of ECHO up to its data (RFC 5531, section 9): CALL, the version of RPC, the program, its
# version, the procedure, AUTH_NONE twice, and the length of the data, here less than 4 octets.
call='\x00{7}\x02.{12}\x00{19}'
check 'the capture holds padded calls inline in version 2' \
	holds "\x00{3}\x02.{4}\x00{20}.{4}${call}[\x01-\x03]"
check_fails 'no padding of a call is uninitialized' \
	holds "$call(\x01.(?!\x00{3})|\x02..(?!\x00{2})|\x03...(?!\x00))"
check_equal 'the kernel fills uninitialized memory with the pattern' \
	1 "$(</sys/kernel/slab/kmalloc-4k/poison)"
