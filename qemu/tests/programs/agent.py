#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Does for module.sh what bash cannot: makes exactly one write, in a network namespace, and
returns its errno; and reads octets that may be NUL. Also reads and compares the files by
lib/module.py.

Reads lines, each with the name of a function and its arguments, separated by tabs, and answers
each with one line. Starts no process, so that a connection costs little more than the kernel's
work.
"""

import contextlib
import ctypes
import errno
import io
import os
import sys
import threading
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from shlex import quote

from lib import module
from lib.hosts import HOME, entered
from lib.module import newest, peer_of, stats  # for `query`

# Numbers of system calls on x86-64.
FINIT_MODULE, DELETE_MODULE = 313, 176
libc = ctypes.CDLL(None, use_errno=True)


def unescaped(text: str) -> bytes:
    """Returns the octets of a text with Python's escapes."""
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def error_of(function: Callable[..., object], *arguments: object) -> str:
    """Returns the name of the errno, or 0."""
    try:
        function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "0"


def write(netns: str, file: str, text: str) -> str:
    return module.write(netns, file, unescaped(text), HOME)


def octets(file: str) -> str:
    try:
        return module.read(file).hex()
    except OSError as error:
        return errno.errorcode[error.errno]


def write_then_stat(netns: str, file: str, text: str, other: str) -> str:
    return write(netns, file, text) + (" there" if os.path.exists(other) else " gone")


