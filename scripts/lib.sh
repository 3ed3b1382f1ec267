# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the scripts share; source it after `set -euo pipefail`.

# shellcheck disable=SC2034 # used by those who source this
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rpcrdma_cm
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$@"; exit 1; }

# Twelve letters that stand for these words.
key() { printf '%s\n' "$@" | sha256sum | cut -c1-12; }

# In front of a command: root, or an ordinary user as root of a namespace that
# maps the lab's other users too, with mounts that nobody else sees.
as_root=(unshare --mount)
[[ $EUID = 0 ]] || as_root+=(--map-root-user --map-auto)

# Files of the lab belong to users that an ordinary user is not.
remove() { "${as_root[@]}" rm -rf -- "$@"; }

# once NAME WHAT COMMAND...: makes the directory NAME of the cache unless it is
# there. COMMAND gets a temporary directory as its last argument, which takes
# the name when it is whole. A second caller waits for the first.
# Not for use in conditions: they switch `set -e` off.
once() {
	local name=$1 what=$2 start=$SECONDS
	shift 2
	[[ ! -d $cache/$name ]] || return 0
	(
		flock 9
		[[ ! -d $cache/$name ]] || exit 0
		tmp=$cache/tmp-$name
		trap 'remove "$tmp"; say "$what: failed"' EXIT
		trap 'exit 130' INT TERM HUP
		remove "$tmp"
		mkdir "$tmp"
		say "$what"
		"$@" "$tmp" >&2 9>&-
		mv -T "$tmp" "$cache/$name"
		say "$what: took $((SECONDS - start)) s"
		trap - EXIT
	) 9>"$cache/lock-$name"
}

# quietly COMMAND...: its output is shown only when it fails.
quietly() {
	local log status=0
	log=$(mktemp "$cache/log-XXXXXX")
	"$@" >"$log" 2>&1 </dev/null || status=$?
	[[ $status = 0 ]] || { tail -n 60 "$log"; say "failed with $status: $*"; } >&2
	rm -f "$log"
	return "$status"
}

# on_what COMMAND...: what figures have to be read with, as KEY: VALUE.
on_what() {
	printf 'machine:  %s processors, %s; load before: %s\n' "$(nproc)" \
		"$(sed -n 's/^model name[[:space:]]*: //p;T;q' /proc/cpuinfo)" \
		"$(cut -d ' ' -f 1 /proc/loadavg)"
	printf 'kernel:   %s\n' "$(uname -sr)"
	# shellcheck disable=SC2016 # for the shell that runs there
	printf 'compiler: %s\n' "$("$project/scripts/lab" sh -c '
		for compiler in rustc gcc; do "$compiler" --version | sed q; done
		clang --version | sed "s/^Debian //;q"' | paste -sd , | sed 's/,/, /g')"
	printf 'commit:   %s\ncommand:  %s\n' \
		"$(git -C "$project" describe --always --dirty 2>/dev/null || echo unknown)" "$*"
}
