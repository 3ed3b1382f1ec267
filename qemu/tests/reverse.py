#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Calls in the reverse direction (RFC 8167), with a peer in user space, in both roles and both
versions: what control files and `info` have to do with them, and calls both ways at once. Each
check of a rule names its section: of RFC 8167 if it names no other document. tools/conformance has
the cases of a client in which only octets matter."""

# test: debug.siw
# soak: debug.rxe stock.rxe

import contextlib
import threading
from collections.abc import Callable, Iterator

from lib import module
from lib.hosts import HOME
from lib.ktap import fail, same, wait_for
from lib.messages import (
    CALL, CALLBACKS, ECHO, ERR_CHUNK, ERR_VERS, NFS, RDMA2_OPTIONAL, RDMA_MSG, RDMA_NOMSG, REPLY,
    Segment, cut, echo, error, fixed, header, offer, proc_unavail, prog_unavail, rpc_call, split,
    success, words, write_chunk,
)
from lib.module import DONE, Command, control, info, is_gone, is_state, same_info
from lib.peer import MAX_READS, NOTHING
from lib.script import Script

# Credits of the module in the forward and in the reverse direction, and credits of the peer.
FORWARD, REVERSE, PEERS = 5, 3, 9
PRIVATE = offer(4096, 4096, 1)
# More than fits into any Send here.
LONG = bytes(number % 251 for number in range(4400))
ECHO_LONG = f"echo size={len(LONG)} chunks=1"

# Ports of the module, and of the peer.
WITH_BIND, WITHOUT_BIND, FORWARD_ONLY, ONE_CREDIT, FOR_OWN = 2000, 2001, 2002, 2003, 2004
OF_PEER = 2010
# A chunked call that gets no reply in time ends its connection. A busy machine takes seconds.
PATIENT = "timeout_ms=30000"

script = Script()
check, need = script.check, script.need


def bind(xid: int) -> bytes:
    """The call by which a client says that it accepts calls."""
    return rpc_call(xid, 2, program=ECHO, version=1)


class End:
    """A connection of the peer to one end of the module."""

    # The program that the peer calls, its version, and the malformed replies that it may send.
    program: int
    program_version: int
    malformed: int

    def __init__(self, asks: int, grants: int, granted: int = PEERS) -> None:
        # Credits that the module requests for its calls, and that it grants to those of the peer.
        self.asks, self.grants = asks, grants
        # Credits that the peer grants.
        self.peers = granted
        self.xid = 0x70000000
        self.id = ""
        self.version = 1

    def next(self) -> int:
        """Returns the XID of the next call of the peer."""
        self.xid += 1
        return self.xid

    def head(self, xid: int, direction: int, credits: int, procedure: int = RDMA_MSG,
             **chunks: object) -> bytes:
        return header(xid, procedure, version=self.version, direction=direction, credits=credits,
                      **chunks)

    def reply(self, xid: int, rpc: bytes = b"", credits: int = 0) -> bytes:
        """Returns a reply of the peer: SUCCESS, if nothing else is given."""
        return self.head(xid, REPLY, credits or self.peers) + (rpc or success(xid))

    def null_call(self, xid: int) -> bytes:
        """Returns a call of the peer."""
        return self.head(xid, CALL, 32) + rpc_call(xid, program=self.program,
                                                   version=self.program_version)

    def null_reply(self, xid: int) -> bytes:
        """Returns the module's reply to it."""
        return self.head(xid, REPLY, self.grants) + success(xid)

    def refusal(self, xid: int) -> bytes:
        """Returns ERR_CHUNK, or BAD_HEADER in version 2, of the module."""
        return error(xid, ERR_CHUNK, credits=self.grants, version=self.version)

    def receives(self, *messages: bytes) -> None:
        for wanted in messages:
            same("the peer received", wanted, script.peer.next_message())

    def asked(self, wanted: Callable[[int], bytes] = rpc_call) -> int:
        """Checks the next call of the module, and returns its XID. The version is that of the
        forward direction (RFC 8167, section 5.1)."""
        found = script.message()
        xid = split(found)[0]
        same("the module sent", self.head(xid, CALL, self.asks) + wanted(xid), found)
        return xid

    def answers(self, wanted: Callable[[int], bytes] = rpc_call) -> None:
        script.peer.send(self.reply(self.asked(wanted)))

    def answered(self, xid: int = 0) -> None:
        """Makes a call of the peer."""
        xid = xid or self.next()
        script.peer.send(self.null_call(xid))
        self.receives(self.null_reply(xid))

    def calling(self, line: str = "null", outcome: str = DONE) -> Command:
        """Makes the module call, for the time of a `with`."""
        return Command(HOME, "call", f"connection {self.id} {line}", outcome)

    def refuses(self, outcome: str, reason: str) -> None:
        """Checks that the module refuses to make a call."""
        with self.calling("null", outcome):
            pass
        if reason not in module.last_error():
            same("last_error", reason, module.last_error())

    @contextlib.contextmanager
    def counted(self, counter: str, count: int = 1) -> Iterator[None]:
        """Checks that the counter of each direction rises by `count`."""
        keys = [key for key in (counter, f"reverse_{counter}") if key in info(self.id)]
        before = info(self.id)
        yield
        same_info(self.id, 10, **{key: int(before[key]) + count for key in keys})

    def ends(self, outcome: str, *messages: Callable[[int], bytes]) -> int:
        """Answers a call of the module by messages. Checks the outcome. Returns the XID."""
        with self.calling("null", outcome):
            xid = self.asked()
            script.peer.send(*(message(xid) for message in messages))
        return xid

    # About: calls both ways.

    def null(self) -> None:
        with self.counted("inline_calls"):
            self.ends(DONE, self.reply)
            self.answered()
        same_info(self.id, **self.granted())

    def same_xid(self) -> None:
        """Checks that calls in both directions may have the same XID at the same time (RFC 8167,
        section 2.4.1), and that the module answers calls while its own call waits."""
        with self.calling():
            xid = self.asked()
            for _ in range(3):
                self.answered(xid)
            # In version 2 the header has the direction, so a malformed call with the XID of the
            # call that waits is not taken for its reply.
            if self.version == 2:
                script.peer.send(fixed(xid, RDMA_MSG, CALL, 2, 0, 0, version=2))
                self.receives(self.refusal(xid))
            script.peer.send(self.reply(xid))

    def echo(self) -> None:
        with self.calling("echo size=20"):
            found = script.message()
            xid, data = split(found)[0], found[-20:]
            same("the module sent", self.head(xid, CALL, self.asks) + echo(xid, data), found)
            script.peer.send(self.reply(xid, success(xid, found[-24:])))

    def answer_by_chunks(self, message: bytes) -> bytes:
        """Answers a Long Call of the module by a Long Reply, and returns that."""
        found, at = split(message), 5 + self.version
        xid, read, room = found[0], Segment.at(found, at), Segment.at(found, at + 8)
        if not same("the module sent", self.head(xid, CALL, self.asks, RDMA_NOMSG,
                                                 reads=[(0, read)], reply=write_chunk([room])),
                    message):
            return b""
        call = script.peer.read(read.handle, read.offset, read.length)
        same("the call", echo(xid, call[44:]), call)
        same("the octets of its argument", len(LONG), len(call[44:]))
        results = success(xid, call[40:])
        script.peer.write(room.handle, room.offset, results)
        reply = self.head(xid, REPLY, PEERS, RDMA_NOMSG, reply=write_chunk([room], len(results)))
        script.peer.send(reply)
        return reply

    def by_chunks(self) -> None:
        """Makes a Long Call with a Long Reply each way (RFC 8167, section 5.3)."""
        with self.counted("chunked_calls"):
            with self.calling(ECHO_LONG):
                self.answer_by_chunks(script.message())
            xid = self.next()
            call, room = script.peer.readable(echo(xid, LONG)), script.peer.writable(6000)
            results = success(xid, words(len(LONG)) + LONG)
            script.peer.send(self.head(xid, CALL, 32, RDMA_NOMSG,
                                     reads=[(0, *cut(call, call.length))],
                                     reply=write_chunk(cut(room, 6000))))
            self.receives(self.head(xid, REPLY, self.grants, RDMA_NOMSG,
                                    reply=write_chunk(cut(room, len(results)))))
            same("the Reply chunk has", results, room.octets(len(results)))

    def more_by_chunks(self) -> None:
        """Makes the module call with chunks, with more jobs than it has credits. Checks that as
        many calls as there are credits are under way, and no more (RFC 8166, section 3.3.1). The
        peer grants more than the module requests."""
        count = 3 * self.asks
        with self.calling(f"{ECHO_LONG} count={count} jobs={count}"):
            waiting = [script.message() for _ in range(self.asks)]
            for answered in range(count):
                # The first replies show it: waiting each time would take seconds.
                if answered < 2:
                    same(f"{self.asks} calls under way, the module sent", NOTHING,
                         script.peer.receive(300))
                self.answer_by_chunks(waiting.pop(0))
                if answered < count - self.asks:
                    waiting.append(script.message())
        report = module.call_report()
        same("calls and replies", [str(count)] * 2, [report["calls"], report["replies"]])

    def all_at_once(self, rounds: int = 10) -> None:
        """Sends as many messages together as the credits of both directions allow. Checks that each
        finds a Receive (RFC 8167, section 4.3). A message that finds none would end the connection.
        """
        # Two calls have the same XID: each of them is answered (RFC 5531, section 9).
        xids = [1, *range(1, self.grants)]
        for _ in range(rounds):
            with self.calling(f"null jobs={self.asks} count={self.asks}"):
                own = [self.asked() for _ in range(self.asks)]
                script.peer.send(*map(self.null_call, xids), *map(self.reply, own))
            self.receives(*map(self.null_reply, xids))
        same_info(self.id, state="established", generation=1)

    def malformed_replies(self) -> None:
        """Checks that malformed replies are discarded, and not answered (RFC 8166, section 4.5)."""
        direction = (REPLY,) if self.version == 2 else ()

        def form(xid: int, *lists: int) -> bytes:
            return fixed(xid, RDMA_MSG, *direction, *lists, credits=PEERS, version=self.version)

        messages = (
            lambda xid: self.reply(xid, success(xid ^ 0x8000)),
            # A Read list that is neither present nor absent, and a Reply chunk without segments.
            lambda xid: form(xid, 2, 0, 0) + success(xid),
            lambda xid: form(xid, 0, 0, 1, 9) + success(xid),
            lambda xid: self.head(xid, REPLY, PEERS, RDMA_NOMSG),
            # rdma_err is neither ERR_VERS nor ERR_CHUNK.
            lambda xid: error(xid, 9, 0, 0, credits=PEERS, version=self.version),
        )[:self.malformed]
        with self.counted("bad_headers", len(messages)):
            self.ends(DONE, *messages, self.reply)
        # An answer to a malformed reply would arrive before this reply.
        self.answered()

    def late(self) -> None:
        """Checks that a call that was given up keeps its credit until it is answered."""
        self.ends(DONE, lambda xid: self.reply(xid, credits=1))
        xid = self.ends("ETIMEDOUT")
        self.answered()
        self.refuses("EBUSY", "all credits are taken")
        script.peer.send(self.reply(xid))
        # The module has handled that reply when it answers this call.
        self.answered()
        self.null()

    def leaves(self) -> None:
        script.close_by_peer(self.id)


