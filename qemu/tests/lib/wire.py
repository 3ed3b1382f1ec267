# SPDX-License-Identifier: GPL-2.0
"""Messages in the notation of the RFCs: words of 32 bits."""


def octets(words: str | bytes, xid: int = 0) -> bytes:
    """Returns the octets of a message. Words are decimal or hexadecimal with 0x. X is the XID, and
    Y another one. Octets are returned unchanged."""
    if isinstance(words, bytes):
        return words
    xids = {"X": xid, "Y": xid ^ 0x8000}
    return b"".join((xids[word] if word in xids else int(word, 0)).to_bytes(4, "big")
                    for word in words.split())


def segment(key: int, length: int, address: int) -> str:
    """Returns the words of a segment of a chunk (RFC 8166, section 4.7: HLOO)."""
    return f"0x{key:08x} {length} 0x{address >> 32:08x} 0x{address & 0xffffffff:08x}"


def split(message: bytes) -> list[int]:
    """Returns the whole words of a message."""
    return [int.from_bytes(message[at:at + 4], "big") for at in range(0, len(message) - 3, 4)]
