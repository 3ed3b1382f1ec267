# SPDX-License-Identifier: GPL-2.0
"""Makes packets and capture files: RoCEv2 and iWARP between two hosts.

The layouts are from the InfiniBand Architecture Specification, volume 1 (chapters 9 and 12, and
annexes A11 and A17), and from RFC 5040, 5041, 5044 and 6581. Checksums that Wireshark ignores are
zero.
"""

import struct

CLIENT, SERVER = "10.77.1.1", "10.77.1.2"

# Opcodes of the Base Transport Header.
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY = 0x00, 0x01, 0x02, 0x04
WRITE_ONLY, READ_RESPONSE_ONLY = 0x0A, 0x10
SEND_LAST_INVALIDATE, SEND_ONLY_INVALIDATE = 0x16, 0x17
UD_SEND_ONLY = 0x64
# Attributes of the connection manager.
REQ, REJ, REP, RTU = 0x0010, 0x0012, 0x0013, 0x0014
# Opcodes of RDMAP.
RDMAP_WRITE, RDMAP_SEND, RDMAP_SEND_INVALIDATE = 0, 3, 4


def address(text):
    return bytes(int(part) for part in text.split("."))


def ethernet(source, destination, protocol, payload):
    total = 20 + len(payload)
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, total, 0, 0x4000, 64, protocol, 0,
        address(source), address(destination),
    )
    return bytes(12) + b"\x08\x00" + ip + payload


def pcap(frames):
    """Returns the octets of a capture file. Of a frame (octets, length), only `length` octets were
    captured."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)]
    for number, frame in enumerate(frames):
        frame, length = frame if isinstance(frame, tuple) else (frame, len(frame))
        stamp = number // 1000, number % 1000 * 1000
        seen = frame[:length]
        parts.append(struct.pack("<IIII", *stamp, len(seen), len(frame)) + seen)
    return b"".join(parts)


def roce(source, destination, queue_pair, opcode, payload, psn=0, extended=b""):
    padding = -len(payload) % 4
    bth = struct.pack(">BBHII", opcode, padding << 4, 0xFFFF, queue_pair, psn)
    body = bth + extended + payload + bytes(padding) + bytes(4)
    udp = struct.pack(">HHHH", 0xC000, 4791, 8 + len(body), 0)
    return ethernet(source, destination, 17, udp + body)


def mad(source, destination, attribute, content):
    header = struct.pack(">BBBBHHQHHI", 1, 7, 2, 3, 0, 0, 0x1122334455667788, attribute, 0, 0)
    deth = struct.pack(">II", 0x80010000, 1)
    payload = (header + content).ljust(256, b"\0")
    return roce(source, destination, 1, UD_SEND_ONLY, payload, extended=deth)


def req(private, comm=0x1001, queue_pair=0x11, port=20049, rdma_cm=True, source=CLIENT,
        destination=SERVER):
    """Returns a CM REQ. With `rdma_cm`, rdma_cm's header of 36 octets precedes the private data."""
    gid = [bytes(10) + b"\xff\xff" + address(host) for host in (source, destination)]
    path = struct.pack(">HH16s16sIBBBB", 0xFFFF, 0xFFFF, *gid, 0, 0, 64, 0, 0)
    service = 0x0000000001060000 | port if rdma_cm else 0x1000000000000001
    head = struct.pack(
        ">IIQQIIIIIIHBB", comm, 0, service, 1, 0, 0, queue_pair << 8 | 4, 4, 0xA0, 7, 0xFFFF,
        0x37, 0xF0,
    )
    if rdma_cm:
        ends = [bytes(12) + address(host) for host in (source, destination)]
        private = struct.pack(">BBH16s16s", 0, 0x40, 40000, *ends) + private
    assert len(private) <= 92
    return mad(source, destination, REQ, head + path + bytes(44) + private.ljust(92, b"\0"))


def rep(private, comm=0x2001, remote=0x1001, queue_pair=0x22, source=SERVER, destination=CLIENT):
    head = struct.pack(
        ">IIIIIIBBBBQ", comm, remote, 0, queue_pair << 8, 0, 0, 4, 4, 0, 0xE0, 2)
    assert len(private) <= 196
    return mad(source, destination, REP, head + private.ljust(196, b"\0"))


def rej(private, comm=0x2001, remote=0x1001):
    head = struct.pack(">IIBBH72s", comm, remote, 0, 0, 28, bytes(72))
    return mad(SERVER, CLIENT, REJ, head + private.ljust(148, b"\0"))


def to_server(message, opcode=SEND_ONLY, psn=0, queue_pair=0x22, key=None):
    extended = b"" if key is None else struct.pack(">I", key)
    return roce(CLIENT, SERVER, queue_pair, opcode, message, psn, extended)


def to_client(message, opcode=SEND_ONLY, psn=0, queue_pair=0x11, key=None):
    extended = b"" if key is None else struct.pack(">I", key)
    return roce(SERVER, CLIENT, queue_pair, opcode, message, psn, extended)


class Stream:
    """A TCP connection that carries MPA. Each method makes one packet."""

    def __init__(self, port, server_port=20049):
        self.ports = port, server_port
        self.next = [1000, 5000]
        self.message = [1, 1]

    def packet(self, side, octets):
        source, destination = (CLIENT, SERVER) if side == 0 else (SERVER, CLIENT)
        tcp = struct.pack(
            ">HHIIBBHHH", self.ports[side], self.ports[1 - side], self.next[side],
            self.next[1 - side], 0x50, 0x18, 65535, 0, 0,
        )
        self.next[side] += len(octets)
        return ethernet(source, destination, 6, tcp + octets)

    def mpa(self, side, private, revision=2, enhanced=True):
        """With `enhanced`, the flag S is set, and the private data begins with IRD and ORD."""
        key = b"MPA ID Req Frame" if side == 0 else b"MPA ID Rep Frame"
        if enhanced:
            private = struct.pack(">HH", 4, 4) + private
        flags = 0x10 if enhanced else 0
        return self.packet(side, key + struct.pack(">BBH", flags, revision, len(private)) + private)

    def request(self, private, **options):
        return self.mpa(0, private, **options)

    def reply(self, private, **options):
        return self.mpa(1, private, **options)

    def segment(self, side, payload, opcode=RDMAP_SEND, last=True, offset=0, tag=0):
        head = struct.pack(
            ">BBIIII", 0x41 if last else 0x01, 0x40 | opcode, tag, 0, self.message[side], offset)
        if last:
            self.message[side] += 1
        return self.fpdu(head + payload)

    def tagged(self, payload, opcode=RDMAP_WRITE, handle=0, offset=0):
        return self.fpdu(struct.pack(">BBIQ", 0xC1, 0x40 | opcode, handle, offset) + payload)

    def fpdu(self, ulpdu):
        fpdu = struct.pack(">H", len(ulpdu)) + ulpdu
        return fpdu + bytes(-len(fpdu) % 4) + bytes(4)

    def send(self, side, payload, **options):
        return self.packet(side, self.segment(side, payload, **options))
