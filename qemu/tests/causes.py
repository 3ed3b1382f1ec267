#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Why connections ended: many ends of each kind, and each has its cause in `history`.

The ends race with the completions that they flush, and the order differs from one connection to
the next. So each kind is tried with COUNT connections."""

# test: debug.rxe debug.siw
# soak: stock.rxe

import collections
import contextlib
import socket
import struct
from collections.abc import Callable, Iterator

from lib import hosts, module
from lib.hosts import HOME, TRANSPORT, NfsServer
from lib.ktap import same, wait_for
from lib.module import Command, control, info, own_rows, read
from lib.peer import Peer
from lib.script import Script
from lib.wire import octets, segment

COUNT = 30
NFS_PORT = 20049
# RFC 8797, section 4: sizes of 4096.
PRIVATE = bytes.fromhex("f6ab0e1801000303")
# RFC 5044, section 7.1: the keys of a Request and a Reply Frame; RFC 6581, section 9: the bit S.
REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
ENHANCED = 0x1000
# A Steering Tag of no memory.
NO_TAG = 0x12345600

CLOSED = "closed: -"
PEER = "lost: disconnected by the peer"
DEVICE = "lost: the device was removed"
FAILED = "lost: the queue pair failed: "

script = Script()
check, need = script.check, script.need
ports = iter(range(2001, 2100))
nfs = NfsServer()


def endings(role: str, port: int, origin: str = "module") -> collections.Counter[str]:
    """Counts the events and reasons by which connections to a port ended."""
    found: collections.Counter[str] = collections.Counter()
    for line in read("history").decode().splitlines()[1:]:
        words = line.split(None, 13)
        server = words[6 if role == "server" else 7]
        if (words[3], words[4]) == (origin, role) and server.endswith(f":{port}") \
                and words[5] in ("lost", "closed"):
            found[f"{words[5]}: {words[13]}"] += 1
    return found


def have_ended(role: str, port: int) -> bool:
    return endings(role, port).total() >= COUNT


def ended(role: str, port: int, cause: str) -> None:
    """Compares the causes of all ends at one side."""
    wait_for(20, have_ended, role, port)
    same(f"the ends of the {role}", {cause: COUNT}, dict(endings(role, port)))


def ids(role: str, port: int) -> list[str]:
    """Returns the numbers of the module's live connections to a port."""
    column = 6 if role == "server" else 7
    return [row[0] for row in own_rows()
            if row[2:4] == [role, "established"] and row[column].endswith(f":{port}")]


def are_live(role: str, port: int) -> bool:
    return len(ids(role, port)) == COUNT


def none_live(role: str, port: int) -> bool:
    return not any(row for row in own_rows() if row[6 if role == "server" else 7]
                   .endswith(f":{port}") and row[2] == role)


def listen(port: int) -> None:
    script.listen(port, f"max={COUNT} credits=4 inv=1")


def connect(port: int, words: str = "null=0") -> None:
    """Makes a connection of the module as client."""
    control(script.pair.a.path, "connect", f"{script.pair.b.ip4}:{port} credits=4 {words}")


def close(role: str, port: int) -> None:
    """Closes the module's connections at one side."""
    for number in ids(role, port):
        control(HOME, "close", f"connection {number}")


def clients(port: int, words: str = "null=0") -> None:
    """Makes connections of the module with itself."""
    listen(port)
    for _ in range(COUNT):
        connect(port, words)
    wait_for(20, are_live, "server", port)


@contextlib.contextmanager
def peer_as_client(port: int) -> Iterator[Peer]:
    """Connects a program to the module, and closes its end. Waits for the end of the module."""
    known = endings("server", port).total()
    script.peer.connect(script.pair.a.path, script.pair.b.ip4, port, PRIVATE)
    wait_for(20, ids, "server", port)
    yield script.peer
    script.peer.close()
    wait_for(20, lambda: endings("server", port).total() > known)


