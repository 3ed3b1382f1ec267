#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Private data of a peer in user space, in every form. The peer sends any octets, and ucmatose
sends no private data. Compares the message that the module finds, and the values that it
negotiates, with those of RFC 8797."""

# test: debug.rxe
# soak: debug.siw stock.rxe

import fnmatch
import os
import socket
import subprocess
from collections.abc import Callable

from lib import module
from lib.hosts import TRANSPORT, Host, entered
from lib.ktap import Skip, fail, same, wait_for
from lib.module import (
    REPLY_ROOM, REQUEST_ROOM, Command, arrives, control, is_gone, is_state, newest, same_info,
)
from lib.peer import CONNECT_REQUEST, ESTABLISHED
from lib.script import Script

OWN_SEND, OWN_RECEIVE = 8192, 16384
OWN_WORDS = f"send={OWN_SEND} recv={OWN_RECEIVE} inv=1"
OWN_OCTETS = module.offer(OWN_SEND, OWN_RECEIVE, True)

# Ports of the module, of a second listener of it, of the peer, and of ucmatose.
OF_MODULE, OF_MODULE_TOO, OF_PEER, OF_UCMATOSE = 2000, 2002, 2001, 7471

script = Script()
check = script.check


class Found:
    """The expected result for a peer's private data: its status, a pattern, and keys of `info`.
    Without a valid message the defaults count (RFC 8797, section 5.1)."""

    def __init__(self, status: str, offset: int | str = "none", version: int | str = "none",
                 reserved: str = "none", send: int = 1024, receive: int = 1024,
                 r: str = "no") -> None:
        self.status, self.offset, self.version, self.reserved = status, offset, version, reserved
        self.send, self.receive, self.r = send, receive, r

    def same(self, number: str, role: str, padded: bytes, start: int = 0) -> None:
        """Compares `info` of the connection. The peer sent these octets."""
        offset = self.offset if isinstance(self.offset, str) else self.offset + start
        # RFC 8797, section 4.2.
        to_peer, to_own = min(OWN_SEND, self.receive), min(self.send, OWN_RECEIVE)
        c2s, s2c = (to_peer, to_own) if role == "client" else (to_own, to_peer)

        same("received", padded, module.read(f"connection/{number}/received"))
        same("sent", OWN_OCTETS, module.read(f"connection/{number}/sent"))
        # The module has offered R, so the peer's R decides (section 4.1).
        found = same_info(
            number, role=role, state="established", transport=module.NAME,
            peer_length=len(padded), peer_offset=offset, peer_version=self.version,
            peer_reserved=self.reserved, peer_send_size=self.send, peer_receive_size=self.receive,
            peer_remote_invalidation=self.r, client_to_server_threshold=c2s,
            server_to_client_threshold=s2c, remote_invalidation=self.r,
        )
        status = found.get("peer_private_data", "nothing")
        # Octets without a Format Identifier are shown, except zeros, which may be padding.
        other = self.status == "absent" and any(padded)
        same("peer_first_octets", padded[:8].hex() if other else "nothing",
             found.get("peer_first_octets", "nothing"))
        if not fnmatch.fnmatchcase(status, self.status):
            fail(f"peer_private_data: wanted {self.status}, found {status}")


def absent() -> Found:
    return Found("absent")


def truncated() -> Found:
    return Found("rejected: *truncated*", 0)


def rejected(version: int) -> Found:
    return Found(f"rejected: *version {version}*", 0, version)


def present(offset: int = 0, reserved: str = "0x00", **more: object) -> Found:
    return Found("present", offset, 1, reserved, **more)


class Private:
    """Octets that a peer sends: at the beginning or at the end of the private data."""

    def __init__(self, octets: str, at_end: bool = False) -> None:
        self.octets, self.at_end = bytes.fromhex(octets), at_end

    def start(self, room: int) -> int:
        return room - len(self.octets) if self.at_end else 0

    def within(self, room: int) -> bytes:
        return b"\xaa" * self.start(room) + self.octets


# About: the private data of the peer.


def to_server(private: Private, found: Found) -> None:
    """The peer connects to the module."""
    octets = private.within(REQUEST_ROOM)
    answer = script.peer.connect(script.pair.a.path, script.pair.b.ip4, OF_MODULE, octets)
    same("the peer received", arrives(OWN_OCTETS, REPLY_ROOM), answer)
    server = newest("server")
    wait_for(10, is_state, server, "established")
    found.same(server, "server", arrives(octets, REQUEST_ROOM), private.start(REQUEST_ROOM))
    script.peer.close()
    wait_for(10, is_gone, server)


def to_client(private: Private, found: Found) -> None:
    """The module connects to the peer."""
    octets = private.within(REPLY_ROOM)
    line = f"{script.pair.b.ip4}:{OF_PEER} {OWN_WORDS} null=0"
    with Command(script.pair.a.path, "connect", line):
        request = script.peer.accept(octets)
    same("the peer received", arrives(OWN_OCTETS, REQUEST_ROOM), request)
    client = newest("client")
    found.same(client, "client", arrives(octets, REPLY_ROOM), private.start(REPLY_ROOM))
    script.close_to_peer(client)


def by_mpa_1(octets: bytes, found: Found, start: int = 0) -> None:
    """A peer of MPA version 1 connects to the module (RFC 5044, section 7.1.1). It has all of the
    private data for itself: siw's own peers speak version 2."""
    with entered(script.pair.a.path):
        peer = socket.create_connection((script.pair.b.ip4, OF_MODULE), 10)
    with peer:
        peer.sendall(b"MPA ID Req Frame\x40\x01" + len(octets).to_bytes(2, "big") + octets)
        answer = b""
        while len(answer) < 20 + len(OWN_OCTETS) and (more := peer.recv(64)):
            answer += more
        same("the answer begins with", b"MPA ID Rep Frame", answer[:16])
        same("the version of the answer", 1, answer[17])
        same("its private data", OWN_OCTETS, answer[20:])
        server = newest("server")
        wait_for(10, is_state, server, "established")
        found.same(server, "server", octets, start)
    wait_for(10, is_gone, server)


