#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Why connections ended: many ends of each kind, and each has its cause in `history`.

The ends race with the completions that they flush, and the order differs from one connection to
the next. So each kind is tried with COUNT connections."""

# test: debug.rxe debug.siw
# soak: stock.rxe

import collections
import contextlib
import os
import socket
from collections.abc import Callable, Iterator

from lib import hosts
from lib.hosts import HOME, TRANSPORT
from lib.ktap import same, wait_for
from lib.messages import RDMA_MSG, RDMA_NOMSG, Segment, header, offer, split, success
from lib.module import Command, control, history, info, is_gone, own_rows, same_info
from lib.mpa import SEND, Tcp
from lib.peer import CONNECT_REQUEST, ESTABLISHED, Peer
from lib.script import Script

FULL = os.environ.get("FULL")
COUNT = 30 if FULL else 10
NFS_PORT = 20049
PRIVATE = offer(4096, 4096)
# A Send of this size needs more room than a TCP socket has.
LARGE = 262144
# A Steering Tag of no memory.
NO_TAG = 0x12345600

CLOSED = "closed: -"
PEER = "lost: disconnected by the peer"
DEVICE = "lost: the device was removed"
UNKNOWN = "lost: unknown cause"
ACCESS_ERROR = "the queue pair failed: QP access error"
FAILED = "lost: the queue pair failed: "
REJECTED = "lost: the peer rejected the connection: "

script = Script()
check, need = script.check, script.need
ports = iter(range(2001, 2100))


def endings(role: str, port: int) -> collections.Counter[str]:
    """Counts the events and reasons by which the module's connections to a port ended."""
    server = "LOCAL" if role == "server" else "REMOTE"
    # The detail of an unknown cause depends on whether the flush or DISCONNECTED comes first.
    return collections.Counter(
        UNKNOWN if "unknown cause" in row["REASON"] else f"{row['EVENT']}: {row['REASON']}"
        for row in history()
        if (row["ORIGIN"], row["ROLE"]) == ("module", role)
        and row[server].endswith(f":{port}") and row["EVENT"] in ("lost", "closed"))


def have_ended(role: str, port: int) -> bool:
    return endings(role, port).total() >= COUNT


def ended(role: str, port: int, cause: str, also: str = "") -> None:
    """Compares the causes of all ends at one side. Each of them is right if two are."""
    wait_for(20, have_ended, role, port)
    found = endings(role, port)
    found[cause] += found.pop(also, 0)
    same(f"the ends of the {role}", {cause: COUNT}, dict(found))


def ids(role: str, port: int, state: str = "established") -> list[str]:
    """Returns the numbers of the module's connections to a port that are in a state."""
    column = 6 if role == "server" else 7
    return [row[0] for row in own_rows()
            if row[2:4] == [role, state] and row[column].endswith(f":{port}")]


def are_live(role: str, port: int) -> bool:
    return len(ids(role, port)) == COUNT


def listen(port: int) -> None:
    # A client may connect again before the server's end of its last connection is gone.
    script.listen(port, f"max={2 * COUNT} credits=4 inv=1")


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
    script.peer.connect(script.pair.a.path, script.pair.b.ip4, port, PRIVATE)
    wait_for(20, ids, "server", port)
    yield script.peer
    script.peer.close()
    # Reading `history` for each connection would take longer than the connection.
    wait_for(20, lambda: not ids("server", port))


def tcp_clients(port: int) -> list[Tcp]:
    listen(port)
    found = [Tcp.connect(script.pair.a, script.pair.b, port, PRIVATE) for _ in range(COUNT)]
    wait_for(20, are_live, "server", port)
    return found


def tcp_servers(port: int, keys: str = "credits=4", private: bytes = PRIVATE) -> list[Tcp]:
    with hosts.entered(script.pair.b.path):
        listener = socket.create_server((script.pair.b.ip4, port))
    found = []
    with listener:
        for _ in range(COUNT):
            words = f"{script.pair.b.ip4}:{port} {keys} null=0"
            with Command(script.pair.a.path, "connect", words):
                found.append(Tcp.accept(listener, private))
    return found


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
        script.connect_to_peer(port, "credits=4 null=0", PRIVATE)
        script.peer.close()
    ended("client", port, PEER)


