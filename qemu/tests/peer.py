#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A peer that is not the module: user space's librdmacm, with any private data.

Reads commands, and answers each with one line:
    listen NETNS ADDRESS PORT             done
    accept HEX|none                       what the next request carries
    connect NETNS ADDRESS PORT HEX|none   what the answer carries
    close                                 done; the connection is over

Not with pyverbs: importing that takes ten times as long, which in a slow guest
is more than all the connections.
"""

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_uint8, c_uint32, c_void_p

CONNECT_REQUEST, ESTABLISHED = 4, 9
ADDRESS_RESOLVED, ROUTE_RESOLVED = 0, 2
PORT_SPACE_TCP = 0x0106
RELIABLE_CONNECTION = 2
TIMEOUT_MS = 5000

rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
rdmacm.rdma_create_event_channel.restype = c_void_p
rdmacm.rdma_event_str.restype = c_char_p


class Parameters(ctypes.Structure):
    """struct rdma_conn_param"""

    _fields_ = [
        ("private_data", c_void_p),
        ("private_data_len", c_uint8),
        ("responder_resources", c_uint8),
        ("initiator_depth", c_uint8),
        ("flow_control", c_uint8),
        ("retry_count", c_uint8),
        ("rnr_retry_count", c_uint8),
        ("srq", c_uint8),
        ("qp_num", c_uint32),
    ]


class Event(ctypes.Structure):
    """struct rdma_cm_event"""

    _fields_ = [
        ("id", c_void_p),
        ("listen_id", c_void_p),
        ("event", c_int),
        ("status", c_int),
        ("conn", Parameters),
    ]


class QueuePair(ctypes.Structure):
    """struct ibv_qp_init_attr"""

    _fields_ = [
        ("qp_context", c_void_p),
        ("send_cq", c_void_p),
        ("recv_cq", c_void_p),
        ("srq", c_void_p),
        ("max_send_wr", c_uint32),
        ("max_recv_wr", c_uint32),
        ("max_send_sge", c_uint32),
        ("max_recv_sge", c_uint32),
        ("max_inline_data", c_uint32),
        ("qp_type", c_int),
        ("sq_sig_all", c_int),
    ]


def call(function: str, *arguments: object) -> None:
    """Calls a function of librdmacm that returns 0 or fails."""
    if getattr(rdmacm, function)(*arguments):
        raise OSError(ctypes.get_errno(), function)


def address(host: str, port: str) -> ctypes.Array[ctypes.c_char]:
    """Returns a struct sockaddr_in."""
    octets = int(port).to_bytes(2, "big") + bytes(map(int, host.split(".")))
    return ctypes.create_string_buffer(b"\x02\x00" + octets, 16)


class Peer:
    """At most one listener and one connection."""

    def __init__(self) -> None:
        self.channel = c_void_p(rdmacm.rdma_create_event_channel())
        if not self.channel:
            raise OSError(ctypes.get_errno(), "rdma_create_event_channel")
        self.id = c_void_p()

    def new_id(self, netns: str) -> c_void_p:
        """An id belongs to the network namespace that it is made in."""
        with open(netns, "rb") as net:
            os.setns(net.fileno(), os.CLONE_NEWNET)
        new = c_void_p()
        call("rdma_create_id", self.channel, byref(new), None, PORT_SPACE_TCP)
        return new

    def wait(self, wanted: int) -> tuple[c_void_p, str]:
        """Returns the id of the next event, and the private data of that."""
        pointer = POINTER(Event)()
        call("rdma_get_cm_event", self.channel, byref(pointer))
        event = pointer.contents
        if event.event != wanted:
            what = rdmacm.rdma_event_str(event.event).decode()
            status = event.status
            # Or its id could not be destroyed.
            call("rdma_ack_cm_event", pointer)
            raise RuntimeError(f"{what}, status {status}")
        octets = b""
        if wanted in (CONNECT_REQUEST, ESTABLISHED) and event.conn.private_data:
            octets = ctypes.string_at(event.conn.private_data, event.conn.private_data_len)
        new = c_void_p(event.id)
        call("rdma_ack_cm_event", pointer)
        return new, octets.hex() or "none"

    def answer(self, function: str, private: str) -> None:
        """Connects or accepts, with a queue pair."""
        attributes = QueuePair(
            max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1,
            qp_type=RELIABLE_CONNECTION,
        )
        call("rdma_create_qp", self.id, None, byref(attributes))
        octets = b"" if private == "none" else bytes.fromhex(private)
        data = ctypes.create_string_buffer(octets, len(octets) or 1)
        parameters = Parameters(
            private_data=ctypes.addressof(data), private_data_len=len(octets), retry_count=6
        )
        call(function, self.id, byref(parameters))

    def listen(self, netns: str, host: str, port: str) -> str:
        listener = self.new_id(netns)
        call("rdma_bind_addr", listener, address(host, port))
        call("rdma_listen", listener, 8)
        return "done"

    def accept(self, private: str) -> str:
        self.id, received = self.wait(CONNECT_REQUEST)
        self.answer("rdma_accept", private)
        self.wait(ESTABLISHED)
        return received

    def connect(self, netns: str, host: str, port: str, private: str) -> str:
        self.id = self.new_id(netns)
        call("rdma_resolve_addr", self.id, None, address(host, port), TIMEOUT_MS)
        self.wait(ADDRESS_RESOLVED)
        call("rdma_resolve_route", self.id, TIMEOUT_MS)
        self.wait(ROUTE_RESOLVED)
        self.answer("rdma_connect", private)
        return self.wait(ESTABLISHED)[1]

    def close(self) -> str:
        # Fails where the other side was first.
        rdmacm.rdma_disconnect(self.id)
        rdmacm.rdma_destroy_qp(self.id)
        call("rdma_destroy_id", self.id)
        return "done"


peer = Peer()
for line in sys.stdin:
    command, *words = line.split()
    try:
        answer = getattr(peer, command)(*words)
    except (OSError, RuntimeError) as error:
        answer = f"failed: {error}"
    print(answer, flush=True)
