#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the segments in a capture, one a line.

segment XID LIST STAG LENGTH POSITION OFFSET: a segment of a chunk in a transport header. LIST is
read, write or reply. POSITION is the number of octets of the chunk before the segment.
sink STAG LENGTH OFFSET: the memory into which an RDMA Read of iWARP is put.

Numbers are hexadecimal, except LENGTH and POSITION. The capture is one by tcpdump of an
Ethernet device: RoCEv2, or iWARP over TCP connections seen from their beginning.
"""

import struct
import sys
from collections.abc import Iterator

ROCE = 4791
SEND_FIRST, SEND_ONLY, SEND_ONLY_IMMEDIATE, SEND_ONLY_INVALIDATE = 0x00, 0x04, 0x05, 0x17
# Length of the extended headers between the Base Transport Header and the message.
EXTENDED = {SEND_FIRST: 0, SEND_ONLY: 0, SEND_ONLY_IMMEDIATE: 4, SEND_ONLY_INVALIDATE: 4}
READ_REQUEST, SENDS = 1, (3, 4, 5, 6)
MSG, NOMSG = 0, 1


def frames(capture: bytes) -> Iterator[bytes]:
    order = "<" if capture[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(capture):
        length = struct.unpack_from(order + "I", capture, at + 8)[0]
        yield capture[at + 16 : at + 16 + length]
        at += 16 + length


def packets(frame: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields the protocol, the addresses, and the octets behind the IP header."""
    kind = struct.unpack_from(">H", frame, 12)[0]
    if kind == 0x0800:
        length = struct.unpack_from(">H", frame, 16)[0]
        start = 14 + 4 * (frame[14] & 15)
        yield frame[23], frame[26:34], frame[start : 14 + length]
    elif kind == 0x86DD:
        length = struct.unpack_from(">H", frame, 18)[0]
        yield frame[20], frame[22:54], frame[54 : 54 + length]


def words(octets: bytes, at: int, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f">{count}I", octets, at)


def header(message: bytes) -> Iterator[str]:
    """Yields the segments of a transport header of version 1 or 2."""
    xid, version, _, procedure = words(message, 0, 4)
    if version not in (1, 2) or procedure not in (MSG, NOMSG):
        return
    at = 16 if version == 1 else 20

    def segment(name: str, position: int) -> tuple[str, int]:
        nonlocal at
        stag, length, offset = struct.unpack_from(">IIQ", message, at)
        at += 16
        return f"segment {xid:08x} {name} {stag:08x} {length} {position} {offset:016x}", length

    def chunk(name: str) -> Iterator[str]:
        nonlocal at
        (count,) = words(message, at, 1)
        at += 4
        position = 0
        for _ in range(count):
            line, length = segment(name, position)
            position += length
            yield line

    def more() -> bool:
        nonlocal at
        at += 4
        return words(message, at - 4, 1)[0] != 0

    position = 0
    while more():
        at += 4
        line, length = segment("read", position)
        position += length
        yield line
    while more():
        yield from chunk("write")
    if more():
        yield from chunk("reply")


def roce(datagram: bytes) -> Iterator[str]:
    if struct.unpack_from(">H", datagram, 2)[0] != ROCE or datagram[8] not in EXTENDED:
        return
    yield from header(datagram[20 + EXTENDED[datagram[8]] :])


def iwarp(octets: bytes) -> Iterator[str]:
    """Yields the lines of one direction of a connection: a frame of MPA, then FPDUs."""
    if octets[:6] != b"MPA ID":
        return
    at = 20 + struct.unpack_from(">H", octets, 18)[0]
    while at + 2 <= len(octets):
        length = struct.unpack_from(">H", octets, at)[0]
        unit = octets[at + 2 : at + 2 + length]
        if len(unit) < length or length < 18:
            return
        opcode, offset = unit[1] & 15, words(unit, 14, 1)[0]
        if opcode in SENDS and offset == 0:
            yield from header(unit[18:])
        elif opcode == READ_REQUEST:
            stag, to, size = struct.unpack_from(">IQI", unit, 18)
            yield f"sink {stag:08x} {size} {to:016x}"
        # Padding and CRC follow.
        at += (2 + length + 3) // 4 * 4 + 4


def stream(segments: list[tuple[int, bytes]]) -> bytes:
    """Returns the octets of a TCP stream, without retransmissions, up to the first gap."""
    first = segments[0][0]
    whole = b""
    for sequence, octets in sorted(((s - first) & 0xFFFFFFFF, o) for s, o in segments):
        if sequence > len(whole):
            break
        whole += octets[len(whole) - sequence :]
    return whole


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        capture = file.read()
    flows: dict[bytes, list[tuple[int, bytes]]] = {}
    for frame in frames(capture):
        for protocol, addresses, payload in packets(frame):
            try:
                if protocol == 17:
                    for line in roce(payload):
                        print(line)
                elif protocol == 6:
                    sequence = words(payload, 4, 1)[0]
                    if octets := payload[4 * (payload[12] >> 4) :]:
                        flow = flows.setdefault(addresses + payload[:4], [])
                        flow.append((sequence, octets))
            except struct.error:
                continue
    for flow in flows.values():
        for line in iwarp(stream(flow)):
            print(line)


main()
