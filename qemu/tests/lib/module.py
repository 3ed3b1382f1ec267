# SPDX-License-Identifier: GPL-2.0
"""The module and its files in debugfs."""

import errno
import os
import re
import threading
import time
from types import TracebackType

from lib import hosts
from lib.ktap import Failed, fail, same

DEBUGFS = "/sys/kernel/debug/rpcrdma_cm"

# The octets of private data that a REQ and a REP carry. On RoCE the CM fills them up with zeros.
REQUEST_ROOM, REPLY_ROOM = (56, 196) if hosts.TRANSPORT == "rxe" else (251, 251)

# The result of a write that succeeds.
DONE = "0"


def load() -> None:
    hosts.shell("module_load")


def unload() -> None:
    hosts.shell("module_unload")


def write(netns: str | int, file: str, octets: bytes, back: int | None = None,
          tries: int = 3) -> str:
    """Writes once to a file, in a network namespace. Returns the errno's name, or DONE. A
    `connect` whose port TCP uses is written again."""
    try:
        with hosts.entered(netns, back):
            fd = os.open(os.path.join(DEBUGFS, file), os.O_WRONLY)
            try:
                count = os.write(fd, octets)
            finally:
                os.close(fd)
    except OSError as error:
        # rdma_cm chooses a port that is free in rdma_cm. With siw, TCP may use it still.
        if (file, error.errno) == ("connect", errno.EADDRINUSE) and tries > 1:
            return write(netns, file, octets, back, tries - 1)
        return errno.errorcode[error.errno]
    return DONE if count == len(octets) else f"{count} of {len(octets)}"


def read(file: str) -> bytes:
    with open(os.path.join(DEBUGFS, file), "rb") as opened:
        return opened.read()


def last_error() -> str:
    return read("last_error").decode().strip()


def control(netns: str | int, file: str, line: str) -> None:
    """Writes a line to a control file. Raises Failed if that fails."""
    found = write(netns, file, f"{line}\n".encode())
    if found != DONE:
        raise Failed(f"{line} > {file}: {found}, {last_error()}")


class Command:
    """Writes a line to a control file in a thread of its own, for the time of a `with`. The
    `with` ends when the write has ended, and compares its result with `outcome`."""

    # Longer than any timeout in the tests.
    SECONDS = 60

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


def call_report() -> dict[str, str]:
    """Returns the keys of the file `call`: the outcome of the latest calls."""
    return dict(line.split(": ", 1) for line in read("call").decode().splitlines())


def rows(file: str = "connections") -> list[list[str]]:
    """Returns the words of each line of a table, without its header line."""
    return [line.split() for line in read(file).decode().splitlines()[1:]]


def history() -> list[dict[str, str]]:
    """Returns the events, by the names of the columns. Only the last one, REASON, has words."""
    header, *lines = read("history").decode().splitlines()
    columns = header.split()
    return [dict(zip(columns, line.split(maxsplit=len(columns) - 1))) for line in lines]


def own_rows() -> list[list[str]]:
    """Returns the lines of the module's own connections."""
    return [row for row in rows() if row[1] == "module"]


def none_live() -> bool:
    return not own_rows()


def newest(role: str) -> str:
    """Returns the number of the module's newest connection in that role, or an empty string."""
    ids = [row[0] for row in own_rows() if row[2] == role]
    return ids[-1] if ids else ""


def peer_of(number: str) -> str:
    """Returns the number of the connection that is the other end, or an empty string. The two ends
    name different zones."""
    ends = {row[0]: [re.sub("%[0-9]+", "", end) for end in row[6:8]] for row in rows()}
    return next((peer for peer in reversed(ends) if ends[peer][::-1] == ends.get(number)), "")


def is_gone(number: str) -> bool:
    return not os.path.exists(f"{DEBUGFS}/connection/{number}")


def info(number: str) -> dict[str, str]:
    """Returns the keys of a connection, or no keys if there is no such connection."""
    try:
        lines = read(f"connection/{number}/info").decode().splitlines()
    except OSError:
        return {}
    return dict(line.split(": ", 1) for line in lines)


def is_state(number: str, state: str) -> bool:
    return info(number).get("state") == state


def stats() -> dict[str, int]:
    return {key: int(value) for key, value in
            (line.split(": ", 1) for line in read("stats").decode().splitlines())
            if not key.startswith("observing")}


def same_info(number: str, seconds: float = 0, **wanted: object) -> dict[str, str]:
    """Makes the check fail if the keys of a connection do not have these values within that
    time. Returns all of its keys."""
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
