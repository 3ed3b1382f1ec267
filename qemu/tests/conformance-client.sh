#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The client cases of tools/conformance: sections of them against the kernel's NFS client, and all
# against the module's client. scripts/conformance builds the suite first. Over soft-iWARP, the
# kernel's client, which is slow on the debug kernel, takes part with FULL=1 only.
#
# test: stock.rxe debug.siw
. ./lib/lib.sh
. ./lib/module.sh
. ./lib/suite.sh

# How long the work of a client may take, in seconds. KASAN makes the copies of the NFS client slow.
limit=60
[[ $KERNEL = stock ]] || limit=300

# passes COMMAND [CASE...] [OPTION...]: whether the client that COMMAND makes work passes the cases.
port=3000
passes() {
	on_b "$suite" client --listen "$B4:$port" --limit "$limit" --run "$(in_a "$1")" "${@:2}"
}

# passes_v2 VERSIONS CASE...: whether the module's client does that, in version 2. It remembers the
# version of a server, so each run has a port of its own.
passes_v2() {
	((++port))
	passes "bash $PWD/programs/module-work.sh $B4:$port $1" --strict --draft-v2 "${@:2}"
}

nfs_data() {
	mkdir "$scratch/mount" && head -c 12000 /dev/urandom >"$scratch/data" &&
		in_nfs_server cp "$scratch/data" /export/data &&
		in_nfs_server touch /export/{01..20}"$(printf %0200d 0)" && lockd_end_grace
}

nfs_passes() {
	passes "bash $PWD/programs/nfs-work.sh $scratch $B4 4.2 /" --backend "$B4" "$@"
}
drops_chunks() {
	# reports/xprtrdma-reverse-chunks.txt
	printf 'rfc8167/5.3/%s fail\n' c1 c2 >"$scratch/drops"
	nfs_passes rfc8167/5.2/c1 rfc8167/5.3 --expect "$scratch/drops"
}
kernels_client() {
	need 'an NFS server behind the suite' nfs_server
	need 'data for the NFS client of the suite' nfs_data
	check "the kernel's NFS client passes the suite's cases of sizes and credits" \
		nfs_passes --strict rfc8797/4 rfc8797/5.1 rfc8166/3.3.3 rfc8166/4.3.3 \
		rfc8166/4.4.1/c1
	check "the kernel's NFS client passes the cases of XIDs" nfs_passes --strict rfc8166/4.2.1
	check "the kernel's NFS client answers NULL, and drops calls with a chunk" drops_chunks
}

without_r() {
	: >"$scratch/all-pass"
	passes "bash $PWD/programs/module-work.sh $B4:3000 1 0" rfc8797/4.1/c3 \
		--expect "$scratch/all-pass"
}
as_expected() {
	# These cases need a Receive that comes late, and DREQ.
	known rpcrdma_cm-client rfc8166/4.5.5/c2 rfc8166/4.5.5/c4 &&
		passes "bash $PWD/programs/module-work.sh $B4:3000 1" --expect "$scratch/known"
}
modules_client() {
	check "the module's client without R completes calls that invalidate" without_r
	check "the suite finds in the module's client what is known" as_expected
	check "the module's client passes the cases of version 2" passes_v2 2 \
		draft-v2/2.3 draft-v2/3.1 draft-v2/4 draft-v2/5/c1 draft-v2/5/c2 draft-v2/5.2/c3 \
		draft-v2/5.3
	check "the module's client goes on in version 1" passes_v2 auto draft-v2/5.2/c1
	check "the module's client goes on in version 1 after an error in version 1" \
		passes_v2 auto draft-v2/5.2/c4
	check "the module's client connects again in version 1" passes_v2 auto draft-v2/5.2/c2
}

need_pair
need_neighbours
need_module
need 'programs can use rdma_cm for the client cases' has_rdma_cm
need 'the suite has been built for the client cases (scripts/conformance)' copies
[[ $TRANSPORT = siw && -z ${FULL:-} ]] || group kernels_client
group modules_client
