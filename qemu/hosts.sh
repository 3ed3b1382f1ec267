# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Hosts inside of the guest, and what runs on them: for the demo and the tests.
#
# What most happens in is a pair: two hosts that see each other alone.
#
#   network namespace $A                   network namespace $B
#   +-------------------------+            +-------------------------+
#   | $A_RDMA, $TRANSPORT     |            | $B_RDMA, $TRANSPORT     |
#   | $A_DEV  $A4/24  $A6/64  +--- veth ---+ $B_DEV  $B4/24  $B6/64  |
#   +-------------------------+            +-------------------------+
#   on_a COMMAND runs in $A                on_b COMMAND runs in $B
#
# For siw, $A is a name of the guest's first namespace: see pair.

TRANSPORT=${TRANSPORT:-rxe}
# shellcheck disable=SC2034 # for who sources this
DEBUGFS=/sys/kernel/debug/rpcrdma_cm

scratch=$(mktemp -d)
cleanups=()

# at_end COMMAND...: runs when the script ends, last come first.
at_end() { cleanups=("$(printf '%q ' "$@")" "${cleanups[@]}"); }

# clean_up COMMAND...: what at_end was told; COMMAND is called with what failed.
clean_up() {
	local cleanup
	for cleanup in "${cleanups[@]}"; do
		eval "$cleanup" >"$scratch/output" 2>&1 || "$@" "$cleanup" <"$scratch/output"
	done
	rm -rf "$scratch"
}

# A pipe that nothing comes out of: to wait at without a process for it.
exec {silence}<> <(:)

# wait_for SECONDS COMMAND...: until it succeeds; not longer than that.
wait_for() {
	local limit=$((SECONDS + $1))
	shift
	until "$@" >"$scratch/waiting" 2>&1; do
		if ((SECONDS > limit)); then
			echo "waited in vain for: $*"
			cat "$scratch/waiting"
			return 1
		fi
		read -rt 0.05 -u "$silence" || true
	done
}

# module_load: and removes it at the end.
module_load() {
	local needed
	needed=$(modinfo -F depends "$MODULE" | tr , ' ')
	# shellcheck disable=SC2086 # words
	[[ -z $needed ]] || modprobe -a $needed
	insmod "$MODULE" && at_end module_unload
}

module_unload() {
	[[ ! -d /sys/module/rpcrdma_cm ]] || rmmod rpcrdma_cm
}

on_a() { nsenter --net="/run/netns/$A" "$@"; }
on_b() { nsenter --net="/run/netns/$B" "$@"; }

# netem SIDE [OPTION...]: what becomes from now on of what that side sends; without
# options, it arrives. The queue stays the same: one that goes drops what is being
# sent, by which rxe has a queue pair fail, also that of the connection manager, and
# then the device makes no more connections.
netem() {
	local device=$A_DEV
	[[ $1 = a ]] || device=$B_DEV
	"on_$1" tc qdisc replace dev "$device" root netem limit 100000 corrupt 0% rate 0bit "${@:2}"
}

is_up() { [[ $(<"/sys/class/infiniband/$1/ports/1/state") = *ACTIVE ]]; }

# use_pair N: the hosts of that pair are $A and $B from now on.
use_pair() {
	A=a$1 B=b$1 A_DEV=va$1 B_DEV=vb$1 A_RDMA=${TRANSPORT}_a$1 B_RDMA=${TRANSPORT}_b$1
	A4=10.77.$1.1 B4=10.77.$1.2 A6=fd77:$1::1 B6=fd77:$1::2
}

# use_guests: the same names where the hosts are the guests of qemu/run-pair, with one
# network namespace each.
use_guests() {
	A=self B=self A_DEV=eth0 B_DEV=eth0 A_RDMA=rxe0 B_RDMA=rxe0
	A4=10.77.0.1 B4=10.77.0.2 A6=fd77::1 B6=fd77::2
}

# pair [rxe|siw]: one that an earlier script kept, or a fresh one. Names are used
# for one only, so that what is left of another cannot be taken for it.
pair() {
	local n=0 kept
	TRANSPORT=${1:-$TRANSPORT}
	kept=/run/pair-$TRANSPORT
	if [[ -s $kept ]]; then
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
	# Addresses are there at once, not after a search for duplicates: new
	# namespaces have that from the first one.
	echo 1 >/proc/sys/net/core/devconf_inherit_init_net
	for file in /proc/sys/net/ipv6/conf/{all,default}/accept_dad; do echo 0 >"$file"; done
	# siw makes its socket in the namespace of whoever connects, which is the
	# first one for the kernel's workers, such as those of NFS. An attempt ends
	# when TCP gives up, so let that be soon.
	if [[ $TRANSPORT = siw ]]; then
		first="attach $A 1"
		echo 1 >/proc/sys/net/ipv4/tcp_syn_retries
	fi
	# siw tells devices apart by their index, whatever their network namespace.
	ip -batch - <<-END &&
		netns $first
		netns add $B
		link add $A_DEV index $((2 * $1 + 100)) netns $A type veth \
			peer $B_DEV index $((2 * $1 + 101)) netns $B
	END
		up_on "$A" "$A_DEV" "$A4" "$A6" && up_on "$B" "$B_DEV" "$B4" "$B6" &&
		on_a rdma link add "$A_RDMA" type "$TRANSPORT" netdev "$A_DEV" &&
		on_b rdma link add "$B_RDMA" type "$TRANSPORT" netdev "$B_DEV" &&
		wait_for 10 is_up "$A_RDMA" && wait_for 10 is_up "$B_RDMA"
}

