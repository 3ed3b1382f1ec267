# SPDX-License-Identifier: GPL-2.0
"""A peer that is not the module: librdmacm and libibverbs in user space, with any octets.

Does without pyverbs, because importing that takes ten times as long: in a slow guest, longer
than all connections.
"""

import ctypes
import errno
import mmap
import os
import select
import time
from ctypes import (
    CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64,
    c_void_p,
)

from lib.hosts import TRANSPORT

ADDRESS_RESOLVED, ROUTE_RESOLVED = 0, 2
CONNECT_REQUEST, ESTABLISHED, DISCONNECTED, TIMEWAIT_EXIT = 4, 9, 10, 15
PORT_SPACE_TCP = 0x0106
RELIABLE_CONNECTION = 2
RDMA_WRITE, SEND, RDMA_READ, BIND_WINDOW, SEND_INVALIDATE = 0, 2, 4, 8, 9
SIGNALED = 2
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, WINDOW_BIND = 1, 2, 4, 16
WINDOW_TYPE_2 = 2

TIMEOUT_MS = 5000
# How long a posted work request may take before events are read: a disconnect flushes it.
CALM_MS = 500
# How many messages may be sent at a time.
MAX_SENDS = 64
# How many RDMA Reads may be under way at a time.
MAX_READS = 8

# The results of `receive` without a message.
NOTHING, CLOSED = "nothing", "the end of the connection"


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


class Channel(ctypes.Structure):
    """struct rdma_event_channel"""

    _fields_ = [("fd", c_int)]


class QueuePairAttributes(ctypes.Structure):
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


class Region(ctypes.Structure):
    """struct ibv_mr"""

    _fields_ = [
        ("context", c_void_p),
        ("pd", c_void_p),
        ("addr", c_void_p),
        ("length", c_size_t),
        ("handle", c_uint32),
        ("lkey", c_uint32),
        ("rkey", c_uint32),
    ]


class Window(ctypes.Structure):
    """struct ibv_mw"""

    _fields_ = [
        ("context", c_void_p),
        ("pd", c_void_p),
        ("rkey", c_uint32),
        ("handle", c_uint32),
        ("type", c_int),
    ]


class Segment(ctypes.Structure):
    """struct ibv_sge"""

    _fields_ = [("addr", c_uint64), ("length", c_uint32), ("lkey", c_uint32)]


class Receive(ctypes.Structure):
    """struct ibv_recv_wr"""

    _fields_ = [
        ("wr_id", c_uint64),
        ("next", c_void_p),
        ("sg_list", POINTER(Segment)),
        ("num_sge", c_int),
    ]


class Request(ctypes.Structure):
    """struct ibv_send_wr, with those members of its unions that are used here"""

    _fields_ = [
        ("wr_id", c_uint64),
        ("next", c_void_p),
        ("sg_list", POINTER(Segment)),
        ("num_sge", c_int),
        ("opcode", c_int),
        ("send_flags", c_uint32),
        ("invalidate_rkey", c_uint32),
        ("remote_addr", c_uint64),
        ("rkey", c_uint32),
        ("rest_of_wr", c_uint8 * 20),
        ("qp_type", c_uint64),
        ("bind_mw", POINTER(Window)),
        ("bind_rkey", c_uint32),
        ("bind_mr", POINTER(Region)),
        ("bind_addr", c_uint64),
        ("bind_length", c_uint64),
        ("bind_access", c_uint32),
    ]


class Completion(ctypes.Structure):
    """struct ibv_wc"""

    _fields_ = [
        ("wr_id", c_uint64),
        ("status", c_int),
        ("opcode", c_int),
        ("vendor_err", c_uint32),
        ("byte_len", c_uint32),
        ("invalidated_rkey", c_uint32),
        ("qp_num", c_uint32),
        ("src_qp", c_uint32),
        ("wc_flags", c_uint32),
        ("pkey_index", c_uint16),
        ("slid", c_uint16),
        ("sl", c_uint8),
        ("dlid_path_bits", c_uint8),
    ]


