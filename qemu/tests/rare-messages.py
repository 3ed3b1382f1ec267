#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Rare forms of valid and invalid messages, which an implementation of RPC-over-RDMA gets from
other implementations, and what the module shows of them. Each check names the section that says
what has to happen: of RFC 8166 if it names no other document. A peer in user space sends and
receives the messages, in both roles. The forms in which only octets matter are cases of
tools/conformance."""

# test: debug.siw
# soak: debug.rxe stock.rxe

import contextlib
import select
from collections.abc import Callable, Iterator

from lib import module
from lib.hosts import HOME, TRANSPORT
from lib.ktap import Skip, fail, same, wait_for
from lib.messages import (
    CALL, ECHO, ERR_CHUNK, ERR_VERS, NFS, RDMA_DONE, RDMA_MSG, RDMA_NOMSG, REPLY, Segment, cut,
    echo, error, fixed, header, offer, prog_mismatch, prog_unavail, rpc_call, split, success, words,
    write_chunk,
)
from lib.module import DONE, Command, control, info, is_gone, is_state, same_info
from lib.peer import MAX_READS, NOTHING
from lib.script import Script

# Credits that the module grants as server and requests as client, and that the peer grants.
GRANTS, REQUESTS, PEERS = 5, 7, 9
OF_MODULE, OF_PEER = 2000, 2001
# Listeners of the module for one version. After ERR_VERS the module remembers the version of a
# server, so that checks of ERR_VERS take new ports of the peer.
ONLY = {1: 2002, 2: 2003}
NEW_PORTS = iter(range(2010, 2030))
SIZES_1024, WITHOUT_R, WITH_R = offer(1024, 1024, 1), offer(4096, 4096), offer(4096, 4096, 1)
# More than fits inline.
LONG = bytes(number % 251 for number in range(4400))

script = Script()
check, need = script.check, script.need


class Client:
    """The peer as client of the module."""

    def __init__(self) -> None:
        self.xid = 0x71000000
        self.id = ""

    def connects(self, private: bytes = SIZES_1024, port: int = OF_MODULE) -> None:
        script.peer.connect(script.pair.a.path, script.pair.b.ip4, port, private)
        self.id = module.newest("server")
        wait_for(10, is_state, self.id, "established")

    def leaves(self) -> None:
        script.close_by_peer(self.id)

    def next(self) -> int:
        """Returns the XID of the next call."""
        self.xid += 1
        return self.xid

    def asks(self, message: bytes, answer: bytes) -> None:
        script.peer.send(message)
        same("the peer received", answer, script.peer.next_message())

    def works(self) -> None:
        """Checks that the connection is still up."""
        xid = self.next()
        self.asks(header(xid, RDMA_MSG) + rpc_call(xid),
                  header(xid, RDMA_MSG, credits=GRANTS) + success(xid))
        same_info(self.id, state="established", generation=1)

    def counts(self) -> None:
        """Checks that malformed and unexpected messages are counted."""
        xid = self.next()
        before = info(self.id)
        malformed = (
            (bytes(27), b""),
            (header(xid, RDMA_DONE), b""),
            (fixed(xid, RDMA_MSG, REPLY, 2, 0, 0, version=2), b""),
            (header(xid, RDMA_MSG, version=3),
             error(xid, ERR_VERS, 1, 2, credits=GRANTS, version=3)),
            (header(xid, RDMA_NOMSG), error(xid, ERR_CHUNK, credits=GRANTS)),
            (header(xid, RDMA_NOMSG, version=2), error(xid, ERR_CHUNK, credits=GRANTS, version=2)),
        )
        unexpected = (
            (header(xid, RDMA_MSG) + success(xid), b""),
            (error(xid, ERR_CHUNK, credits=GRANTS), b""),
            (header(xid, RDMA_MSG) + words(xid, 2), b""),
        )
        for message, answer in malformed + unexpected:
            if answer:
                self.asks(message, answer)
            else:
                script.peer.send(message)
                self.works()
        same_info(self.id, bad_headers=int(before["bad_headers"]) + len(malformed),
                  unexpected_messages=int(before["unexpected_messages"]) + len(unexpected),
                  credits_granted=GRANTS, sends_with_invalidate=before["sends_with_invalidate"])

    def others_first(self) -> None:
        """Checks that a call that waits for chunks does not delay the call behind it."""
        size = 1 << 19
        long, short = self.next(), self.next()
        call, reply = script.peer.readable(echo(long, bytes(size))), script.peer.writable(28 + size)
        script.peer.send(
            header(long, RDMA_NOMSG, reads=[(0, cut(call, call.length)[0])],
                   reply=write_chunk(cut(reply, reply.length))),
            header(short, RDMA_MSG) + rpc_call(short))
        same("the order of the replies", [short, long],
             [split(script.peer.receive(20000))[0] for _ in range(2)])

    def reduced_long_call(self) -> None:
        """Sends Long Calls with another Read chunk (section 3.5.3). Nothing in ECHO is
        DDP-eligible. The module cannot know what is in another program (section 6.1)."""
        for program in ECHO, 0x12345678:
            for positions in (40, 0), (0, 40, 0):
                xid = self.next()
                call = script.peer.readable(rpc_call(xid, program=program, version=1))
                halves = iter(cut(call, 20, 20) if len(positions) == 3 else cut(call, 40))
                other, = cut(call, 4)
                reads = [(at, other if at else next(halves)) for at in positions]
                answer = error(xid, ERR_CHUNK, credits=GRANTS)
                if program != ECHO:
                    answer = header(xid, RDMA_MSG, credits=GRANTS) + prog_unavail(xid)
                self.asks(header(xid, RDMA_NOMSG, reads=reads), answer)

    def two_calls(self) -> None:
        """Sends RDMA_MSG that also has a Position Zero Read chunk."""
        xid = self.next()
        call = rpc_call(xid)
        reads = [(0, *cut(script.peer.readable(call), len(call)))]
        self.asks(header(xid, RDMA_MSG, reads=reads) + call,
                  error(xid, ERR_CHUNK, credits=GRANTS))
        self.works()

    def holds_reply(self) -> None:
        """Sends a Long Call whose chunk holds a reply."""
        xid = self.next()
        reads = [(0, *cut(script.peer.readable(success(xid)), 24))]
        self.asks(header(xid, RDMA_NOMSG, reads=reads), error(xid, ERR_CHUNK, credits=GRANTS))
        self.works()

    def room_without_padding(self) -> None:
        """Calls ECHO with 1101 octets. The reply has 1132, of which the last three are padding, and
        does not fit inline."""
        xid, room = self.next(), 1131
        memory = script.peer.writable(room)
        memory.fill(b"\xee" * room)
        call = script.peer.readable(rpc_call(xid, 1, words(1101) + LONG[:1101] + bytes(3),
                                             program=ECHO, version=1))
        self.asks(header(xid, RDMA_NOMSG, reads=[(0, *cut(call, call.length))],
                         reply=write_chunk(cut(memory, room))),
                  error(xid, ERR_CHUNK, credits=GRANTS))
        same("the memory of the Reply chunk", b"\xee" * room, memory.octets(room))
        self.works()

    def reads_nothing(self) -> None:
        """Checks that a Long Call is refused if the peer has a read depth of zero, so that the
        module cannot read the call (section 4.5.3). The module can still write the reply."""
        script.peer.reads = 0
        try:
            self.connects()
        finally:
            script.peer.reads = MAX_READS
        for version in 1, 2:
            xid = self.next()
            reads = [(0, *cut(script.peer.readable(rpc_call(xid)), 40))]
            self.asks(header(xid, RDMA_NOMSG, version=version, reads=reads),
                      error(xid, ERR_CHUNK, credits=GRANTS, version=version))
        xid, data, room = self.next(), LONG[:1100], script.peer.writable(2000)
        message = header(xid, RDMA_MSG, reply=write_chunk(cut(room, 2000))) + echo(xid, data)
        results = success(xid, words(len(data)) + data)
        self.asks(message, header(xid, RDMA_NOMSG, credits=GRANTS,
                                  reply=write_chunk(cut(room, len(results)))))
        same("the Reply chunk has", results, room.octets(len(results)))
        self.works()
        self.leaves()

    def speaks_only(self, version: int) -> None:
        """Calls a listener with rpcvers=."""
        self.connects(port=ONLY[version])
        for called in 1, 2:
            xid = self.next()
            answer = header(xid, RDMA_MSG, version=called, direction=REPLY, credits=GRANTS)
            answer += success(xid)
            if called != version:
                answer = error(xid, ERR_VERS, version, version, credits=GRANTS, version=called)
            self.asks(header(xid, RDMA_MSG, version=called) + rpc_call(xid), answer)
        self.leaves()

    # About: the largest numbers that the module takes, and remote invalidation.

    def many(self, kind: str, count: int, served: bool) -> None:
        """Calls NULL with that many segments or chunks."""
        xid = self.next()
        call, reply = rpc_call(xid), success(xid)
        empty = write_chunk([])
        if kind == "Read segments":
            segments = cut(script.peer.readable(call), *[1] * 39, *[0] * (count - 40), 1)
            message = header(xid, RDMA_NOMSG, reads=[(0, one) for one in segments])
            answer = header(xid, RDMA_MSG, credits=GRANTS) + reply
        elif kind == "Write chunks":
            message = header(xid, RDMA_MSG, writes=[empty] * count) + call
            answer = header(xid, RDMA_MSG, credits=GRANTS, writes=[empty] * count) + reply
        else:
            chunk = write_chunk([Segment(1, 0, 0)] * count)
            chunks = {"reply": chunk} if kind == "Reply segments" else {"writes": [chunk]}
            message = header(xid, RDMA_MSG, **chunks) + call
            answer = header(xid, RDMA_MSG, credits=GRANTS, **chunks) + reply
        if not served:
            answer = error(xid, ERR_CHUNK, credits=GRANTS)
        self.asks(message, answer)

    def many_segments(self, kind: str, count: int, served: bool) -> None:
        """Calls NULL with a chunk of that many segments, which fit into messages of 4096 octets."""
        self.connects(WITHOUT_R)
        self.many(kind, count, served)
        self.works()
        self.leaves()

    def too_long(self) -> None:
        """Checks that a Long Call of 8 GiB is refused without reading it: there is no memory under
        that Steering Tag, so that an RDMA Read would lose the connection."""
        xid = self.next()
        reads = [(0, Segment(1, 0xffffffff, 0))] * 2
        self.asks(header(xid, RDMA_NOMSG, reads=reads), error(xid, ERR_CHUNK, credits=GRANTS))
        self.works()

    def plain_send(self) -> None:
        """Makes calls whose first chunk is empty, and one without chunks, with R on both sides."""
        before = info(self.id)["sends_with_invalidate"]
        for chunk in [], cut(script.peer.writable(64), 0):
            xid = self.next()
            reply = write_chunk(chunk)
            self.asks(header(xid, RDMA_MSG, reply=reply) + rpc_call(xid),
                      header(xid, RDMA_MSG, credits=GRANTS, reply=reply) + success(xid))
        self.works()
        same_info(self.id, remote_invalidation="yes", sends_with_invalidate=before)


client = Client()


class Server:
    """The peer as server of the module."""

    id = ""
    port = OF_PEER

    def listens(self, port: int = OF_PEER) -> None:
        script.peer.listen(script.pair.b.path, script.pair.b.ip4, port)
        self.port = port

    def connects(self, keys: str = "", private: bytes = WITH_R) -> None:
        self.id = script.connect_to_peer(self.port, f"credits={REQUESTS} {keys}", private)

    def leaves(self) -> None:
        script.close_to_peer(self.id)

    @contextlib.contextmanager
    def connected(self, keys: str = "rpcvers=1 null=0", private: bytes = WITH_R) -> Iterator[None]:
        """Makes a connection for one check."""
        self.connects(keys, private)
        yield
        self.leaves()

    def calling(self, line: str = "null", outcome: str = DONE) -> Command:
        return Command(HOME, "call", f"connection {self.id} {line}", outcome)

    def answers(self, xid: int, credits: int = PEERS, results: bytes = b"") -> bytes:
        return header(xid, RDMA_MSG, credits=credits) + success(xid, results)

    def grants(self, credits: int = PEERS) -> None:
        with self.calling():
            script.peer.send(self.answers(script.xid(), credits))

    def chunks(self) -> tuple[int, Segment, Segment]:
        """Returns the XID, the Read chunk and the Reply chunk of the next call of the module."""
        found = split(script.message())
        return found[0], Segment.at(found, 6), Segment.at(found, 14)

    def echoes(self, read: Segment, reply: Segment) -> int:
        """Writes the results of a Long Call of ECHO. Returns the length of the reply."""
        call = script.peer.read(read.handle, read.offset, read.length)
        results = success(split(call)[0]) + call[40:]
        script.peer.write(reply.handle, reply.offset, results)
        return len(results)

    # About: messages that are no reply.

    def instead(self, message: Callable[[int], bytes], told: str) -> None:
        """Sends a message instead of the reply to the first call. Checks that the call fails for
        that reason, and long before its timeout: one second later, or some more in a slow guest."""
        with self.connected("rpcvers=1 timeout_ms=120000"):
            script.peer.send(message(script.xid()))
            same_info(self.id, 10, rpc_null=f"the server answered with {told}")

    def behind(self) -> None:
        """Sends such messages in front of the reply, which completes the call. In two parts: the
        module has fewer Receives than there are such messages."""
        for some in NO_REPLIES[::2], NO_REPLIES[1::2]:
            with self.connected("rpcvers=1"):
                xid = script.xid()
                script.peer.send(*(message(xid) for _, message in some), self.answers(xid))
                same_info(self.id, 10, rpc_null="SUCCESS")

    def another_xid(self) -> None:
        with self.connected("rpcvers=1 timeout_ms=5000"):
            script.message()
            script.peer.send(self.answers(0x12345678))
            same_info(self.id, 20, rpc_null="no reply in time; the server sent a message with XID "
                      "0x12345678, which no call has")

    def then_closes(self) -> None:
        """Checks that the first cause is told if the server ends the connection after that."""
        self.connects("rpcvers=1 null=0 timeout_ms=60000")
        with self.calling("null", "ECONNRESET"):
            script.message()
            script.peer.send(b"")
            wait_for(10, lambda: info(self.id)["bad_headers"] == "1")
            script.peer.close()
        same("failure", "the server answered with a message of 0 octets",
             module.call_report()["failure"])
        wait_for(10, is_gone, self.id)

    # About: remote invalidation.

    def of_another_call(self) -> None:
        """Invalidates memory of call B by the reply to call A."""
        self.connects("rpcvers=1 null=0 inv=1 timeout_ms=10000")
        self.grants()
        with self.calling(f"echo size={len(LONG)} chunks=1 count=2 jobs=2", "ECONNRESET"):
            first, read, reply = self.chunks()
            _, _, other = self.chunks()
            length = self.echoes(read, reply)
            with contextlib.suppress(RuntimeError):
                script.peer.send_invalidate(other.handle, header(
                    first, RDMA_NOMSG, credits=PEERS, reply=write_chunk([reply], length)))
        same("replies", "0", module.call_report()["replies"])
        script.close_by_peer(self.id)

    def by_an_error(self) -> None:
        with self.connected("rpcvers=1 null=0 inv=1"):
            before = int(info(self.id)["local_invalidations"])
            with self.calling(f"echo size={len(LONG)} chunks=1", "EPROTO"):
                xid, read, _ = self.chunks()
                script.peer.send_invalidate(read.handle, error(xid, ERR_CHUNK, credits=PEERS))
            same_info(self.id, state="established", local_invalidations=before + 1,
                      remote_invalidations_received=1)
            self.grants()

    def by_no_reply(self) -> None:
        """Invalidates memory of a call by a message of another XID."""
        self.connects("rpcvers=1 null=0 inv=1 timeout_ms=60000")
        with self.calling(f"echo size={len(LONG)} chunks=1", "ECONNRESET"):
            _, read, _ = self.chunks()
            # The connection may end before the Send has completed.
            with contextlib.suppress(RuntimeError):
                script.peer.send_invalidate(read.handle, self.answers(1))
        script.close_by_peer(self.id)

    def of_nothing(self) -> None:
        """Invalidates a Steering Tag that no memory has."""
        self.connects("rpcvers=1 null=0 inv=1 timeout_ms=60000")
        with self.calling("null", "ECONNRESET"):
            xid = script.xid()
            with contextlib.suppress(RuntimeError):
                script.peer.send_invalidate(0x12345678, self.answers(xid))
        script.close_by_peer(self.id)

    def without_r(self) -> None:
        with self.connected("rpcvers=1 null=0 inv=1", WITHOUT_R):
            with self.calling(f"echo size={len(LONG)} chunks=1"):
                xid, read, reply = self.chunks()
                length = self.echoes(read, reply)
                script.peer.send_invalidate(reply.handle, header(
                    xid, RDMA_NOMSG, credits=PEERS, reply=write_chunk([reply], length)))
            found = same_info(self.id, state="established", remote_invalidation="no",
                              remote_invalidations_received=1)
            if "RDMA Send with Invalidate" not in found.get("deviation", "nothing"):
                fail(f"deviation: {found.get('deviation', 'nothing')}")

    # About: versions, thresholds, and credits.

    def another_program(self) -> None:
        with self.connected("rpcvers=1 program=305419896 version=9"):
            message = script.message()
            xid = split(message)[0]
            same("the module sent", header(xid, RDMA_MSG, credits=REQUESTS)
                 + rpc_call(xid, program=0x12345678, version=9), message)
            script.peer.send(self.answers(xid))

    def first_is_short(self, version: int) -> None:
        """Checks that a first call of 1100 octets is sent by chunks, and the second one inline. A
        responder need not take larger messages before its first reply (section 3.3.3; the draft,
        section 5)."""
        with self.connected(f"rpcvers={version} null=0"), \
                self.calling("echo size=1100 count=2 chunks=0"):
            found = split(script.message())
            read = Segment.at(found, 5 + version)
            if not same("the call", header(found[0], RDMA_NOMSG, credits=REQUESTS,
                                           version=version, reads=[(0, read)]), words(*found)):
                return
            for call in (lambda: script.peer.read(read.handle, read.offset, read.length),
                         lambda: script.message()[24 + 4 * version:]):
                octets = call()
                xid = split(octets)[0]
                same("the call", echo(xid, octets[44:]), octets)
                script.peer.send(header(xid, RDMA_MSG, version=version, direction=REPLY,
                                      credits=PEERS) + success(xid, octets[40:]))

    def first_fails(self, keys: str, told: str, *refusals: tuple[int, int, int]) -> None:
        """Answers the first calls by RDMA_ERROR. Checks that the client gives up, and tells why."""
        self.listens(next(NEW_PORTS))
        self.connects(keys)
        for version, *rest in refusals:
            found = split(script.message())
            same("the version of the call", version, found[1])
            script.peer.send(error(found[0], *rest, credits=PEERS, version=version))
        same_info(self.id, 10, rpc_null=told, rpc_version_used="none")
        self.leaves()
        self.port = OF_PEER

    def sends_too_much(self) -> None:
        """Sends more octets than a Receive of the module has, which ends the connection."""
        self.connects("rpcvers=1 null=0")
        with self.calling("null", "ECONNRESET"):
            script.message()
            with contextlib.suppress(OSError, RuntimeError):
                script.peer.send(bytes(5000))
        script.close_by_peer(self.id)

    def longest_null(self) -> None:
        with self.connected():
            with self.calling("null chunks=1", "ENOTSUP"):
                found = split(script.message())
                reply = Segment.at(found, 8)
                if reply.length < 32:
                    fail(f"a Reply chunk of {reply.length} octets")
                results = prog_mismatch(found[0], 3, 4)
                script.peer.write(reply.handle, reply.offset, results)
                script.peer.send(header(found[0], RDMA_NOMSG, credits=PEERS,
                                      reply=write_chunk([reply], len(results))))
            same("rpc", "PROG_MISMATCH, 3 to 4", module.call_report()["rpc"])

    def at_the_threshold(self) -> None:
        """Checks that a message of 1024 octets is inline, and one of 1028 is not."""
        with self.connected(private=SIZES_1024):
            self.grants()
            for length, procedure in (1024, RDMA_MSG), (1028, RDMA_NOMSG):
                # A reply without the argument of ECHO is no good one.
                with self.calling(f"echo size={length - 28 - 40 - 4}", "EBADMSG"):
                    message = script.message()
                    found = split(message)
                    same("rdma_proc", procedure, found[3])
                    if procedure == RDMA_MSG:
                        same("the length", length, len(message))
                    script.peer.send(self.answers(found[0]))

    def posts_late(self) -> None:
        """Accepts without Receives, and posts them later. The transport retransmits the call."""
        if TRANSPORT == "siw":
            raise Skip("a message of iWARP that finds no Receive is never retransmitted")
        script.peer.receives(32, 4096, again=7, late=True)
        try:
            with self.connected():
                with self.calling():
                    same("without Receives", NOTHING, script.peer.receive(500))
                    script.peer.post_receives()
                    script.peer.send(self.answers(script.xid()))
                same_info(self.id, state="established", generation=1)
        finally:
            script.peer.receives(32, 4096)

    def sends_after_the_end(self) -> None:
        """Sends messages after the DREQ of the module. Does not read the event meanwhile: reading
        it would disconnect the peer, and flush the messages."""
        if TRANSPORT == "siw":
            raise Skip("the FIN of the module closes the peer's TCP connection at once")
        self.connects("rpcvers=1 null=0")
        with Command(HOME, "close", f"connection {self.id}"):
            # Readable when the DREQ has arrived.
            if not select.select([script.peer.channel.contents.fd], [], [], 10)[0]:
                fail("no DREQ has arrived")
            messages = self.answers(1), b"", header(2, RDMA_MSG) + rpc_call(2)
            before = packets_of_peer()
            script.peer.start(*script.peer.sends(*messages))
            # Each message is one packet. All of them are sent before the device retransmits one.
            wait_for(10, lambda: packets_of_peer() >= before + len(messages))
            script.peer.close()
        wait_for(10, is_gone, self.id)


def packets_of_peer() -> int:
    """Returns how many packets the device of the peer has sent, as server of the module."""
    counters = f"/sys/class/infiniband/{script.pair.b.rdma}/ports/1/hw_counters"
    with open(f"{counters}/sent_pkts", encoding="ascii") as file:
        return int(file.read())


server = Server()


# The XIDs of the first calls on connections of the module. The first of these is that of the first
# call since the module was loaded.
first_xids: list[int] = []


def make_first_call() -> int:
    """Makes a connection of the module, and a call on it. Returns the XID of the call."""
    number = script.connect_to_peer(OF_PEER, "rpcvers=1 null=0", WITH_R)
    with Command(HOME, "call", f"connection {number} null"):
        xid = script.xid()
        script.peer.send(header(xid, RDMA_MSG, credits=PEERS) + success(xid))
    script.close_to_peer(number)
    return xid


def xids_differ() -> None:
    """Compares the XIDs of first calls: none may be known from the others, nor from their
    number."""
    first_xids.extend(make_first_call() for _ in range(4))
    same("different XIDs", 4, len(set(first_xids)))
    if max(first_xids) < 1 << 20:
        fail(f"small XIDs: {first_xids}")


def loads_again() -> None:
    module.unload()
    module.load()


def xids_are_new() -> None:
    xid = make_first_call()
    if xid in first_xids:
        fail(f"the XID of the first call is {xid:#x} again: {[hex(one) for one in first_xids]}")


# RFC 7530, sections 15.2 and 16.4: COMPOUND of minor version 0 without a tag, PUTROOTFH, and CREATE
# of the directory "twins" without attributes. RFC 5531, appendix A: AUTH_SYS of root.
COMPOUND, PUTROOTFH, CREATE, NF4DIR, NFS4_OK, NFS4ERR_EXIST = 1, 24, 6, 2, 0, 17
TWIN = words(NFS, 4, COMPOUND) + words(1, 20, 0, 0, 0, 0, 0) + words(0, 0) + words(
    0, 0, 2, PUTROOTFH, CREATE, NF4DIR, 5, 0x7477696e, 0x73000000, 0, 0)


def equal_calls() -> None:
    """Makes equal calls on connections to the kernel's NFS server. With the XIDs of the module's
    first calls the second one is executed, and finds the directory of the first one. With an XID of
    before, the server takes it for a repetition, and replies from its cache."""
    for xid, status in zip((*first_xids[:2], first_xids[0]), (NFS4_OK, NFS4ERR_EXIST, NFS4_OK)):
        script.peer.connect(script.pair.a.path, script.pair.b.ip4, 20049, SIZES_1024)
        script.peer.send(header(xid, RDMA_MSG) + words(xid, CALL, 2) + TWIN)
        found = split(script.message())
        same("COMPOUND, PUTROOTFH and CREATE", [status, 0, 2, PUTROOTFH, 0, CREATE, status],
             found[13:20])
        script.peer.close()


# Name, and the message that the server sends instead of a reply, by the XID of the call.
NO_REPLIES = (
    ("a message of 0 octets", lambda xid: b""),
    ("a message of 1 octet", lambda xid: bytes(1)),
    ("a message of 27 octets", lambda xid: header(xid, RDMA_MSG, credits=PEERS)[:27]),
    ("a malformed header (Payload stream at octet 28: truncated)",
     lambda xid: header(xid, RDMA_MSG, credits=PEERS)),
    ("a malformed header (Read list at octet 28: truncated)",
     lambda xid: header(xid, RDMA_MSG, credits=PEERS, reads=[(0, Segment(1, 4, 0))])[:28]),
    ("a malformed header (Read list at octet 16: illegal value 2)",
     lambda xid: fixed(xid, RDMA_MSG, 2, 0, 0, credits=PEERS) + success(xid)),
    ("a malformed header (rdma_error at octet 16: illegal value 9)",
     lambda xid: error(xid, 9, 0, 0, credits=PEERS)),
    ("a message in version 77 of RPC-over-RDMA",
     lambda xid: header(xid, RDMA_MSG, version=77, credits=PEERS)),
    ("a message in version 2, to a call in version 1",
     lambda xid: header(xid, RDMA_MSG, version=2, direction=REPLY, credits=PEERS) + success(xid)),
    ("a call", lambda xid: header(xid, RDMA_MSG, credits=PEERS) + rpc_call(xid)),
    ("a reply with a Read list",
     lambda xid: header(xid, RDMA_MSG, credits=PEERS, reads=[(0, Segment(1, 4, 0))])
     + success(xid)),
)
OTHERS = "the responder speaks other versions of RPC-over-RDMA"


def calls_of_the_peer() -> None:
    need("the peer connects for rare calls", client.connects)
    check("malformed and unexpected messages are counted (4.5)", client.counts)
    check("a call behind one that waits for chunks is answered first (3.3.1)", client.others_first)
    check("a Read chunk of a Long Call depends on the program (6.1)", client.reduced_long_call)
    check("a call inline with a Long Call is refused (4.5.2)", client.two_calls)
    check("a Long Call whose chunk holds a reply is refused (RFC 8167, 5.1)", client.holds_reply)
    check("a Reply chunk that is one octet too short is not written to (4.5.3)",
          client.room_without_padding)
    check("64 Read segments are accepted (8.1.4)", client.many, "Read segments", 64, True)
    check("65 Read segments are refused (8.1.4)", client.many, "Read segments", 65, False)
    check("64 Write chunks are accepted (8.1.4)", client.many, "Write chunks", 64, True)
    check("65 Write chunks are refused (8.1.4)", client.many, "Write chunks", 65, False)
    check("a Long Call of 8 GiB is refused, and not read (8.1.4)", client.too_long)
    check("a call without a Steering Tag gets a plain Send (RFC 8797, 4.1)", client.plain_send)
    check("the peer of rare calls closes", client.leaves)
    for kind, what in ("Reply segments", "a Reply chunk"), ("Write segments", "a Write chunk"):
        check(f"64 segments of {what} are accepted (8.1.4)", client.many_segments, kind, 64, True)
        check(f"65 segments of {what} are refused (8.1.4)", client.many_segments, kind, 65, False)
    check("a Long Call that cannot be read is refused (4.5.3)", client.reads_nothing)
    for only in ONLY:
        check(f"rpcvers={only} answers no other version (4.5.1)", client.speaks_only, only)


def messages_instead() -> None:
    for name, message in NO_REPLIES:
        check(f"{name} is told (4.5)", server.instead, message, name)
    check("a reply behind messages that are none completes the call (4.5)", server.behind)


def replies_of_the_peer() -> None:
    check("a reply with another XID is told (4.5)", server.another_xid)
    check("a message of no octets is told, and not the end behind it (4.5)", server.then_closes)
    check("a reply that invalidates memory of another call ends the connection (RFC 8797, 4.1)",
          server.of_another_call)
    check("an error that invalidates memory fails its call once (RFC 8797, 4.1)",
          server.by_an_error)
    check("a message that is no reply and invalidates memory ends the connection (RFC 8797, 4.1)",
          server.by_no_reply)
    check("a reply that invalidates an unknown Steering Tag ends the connection (RFC 8797, 4.1)",
          server.of_nothing)
    check("remote invalidation without R is a deviation (RFC 8797, 4.1)", server.without_r)
    check("NULL has the program that connect names", server.another_program)
    check("the first call in version 1 has at most 1024 octets (3.3.3)", server.first_is_short, 1)
    check("the first call in version 2 has at most 1024 octets (the draft, 5)",
          server.first_is_short, 2)
    check("a Send that is longer than a Receive ends the connection (3.3.2)", server.sends_too_much)
    check("PROG_MISMATCH to NULL has room in a Reply chunk (6.2)", server.longest_null)
    check("a call of the threshold's length is inline (3.3.2)", server.at_the_threshold)
    check("a call waits for a peer that posts its Receives late (3.3.1)", server.posts_late)
    check("messages behind the end of a connection do no harm", server.sends_after_the_end)


def refused_versions() -> None:
    for name, keys, told, *refusals in (
        ("ERR_VERS 3 to 4", "rpcvers=auto", OTHERS, (2, ERR_VERS, 3, 4)),
        ("ERR_VERS 2 to 3", "rpcvers=auto", OTHERS, (2, ERR_VERS, 2, 3)),
        ("ERR_VERS 2 to 1", "rpcvers=auto", OTHERS, (2, ERR_VERS, 2, 1)),
        ("ERR_VERS 1 to 1 to rpcvers=2", "rpcvers=2", OTHERS, (2, ERR_VERS, 1, 1)),
        ("ERR_VERS 2 to 2 to rpcvers=1", "rpcvers=1", OTHERS, (1, ERR_VERS, 2, 2)),
        ("BAD_HEADER", "rpcvers=auto", "the responder answered: BAD_HEADER", (2, ERR_CHUNK)),
        ("ERR_VERS to each version", "rpcvers=auto", OTHERS, (2, ERR_VERS, 1, 1),
         (1, ERR_VERS, 1, 1)),
    ):
        check(f"{name}: the first call fails (the draft, 5.2)", server.first_fails, keys, told,
              *refusals)


def xids() -> None:
    need("the module is loaded afresh", loads_again)
    check("XIDs of two connections do not look related (RFC 8167, 2.4)", xids_differ)
    need("the kernel's NFS server starts for equal calls", script.start_nfs)
    check("the second of two equal calls on two connections is executed (RFC 8167, 2.4)",
          equal_calls)
    need("the module is loaded again", loads_again)
    check("XIDs begin elsewhere when the module is loaded again (RFC 8167, 2.4)", xids_are_new)


script.set_up()
need("the module listens for rare messages", script.listen, OF_MODULE,
     f"recv=4096 send=4096 inv=1 credits={GRANTS}")
for only, at in ONLY.items():
    need(f"the module listens for version {only}", script.listen, at,
         f"rpcvers={only} credits={GRANTS}")
need("the peer listens for rare replies", server.listens)
need("the peer has Receives for rare messages", lambda: script.peer.receives(32, 4096))
need("a connection that no rare message may affect", lambda: control(
    script.pair.a.path, "connect", f"{script.pair.b.ip4}:{OF_MODULE}"))
script.group(calls_of_the_peer)
script.group(messages_instead)
script.group(replies_of_the_peer)
script.group(refused_versions)
check("the other connection is as it was", lambda: same_info(
    module.own_rows()[0][0], state="established", generation=1, bad_headers=0,
    unexpected_messages=0))
check("close all ends the connections of rare messages", control, HOME, "close", "all")
script.check_none_left()
script.group(xids)
script.run()
