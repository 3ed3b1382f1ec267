# SPDX-License-Identifier: GPL-2.0
"""Messages of RPC-over-RDMA (RFC 8166; version 2 of the draft), of its set-up (RFC 8797), and of RPC
(RFC 5531), by the names that the specifications give to their parts."""

from collections.abc import Sequence

from lib.peer import Memory

# rdma_proc, and rdma_err (RFC 8166, sections 4.2.4 and 4.5; the draft, section 4.2). In version 2,
# ERR_CHUNK is BAD_HEADER.
RDMA_MSG, RDMA_NOMSG, RDMA_DONE, RDMA_ERROR, RDMA2_OPTIONAL = 0, 1, 3, 4, 5
ERR_VERS, ERR_CHUNK, ERR_INVALID_OPTION = 1, 2, 3
# rdma_direction, and msg_type of RPC (RFC 5531, section 9).
CALL, REPLY = 0, 1
# The programs of NFS, of its callbacks, and of the module. Procedure 0 is NULL. Procedure 1 of the
# module's program returns its argument.
NFS, CALLBACKS, ECHO = 100003, 0x40000000, 0x20008797
NULL = 0
# accept_stat (RFC 5531, section 9).
SUCCESS, PROG_UNAVAIL, PROG_MISMATCH, PROC_UNAVAIL, GARBAGE_ARGS, SYSTEM_ERR = range(6)
FORMAT_IDENTIFIER = bytes.fromhex("f6ab0e18")


def offer(send: int, recv: int, r: int = 0, *, version: int = 1, reserved: int = 0) -> bytes:
    """The message in private data (RFC 8797, section 4), with its sizes in octets. `reserved` is the
    flags octet without R."""
    return FORMAT_IDENTIFIER + bytes([version, reserved | r, send // 1024 - 1, recv // 1024 - 1])


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "big") for value in values)


def split(message: bytes) -> list[int]:
    """Returns the whole words of a message."""
    return [int.from_bytes(message[at:at + 4], "big") for at in range(0, len(message) - 3, 4)]


class Segment:
    """A segment of a chunk (RFC 8166, section 3.4.3)."""

    def __init__(self, handle: int, length: int, offset: int) -> None:
        self.handle, self.length, self.offset = handle, length, offset

    def octets(self, length: int | None = None) -> bytes:
        """HLOO (section 4.7), with another length if one is given."""
        length = self.length if length is None else length
        return words(self.handle, length) + self.offset.to_bytes(8, "big")

    @classmethod
    def at(cls, found: Sequence[int], place: int) -> "Segment":
        """Returns the segment that begins at a word of a message."""
        handle, length, high, low = found[place:place + 4]
        return cls(handle, length, high << 32 | low)


def cut(memory: Memory, *lengths: int) -> list[Segment]:
    """Returns segments that follow each other in the memory of the peer."""
    segments, at = [], 0
    for length in lengths:
        segments.append(Segment(memory.key, length, memory.address + at))
        at += length
    return segments


def write_chunk(segments: Sequence[Segment], *lengths: int) -> bytes:
    """The words of a Write chunk or of a Reply chunk, with these lengths or those of the segments
    (section 3.4.6)."""
    return words(1, len(segments)) + b"".join(
        one.octets(length) for one, length in zip(segments, lengths or [None] * len(segments)))


def fixed(xid: int, procedure: int, *more: int, credits: int = 32, version: int = 1) -> bytes:
    """The fixed header fields (section 4.2), and the words behind them, which may be malformed."""
    return words(xid, version, credits, procedure, *more)


def header(xid: int, procedure: int, *, credits: int = 32, version: int = 1,
           direction: int = CALL, reads: Sequence[tuple[int, Segment]] = (),
           writes: Sequence[bytes] = (), reply: bytes = b"") -> bytes:
    """RDMA_MSG or RDMA_NOMSG (section 4.1.2). `reads` are positions with their segments, `writes`
    and `reply` chunks of `write_chunk`."""
    octets = fixed(xid, procedure, *[direction] * (version == 2), credits=credits, version=version)
    octets += b"".join(words(1, position) + one.octets() for position, one in reads) + words(0)
    octets += b"".join(writes) + words(0)
    return octets + (reply or words(0))


def error(xid: int, err: int, *more: int, credits: int, version: int = 1) -> bytes:
    """RDMA_ERROR (section 4.5); ERR_VERS has the lowest and the highest version behind it."""
    return fixed(xid, RDMA_ERROR, err, *more, credits=credits, version=version)


def rpc_call(xid: int, procedure: int = NULL, arguments: bytes = b"", *, program: int = NFS,
             version: int = 4) -> bytes:
    """A call with AUTH_NONE (RFC 5531, section 9). NULL of NFS has 40 octets."""
    return words(xid, CALL, 2, program, version, procedure, 0, 0, 0, 0) + arguments


def echo(xid: int, data: bytes) -> bytes:
    """A call of ECHO: 44 octets and the data, whose length is a multiple of four."""
    return rpc_call(xid, 1, words(len(data)) + data, program=ECHO, version=1)


def accepted(xid: int, status: int, results: bytes = b"", verifier: bytes = words(0, 0)) -> bytes:
    """An accepted reply (RFC 5531, section 9): 24 octets and the results, with AUTH_NONE."""
    return words(xid, REPLY, 0) + verifier + words(status) + results


def success(xid: int, results: bytes = b"") -> bytes:
    return accepted(xid, SUCCESS, results)


def prog_unavail(xid: int) -> bytes:
    return accepted(xid, PROG_UNAVAIL)


def proc_unavail(xid: int) -> bytes:
    return accepted(xid, PROC_UNAVAIL)


def prog_mismatch(xid: int, low: int, high: int) -> bytes:
    """PROG_MISMATCH: 32 octets."""
    return accepted(xid, PROG_MISMATCH, words(low, high))


def nfs_read(count: int, *names: str) -> bytes:
    """A COMPOUND of NFS 4.0 without chunks, with AUTH_SYS: PUTROOTFH, LOOKUP of each name, READ."""
    octets = words(7, CALL, 2, NFS, 4, 1, 1, 20, *[0] * 7, 0, 0, len(names) + 2, 24)
    for name in names:
        octets += words(15, len(name)) + name.encode() + bytes(-len(name) % 4)
    return header(7, RDMA_MSG, credits=8) + octets + words(25, *[0] * 6, count)
