# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Hosts inside the guest, with an NFS server and client: for the demo and the tests.
#
# Most scripts use a pair: two hosts that reach only each other.
#
#   network namespace $A                   network namespace $B
#   +-------------------------+            +-------------------------+
#   | $A_RDMA, $TRANSPORT     |            | $B_RDMA, $TRANSPORT     |
#   | $A_DEV  $A4/24  $A6/64  +--- veth ---+ $B_DEV  $B4/24  $B6/64  |
#   +-------------------------+            +-------------------------+
#   on_a COMMAND runs in $A                on_b COMMAND runs in $B
#
# With siw, and with A_IS_GUEST=1, $A is the guest's initial namespace under another name: see
# pair_make.

TRANSPORT=${TRANSPORT:-rxe}
# shellcheck disable=SC2034 # used by the scripts that source this
DEBUGFS=/sys/kernel/debug/rpcrdma_cm

scratch=$(mktemp -d)
cleanups=()

# at_end COMMAND...: runs COMMAND when the script ends. The latest one runs first.
at_end() { cleanups=("$(printf '%q ' "$@")" "${cleanups[@]}"); }

# clean_up COMMAND...: runs the commands of at_end. For each one that fails, runs COMMAND
# with the failed command as last argument and its output on stdin.
clean_up() {
	local cleanup
	for cleanup in "${cleanups[@]}"; do
		eval "$cleanup" >"$scratch/output" 2>&1 || "$@" "$cleanup" <"$scratch/output"
	done
	rm -rf "$scratch"
}

# A pipe that never has data: `read -t` on it sleeps without starting a process.
exec {silence}<> <(:)

# wait_for SECONDS COMMAND...: runs COMMAND until it succeeds, or fails after that time.
wait_for() {
	local limit=$((SECONDS + $1))
	shift
	until "$@" >"$scratch/waiting" 2>&1; do
		if ((SECONDS > limit)); then
			echo "the time limit has passed, and this still fails: $*"
			cat "$scratch/waiting"
			return 1
		fi
		read -rt 0.05 -u "$silence" || true
	done
}

# module_load: loads the module with $MODULE_PARAMETERS, and unloads it at the end of the script.
module_load() {
	local needed
	needed=$(modinfo -F depends "$MODULE" | tr , ' ')
	# shellcheck disable=SC2086 # words
	[[ -z $needed ]] || modprobe -a $needed
	# shellcheck disable=SC2086 # words
	insmod "$MODULE" ${MODULE_PARAMETERS-} && at_end module_unload
}

module_unload() { remove_module rpcrdma_cm; }

# remove_module NAME: removes a module of the kernel, if it is loaded.
remove_module() { [[ ! -d /sys/module/$1 ]] || rmmod "$1"; }

on_a() { nsenter --net="/run/netns/$A" "$@"; }
on_b() { nsenter --net="/run/netns/$B" "$@"; }

# netem SIDE [OPTION...]: sets how packets that this side sends are lost or delayed. Without
# options all of them arrive. The qdisc is changed and never removed: removing it drops packets,
# and a dropped packet makes rxe fail its queue pair. If that is the CM's, the device makes
# no more connections.
netem() {
	local device=$A_DEV
	[[ $1 = a ]] || device=$B_DEV
	"on_$1" tc qdisc replace dev "$device" root netem limit 100000 corrupt 0% rate 0bit "${@:2}"
}

is_up() { [[ $(<"/sys/class/infiniband/$1/ports/1/state") = *ACTIVE ]]; }

# use_pair N: makes pair N the current one, with the hosts $A and $B.
use_pair() {
	A=a$1 B=b$1 A_DEV=va$1 B_DEV=vb$1 A_RDMA=${TRANSPORT}_a$1 B_RDMA=${TRANSPORT}_b$1
	A4=10.77.$1.1 B4=10.77.$1.2 A6=fd77:$1::1 B6=fd77:$1::2
}

# use_guests: sets the same names for the guests of qemu/run-pair. There each host is a
# guest, with one network namespace.
use_guests() {
	A=self B=self A_DEV=eth0 B_DEV=eth0 A_RDMA=rxe0 B_RDMA=rxe0
	A4=10.77.0.1 B4=10.77.0.2 A6=fd77::1 B6=fd77::2
}

