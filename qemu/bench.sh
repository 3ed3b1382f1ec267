#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The benchmarks that run in a guest: the cost of observing NFS over RDMA, the savings of
# RFC 8797, and the cost of setting connections up. The variants are measured in turn,
# round by round, so that a drift affects all of them alike. Then, once, the cost of a
# connection when there are many. Prints a line for each result: MEASURED, VARIANT and
# VALUE with tabs between them. Other lines have no tabs.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=qemu/hosts.sh
. ./hosts.sh
# shellcheck source=qemu/tests/lib/module.sh
. ./tests/lib/module.sh

# The arguments that follow are the groups to measure.
rounds=$1 siw=$2
shift 2

trap 'clean_up echo "could not clean up:" >&2' EXIT
trap 'exit 130' INT TERM

# took COMMAND...: runs COMMAND, without a process of its own. Sets $us to the time it took.
took() {
	local start=${EPOCHREALTIME/./}
	"$@" || return
	us=$((${EPOCHREALTIME/./} - start))
}

result() { printf '%s\t%s\t%s\n' "$@"; }

load() {
	[[ $1 = absent ]] || insmod "$MODULE" "$1"
}

# Mounts, and writes and reads through a mount: without the module, with observe=0, and
# with observe=1.

mounts=5 mib=16
modes=(absent observe=0 observe=1)

mount_nfs() { on_a mount -t nfs -o proto=rdma,port=20049,vers=4.2 "$B4:/" /mnt/nfs; }
unmount_nfs() { on_a umount /mnt/nfs; }

mount_once() {
	mount_nfs
	unmount_nfs
}

copy() { dd bs=1M "$@" 2>/dev/null; }

# processor: sets $ns to the processor time that programs and threads have used. (While a
# mount waits, the guest is idle and the machine's time passes. So the duration of a mount
# also depends on how busy the machine is.)
processor() {
	local name
	while read -r name _ _ _ _ _ _ ns _; do
		[[ $name != cpu0 ]] || return 0
	done </proc/schedstat
	return 1
}

nfs_mount_once() {
	local before
	# Once without measuring, so that the programs are in the page cache.
	mount_once
	processor
	before=$ns
	took mount_once
	result 'mount and unmount, ms' "$1" $((us / 1000))
	processor
	result 'mount and unmount, processor us' "$1" $(((ns - before) / 1000))
}

nfs_copy() {
	mount_nfs
	took copy if=/dev/zero of=/mnt/nfs/data count="$mib" conv=fsync
	result 'write, MiB/s' "$1" $((mib * 1000000 / us))
	echo 3 >/proc/sys/vm/drop_caches
	took copy if=/mnt/nfs/data of=/dev/null
	result 'read, MiB/s' "$1" $((mib * 1000000 / us))
	unmount_nfs
}