class Server(End):
    """The peer as client. The module is the server, and the requester of the reverse direction."""

    program, program_version, malformed = NFS, 4, 5

    def granted(self) -> dict[str, object]:
        return {"credits_granted": self.grants, "reverse_credits_granted": PEERS}

    def connects(self, port: int, version: int = 1) -> None:
        self.version = version
        script.peer.connect(script.pair.a.path, script.pair.b.ip4, port, PRIVATE)
        self.id = module.newest("server")
        wait_for(10, is_state, self.id, "established")

    def calls_bind(self, answer: Callable[[int], bytes] = success) -> None:
        xid = self.next()
        script.peer.send(self.head(xid, CALL, 32) + bind(xid))
        self.receives(self.head(xid, REPLY, self.grants) + answer(xid))

    def binds(self) -> None:
        """Checks that the server makes no calls before the client has called BIND (RFC 8167,
        section 6)."""
        self.answered()
        same_info(self.id, reverse_direction="no", reverse_credits_granted="none")
        self.refuses("ENOTSUP", "the client has not said that it accepts calls")
        self.calls_bind()
        same_info(self.id, 10, reverse_direction="yes")

    def loses(self) -> None:
        """Checks that a call in the reverse direction is lost with its connection (RFC 8167,
        section 5.4)."""
        with self.calling("null", "ECONNRESET"):
            self.asked()
            script.close_by_peer(self.id)

    def not_before_the_first_call(self) -> None:
        """Checks that the server makes no call before the client's first call, which determines the
        version."""
        self.connects(WITHOUT_BIND, 2)
        same_info(self.id, reverse_direction="yes")
        self.refuses("ENOTSUP", "the client has not made a call yet")
        self.answered()
        self.null()
        self.leaves()

    def goes_down(self) -> None:
        """Checks that a call of the server has the version of the client's latest call."""
        self.connects(WITHOUT_BIND, 2)
        for version in 2, 1:
            self.version = version
            self.answered()
            self.null()
        self.leaves()

    def forward_only(self) -> None:
        self.connects(FORWARD_ONLY)
        self.calls_bind(proc_unavail)
        same_info(self.id, reverse_direction="no")
        self.refuses("ENOTSUP", "reverse=")
        self.leaves()

    def one_credit(self) -> None:
        """Checks that each direction has a credit and Receives of its own (RFC 8167, section 4.3).
        The peer has two Receives, too. A message that finds none would end the connection."""
        self.connects(ONE_CREDIT)
        self.calls_bind()
        self.all_at_once()
        same_info(self.id, reverse_credits_granted=1)
        self.leaves()