def times(netns: str, file: str, text: str, count: str, at_once: str) -> str:
    """Returns the time that all of the writes took, and then the time of each, in microseconds.
    Each thread has the file open before the first write."""
    def turns() -> None:
        with entered(netns):
            fd = os.open(file, os.O_WRONLY)
            ready.release()
            os.read(gate, 1)
            for _ in range(int(count) // int(at_once)):
                start = time.perf_counter_ns()
                outcome.append(error_of(os.write, fd, octets))
                took.append((time.perf_counter_ns() - start) // 1000)
            os.close(fd)

    took: list[int] = []
    outcome: list[str] = []
    octets = unescaped(text)
    ready = threading.Semaphore(0)
    gate, opened = os.pipe()
    threads = [threading.Thread(target=turns) for _ in range(int(at_once))]
    for thread in threads:
        thread.start()
    for _ in threads:
        if not ready.acquire(timeout=60):
            return "a thread does not become ready"
    start = time.perf_counter_ns()
    os.write(opened, bytes(len(threads)))
    for thread in threads:
        thread.join()
    all_of_it = (time.perf_counter_ns() - start) // 1000
    os.close(gate)
    os.close(opened)
    failures = [word for word in outcome if word != "0"]
    return " ".join(failures or map(str, [all_of_it, *sorted(took)]))


def cycles(netns: str, address: str, count: str) -> str:
    """Connects and closes both ends, `count` times. Returns the first errno, or 0."""
    for n in range(int(count)):
        sizes = f"send={1024 << n % 9} recv={1024 << n % 7} inv={n % 2}"
        found = [module.write(netns, "connect", f"{address} {sizes}".encode())]
        found += [module.write(netns, "close", f"connection {row[0]}".encode())
                  for row in module.rows() if row[2] == "client"]
        for outcome in found:
            if outcome != module.DONE:
                return outcome
    return module.DONE


def reading(file: str) -> int:
    """Returns how many nanoseconds reading a file takes."""
    start = time.monotonic_ns()
    fd = os.open(file, os.O_RDONLY)
    while os.read(fd, 1 << 20):
        pass
    os.close(fd)
    return time.monotonic_ns() - start


def content(fd: int) -> bytes:
    return b"".join(iter(lambda: os.read(fd, 7), b""))


def moments(file: str) -> str:
    """Returns whether an open file shows one moment, and whether it shows another one when it is
    read from the beginning again."""
    fd = os.open(file, os.O_RDONLY)
    first = content(fd)
    time.sleep(0.02)
    kept = os.pread(fd, 1 << 20, 0) == first and os.lseek(fd, 0, os.SEEK_CUR) == len(first)
    os.lseek(fd, 0, os.SEEK_SET)
    later = content(fd)
    os.close(fd)
    return ("one moment" if kept else "several") + (", another" if later != first else ", the same")


def reports(netns: str, file: str, *texts: str) -> str:
    """Returns the first value of the report after each text is written: as the writer's open file
    and as one that was opened before show it; then as the latter shows it when it is rewound."""
    fd, other = os.open(file, os.O_RDWR), os.open(file, os.O_RDONLY)
    shown: list[str] = []

    def show(report: bytes) -> None:
        shown.append(report.split(b"\n")[0].split(b": ")[1].decode())

    try:
        with entered(netns):
            for text in texts:
                os.write(fd, text.encode())
                show(content(fd))
                show(os.pread(other, 1 << 20, 0))
            os.lseek(other, 0, os.SEEK_SET)
            show(content(other))
    except OSError as error:
        shown.append(errno.errorcode[error.errno])
    finally:
        os.close(fd)
        os.close(other)
    return " ".join(shown)


def nobody(file: str) -> str:
    """Returns the results of an ordinary user's attempts to open a file."""
    os.seteuid(65534)
    outcome = [error_of(lambda: os.close(os.open(file, flags)))
               for flags in (os.O_RDONLY, os.O_WRONLY)]
    os.seteuid(0)
    return " ".join(outcome)


def check(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), "")


def load(file: str) -> None:
    fd = os.open(file, os.O_RDONLY)
    try:
        check(libc.syscall(FINIT_MODULE, fd, b"", 0))
    finally:
        os.close(fd)


def unload(_: str) -> None:
    check(libc.syscall(DELETE_MODULE, b"rpcrdma_cm", os.O_NONBLOCK))


def get(file: str) -> None:
    fd = os.open(file, os.O_RDONLY)
    try:
        while os.read(fd, 65536):
            pass
    finally:
        os.close(fd)


def failing(nth: str, netns: str, what: str, file: str, text: str) -> str:
    """Runs an operation while its `nth` allocation fails. Returns its errno, and 1 if that
    allocation was reached."""
    with entered(netns):
        fd, data = -1, text.encode()
        if what == "put":
            # Opened before: only the allocations of the write are to fail.
            fd = os.open(file, os.O_WRONLY)
        faults = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
        os.write(faults, nth.encode())
        if fd >= 0:
            outcome = error_of(os.write, fd, data)
        else:
            outcome = error_of(globals()[what], file)
        left = int(os.pread(faults, 16, 0))
        os.write(faults, b"0")
        os.close(faults)
        if fd >= 0:
            os.close(fd)
    return f"{outcome} {int(left == 0)}"


def row(file: str, number: str) -> list[str]:
    return next((row for row in module.rows(file) if row[0] == number), [])


def ids_of(*words: str) -> list[str]:
    return [row[0] for row in module.rows() if all(map(fnmatchcase, row[1:], words))]


def counter(name: str) -> int:
    return stats()[name]


def nfs_read(count: str, *names: str) -> str:
    # Only here, because it loads the libraries of RDMA.
    from lib import messages
    return messages.nfs_read(int(count), *names).hex()


def same_info(number: str, *words: str) -> tuple[list[str], dict[str, str]]:
    lines = module.read(f"connection/{number}/info").decode().splitlines()
    found = dict(line.split(": ", 1) for line in lines)
    for key, wanted in (word.split("=", 1) for word in words):
        if found.get(key, "missing") != wanted:
            print(f"connection {number}: wanted {key}={wanted}, found {found.get(key)}")
    return lines, found


def event(*words: str) -> dict[str, str]:
    wanted = dict(word.split("=", 1) for word in words).items()
    for event in reversed(module.history()):
        if wanted <= event.items():
            return event
    raise LookupError(module.read("history").decode())


def consistent_history() -> None:
    overwritten, events = stats()["history_overwritten"], module.history()
    established: dict[tuple[str, str], object] = {}
    last = 0.0
    for event in events:
        key, name, lasted = (event["ID"], event["GEN"]), event["EVENT"], event["LASTED_MS"]
        if float(event["TIME"]) < last:
            print("before the event in front of it:", event)
        last = float(event["TIME"])
        if name.endswith("established"):
            if key in established:
                print("established twice:", event)
            established[key] = event
        elif name == "lost" or name == "closed" and lasted != "-":
            if not established.pop(key, None) and lasted != "-" and not overwritten:
                print("ends, and was not established:", event)
    for row in module.rows():
        if row[3] == "established":
            established.pop((row[0], row[8]), None)
    for event in established.values():
        print("has not ended:", event)


def bash(value: object) -> str:
    """Returns a value as bash assigns it."""
    if isinstance(value, dict):
        return f"({' '.join(f'[{key}]={quote(str(word))}' for key, word in value.items())})"
    return f"({' '.join(map(quote, value))})" if isinstance(value, list) else quote(str(value))


def query(names: str, function: str, *arguments: str) -> str:
    """Writes what a function returns, and what it prints, to a file that bash executes."""
    variables: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        try:
            found = globals()[function](*arguments)
            variables = dict(zip(names.split(), found if " " in names else [found]))
        except (OSError, LookupError) as error:
            print(f"{function} {' '.join(arguments)}: {error}")
    printed = output.getvalue()
    failed = int(bool(printed) or any(value in ("", [], {}) for value in variables.values()))
    with open(sys.argv[1], "w", encoding="utf-8") as told:
        print(*(f"{name}={bash(value)}" for name, value in variables.items()),
              f"printf %s {quote(printed)}; return {failed}", sep="\n", file=told)
    return ""


for line in sys.stdin:
    command, *words = line.rstrip("\n").split("\t")
    print(globals()[command](*words), flush=True)
