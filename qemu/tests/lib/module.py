# SPDX-License-Identifier: GPL-2.0
"""The module and its files in debugfs."""

import errno
import os
import threading
import time
from types import TracebackType

from lib import hosts
from lib.hosts import TRANSPORT
from lib.ktap import Failed, fail, same

DEBUGFS = "/sys/kernel/debug/rpcrdma_cm"

# InfiniBand's CM has fields of a fixed size for private data, padded with zeros, and
# rdma_cm takes 36 of a request's 92 octets. MPA counts: in one octet in the kernel, and
# MPAv2 takes 4 (RFC 6581, section 9).
REQUEST_ROOM, REPLY_ROOM = {"rxe": (56, 196), "siw": (251, 251)}[TRANSPORT]
NAME = {"rxe": "roce", "siw": "iwarp"}[TRANSPORT]

# What a write that succeeds ends with.
DONE = "0"


def load() -> None:
    path = os.environ["MODULE"]
    needed = hosts.run("modinfo", "-F", "depends", path).strip().replace(",", " ").split()
    if needed:
        hosts.run("modprobe", "-a", *needed)
    hosts.run("insmod", path)


def unload() -> None:
    if os.path.exists("/sys/module/rpcrdma_cm"):
        hosts.run("rmmod", "rpcrdma_cm")


def write(netns: str | int, file: str, octets: bytes, back: int | None = None) -> str:
    """Writes once to a file, from within a network namespace. Returns the errno's name, or
    DONE."""
    try:
        with hosts.entered(netns, back):
            fd = os.open(os.path.join(DEBUGFS, file), os.O_WRONLY)
            try:
                count = os.write(fd, octets)
            finally:
                os.close(fd)
    except OSError as error:
        return errno.errorcode[error.errno]
    return DONE if count == len(octets) else f"{count} of {len(octets)}"


def read(file: str) -> bytes:
    with open(os.path.join(DEBUGFS, file), "rb") as opened:
        return opened.read()


def last_error() -> str:
    return read("last_error").decode().strip()


def control(netns: str | int, file: str, line: str) -> None:
    """Writes a line to a control file, which has to take it."""
    found = write(netns, file, f"{line}\n".encode())
    if found != DONE:
        raise Failed(f"{line} > {file}: {found}, {last_error()}")


class Command:
    """A line that is written to a control file meanwhile, in a thread of its own. The
    `with` ends when the write has."""

    # More than any timeout in the tests.
    SECONDS = 20

    def __init__(self, netns: str | int, file: str, line: str, outcome: str = DONE) -> None:
        self.name = f"{line} > {file}"
        self.wanted = outcome
        self.found = "nothing in time"
        self.thread = threading.Thread(target=self.write, args=(netns, file, line), daemon=True)

    def write(self, netns: str | int, file: str, line: str) -> None:
        self.found = write(netns, file, f"{line}\n".encode())

    def __enter__(self) -> "Command":
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.thread.join(self.SECONDS)
        if not same(f"{self.name} ended with", self.wanted, self.found):
            fail(f"last_error: {last_error()}")


def rows(file: str = "connections") -> list[list[str]]:
    """The lines of a table below its head, word by word."""
    return [line.split() for line in read(file).decode().splitlines()[1:]]


def own_rows() -> list[list[str]]:
    """The connections of the module itself."""
    return [row for row in rows() if row[1] == "module"]


def none_live() -> bool:
    return not own_rows()


def newest(role: str) -> str:
    """The newest connection of the module's in that role, or nothing."""
    ids = [row[0] for row in own_rows() if row[2] == role]
    return ids[-1] if ids else ""


def is_gone(number: str) -> bool:
    return not os.path.exists(f"{DEBUGFS}/connection/{number}")


def info(number: str) -> dict[str, str]:
    """Returns the keys of a connection; none where there is no such connection, or none any
    more when it is read."""
    try:
        lines = read(f"connection/{number}/info").decode().splitlines()
    except OSError:
        return {}
    return dict(line.split(": ", 1) for line in lines)


def is_state(number: str, state: str) -> bool:
    return info(number).get("state") == state


def stats() -> dict[str, int]:
    return {key: int(value) for key, value in
            (line.split(": ") for line in read("stats").decode().splitlines())}


def same_info(number: str, seconds: float = 0, **wanted: object) -> dict[str, str]:
    """Makes the check fail where a connection does not say this within so many seconds.
    Returns what it says."""
    end = time.monotonic() + seconds
    while True:
        found = info(number)
        wrong = [key for key, value in wanted.items() if found.get(key) != str(value)]
        if not wrong or time.monotonic() > end:
            break
        time.sleep(0.05)
    for key in wrong:
        same(f"connection {number}, {key}", str(wanted[key]), found.get(key, "nothing"))
    return found


def arrives(octets: bytes, room: int) -> bytes:
    """How private data arrives for which there is that room."""
    return octets if TRANSPORT == "siw" else octets.ljust(room, b"\0")


def offer(send: int, receive: int, invalidation: bool) -> bytes:
    """The message of RFC 8797, section 4."""
    return bytes.fromhex("f6ab0e1801") + bytes(
        [invalidation, send // 1024 - 1, receive // 1024 - 1]
    )