class Client(End):
    """The peer as server. The module is the client, and the responder of the reverse direction."""

    program, program_version, malformed = CALLBACKS, 1, 2

    def granted(self) -> dict[str, object]:
        return {"credits_granted": PEERS, "reverse_credits_granted": self.grants}

    def connects(self, keys: str, version: int = 1, private: bytes = PRIVATE) -> None:
        self.version = version
        self.id = script.connect_to_peer(OF_PEER, f"credits={self.asks} {keys}", private)

    def connects_without_bind(self, version: int = 1) -> None:
        self.connects(f"rpcvers={version} null=0 bind=0 reverse={self.grants}", version)
        # BIND would arrive before NULL.
        self.ends(DONE, self.reply)

    def binds(self, version: int) -> None:
        """Checks that the module calls BIND after the reply to NULL."""
        self.connects(f"rpcvers=auto reverse={REVERSE}", 2)
        xid = self.asked()
        if version == 1:
            script.peer.send(error(xid, ERR_VERS, 1, 1, credits=PEERS, version=2))
            self.version = 1
            xid = self.asked()
        script.peer.send(self.reply(xid))
        xid = self.asked(bind)
        same_info(self.id, reverse_direction="pending")
        script.peer.send(self.reply(xid))
        same_info(self.id, 10, reverse_direction="yes", **self.granted())

    def refused(self) -> None:
        """Checks the answers to calls and malformed calls that depend on the module's own program
        and versions. ERR_VERS names all versions that the client speaks (RFC 8166, section
        4.5.1), although it answers only that of the forward direction (RFC 8167, section 5.1)."""
        xid, other = self.next(), 3 - self.version
        nomsg = self.head(xid, CALL, 32, RDMA_NOMSG)
        other_xid = self.head(xid, CALL, 32) + rpc_call(xid ^ 0x8000)
        chunk = self.head(xid, CALL, 32, reads=[(40, Segment(1, 4, 0))]) + rpc_call(xid)
        for message, answer in (
            (self.head(xid, CALL, 32) + bind(xid),
             self.head(xid, REPLY, self.grants) + proc_unavail(xid)),
            *((malformed, self.refusal(xid)) for malformed in (nomsg, other_xid, chunk)),
            *((header(xid, RDMA_MSG, version=version) + rpc_call(xid),
               error(xid, ERR_VERS, 1, 2, credits=self.grants, version=version))
              for version in (3, other)),
        ):
            script.peer.send(message)
            self.receives(answer)
        if self.version == 1:
            script.peer.send(fixed(xid, RDMA2_OPTIONAL, CALL, 77, 0, version=2))
            self.receives(error(xid, ERR_VERS, 1, 2, credits=self.grants, version=2))

    def duplicate_long_reply(self) -> None:
        """Sends a Long Reply twice. Checks that the second one is not taken for a call, although it
        has neither a Read list nor, in version 1, a direction."""
        before = int(info(self.id)["unexpected_messages"])
        with self.calling(ECHO_LONG):
            reply = self.answer_by_chunks(script.message())
        script.peer.send(reply)
        # The answer to the call behind it is the next message.
        self.answered()
        same_info(self.id, state="established", generation=1, unexpected_messages=before + 1)

    def no_bind(self) -> None:
        self.connects_without_bind()
        same_info(self.id, reverse_direction="yes")
        self.null()
        self.leaves()

    def bind_refused(self) -> None:
        """Checks that the module answers calls even if the server does not know BIND."""
        self.connects(f"rpcvers=1 null=0 reverse={REVERSE}")
        xid = self.asked(bind)
        script.peer.send(self.reply(xid, prog_unavail(xid)))
        same_info(self.id, 10, reverse_direction="the responder answered: PROG_UNAVAIL",
                  rpc_null="none")
        self.null()
        self.leaves()

    def before_its_own_call(self) -> None:
        """Checks that a reply in version 2 has up to 4096 octets (the draft, section 2.3), even if
        the client has made no call yet. The peer offers no sizes."""
        self.connects(f"rpcvers=2 null=0 bind=0 reverse={REVERSE}", 2, b"")
        xid, data = self.next(), LONG[:1100]
        script.peer.send(self.head(xid, CALL, 32) + echo(xid, data))
        self.receives(self.head(xid, REPLY, self.grants)
                      + success(xid, words(len(data)) + data))
        self.leaves()

    def forward_only(self) -> None:
        """Checks that a client without `reverse=` answers no calls (RFC 8167, section 6)."""
        for version in 1, 2:
            self.connects(f"rpcvers={version} null=0", version)
            same_info(self.id, reverse_direction="no", reverse_credits_granted="none")
            chunk = write_chunk([Segment(1, 64, 0)])
            unexpected = [
                self.null_call,
                lambda xid: self.head(xid, CALL, 32, reply=chunk) + rpc_call(xid),
            ]
            if version == 2:
                unexpected.append(lambda xid: fixed(xid, RDMA2_OPTIONAL, CALL, 7, 0,
                                                    version=2))
            self.ends(DONE, *unexpected, lambda xid: header(1, RDMA_MSG, version=3) + rpc_call(1),
                      self.reply)
            self.ends(DONE, self.reply)
            same_info(self.id, unexpected_messages=len(unexpected), bad_headers=1)
            self.leaves()

    def reads_nothing(self) -> None:
        """Checks that a Long Call is refused if the peer has a read depth of zero."""
        script.peer.reads = 0
        try:
            self.connects_without_bind()
        finally:
            script.peer.reads = MAX_READS
        xid = self.next()
        call = script.peer.readable(echo(xid, LONG))
        script.peer.send(self.head(xid, CALL, 32, RDMA_NOMSG, reads=[(0, *cut(call, call.length))]))
        self.receives(self.refusal(xid))
        self.answered()
        self.leaves()

    def one_credit(self) -> None:
        """Checks a client with one credit in each direction. The peer has two Receives."""
        self.connects(f"rpcvers=1 null=0 bind=0 reverse={self.grants}")
        self.all_at_once()
        same_info(self.id, reverse_inline_calls=10)
        self.leaves()

    def comes_back(self) -> None:
        """Checks that after a loss the client connects, and calls BIND, again (RFC 8167, section
        5.4)."""
        self.connects(f"rpcvers=1 reverse={REVERSE} reconnect=1")
        for generation in 1, 2:
            self.answers()
            self.answers(bind)
            same_info(self.id, 10, generation=generation, reverse_direction="yes")
            self.answered()
            if generation == 1:
                script.peer.close()
                script.peer.accept(PRIVATE)
        script.close_to_peer(self.id)