def tcp_ends(role: str, end: Callable[[Tcp], None]) -> None:
    """`role` is that of the module."""
    port = next(ports)
    connections = (tcp_clients if role == "server" else tcp_servers)(port)
    for connection in connections:
        end(connection)
    ended(role, port, PEER)


def tcp_ends_call(size: int, begins: Callable[[Tcp], None], end: Callable[[Tcp], None]) -> None:
    """A server ends the connection while a call is being sent. `size` is its threshold, and
    `begins` receives the first octets."""
    port = next(ports)
    servers = tcp_servers(port, f"send={LARGE} recv={LARGE} credits=1", offer(size, size))
    for number, tcp in zip(ids("client", port), servers, strict=True):
        # The first call has at most 1024 octets.
        with Command(HOME, "call", f"connection {number} null"):
            xid, *_ = split(tcp.segment())
            tcp.first(SEND, header(xid, RDMA_MSG) + success(xid))
        with Command(HOME, "call", f"connection {number} echo size=200000", "ECONNRESET"):
            begins(tcp)
            # There are more octets than the sockets have room for.
            tcp.stream.recv(1, socket.MSG_PEEK)
            end(tcp)
    ended("client", port, PEER)


def read_chunk(tcp: Tcp) -> None:
    """Receives a Long Call, and begins to read its Read chunk (RFC 8166, section 4.3)."""
    *_, handle, length, high, low = split(tcp.segment())[:10]
    tcp.reads(handle, high << 32 | low, length)


def peer_fails(post: Callable[[Peer], None], cause: str, also: str = "") -> None:
    """A peer makes the module's queue pair fail, and disconnects because of its own error."""
    port = next(ports)
    listen(port)
    for _ in range(COUNT):
        with peer_as_client(port) as peer, contextlib.suppress(RuntimeError):
            post(peer)
    ended("server", port, cause, also)


def writes_nowhere(peer: Peer) -> None:
    """An RDMA Write without memory: the responder's device refuses it."""
    peer.write(NO_TAG, 0, bytes(64))


def sends_bad_chunk(peer: Peer) -> None:
    """A Long Call whose Read chunk has no memory: the module's RDMA Read fails."""
    peer.send(header(1, RDMA_NOMSG, reads=[(0, Segment(NO_TAG, 64, 0))]))
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


def nfs_server_stops() -> None:
    """The kernel's NFS server ends connections of the module's client."""
    for _ in range(COUNT):
        connect(NFS_PORT)
    script.nfs.stop()
    ended("client", NFS_PORT, PEER)


def netem(*options: str) -> None:
    """Sets how the client's host loses the packets that it sends."""
    hosts.shell('use_pair "$1" && netem a "${@:2}"', str(script.pair.number), *options)


def before_rtu() -> None:
    """A program accepts, and ends before the RTU arrives: the CM of the client, which is
    established, gets a REJ. A call is under way."""
    port = next(ports)
    script.peer.listen(script.pair.b.path, script.pair.b.ip4, port)
    try:
        with Command(script.pair.a.path, "connect", f"{script.pair.b.ip4}:{port} null=0"):
            script.peer.begin(script.peer.wait(CONNECT_REQUEST)[0])
            netem("loss", "100%")
            script.peer.answer("rdma_accept", PRIVATE)
        number = ids("client", port)[0]
        with Command(HOME, "call", f"connection {number} null", "ECONNREFUSED"):
            same_info(number, 10, inline_calls=1)
            script.peer.leave()
    finally:
        netem()
    found = wait_for(10, endings, "client", port)
    same("the end", {f"{REJECTED}consumer defined": 1}, found)


def programs_before_rtu() -> None:
    """The same with a program as client. It is observed, and established once it has sent RTU."""
    port = next(ports)
    client = Peer()
    script.peer.listen(script.pair.b.path, script.pair.b.ip4, port)
    try:
        client.ask(script.pair.a.path, script.pair.b.ip4, port, PRIVATE)
        script.peer.begin(script.peer.wait(CONNECT_REQUEST)[0])
        netem("loss", "100%")
        script.peer.answer("rdma_accept", PRIVATE)
        client.wait(ESTABLISHED)
        script.peer.leave()
        found = wait_for(10, lambda: [
            row["REASON"] for row in history() if row["EVENT"] in ("lost", "closed")
            and row["ORIGIN"] == "user" and row["REMOTE"].endswith(f":{port}")])
    finally:
        netem()
        client.end()
    same("the reasons", ["the peer rejected the connection"], found)


