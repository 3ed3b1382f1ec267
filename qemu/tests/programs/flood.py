#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A user who floods rdma_cm, by the files of rdma_ucm alone: no library, no device.

usage: flood.py ADDRESS PORT [UID]

Listens at PORT and the next ones. With UID, root opens the file as that user, as a program with
the set-user-ID bit would do for root. Reads commands, and answers each with one line:

    refused COUNT       binds COUNT ids, and connects each with the Format Identifier: EINVAL,
                        because no address was resolved
    pending COUNT       connects COUNT ids to listeners of its own, which never accept
    rejected COUNT      connects COUNT ids to a port without a listener, whose requests are rejected
    full COUNT          connects COUNT ids at once to a listener of its own, whose backlog is 1: the
                        other requests are refused
    churn COUNT         connects and destroys an id, COUNT times
    visit COUNT PORT    establishes a connection to PORT and destroys its id, COUNT times
    wildcard COUNT      listens at all addresses and destroys the listener, COUNT times
    bind COUNT          binds COUNT ids
    drop                destroys all ids
    become-root         closes the file as root, which destroys all ids
"""

import ctypes
import errno
import os
import select
import struct
import sys

CREATE, DESTROY, RESOLVE_ROUTE, CONNECT, LISTEN, ACCEPT, GET_EVENT = 0, 1, 4, 6, 7, 8, 12
BIND, RESOLVE = 20, 21
PORT_SPACE_TCP, TYPE_RC, AF_INET = 0x0106, 2, 2
ADDRESS_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE = 0, 2, 5
BACKLOG = 512
MESSAGE = bytes.fromhex("f6ab0e1801000303")
QUEUE_PAIR = 0x123456
CONNECTION = struct.pack("<I", 0) + MESSAGE.ljust(256, b"\0") + \
    struct.pack("<8B", len(MESSAGE), 0, 1, 1, 0, 7, 7, 1)

if sys.argv[3:]:
    os.setresuid(int(sys.argv[3]), int(sys.argv[3]), 0)
fd = os.open("/dev/infiniband/rdma_cm", os.O_RDWR | os.O_NONBLOCK)
# As a sockaddr_in, without importing socket, which takes longer than the rest of the start.
address = bytes(map(int, sys.argv[1].split(".")))
ids: list[int] = []
# Where the kernel puts its answers.
answers = ctypes.create_string_buffer(328)
answers_at = struct.pack("<Q", ctypes.addressof(answers))


def command(number: int, octets: bytes, answer: int = 0) -> None:
    os.write(fd, struct.pack("<IHH", number, len(octets), answer) + octets)


def with_answer(number: int, before: bytes, after: bytes, size: int) -> bytes:
    """Makes a command whose octets have a pointer to its answer, and returns the answer."""
    command(number, before + answers_at + after, size)
    return answers[:size]


def create() -> int:
    after = struct.pack("<HB5x", PORT_SPACE_TCP, TYPE_RC)
    found = struct.unpack("<I", with_answer(CREATE, struct.pack("<Q", 1), after, 4))[0]
    ids.append(found)
    return found


def destroy(number: int) -> None:
    with_answer(DESTROY, b"", struct.pack("<II", number, 0), 4)


def place(port: int, host: bytes = address) -> bytes:
    return struct.pack("<H", AF_INET) + struct.pack(">H", port) + host + bytes(120)


def bind(number: int, port: int = 0, host: bytes = address) -> None:
    command(BIND, struct.pack("<IHH", number, 16, 0) + place(port, host))


def wait(event: int) -> None:
    """Takes events until this one, which has to be a success."""
    while True:
        if not select.select([fd], [], [], 10)[0]:
            raise TimeoutError(f"no event {event}")
        found = struct.unpack_from("<QIII", with_answer(GET_EVENT, b"", b"", 328))
        if found[2] == event and not found[3]:
            return


def connect(number: int, queue_pair: int = QUEUE_PAIR) -> None:
    command(CONNECT, struct.pack("<I", queue_pair) + CONNECTION +
            struct.pack("<IIII", number, 0, 0, 0))


def route(number: int, port: int) -> None:
    command(RESOLVE, struct.pack("<IIHHI", number, 2000, 0, 16, 0) + bytes(128) + place(port))
    wait(ADDRESS_RESOLVED)
    command(RESOLVE_ROUTE, struct.pack("<II", number, 2000))
    wait(ROUTE_RESOLVED)


def listen(port: int, backlog: int = BACKLOG, host: bytes = address) -> None:
    number = create()
    bind(number, port, host)
    command(LISTEN, struct.pack("<II", number, backlog))


def refused(count: int) -> str:
    failed = 0
    for _ in range(count):
        number = create()
        bind(number)
        try:
            connect(number)
        except OSError as error:
            failed += error.errno == errno.EINVAL
    return f"{failed}"


def pending(count: int) -> str:
    for n in range(count):
        port = int(sys.argv[2]) + n // BACKLOG
        if n % BACKLOG == 0:
            listen(port)
        number = create()
        route(number, port)
        connect(number)
    return f"{count}"


def rejected(count: int) -> str:
    for _ in range(count):
        number = create()
        route(number, 1)
        connect(number)
    return f"{count}"


def full(count: int) -> str:
    port = int(sys.argv[2])
    listen(port, 1)
    numbers = [create() for _ in range(count)]
    for number in numbers:
        route(number, port)
    # Reading an event would make room in the backlog. The CM rejects a request for a queue pair
    # that has another one, before the listener sees it.
    for n, number in enumerate(numbers):
        connect(number, QUEUE_PAIR + n)
    return f"{count}"


def wildcard(count: int) -> str:
    for _ in range(count):
        listen(0, host=bytes(4))
        destroy(ids.pop())
    return f"{count}"


def churn(count: int) -> str:
    for _ in range(count):
        rejected(1)
        destroy(ids.pop())
    return f"{count}"


def visit(count: int, port: int) -> str:
    for n in range(count):
        number = create()
        route(number, port)
        connect(number, QUEUE_PAIR + n)
        wait(CONNECT_RESPONSE)
        # Sends RTU.
        command(ACCEPT, bytes(12 + len(CONNECTION)) + struct.pack("<IIII", number, 0, 0, 0))
        destroy(ids.pop())
    return f"{count}"


def bind_all(count: int) -> str:
    for _ in range(count):
        bind(create())
    return f"{count}"


def drop() -> str:
    while ids:
        destroy(ids.pop())
    return "done"


def become_root() -> str:
    os.setresuid(0, 0, 0)
    os.close(fd)
    return "done"


commands = {"refused": refused, "pending": pending, "rejected": rejected, "full": full,
            "churn": churn, "visit": visit, "wildcard": wildcard, "bind": bind_all,
            "drop": drop, "become-root": become_root}
for line in sys.stdin:
    word, *rest = line.split()
    try:
        print(commands[word](*map(int, rest)), flush=True)
    except OSError as error:
        print(f"failed: {word}: {error}", flush=True)