def with_two_receives(function: Callable[[], None]) -> None:
    script.peer.receives(2, 4096)
    try:
        function()
    finally:
        script.peer.receives(32, 4096)


class Own:
    """A connection of the module with itself."""

    client = server = ""

    def connect(self, words: str) -> None:
        control(script.pair.a.path, "connect",
                f"{script.pair.b.ip4}:{FOR_OWN} inv=1 {PATIENT} {words}")
        self.client, self.server = module.newest("client"), module.newest("server")
        same_info(self.client, 10, reverse_direction="yes")
        same_info(self.server, 10, state="established", reverse_direction="yes")

    def both_ways(self) -> None:
        """Makes calls in both directions at the same time: one after the other, and with chunks as
        many at a time as there are credits."""
        lines = ("echo size=100 count=100", "echo size=100000 count=10 jobs=10")
        with contextlib.ExitStack() as commands:
            for number in self.client, self.server:
                for line in lines:
                    commands.enter_context(Command(HOME, "call", f"connection {number} {line}"))
        # NULL and BIND count as inline calls, too.
        counters = {"inline_calls": 102, "chunked_calls": 10, "reverse_inline_calls": 100,
                    "reverse_chunked_calls": 10, "bad_headers": 0, "unexpected_messages": 0}
        for number in self.client, self.server:
            same_info(number, 10, **counters)

    def close(self) -> None:
        control(HOME, "close", f"connection {self.client}")
        wait_for(10, is_gone, self.server)

    def closes_while_calling(self) -> None:
        """Checks that the end of a connection ends the calls of both ends."""
        self.connect("reverse=3")
        found: list[str] = []

        def calls(number: str) -> None:
            while (outcome := module.write(HOME, "call", f"connection {number} null\n".encode(),
                                           HOME)) == DONE:
                pass
            found.append(outcome)

        threads = [threading.Thread(target=calls, args=(number,), daemon=True)
                   for number in (self.client, self.server)]
        for thread in threads:
            thread.start()
        wait_for(10, lambda: int(info(self.server)["reverse_inline_calls"]) > 10)
        self.close()
        for thread in threads:
            thread.join(10)
        same("both callers have returned", 2, len(found))
        if set(found) - {"ECONNRESET", "ENOTCONN", "ENOENT"}:
            fail(f"the calls ended with {found}")