class Verbs(ctypes.Structure):
    """struct ibv_context, up to the last function that an inline one calls"""

    _fields_ = [
        ("device", c_void_p),
        ("ops_0_to_6", c_void_p * 7),
        ("alloc_mw", CFUNCTYPE(POINTER(Window), c_void_p, c_int)),
        ("bind_mw", c_void_p),
        ("dealloc_mw", CFUNCTYPE(c_int, POINTER(Window))),
        ("ops_10", c_void_p),
        ("poll_cq", CFUNCTYPE(c_int, c_void_p, c_int, POINTER(Completion))),
        ("ops_12_to_24", c_void_p * 13),
        ("post_send", CFUNCTYPE(c_int, c_void_p, POINTER(Request), POINTER(c_void_p))),
        ("post_recv", CFUNCTYPE(c_int, c_void_p, POINTER(Receive), POINTER(c_void_p))),
    ]


class QueuePair(ctypes.Structure):
    """struct ibv_qp, as far as it is used here"""

    _fields_ = [
        ("context", POINTER(Verbs)),
        ("qp_context", c_void_p),
        ("pd", c_void_p),
        ("send_cq", c_void_p),
        ("recv_cq", c_void_p),
    ]


class Id(ctypes.Structure):
    """struct rdma_cm_id, as far as it is used here"""

    _fields_ = [
        ("verbs", c_void_p),
        ("channel", c_void_p),
        ("context", c_void_p),
        ("qp", POINTER(QueuePair)),
    ]


rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
rdmacm.rdma_create_event_channel.restype = POINTER(Channel)
rdmacm.rdma_event_str.restype = c_char_p
ibverbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
ibverbs.ibv_reg_mr.restype = POINTER(Region)
ibverbs.ibv_reg_mr.argtypes = [c_void_p, c_void_p, c_size_t, c_int]
ibverbs.ibv_wc_status_str.restype = c_char_p


def call(function: str, *arguments: object) -> None:
    """Calls a function of librdmacm that returns 0 or fails."""
    if getattr(rdmacm, function)(*arguments):
        raise OSError(ctypes.get_errno(), function)


def address(host: str, port: int) -> ctypes.Array[ctypes.c_char]:
    """Returns a struct sockaddr_in."""
    octets = port.to_bytes(2, "big") + bytes(map(int, host.split(".")))
    return ctypes.create_string_buffer(b"\x02\x00" + octets, 16)


class Memory:
    """Registered memory. The other side accesses it by `key`, an R_key or STag, and `address`."""

    def __init__(self, queue_pair: QueuePair, octets: bytes, access: int) -> None:
        # At least one octet: empty memory cannot be registered. It begins at a page, so that no
        # result depends on where Python happens to place an object.
        self.length = len(octets)
        pages = mmap.mmap(-1, self.length or 1, mmap.MAP_PRIVATE)
        self.buffer = (ctypes.c_char * len(pages)).from_buffer(pages)
        self.fill(octets)
        self.address = ctypes.addressof(self.buffer)
        self.region = ibverbs.ibv_reg_mr(
            queue_pair.pd, self.address, len(self.buffer), access | LOCAL_WRITE
        )
        if not self.region:
            raise OSError(ctypes.get_errno(), "ibv_reg_mr")
        self.key = self.region.contents.rkey
        self.window = None

    def fill(self, octets: bytes) -> None:
        """Overwrites the first octets."""
        self.buffer[:len(octets)] = octets

    def octets(self, length: int) -> bytes:
        return self.buffer[:length]

    def segment(self, start: int = 0, length: int | None = None) -> Segment:
        length = self.length if length is None else length
        return Segment(self.address + start, length, self.region.contents.lkey)