all_nfs() {
	local n turn mode
	for ((n = 0; n < mounts; n++)); do
		# Another mode comes first each time, so that no mode gains by its place.
		for ((turn = 0; turn < ${#modes[@]}; turn++)); do
			mode=${modes[($1 + n + turn) % ${#modes[@]}]}
			load "$mode"
			nfs_mount_once "$mode"
			((n > 0)) || nfs_copy "$mode"
			module_unload
		done
	done
}

# Connections of programs and of NVMe over RDMA, which the module observes, too: in each mode.

setups=100

# cmtime_once MEASURED VARIANT: runs cmtime of rdma-core, and prints the time of its first table,
# the connections with queue pairs. Prints nothing if MEASURED is empty.
cmtime_once() {
	local server us
	on_b timeout 60 cmtime -b "$B4" -c "$setups" >/dev/null &
	server=$!
	wait_for 10 listens
	us=$(on_a timeout 60 cmtime -s "$B4" -c "$setups" |
		awk '/^full connect/ { print $3; exit }')
	wait "$server"
	[[ -z $1 ]] || result "$1" "$2" "$us"
}

listens() { rdma resource show cm_id | grep 'LISTEN.* comm cmtime'; }

nvme_nqn=nqn.2026-01.example:bench nvme_address=10.78.0.1

# nvme_target: sets up the kernel's NVMe target over RDMA, in the initial network namespace.
nvme_target() {
	local nvmet=/sys/kernel/config/nvmet subsystem
	modprobe -a nvmet-rdma nvme-rdma
	[[ -d $nvmet ]] || mount -t configfs none /sys/kernel/config
	ip -batch - <<-END
		link add nvme0 type dummy
		address add $nvme_address/24 dev nvme0
		link set nvme0 mtu 9000 up
	END
	rdma link add rxe_nvme type rxe netdev nvme0
	wait_for 10 is_up rxe_nvme
	subsystem=$nvmet/subsystems/$nvme_nqn
	mkdir "$subsystem" "$nvmet/ports/1"
	echo 1 >"$subsystem/attr_allow_any_host"
	echo rdma >"$nvmet/ports/1/addr_trtype"
	echo ipv4 >"$nvmet/ports/1/addr_adrfam"
	echo "$nvme_address" >"$nvmet/ports/1/addr_traddr"
	echo 4420 >"$nvmet/ports/1/addr_trsvcid"
	ln -s "$subsystem" "$nvmet/ports/1/subsystems/"
}

# nvme_once: connects a controller and deletes it. It has two queues, one for administration,
# each with a connection.
nvme_once() {
	local file
	echo "transport=rdma,traddr=$nvme_address,trsvcid=4420,nqn=$nvme_nqn,nr_io_queues=1" \
		>/dev/nvme-fabrics
	for file in /sys/class/nvme/nvme*/delete_controller; do echo 1 >"$file"; done
}

all_others() {
	local n turn mode before
	[[ -d /sys/kernel/config/nvmet/ports/1 ]] || nvme_target
	nvme_once
	for ((n = 0; n < mounts; n++)); do
		for ((turn = 0; turn < ${#modes[@]}; turn++)); do
			mode=${modes[($1 + n + turn) % ${#modes[@]}]}
			load "$mode"
			cmtime_once "cmtime, $setups connects at once, us each" "$mode"
			processor
			before=$ns
			cmtime_once '' "$mode"
			processor
			result 'cmtime: connect and disconnect, processor us' "$mode" \
				$(((ns - before) / 1000 / (2 * setups)))
			nvme_once
			processor
			before=$ns
			nvme_once
			processor
			result 'NVMe: connect and disconnect, processor us' "$mode" \
				$(((ns - before) / 1000))
			module_unload
		done
	done
}

# NULL calls to the kernel's server: by the kernel's own client, and by the module.

nulls=1000 under_way=(1 64)
null_calls=/sys/module/null_calls

# nulls_by xprtrdma|module JOBS: makes $nulls calls, JOBS of them under way at a time.
nulls_by() {
	if [[ $1 = xprtrdma ]]; then
		echo "$nulls $2" >"$null_calls/parameters/call"
	else
		control a call "connection $client null count=$nulls jobs=$2"
	fi
}

# all_nulls TRANSPORT PAIR: measures NULL calls by both clients. Ends the NFS server of siw.
all_nulls() {
	local TRANSPORT=$1 nfs_server=$nfs_server jobs by before
	use_pair "$2"
	[[ $TRANSPORT = rxe ]] || nfs_server
	load observe=0
	on_a insmod "${MODULE%/*}/qemu/modules/null_calls.ko" address="$B4"
	control a connect "$B4:20049 rpcvers=1 credits=64 timeout_ms=60000"
	newest client
	client=$id
	for jobs in "${under_way[@]}"; do
		for by in xprtrdma module; do
			nulls_by "$by" "$jobs"
			processor
			before=$ns
			took nulls_by "$by" "$jobs"
			processor
			result "$TRANSPORT: NULL, $jobs under way, calls/s" "$by" \
				$((nulls * 1000000 / us))
			result "$TRANSPORT: NULL, $jobs under way, processor us" "$by" \
				$(((ns - before) / 1000 / nulls))
		done
	done
	rmmod null_calls
	module_unload
	# The status of the command is that of the process that it has ended.
	[[ $TRANSPORT = rxe ]] || nfs_server_end || :
}

# ECHO calls between two ends of the module.

# The offers of both sides of a connection.
declare -A offers=(
	[1024]='send=1024 recv=1024' [4096]='send=4096 recv=4096'
	[65536]='send=65536 recv=65536'
	[inv=0]='inv=0' [inv=1]='inv=1'
)

# Each row: octets; number of calls; offers; chunks of each call that the client
# invalidates itself; chunks of each call that the reply invalidates; keys of `call`. A
# call without chunks must be sent inline.
echoes=(
	'100 100 1024 0 0'
	'100 100 4096 0 0'
	'100 100 65536 0 0'
	'900 100 1024 0 0'
	'900 100 4096 0 0'
	'900 100 65536 0 0'
	'3000 100 1024 2 0'
	'3000 100 4096 0 0'
	'3000 100 65536 0 0'
	'8192 100 1024 2 0'
	'8192 100 4096 2 0'
	'8192 100 65536 0 0'
	'60000 30 1024 2 0'
	'60000 30 4096 2 0'
	'60000 30 65536 0 0'
	'262144 10 1024 2 0'
	'262144 10 4096 2 0'
	'262144 10 65536 2 0'
	'100 100 inv=0 1 0 chunks=1'
	'100 100 inv=1 0 1 chunks=1'
	'8192 100 inv=0 2 0'
	'8192 100 inv=1 1 1'
)

# echoed SIZE COUNT CONNECTION LOCALLY REMOTELY [KEY=VALUE]: makes calls, and prints the
# time of one. Fails unless the counters of both ends are as the row says.
echoed() {
	local how=inline measured="$TRANSPORT: ECHO, $1 octets, us" variant
	(($4 + $5 == 0)) || how=chunked
	variant="$3, $how"
	if [[ $3 = inv=* ]]; then
		measured="$TRANSPORT: $(($4 + $5))-chunk ECHO, $1 octets, us"
		variant="$3, $4 local"
	fi
	read -r client server <<<"${ends[$3]}"
	counted "${how}_calls=$2" "s:${how}_calls=$2" local_invalidations=$(($2 * $4)) \
		remote_invalidations_received=$(($2 * $5)) s:sends_with_invalidate=$(($2 * $5)) \
		-- took control a call "connection $client echo size=$1 count=$2 ${6-}" || {
		echo "the counters do not match: $measured, $variant"
		return 1
	}
	result "$measured" "$variant" $((us / $2))
}

# all_jobs TRANSPORT PAIR: measures ECHO with several calls under way on one connection.
all_jobs() {
	local TRANSPORT=$1 jobs count=4096
	use_pair "$2"
	load observe=0
	control b listen "$B4:20100 rpcvers=1 credits=64"
	connect a "$B4:20100 rpcvers=1 null=0 credits=64 timeout_ms=60000"
	for jobs in 1 8 64; do
		took control a call "connection $client echo size=100 count=$count jobs=$jobs"
		result "$TRANSPORT, 2 CPUs: ECHO, 100 octets, calls/s" "$jobs under way" \
			$((count * 1000000 / us))
	done
	module_unload
}

# all_echoes TRANSPORT PAIR: measures each row of `echoes` twice.
all_echoes() {
	local TRANSPORT=$1
	local -A ends=()
	use_pair "$2"
	local port=20100 offer n last=$((${#echoes[@]} - 1))
	load observe=0
	for offer in "${!offers[@]}"; do
		((++port))
		control b listen "$B4:$port rpcvers=1 ${offers[$offer]}"
		connect a "$B4:$port rpcvers=1 null=0 timeout_ms=60000 ${offers[$offer]}"
		ends[$offer]="$client $server"
	done
	# Forwards and then backwards, so that a drift affects all rows alike.
	for ((n = 0; n <= 2 * last + 1; n++)); do
		# shellcheck disable=SC2086 # words
		echoed ${echoes[n <= last ? n : 2 * last + 1 - n]}
	done
	module_unload
}

# Setting connections up, with the message of RFC 8797 and without.

# The private data that both sides send, and their credits: the variant, and its keys of connect
# and listen. cmtime makes no buffers, so the one with a single credit is the most like it.
said=('no private data|private=none' 'RFC 8797|' 'RFC 8797, 1 credit|credits=1')

# set_up AT_ONCE VARIANT KEYS: sets up $setups connections, AT_ONCE at a time. Sets
# ${times[@]} to the total time, followed by the time of each, sorted.
set_up() {
	control b listen "$B4:20200 max=$setups $3"
	ask times "/run/netns/$A" "$DEBUGFS/connect" "$B4:20200 null=0 timeout_ms=60000 $3\\n" \
		"$setups" "$1"
	read -ra times <<<"$answer"
	((${#times[@]} == setups + 1)) || { echo "cannot connect: $answer"; return 1; }
	control - close all
	wait_for 60 none_live
}

all_set_ups() {
	local turn variant keys times
	load observe=0
	for ((turn = 0; turn < ${#said[@]}; turn++)); do
		IFS='|' read -r variant keys <<<"${said[($1 + turn) % ${#said[@]}]}"
		set_up 1 "$variant" "$keys"
		result 'connect, half within us' "$variant" "${times[setups / 2]}"
		result 'connect, 90 % within us' "$variant" "${times[setups * 9 / 10]}"
		result 'connect, 99 % within us' "$variant" "${times[setups * 99 / 100]}"
		set_up "$setups" "$variant" "$keys"
		result "$setups connects at once, us each" "$variant" $((times[0] / setups))
	done
	module_unload
	cmtime_once "$setups connects at once, us each" cmtime
}

# The cost of one more connection, by the number of connections.

scale=(100 1000 10000)
# How many connections are measured before each number is reached.
sample=50

tracing=/sys/kernel/tracing
allocations=(kmalloc kmem_cache_alloc kfree kmem_cache_free)

# Prints the octets per end that the module has allocated and not freed while connections
# were made: allocations by Rust code (nothing else in this guest is written in Rust), and
# those for files in debugfs. Everything else belongs to rdma_cm and to the device.
# shellcheck disable=SC2016 # for awk
own_program='
{ at = match($0, / (kmalloc|kmem_cache_alloc|kfree|kmem_cache_free): /) }
!at { next }
{
	event = substr($0, at + 1, RLENGTH - 3)
	match($0, /ptr=[^ ]*/)
	ptr = substr($0, RSTART, RLENGTH)
	delete octets[ptr]
}
event !~ /free/ && / call_site=(_R|rust_helper_|__d_alloc|alloc_inode|debugfs_)/ {
	match($0, /bytes_alloc=[0-9]*/)
	octets[ptr] = substr($0, RSTART + 12, RLENGTH - 12)
}
END {
	for (ptr in octets) sum += octets[ptr]
	print int(sum / ends)
}'

trace_allocations() {
	local name
	for name in "${allocations[@]}"; do echo "$1" >"$tracing/events/kmem/$name/enable"; done
}

# kernel_octets: sets $octets to the memory in slabs and from vmalloc().
kernel_octets() {
	octets=$(awk '/^(Slab|VmallocUsed):/ { n += $2 } END { print n * 1024 }' /proc/meminfo)
}

connect_many() {
	local n
	for ((n = 0; n < $1; n++)); do
		control a connect "$B4:20200 $small null=0 timeout_ms=60000" || return
	done
}

established() { [[ $(grep -c ' established ' "$DEBUGFS/connections") = "$1" ]]; }

scaled() {
	local small='send=1024 recv=1024 credits=1 rpcvers=1' many have=0 ends own before
	load observe=0
	control b listen "$B4:20200 $small max=65536"
	echo 16384 >"$tracing/buffer_size_kb"
	kernel_octets
	before=$octets
	for many in "${scale[@]}"; do
		echo "$many connections"
		ends=$((2 * many))
		connect_many $((many - have - 2 * sample))
		took connect_many "$sample"
		result 'set-up of the last, us' "of $many" $((us / sample))
		trace_allocations 1
		connect_many "$sample"
		wait_for 120 established "$ends"
		trace_allocations 0
		own=$(awk -v ends=$((2 * sample)) "$own_program" "$tracing/trace")
		echo >"$tracing/trace"
		result 'an end, octets, the module' "of $many" "$own"
		kernel_octets
		result 'an end, octets, everything else' "of $many" \
			$(((octets - before) / ends - own))
		ask reading "$DEBUGFS/connections"
		result 'connections, ns a line' "of $many" $((answer / ends))
		ask reading "$DEBUGFS/connection/$ends/info"
		result 'info, us' "of $many" $((answer / 1000))
		have=$many
	done
	module_unload
}

# -----------------------------------------------------------------------------

# Debian's kernel has no siw: make bench brings it.
modprobe rdma_cm
insmod "$siw"
pair rxe
pair siw
use_pair 1
TRANSPORT=rxe
nfs_server
mkdir -p /mnt/nfs
at_end module_unload
nfs_copy absent >/dev/null
for ((round = 0; round < rounds; round++)); do
	echo "round $((round + 1)) of $rounds"
	for group; do
		case $group in
		nfs) all_nfs "$round" ;;
		others) all_others "$round" ;;
		nulls) all_nulls siw 2; all_nulls rxe 1 ;;
		echoes) all_echoes siw 2; all_echoes rxe 1 ;;
		jobs) all_jobs siw 2; all_jobs rxe 1 ;;
		set_ups) all_set_ups "$round" ;;
		scale) ;;
		*)
			echo "no group $group: known are nfs others nulls echoes jobs set_ups scale"
			exit 2
			;;
		esac
	done
done
[[ " $* " != *' scale '* ]] || scaled