# pair [rxe|siw]: takes the pair that an earlier script kept, or makes a new one. Each pair
# has another number, so that the remains of one cannot be taken for another.
pair() {
	local n=0 kept
	TRANSPORT=${1:-$TRANSPORT}
	kept=/run/pair-$TRANSPORT
	if [[ -s $kept && -z ${A_IS_GUEST:-} ]]; then
		n=$(<"$kept")
		: >"$kept"
	else
		[[ ! -e /run/pairs ]] || n=$(</run/pairs)
		echo $((++n)) >/run/pairs
	fi
	use_pair "$n"
	at_end pair_end "$TRANSPORT" "$n"
	[[ -e /sys/class/infiniband/$A_RDMA ]] || pair_make "$n"
}

pair_make() {
	local first="add $A" file
	[[ -d /sys/module/$TRANSPORT ]] || modprobe -q "rdma_$TRANSPORT" || modprobe -q "$TRANSPORT"
	# Without duplicate address detection, IPv6 addresses can be used at once. New
	# namespaces inherit the setting from the initial one.
	echo 1 >/proc/sys/net/core/devconf_inherit_init_net
	for file in /proc/sys/net/ipv6/conf/{all,default}/accept_dad; do echo 0 >"$file"; done
	# siw makes its socket in the namespace of the task that connects. That is the
	# initial one for the kernel's workers, such as those of NFS, so $A is that one. An
	# attempt ends only when TCP gives up, so TCP retries only once.
	[[ -z ${A_IS_GUEST:-} ]] || first="attach $A 1"
	if [[ $TRANSPORT = siw ]]; then
		first="attach $A 1"
		echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
	fi
	# siw identifies network devices by their index only, so an index must not occur in
	# two namespaces.
	ip -batch - <<-END &&
		netns $first
		netns add $B
		link add $A_DEV index $((2 * $1 + 100)) netns $A type veth \
			peer $B_DEV index $((2 * $1 + 101)) netns $B
	END
		up_on "$A" "$A_DEV" "$A4" "$A6" && up_on "$B" "$B_DEV" "$B4" "$B6" &&
		add_device a && add_device b &&
		wait_for 10 is_up "$A_RDMA" && wait_for 10 is_up "$B_RDMA"
}

# add_device a|b: adds the RDMA device of a host.
add_device() {
	case $1 in
	a) on_a rdma link add "$A_RDMA" type "$TRANSPORT" netdev "$A_DEV" ;;
	b) on_b rdma link add "$B_RDMA" type "$TRANSPORT" netdev "$B_DEV" ;;
	esac
}

# up_on NAMESPACE DEVICE IPV4 IPV6: gives a device its addresses, and brings it up.
up_on() {
	ip -n "$1" -batch - <<-END
		link set lo up
		address add $3/24 dev $2
		address add $4/64 dev $2 nodad
		link set $2 up
	END
}

# pair_end TRANSPORT N: keeps the pair for the next script, because making one takes
# seconds. Deletes the pair if another one is kept already, if the script has failed, if it has
# called netem, or with A_IS_GUEST=1.
pair_end() {
	local queues
	TRANSPORT=$1
	use_pair "$2"
	queues=$(on_a tc qdisc show dev "$A_DEV"; on_b tc qdisc show dev "$B_DEV")
	if [[ ${failures:-0} = 0 && -z ${A_IS_GUEST:-} && ! -s /run/pair-$1 &&
		$queues != *netem* ]] &&
		[[ -e /sys/class/infiniband/$A_RDMA && -e /sys/class/infiniband/$B_RDMA ]]; then
		echo "$2" >"/run/pair-$1"
	else
		pair_delete
	fi
}

# pair_delete: deletes the current pair. The veth is deleted explicitly, because that waits until
# nothing uses it. Deleting the namespaces would not wait.
pair_delete() {
	local device
	for device in "$A_RDMA" "$B_RDMA"; do
		[[ ! -e /sys/class/infiniband/$device ]] || rdma link delete "$device"
	done
	ip -n "$A" link delete "$A_DEV" 2>/dev/null
	printf 'netns delete %s\n' "$A" "$B" | ip -batch -
}

# pairs_end: deletes the pairs that were kept.
pairs_end() {
	for TRANSPORT in rxe siw; do
		[[ -s /run/pair-$TRANSPORT ]] || continue
		use_pair "$(</run/pair-$TRANSPORT)"
		pair_delete
	done
}

