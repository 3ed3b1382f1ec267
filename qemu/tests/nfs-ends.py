#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The ends of the connections of the kernel's NFS, as its client and as its server: `history` says
who or what ended each of them. Peers in user space end connections, or make them fail; over siw,
also peers in plain TCP, by FIN and by RST."""

# test: stock.rxe
# soak: debug.rxe debug.siw

import contextlib
import functools
import os
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from lib import module
from lib.hosts import TRANSPORT, entered, run
from lib.ktap import Failed, Skip, same, wait_for
from lib.messages import RDMA_MSG, RDMA_NOMSG, Segment, header, offer, rpc_call, split, success
from lib.mpa import Tcp
from lib.peer import Peer
from lib.script import Script

# How often a connection ends in each way, and how often it fails.
ENDS, FAILURES = (30, 30) if os.environ.get("FULL") else (8, 3)

# The port of the kernel's server, and the one before those of the peers that are servers.
NFS, FIRST_PORT = 20049, 3000

PRIVATE = offer(4096, 4096)
# Memory that does not exist.
NOWHERE = Segment(0x12345, 400, 0x1000)

# The events and reasons of history.
BY_PEER = "lost", "disconnected by the peer"
BY_THIS_END = "closed", "disconnected by this end"
UNKNOWN = "lost", "unknown cause"
ACCESS = "lost", "the queue pair failed: QP access error"
REMOTE_ACCESS = "lost", "the queue pair failed: remote access error"
REMOVED = "lost", "the device was removed"

script = Script()
check, need = script.check, script.need


def ends(role: str) -> list[tuple[str, str]]:
    """Returns the events and reasons of the ends of the connections of NFS in that role."""
    found = []
    for row in module.history():
        if (row["ORIGIN"], row["ROLE"]) == ("nfs", role) and row["EVENT"] in ("lost", "closed"):
            # The event that shows an unknown cause is not the same each time.
            reason = row["REASON"]
            found.append((row["EVENT"], reason.split(":")[0] if "unknown" in reason else reason))
    return found


def have_ended(role: str, count: int) -> bool:
    return len(ends(role)) >= count


@contextlib.contextmanager
def all_end(role: str, count: int, wanted: tuple[str, str],
            also: tuple[str, str] | None = None) -> Iterator[None]:
    """Checks that so many connections end in the `with`, each of them in that way, or in the other
    one if two are right."""
    before = len(ends(role))
    yield
    with contextlib.suppress(Failed):
        wait_for(30, have_ended, role, before + count)
    found = Counter(wanted if end == also else end for end in ends(role)[before:])
    same("ends", dict(Counter({wanted: count})), dict(found))


def answers_until(role: str, count: int) -> bool:
    """The same. Meanwhile, the peer answers a DREQ."""
    what, _, new, private = script.peer.event(1)
    if what is not None:
        script.peer.unasked(what, new, private)
    return have_ended(role, count)


@contextlib.contextmanager
def one_ends(role: str) -> Iterator[None]:
    """Waits for the end that the `with` leads to. The peer does not disconnect before: its DREQ
    must not arrive before the error has been handled."""
    before = len(ends(role))
    with contextlib.suppress(OSError, RuntimeError):
        yield
    wait_for(20, answers_until, role, before + 1)
    script.peer.close()


@functools.cache
def senders() -> list[Path]:
    """Returns the files with the states of the threads in which siw sends."""
    found = subprocess.run(["pgrep", "^siw_tx/"], stdout=subprocess.PIPE, text=True, check=False)
    return [Path(f"/proc/{number}/stat") for number in found.stdout.split()]


def have_sent() -> bool:
    """Whether siw has sent what was posted. A Send that is under way when its connection ends
    fails by an error of its own."""
    return all(path.read_text().rsplit(")", 1)[1].split()[0] == "S" for path in senders())


def refuse_others(listener: socket.socket) -> None:
    """Accepts the connections that nobody has accepted yet. To close the listener with these would
    make lockdep report siw (reports/siw-callback-lock.txt)."""
    listener.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()


def needs_siw() -> None:
    if TRANSPORT != "siw":
        raise Skip("iWARP only")


class Server:
    """The kernel's server, and the peer as its client."""

    xid = 0x70000000

    def connects(self, peer: Peer) -> None:
        peer.receives(4, 4096)
        peer.connect(script.pair.a.path, script.pair.b.ip4, NFS, PRIVATE)

    def called(self) -> None:
        Server.xid += 1
        script.peer.send(header(self.xid, RDMA_MSG) + rpc_call(self.xid))
        script.message()

    def rpcrdma_unloaded(self) -> None:
        if not Path("/sys/module/rpcrdma/initstate").exists():
            raise Skip("rpcrdma is built in")
        script.nfs.stop()
        wait_for(20, unloaded, "rpcrdma")
        script.nfs.start()

    def client_ends(self, calls: bool) -> None:
        with all_end("server", ENDS, BY_PEER):
            for _ in range(ENDS):
                self.connects(script.peer)
                if calls:
                    self.called()
                    wait_for(10, have_sent)
                script.peer.close()

    def tcp_ends(self, end: Callable[[Tcp], None]) -> None:
        needs_siw()
        with all_end("server", ENDS, BY_PEER):
            for _ in range(ENDS):
                end(Tcp.connect(script.pair.a, script.pair.b, NFS, PRIVATE))

    def server_ends(self) -> None:
        # Over siw, a process can create some 20 queue pairs at a time.
        with all_end("server", ENDS, BY_THIS_END):
            for first in range(0, ENDS, 10):
                self.ends_all(min(10, ENDS - first))

    def ends_all(self, count: int) -> None:
        peers = [Peer() for _ in range(count)]
        for peer in peers:
            self.connects(peer)
        wait_for(20, lambda: established("server") == count)
        script.nfs.stop()
        for peer in peers:
            peer.end()
        script.nfs.start()

    def client_writes(self) -> None:
        """The client writes to memory that the server has not offered."""
        with all_end("server", FAILURES, ACCESS if TRANSPORT == "rxe" else UNKNOWN):
            for _ in range(FAILURES):
                self.connects(script.peer)
                with one_ends("server"):
                    script.peer.write(NOWHERE.handle, NOWHERE.offset, bytes(8))

    def client_offers(self) -> None:
        """The client offers memory that does not exist, and the server reads from it. Over siw, the
        client's device sends TERMINATE, of which nothing tells, and FIN. The server may have
        flushed before the FIN arrives, or not."""
        wanted, also = (REMOTE_ACCESS, None) if TRANSPORT == "rxe" else (UNKNOWN, BY_PEER)
        with all_end("server", FAILURES, wanted, also):
            for _ in range(FAILURES):
                self.connects(script.peer)
                with one_ends("server"):
                    Server.xid += 1
                    script.peer.send(header(self.xid, RDMA_NOMSG, reads=[(0, NOWHERE)]))


