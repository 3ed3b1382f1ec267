#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Both ends are the module. Compares the offer of each side, the offer that the other side reads,
and the values that both negotiate, with those of RFC 8797. Each check of a rule names its section:
of RFC 8797 if it names no other document. tools/conformance has the private data of a peer that is
not the module, and wire.py the octets on the wire. In one group the peers are ucmatose, and over
soft-iWARP one that speaks version 1 of MPA.

There are five parameters: two sizes of each side, and R of both sides together. All combinations
of any two parameters are tested; with FULL=1 all combinations of all five."""

# test: debug.rxe
# soak: debug.siw stock.rxe arm64.rxe rt.rxe

import functools
import os
import platform
import re
import socket
import struct
import subprocess
from pathlib import Path

from lib import hosts, module
from lib.hosts import HOME, TRANSPORT, Host, entered
from lib.ktap import Current, Failed, fail, same, wait_for
from lib.messages import FORMAT_IDENTIFIER, offer
from lib.module import (REPLY_ROOM, REQUEST_ROOM, control, info, is_gone, is_state, newest,
                        own_rows, same_info)
from lib.mpa import REPLY, REQUEST
from lib.script import Script

SIW = TRANSPORT == "siw"
SIZES = 1024, 4096, 65536, 262144
YES_NO = "no", "yes"
# The ports of ucmatose, and of the module for other peers.
UCMATOSE, OTHERS = 7471, 2000

script = Script()
check, need, at_end = script.check, script.need, script.at_end
ports = iter(range(20050, 30000))


class Side:
    """One side of an exchange: the options of its command, its octets, and their meaning. Without
    a valid message the offer is the defaults (RFC 8797, section 5.1)."""

    def __init__(self, options: str, octets: bytes, found: str, send: int = 1024,
                 recv: int = 1024, r: int = 0, **keys: object) -> None:
        self.options, self.octets, self.found = options, octets, found
        self.send, self.recv, self.r, self.keys = send, recv, r, keys

    def arrives(self, room: int) -> bytes:
        """Returns the octets as the transport delivers them: the CM's message is filled up with
        zeros."""
        return self.octets if SIW else self.octets.ljust(room, b"\0")


def built(send: int, recv: int, r: int) -> Side:
    """A side that sends a message with these values."""
    return Side(f"send={send} recv={recv} inv={r}", offer(send, recv, r), "present", send, recv,
                r, offset=0, version=1, reserved="0x00")


def raw(octets: bytes, found: str, send: int = 1024, recv: int = 1024, r: int = 0,
        **keys: object) -> Side:
    """A side that sends these octets."""
    return Side(f"private={octets.hex() or 'none'}", octets, found, send, recv, r, **keys)


SILENT = raw(b"", "absent")


def filler(length: int) -> bytes:
    return b"\xa5" * length


class Exchange:
    """An exchange of two sides, and what it has to lead to."""

    def __init__(self, client: Side, server: Side) -> None:
        self.client, self.server = client, server
        # RFC 8797, section 4.2, and 4.1.
        self.negotiated = {
            "client_to_server_threshold": min(client.send, server.recv),
            "server_to_client_threshold": min(server.send, client.recv),
            "remote_invalidation": YES_NO[client.r & server.r]}

    def run(self, at: str = "{b4}", to: str = "{b4}", source: str = "{a4}",
            words: str = "") -> None:
        """The server listens at `at`, and the client connects from the address `source` to `to`."""
        a, b = script.pair.a, script.pair.b
        at, to, source, words = (text.format(**places()) for text in (at, to, source, words))
        self.number, self.port = "none", next(ports)
        client, server = script.connect(f"{at}:{self.port}", f"{to}:{self.port}",
                                        f"{self.client.options} {words}", self.server.options)
        self.number = client
        # Any port, but both ends must show the same.
        own = info(client)["local"].rsplit(":", 1)[1]
        same("the client's port is a number above 0", True, bool(re.fullmatch("[1-9][0-9]*", own)))
        source += f":{own}"
        to = re.sub("%[^]]+", "", f"{to}:{self.port}")
        self.end(client, "client", a, self.client, self.server.arrives(REPLY_ROOM), source, to)
        self.end(server, "server", b, self.server, self.client.arrives(REQUEST_ROOM), to, source)

    def end(self, number: str, role: str, host: Host, own: Side, received: bytes, local: str,
            remote: str) -> None:
        """Compares what an end shows."""
        peer = self.server if role == "client" else self.client
        found = same_info(
            number, id=number, origin="module", role=role, state="established", device=host.rdma,
            transport="iwarp" if SIW else "roce", generation=1, local_send_size=own.send,
            local_receive_size=own.recv, local_remote_invalidation=YES_NO[own.r],
            peer_length=len(received), peer_send_size=peer.send, peer_receive_size=peer.recv,
            peer_remote_invalidation=YES_NO[peer.r], **self.negotiated,
            **{f"peer_{key}": value for key, value in peer.keys.items()})
        # Any reason may follow "rejected".
        same("peer_private_data", peer.found,
             re.sub("^rejected: .+", "rejected", found["peer_private_data"]))
        same("age_ms is a number", True, found["age_ms"].isdecimal())
        # At the server's end, rdma_cm does not know the zone.
        same("local and remote", [local, remote],
             [without_zone(found["local"]), without_zone(found["remote"])])
        for file, octets in (("sent", own.octets), ("received", received)):
            same(file, octets, module.read(f"connection/{number}/{file}"))
        row = next(row for row in own_rows() if row[0] == number)
        same("the row", [number, "module", role, "established", host.rdma, found["transport"],
                         found["local"], found["remote"], "1",
                         *map(str, self.negotiated.values())], row)


def without_zone(address: str) -> str:
    return re.sub("%[0-9]+", "", address)


def link_local(host: Host) -> str:
    """Returns the link-local address of the host's device, if it has one."""
    words = hosts.run("ip", "-n", host.netns, "-6", "-br", "address", "show", "dev", host.device,
                      "scope", "link").split()
    return f"[{words[2].split('/')[0]}]" if len(words) > 2 else ""