server, client, own = Server(REVERSE, FORWARD), Client(FORWARD, REVERSE), Own()


def both_ways(end: End, name: str, version: int) -> None:
    for what, function in (
        ("NULL each way succeeds (2.3)", end.null),
        ("ECHO succeeds (5.1)", end.echo),
        ("calls both ways may have the same XID (2.4.1)", end.same_xid),
        ("a Long Call and a Long Reply each way (5.3)", end.by_chunks),
        ("more Long Calls than credits are answered (RFC 8166, 3.3.1)", end.more_by_chunks),
        ("each message of both directions finds a Receive (4.3)", end.all_at_once),
        ("malformed replies are discarded (RFC 8166, 4.5)", end.malformed_replies),
    ):
        check(f"the {name}, version {version}: {what}", function)


def calls_of_server(version: int) -> None:
    need(f"the peer connects as client, version {version}", server.connects, WITH_BIND, version)
    check(f"the server, version {version}: no call is made before BIND (6)", server.binds)
    both_ways(server, "server", version)
    for name, outcome, message in (
        ("PROG_UNAVAIL fails with ENOTSUP (RFC 5531, 9)", "ENOTSUP",
         lambda xid: server.reply(xid, prog_unavail(xid))),
        ("an error of the header fails with EPROTO (RFC 8166, 4.5)", "EPROTO",
         lambda xid: error(xid, ERR_CHUNK, credits=PEERS, version=version)),
        ("ERR_VERS fails with EPROTONOSUPPORT (RFC 8166, 4.5.1)", "EPROTONOSUPPORT",
         lambda xid: error(xid, ERR_VERS, 7, 8, credits=PEERS, version=version)),
    ):
        check(f"the server, version {version}: {name}", server.ends, outcome, message)
    check(f"the server, version {version}: a late reply gives back the credit (4.1)", server.late)
    check(f"the server, version {version}: a call is lost with its connection (5.4)", server.loses)


