# SPDX-License-Identifier: GPL-2.0
"""A peer of siw in plain TCP: MPA (RFC 5044, RFC 6581), one Send, and one Read Request (RFC 5040,
RFC 5041)."""

import socket
import struct

from lib.hosts import Host, entered
from lib.ktap import Failed, same

# RFC 5044, section 7.1: the keys of a request and of a reply.
REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
# RFC 6581, sections 4 and 9: revision 2 with the bit S, and an IRD and an ORD of 16.
ENHANCED, DEPTHS = 0x1002, bytes.fromhex("0010 0010")
# RFC 5041, section 4.3, and RFC 5040, section 4.2: the last segment of an untagged message in version
# 1 of DDP; version 1 of RDMAP with an opcode; and the queues.
LAST, READ_REQUEST, SEND = 0x41, 0x41, 0x43
QUEUES = {SEND: 0, READ_REQUEST: 1}
# The octets of DDP and RDMAP before the payload of an untagged segment.
UNTAGGED = 18


def behind(length: int) -> int:
    """Returns the octets behind a segment of this length: the padding, and four octets in place of
    the CRC, which siw does not use (RFC 5044, section 4.1)."""
    return -(2 + length) % 4 + 4


class Tcp:
    """A connection."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        stream.settimeout(20)

    @classmethod
    def connect(cls, client: Host, server: Host, port: int, private: bytes) -> "Tcp":
        with entered(client.path):
            tcp = cls(socket.create_connection((server.ip4, port), 20))
        # The kernel's NFS server refuses a client that allows it no RDMA Reads.
        tcp.sends(REQUEST, DEPTHS + private)
        tcp.frame(REPLY)
        return tcp

    @classmethod
    def accept(cls, listener: socket.socket, private: bytes) -> "Tcp":
        tcp = cls(listener.accept()[0])
        found = tcp.frame(REQUEST)
        # The ORD of the client becomes the IRD here, and the other way round.
        tcp.sends(REPLY, found[2:4] + found[:2] + private)
        return tcp

    def sends(self, key: bytes, private: bytes) -> None:
        self.stream.sendall(struct.pack("!16sHH", key, ENHANCED, len(private)) + private)

    def frame(self, key: bytes) -> bytes:
        """Returns the private data of a request or a reply."""
        *found, length = struct.unpack("!16sHH", self.octets(20))
        same("the key and the bits of the frame", [key, ENHANCED], found)
        return self.octets(length)

    def reads(self, handle: int, offset: int, length: int) -> None:
        """Sends the connection's first Read Request, for memory of the other end."""
        self.first(READ_REQUEST, struct.pack("!IQIIQ", 1, 0, length, handle, offset))

    def first(self, opcode: int, payload: bytes) -> None:
        """Sends the first message of a queue."""
        segment = struct.pack("!BBIIII", LAST, opcode, 0, QUEUES[opcode], 1, 0) + payload
        end = bytes(behind(len(segment)))
        self.stream.sendall(struct.pack("!H", len(segment)) + segment + end)

    def segment(self) -> bytes:
        """Returns the payload of an untagged segment."""
        length, = struct.unpack("!H", self.octets(2))
        return self.octets(length + behind(length))[UNTAGGED:length]

    def octets(self, length: int) -> bytes:
        found = b""
        # MSG_WAITALL does not wait on a socket with a time limit.
        while len(found) < length and (more := self.stream.recv(length - len(found))):
            found += more
        if len(found) < length:
            raise Failed(f"{length} octets wanted, {len(found)} received")
        return found

    def fin(self) -> None:
        # To close a stream with octets that nobody has read would send RST.
        self.stream.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.stream.close()