@functools.cache
def places() -> dict[str, str]:
    """Returns the addresses of the hosts, by their names in the calls of `exchange`."""
    a, b = script.pair.a, script.pair.b
    b_link = link_local(b)[:-1]
    with entered(a.path):
        zone = socket.if_nametoindex(a.device)
    return {"a4": a.ip4, "b4": b.ip4, "a6": f"[{a.ip6}]", "b6": f"[{b.ip6}]",
            "a_link": link_local(a), "b_at": f"{b_link}%{b.device}]",
            "b_to": f"{b_link}%{a.device}]", "b_zone": f"{b_link}%{zone}]",
            "a_second": a.ip4.rsplit(".", 1)[0] + ".3"}


def exchange(name: str, client: Side, server: Side, *where: str, **words: str) -> None:
    check(name, Exchange(client, server).run, *where, **words)


# About: both ends are the module.

def pairwise() -> None:
    """x and y count through the indices of two sizes. The other parameters are computed from them
    in the field of four elements, so that each two parameters take all pairs of values."""
    twice, thrice = (0, 2, 3, 1), (0, 3, 1, 2)
    for x in range(4):
        for y in range(4):
            r = x ^ thrice[y]
            client = built(SIZES[x], SIZES[x ^ twice[y]], r & 1)
            server = built(SIZES[x ^ y], SIZES[y], r >> 1)
            exchange(f"client {client.options}, server {server.options} (4.2)", client, server)
    check("all connections of the pairwise combinations are shown",
          lambda: same("their number", 32, len(module.rows())))
    check("all connections of the pairwise combinations end", control, HOME, "close", "all")


