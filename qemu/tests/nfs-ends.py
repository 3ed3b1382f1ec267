#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The ends of the connections of the kernel's NFS, as its client and as its server: `history` says
who or what ended each of them. Peers in user space end connections, or make them fail; over siw,
also peers in plain TCP, by FIN and by RST."""

# test: stock.rxe
# soak: debug.rxe debug.siw

import contextlib
import functools
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from lib import hosts, module
from lib.hosts import TRANSPORT, entered, run
from lib.ktap import Failed, Skip, fail, same, wait_for
from lib.messages import (
    NFS as NFS_PROGRAM, RDMA_MSG, RDMA_NOMSG, Segment, header, offer, rpc_call, split, success,
    words, write_chunk,
)
from lib.mpa import Tcp
from lib.peer import Peer
from lib.script import Script

# How often a connection ends in each way, and how often it fails.
ENDS, FAILURES = (30, 30) if os.environ.get("FULL") else (8, 3)

# How often a mount loses its connection.
LOSSES = 30 if os.environ.get("FULL") else 6

# The ports of the kernel's server, and the one before those of the peers that are servers.
NFS, NFS_TCP, FIRST_PORT = 20049, 2049, 3000
# READ of NFS 3, and the octets of its reply before those of the file (RFC 1813, section 3.3.6).
READ, READ_REPLY = 6, 128
# The bit of a record mark that says that the fragment is the last one (RFC 5531, section 11).
LAST = 1 << 31
# The mount that loses its connections, and the tool that judges it.
LOSSY = Path("/mnt/lossy")
TOOL = str(Path(__file__).resolve().parents[2] / "build/tool/debug/rpcrdma-cm")
JUDGES = TOOL, "mounts", "--json"

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
NO_ACKNOWLEDGEMENT = "lost", "the queue pair failed: transport retry counter exceeded"

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


def needs_siw() -> None:
    if TRANSPORT != "siw":
        raise Skip("iWARP only")


class Server:
    """The kernel's server, and the peer as its client."""

    xid = 0x70000000

    def connects(self, peer: Peer, count: int = 1) -> None:
        """Connects, and waits until the server has so many connections. A DREQ may overtake the
        RTU, and siw may keep a message that arrives before its server's end is established."""
        peer.receives(4, 4096)
        peer.connect(script.pair.a.path, script.pair.b.ip4, NFS, PRIVATE)
        wait_for(10, lambda: established("server") == count)

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
                wait_for(10, lambda: established("server") == 0)

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
        for number, peer in enumerate(peers, 1):
            self.connects(peer, number)
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

    def tcp_ends(self, end: Callable[[Tcp], None], also: tuple[str, str] | None = None) -> None:
        """With `also`, a Send of the client may be under way."""
        needs_siw()
        with all_end("client", ENDS, BY_PEER, also):
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
                        if not also:
                            wait_for(10, have_sent)
                        end(tcp)
                        wait_for(10, have_ended, "client", before + 1)

    def client_ends(self) -> None:
        with all_end("client", ENDS, BY_THIS_END):
            for _ in range(ENDS):
                with self.served() as peer, one_ends("client"), self.mounting():
                    peer.accept(PRIVATE)
                    script.message(20000)

    def last_segment(self) -> Segment:
        """Answers calls until one offers memory, and returns its last segment."""
        while True:
            xid, segments, _ = taken_apart(script.message(20000))
            if segments:
                return segments[-1]
            script.peer.send(header(xid, RDMA_MSG) + success(xid))

    def server_writes(self) -> None:
        with all_end("client", FAILURES, ACCESS):
            for _ in range(FAILURES):
                with self.served() as peer, self.mounting():
                    # Without private data, so that the client offers memory for long replies.
                    peer.accept(b"")
                    room = self.last_segment()
                    with one_ends("client"):
                        write_beside(room)