def says(name: str, octets: str, found: Found, at_end: bool = False) -> None:
    """Registers checks in both directions."""
    private = Private(octets, at_end)
    check(f"{name}, to the server", to_server, private, found)
    check(f"{name}, to the client", to_client, private, found)


# About: the private data of the module.


def sent_and_heard(number: str, octets: bytes, room: int, heard: bytes) -> None:
    same("the peer received", arrives(octets, room), heard)
    same("sent", octets, module.read(f"connection/{number}/sent"))


def from_client(words: str, octets: bytes) -> None:
    with Command(script.pair.a.path, "connect", f"{script.pair.b.ip4}:{OF_PEER} {words} null=0"):
        heard = script.peer.accept(b"")
    client = newest("client")
    sent_and_heard(client, octets, REQUEST_ROOM, heard)
    script.close_to_peer(client)


def from_server(words: str, octets: bytes) -> None:
    control(script.pair.b.path, "listen", f"{script.pair.b.ip4}:{OF_MODULE_TOO} {words}")
    listener = module.rows("listeners")[-1][0]
    heard = script.peer.connect(script.pair.a.path, script.pair.b.ip4, OF_MODULE_TOO, b"")
    server = newest("server")
    sent_and_heard(server, octets, REPLY_ROOM, heard)
    script.peer.close()
    wait_for(10, is_gone, server)
    control(script.pair.b.path, "close", f"listener {listener}")


def hears(name: str, words: str, octets: str) -> None:
    """Registers checks that the peer receives these octets in a REQ and in a REP of the module,
    with these words in the command."""
    check(f"{name}, from the client", from_client, words, bytes.fromhex(octets))
    check(f"{name}, from the server", from_server, words, bytes.fromhex(octets))


# About: messages that find no Receive (RFC 8166, section 3.3.1).


def lost_without_receive(connects: Callable[[str, bytes], None], event: int) -> None:
    """Checks that the module wants no message retransmitted that finds no Receive: a peer that
    exceeds its credits loses its connection."""
    if TRANSPORT == "siw":
        raise Skip("a message of iWARP that finds no Receive is never retransmitted")
    script.peer.again_wanted.clear()
    connects(OWN_WORDS, OWN_OCTETS)
    same("retransmissions", 0, script.peer.again_wanted[event])


# About: ucmatose. Its server sends one message, and its client waits for one. Neither ends by
# itself.