def addresses() -> None:
    # Sizes that all differ, so that each result has one possible origin.
    sides = built(8192, 16384, 1), built(32768, 4096, 1)
    exchange("both negotiate over IPv6", *sides, "{b6}", "{b6}", "{a6}")
    exchange("both negotiate at 0.0.0.0", *sides, "0.0.0.0")
    exchange("both negotiate at [::]", *sides, "[::]", "{b6}", "{a6}")
    # siw reports the address as IPv6, and rdma_cm finds no device for that.
    if not SIW:
        exchange("both negotiate at [::] over IPv4", *sides, "[::]")
    exchange("both negotiate at link-local addresses", *sides, "{b_at}", "{b_to}", "{a_link}")
    by_number = Exchange(*sides)
    check("a zone can be given by its number", by_number.run, "[::]", "{b_zone}", "{a_link}")
    check("the number of the zone is shown", lambda: same_info(
        by_number.number, remote=f"{places()['b_zone']}:{by_number.port}"))
    check("all columns are aligned, with link-local addresses", aligned)
    need("the client gets a second address", second_address)
    if not SIW:
        need("the device has the second address", wait_for, 10, has_second_address)
    exchange("connect from the second address", *sides, "{b4}", "{b4}", "{a_second}",
             words="from={a_second}")


def second_address() -> None:
    a = script.pair.a
    words = f"{places()['a_second']}/24", "dev", a.device
    hosts.run("ip", "-n", a.netns, "address", "add", *words)
    at_end(hosts.run, "ip", "-n", a.netns, "address", "delete", *words)


def has_second_address() -> bool:
    """Whether rxe has noticed the new address, which takes a while."""
    octets = [int(part) for part in places()["a_second"].split(".")]
    gid = "{:02x}{:02x}:{:02x}{:02x}\n".format(*octets)
    gids = Path(f"/sys/class/infiniband/{script.pair.a.rdma}/ports/1/gids")
    return any(text_of(file).endswith(gid) for file in gids.iterdir())


def text_of(file: Path) -> str:
    """Returns the content of a file, or nothing if that cannot be read."""
    try:
        return file.read_text()
    except OSError:
        return ""


def private_data() -> None:
    """Octets of private= (RFC 8797, sections 4, 5.1 and 5.2)."""
    ordinary = {"offset": 0, "version": 1, "reserved": "0x00"}
    whole = offer(65536, 262144, 1), offer(4096, 1024, 1)
    ends = REQUEST_ROOM - 8, REPLY_ROOM - 8
    exchange("a message in the last octets of full private data is found (5.2)",
             raw(filler(ends[0]) + whole[0], "present", 65536, 262144, 1,
                 **ordinary | {"offset": ends[0]}),
             raw(filler(ends[1]) + whole[1], "present", 4096, 1024, 1,
                 **ordinary | {"offset": ends[1]}))
    exchange("a message without its last octet is rejected (5.2)",
             raw(filler(ends[0] + 1) + whole[0][:-1], "rejected"),
             raw(filler(ends[1] + 1) + whole[1][:-1], "rejected"))
    exchange("versions 2 and 0 of the message are rejected (5.2)",
             raw(offer(16384, 16384, 1, version=2), "rejected"),
             raw(offer(16384, 16384, 1, version=0), "rejected"))
    exchange("reserved bits of both sides are shown and ignored (4)",
             raw(offer(8192, 16384, 1, reserved=0xfe), "present", 8192, 16384, 1,
                 **ordinary | {"reserved": "0xfe"}),
             raw(offer(16384, 8192, reserved=0xaa), "present", 16384, 8192, 0,
                 **ordinary | {"reserved": "0xaa"}))
    exchange("the first valid message counts, at any offset (5.2)",
             raw(FORMAT_IDENTIFIER + b"\2" + offer(4096, 8192, 1), "present", 4096, 8192, 1,
                 **ordinary | {"offset": 5}),
             raw(b"\xf6\xf6\xab" + offer(8192, 4096, 1) + offer(1024, 1024), "present", 8192, 4096,
                 1, **ordinary | {"offset": 3}))
    exchange("octets without a message count as absent (5.2)",
             raw(FORMAT_IDENTIFIER[::-1] + offer(16384, 16384, 1)[4:], "absent"),
             raw(b"\0\xf6\xab\x0e\0" + offer(16384, 16384, 1)[5:], "absent"))
    exchange("one octet counts as absent (5.2)", raw(b"\xf6", "absent"), raw(b"\0", "absent"))
    exchange("the first rejected message is shown (5.2)", raw(FORMAT_IDENTIFIER, "rejected"),
             raw(FORMAT_IDENTIFIER + b"\2" + filler(REPLY_ROOM - 10) + FORMAT_IDENTIFIER + b"\1",
                 "rejected", offset=0, version=2))
    exchange("version 255 is rejected, and reserved bits are not R (4, 5.2)",
             raw(offer(16384, 16384, 1, version=255), "rejected", version=255),
             raw(offer(4096, 4096, reserved=0xfe), "present", 4096, 4096, 0,
                 **ordinary | {"reserved": "0xfe"}))
    exchange("the first of two messages counts, and parts of an identifier do not (5.2)",
             raw(b"\0" + offer(4096, 6144, 1) + offer(9216, 10240), "present", 4096, 6144, 1,
                 **ordinary | {"offset": 1}),
             raw(b"\xf6\xab\xf6\xab\x0e" + offer(32768, 8192, 1), "present", 32768, 8192, 1,
                 **ordinary | {"offset": 5}))
    exchange("no private data of either side counts as absent (5.1)", SILENT, SILENT)
    exchange("no private data of the server counts as absent (5.1)", built(2048, 3072, 1), SILENT)


