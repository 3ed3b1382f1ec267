#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The suite of tools/conformance in the guest a, against $PEER in the guest b: Linux (a series),
# ganesha, or the module. $ROLES are server, client or both. scripts/peers calls this. For each ROLE
# it puts ROLE.json, ROLE.txt (for --expect) and ROLE.log into the directory $RESULTS. If that has
# expected/ROLE.txt, the script fails where the results differ.
# shellcheck disable=SC2016,SC2154 # for the guests; from lib.sh
cd "$(dirname "$0")" || exit
# shellcheck source=../pair/lib.sh
. ./lib.sh

# suite ROLE ARGUMENT...: runs the suite in a.
suite() {
	local role=$1 status expect=()
	rm -f "$share_a/$role".*
	if [[ -e $RESULTS/expected/$role.txt ]]; then
		cp "$RESULTS/expected/$role.txt" "$share_a/expected" &&
			expect=(--expect /share/expected)
	fi
	on_a later suite /tmp/rpcrdma-conformance "$@" \
		--json "/share/$role.json" --expect-write "/share/$role.txt" "${expect[@]}"
	# The suite takes minutes, and a command in a guest at most three.
	for _ in {1..10}; do
		on_a wait_for 150 over suite >/dev/null && break
	done
	on_a ended suite >"$RESULTS/$role.log"
	status=$?
	cp "$share_a/$role".{json,txt} "$RESULTS/" || { tail "$RESULTS/$role.log"; return 1; }
	# Without expectations, the results are the new ones.
	[[ ${#expect[@]} -gt 0 ]] || status=0
	[[ $status = 0 ]] || cat "$RESULTS/$role.log"
	return "$status"
}

# serve_work COMMAND...: runs COMMAND in b for each connection to the port 4000, and sends its
# status and output. A process that COMMAND leaves behind may keep a pipe open, but not a file.
serve_work() {
	on_b later work python3 -ISc '
import socket, subprocess, sys, tempfile
server = socket.create_server(("", 4000))
while True:
    connection, _ = server.accept()
    with connection, tempfile.TemporaryFile() as output:
        done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT)
        output.seek(0)
        connection.sendall(b"%d\n" % done.returncode + output.read())
' timeout -k 5 60 "$@" && on_b wait_for 30 eval 'ss -tln | grep -q :4000'
}
work="bash -c 'exec 3<>/dev/tcp/$B4/4000 && read -r status <&3 && cat <&3 && exit \$status'"

nfs_data() {
	head -c 12000 /dev/urandom >"$share_a/data" && cp "$share_a/data" "$share_b/data" &&
		on_a in_nfs_server cp /share/data /export/data &&
		on_a in_nfs_server touch /export/{01..20}"$(printf %0200d 0)" &&
		on_b eval 'mkdir -p /tmp/work/mount && cp /share/data /tmp/work/'
}

# plays ROLE: whether the peer is to be tested in that role.
plays() { [[ " $ROLES " = *" $1 "* ]]; }

boot_both
need 'suite: a has the suite' \
	on_a cp "$project/build/conformance/release/rpcrdma-conformance" /tmp/
need 'suite: programs in a can use rdma_cm' on_a modprobe rdma_ucm
if [[ $PEER = ganesha ]] && plays server; then
	cp -r "$GANESHA" "$share_b/ganesha"
	need 'suite: b reads ganesha.sh' on_b . ../pair/ganesha.sh
	need 'suite: Ganesha serves NFS on b' on_b ganesha_server
	need 'suite: b has a scratch file' on_b touch /export/scratch
	# The cases of the other sections are not run (SECURITY.md).
	check 'suite: Ganesha as server' suite server "$B4" --export export/scratch \
		rfc8797 rfc8166/3.3 rfc8166/4.2 rfc8166/4.5.1 rfc8166/4.6 rfc8267/4.2 rfc5531
	check 'suite: Ganesha still listens' on_b ganesha_runs
elif [[ $PEER = rpcrdma_cm ]]; then
	need 'suite: the module loads on b' on_b module_load
	need 'suite: the module listens on b' \
		on_b control - listen "$B4:2000 send=4096 recv=4096 inv=1"
	! plays server || check 'suite: the module as server' \
		suite server "$B4:2000" --destructive --draft-v2
	need 'suite: the module works on b' serve_work bash programs/module-work.sh "$A4:3000" 1
	! plays client || check 'suite: the module as client' \
		suite client --listen "$A4:3000" --limit 90 --run "$work"
	check 'suite: the module closes all' on_b control - close all
elif [[ $PEER != ganesha ]]; then
	need 'suite: b serves NFS' on_b nfs_server
	need 'suite: b has a scratch file' on_b in_nfs_server touch /export/scratch
	need 'suite: the server on b grants delegations' on_b lockd_end_grace
	! plays server || check 'suite: Linux as server' suite server "$B4" --export scratch
	need 'suite: a serves NFS' on_a nfs_server
	need 'suite: both have data' nfs_data
	# Otherwise the client makes fewer calls in works after that period than in the first one.
	need 'suite: the server on a grants delegations' on_a lockd_end_grace
	need "suite: b's client works" \
		serve_work bash programs/nfs-work.sh /tmp/work "$A4" 4.2 /
	! plays client || check 'suite: Linux as client' suite client --listen "$A4:3000" \
		--backend "$A4" --limit 90 --run "$work"
fi
