#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: what the documents show. For scripts/transcripts: each transcript stands
# between a line "transcript NAME" and a line "end of transcript". The function that prints
# it is called transcript_NAME.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=qemu/hosts.sh
. ./hosts.sh

trap 'clean_up echo "could not clean up:"' EXIT
trap 'exit 130' INT TERM

# shown COMMAND: as typed in the root directory of the module, on host $A, with its output.
# It may fail: the shell says so, which belongs to the transcript.
shown() {
	printf '# %s\n' "$1"
	{ nsenter --net="/run/netns/$A" bash -c "cd $DEBUGFS; $1" 2>&1 || true; } |
		sed 's/^bash: line [0-9]*: /bash: /'
}

# README.md: the result of make demo, without what a reader meets later in the text.
transcript_demo() { ./demo.sh | sed '1d; /^== probe:/,$d'; }

transcript_probe() { shown "echo '$B4:20049' > probe; head -n 3 probe"; }

transcript_last_error() {
	shown "echo '$B4:20049 send=1000' > connect"
	shown 'cat last_error'
	shown "echo '$B4:4' > connect"
	shown 'cat last_error'
}

print() {
	echo "transcript $1"
	"transcript_$1"
	echo 'end of transcript'
}

# Its hosts are gone when it ends.
print demo
pair rxe
nfs_server
module_load
print probe
print last_error
