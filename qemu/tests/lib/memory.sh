# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Moves the files that many tests open into the guest's memory: programs, their libraries, and
# modules of Python. Opening a file of the lab takes milliseconds, because the host is asked each
# time, and each start of a program opens several.

# in_memory: moves the files that it reads from stdin, by copies in the upper layer of the root. The
# old files stay as long as something uses them.
in_memory() {
	local file folder
	local -A folders=()
	while read -r file; do folders[${file%/*}]+=" $file"; done
	for folder in "${!folders[@]}"; do
		# shellcheck disable=SC2086 # words
		mkdir "$folder/.memory" && cp -a -t "$folder/.memory" ${folders[$folder]} &&
			mv -f -t "$folder" "$folder/.memory"/* && rmdir "$folder/.memory"
	done
}

# programs: prints those that many scripts start.
programs() {
	type -P awk bash cat chmod cp cut env ethtool grep head ip jq kmod mkdir mkfifo mktemp \
		mount mount.nfs nsenter ping python3 rdma readlink rm sed setpriv sh sleep sort \
		tail tc timeout umount unshare wc xargs | xargs readlink -f
}

# drivers: prints the libraries that programs load by name.
drivers() { printf '%s\n' /usr/lib/*/libibverbs/lib{rxe,siw}-*.so /usr/lib/*/librdmacm.so.1; }

# libraries PROGRAM...: prints the libraries that the programs and the drivers load.
libraries() {
	local program
	{
		# As ldd does, which takes longer.
		for program in "$@"; do LD_TRACE_LOADED_OBJECTS=1 "$program"; done
		drivers | xargs ldd
	} | awk '/ => \// { print $3 } $1 ~ /^\/.*[^:]$/ { print $1 }'
}

# python_modules: prints the compiled files of the modules that tests import.
python_modules() {
	python3 -sS - <<-'END'
		import contextlib, ctypes, functools, linecache, pathlib, random, re, select, signal
		import socket, struct, subprocess, sys, tempfile, threading, typing
		for module in list(sys.modules.values()):
		    spec = module.__spec__
		    if spec and spec.has_location:
		        print(spec.cached or spec.origin)
	END
}

move_into_memory() {
	local found=()
	mapfile -t found < <(programs)
	{
		printf '%s\n' "${found[@]}" /etc/ld.so.cache
		libraries "${found[@]}"
		drivers
		python_modules
		find /usr/lib/locale/C.utf8 -type f
	} | xargs readlink -e | sort -u | in_memory
}