def aligned() -> None:
    """Checks that the columns of `connections` are aligned with the header line: numbers at their
    right, other columns at their left."""
    header, *lines = module.read("connections").decode().splitlines()
    same("there are rows", True, bool(lines))
    for column, name in enumerate(re.finditer(r"\S+", header)):
        at_right = name[0] in ("GEN", "C2S", "S2C")
        for line in lines:
            word = list(re.finditer(r"\S+", line))[column]
            if (word.end() != name.end()) if at_right else (word.start() != name.start()):
                fail(f"not where {name[0]} is:\n{header}\n{line}")


# About: peers that are not the module.

def ucmatose(role: str, host: Host, *words: str) -> None:
    """Runs ucmatose, which sends no private data and waits for messages, until a connection of the
    module in that role has been compared. Then kills it."""
    received = module.stats()["messages_received"]
    process = host.popen("ucmatose", *words, "-C", "1", stdout=subprocess.DEVNULL,
                         stderr=subprocess.STDOUT)
    try:
        if role == "client":
            line = f"{script.pair.b.ip4}:{UCMATOSE} null=0 inv=1"
            wait_for(20, lambda: module.write(script.pair.a.path, "connect", f"{line}\n".encode())
                     == module.DONE)
            wait_for(10, lambda: module.stats()["messages_received"] == received + 1)
        number = wait_for(20, newest, role)
        wait_for(10, is_state, number, "established")
        room = REPLY_ROOM if role == "client" else REQUEST_ROOM
        same_info(number, peer_private_data="absent", peer_length=0 if SIW else room,
                  client_to_server_threshold=1024, server_to_client_threshold=1024,
                  remote_invalidation="no")
    except Failed as error:
        raise Failed(f"{error}; last_error: {module.last_error()}") from error
    finally:
        process.kill()
        process.wait()
    wait_for(10, is_gone, number)


def by_mpa_1(private: bytes, **wanted: object) -> None:
    """A peer that speaks version 1 of MPA connects with these octets (RFC 5044, section 7.1.1), and
    `info` of the server's end has these values. Peers with siw speak version 2."""
    with entered(script.pair.a.path):
        stream = socket.create_connection((script.pair.b.ip4, OTHERS), 20)
    with stream:
        stream.sendall(struct.pack("!16sHH", REQUEST, 0x4001, len(private)) + private)
        answer = stream.makefile("rb").read(28)
        same("the answer", REPLY, answer[:16])
        same("its version and private data", b"\x01\0\x08" + offer(8192, 16384, 1), answer[17:])
        number = wait_for(10, newest, "server")
        wait_for(10, is_state, number, "established")
        same_info(number, **wanted)
    wait_for(10, is_gone, number)