def ucmatose(host: Host, *options: str) -> subprocess.Popen:
    return host.popen("ucmatose", *options, "-C", "1",
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ucmatose_connects() -> None:
    process = ucmatose(script.pair.a, "-s", script.pair.b.ip4, "-p", str(OF_MODULE))
    server = ""
    try:
        server = str(wait_for(20, newest, "server"))
        wait_for(10, is_state, server, "established")
        absent().same(server, "server", arrives(b"", REQUEST_ROOM))
    finally:
        gone_after_kill(process, server)


def ucmatose_listens() -> None:
    before = module.stats()["messages_received"]
    process = ucmatose(script.pair.b, "-b", script.pair.b.ip4)
    client = ""
    try:
        wait_for(20, connects_to_ucmatose)
        client = newest("client")
        absent().same(client, "client", arrives(b"", REPLY_ROOM))
        wait_for(10, lambda: module.stats()["messages_received"] == before + 1)
    finally:
        gone_after_kill(process, client)


def connects_to_ucmatose() -> bool:
    line = f"{script.pair.b.ip4}:{OF_UCMATOSE} {OWN_WORDS} null=0\n"
    return module.write(script.pair.a.path, "connect", line.encode()) == module.DONE


def gone_after_kill(process: subprocess.Popen, number: str) -> None:
    process.kill()
    process.wait()
    if number:
        wait_for(10, is_gone, number)


# -----------------------------------------------------------------------------


script.set_up()
script.need("the module listens", script.listen, OF_MODULE, OWN_WORDS)
script.need("the peer listens for the module",
            lambda: script.peer.listen(script.pair.b.path, script.pair.b.ip4, OF_PEER))

says("no private data", "", absent())
says("one octet of private data", "f6", absent())
if TRANSPORT == "siw":
    says("the identifier alone", "f6ab0e18", truncated())
    says("seven octets of a message", "f6ab0e18010107", truncated())
else:
    # The padding of RoCE adds octets.
    says("the identifier alone", "f6ab0e18", rejected(0))
    says("seven octets of a message", "f6ab0e18010107", present(r="yes", send=8192, receive=1024))
says("a message", "f6ab0e180101030f", present(r="yes", send=4096, receive=16384))
says("the smallest sizes", "f6ab0e1801000000", present())
says("the largest sizes", "f6ab0e180100ffff", present(send=262144, receive=262144))
says("reserved bits, not R", "f6ab0e1801fe0303", present(reserved="0xfe", send=4096, receive=4096))
says("reserved bits, and R", "f6ab0e1801ff0303",
     present(reserved="0xfe", r="yes", send=4096, receive=4096))
for bit in range(1, 8):
    says(f"reserved bit {bit}", f"f6ab0e1801{1 << bit:02x}0303",
         present(reserved=f"0x{1 << bit:02x}", send=4096, receive=4096))
says("another format identifier", "f6ab0e1901010303", absent())
says("the identifier in the wrong order", "180eabf601010303", absent())
says("version 0", "f6ab0e1800010303", rejected(0))
says("version 2", "f6ab0e1802010303", rejected(2))
says("version 255", "f6ab0e18ff010303", rejected(255))
says("one octet before a message", "00f6ab0e180100071f", present(1, send=8192, receive=32768))
says("parts of an identifier before a message", "f6abf6ab0ef6ab0e1801011f07",
     present(5, r="yes", send=32768, receive=8192))
says("a message at the end", "f6ab0e1801010101", present(r="yes", send=2048, receive=2048), True)
says("a message truncated at the end", "f6ab0e18010101", truncated(), True)
says("version 2, then a message", "f6ab0e1802ffffff00f6ab0e1801010203",
     present(9, r="yes", send=3072, receive=4096))
says("version 2, then a truncated message", "f6ab0e1802fffffff6ab0e1801", rejected(2), True)
says("two messages, of which the first counts", "00f6ab0e1801010305f6ab0e1801000809",
     present(1, r="yes", send=4096, receive=6144))

# make soak: the places that no check above has.
for offset in range(2, REQUEST_ROOM - 8 if "FULL" in os.environ else 0):
    says(f"a message at octet {offset}", "00" * offset + "f6ab0e1801000101",
         present(offset, send=2048, receive=2048))
if TRANSPORT == "siw":
    message = bytes.fromhex("f6ab0e180101030f")
    values = {"r": "yes", "send": 4096, "receive": 16384}
    check("a message by MPA version 1", by_mpa_1, message, present(**values))
    # rdma_cm's length field holds 255 octets, 4 more than a peer of version 2 can send.
    check("a message at the end of 255 octets by MPA version 1", by_mpa_1,
          message.rjust(255, b"\xaa"), present(247, **values))

hears("private=none sends no octets", "private=none", "")
hears("private=00 sends one octet", "private=00", "00")
hears("send=, recv= and inv= send a message", "send=65536 recv=1024 inv=1", "f6ab0e1801013f00")
hears("private= sends octets that violate RFC 8797", "private=f6ab0e1802ff00ff0a",
      "f6ab0e1802ff00ff0a")
MOST = bytes.fromhex("f6ab0e1801010303").rjust(REQUEST_ROOM, b"\0").hex()
hears("private= sends as many octets as a REQ can carry", f"private={MOST}", MOST)

check("a REQ that wants no message retransmitted", lost_without_receive, from_client,
      CONNECT_REQUEST)
check("a REP that wants no message retransmitted", lost_without_receive, from_server, ESTABLISHED)

check("ucmatose connects without private data, and is killed", ucmatose_connects)
check("ucmatose listens without private data, and is killed", ucmatose_listens)
script.check_none_left()
script.run()
