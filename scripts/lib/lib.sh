# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The library of the scripts. Source it after `set -euo pipefail`.

# Without this, bash ignores `set -e` within $(...).
shopt -s inherit_errexit

# shellcheck disable=SC2034 # used by the scripts that source this
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rpcrdma_cm
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)

# Not every user's PATH has chroot.
PATH=$PATH:/usr/sbin:/sbin

# The series of Linux that the module supports, oldest first.
# shellcheck disable=SC2034 # used by the scripts that source this
supported=(7.2 7.3)
is_supported() { [[ " ${supported[*]} " = *" $1 "* ]]; }

# untested SERIES: prints a warning about a series that is not supported.
untested() {
	echo "Linux $1 is untested here (supported: ${supported[*]}). If something fails, see" \
		'docs/contributing.md, "Adding a kernel series"'
}

# choose WANTED [AVAILABLE]...: prints the series to take. AVAILABLE are those that Debian
# has, oldest first. WANTED may be empty.
choose() {
	local wanted=$1 best='' newest=${*: -1} series
	shift
	[[ $# -gt 0 ]] || die 'Debian has no kernel in backports'
	if [[ -n $wanted ]]; then
		[[ " $* " = *" $wanted "* ]] ||
			die "Debian has no Linux $wanted (any more); it has: $*"
		best=$wanted
	else
		for series in "$@"; do
			[[ " ${supported[*]} " != *" $series "* ]] || best=$series
		done
		if [[ -z $best ]]; then
			say "Debian no longer has Linux ${supported[*]}, the supported series:" \
				"trying $newest"
			best=$newest
		elif [[ $best != "$newest" ]]; then
			say "Debian has Linux $newest; taking $best, the newest supported series"
		fi
	fi
	is_supported "$best" || say "$(untested "$best")"
	echo "$best"
}

# say WORD...: prints a message on stderr. On a terminal, it replaces the line of `progress`.
say() { printf '%s%s: %s\n' "$line_start" "${0##*/}" "$*" >&2; }
die() { say "$@"; exit 1; }
line_start=
[[ ! -t 2 ]] || line_start=$'\r\e[K'

# duration SECONDS: prints a time in seconds, or in minutes and seconds.
duration() {
	if [[ $1 -lt 60 ]]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

# key WORD...: prints twelve hexadecimal digits that identify these words.
key() { printf '%s\n' "$@" | sha256sum | cut -c1-12; }

# Arguments of make that build for arm64, in the lab with --arm64.
# shellcheck disable=SC2034 # used by the scripts that source this
make_arm64=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- CC=aarch64-linux-gnu-gcc-14)

# lab ARGUMENT...: runs scripts/lab.
lab() { "$project/scripts/lab" "$@"; }

# A prefix for commands: runs them in a mount namespace of their own. An ordinary user
# becomes root of a user namespace that also maps the other users of the lab.
as_root=(unshare --mount)
[[ $EUID = 0 ]] || as_root+=(--map-root-user --map-auto)

# remove FILE...: files of the lab belong to several users, so only root of that namespace can
# remove them.
remove() { "${as_root[@]}" rm -rf -- "$@"; }

# once [--resumable] NAME WHAT COMMAND...: makes the directory NAME in the cache, unless it
# exists. COMMAND gets a temporary directory as its last argument, which is renamed when COMMAND
# has succeeded. A second caller waits for the first one. With --resumable, COMMAND gets the same
# temporary directory again after an interruption. Must not be used in conditions, because they
# disable `set -e`.
once() {
	local resumable=''
	[[ $1 != --resumable ]] || { resumable=1; shift; }
	local name=$1 what=$2 start=$SECONDS
	shift 2
	[[ ! -d $cache/$name ]] || return 0
	(
		flock 9
		[[ ! -d $cache/$name ]] || exit 0
		tmp=$cache/tmp-$name
		trap 'remove "$tmp"; say "$what: failed"' EXIT
		trap 'exit 130' INT TERM HUP
		if [[ -n $resumable ]]; then
			trap 'trap - EXIT; say "$what: interrupted"; exit 130' INT TERM HUP
		else
			remove "$tmp"
		fi
		if mkdir "$tmp" 2>/dev/null; then
			say "$what"
		else
			say "$what, from where it was interrupted"
		fi
		"$@" "$tmp" >&2 9>&-
		mv -T "$tmp" "$cache/$name"
		say "$what: took $((SECONDS - start)) s"
		trap - EXIT
	) 9>"$cache/lock-$name"
}

# lock DIR: makes DIR, and waits for other processes that have called this with it.
lock() {
	mkdir -p "$1"
	exec 9>"$1/.lock"
	flock 9
}

# apt_options DIR [ARCHITECTURE]: sets $apt to options by which apt uses DIR/sources.list, keeps its
# lists in DIR/lists, and uses no configuration of this machine.
apt_options() {
	mkdir -p "$1/lists/partial"
	# shellcheck disable=SC2034 # used by the callers
	apt=(
		-oDir::Etc::SourceList="$1/sources.list" -oDir::Etc::SourceParts=/dev/null
		-oDir::Etc::TrustedParts="$(lab)/etc/apt/trusted.gpg.d"
		-oDir::State::Lists="$1/lists" -oDir::State::status=/dev/null
		-oDir::Cache="$1" -oAcquire::Languages=none -oAPT::Sandbox::User=root
		-oAPT::Architecture="${2:-amd64}" -oAPT::Architectures="${2:-amd64}"
	)
}

# unpack_packages DIR PACKAGE...: downloads packages of the lab's Debian, and unpacks them into DIR.
unpack_packages() {
	# shellcheck disable=SC2016 # for the shell that runs there
	quietly lab sh -euc '
		cd "$1"; shift
		tmp=$(mktemp -d)
		apt() {
			apt-get -qq -o "Dir::State::Lists=$tmp" -o Acquire::Languages=none \
				-o APT::Sandbox::User=root "$@"
		}
		apt update
		apt download "$@"
		for package in *.deb; do dpkg-deb -x "$package" .; done
		rm ./*.deb
	' unpack "$@"
}

# quietly COMMAND...: runs COMMAND, and shows its output only if it fails.
quietly() { progress '' 0 '' "$@"; }

# moved BUILD FROM TO: replaces FROM by TO in the paths that Kbuild wrote into its directory BUILD,
# which gets another place.
moved() {
	find "$1" -type f \( -name Makefile -o -name '.*.cmd' \) -exec sed -i "s,$2/,$3/,g" {} +
}

# progress WHAT TOTAL PATTERN COMMAND...: does the same as quietly, and shows the progress of
# COMMAND: the number of lines of its output that match PATTERN, of TOTAL or of the number last
# time.
progress() {
	local what=$1 total=$2 pattern=$3 log log_fd status=0 shower start last
	shift 3
	# The log is removed while it is open, so that no file is left if this process is killed.
	log=$(mktemp "$cache/log-XXXXXX")
	exec {log_fd}<>"$log"
	rm -f "$log"
	log=/proc/$BASHPID/fd/$log_fd
	[[ -z $what ]] || begin_progress "$what" "$total" "$pattern" "$log"
	"$@" >&"$log_fd" 2>&1 </dev/null || status=$?
	[[ -z $what ]] || end_progress "$pattern" "$log" "$status"
	[[ $status = 0 ]] || { tail -n 60 "$log"; say "failed with $status: $*"; } >&2
	exec {log_fd}>&-
	return "$status"
}

# begin_progress WHAT TOTAL PATTERN LOG, end_progress PATTERN LOG STATUS: show the progress of what
# runs between them. Set $start, $last and $shower.
begin_progress() {
	local pid=$BASHPID
	start=$SECONDS last=$cache/last-${1//[^A-Za-z0-9.]/-}
	show_progress "$@" "$last" "$pid" &
	shower=$!
}
end_progress() {
	kill "$shower" 2>/dev/null || true
	wait "$shower" 2>/dev/null || true
	printf %s "$line_start" >&2
	[[ $3 != 0 ]] || echo "$(matches "$1" "$2") $((SECONDS - start))" >"$last"
}

matches() { grep -cE -e "$1" "$2" || true; }

# show_progress WHAT TOTAL PATTERN LOG LAST PID: runs in the background while PID exists. On a
# terminal it updates one line every second, which only one process uses at a time. Otherwise it
# prints a line every half a minute.
show_progress() {
	local what=$1 total=$2 pattern=$3 log=$4 last=$5 pid=$6 took='' pause=30 next count line
	share_terminal
	[[ ! -s $last ]] || read -r total took <"$last"
	[[ -z $line_start ]] || pause=1
	SECONDS=0 next=$pause
	[[ ${took:-0} -lt 5 ]] || say "$what took $(duration "$took") last time"
	while sleep 1 && kill -0 "$pid" 2>/dev/null; do
		[[ $SECONDS -ge $next ]] || continue
		next=$((SECONDS + pause))
		count=$(matches "$pattern" "$log")
		line="$what: "
		if [[ $total != 0 ]]; then
			line+=$count
			[[ $count -gt $total ]] || line+=" of $total"
			line+=', '
		fi
		line+=$(duration "$SECONDS")
		if [[ -n $took && $took -gt $SECONDS ]]; then
			line+=", some $(duration $((took - SECONDS))) left"
		elif [[ $((count * 10)) -gt $total && $count -lt $total ]]; then
			line+=", some $(duration $((SECONDS * (total - count) / count))) left"
		fi
		show_line "$line"
	done
}

# share_terminal: processes that are started after this take turns with the terminal's line.
share_terminal() { exec 7>"$cache/lock-terminal" 9>&-; }
show_line() {
	if [[ -n $line_start ]]; then
		! flock -n 7 || printf '%s%s: %s' "$line_start" "${0##*/}" "$1" >&2
	else
		say "$1"
	fi
}

# on_what COMMAND...: prints the environment of a measurement as KEY: VALUE.
on_what() {
	printf 'machine:  %s processors, %s; load before: %s\n' "$(nproc)" \
		"$(sed -n 's/^model name[[:space:]]*: //p;T;q' /proc/cpuinfo)" \
		"$(cut -d ' ' -f 1 /proc/loadavg)"
	printf 'kernel:   %s\n' "$(uname -sr)"
	# shellcheck disable=SC2016 # for the shell that runs there
	printf 'compiler: %s\n' "$(lab sh -c '
		for compiler in rustc gcc; do "$compiler" --version | sed q; done
		clang --version | sed "s/^Debian //;q"' | paste -sd , | sed 's/,/, /g')"
	printf 'commit:   %s\ncommand:  %s\n' \
		"$(git -C "$project" describe --always --dirty 2>/dev/null || echo unknown)" "$*"
}