class Peer:
    """A peer with at most one listener and one connection."""

    def __init__(self) -> None:
        self.channel = rdmacm.rdma_create_event_channel()
        if not self.channel:
            raise OSError(ctypes.get_errno(), "rdma_create_event_channel")
        self.requests: list[tuple[c_void_p, bytes]] = []
        self.listeners: list[c_void_p] = []
        self.count = self.size = self.again = 0
        self.late = False
        # The read depth of later connections: how many RDMA Reads each side may have under way.
        self.reads = MAX_READS
        self.memories: list[Memory] = []
        # That of connections that were not left: their queue pairs may still write to it.
        self.kept: list[Memory] = []
        self.begin(c_void_p())

    def begin(self, new: c_void_p) -> None:
        """Makes `new` the id of the connection."""
        self.id = new
        self.queue_pair = None
        self.over = False
        # Whether a message has arrived.
        self.heard = False
        self.kept += self.memories
        # Memory that the queue pair may still access.
        self.memories = []

    def new_id(self, netns: str) -> c_void_p:
        """Makes an id in a network namespace."""
        with open(netns, "rb") as net:
            os.setns(net.fileno(), os.CLONE_NEWNET)
        new = c_void_p()
        call("rdma_create_id", self.channel, byref(new), None, PORT_SPACE_TCP)
        return new

    def event(self, milliseconds: int) -> tuple[int | None, int, c_void_p, bytes]:
        """Returns the next event: its kind, status, id and private data."""
        if not select.select([self.channel.contents.fd], [], [], milliseconds / 1000)[0]:
            return None, 0, c_void_p(), b""
        pointer = POINTER(Event)()
        call("rdma_get_cm_event", self.channel, byref(pointer))
        event = pointer.contents
        octets = b""
        if event.event in (CONNECT_REQUEST, ESTABLISHED) and event.conn.private_data:
            octets = ctypes.string_at(event.conn.private_data, event.conn.private_data_len)
        what = event.event, event.status, c_void_p(event.id), octets
        # An id can be destroyed only after its events are acknowledged.
        call("rdma_ack_cm_event", pointer)
        return what

    def unasked(self, what: int, new: c_void_p, private: bytes) -> bool:
        """Handles an event that `wait` did not ask for."""
        if what == CONNECT_REQUEST:
            self.requests.append((new, private))
        elif what == DISCONNECTED:
            # The id may be that of an earlier connection.
            self.over = self.over or new.value == self.id.value
            # This flushes the posted work requests.
            rdmacm.rdma_disconnect(new)
        return what in (CONNECT_REQUEST, DISCONNECTED, TIMEWAIT_EXIT)

    def wait(self, wanted: int) -> tuple[c_void_p, bytes]:
        """Waits for an event of that kind. Returns its id and its private data."""
        while True:
            what, status, new, private = self.event(4 * TIMEOUT_MS)
            if what == wanted:
                return new, private
            if what is None:
                raise RuntimeError("no event")
            if not self.unasked(what, new, private):
                name = rdmacm.rdma_event_str(what).decode()
                raise RuntimeError(f"{name}, status {status}")
            if self.over and wanted == ESTABLISHED:
                raise RuntimeError("disconnected")

    def answer(self, function: str, private: bytes) -> None:
        """Connects or accepts, with a queue pair."""
        attributes = QueuePairAttributes(
            max_send_wr=MAX_SENDS, max_recv_wr=self.count or 1, max_send_sge=1, max_recv_sge=1,
            qp_type=RELIABLE_CONNECTION,
        )
        call("rdma_create_qp", self.id, None, byref(attributes))
        self.queue_pair = ctypes.cast(self.id, POINTER(Id)).contents.qp
        self.verbs = self.queue_pair.contents.context.contents
        if self.count:
            self.messages = self.new_memory(bytes(self.count * self.size))
        if not self.late:
            self.post_receives()
        data = ctypes.create_string_buffer(private)
        parameters = Parameters(
            private_data=ctypes.addressof(data), private_data_len=len(data) - 1,
            responder_resources=self.reads, initiator_depth=self.reads, retry_count=6,
            rnr_retry_count=self.again,
        )
        call(function, self.id, byref(parameters))

    def new_memory(self, octets: bytes, access: int = 0) -> Memory:
        self.memories.append(Memory(self.queue_pair.contents, octets, access))
        return self.memories[-1]

    def post_receives(self) -> None:
        for number in range(self.count):
            self.post_receive(number)

    def post_receive(self, number: int) -> None:
        segment = self.messages.segment(number * self.size, self.size)
        receive = Receive(number, None, ctypes.pointer(segment), 1)
        error = self.verbs.post_recv(self.queue_pair, byref(receive), byref(c_void_p()))
        if error:
            raise OSError(error, "ibv_post_recv")

    def start(self, *requests: Request) -> None:
        """Posts work requests to the send queue."""
        for request in requests:
            request.send_flags = SIGNALED
            error = self.verbs.post_send(self.queue_pair, byref(request), byref(c_void_p()))
            if error:
                raise OSError(error, "ibv_post_send")

    def post(self, *requests: Request) -> None:
        """Posts work requests to the send queue, and waits until they are complete."""
        self.start(*requests)
        statuses = []
        for _ in requests:
            completion = self.completion(self.queue_pair.contents.send_cq, TIMEOUT_MS, CALM_MS)
            if not completion:
                raise RuntimeError("not completed")
            statuses.append(completion.status)
        # The first status is the reason; the others were flushed because of it.
        for status in filter(None, statuses):
            raise RuntimeError(ibverbs.ibv_wc_status_str(status).decode())

    def completion(self, queue: int, milliseconds: int, calm: int = 0) -> Completion | None:
        """Returns the next completion, or None after that time or at the end of the connection.
        Reads no events in the first `calm` milliseconds."""
        found = Completion()
        start = time.monotonic()
        end = start + milliseconds / 1000
        while True:
            # Completions from before the time limit can still be polled.
            last = self.over or time.monotonic() > end
            if self.verbs.poll_cq(queue, 1, byref(found)):
                return found
            if last:
                return None
            if time.monotonic() < start + calm / 1000:
                time.sleep(0.001)
                continue
            what, _, new, private = self.event(1)
            if what is not None:
                self.unasked(what, new, private)

    def listen(self, netns: str, host: str, port: int) -> None:
        listener = self.new_id(netns)
        self.listeners.append(listener)
        call("rdma_bind_addr", listener, address(host, port))
        call("rdma_listen", listener, 8)

    def receives(self, count: int, size: int, again: int = 0, late: bool = False) -> None:
        """Sets the number and the size of the Receives of later connections. `again` is how often
        the other side retransmits a message that finds no Receive; 7 is without limit. Late
        Receives are posted by `post_receives`."""
        self.count, self.size, self.again, self.late = count, size, again, late

    def accept(self, private: bytes) -> bytes:
        """Accepts the next request, and returns its private data."""
        new, received = self.requests.pop(0) if self.requests else self.wait(CONNECT_REQUEST)
        self.begin(new)
        self.answer("rdma_accept", private)
        self.wait(ESTABLISHED)
        return received

    def resolve(self, netns: str, host: str, port: int) -> None:
        self.begin(self.new_id(netns))
        call("rdma_resolve_addr", self.id, None, address(host, port), TIMEOUT_MS)
        self.wait(ADDRESS_RESOLVED)
        call("rdma_resolve_route", self.id, TIMEOUT_MS)
        self.wait(ROUTE_RESOLVED)

    def ask(self, netns: str, host: str, port: int, private: bytes) -> None:
        """Sends a REQ, and does not wait for the REP."""
        self.resolve(netns, host, port)
        self.answer("rdma_connect", private)

    def connect(self, netns: str, host: str, port: int, private: bytes) -> bytes:
        """Connects, and returns the private data of the REP."""
        try:
            self.ask(netns, host, port, private)
        except OSError as error:
            # rdma_cm chooses a port that is free in rdma_cm. With siw, TCP may use it still.
            if error.errno != errno.EADDRINUSE:
                raise
            self.leave()
            self.ask(netns, host, port, private)
        return self.wait(ESTABLISHED)[1]

    def request(self, opcode: int, memory: Memory, **more: int) -> Request:
        segment = ctypes.pointer(memory.segment())
        return Request(opcode=opcode, sg_list=segment, num_sge=memory.length > 0, **more)

    def sends(self, *messages: bytes) -> list[Request]:
        """Returns a work request for each message."""
        return [self.request(SEND, self.new_memory(message)) for message in messages]

    def send(self, *messages: bytes) -> None:
        """Sends messages all at once, not one after the other."""
        self.post(*self.sends(*messages))

    def litter(self) -> None:
        """Sends random octets, more than there are credits, without waiting."""
        memory = self.new_memory(os.urandom(1024))
        for size in (0, 1, 27, 28, 60, 1024) * (MAX_SENDS // 6):
            segment = memory.segment(0, size)
            request = Request(
                opcode=SEND, send_flags=SIGNALED, sg_list=ctypes.pointer(segment), num_sge=size > 0
            )
            self.verbs.post_send(self.queue_pair, byref(request), byref(c_void_p()))

    def send_invalidate(self, key: int, message: bytes) -> None:
        memory = self.new_memory(message)
        # libsiw reads the key from the field for the key of an RDMA Write.
        self.post(self.request(SEND_INVALIDATE, memory, invalidate_rkey=key, rkey=key))

    def receive(self, milliseconds: int) -> bytes | str:
        """Returns the next message; NOTHING after that time; or CLOSED."""
        queue = self.queue_pair.contents.recv_cq
        completion = self.completion(queue, milliseconds)
        if not completion:
            return CLOSED if self.over else NOTHING
        if completion.status:
            self.over = True
            return CLOSED
        self.heard = True
        start = completion.wr_id * self.size
        octets = self.messages.buffer[start:start + completion.byte_len]
        if not self.over:
            self.post_receive(completion.wr_id)
        return octets

    def register(self, size: int, use: int) -> Memory:
        """Returns memory that the other side may access: by REMOTE_READ or REMOTE_WRITE."""
        # Over rxe, the other side can invalidate a window, and not a region of user space. siw
        # has no windows, and lets regions be invalidated.
        window = self.verbs.alloc_mw(self.queue_pair.contents.pd, WINDOW_TYPE_2)
        memory = self.new_memory(bytes(size), use | (WINDOW_BIND if window else 0))
        if window:
            memory.window = window
            # The last octet of a key is chosen by the user.
            memory.key = window.contents.rkey ^ 0x55
            self.post(Request(
                opcode=BIND_WINDOW, bind_mw=window, bind_rkey=memory.key,
                bind_mr=memory.region, bind_addr=memory.address, bind_length=memory.length,
                bind_access=use,
            ))
        return memory

    def readable(self, content: bytes) -> Memory:
        """Returns memory with this content that the other side may read."""
        memory = self.register(len(content), REMOTE_READ)
        memory.fill(content)
        return memory

    def writable(self, length: int) -> Memory:
        return self.register(length, REMOTE_WRITE)

    def read(self, key: int, start: int, length: int) -> bytes:
        """Reads octets from the other side's memory."""
        memory = self.new_memory(bytes(length))
        self.post(self.request(RDMA_READ, memory, rkey=key, remote_addr=start))
        return memory.buffer.raw

    def write(self, key: int, start: int, octets: bytes) -> None:
        """Writes to the other side's memory."""
        memory = self.new_memory(octets)
        self.post(self.request(RDMA_WRITE, memory, rkey=key, remote_addr=start))

    def nudge(self) -> None:
        """Makes the other side's device send a packet, by an RDMA Read of no octets. Has no effect
        once a message has arrived: a packet is only needed before the first one."""
        if self.heard:
            return
        request = self.request(RDMA_READ, self.new_memory(b""))
        # siw needs an SGE even for no octets.
        request.num_sge = 1
        self.post(request)

    def next_message(self, milliseconds: int = 6000) -> bytes | str:
        """Returns the next message, as `receive` does.

        siw ignores messages that arrive while it accepts, until another packet arrives.
        """
        if TRANSPORT != "siw" or milliseconds <= 1000:
            return self.receive(milliseconds)
        found = self.receive(1000)
        if found == NOTHING:
            self.nudge()
            found = self.receive(milliseconds - 1000)
        return found

    def close(self) -> None:
        # This fails if the other side disconnected first.
        rdmacm.rdma_disconnect(self.id)
        self.leave()

    def leave(self) -> None:
        """Destroys all objects of the connection, without disconnecting."""
        # With rxe, windows keep their queue pair.
        for memory in self.memories:
            if memory.window:
                self.verbs.dealloc_mw(memory.window)
        if self.queue_pair:
            rdmacm.rdma_destroy_qp(self.id)
        while self.memories:
            ibverbs.ibv_dereg_mr(self.memories.pop().region)
        call("rdma_destroy_id", self.id)
        self.begin(c_void_p())

    def end(self) -> None:
        """Destroys all objects."""
        if self.id:
            self.close()
        while self.listeners:
            call("rdma_destroy_id", self.listeners.pop())
        rdmacm.rdma_destroy_event_channel(self.channel)
