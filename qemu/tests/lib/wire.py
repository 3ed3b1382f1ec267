# SPDX-License-Identifier: GPL-2.0
"""Messages as the RFCs write them: words of 32 bits."""


def octets(words: str | bytes, xid: int = 0) -> bytes:
    """Words are decimal or with 0x, X is the XID and Y another one. Octets stay as they are."""
    if isinstance(words, bytes):
        return words
    xids = {"X": xid, "Y": xid ^ 0x8000}
    return b"".join((xids[word] if word in xids else int(word, 0)).to_bytes(4, "big")
                    for word in words.split())


def segment(key: int, length: int, address: int) -> str:
    """A segment of a chunk (RFC 8166, section 4.7: HLOO)."""
    return f"0x{key:08x} {length} 0x{address >> 32:08x} 0x{address & 0xffffffff:08x}"


def split(message: bytes) -> list[int]:
    """The words of a message, as many as are whole."""
    return [int.from_bytes(message[at:at + 4], "big") for at in range(0, len(message) - 3, 4)]