class Gateway:
    """The peer as a server of a mount by NFS 3. Passes calls on to the kernel's server over TCP.
    While `loses` is true, answers READ by an RDMA Write that the client does not allow."""

    loses = False

    def start(self) -> None:
        """Makes a file for READ, and connects with the kernel's server."""
        self.data = os.urandom(8192)
        Path(f"/proc/{script.nfs.process}/root/export/data").write_bytes(self.data)
        self.ending = contextlib.ExitStack()
        script.at_end(self.ending.close)
        with entered(script.pair.b.path):
            tcp = socket.create_connection((script.pair.b.ip4, NFS_TCP), 20)
        self.tcp = self.ending.enter_context(tcp)
        self.replies = self.ending.enter_context(tcp.makefile("rb"))
        self.peer = self.ending.enter_context(client.served())

    def passed_on(self, call: bytes) -> bytes:
        """Returns the reply to a call."""
        self.tcp.sendall(words(LAST | len(call)) + call)
        mark = int.from_bytes(self.replies.read(4), "big")
        # The kernel's server does not divide its replies.
        return self.replies.read(mark & ~LAST)

    def next_call(self) -> bytes | str:
        # siw may not deliver the first message of a connection by itself.
        return self.peer.next_message(50 if self.peer.heard else 2000)

    def answer(self, message: bytes) -> None:
        xid, segments, call = taken_apart(message)
        if split(call)[3:6] != [NFS_PROGRAM, 3, READ]:
            self.peer.send(header(xid, RDMA_MSG) + self.passed_on(call))
        elif self.loses:
            self.lose(segments[0])
            self.peer.accept(PRIVATE)
        else:
            reply = self.passed_on(call)
            found, room = reply[READ_REPLY:], segments[0]
            self.peer.write(room.handle, room.offset, found)
            chunk = write_chunk([room], len(found))
            self.peer.send(header(xid, RDMA_MSG, writes=[chunk]) + reply[:READ_REPLY])

    def lose(self, room: Segment) -> None:
        """Ends the connection by an error of the client's queue pair."""
        with one_ends("client"):
            write_beside(room)

    def serves(self, process: subprocess.Popen) -> bytes:
        """Serves until a program of the client has ended, and returns what it has printed."""
        end = time.monotonic() + 60
        while process.poll() is None:
            if time.monotonic() > end:
                raise Failed(f"still runs: {process.args}")
            message = self.next_call()
            if isinstance(message, bytes):
                self.answer(message)
        same(f"{process.args} ended with", 0, process.returncode)
        return process.stdout.read()

    def starts(self, *command: str) -> subprocess.Popen:
        """Starts a program of the client. It is killed if a check fails before it has ended."""
        process = script.pair.a.popen(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
        script.at_end(process.kill)
        return process

    def mounts(self) -> None:
        self.start()
        LOSSY.mkdir(exist_ok=True)
        options = f"vers=3,proto=rdma,port={client.port},mountproto=tcp,nolock,noacl"
        script.at_end(self.gives_up)
        process = self.starts("mount", "-t", "nfs", "-o", options,
                              f"{script.pair.b.ip4}:/export", str(LOSSY))
        self.peer.accept(PRIVATE)
        self.serves(process)

    def gives_up(self) -> None:
        """Ends the mount if a check has failed. With -f, calls that wait for the server fail."""
        if LOSSY.is_mount():
            run("umount", "-i", "-f", "-l", str(LOSSY))

    def loses_often(self) -> None:
        """The client retransmits its READ on each of the connections. At the end the last one is
        established, and the READ has no answer."""
        self.loses = True
        self.reader = self.starts("cat", f"{LOSSY}/data")
        with all_end("client", LOSSES, ACCESS):
            before = len(ends("client"))
            while not have_ended("client", before + LOSSES):
                self.answer(script.message(20000))
        # The client has counted the connection on which it sends.
        self.unanswered = script.message(20000)

    def judged(self, lost: int) -> None:
        """Compares the numbers of the tool with that of NFS. None of them grows meanwhile."""
        same("the mount was connected again", LOSSES, reconnects())
        numbers = lost, LOSSES, f"lost {lost} times in an hour"
        same("losses, reconnects, sentence", numbers, judgement(run(*JUDGES)))

    def judged_lost(self) -> None:
        """The client's request to connect again waits meanwhile."""
        self.lose(taken_apart(self.unanswered)[1][0])
        self.judged(LOSSES + 1)
        self.peer.accept(PRIVATE)
        self.unanswered = script.message(20000)

    def judged_meanwhile(self) -> None:
        """The connections go on to end. The tool does not read both numbers at the same time."""
        before = reconnects()
        self.answer(self.unanswered)
        *numbers, sentence = judgement(self.serves(self.starts(*JUDGES)))
        self.unanswered = script.message(20000)
        after = reconnects()
        if not before <= min(numbers) <= max(numbers) <= after:
            fail(f"between {before} and {after}: {numbers}, {sentence}")

    def recovers(self) -> None:
        self.loses = False
        before = len(ends("client"))
        self.answer(self.unanswered)
        found = self.serves(self.reader)
        same("whether the content is right", True, found == self.data)
        same("further ends", [], ends("client")[before:])

    def ends(self) -> None:
        self.serves(self.starts("umount", str(LOSSY)))
        self.ending.close()


def taken_apart(message: bytes) -> tuple[int, list[Segment], bytes]:
    """Returns the XID, the segments of the Write list and of the Reply chunk, and what is behind
    them (RFC 8166, section 4.3)."""
    xid, _, _, _, *rest = split(message)
    segments = []
    while rest.pop(0):
        del rest[:5]
    for last in (False, True):
        while rest.pop(0):
            for _ in range(rest.pop(0)):
                segments.append(Segment.at(rest, 0))
                del rest[:4]
            if last:
                break
    return xid, segments, words(*rest)


def write_beside(room: Segment) -> None:
    """Writes where the client does not allow it: over rxe with a key that does not exist, and over
    siw behind the end of the memory."""
    if TRANSPORT == "rxe":
        script.peer.write(room.handle ^ 0xff, room.offset, bytes(8))
    else:
        script.peer.write(room.handle, room.offset + room.length + 65536, bytes(8))


def judgement(report: bytes | str) -> tuple[int, int, str]:
    """Returns what a report of the tool says of the mount: the number in the sentence of the
    verdict lost-often, the reconnects, and that sentence."""
    (mount,) = (one for one in json.loads(report)["mounts"] if one["mount_point"] == str(LOSSY))
    found = [one["sentence"] for one in mount["verdicts"] if one["code"] == "lost-often"]
    if not found:
        raise Failed(f"no verdict lost-often: {mount['verdicts']}")
    return int(re.search("[0-9]+", found[0])[0]), mount["reconnects"], found[0]


def reconnects() -> int:
    """Returns how often the client of the mount has connected again: the third number of `xprt:`
    counts its connections."""
    stats = Path("/proc/self/mountstats").read_text()
    part = stats.split(f" mounted on {LOSSY} ")[1].split("\ndevice ")[0]
    (transport,) = (line.split() for line in part.splitlines() if "xprt:" in line)
    return int(transport[4]) - 1


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


def host_vanishes() -> None:
    """The server's host sends nothing more, also no DREP: the CM waits for that for more than a
    minute before it reports DISCONNECTED. The client has given the connection up before."""
    before = len(ends("client"))
    hosts.shell('use_pair "$1" && netem b loss 100%', str(script.pair.number))
    process = script.pair.a.popen("stat", "-f", "/mnt/removed", stdout=subprocess.DEVNULL,
                                  stderr=subprocess.STDOUT)
    try:
        wait_for(30, have_ended, "client", before + 1)
        same("established clients", 0, established("client"))
        # The flush that follows from the error may be handled before the error.
        print("#", ends("client")[before:], flush=True)
        found = [NO_ACKNOWLEDGEMENT if end == UNKNOWN else end for end in ends("client")[before:]]
        same("the end", [NO_ACKNOWLEDGEMENT], found)
    finally:
        hosts.shell('use_pair "$1" && netem b', str(script.pair.number))
    same("stat ended with", 0, process.wait(120))
    wait_for(60, established, "client")
    wait_for(90, lambda: not any(row[1:4] == ["nfs", "client", "disconnected"]
                                 for row in module.rows()))
    same("ends", 1, len(ends("client")[before:]))


server, client, gateway = Server(), Client(), Gateway()


def vanished_hosts() -> None:
    if TRANSPORT == "siw":
        # TCP gives up after minutes.
        return
    need("a mount whose server's host vanishes", mounts)
    check("the server's host vanishes: the client's end is lost soon, by the queue pair's error",
          host_vanishes)
    need("the mount whose server's host vanished ends", run, "umount", "/mnt/removed")


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
    # xprtrdma disconnects because of the Send, and may do so before the RST is reported.
    check("the client's end, RST during a Send: all ends are lost by the peer, or unknown",
          client.tcp_ends, Tcp.reset, UNKNOWN)
    check("the client's end, the mount is given up: all ends are closed by this end",
          client.client_ends)
    check("the client's end, its server writes where it may not: the reason is that error",
          client.server_writes)


def lost_often() -> None:
    need("the tool has been built (scripts/tool), for the mount that loses its connections",
         run, TOOL, "--version")
    need("a mount over a server that passes its calls on", gateway.mounts)
    check("each READ of a mount ends its connection by an error: each reason is that error",
          gateway.loses_often)
    check("a mount whose READs end its connections: lost-often, as often as NFS counts",
          gateway.judged, LOSSES)
    check("a mount whose READs end its connections: lost-often before it is connected again",
          gateway.judged_lost)
    check("a mount whose READs end its connections: lost-often by a number that grows meanwhile",
          gateway.judged_meanwhile)
    check("a mount that has lost connections by errors: then its READ succeeds", gateway.recovers)
    need("the mount that has lost its connections ends", gateway.ends)


# Before a program uses the devices: removing one would wait for the end of the program.
script.set_up(peer=False)
need("the kernel's NFS server starts for its ends", script.start_nfs)
script.group(vanished_hosts)
script.group(removed_devices)
need("a peer of the kernel's NFS starts", script.start_peer)
script.group(server_ends)
script.group(client_ends)
script.group(lost_often)
script.run()