def fails_before_rtu() -> None:
    """The RTU is lost. The peer makes the module's queue pair fail, and nothing else arrives: that
    is the cause when the time for the RTU is over."""
    port = next(ports)
    listen(port)
    script.peer.ask(script.pair.a.path, script.pair.b.ip4, port, PRIVATE)
    number, = wait_for(10, ids, "server", port, "connecting")
    try:
        netem("loss", "100%")
        script.peer.wait(ESTABLISHED)
        netem()
        with contextlib.suppress(RuntimeError):
            writes_nowhere(script.peer)
        same_info(number, state="connecting")
        netem("loss", "100%")
        script.peer.leave()
        wait_for(40, is_gone, number)
    finally:
        netem()
    reasons = [row["REASON"] for row in history() if row["LOCAL"].endswith(f":{port}")]
    same("the reasons", [ACCESS_ERROR], reasons)


def answers_one_of_two() -> None:
    """The server answers one of two calls, and disconnects. The caller may see that when it handles
    the reply, or when it begins the second call."""
    port = next(ports)
    script.peer.listen(script.pair.b.path, script.pair.b.ip4, port)
    script.peer.receives(4, 4096)
    for _ in range(COUNT):
        number = script.connect_to_peer(port, "credits=4 null=0", PRIVATE)
        with Command(HOME, "call", f"connection {number} null count=2", "ECONNRESET"):
            xid, *_ = split(script.peer.receive(5000))
            script.peer.send(header(xid, RDMA_MSG) + success(xid))
            script.peer.close()
    script.peer.receives(0, 0)
    ended("client", port, PEER)


def removed_device() -> None:
    check("the clients' device is removed", device_removed)


def module_with_itself() -> None:
    for its_role in "client", "server":
        check(f"both ends are the module's: its {its_role} closes", module_closes, its_role)
    check("last_failure: the server closes", shows_failure)


def programs() -> None:
    check("a program as client disconnects", peer_disconnects)
    check("a program as server disconnects", server_disconnects)
    if TRANSPORT == "rxe":
        # MPA has no RTU.
        check("a program as server ends before the RTU arrives", before_rtu)
        check("a program ends before the RTU of another one arrives", programs_before_rtu)
        if FULL:
            check("a program as client makes the queue pair fail before RTU", fails_before_rtu)
    check("a program as server answers one of two calls, and disconnects", answers_one_of_two)
    if TRANSPORT == "siw":
        for its_role in "client", "server":
            for its_end, end in ("FIN", Tcp.fin), ("RST", Tcp.reset):
                check(f"{its_end} by plain TCP to the module as {its_role}", tcp_ends, its_role,
                      end)
        for its_end, end in ("FIN", Tcp.fin), ("RST", Tcp.reset):
            check(f"{its_end} by plain TCP during a Send of the module", tcp_ends_call, LARGE,
                  lambda _: None, end)
            check(f"{its_end} by plain TCP during a Read Response of the module", tcp_ends_call,
                  4096, read_chunk, end)
    # siw ends the connection, or has received TERMINATE, and reports no error.
    check("an RDMA Write without memory is why a connection ends", peer_fails, writes_nowhere,
          UNKNOWN if TRANSPORT == "siw" else f"lost: {ACCESS_ERROR}")
    # The peer's siw sends FIN right behind TERMINATE, and may be handled first.
    check("an RDMA Read without memory is why a connection ends", peer_fails, sends_bad_chunk,
          *((UNKNOWN, PEER) if TRANSPORT == "siw" else (f"{FAILED}remote access error",)))


def nfs_server() -> None:
    need("an NFS server for the causes", script.start_nfs)
    check("the kernel's NFS server stops", nfs_server_stops)


script.skip_unless(hosts.has_rdma_cm, "user space has no rdma_cm: no module rdma_ucm")
script.set_up(peer=False)
# Before a program uses siw: removing its device would wait for the end of the program.
script.group(removed_device)
script.group(module_with_itself)
need("a program starts", script.start_peer)
script.group(programs)
script.group(nfs_server)
check("every connection with a cause is closed", control, HOME, "close", "all")
script.check_none_left()
script.run()