# up_on NAMESPACE DEVICE IPV4 IPV6
up_on() {
	ip -n "$1" -batch - <<-END
		link set lo up
		address add $3/24 dev $2
		address add $4/64 dev $2 nodad
		link set $2 up
	END
}

# pair_end TRANSPORT N: keeps it for the next script, since making one takes
# seconds, unless that has one already, or this one failed or has called netem.
pair_end() {
	local queues
	TRANSPORT=$1
	use_pair "$2"
	queues=$(on_a tc qdisc show dev "$A_DEV"; on_b tc qdisc show dev "$B_DEV")
	if [[ ${failures:-0} = 0 && ! -s /run/pair-$1 && $queues != *netem* ]] &&
		[[ -e /sys/class/infiniband/$A_RDMA && -e /sys/class/infiniband/$B_RDMA ]]; then
		echo "$2" >"/run/pair-$1"
	else
		pair_delete
	fi
}

# The veth goes first: not before its last user, which its namespace would not
# wait for.
pair_delete() {
	local device
	for device in "$A_RDMA" "$B_RDMA"; do
		[[ ! -e /sys/class/infiniband/$device ]] || rdma link delete "$device"
	done
	ip -n "$A" link delete "$A_DEV" 2>/dev/null
	printf 'netns delete %s\n' "$A" "$B" | ip -batch -
}

# pairs_end: those that were kept.
pairs_end() {
	for TRANSPORT in rxe siw; do
		[[ -s /run/pair-$TRANSPORT ]] || continue
		use_pair "$(</run/pair-$TRANSPORT)"
		pair_delete
	done
}

# nfs_server: the kernel's, in $B, exporting a tmpfs; over RDMA at port 20049.
# Daemons and mounts of its own: pairs do not meet in the file system either.
nfs_server() {
	rm -f "$scratch/nfs-ready"
	# shellcheck disable=SC2016 # for the shell that runs there
	nsenter --net="/run/netns/$B" unshare --mount bash -euc '
		mount -t tmpfs run /run
		mount -t tmpfs state /var/lib/nfs
		mkdir -p /export /run/rpcbind /var/lib/nfs/{v4recovery,sm,rpc_pipefs}
		touch /var/lib/nfs/{etab,rmtab}
		mount -t tmpfs export /export
		mount -t nfsd nfsd /proc/fs/nfsd
		rpcbind -w
		echo 10 >/proc/fs/nfsd/nfsv4leasetime
		echo 10 >/proc/fs/nfsd/nfsv4gracetime
		echo "/export *(rw,fsid=0,no_root_squash,insecure,no_subtree_check)" >/etc/exports
		exportfs -a
		rpc.mountd
		rpc.nfsd 4
		echo "rdma 20049" >/proc/fs/nfsd/portlist
		# Nobody has anything to reclaim; where the server knows, it says EBUSY.
		echo Y >/proc/fs/nfsd/v4_end_grace || true
		echo ready >"$1"
		exec sleep infinity
	' nfs "$scratch/nfs-ready" >"$scratch/nfs-log" 2>&1 </dev/null &
	nfs_server=$!
	at_end nfs_server_end
	wait_for 90 test -s "$scratch/nfs-ready" || { cat "$scratch/nfs-log"; return 1; }
	# A work of the server ends it; until then READ gets NFS4ERR_GRACE.
	wait_for 30 in_nfs_server grep -q Y /proc/fs/nfsd/v4_end_grace
}

# in_nfs_server COMMAND...: among its files.
in_nfs_server() { nsenter --target "$nfs_server" --mount --net --root --wd "$@"; }

# server_processes: all that runs in the network namespace of the server, the daemons too.
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

# nfs_mount VERSION DIR [OPTION,...]: by the kernel client in $A.
nfs_mount() {
	local options="proto=rdma,port=20049,vers=$1,hard,timeo=100${3:+,$3}" path=/
	# Version 3 knows no pseudo root, and locks by another protocol.
	[[ $1 != 3 ]] || options+=,nolock,mountproto=tcp path=/export
	mkdir -p "$2"
	on_a timeout 60 mount -t nfs -o "$options" "$B4:$path" "$2" || return
	at_end nfs_unmount "$2"
}

nfs_unmount() {
	! mountpoint -q "$1" || on_a umount "$1"
}
