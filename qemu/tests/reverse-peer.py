#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Calls in the reverse direction (RFC 8167), with a peer in user space, octet for octet, in
both roles and both versions. The messages are written out here, word by word, from RFC 8166
(version 1), draft-cel-nfsv4-rpcrdma-version-two-01 (version 2) and RFC 5531 (RPC)."""

# test: debug.siw
# soak: debug.rxe stock.rxe

import contextlib
import threading
from collections.abc import Callable

from lib import module
from lib.hosts import HOME
from lib.ktap import Failed, fail, same, wait_for
from lib.module import DONE, Command, control, info, is_gone, is_state, same_info
from lib.peer import CLOSED, MAX_READS, NOTHING, REMOTE_READ, REMOTE_WRITE, Memory, Peer
from lib.script import Script
from lib.wire import octets, segment, split

# Credits of the module in the forward and in the reverse direction, and credits of the peer.
FORWARD, REVERSE, PEERS = 5, 3, 9

# RFC 5531, section 9: xid, CALL, RPC version 2, program, version, procedure, and AUTH_NONE of
# length 0 twice; xid, REPLY, MSG_ACCEPTED, AUTH_NONE, SUCCESS.
AUTH = "0 0  0 0"
NULL = f"X 0 2  100003 4 0  {AUTH}"
CALLBACK_NULL = f"X 0 2  0x40000000 1 0  {AUTH}"
ECHO = f"X 0 2  0x20008797 1 1  {AUTH}"
BIND = f"X 0 2  0x20008797 1 2  {AUTH}"
SUCCESS = "X 1 0  0 0  0"
PROG_UNAVAIL, PROC_UNAVAIL = "X 1 0  0 0  1", "X 1 0  0 0  3"
# RFC 8797, section 4, with R: sizes of 4096.
PRIVATE = bytes.fromhex("f6ab0e1801010303")
# More than fits into any Send here.
DATA = b"".join(number.to_bytes(4, "big") for number in range(1, 1101))
LONG_CALL, LONG_REPLY = 40 + 4 + len(DATA), 24 + 4 + len(DATA)

# Ports of the module, and of the peer.
WITH_BIND, WITHOUT_BIND, FORWARD_ONLY, ONE_CREDIT, FOR_OWN = 2000, 2001, 2002, 2003, 2004
OF_PEER = 2010
# A chunked call that gets no reply in time ends its connection. A busy machine takes seconds.
PATIENT = "timeout_ms=30000"

script = Script()
check, need = script.check, script.need


class Link:
    """The peer, as far as both roles are alike."""

    def __init__(self) -> None:
        # The XID of the peer's latest call, or of the module's call that arrived last.
        self.xid = 0x70000000
        # The module's end.
        self.id = ""
        self.version = 1

    @property
    def peer(self) -> Peer:
        return script.peer

    def call(self, credits: int) -> str:
        """Returns the header of a call without chunks."""
        return f"X {self.version} {credits} 0 {'' if self.version == 1 else 0}  0 0 0 "

    def reply(self, credits: int) -> str:
        return f"X {self.version} {credits} 0 {'' if self.version == 1 else 1}  0 0 0 "

    def sends(self, words: str | bytes, xid: int | None = None) -> None:
        self.peer.send(octets(words, self.xid if xid is None else xid))

    def receives(self, words: str | bytes, xid: int | None = None) -> None:
        same("the peer received", octets(words, self.xid if xid is None else xid),
             script.next_message())

    def asked(self, words: str) -> None:
        """Checks the next call of the module. X is its XID from now on."""
        message = script.next_message()
        if not isinstance(message, bytes) or len(message) < 28:
            raise Failed(f"instead of a call: {message}")
        self.xid = split(message)[0]
        same("the module sent", octets(words, self.xid), message)

    def calling(self, words: str = "null", outcome: str = DONE) -> Command:
        """Makes the module call, for the time of a `with`."""
        return Command(HOME, "call", f"connection {self.id} {words}", outcome)

    def refuses(self, outcome: str, reason: str) -> None:
        """Checks that the module refuses to make a call."""
        with self.calling("null", outcome):
            pass
        if reason not in module.last_error():
            same("last_error", reason, module.last_error())

    def next_xid(self) -> int:
        """The XID of the next message."""
        message = script.next_message()
        if not isinstance(message, bytes):
            raise Failed(f"instead of a message: {message}")
        return split(message)[0]

    def answer_by_chunks(self, message: bytes | str, credits: int) -> str:
        """Answers a Long Call of the module by a Long Reply. Returns the message of the reply."""
        words = split(message)
        self.xid = words[0]
        same("the header", [self.version, credits, 1], words[1:4])
        if self.version == 2:
            same("the direction", 0, words.pop(4))
        key, length, high, low = words[6:10]
        same("the length of the call", LONG_CALL, length)
        call = self.peer.read(key, high << 32 | low, length)
        head = octets(f"{ECHO} {len(DATA)}", self.xid)
        same("the call", head, call[:len(head)])
        key, length, high, low = words[14:18]
        self.peer.write(key, high << 32 | low,
                        octets(f"{SUCCESS} {len(DATA)}", self.xid) + call[len(head):])
        direction = "" if self.version == 1 else 1
        reply = (f"X {self.version} {PEERS} 1 {direction}  0  0  "
                 f"1 1 {segment(key, LONG_REPLY, high << 32 | low)}")
        self.sends(reply)
        return reply

    def echo_by_chunks(self, credits: int) -> str:
        """The module makes a Long Call, and gets a Long Reply. Returns the message of the reply."""
        with self.calling(f"echo size={len(DATA)} chunks=1"):
            return self.answer_by_chunks(script.next_message(), credits)

    def more_by_chunks(self, credits: int) -> None:
        """Makes the module call with chunks, with more jobs than it has credits. Checks that as
        many calls as there are credits are under way, and no more (RFC 8166, section 3.3.1). The
        peer grants more than the module requests."""
        count = 3 * credits
        with self.calling(f"echo size={len(DATA)} chunks=1 count={count} jobs={count}"):
            waiting = [script.next_message() for _ in range(credits)]
            for answered in range(count):
                # The first replies show it: waiting each time would take seconds.
                if answered < 2:
                    same(f"{credits} calls under way, the module sent", NOTHING,
                         self.peer.receive(300))
                self.answer_by_chunks(waiting.pop(0), credits)
                if answered < count - credits:
                    waiting.append(script.next_message())
        report = module.call_report()
        same("calls and replies", [str(count)] * 2, [report["calls"], report["replies"]])

    def leaves(self) -> None:
        self.peer.close()
        wait_for(10, is_gone, self.id)

    def malformed(self) -> str:
        """Returns the answer to a malformed header: ERR_CHUNK in version 1, BAD_HEADER in version
        2. Both have the same number."""
        return f"X {self.version} {self.grants} 4  2"


class Server(Link):
    """The peer as client. The module is the server, and the requester of the reverse direction."""

    grants = FORWARD

    def connects(self, port: int, private: bytes = PRIVATE) -> None:
        self.peer.connect(script.pair.a.path, script.pair.b.ip4, port, private)
        self.id = module.newest("server")
        wait_for(10, is_state, self.id, "established")

    def answered(self, call: str, reply: str = SUCCESS) -> None:
        """Makes a call of the peer, and checks the reply. X is the XID of that call from now on."""
        self.xid += 1
        self.sends(self.call(32) + call)
        self.receives(self.reply(FORWARD) + reply)

    def binds(self, version: int) -> None:
        """Checks that the server makes no calls before the client has called BIND (RFC 8167,
        section 6)."""
        self.version = version
        self.answered(NULL)
        same_info(self.id, reverse_direction="no", reverse_credits_granted="none")
        self.refuses("ENOTSUP", "the client has not said that it accepts calls")
        self.answered(BIND)
        same_info(self.id, 10, reverse_direction="yes")

    def asked_null(self) -> None:
        """Checks that the module calls NULL, in the version of the forward direction (RFC 8167,
        section 5.1)."""
        self.asked(self.call(REVERSE) + NULL)

    def null(self, credits: int = PEERS) -> None:
        before = info(self.id)
        with self.calling():
            self.asked_null()
            self.sends(self.reply(credits) + SUCCESS)
        same_info(self.id, reverse_credits_granted=credits, credits_granted=FORWARD,
                  reverse_inline_calls=int(before["reverse_inline_calls"]) + 1,
                  inline_calls=before["inline_calls"])

    def ends(self, outcome: str, *messages: str | bytes) -> None:
        """Answers a call of the module by these messages, and checks the outcome of the call."""
        with self.calling("null", outcome):
            self.asked_null()
            for message in messages:
                self.sends(message)

    def same_xid(self) -> None:
        """Checks that calls in both directions may have the same XID at the same time (RFC 8167,
        section 2.4.1), and that the module answers calls while its own call waits."""
        with self.calling():
            self.asked_null()
            for _ in range(3):
                self.sends(self.call(32) + NULL)
                self.receives(self.reply(FORWARD) + SUCCESS)
            self.sends(self.reply(PEERS) + SUCCESS)

    def echo(self) -> None:
        with self.calling("echo size=20"):
            message = script.next_message()
            self.xid = split(message)[0]
            head = octets(f"{self.call(REVERSE)} {ECHO}", self.xid)
            same("the module sent", head + (20).to_bytes(4, "big"), message[:len(head) + 4])
            self.sends(octets(self.reply(PEERS) + SUCCESS, self.xid) + message[len(head):])

    def by_chunks(self) -> None:
        """Answers a Long Call by a Long Reply, both in memory of the server (RFC 8167, section
        5.3)."""
        before = int(info(self.id)["reverse_chunked_calls"])
        self.echo_by_chunks(REVERSE)
        same_info(self.id, reverse_chunked_calls=before + 1)

    def all_at_once(self) -> None:
        """Sends as many messages together as the credits of both directions allow. Checks that each
        finds a Receive (RFC 8167, section 4.3). A message that finds none would end the connection.
        """
        for _ in range(10):
            with self.calling(f"null jobs={REVERSE} count={REVERSE}"):
                xids = [self.next_xid() for _ in range(REVERSE)]
                replies = [octets(self.reply(PEERS) + SUCCESS, xid) for xid in xids]
                calls = [octets(self.call(32) + NULL, xid) for xid in range(1, FORWARD + 1)]
                self.peer.send(*calls, *replies)
            for xid in range(1, FORWARD + 1):
                self.receives(self.reply(FORWARD) + SUCCESS, xid)
        same_info(self.id, state="established", generation=1)

    def malformed_replies(self) -> None:
        """Checks that malformed replies are discarded, and not answered (RFC 8166, section 4.5)."""
        before = int(info(self.id)["bad_headers"])
        direction = "" if self.version == 1 else 1
        messages = (
            f"{self.reply(PEERS)} {SUCCESS.replace('X', 'Y')}",
            f"X {self.version} {PEERS} 0 {direction}  2 0 0  {SUCCESS}",
            f"X {self.version} {PEERS} 0 {direction}  0 0 1 9  {SUCCESS}",
            f"X {self.version} {PEERS} 1 {direction}  0 0 0",
            f"X {self.version} {PEERS} 4  9 0 0",
        )
        self.ends(DONE, *messages, self.reply(PEERS) + SUCCESS)
        same_info(self.id, bad_headers=before + len(messages))
        # An answer to a malformed reply would arrive before this reply.
        self.answered(NULL)

    def late(self) -> None:
        """Checks that a call that was given up keeps its credit until it is answered."""
        self.null(1)
        self.ends("ETIMEDOUT")
        xid = self.xid
        self.answered(NULL)
        self.refuses("EBUSY", "all credits are taken")
        self.sends(self.reply(PEERS) + SUCCESS, xid)
        # The module has handled that reply when it answers this call.
        self.answered(NULL)
        self.null()

    def loses(self) -> None:
        """Checks that a call in the reverse direction is lost with its connection (RFC 8167,
        section 5.4)."""
        with self.calling("null", "ECONNRESET"):
            self.asked_null()
            self.peer.close()
        wait_for(10, is_gone, self.id)

    def not_before_the_first_call(self) -> None:
        """Checks that the server makes no call before the client's first call, which determines the
        version."""
        self.version = 2
        self.connects(WITHOUT_BIND)
        same_info(self.id, reverse_direction="yes")
        self.refuses("ENOTSUP", "the client has not made a call yet")
        self.answered(NULL)
        self.null()
        self.leaves()

    def forward_only(self) -> None:
        self.version = 1
        self.connects(FORWARD_ONLY)
        self.answered(BIND, PROC_UNAVAIL)
        same_info(self.id, reverse_direction="no")
        self.refuses("ENOTSUP", "reverse=")
        self.leaves()

    def one_credit(self) -> None:
        """Checks that each direction has a credit and Receives of its own (RFC 8167, section 4.3).
        The peer has two Receives, too. A message that finds none would end the connection."""
        self.peer.receives(2, 4096)
        try:
            self.version = 1
            self.connects(ONE_CREDIT)
            self.xid += 1
            self.sends(self.call(1) + BIND)
            self.receives(self.reply(1) + SUCCESS)
            for _ in range(10):
                with self.calling():
                    self.asked(self.call(1) + NULL)
                    xid = self.xid
                    # Both at once: a call and a reply.
                    self.peer.send(octets(self.call(1) + NULL, xid),
                                   octets(self.reply(1) + SUCCESS, xid))
                self.receives(self.reply(1) + SUCCESS)
            same_info(self.id, state="established", reverse_credits_granted=1)
            self.leaves()
        finally:
            self.peer.receives(32, 4096)


class Client(Link):
    """The peer as server. The module is the client, and the responder of the reverse direction."""

    grants = REVERSE

    def connects(self, words: str, port: int = OF_PEER) -> None:
        line = f"{script.pair.b.ip4}:{port} credits={FORWARD} {words}"
        with Command(script.pair.a.path, "connect", line):
            self.peer.accept(PRIVATE)
        self.id = module.newest("client")

    def answers(self, call: str, reply: str = SUCCESS) -> None:
        """Checks the next call of the module, and answers it."""
        self.asked(self.call(FORWARD) + call)
        self.sends(self.reply(PEERS) + reply)

    def binds(self, version: int) -> None:
        """Checks that the module calls BIND after the reply to NULL."""
        self.version = version
        self.connects(f"rpcvers=auto reverse={REVERSE}")
        self.version = 2
        self.asked(self.call(FORWARD) + NULL)
        if version == 1:
            self.sends(f"X 2 {PEERS} 4  1 1 1")
            self.version = 1
            self.asked(self.call(FORWARD) + NULL)
        self.sends(self.reply(PEERS) + SUCCESS)
        self.asked(self.call(FORWARD) + BIND)
        same_info(self.id, reverse_direction="pending")
        self.sends(self.reply(PEERS) + SUCCESS)
        same_info(self.id, 10, reverse_direction="yes", reverse_credits_granted=REVERSE,
                  credits_granted=PEERS)

    def answered(self, words: str | bytes, answer: str) -> None:
        """Sends a message, and checks the answer. With NOTHING, checks that the module answers only
        the next call."""
        self.xid = 0x70000000 | self.xid + 1
        self.sends(words)
        if answer == NOTHING:
            self.answered(self.call(32) + CALLBACK_NULL, self.reply(REVERSE) + SUCCESS)
        else:
            self.receives(answer)

    def counted(self) -> None:
        before = info(self.id)
        self.answered(self.call(32) + CALLBACK_NULL, self.reply(REVERSE) + SUCCESS)
        same_info(self.id, 10, reverse_inline_calls=int(before["reverse_inline_calls"]) + 1,
                  inline_calls=before["inline_calls"], credits_granted=PEERS)

    def same_xid(self) -> None:
        with self.calling():
            self.asked(self.call(FORWARD) + NULL)
            for _ in range(3):
                self.sends(self.call(32) + CALLBACK_NULL)
                self.receives(self.reply(REVERSE) + SUCCESS)
            # In version 2 the header has the direction, so a malformed call with the XID of the
            # call that waits is not taken for its reply.
            if self.version == 2:
                self.sends(f"X 2 32 0 0  2 0 0  {NULL}")
                self.receives(self.malformed())
            self.sends(self.reply(PEERS) + SUCCESS)

    def malformed_replies(self) -> None:
        """Checks that malformed replies are discarded."""
        direction = "" if self.version == 1 else 1
        with self.calling():
            self.asked(self.call(FORWARD) + NULL)
            for words in (f"{self.reply(PEERS)} {SUCCESS.replace('X', 'Y')}",
                          f"X {self.version} {PEERS} 0 {direction}  2 0 0  {SUCCESS}"):
                self.sends(words)
            self.sends(self.reply(PEERS) + SUCCESS)
        self.answered(self.call(32) + CALLBACK_NULL, self.reply(REVERSE) + SUCCESS)

    def duplicate_long_reply(self) -> None:
        """Sends a Long Reply twice. Checks that the second one is not taken for a call, although it
        has neither a Read list nor, in version 1, a direction."""
        before = int(info(self.id)["unexpected_messages"])
        reply = self.echo_by_chunks(FORWARD)
        self.sends(reply)
        # The answer to the call behind it is the next message.
        self.counted()
        same_info(self.id, state="established", generation=1, unexpected_messages=before + 1)

    def all_at_once(self) -> None:
        """Sends as many messages together as the credits of both directions allow."""
        for _ in range(10):
            with self.calling(f"null jobs={FORWARD} count={FORWARD}"):
                xids = [self.next_xid() for _ in range(FORWARD)]
                replies = [octets(self.reply(PEERS) + SUCCESS, xid) for xid in xids]
                calls = [octets(self.call(32) + CALLBACK_NULL, xid)
                         for xid in range(1, REVERSE + 1)]
                self.peer.send(*calls, *replies)
            for xid in range(1, REVERSE + 1):
                self.receives(self.reply(REVERSE) + SUCCESS, xid)
        same_info(self.id, state="established", generation=1)

    def offered(self, content: bytes, use: int) -> Memory:
        memory = self.peer.register(len(content), use)
        memory.fill(content)
        return memory

    def by_chunks(self) -> None:
        """Makes a Long Call, and checks the Long Reply, both in memory of the peer, the server."""
        self.xid += 1
        before = int(info(self.id)["reverse_chunked_calls"])
        call = self.offered(octets(f"{ECHO} {len(DATA)}", self.xid) + DATA, REMOTE_READ)
        reply = self.offered(bytes(6000), REMOTE_WRITE)
        direction, replies = ("", "") if self.version == 1 else ("0", "1")
        self.sends(f"X {self.version} 32 1 {direction}  "
                   f"1 0 {segment(call.key, LONG_CALL, call.address)} 0  0  "
                   f"1 1 {segment(reply.key, 6000, reply.address)}")
        self.receives(f"X {self.version} {REVERSE} 1 {replies}  0  0  "
                      f"1 1 {segment(reply.key, LONG_REPLY, reply.address)}")
        same("the Reply chunk has", octets(f"{SUCCESS} {len(DATA)}", self.xid) + DATA,
             reply.octets(LONG_REPLY))
        same_info(self.id, 10, reverse_chunked_calls=before + 1)

    def reads_nothing(self) -> None:
        """Checks that a Long Call is refused if the peer has a read depth of zero."""
        self.version = 1
        self.peer.reads = 0
        try:
            self.connects(f"rpcvers=1 null=0 bind=0 reverse={REVERSE}")
        finally:
            self.peer.reads = MAX_READS
        with self.calling():
            self.answers(NULL)
        call = self.offered(octets(f"{ECHO} {len(DATA)}", self.xid) + DATA, REMOTE_READ)
        self.answered(f"X 1 32 1  1 0 {segment(call.key, LONG_CALL, call.address)} 0  0  0",
                      self.malformed())
        self.counted()
        self.leaves()

    def refused(self) -> None:
        """Checks that the module answers calls even if the server does not know BIND."""
        self.version = 1
        self.connects(f"rpcvers=1 null=0 reverse={REVERSE}")
        self.answers(BIND, PROG_UNAVAIL)
        same_info(self.id, 10, reverse_direction="the responder answered: PROG_UNAVAIL",
                  rpc_null="none")
        self.counted()
        self.leaves()

    def no_bind(self) -> None:
        self.version = 1
        self.connects(f"rpcvers=1 null=0 reverse={REVERSE} bind=0")
        same_info(self.id, reverse_direction="yes")
        # BIND would arrive before NULL.
        with self.calling():
            self.answers(NULL)
        self.counted()
        self.leaves()

    def before_its_own_call(self) -> None:
        """Checks that a reply in version 2 has up to 4096 octets (the draft, section 2.3), even if
        the client has made no call yet. The peer offers no sizes."""
        self.version = 2
        line = f"{script.pair.b.ip4}:{OF_PEER} rpcvers=2 null=0 bind=0 reverse={REVERSE}"
        with Command(script.pair.a.path, "connect", line):
            self.peer.accept(b"")
        self.id = module.newest("client")
        words = f"{ECHO} 1100 {' '.join(map(str, range(275)))}"
        self.answered(self.call(32) + words,
                      f"{self.reply(REVERSE)} {words.replace(ECHO, SUCCESS)}")
        self.leaves()

    def forward_only(self) -> None:
        """Checks that a client without `reverse=` answers no calls (RFC 8167, section 6)."""
        for version in 1, 2:
            self.version = version
            self.connects(f"rpcvers={version} null=0")
            same_info(self.id, reverse_direction="no", reverse_credits_granted="none")
            with self.calling():
                self.asked(self.call(FORWARD) + NULL)
                self.sends(self.call(32) + CALLBACK_NULL)
                # With a Reply chunk.
                self.sends(self.call(32)[:-2] + f"1 1 1 64 0 0  {CALLBACK_NULL}")
                self.sends(f"X 3 32 0  0 0 0  {CALLBACK_NULL}".replace("X", "Y"))
                self.sends(self.reply(PEERS) + SUCCESS)
            with self.calling():
                self.answers(NULL)
            same_info(self.id, unexpected_messages=2, bad_headers=1)
            self.leaves()

    def one_credit(self) -> None:
        """Checks a client with one credit in each direction. The peer has two Receives."""
        self.peer.receives(2, 4096)
        try:
            self.version = 1
            line = f"{script.pair.b.ip4}:{OF_PEER} credits=1 reverse=1 rpcvers=1 null=0 bind=0"
            with Command(script.pair.a.path, "connect", line):
                self.peer.accept(PRIVATE)
            self.id = module.newest("client")
            for _ in range(10):
                with self.calling():
                    self.asked(self.call(1) + NULL)
                    self.peer.send(octets(self.call(1) + CALLBACK_NULL, self.xid),
                                   octets(self.reply(1) + SUCCESS, self.xid))
                self.receives(self.reply(1) + SUCCESS)
            same_info(self.id, state="established", reverse_inline_calls=10)
            self.leaves()
        finally:
            self.peer.receives(32, 4096)

    def exceeds_credits(self, version: int, chunked: bool) -> None:
        """Makes four times as many calls at once as are granted. Each is answered, or the
        connection ends (RFC 8166, section 3.3.1). On the next connection calls are answered."""
        self.version = version
        words = f"rpcvers={version} null=0 bind=0 reverse={REVERSE}"
        self.connects(words)
        with self.calling():
            self.answers(NULL)
        calls = []
        for xid in range(1, 4 * REVERSE + 1):
            call = self.call(32) + CALLBACK_NULL
            if chunked:
                memory = self.offered(octets(CALLBACK_NULL, xid), REMOTE_READ)
                call = (f"X {version} 32 1 {'' if version == 1 else 0}  "
                        f"1 0 {segment(memory.key, 40, memory.address)} 0  0  0")
            calls.append(octets(call, xid))
        with contextlib.suppress(OSError, RuntimeError):
            self.peer.send(*calls)
        answers = 0
        while answers < len(calls) and (found := self.peer.receive(10000)) != CLOSED:
            answers += 1
            if not same(f"reply {answers}", octets(self.reply(REVERSE) + SUCCESS, answers), found):
                break
        if answers == len(calls):
            self.counted()
        self.leaves()
        self.connects(words)
        with self.calling():
            self.answers(NULL)
        self.counted()
        self.leaves()

    def comes_back(self) -> None:
        """Checks that after a loss the client connects, and calls BIND, again (RFC 8167, section
        5.4)."""
        self.version = 1
        self.connects(f"rpcvers=1 reverse={REVERSE} reconnect=1")
        for generation in 1, 2:
            self.answers(NULL)
            self.answers(BIND)
            same_info(self.id, 10, generation=generation, reverse_direction="yes")
            self.counted()
            if generation == 1:
                self.peer.close()
                self.peer.accept(PRIVATE)
        script.close_to_peer(self.id)


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
        commands = [Command(HOME, "call", f"connection {number} {line}")
                    for number in (self.client, self.server) for line in lines]
        for command in commands:
            command.__enter__()
        for command in commands:
            command.__exit__(None, None, None)
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


server, client, own = Server(), Client(), Own()


def set_up() -> None:
    script.set_up()
    for name, port, words in (
        ("the module listens for calls both ways", WITH_BIND, f"reverse={REVERSE}"),
        ("the module listens with bind=0", WITHOUT_BIND,
         f"reverse={REVERSE} bind=0"),
        ("the module listens without reverse=", FORWARD_ONLY, ""),
    ):
        need(name, script.listen, port, f"inv=1 timeout_ms=2000 credits={FORWARD} {words}")
    need("the module listens with one credit each way", script.listen, ONE_CREDIT,
         "credits=1 reverse=1")
    need("the module listens for its own client", script.listen, FOR_OWN,
         f"inv=1 {PATIENT} credits={FORWARD} reverse={REVERSE}")
    need("the peer listens for calls both ways", lambda: script.peer.listen(
        script.pair.b.path, script.pair.b.ip4, OF_PEER))
    need("the peer has Receives for both directions", lambda: script.peer.receives(32, 4096))


def module_as_server(version: int) -> None:
    def check_too(name: str, function: Callable[..., object], *arguments: object) -> None:
        check(f"the server: {name}, version {version}", function, *arguments)

    # Checks that the reply makes the call of the module fail with this outcome.
    def ends(name: str, outcome: str, reply: str) -> None:
        check_too(f"{name} fails with {outcome}", lambda: server.ends(outcome, reply.format(
            version=version, peers=PEERS, reply=server.reply(PEERS))))

    need(f"the peer connects as client, version {version}", server.connects, WITH_BIND)
    check_too("no call is made before BIND", server.binds, version)
    check_too("NULL succeeds", server.null)
    check_too("ECHO succeeds", server.echo)
    check_too("calls both ways may have the same XID", server.same_xid)
    check_too("a Long Call and a Long Reply", server.by_chunks)
    check_too("more Long Calls than credits are answered", server.more_by_chunks, REVERSE)
    check_too("each message of both directions finds a Receive", server.all_at_once)
    check_too("malformed replies are discarded", server.malformed_replies)
    ends("PROG_UNAVAIL", "ENOTSUP", "{reply} " + PROG_UNAVAIL)
    ends("an error of the header", "EPROTO", "X {version} {peers} 4  2")
    ends("ERR_VERS", "EPROTONOSUPPORT", "X {version} {peers} 4  1 7 8")
    check_too("a late reply gives back the credit", server.late)
    check_too("a call is lost with its connection", server.loses)


# Name, procedure of the header, the rest of the message from the chunk lists on. tools/conformance
# has other forms.
MALFORMED = [
    ("RDMA_NOMSG without a chunk", 1, "0 0 0"),
    ("a header with another XID", 0, f"0 0 0  {NULL.replace('X', 'Y')}"),
    ("a Read chunk within the call", 0, f"1 40 1 4 0 0  0 0 0  {NULL}"),
]


def module_as_client(version: int) -> None:
    other = 3 - version
    directions = {1: ("", ""), 2: ("0", "1")}
    call, reply = directions[version]

    def check_too(name: str, function: Callable[..., object], *arguments: object) -> None:
        check(f"the client: {name}, version {version}", function, *arguments)

    def answered(name: str, words: str, answer: str) -> None:
        check_too(name, client.answered, words, answer)

    asks, replies = f"X {version} 32 0 {call} 0 0 0 ", f"X {version} {REVERSE} 0 {reply} 0 0 0 "
    bad = f"X {version} {REVERSE} 4  2"
    need(f"the module binds, version {version}", client.binds, version)
    check_too("NULL is answered", client.counted)
    answered("ECHO is answered", f"{asks} {ECHO} 5 0x68656c6c 0x6f000000",
             f"{replies} {SUCCESS} 5 0x68656c6c 0x6f000000")
    answered("BIND gets PROC_UNAVAIL", f"{asks} {BIND}", f"{replies} {PROC_UNAVAIL}")
    check_too("calls both ways may have the same XID", client.same_xid)
    check_too("malformed replies are discarded", client.malformed_replies)
    for name, procedure, words in MALFORMED:
        answered(f"{name} is refused", f"X {version} 32 {procedure} {call}  {words}", bad)
    check_too("a Long Call and a Long Reply", client.by_chunks)
    check_too("a duplicate Long Reply is no call", client.duplicate_long_reply)
    check_too("more Long Calls than credits are answered", client.more_by_chunks, FORWARD)
    check_too("each message of both directions finds a Receive", client.all_at_once)
    # The version is that of the forward direction (RFC 8167, section 5.1).
    # ERR_VERS names all versions that the client speaks (RFC 8166, section 4.5.1).
    answered("a call in version 3 gets ERR_VERS", f"X 3 32 0  0 0 0  {NULL}",
             f"X 3 {REVERSE} 4  1 1 2")
    answered("a call in the other version gets ERR_VERS",
             f"X {other} 32 0 {directions[other][0]}  0 0 0  {NULL}",
             f"X {other} {REVERSE} 4  1 1 2")
    answered("an unexpected reply is discarded", f"{replies} {SUCCESS}", NOTHING)
    answered("an unexpected error is discarded", f"X {version} 1 4  2", NOTHING)
    # In version 2 tools/conformance shows the answers to options.
    if version == 1:
        answered("an option is refused", "X 2 32 5 0  77 0", f"X 2 {REVERSE} 4  1 1 2")
    check_too("the peer closes", client.leaves)


set_up()
for number in 1, 2:
    module_as_server(number)
check("the server: with bind=0, no call is made before the client's first call",
      server.not_before_the_first_call)
check("the server: without reverse=, BIND gets PROC_UNAVAIL", server.forward_only)
check("the server: one credit each way suffices", server.one_credit)
# In this order: after ERR_VERS the module remembers that the peer speaks version 1.
for number in 2, 1:
    module_as_client(number)
check("the client: calls are answered although the server refuses BIND", client.refused)
check("the client: with bind=0, BIND is not called", client.no_bind)
check("the client: before its own call in version 2, replies of up to 4096 octets are sent inline",
      client.before_its_own_call)
check("the client: without reverse=, calls are not answered", client.forward_only)
check("the client: a Long Call that cannot be read is refused", client.reads_nothing)
check("the client: one credit each way suffices", client.one_credit)
for number in 1, 2:
    for kind, long in ("calls", False), ("Long Calls", True):
        check(f"the client: more {kind} at once than it grants, version {number}",
              client.exceeds_credits, number, long)
check("the client: BIND is called again after reconnecting", client.comes_back)
need("the module connects to itself for calls both ways", own.connect, "reverse=8")
check("calls both ways at the same time succeed", own.both_ways)
check("the connection with calls both ways is closed", own.close)
check("the end of a connection ends the calls of both ends", own.closes_while_calling)
check("close all ends the listeners for calls both ways", control, HOME, "close", "all")
script.check_none_left()
script.run()