class Tcp:
    """iWARP by plain TCP: MPA without CRC and markers, and nothing behind that."""

    @staticmethod
    def read(connection: socket.socket, count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = connection.recv(count - len(found))
            if not more:
                raise ConnectionError(f"{len(found)} of {count} octets")
            found += more
        return found

    @classmethod
    def frame(cls, connection: socket.socket, key: bytes) -> tuple[int, bytes]:
        """Receives a frame: its bits and its private data."""
        found, bits, length = struct.unpack("!16sHH", cls.read(connection, 20))
        same("the key of the frame", key, found)
        return bits, cls.read(connection, length)

    @staticmethod
    def build(key: bytes, bits: int, private: bytes) -> bytes:
        return struct.pack("!16sHH", key, bits, len(private)) + private

    @classmethod
    @contextlib.contextmanager
    def clients(cls, port: int) -> Iterator[list[socket.socket]]:
        listen(port)
        with contextlib.ExitStack() as stack:
            connections = []
            for _ in range(COUNT):
                with hosts.entered(script.pair.a.path):
                    connection = socket.create_connection((script.pair.b.ip4, port), 10)
                stack.enter_context(connection)
                connection.sendall(cls.build(REQUEST, 1, PRIVATE))
                cls.frame(connection, REPLY)
                connections.append(connection)
            wait_for(20, are_live, "server", port)
            yield connections

    @classmethod
    @contextlib.contextmanager
    def servers(cls, port: int) -> Iterator[list[socket.socket]]:
        with contextlib.ExitStack() as stack:
            with hosts.entered(script.pair.b.path):
                listener = socket.create_server((script.pair.b.ip4, port))
            stack.enter_context(listener)
            connections = []
            for _ in range(COUNT):
                words = f"{script.pair.b.ip4}:{port} credits=4 null=0"
                with Command(script.pair.a.path, "connect", words):
                    connection = stack.enter_context(listener.accept()[0])
                    bits, private = cls.frame(connection, REQUEST)
                    # Its ORD becomes the IRD here, and the other way round.
                    depths = private[2:4] + private[:2] if bits & ENHANCED else b""
                    connection.sendall(cls.build(REPLY, bits, depths + PRIVATE))
                connections.append(connection)
            yield connections

    @staticmethod
    def end(connection: socket.socket, reset: bool) -> None:
        """Sends FIN or RST."""
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def module_closes(role: str) -> None:
    """One end of the module closes, and the other end sees that."""
    port = next(ports)
    clients(port)
    close(role, port)
    other = "server" if role == "client" else "client"
    ended(role, port, CLOSED)
    ended(other, port, PEER)


def shows_failure() -> None:
    """A client that connects again shows the cause in `info`."""
    port = next(ports)
    clients(port, "null=0 reconnect=1")
    numbers = ids("client", port)
    close("server", port)
    wait_for(30, lambda: all(info(number).get("generation") == "2" for number in numbers))
    causes = collections.Counter(info(number)["last_failure"] for number in numbers)
    same("last_failure", {"disconnected by the peer": COUNT}, dict(causes))
    close("client", port)


def peer_disconnects() -> None:
    port = next(ports)
    listen(port)
    for _ in range(COUNT):
        with peer_as_client(port):
            pass
    ended("server", port, PEER)


def server_disconnects() -> None:
    port = next(ports)
    script.peer.listen(script.pair.b.path, script.pair.b.ip4, port)
    for _ in range(COUNT):
        words = f"{script.pair.b.ip4}:{port} credits=4 null=0"
        with Command(script.pair.a.path, "connect", words):
            script.peer.accept(PRIVATE)
        script.peer.close()
    ended("client", port, PEER)


def tcp_ends(role: str, reset: bool) -> None:
    """`role` is that of the module."""
    port = next(ports)
    with (Tcp.clients if role == "server" else Tcp.servers)(port) as connections:
        for connection in connections:
            Tcp.end(connection, reset)
        ended(role, port, PEER)


def peer_fails(post: Callable[[Peer], None], cause: str) -> None:
    """A peer makes the module's queue pair fail, and disconnects because of its own error."""
    port = next(ports)
    listen(port)
    for _ in range(COUNT):
        with peer_as_client(port) as peer, contextlib.suppress(RuntimeError):
            post(peer)
    ended("server", port, cause)


def writes_nowhere(peer: Peer) -> None:
    """An RDMA Write without memory: the responder's device refuses it."""
    peer.write(NO_TAG, 0, bytes(64))


def sends_bad_chunk(peer: Peer) -> None:
    """A Long Call whose Read chunk has no memory: the module's RDMA Read fails."""
    # RFC 8166, section 4.1.2: xid, version, credits, RDMA_NOMSG, Read list, no other lists.
    peer.send(octets(f"1 1 4 1  1 0 {segment(NO_TAG, 64, 0)} 0  0  0"))
    peer.receive(5000)


def device_removed() -> None:
    """The device of the clients is removed. Only for these the device is the cause."""
    port = next(ports)
    clients(port)
    device = script.pair.a.rdma
    hosts.run("rdma", "link", "delete", device)
    ended("client", port, DEVICE)
    wait_for(20, have_ended, "server", port)
    script.pair.a.run("rdma", "link", "add", device, "type", TRANSPORT, "netdev",
                      script.pair.a.device)
    close("server", port)


def nfs_starts() -> None:
    nfs.start(script.pair, 10)
    script.at_end(nfs.end)


def nfs_server_stops() -> None:
    """The kernel's NFS server ends connections of the module's client."""
    for _ in range(COUNT):
        connect(NFS_PORT)
    hosts.run(*nfs.command("rpc.nfsd 0"))
    ended("client", NFS_PORT, PEER)


script.skip_unless(hosts.has_rdma_cm, "user space has no rdma_cm: no module rdma_ucm")
script.set_up(peer=False)
# Before a program uses siw: removing its device would wait for the end of the program.
check("the clients' device is removed", device_removed)
for its_role in "client", "server":
    check(f"both ends are the module's: its {its_role} closes", module_closes, its_role)
check("last_failure: the server closes", shows_failure)
need("a program starts", script.start_peer)
check("a program as client disconnects", peer_disconnects)
check("a program as server disconnects", server_disconnects)
if TRANSPORT == "siw":
    for its_role in "client", "server":
        for its_end in "FIN", "RST":
            check(f"{its_end} by plain TCP to the module as {its_role}", tcp_ends, its_role,
                  its_end == "RST")
# siw ends the connection, or has received TERMINATE, and reports no error.
check("an RDMA Write without memory is why a connection ends", peer_fails, writes_nowhere,
      PEER if TRANSPORT == "siw" else f"{FAILED}QP access error")
check("an RDMA Read without memory is why a connection ends", peer_fails, sends_bad_chunk,
      PEER if TRANSPORT == "siw" else f"{FAILED}remote access error")
need("an NFS server for the causes", nfs_starts)
check("the kernel's NFS server stops", nfs_server_stops)
check("every connection with a cause is closed", control, HOME, "close", "all")
script.check_none_left()
script.run()
