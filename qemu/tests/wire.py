#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The octets on the wire, as tshark decodes them, are the expected ones, and both ends show them.
The dissector of tools/wireshark, which shares no code with the module, finds the same messages as
both ends. Each check of a rule names its section: of RFC 8797 if it names no other document. FULL=1
adds private data."""

# test: stock.rxe
# soak: debug.rxe debug.siw

import ipaddress
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from lib import module
from lib.hosts import HOME, TRANSPORT
from lib.ktap import Failed, fail, same, wait_for
from lib.messages import FORMAT_IDENTIFIER, offer
from lib.module import REPLY_ROOM, REQUEST_ROOM, control, info, same_info
from lib.script import Script

ROCE = TRANSPORT == "rxe"
# Octets without zeros, in which neighbours differ.
FILLER = bytes(range(1, 256))
LUA = Path(__file__).parent / "../../tools/wireshark/rpcrdma_cm.lua"
# A user who may load scripts into tshark.
NOBODY = 65534

script = Script()
check, need = script.check, script.need
ports = iter(range(20049, 20200))
# The process that waits for that of the checks removes it.
folder = tempfile.TemporaryDirectory()
scratch = Path(folder.name)
capture = scratch / "wire.pcap"

# A packet: the values of fields of tshark, by their names.
Packet = dict[str, str]
# The packets of the capture, by tshark alone, and with the dissector.
decoded: list[Packet] = []
dissected: list[Packet] = []


class Exchange:
    """A connection, its private data, and the options of `connect` and `listen`."""

    def __init__(self, name: str, request: bytes, reply: bytes, client: str = "",
                 server: str = "", version: int = 4) -> None:
        self.name, self.version = name, version
        self.sent = request, reply
        self.options = [options or f"private={octets.hex() or 'none'}"
                        for options, octets in zip((client, server), self.sent)]
        self.ends = "", ""

    def connect(self) -> None:
        host = script.pair.b
        at = f"{host.ip4 if self.version == 4 else f'[{host.ip6}]'}:{next(ports)}"
        self.ends = script.connect(at, at, *self.options)

    def shows(self, received: tuple[bytes, bytes]) -> None:
        """Compares the files of both ends. `received`: by the server, and by the client."""
        for end, sent, arrived in zip(self.ends, self.sent, reversed(received)):
            same(f"sent by {end}", sent, module.read(f"connection/{end}/sent"))
            same(f"received by {end}", arrived, module.read(f"connection/{end}/received"))

    def roce(self) -> None:
        """The CM's REQ has 92 octets, of which rdma_cm's header is the first 36: version, IP
        version, port, addresses. Its REP has 196."""
        from_port, to_port = both_ports(info(self.ends[0]))
        hosts = script.pair.a, script.pair.b
        if self.version == 4:
            addresses = [bytes(12) + ipaddress.ip_address(host.ip4).packed for host in hosts]
        else:
            addresses = [ipaddress.ip_address(host.ip6).packed for host in hosts]
        header = bytes([0, self.version << 4]) + from_port.to_bytes(2, "big") + b"".join(addresses)
        received = self.sent[0].ljust(REQUEST_ROOM, b"\0"), self.sent[1].ljust(REPLY_ROOM, b"\0")

        request = first(decoded, {"infiniband.cm.req.ip_cm.sport": f"0x{from_port:04x}",
                                  "infiniband.cm.req.serviceid.dport": f"0x{to_port:04x}"})
        same("the request", header + received[0], octets(request, "infiniband.cm.req.ip_cm"))
        reply = first(decoded, {"infiniband.cm.rep.remotecommid": request["infiniband.cm.req"]})
        same("the reply", received[1], octets(reply, "infiniband.cm.rep.private"))
        self.shows(received)

    def iwarp(self) -> None:
        """In frames of MPA the private data is behind the 4 octets of MPAv2 (RFC 6581, section 9).
        A bit in the header says that they are present."""
        from_port, to_port = map(str, both_ports(info(self.ends[0])))
        request = first(decoded, {"tcp.srcport": from_port, "tcp.dstport": to_port,
                                  "iwarp_mpa.key.rep": ""})
        reply = first(decoded, {"tcp.srcport": to_port, "tcp.dstport": from_port,
                                "iwarp_mpa.key.req": ""})
        for what, packet, sent in zip(("request", "reply"), (request, reply), self.sent):
            found = (packet["iwarp_mpa.rev"], packet["iwarp_mpa.res"], packet["iwarp_mpa.pdlength"],
                     octets(packet, "iwarp_mpa.privatedata")[4:].hex())
            same(f"the {what}", ("2", "0x10", str(4 + len(sent)), sent.hex()), found)
        self.shows(self.sent)

    def dissected(self) -> None:
        """Compares the values of both ends with those of the dissector."""
        client, server = map(info, self.ends)
        request = request_of(both_ports(client))
        statuses = [end["peer_private_data"] for end in (server, client)]
        if statuses == ["absent", "absent"]:
            if request:
                fail(f"not wanted: {request}")
            return
        if not request:
            raise Failed("no request was dissected")
        reply = first(dissected, {"rpcrdma_cm.role": "server",
                                  "rpcrdma_cm.request_in": request["frame.number"]})
        for what, packet, end, keys in (("request", request, self.ends[1], server),
                                        ("reply", reply, self.ends[0], client)):
            same(f"the {what}, to its receiver and to the dissector", of_info(keys),
                 of_packet(packet))
            same(f"the octets of the {what}", module.read(f"connection/{end}/received"),
                 octets(packet, "rpcrdma_cm.octets"))
        negotiated = [reply["rpcrdma_cm.client_to_server_threshold"],
                      reply["rpcrdma_cm.server_to_client_threshold"],
                      yes_no(reply["rpcrdma_cm.remote_invalidation"])]
        for what, keys in (("client", client), ("server", server)):
            same(f"negotiated, to the {what} and to the dissector",
                 [keys["client_to_server_threshold"], keys["server_to_client_threshold"],
                  keys["remote_invalidation"]], negotiated)


class Caller:
    """A connection with calls. RFC 8797, section 4.1: replies that invalidate, if both sides set
    R."""

    def __init__(self, inv: int) -> None:
        self.inv = inv
        self.ends = "", ""

    def calls(self) -> None:
        at = f"{script.pair.b.ip4}:{next(ports)}"
        self.ends = script.connect(at, at, f"inv={self.inv} rpcvers=2", "inv=1")
        self.echo("size=10000 count=3")
        same_info(self.ends[1], chunked_calls=3, sends_with_invalidate=3 * self.inv)

    def echo(self, words: str) -> None:
        control(HOME, "call", f"connection {self.ends[0]} echo {words}")

    def dissected(self) -> None:
        """Compares the calls in the capture with the counters of both ends. A message that was
        retransmitted counts once."""
        client, server = map(info, self.ends)
        request = request_of(both_ports(client))
        if not request:
            raise Failed("no request was dissected")
        sent, inline, chunked, invalidated = set(), set(), set(), set()
        for packet in dissected:
            if packet["rpcrdma2.request_in"] != request["frame.number"]:
                continue
            xid = packet["rpcrdma2.xid"]
            # SEND Only with Invalidate; Send with Invalidate.
            if packet["infiniband.bth.opcode"] == "23" or packet["iwarp_rdma.opcode"] == "0x04":
                invalidated.add(xid)
            if packet["rpcrdma2.from"] != "client":
                continue
            sent.add(xid)
            same("its direction", "0", packet["rpcrdma2.direction"])
            lists = packet["rpcrdma2.reads"], packet["rpcrdma2.writes"]
            if any(int(count or 0) for count in lists) or packet["rpcrdma2.reply"] == "True":
                chunked.add(xid)
            else:
                inline.add(xid)
                same("the XID of the RPC message", xid, packet["rpc.xid"])
        for keys, key, found in ((client, "sends", sent), (client, "inline_calls", inline),
                                 (client, "chunked_calls", chunked),
                                 (server, "sends_with_invalidate", invalidated)):
            same(key, keys[key], str(len(found)))


def both_ports(keys: dict[str, str]) -> list[int]:
    """Returns the ports of the client and of the server, by `info` of the client."""
    return [int(keys[key].rsplit(":", 1)[1]) for key in ("local", "remote")]


def octets(packet: Packet, field: str) -> bytes:
    return bytes.fromhex(packet[field].replace(":", ""))


def first(packets: list[Packet], wanted: Packet) -> Packet:
    """Returns the first packet with these values."""
    found = find(packets, wanted)
    if not found:
        raise Failed("\n".join([f"no packet with {wanted} among these:", *map(str, packets)]))
    return found


def find(packets: list[Packet], wanted: Packet) -> Packet:
    return next((packet for packet in packets if wanted.items() <= packet.items()), {})


def yes_no(value: str) -> str:
    return "yes" if value == "True" else "no"


# About: the capture.

class Capture:
    """tcpdump, which captures all packets between the hosts that may carry RDMA."""

    process: subprocess.Popen

    def begin(self) -> None:
        errors = scratch / "tcpdump"
        # With --immediate-mode each packet would take as much of the buffer (-B) as the longest one
        # (-s).
        with errors.open("w") as file:
            self.process = script.pair.a.popen(
                "tcpdump", "-i", script.pair.a.device, "-B", "32768", "-s", "65549", "-U",
                "-w", str(capture), "udp port 4791 or udp port 9 or tcp", stderr=file)
        script.at_end(self.process.kill)
        wait_for(20, lambda: "listening on" in errors.read_text())

    def end(self) -> None:
        """Sends a last packet, and waits until the capture holds it. Then it also holds all earlier
        packets, except those that tcpdump says it has lost."""
        script.pair.a.run("bash", "-c", f"echo that-is-all >/dev/udp/{script.pair.b.ip4}/9")
        wait_for(20, lambda: b"that-is-all" in capture.read_bytes())
        self.process.terminate()
        self.process.wait(20)
        errors = (scratch / "tcpdump").read_text()
        if not re.search("^0 packets dropped by kernel", errors, re.MULTILINE):
            fail(errors)


def decode(wanted: str, *fields: str, options: tuple[str, ...] = (),
           **more: object) -> list[Packet]:
    """Returns these fields of each packet that the filter selects."""
    columns = [word for field in fields for word in ("-e", field)]
    found = subprocess.run(["tshark", *options, "-r", str(capture), "-Y", wanted, "-T", "fields",
                            "-E", "separator=|", *columns], capture_output=True, text=True,
                           check=False, **more)
    if found.returncode or "Lua" in found.stderr:
        raise Failed(f"tshark ended with {found.returncode}: {found.stderr}")
    return [dict(zip(fields, line.split("|"), strict=True)) for line in found.stdout.splitlines()]


def none_again(message: str) -> None:
    """Checks that no REQ and no REP wants a message retransmitted that finds no Receive. A peer
    that exceeds its credits loses its connection (RFC 8166, section 3.3.1)."""
    field = f"infiniband.cm.{message}.rnrretrcount"
    packets = decode(f"infiniband.cm.{message}", field)
    same("there are packets", True, bool(packets))
    for packet in packets:
        same("retransmissions", 0, int(packet[field], 0))


# About: the dissector.

COLUMNS = ("frame.number", "rpcrdma_cm.role", "infiniband.cm.req.serviceid.dport", "tcp.srcport",
           "tcp.dstport", "rpcrdma_cm.request_in", "rpcrdma_cm.octets", "rpcrdma_cm.status",
           "rpcrdma_cm.length", "rpcrdma_cm.offset", "rpcrdma_cm.version", "rpcrdma_cm.reserved",
           "rpcrdma_cm.r", "rpcrdma_cm.send_octets", "rpcrdma_cm.receive_octets",
           "rpcrdma_cm.rejected", "rpcrdma_cm.rejected.offset", "rpcrdma_cm.rejected.version",
           "rpcrdma_cm.client_to_server_threshold", "rpcrdma_cm.server_to_client_threshold",
           "rpcrdma_cm.remote_invalidation", "rpcrdma2.request_in", "rpcrdma2.from", "rpcrdma2.xid",
           "rpcrdma2.direction", "rpcrdma2.reads", "rpcrdma2.writes", "rpcrdma2.reply",
           "infiniband.bth.opcode", "iwarp_rdma.opcode", "rpc.xid")


def install_dissector() -> None:
    """Installs it as users do it. tshark of root loads no scripts, and prints no error."""
    plugins = scratch / "home/.local/lib/wireshark/plugins"
    plugins.mkdir(parents=True)
    shutil.copyfile(LUA, plugins / LUA.name)
    scratch.chmod(0o755)
    capture.chmod(0o644)


def dissect() -> None:
    """Decodes the capture with the dissector, in two passes, so that the line of a request has
    fields of its reply."""
    dissected.extend(decode(
        "rpcrdma_cm or rpcrdma2", *COLUMNS,
        options=("-2", "-n", "-o", "rpc.dissect_unknown_programs:TRUE"), user=NOBODY,
        group=NOBODY, extra_groups=[], env=os.environ | {"HOME": str(scratch / "home")}))


def request_of(between: list[int]) -> Packet:
    """Returns the packet with the request between these ports."""
    from_port, to_port = between
    if ROCE:
        wanted = {"infiniband.cm.req.serviceid.dport": f"0x{to_port:04x}"}
    else:
        wanted = {"tcp.srcport": str(from_port), "tcp.dstport": str(to_port)}
    return find(dissected, wanted | {"rpcrdma_cm.role": "client"})


def of_packet(packet: Packet) -> list[str]:
    """Returns the result of the dissector. The first one of several rejected candidates counts."""
    found = [packet["rpcrdma_cm.status"], packet["rpcrdma_cm.length"]]
    if found[0] == "present":
        reserved = int(packet["rpcrdma_cm.reserved"], 0) << 1
        found += [packet["rpcrdma_cm.offset"], packet["rpcrdma_cm.version"], f"0x{reserved:02x}",
                  yes_no(packet["rpcrdma_cm.r"]), packet["rpcrdma_cm.send_octets"],
                  packet["rpcrdma_cm.receive_octets"]]
    if found[0] == "rejected":
        found += [packet["rpcrdma_cm.rejected.offset"].split(",")[0],
                  reason(packet["rpcrdma_cm.rejected"])]
    return found


def of_info(keys: dict[str, str]) -> list[str]:
    """Returns the same values of `info`, about the private data received."""
    status = keys["peer_private_data"]
    found = [status.split(":")[0], keys["peer_length"]]
    if status == "present":
        found += [keys[f"peer_{key}"] for key in ("offset", "version", "reserved",
                                                  "remote_invalidation", "send_size",
                                                  "receive_size")]
    if found[0] == "rejected":
        found += [keys["peer_offset"], reason(status)]
    return found


def reason(text: str) -> str:
    """Returns the reason of the first rejection."""
    found = re.search("version [0-9]+|truncated", text)
    return found[0] if found else f"none in {text}"


def same_counters() -> None:
    """Checks that the counters of private data, over all connections and both ends, are as high as
    the number of messages of that kind in the capture."""
    counts = {"present": 0, "rejected": 0, "absent": 0}
    seen = set()
    for packet in dissected:
        # Without retransmissions of the CM: a connection has one REQ and one REP.
        key = tuple(packet[column] for column in COLUMNS[1:6])
        if packet["rpcrdma_cm.role"] and key not in seen:
            seen.add(key)
            counts[packet["rpcrdma_cm.status"]] += 1
    stats = module.stats()
    for status in ("present", "rejected"):
        same(f"private_data_{status}", stats[f"private_data_{status}"], counts[status])


def behind(room: int, octets: bytes) -> bytes:
    """Returns as many octets as there is room for, with these at their end."""
    return FILLER[:room - len(octets)] + octets


EXCHANGES = [
    Exchange("messages of both sides (4)", offer(8192, 16384, 1), offer(262144, 1024),
             "send=8192 recv=16384 inv=1", "send=262144 recv=1024"),
    Exchange("messages of both sides over IPv6 (4)", offer(1024, 262144), offer(65536, 4096, 1),
             "send=1024 recv=262144", "send=65536 recv=4096 inv=1", version=6),
    Exchange("as many octets as both messages can carry (5.2)", FILLER[:REQUEST_ROOM],
             FILLER[:REPLY_ROOM]),
    Exchange("one octet of each side (5.2)", b"\xa5", b"\x5a"),
    Exchange("no octets of either side (5.1)", b"", b""),
    Exchange("one octet before the messages (5.2)", b"\0" + offer(8192, 32768),
             b"\x5a" + offer(4096, 16384, 1)),
    Exchange("versions 2 and 0 in a capture (5.2)", offer(16384, 16384, 1, version=2),
             offer(16384, 16384, 1, version=0)),
    Exchange("two messages of each side (5.2)", offer(4096, 6144, 1) + offer(9216, 10240),
             b"\0" + offer(1024, 1024) + offer(262144, 262144, 1)),
    Exchange("messages in the last octets (5.2)", behind(REQUEST_ROOM, offer(65536, 1024, 1)),
             behind(REPLY_ROOM, offer(65536, 8192))),
]
MORE = [
    Exchange("no octets of the server (5.1)", offer(4096, 4096, 1), b""),
    Exchange("no octets of the client (5.1)", b"", offer(4096, 4096, 1)),
    Exchange("smallest and largest sizes (4.2)", offer(262144, 1024), offer(1024, 262144, 1)),
    Exchange("reserved bits in a capture (4)", offer(8192, 16384, 1, reserved=0xfe),
             offer(16384, 8192, reserved=0xaa)),
    Exchange("another version before a message (5.2)",
             FORMAT_IDENTIFIER + b"\2" + offer(4096, 8192, 1),
             b"\xf6\xf6\xab" + offer(8192, 4096, 1) + offer(1024, 1024)),
    Exchange("octets behind the messages (4)", offer(4096, 4096, 1) + b"\xa5\xa5",
             offer(4096, 4096, 1) + b"\0"),
    # On RoCE the receiver sees a whole message, because the CM pads with zeros. The sender takes
    # its offer from the seven octets. Both ends agree, because R is clear.
    Exchange("seven of eight octets (5.2)", offer(8192, 1024)[:7], offer(8192, 1024)[:7]),
    Exchange("the identifier alone (5.2)", FORMAT_IDENTIFIER, FORMAT_IDENTIFIER),
    Exchange("other format identifiers (5.2)", b"\xf6\xab\x0e\x19" + offer(4096, 4096, 1)[4:],
             FORMAT_IDENTIFIER[::-1] + offer(4096, 4096, 1)[4:]),
    Exchange("truncated messages (5.2)", behind(REQUEST_ROOM, offer(65536, 1024, 1)[:7]),
             behind(REPLY_ROOM, offer(65536, 1024, 1)[:7])),
]
if os.environ.get("FULL"):
    EXCHANGES += MORE
FIELDS = ("infiniband.cm.req", "infiniband.cm.req.ip_cm.sport", "infiniband.cm.req.serviceid.dport",
          "infiniband.cm.req.ip_cm", "infiniband.cm.rep.remotecommid",
          "infiniband.cm.rep.private") if ROCE else (
    "tcp.srcport", "tcp.dstport", "iwarp_mpa.key.req", "iwarp_mpa.key.rep", "iwarp_mpa.rev",
    "iwarp_mpa.res", "iwarp_mpa.pdlength", "iwarp_mpa.privatedata")


def decode_all() -> None:
    decoded.extend(decode("infiniband.cm.req or infiniband.cm.rep" if ROCE else
                          "iwarp_mpa.req or iwarp_mpa.rep", *FIELDS))


script.set_up(peer=False)
capturing = Capture()
need("the capture of the private data begins", capturing.begin)
for exchange in EXCHANGES:
    need(exchange.name, exchange.connect)
CALLERS = [Caller(1), Caller(0)]
need("calls with remote invalidation (4.1)", CALLERS[0].calls)
need("calls without remote invalidation (4.1)", CALLERS[1].calls)
need("inline calls", CALLERS[1].echo, "size=100 count=2")
need("the capture of the private data ends", capturing.end)
need("tshark decodes the capture", decode_all)
for exchange in EXCHANGES:
    check(f"on the wire: {exchange.name}", exchange.roce if ROCE else exchange.iwarp)
if ROCE:
    for message in "REQ", "REP":
        check(f"on the wire: a {message} wants no message retransmitted (RFC 8166, 3.3.1)",
              none_again, message.lower())
need("the dissector is installed", install_dissector)
need("the dissector runs", dissect)
for exchange in EXCHANGES:
    check(f"dissected: {exchange.name}", exchange.dissected)
for n, caller in enumerate(CALLERS):
    check(f"dissected: the calls of connection {n} (4.1)", caller.dissected)
check("dissected: as many messages as the counters say", same_counters)
script.run()