def calls_of_client(version: int) -> None:
    need(f"the module binds, version {version}", client.binds, version)
    both_ways(client, "client", version)
    check(f"the client, version {version}: a duplicate Long Reply is no call (RFC 8166, 3.5.3)",
          client.duplicate_long_reply)
    check(f"the client, version {version}: calls that it cannot serve (RFC 8166, 4.5)",
          client.refused)
    check(f"the client, version {version}: the peer closes", client.leaves)


def module_as_server() -> None:
    for version in 1, 2:
        calls_of_server(version)
    check("the server: with bind=0, no call is made before the client's first call (5.1)",
          server.not_before_the_first_call)
    check("the server: its calls follow the client from version 2 to 1 (5.1)", server.goes_down)
    check("the server: without reverse=, BIND gets PROC_UNAVAIL (6)", server.forward_only)
    check("the server: one credit each way suffices (4.1)", with_two_receives,
          Server(1, 1, 1).one_credit)


def module_as_client() -> None:
    # In this order: after ERR_VERS the module remembers that the peer speaks version 1.
    for version in 2, 1:
        calls_of_client(version)
    check("the client: calls are answered although the server refuses BIND (6)",
          client.bind_refused)
    check("the client: with bind=0, BIND is not called", client.no_bind)
    check("the client: before its own call in version 2, replies of up to 4096 octets are sent "
          "inline (the draft, 2.3)", client.before_its_own_call)
    check("the client: without reverse=, calls are not answered (6)", client.forward_only)
    check("the client: a Long Call that cannot be read is refused (RFC 8166, 4.5.3)",
          client.reads_nothing)
    check("the client: one credit each way suffices (4.1)", with_two_receives,
          Client(1, 1, 1).one_credit)
    check("the client: BIND is called again after reconnecting (5.4)", client.comes_back)


