# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034,SC2154
#
# For the scripts that run tools/conformance, which scripts/conformance builds. Source it after
# lib.sh.

suite=/tmp/rpcrdma-conformance
expectations=../../tools/conformance/expectations

# copies PROGRAM...: copies the suite and these of its programs into memory: the guest reads a file
# of the project again each time that it is run.
copies() {
	local built=../../build/conformance/release
	cp -t /tmp "$built/rpcrdma-conformance" "${@/#/$built/}" && "$suite" --version
}

has_rdma_cm() {
	modprobe -q rdma_ucm
	[[ -e /dev/infiniband/rdma_cm ]]
}

# known FILE CASE...: writes what the file lists to $scratch/known. Over siw, the cases are skipped,
# too.
known() {
	cp "$expectations/$1.txt" "$scratch/known" || return
	[[ $TRANSPORT = rxe ]] || printf '%s skipped\n' "${@:2}" >>"$scratch/known"
}

# in_a COMMAND...: prints a command line that runs COMMAND in host a.
in_a() { echo "nsenter --net=/run/netns/$A $*"; }

# proves_itself COMMAND...: runs a self-test, and prints what it has found wrong.
proves_itself() {
	local status=0
	"$@" >"$scratch/self-test" 2>&1 || status=$?
	grep -A12 '^not ok' "$scratch/self-test"
	tail -n1 "$scratch/self-test"
	return "$status"
}

# scratch_file: makes the file, and lets the server grant delegations.
scratch_file() { in_nfs_server touch /export/scratch && lockd_end_grace; }
