#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The client cases of tools/conformance: sections of them against the kernel's NFS client, and all
# against the module's client. scripts/conformance builds the suite first.
#
# test: stock.rxe
. ./lib/lib.sh
. ./lib/module.sh

# A copy in memory: the guest reads a file of the project again each time that it is run.
suite=/tmp/rpcrdma-conformance
expectations=../../tools/conformance/expectations

copy() {
	cp ../../build/conformance/release/rpcrdma-conformance "$suite" && "$suite" --version
}

# in_a COMMAND...: prints a command line that runs COMMAND in host a.
in_a() { echo "nsenter --net=/run/netns/$A $*"; }

# The work of the module's client, at an address, with rpcvers=. The option reverse= makes it call
# BIND.
cat >"$scratch/module-work" <<-'END'
	cd /sys/kernel/debug/rpcrdma_cm
	keys='send=4096 recv=4096 inv=1 credits=8 reverse=4 reconnect=1'
	echo "$1 rpcvers=$2 $keys" >connect || exit
	id=$(awk '$2 == "module" && $3 == "client" { id = $1 } END { print id }' connections)
	trap 'echo "connection $id" >close' EXIT
	for words in 'echo size=100' 'echo size=2000' 'echo size=8000' 'null chunks=1' \
		'echo size=100 count=16 jobs=8' 'echo size=8000 count=2 jobs=2' null; do
		for try in 1 2 3 4 5; do
			echo "connection $id $words" >call && continue 2
			# The module connects again, and does not send calls again.
			grep -q 'disconnected by the peer\|not connected' last_error || break
			sleep 0.2
		done
		cat last_error
		exit 1
	done
END

# The work of the kernel's NFS client: calls and replies inline and in chunks, one at a time and
# several at once. Direct reads and writes do not stay in the page cache.
mkdir "$scratch/mount"
cat >"$scratch/nfs-work" <<-'END'
	cd "${0%/*}" || exit
	options=proto=rdma,port=3000,vers=$2,soft,timeo=30,retrans=1,retry=0
	mount.nfs "$1:$3" mount -o "$options" || exit
	trap 'umount -f mount || umount -fl mount' EXIT
	for size in 2000 8000; do
		dd if=data of=mount/new bs=$size count=1 oflag=direct status=none &&
			dd if=mount/new bs=$size count=1 iflag=direct status=none |
			cmp -n $size - data || exit
	done
	ls mount >/dev/null || exit
	for n in 1 2 3 4; do
		dd if=mount/data of=copy$n bs=12000 count=1 iflag=direct status=none &
	done
	wait
	for n in 1 2 3 4; do cmp data copy$n || exit; done
END

# passes COMMAND [CASE...] [OPTION...]: whether the client that COMMAND makes work passes the cases.
port=3000
passes() {
	on_b "$suite" client --listen "$B4:$port" --limit 60 --run "$(in_a "$1")" --strict "${@:2}"
}

# passes_v2 VERSIONS CASE...: whether the module's client does that, in version 2. It remembers the
# version of a server, so each run has a port of its own.
passes_v2() {
	((++port))
	passes "bash $scratch/module-work $B4:$port $1" --draft-v2 "${@:2}"
}

nfs_data() {
	head -c 12000 /dev/urandom >"$scratch/data" &&
		in_nfs_server cp "$scratch/data" /export/data
}

program_file() {
	modprobe -q rdma_ucm
	[[ -e /dev/infiniband/rdma_cm ]]
}

need_pair
need_neighbours
need_module
need 'programs can use rdma_cm for the client cases' program_file
need 'the suite has been built for the client cases (scripts/conformance)' copy
need 'an NFS server behind the suite' nfs_server
need 'data for the NFS client of the suite' nfs_data
check "the kernel's NFS client passes the suite's cases of sizes and credits" \
	passes "bash $scratch/nfs-work $B4 4.2 /" --backend "$B4" \
	rfc8797/4 rfc8797/5.1 rfc8166/3.3.3 rfc8166/4.3.3 rfc8166/4.4
check "the suite finds in the module's client what is known" \
	passes "bash $scratch/module-work $B4:3000 1" \
	--expect "$expectations/rpcrdma_cm-client.txt"
check "the module's client passes the cases of version 2" passes_v2 2 \
	draft-v2/2.3 draft-v2/3.1 draft-v2/4 draft-v2/5/c1 draft-v2/5/c2 draft-v2/5.2/c3 \
	draft-v2/5.3
check "the module's client goes on in version 1" passes_v2 auto draft-v2/5.2/c1
check "the module's client connects again in version 1" passes_v2 auto draft-v2/5.2/c2