def other_peers() -> None:
    need("the module listens for other peers", script.listen, OTHERS, "send=8192 recv=16384 inv=1")
    # The guest of arm64 does not have it.
    if platform.machine() == "x86_64":
        check("ucmatose connects without private data, and is killed", lambda: ucmatose(
            "server", script.pair.a, "-s", script.pair.b.ip4, "-p", str(OTHERS)))
        check("ucmatose listens without private data, and is killed", lambda: ucmatose(
            "client", script.pair.b, "-b", script.pair.b.ip4))
    if SIW:
        # Send Size 4096 and Receive Size 16384, with R.
        octets = offer(4096, 16384, 1)
        values = {"peer_private_data": "present", "peer_send_size": 4096,
                  "peer_receive_size": 16384, "client_to_server_threshold": 4096,
                  "server_to_client_threshold": 8192, "remote_invalidation": "yes"}
        check("a message by MPA version 1 (RFC 5044, 7.1)", by_mpa_1, octets, peer_length=8,
              peer_offset=0, **values)
        # The length field of rdma_cm holds 255 octets, 4 more than a peer of version 2 can send.
        check("a message at the end of 255 octets by MPA version 1 (5.2)", by_mpa_1,
              filler(247) + octets, peer_length=255, peer_offset=247, **values)
        # Linux delivers none of 256 (reports/iwcm-private-data-length.txt).
        check("256 octets by MPA version 1 count as absent", by_mpa_1, octets + filler(248),
              peer_private_data="absent", peer_length=0, client_to_server_threshold=1024,
              server_to_client_threshold=1024, remote_invalidation="no")


def long_name() -> None:
    """Names of real devices are longer than those of the tests."""
    def rename() -> None:
        host = script.pair.a
        old, host.rdma = host.rdma, f"{host.rdma}_np0_23456789"
        hosts.run("rdma", "dev", "set", old, "name", host.rdma)
        at_end(hosts.run, "rdma", "dev", "set", host.rdma, "name", old)

    need("the device gets a long name", rename)
    exchange("both negotiate by a device with a long name", built(2048, 3072, 1), SILENT)
    check("all columns are aligned, with a long name", aligned)


def all_combinations() -> None:
    def every(sides: list[tuple[Side, Side]]) -> None:
        for number, (client, server) in enumerate(sides):
            Exchange(client, server).run()
            if Current.failures:
                raise Failed(f"client {client.options}, server {server.options}")
            if number % 16 == 0:
                control(HOME, "close", "all")

    bits = [[number >> shift & 3 for shift in range(0, 10, 2)] for number in range(1024)]
    check("none of the 1024 combinations fails", every, [
        (built(SIZES[a], SIZES[b], r & 1), built(SIZES[c], SIZES[d], r >> 1))
        for a, b, c, d, r in bits])
    ordinary = {"version": 1, "reserved": "0x00"}
    check("a message at any octet is found (RFC 8797, 5.2)", every, [
        (raw(filler(at) + offer(2048, 2048, 0), "present", 2048, 2048, offset=at, **ordinary),
         raw(filler(at) + offer(3072, 3072, 0), "present", 3072, 3072, offset=at, **ordinary))
        for at in range(REQUEST_ROOM - 7)])


script.set_up(peer=False)
need("both have a link-local address",
     lambda: [wait_for(10, link_local, host) for host in (script.pair.a, script.pair.b)])
script.group(pairwise)
script.group(addresses)
script.group(private_data)
need("the connections of the exchange end", control, HOME, "close", "all")
script.group(other_peers)
script.group(long_name)
if os.environ.get("FULL"):
    script.group(all_combinations)
script.run()