# nfs_server: starts the kernel's NFS server in $B. It exports a tmpfs over RDMA at port 20049. Its
# daemons have a mount namespace of their own, so that pairs share no files.
nfs_server() {
	rm -f "$scratch/nfs-ready"
	# shellcheck disable=SC2016 # for the shell that runs there
	nsenter --net="/run/netns/$B" unshare --mount bash -euc '
		mount -t tmpfs run /run
		mount -t tmpfs state /var/lib/nfs
		mkdir -p /export /run/rpcbind /var/lib/nfs/{sm,rpc_pipefs}
		touch /var/lib/nfs/{etab,rmtab}
		mount -t tmpfs export /export
		mount -t nfsd nfsd /proc/fs/nfsd
		mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs
		rpcbind -w
		nfsdcld -p /var/lib/nfs/rpc_pipefs
		echo 10 >/proc/fs/nfsd/nfsv4leasetime
		echo 10 >/proc/fs/nfsd/nfsv4gracetime
		echo "/export *(rw,fsid=0,no_root_squash,insecure,no_subtree_check)" >/etc/exports
		exportfs -a
		rpc.mountd
		rpc.statd --no-notify
		rpc.nfsd 4
		echo "rdma 20049" >/proc/fs/nfsd/portlist
		echo ready >"$1"
		exec sleep infinity
	' nfs "$scratch/nfs-ready" >"$scratch/nfs-log" 2>&1 </dev/null &
	nfs_server=$!
	at_end nfs_server_end
	wait_for 90 test -s "$scratch/nfs-ready" || { cat "$scratch/nfs-log"; return 1; }
	# nfsdcld knows of no client with state to reclaim, so there is no grace period. In one,
	# READ would get NFS4ERR_GRACE.
	wait_for 30 in_nfs_server grep -q Y /proc/fs/nfsd/v4_end_grace
}

# in_nfs_server COMMAND...: runs COMMAND in the namespaces of the NFS server.
in_nfs_server() { nsenter --target "$nfs_server" --mount --net --root --wd "$@"; }

# lockd_end_grace: ends the grace period of lockd. It is 50 s long, and the server grants no
# delegations meanwhile.
lockd_end_grace() { in_nfs_server sh -c 'echo Y >/proc/fs/lockd/nlm_end_grace'; }

# nfs_start [PORT]: starts the NFS server again, after `rpc.nfsd 0`, with that port for RDMA.
# nfs_over_rdma [PORT]: does the second half of that, and ends the grace period.
nfs_start() { in_nfs_server rpc.nfsd 4 && nfs_over_rdma "$@"; }
nfs_over_rdma() {
	in_nfs_server sh -c "echo 'rdma ${1:-20049}' >/proc/fs/nfsd/portlist &&
		{ echo Y >/proc/fs/nfsd/v4_end_grace || true; }"
}

# server_processes: prints the PIDs of everything in the server's network namespace.
server_processes() { ip netns pids "$B"; }

nfs_server_end() {
	[[ -n ${nfs_server:-} ]] || return 0
	in_nfs_server sh -c '
		rpc.nfsd 0
		exportfs -ua
		exportfs -f
		umount /proc/fs/nfsd
	'
	server_processes | xargs -r kill
	wait "$nfs_server" 2>/dev/null
	nfs_server=
}

# nfs_mount VERSION DIR [OPTION,...]: mounts from the NFS server, by the kernel's client in $A.
nfs_mount() {
	local options="proto=rdma,port=20049,vers=$1,hard,timeo=100${3:+,$3}" path=/
	# Version 3 has no pseudo root, and uses another protocol for locks.
	[[ $1 != 3 ]] || options+=,nolock,mountproto=tcp path=/export
	mkdir -p "$2"
	on_a timeout 60 mount -t nfs -o "$options" "$B4:$path" "$2" || return
	at_end nfs_unmount "$2"
}

nfs_unmount() {
	! mountpoint -q "$1" || on_a umount "$1"
}

# set_sysctl FILE VALUE: sets a sysctl of sunrpc until the script ends.
set_sysctl() {
	local file=/proc/sys/sunrpc/$1
	at_end eval "echo $(<"$file") >$file" && echo "$2" >"$file"
}

# with FILE VALUE COMMAND...: sets a sysctl of sunrpc while COMMAND runs.
with() {
	local file=/proc/sys/sunrpc/$1 before status=0
	before=$(<"$file") && echo "$2" >"$file" || return
	"${@:3}" || status=$?
	echo "$before" >"$file" && return "$status"
}
