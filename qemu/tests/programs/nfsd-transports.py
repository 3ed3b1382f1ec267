#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Prints the connections of the kernel's NFS server over RDMA in this network namespace, one a
line: the number of the queue pair, the inline thresholds of calls and of replies, the credits, and
1 if the server invalidates. By transport-get, which the third patch of series/observe adds to the
netlink family nfsd.
"""

import socket
import struct
from collections.abc import Iterator

# linux/netlink.h, linux/genetlink.h; Python has no name for the first
NETLINK_GENERIC, NLMSG_ERROR, NLMSG_DONE = 16, 2, 3
REQUEST, DUMP = 1, 0x300
ID_CTRL, CMD_GETFAMILY, FAMILY_ID, FAMILY_NAME = 16, 3, 1, 2
# linux/nfsd_netlink.h
TRANSPORT_GET, TRANSPORT_RDMA = 20, 4
QP_NUM, INLINE_RECV, INLINE_SEND, CREDITS, INVALIDATES = range(1, 6)


def attributes(octets: bytes) -> dict[int, bytes]:
    """Returns the values by their types, without the flag of a nest."""
    found = {}
    while len(octets) >= 4:
        length, kind = struct.unpack_from("HH", octets)
        found[kind & 0x3FFF] = octets[4:length]
        octets = octets[(length + 3) & ~3 :]
    return found


def asked(netlink: socket.socket, family: int, flags: int, command: int, body: bytes) -> Iterator[dict[int, bytes]]:
    """Yields the attributes of each answer."""
    netlink.send(struct.pack("IHHIIBBxx", 20 + len(body), family, REQUEST | flags, 1, 0, command, 1) + body)
    while True:
        octets = netlink.recv(65536)
        while octets:
            length, kind = struct.unpack_from("IH", octets)
            if kind == NLMSG_ERROR:
                raise OSError(-struct.unpack_from("i", octets, 16)[0], "netlink")
            if kind == NLMSG_DONE:
                return
            yield attributes(octets[20:length])
            octets = octets[(length + 3) & ~3 :]
        if not flags:
            return


def main() -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC) as netlink:
        name = struct.pack("HH8s", 12, FAMILY_NAME, b"nfsd")
        (family,) = asked(netlink, ID_CTRL, 0, CMD_GETFAMILY, name)
        number = struct.unpack("H", family[FAMILY_ID])[0]
        for transport in asked(netlink, number, DUMP, TRANSPORT_GET, b""):
            rdma = attributes(transport.get(TRANSPORT_RDMA, b""))
            if rdma:
                numbers = [struct.unpack("I", rdma[key])[0] for key in (QP_NUM, INLINE_RECV, INLINE_SEND, CREDITS)]
                print(*numbers, int(INVALIDATES in rdma))


main()