def with_itself() -> None:
    need("the module connects to itself for calls both ways", own.connect, "reverse=8")
    check("calls both ways at the same time succeed (2.3)", own.both_ways)
    check("the connection with calls both ways is closed", own.close)
    check("the end of a connection ends the calls of both ends (5.4)", own.closes_while_calling)


script.set_up()
for name, port, keys in (
    ("the module listens for calls both ways", WITH_BIND, f"reverse={REVERSE}"),
    ("the module listens with bind=0", WITHOUT_BIND, f"reverse={REVERSE} bind=0"),
    ("the module listens without reverse=", FORWARD_ONLY, ""),
):
    need(name, script.listen, port, f"inv=1 timeout_ms=10000 credits={FORWARD} {keys}")
need("the module listens with one credit each way", script.listen, ONE_CREDIT,
     "credits=1 reverse=1")
need("the module listens for its own client", script.listen, FOR_OWN,
     f"inv=1 {PATIENT} credits={FORWARD} reverse={REVERSE}")
need("the peer listens for calls both ways", lambda: script.peer.listen(
    script.pair.b.path, script.pair.b.ip4, OF_PEER))
need("the peer has Receives for both directions", lambda: script.peer.receives(32, 4096))
script.group(module_as_server)
script.group(module_as_client)
script.group(with_itself)
check("close all ends the listeners for calls both ways", control, HOME, "close", "all")
script.check_none_left()
script.run()
