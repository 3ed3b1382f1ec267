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

is_up() { rdma link show "$1/1" | grep -q 'state ACTIVE'; }

# pair [rxe|siw]: a fresh one; its names are used once in the guest's life, so
# that what is left of an earlier pair cannot be taken for it.
pair() {
	local n side
	TRANSPORT=${1:-$TRANSPORT}
	n=$(($(cat /run/pairs 2>/dev/null || echo 0) + 1))
	echo "$n" >/run/pairs
	A=a$n B=b$n A_DEV=va$n B_DEV=vb$n A_RDMA=${TRANSPORT}_a$n B_RDMA=${TRANSPORT}_b$n
	A4=10.77.$n.1 B4=10.77.$n.2 A6=fd77:$n::1 B6=fd77:$n::2
	modprobe -q "rdma_$TRANSPORT" || modprobe -q "$TRANSPORT"
	if [[ $TRANSPORT = siw ]]; then
		# siw makes its socket in the namespace of whoever connects, which
		# is the first one for the kernel's workers, such as those of NFS.
		ip netns attach "$A" 1
	else
		ip netns add "$A"
	fi && ip netns add "$B" || return
	at_end pair_end "$A" "$B" "$A_RDMA" "$B_RDMA"
	for side in "$A" "$B"; do
		# Addresses are there at once, not after a search for duplicates.
		nsenter --net="/run/netns/$side" sysctl -qw net.ipv6.conf.{all,default}.accept_dad=0
		ip -n "$side" link set lo up
	done
	# siw tells devices apart by their index, whatever their network namespace.
	ip link add "$A_DEV" index $((2 * n + 100)) netns "$A" type veth \
		peer "$B_DEV" index $((2 * n + 101)) netns "$B" &&
		ip -n "$A" address add "$A4/24" dev "$A_DEV" &&
		ip -n "$B" address add "$B4/24" dev "$B_DEV" &&
		ip -n "$A" address add "$A6/64" dev "$A_DEV" nodad &&
		ip -n "$B" address add "$B6/64" dev "$B_DEV" nodad &&
		ip -n "$A" link set "$A_DEV" up &&
		ip -n "$B" link set "$B_DEV" up &&
		on_a rdma link add "$A_RDMA" type "$TRANSPORT" netdev "$A_DEV" &&
		on_b rdma link add "$B_RDMA" type "$TRANSPORT" netdev "$B_DEV" &&
		wait_for 10 is_up "$A_RDMA" && wait_for 10 is_up "$B_RDMA"
}

pair_end() {
	local device
	for device in "$3" "$4"; do
		[[ ! -e /sys/class/infiniband/$device ]] || rdma link delete "$device"
	done
	# The veth goes with either of its namespaces.
	ip netns delete "$1"
	ip netns delete "$2"
}

# nfs_server: the kernel's, in $B, exporting a tmpfs; over RDMA at port 20049.
# Daemons and mounts of its own: pairs do not meet in the file system either.
nfs_server() {
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
}

nfs_server_end() {
	[[ -n ${nfs_server:-} ]] || return 0
	nsenter --target "$nfs_server" --mount --net sh -c '
		rpc.nfsd 0
		exportfs -ua
		exportfs -f
		umount /proc/fs/nfsd
	'
	# All that runs in the server network namespace, the daemons too.
	ip netns pids "$B" | xargs -r kill
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