class Client:
    """The kernel's client, and a peer as its server: another one for each connection, because the
    client connects again until its mount is given up."""

    port = FIRST_PORT

    @contextlib.contextmanager
    def mounting(self) -> Iterator[None]:
        """Mounts from the port meanwhile, and gives the mount up at the end."""
        options = f"vers=4.2,proto=rdma,port={self.port},retry=0"
        process = script.pair.a.popen(
            "mount", "-t", "nfs", "-o", options, f"{script.pair.b.ip4}:/", "/mnt/none",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            # mount starts mount.nfs, which may have ended.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @contextlib.contextmanager
    def served(self) -> Iterator[Peer]:
        """Gives the port a peer for the time of the `with`."""
        Client.port += 1
        peer = Peer()
        peer.receives(16, 4096)
        peer.listen(script.pair.b.path, script.pair.b.ip4, self.port)
        script.peer, other = peer, script.peer
        try:
            yield peer
        finally:
            script.peer = other
            peer.end()

    def server_ends(self, called: bool) -> None:
        with all_end("client", ENDS, BY_PEER):
            for _ in range(ENDS):
                with self.served() as peer, self.mounting():
                    peer.accept(PRIVATE)
                    if called:
                        script.message(20000)
                    before = len(ends("client"))
                    peer.close()
                    wait_for(10, have_ended, "client", before + 1)

    def tcp_ends(self, end: Callable[[Tcp], None]) -> None:
        needs_siw()
        with all_end("client", ENDS, BY_PEER):
            for _ in range(ENDS):
                Client.port += 1
                with entered(script.pair.b.path):
                    listener = socket.create_server((script.pair.b.ip4, self.port))
                listener.settimeout(20)
                with listener:
                    with self.mounting():
                        before = len(ends("client"))
                        # Private data of its own, because xprtrdma reads it without looking at
                        # its length (reports/xprtrdma-private-data.txt).
                        tcp = Tcp.accept(listener, PRIVATE)
                        # The client sends when it knows that the connection is established.
                        tcp.octets(1)
                        wait_for(10, have_sent)
                        end(tcp)
                        wait_for(10, have_ended, "client", before + 1)
                    refuse_others(listener)

    def client_ends(self) -> None:
        with all_end("client", ENDS, BY_THIS_END):
            for _ in range(ENDS):
                with self.served() as peer, one_ends("client"), self.mounting():
                    peer.accept(PRIVATE)
                    script.message(20000)

    def last_segment(self) -> Segment:
        """Answers calls until one offers memory, and returns its last segment."""
        while True:
            xid, _, _, _, *words = split(script.message(20000))
            found = None
            # RFC 8166, section 4.3: the Read list, the Write list, and the Reply chunk.
            while words.pop(0):
                del words[:5]
            for last in (False, True):
                while words.pop(0):
                    for _ in range(words.pop(0)):
                        found = Segment.at(words, 0)
                        del words[:4]
                    if last:
                        break
            if found:
                return found
            script.peer.send(header(xid, RDMA_MSG) + success(xid))

    def server_writes(self) -> None:
        """The server answers by an RDMA Write that the client does not allow: over rxe with a key
        that does not exist, and over siw behind the end of the memory."""
        with all_end("client", FAILURES, ACCESS):
            for _ in range(FAILURES):
                with self.served() as peer, self.mounting():
                    # Without private data, so that the client offers memory for long replies.
                    peer.accept(b"")
                    room = self.last_segment()
                    with one_ends("client"):
                        if TRANSPORT == "rxe":
                            peer.write(room.handle ^ 0xff, room.offset, bytes(8))
                        else:
                            peer.write(room.handle, room.offset + room.length + 65536, bytes(8))


def established(role: str) -> int:
    return sum(row[1:4] == ["nfs", role, "established"] for row in module.rows())


def mounts() -> None:
    """Mounts from the kernel's server. The client makes lost connections again."""
    script.pair.a.run("sh", "-c", "mkdir -p /mnt/removed && exec mount -t nfs -o "
                      f"vers=4.2,proto=rdma,port={NFS} {script.pair.b.ip4}:/ /mnt/removed")
    wait_for(20, established, "server")


def unloaded(name: str) -> bool:
    return not subprocess.run(["modprobe", "-qr", name], check=False).returncode


def device_removed(role: str) -> None:
    """The device of one end is removed, and comes back. Only for this end it is the cause."""
    host = script.pair.a if role == "client" else script.pair.b
    with all_end(role, 1, REMOVED):
        run("rdma", "link", "delete", host.rdma)
    host.run("rdma", "link", "add", host.rdma, "type", TRANSPORT, "netdev", host.device)
    run("timeout", "60", "stat", "/mnt/removed")
    wait_for(60, established, "client")


server, client = Server(), Client()


def removed_devices() -> None:
    need("a mount whose client's device is removed", mounts)
    check("the client's device is removed: that is the reason of its end", device_removed, "client")
    need("the mount whose client's device was removed ends", run, "umount", "/mnt/removed")
    # The module then has to have no probe in rpcrdma, or the kernel warns.
    check("rpcrdma is unloaded and loaded again while it is observed", server.rpcrdma_unloaded)
    need("a mount whose server's device is removed", mounts)
    check("the server's device is removed: that is the reason of its end", device_removed, "server")
    need("the mount whose server's device was removed ends", run, "umount", "/mnt/removed")


def peer_ends(role: str, peer: str, disconnects: Callable[[bool], None],
              tcp_ends: Callable[[Callable[[Tcp], None]], None]) -> None:
    """Checks the ends of one role where the peer is why they end."""
    for what, function, how in (
        (f"its {peer} disconnects", disconnects, False),
        (f"its {peer} disconnects after a call", disconnects, True),
        ("FIN", tcp_ends, Tcp.fin),
        ("RST", tcp_ends, Tcp.reset),
    ):
        check(f"the {role}'s end, {what}: all ends are lost by the peer", function, how)


def server_ends() -> None:
    peer_ends("server", "client", server.client_ends, server.tcp_ends)
    check("the server's end, the server disconnects: all ends are closed by this end",
          server.server_ends)
    check("the server's end, its client writes where it may not: the reason is that error",
          server.client_writes)
    check("the server's end, its client offers memory that does not exist: the reason is that "
          "error", server.client_offers)


def client_ends() -> None:
    need("a directory for mounts that do not succeed", run, "mkdir", "-p", "/mnt/none")
    peer_ends("client", "server", client.server_ends, client.tcp_ends)
    check("the client's end, the mount is given up: all ends are closed by this end",
          client.client_ends)
    check("the client's end, its server writes where it may not: the reason is that error",
          client.server_writes)


# Before a program uses the devices: removing one would wait for the end of the program.
script.set_up(peer=False)
need("the kernel's NFS server starts for its ends", script.start_nfs)
script.group(removed_devices)
need("a peer of the kernel's NFS starts", script.start_peer)
script.group(server_ends)
script.group(client_ends)
script.run()
