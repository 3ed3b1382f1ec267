#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""RPC-over-RDMA with a peer in user space, octet for octet, in both roles. The peer sends valid
and malformed messages. The messages in both directions are written out here, word by word, from
RFC 8166 (version 1), draft-cel-nfsv4-rpcrdma-version-two-01 (version 2) and RFC 5531 (RPC)."""

# test: debug.siw
# soak: debug.rxe stock.rxe

import contextlib
from collections.abc import Callable, Iterator

from lib import module
from lib.hosts import HOME
from lib.ktap import Failed, fail, same, wait_for
from lib.module import Command, control, info, is_gone, is_state, same_info
from lib.peer import CLOSED, MAX_READS, NOTHING, REMOTE_READ, REMOTE_WRITE, Memory, Peer
from lib.script import Script
from lib.wire import octets, segment, split

# Credits that the module grants as server, that it requests as client, and that the peer grants.
GRANTS, REQUESTS, PEERS = 5, 7, 9

# About: the parts of messages, in the words of lib/wire.py.

# RFC 5531, section 9: xid, CALL, RPC version 2, program, version, procedure, and
# AUTH_NONE of length 0 twice; xid, REPLY, MSG_ACCEPTED, AUTH_NONE, SUCCESS.
AUTH = "0 0  0 0"
CALL_NULL = f"X 0 2  100003 4 0  {AUTH}"
ECHO = "0x20008797"
CALL_ECHO = f"X 0 2  {ECHO} 1 1  {AUTH}"
SUCCESS = "X 1 0  0 0  0"

# RFC 8166, section 4.1.2: xid, version, credits, RDMA_MSG, and no chunks; the
# draft, section 4.2: with the direction before these.
CALL = {1: "X 1 32 0    0 0 0 ", 2: "X 2 32 0 0  0 0 0 "}
REPLY = {1: f"X 1 {GRANTS} 0    0 0 0 ", 2: f"X 2 {GRANTS} 0 1  0 0 0 "}
# RDMA_ERROR with ERR_CHUNK and RDMA2_ERR_BAD_HEADER.
ERR_CHUNK = f"X 1 {GRANTS} 4  2"
BAD_HEADER = f"X 2 {GRANTS} 4  2"
MALFORMED = {1: ERR_CHUNK, 2: BAD_HEADER}
# RFC 8797, section 4, with R: sizes of 4096 and of 1024.
PRIVATE = bytes.fromhex("f6ab0e1801010303")
PRIVATE_1024 = bytes.fromhex("f6ab0e1801010000")

# More than fits into any Send here.
DATA = b"".join(number.to_bytes(4, "big") for number in range(1, 1101))
SIZE = len(DATA)
# An ECHO of DATA, by itself, and its reply.
LONG_CALL, LONG_REPLY = 40 + 4 + SIZE, 24 + 4 + SIZE
# The content of a Reply chunk before the module writes to it.
UNTOUCHED = b"\xa5" * 6000

# Ports of the module, by the versions that it speaks there, and one of the peer.
BOTH, ONLY_1, ONLY_2, OF_PEER = 2000, 2002, 2003, 2001

script = Script()
check, need = script.check, script.need


class Link:
    """The peer, as far as both roles are alike."""

    # A connection of the module with itself. No check may affect it.
    bystander: str

    def __init__(self) -> None:
        self.xid = 0x70000000
        # The module's end.
        self.id = ""

    @property
    def peer(self) -> Peer:
        return script.peer

    @property
    def client_netns(self) -> str:
        return script.pair.a.path

    @property
    def server_netns(self) -> str:
        return script.pair.b.path

    @property
    def server(self) -> str:
        return script.pair.b.ip4

    def octets(self, words: str | bytes) -> bytes:
        return octets(words, self.xid)

    def sends(self, words: str | bytes) -> None:
        """Sends a message to the module."""
        self.peer.send(self.octets(words))

    def tries_to_send(self, words: str | bytes) -> None:
        """Sends a message that may end the connection."""
        with contextlib.suppress(OSError, RuntimeError):
            self.sends(words)

    def receives(self, words: str | bytes) -> None:
        """Checks the next message of the module."""
        same("the peer received", self.octets(words), script.next_message())

    def closed(self) -> None:
        """Checks that the peer sees the end of the connection."""
        same("the peer received", CLOSED, self.peer.receive(10000))

    def only_that_ended(self) -> None:
        """Checks that the connection of the module with itself still works."""
        control(HOME, "call", f"connection {self.bystander} null")
        same_info(self.bystander, generation=1)


def segment_of(memory: Memory, length: int, key: int | None = None) -> str:
    return segment(memory.key if key is None else key, length, memory.address)


class Requester(Link):
    """The peer as client, and the module as server."""

    def __init__(self) -> None:
        super().__init__()
        # How many malformed headers the peer has sent on this connection.
        self.malformed = 0

    def connects(self, port: int, private: bytes = b"") -> None:
        self.peer.connect(self.client_netns, self.server, port, private)
        self.id = module.newest("server")
        wait_for(10, is_state, self.id, "established")

    def leaves(self) -> None:
        self.peer.close()
        wait_for(10, is_gone, self.id)

    def answered(self, words: str | bytes, answer: str) -> None:
        """Sends a message, and checks the answer. With NOTHING, checks that the module answers only
        the next call."""
        self.xid += 1
        self.sends(words)
        if answer != NOTHING:
            self.receives(answer)
        else:
            self.answers_next()

    def answers_next(self) -> None:
        self.xid += 1
        self.sends(CALL[1] + CALL_NULL)
        self.receives(REPLY[1] + SUCCESS)

    def refused(self, words: str | bytes, answer: str) -> None:
        """Sends a malformed header, counts it, and checks the answer."""
        self.malformed += 1
        self.answered(words, answer)

    def offers_call(self) -> Memory:
        """Returns memory with an ECHO of DATA, for a Read chunk."""
        memory = self.peer.register(LONG_CALL, REMOTE_READ)
        memory.fill(self.octets(f"{CALL_ECHO} {SIZE}") + DATA)
        return memory

    def chunks_among_others(self) -> None:
        """Sends as many calls at once as are granted, one of them with chunks. The replies may
        arrive in any order."""
        self.xid += 1
        call = self.offers_call()
        reply = self.peer.register(len(UNTOUCHED), REMOTE_WRITE)
        calls = [self.octets(f"X 1 32 1  1 0 {segment_of(call, LONG_CALL)} 0  0  "
                             f"1 1 {segment_of(reply, len(UNTOUCHED))}")]
        replies = [self.octets(f"X 1 {GRANTS} 1  0  0  1 1 {segment_of(reply, LONG_REPLY)}")]
        while len(calls) < GRANTS:
            self.xid += 1
            calls.append(self.octets(CALL[1] + CALL_NULL))
            replies.append(self.octets(REPLY[1] + SUCCESS))
        self.peer.send(*calls)
        found = [script.next_message() for _ in calls]
        for number, words in enumerate(replies):
            same(f"reply {number} arrives", True, words in found)

    def others_first(self) -> None:
        """Checks that a call that waits for chunks does not delay the call behind it."""
        self.xid += 1
        size = 1 << 19
        call = self.peer.register(44 + size, REMOTE_READ)
        call.fill(self.octets(f"{CALL_ECHO} {size}"))
        reply = self.peer.register(28 + size, REMOTE_WRITE)
        calls = [self.octets(f"X 1 32 1  1 0 {segment_of(call, 44 + size)} 0  0  "
                             f"1 1 {segment_of(reply, 28 + size)}")]
        replies = [self.octets(f"X 1 {GRANTS} 1  0  0  1 1 {segment_of(reply, 28 + size)}")]
        self.xid += 1
        calls.append(self.octets(CALL[1] + CALL_NULL))
        replies.insert(0, self.octets(REPLY[1] + SUCCESS))
        self.peer.send(*calls)
        for number, words in enumerate(replies):
            same(f"reply {number}", words, self.peer.receive(20000))

    def reads_nothing(self) -> None:
        """Checks that a Long Call is refused if the peer has a read depth of zero, so that the
        module cannot read the call (RFC 8166, section 4.5.3). The module can still write the
        reply."""
        self.peer.reads = 0
        try:
            self.connects(BOTH, PRIVATE_1024)
        finally:
            self.peer.reads = MAX_READS
        for version, direction in (1, ""), (2, "0"):
            memory = self.offers_call()
            self.answered(f"X {version} 32 1 {direction}  1 0 {segment_of(memory, LONG_CALL)} 0"
                          "  0  0", MALFORMED[version])
        words = f"1100 {' '.join(map(str, range(1, 276)))}"
        self.xid += 1
        reply = self.peer.register(2000, REMOTE_WRITE)
        self.sends(f"X 1 32 0  0  0  1 1 {segment_of(reply, 2000)}  {CALL_ECHO} {words}")
        self.receives(f"X 1 {GRANTS} 1  0  0  1 1 {segment_of(reply, 1128)}")
        same("the Reply chunk has", self.octets(f"{SUCCESS} {words}"), reply.octets(1128))
        self.answers_next()
        same_info(self.id, state="established", generation=1)
        self.leaves()

    def reduced_long_call(self) -> None:
        """Sends Long Calls with another Read chunk (RFC 8166, section 3.5.3). Nothing in ECHO is
        DDP-eligible. The module cannot know what is in another program (section 6.1)."""
        for call, answer in (
            (f"{CALL_ECHO} 0", ERR_CHUNK),
            (f"X 0 2  0x12345678 4 1  {AUTH}", f"{REPLY[1]} X 1 0  0 0  1"),
        ):
            self.xid += 1
            content = self.octets(call)
            memory = self.peer.register(len(content), REMOTE_READ)
            memory.fill(content)
            self.sends(f"X 1 32 1  1 40 {segment_of(memory, 4)} "
                       f"1 0 {segment_of(memory, len(content))} 0  0  0")
            self.receives(answer)

    # About: a connection that may end.

    def at_once(self) -> None:
        """Sends more calls at once than are granted. The connection may end (RFC 8166, section
        3.3.1), except if the module posts Receives fast enough."""
        self.connects(BOTH, PRIVATE_1024)
        xids = range(self.xid + 1, self.xid + 21)
        self.xid = xids[-1]
        with contextlib.suppress(OSError, RuntimeError):
            self.peer.send(*(octets(f"{CALL[1]} {CALL_NULL}", xid) for xid in xids))
        for number, xid in enumerate(xids):
            found = self.peer.receive(5000)
            if found == CLOSED:
                self.leaves()
                return self.only_that_ended()
            if not same(f"reply {number}", octets(f"{REPLY[1]} {SUCCESS}", xid), found):
                return None
        self.answers_next()
        self.leaves()


class Responder(Link):
    """The peer as server, and the module as client."""

    def listens_at(self, port: int) -> None:
        self.peer.listen(self.server_netns, self.server, port)

    def module_connects(self, port: int, words: str) -> None:
        line = f"{self.server}:{port} credits={REQUESTS} {words}"
        with Command(self.client_netns, "connect", line):
            self.peer.accept(PRIVATE)
        self.id = module.newest("client")

    def module_leaves(self) -> None:
        script.close_to_peer(self.id)

    def gone(self) -> None:
        wait_for(10, is_gone, self.id)

    def speaks(self, version: int) -> None:
        """Chooses the version. Sets `asks` to the header of the module's calls, `replies` to that
        of the peer's replies, and `long` to the first words of the header of a Long Reply."""
        self.version = version
        if version == 1:
            self.asks = f"X 1 {REQUESTS} 0    0 0 0 "
            self.replies = f"X 1 {PEERS} 0    0 0 0 "
            self.long = f"X 1 {PEERS} 1  "
        else:
            self.asks = f"X 2 {REQUESTS} 0 0  0 0 0 "
            self.replies = f"X 2 {PEERS} 0 1  0 0 0 "
            self.long = f"X 2 {PEERS} 1 1"

    def message_arrives(self) -> bytes:
        """Returns the next message of the module. X is its XID from now on."""
        message = script.next_message()
        if not isinstance(message, bytes) or len(message) < 28:
            raise Failed(f"instead of a message: {message}")
        self.xid = split(message)[0]
        return message

    def asked(self, words: str) -> None:
        """Checks the next message of the module."""
        message = self.message_arrives()
        same("the module sent", self.octets(words), message)

    def asked_null(self) -> None:
        self.asked(self.asks + CALL_NULL)

    def asked_echo(self, length: int) -> bytes:
        """Checks that the next message is a call of ECHO. Returns its argument."""
        message = self.message_arrives()
        call = self.octets(f"{self.asks} {CALL_ECHO} {length}")
        same("the module sent", call, message[:len(call)])
        arguments = message[len(call):]
        same("octets of the argument", length, len(arguments))
        return arguments

    def sends_success(self) -> None:
        self.sends(self.replies + SUCCESS)

    def sends_echo(self, arguments: bytes) -> None:
        self.sends(self.octets(f"{self.replies} {SUCCESS} {len(arguments)}") + arguments)

    def calling(self, words: str = "null", outcome: str = module.DONE) -> Command:
        """Makes the module call, for the time of a `with`."""
        return Command(HOME, "call", f"connection {self.id} {words}", outcome)

    def null_is(self, status: str, version: int) -> None:
        """Checks the result of the module's NULL call in `info`."""
        same_info(self.id, 10, rpc_null=status, rpc_version_used=version)

    @contextlib.contextmanager
    def counted(self, counter: str, count: int = 1, seconds: float = 10) -> Iterator[None]:
        """Checks that a counter of the connection rises by `count`, within `seconds`."""
        before = int(info(self.id)[counter])
        yield
        same_info(self.id, seconds, **{counter: before + count})

    def outlives(self, counter: str, *messages: str | bytes) -> None:
        """Sends messages before the reply to a call. Checks that the call succeeds, and that
        `counter` counts the messages."""
        with self.counted(counter, len(messages), 0):
            self.ends(module.DONE, *messages, self.replies + SUCCESS)

    def ends(self, outcome: str, *messages: str | bytes) -> None:
        """Answers a call of the module by these messages, and checks the outcome of the call."""
        with self.calling("null", outcome):
            self.asked_null()
            for message in messages:
                self.sends(message)

    def first_call(self) -> None:
        """Checks that the module makes no second call before the first one is answered (RFC 8166,
        section 3.3.3)."""
        self.asked_null()
        first = self.xid
        with self.calling():
            same("before a reply, the module sent", NOTHING, self.peer.receive(300))
            self.sends_success()
            self.null_is("SUCCESS", self.version)
            self.asked_null()
            if self.xid == first:
                fail(f"both calls have the XID {first:08x}")
            self.sends_success()
        same_info(self.id, credits_granted=PEERS)

    def first_call_answered(self) -> None:
        self.asked_null()
        self.answers_null(self.version)

    def granting(self, credits: int) -> str:
        return self.replies.replace(f" {PEERS} ", f" {credits} ")

    def no_credits(self) -> None:
        """Grants no credits, which is not allowed. Checks that this counts as one credit (RFC 8166,
        section 3.3.1)."""
        self.ends(module.DONE, self.granting(0) + SUCCESS)
        self.outlives("bad_headers")

    def within_credits(self) -> None:
        """Grants two credits. Checks that at most two calls are under way, and answers the latest
        call first."""
        reply = self.granting(2) + SUCCESS
        self.ends(module.DONE, reply)
        count = 0
        with self.calling("echo size=4 count=3"):
            while count < 3:
                messages = []
                while isinstance(message := self.peer.receive(200), bytes):
                    messages.insert(0, message)
                if not 1 <= len(messages) <= 2:
                    fail(f"{len(messages)} calls at once")
                    break
                count += len(messages)
                for message in messages:
                    self.xid = split(message)[0]
                    # Its last two words are the argument.
                    self.sends(self.octets(reply) + message[-8:])

    def discards_option(self) -> None:
        """Sends an option in the direction of a call. A client without `reverse=` discards it (RFC
        8167, section 6)."""
        self.outlives("unexpected_messages", f"Y 2 {PEERS} 5  0 7 0")

    def duplicate(self) -> None:
        """Sends a reply twice."""
        self.outlives("bad_headers")
        self.late_reply()

    def late(self) -> None:
        """Sends a reply after the module has given the call up."""
        self.ends("ETIMEDOUT")
        self.late_reply()

    def late_reply(self) -> None:
        with self.counted("unexpected_messages"):
            self.sends_success()

    def not_late(self) -> None:
        """Sends a call that has the XID of a call of the module. Checks that this is no reply: the
        module's call keeps its credit."""
        self.ends(module.DONE, self.granting(1) + SUCCESS)
        self.ends("ETIMEDOUT")
        with self.counted("unexpected_messages"):
            self.sends(self.asks + CALL_NULL)
        with self.calling("null", "EBUSY"):
            pass
        self.late_reply()
        self.ends(module.DONE, self.replies + SUCCESS)

    def echo_inline(self, outcome: str, others: bytes = b"") -> None:
        """Answers an ECHO by its argument, or by `others`."""
        with self.calling("echo size=20 chunks=0", outcome):
            arguments = self.asked_echo(20)
            self.sends_echo(others or arguments)

    # About: chunks.

    def asked_by_chunks(self) -> None:
        """Checks that the next message is a call by chunks. Sets `call` and `reply` to the segments
        of its Read chunk and its Reply chunk, which are memory of the module."""
        message = self.message_arrives()
        words, direction = split(message), ""
        if self.version == 2:
            direction = "0"
            words = words[:4] + words[5:]
        if len(words) < 18:
            raise Failed(f"the module sent {len(words)} words")
        self.call, self.reply = Chunk(words[6:10]), Chunk(words[14:18])
        same("the module sent",
             self.octets(f"X {self.version} {REQUESTS} 1 {direction}  1 0 {self.call} 0  0  "
                         f"1 1 {self.reply}"), message)
        same("the length of the call", LONG_CALL, self.call.length)
        if self.reply.length < LONG_REPLY:
            same("the length of the Reply chunk", f"{LONG_REPLY} or more", self.reply.length)

    def reads_call(self, length: int) -> bytes:
        return self.peer.read(self.call.key, self.call.address, length)

    def echo_by_chunks(self, invalidates: bool) -> None:
        with self.calling(f"echo size={SIZE} chunks=1"):
            self.asked_by_chunks()
            call = self.reads_call(self.call.length)
            head = self.octets(f"{CALL_ECHO} {SIZE}")
            same("the call", head, call[:len(head)])
            self.peer.write(self.reply.key, self.reply.address,
                            self.octets(f"{SUCCESS} {SIZE}") + call[len(head):])
            message = self.octets(f"{self.long}  0  0  1 1 {self.reply.of_length(LONG_REPLY)}")
            if invalidates:
                self.peer.send_invalidate(self.reply.key, message)
            else:
                self.peer.send(message)

    def by_chunks(self, invalidates: bool) -> None:
        with self.counted("chunked_calls", 1, 0), \
                self.counted("remote_invalidations_received", int(invalidates), 0):
            self.echo_by_chunks(invalidates)

    def another_chunk(self) -> None:
        """Returns a Reply chunk that differs from the offered one: longer, with another key, of two
        segments, or of none."""
        for count, *segments in (
            (1, ("H", LONG_REPLY + 4)), (1, (0x12345678, 40)), (2, ("H", 40), (0x12345678, 40)),
            (0,),
        ):
            with self.calling(f"echo size={SIZE} chunks=1", "EPROTO"):
                self.asked_by_chunks()
                words = [segment(self.reply.key if key == "H" else key, length, self.reply.address)
                         for key, length in segments]
                self.sends(f"{self.long}  0  0  1 {count} {' '.join(words)}")

    def first_is_short(self) -> None:
        """Checks that a first call of 1100 octets is sent by chunks, and the second one inline. A
        responder need not take larger messages before its first reply (RFC 8166, section 3.3.3;
        the draft, section 5)."""
        direction = "" if self.version == 1 else "0"
        self.module_connects(OF_PEER, f"rpcvers={self.version} null=0")
        with self.calling("echo size=1100 count=2 chunks=0"):
            message = self.message_arrives()
            words = split(message)
            if direction:
                words = words[:4] + words[5:]
            call = Chunk(words[6:10])
            same("the module sent",
                 self.octets(f"X {self.version} {REQUESTS} 1 {direction} 1 0 "
                             f"{call.of_length(0x478)} 0 0 0"), message)
            head = self.octets(f"{CALL_ECHO} 1100")
            found = self.peer.read(call.key, call.address, 1144)
            same("the call", head, found[:len(head)])
            self.sends_echo(found[len(head):])
            self.sends_echo(self.asked_echo(1100))
        self.module_leaves()

    def memory_is_gone(self) -> None:
        """Checks that the peer cannot read the memory of a call that is over (RFC 8166, section
        4.4.1)."""
        try:
            found = self.reads_call(8)
        except (OSError, RuntimeError):
            return
        fail(f"the peer still reads {found.hex()}")

    def unanswered_chunks(self) -> None:
        """Does not answer a call by chunks. Checks that the peer loses access to its memory."""
        with self.calling(f"echo size={SIZE} chunks=1", "ETIMEDOUT"):
            self.asked_by_chunks()
            self.reads_call(8)
        self.memory_is_gone()

    # About: connections that end.

    def loses(self, function: Callable[..., None], *arguments: object) -> None:
        """Checks that `function` ends a connection, and that no other connection ends."""
        self.module_connects(OF_PEER, "rpcvers=1 null=0")
        self.speaks(1)
        with self.calling("null", "ECONNRESET"):
            self.asked_null()
            function(*arguments)
        if self.peer.id:
            self.peer.close()
        self.gone()
        self.only_that_ended()

    def invalidates_nothing(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self.peer.send_invalidate(0x12345678, b"\0")

    # About: the choice of the version (the draft, section 5).

    def first_null(self, port: int, words: str, version: int) -> None:
        """Makes the module connect, and checks that its NULL call has that version."""
        self.module_connects(port, words)
        self.speaks(version)
        self.asked_null()

    def answers_null(self, version: int) -> None:
        self.sends_success()
        self.null_is("SUCCESS", version)

    def falls_back(self, port: int, message: str) -> None:
        """Answers the call in version 2 by `message`, and the next call in version 1 by success."""
        self.listens_at(port)
        self.first_null(port, "rpcvers=auto", 2)
        self.sends(message)
        self.speaks(1)
        self.asked_null()
        self.answers_null(1)
        same_info(self.id, generation=1)
        self.module_leaves()

    def connects_anew(self, port: int, dropped: bool) -> None:
        """Does not answer the call in version 2. With `dropped`, the module ends the connection
        after its timeout; otherwise the peer does. Checks that the module connects again for
        version 1, and remembers that version."""
        self.listens_at(port)
        self.first_null(port, "rpcvers=auto timeout_ms=2000", 2)
        if dropped:
            self.closed()
        self.peer.close()
        self.peer.accept(PRIVATE)
        self.speaks(1)
        self.asked_null()
        self.answers_null(1)
        self.module_leaves()
        self.first_null(port, "rpcvers=auto", 1)
        self.answers_null(1)
        self.module_leaves()

    def has_no_version(self, port: int, words: str, version: int, message: str) -> None:
        """Answers NULL by `message`, and checks that the call fails."""
        self.listens_at(port)
        self.first_null(port, words, version)
        self.sends(message)
        wait_for(10, self.null_failed)
        same_info(self.id, rpc_version_used="none")
        self.module_leaves()

    def refuses_each(self, port: int) -> None:
        """Answers version 2 by an ERR_VERS that names version 1, and then refuses version 1."""
        self.listens_at(port)
        self.first_null(port, "rpcvers=auto", 2)
        self.sends(f"X 2 {PEERS} 4  1 1 1")
        self.speaks(1)
        self.asked_null()
        self.sends(f"X 1 {PEERS} 4  1 1 1")
        wait_for(10, self.null_failed)
        self.module_leaves()

    def null_failed(self) -> bool:
        return info(self.id).get("rpc_null", "pending") not in ("pending", "SUCCESS")

    def another_program(self) -> None:
        """Checks that NULL has the program and the version that `connect` names."""
        self.module_connects(OF_PEER, "rpcvers=1 program=305419896 version=9")
        self.speaks(1)
        self.asked(f"{self.asks}  X 0 2  0x12345678 9 0  {AUTH}")
        self.answers_null(1)
        self.module_leaves()

    def no_null(self) -> None:
        self.module_connects(OF_PEER, "rpcvers=1 null=0")
        same("the module sent", NOTHING, self.peer.receive(500))
        self.module_leaves()


class Chunk:
    """A segment that the module offers."""

    def __init__(self, words: list[int]) -> None:
        self.key, self.length = words[:2]
        self.address = words[2] << 32 | words[3]

    def of_length(self, length: int) -> str:
        return segment(self.key, length, self.address)

    def __str__(self) -> str:
        return self.of_length(self.length)


requester, responder = Requester(), Responder()

# -----------------------------------------------------------------------------


def connect_bystander() -> None:
    control(script.pair.a.path, "connect", f"{script.pair.b.ip4}:{BOTH}")
    Link.bystander = module.newest("client")
    wait_for(10, is_state, module.newest("server"), "established")


def set_up() -> None:
    script.set_up()
    for name, port, words in (
        ("the module listens, for both versions", BOTH, "recv=4096 inv=1"),
        ("the module listens, for version 1", ONLY_1, "rpcvers=1"),
        ("the module listens, for version 2", ONLY_2, "rpcvers=2"),
    ):
        need(name, script.listen, port, f"{words} credits={GRANTS}")
    need("the peer listens for the module's calls", responder.listens_at, OF_PEER)
    need("the peer has 32 Receives", lambda: script.peer.receives(32, 4096))
    need("a connection of the module with itself", connect_bystander)


def module_as_server() -> None:
    answered, refused = requester.answered, requester.refused
    need("the peer connects as client", requester.connects, BOTH)
    check("an ECHO of no octets is answered", answered, f"{CALL[1]} {CALL_ECHO} 0",
          f"{REPLY[1]} {SUCCESS} 0")
    check("NULL of version 3 of NFS is answered", answered,
          f"{CALL[1]} X 0 2  100003 3 0  {AUTH}", f"{REPLY[1]} {SUCCESS}")
    for name, head, status in (
        ("credentials that are too long get AUTH_BADCRED", "1 401 0 0", "1 1"),
        ("a verifier that is too long gets AUTH_BADVERF", "0 0  1 401 0", "1 3"),
    ):
        check(name, answered, f"{CALL[1]} X 0 2  100003 4 0  {head}", f"{REPLY[1]} X 1 1  {status}")

    # tools/conformance has all forms of malformed and of unexpected messages.
    check("27 octets are dropped and counted", refused,
          bytes.fromhex("700000010000000100000020000000000000000000000000000000"), NOTHING)
    check("RDMA_DONE is dropped and counted", refused, "X 1 32 3  0 0 0", NOTHING)
    check("ERR_VERS is counted", refused, f"X 3 32 0  0 0 0  {CALL_NULL}",
          f"X 3 {GRANTS} 4  1 1 2")
    for version, direction in (1, ""), (2, "0"):
        check(f"a malformed header is refused and counted, version {version}", refused,
              f"X {version} 32 1 {direction}  0 0 0", MALFORMED[version])
    check("a malformed reply is dropped and counted", refused, "X 2 32 0 1  2 0 0", NOTHING)
    check("each malformed header was counted",
          lambda: same_info(requester.id, bad_headers=requester.malformed))

    # The module cannot know whether another program has DDP-eligible data (RFC 8166, section
    # 6.1).
    for number in 1, 2:
        check(f"a Read chunk of another program gets PROG_UNAVAIL, version {number}", answered,
              CALL[number].replace("0 0 0 ", "1 40 1 4 0 0  0 0 0 ")
              + f"X 0 2  0x12345678 4 1  {AUTH}", f"{REPLY[number]} X 1 0  0 0  1")
    check("no message so far was unexpected",
          lambda: same_info(requester.id, unexpected_messages=0))
    check("an unexpected reply is dropped", answered, f"X 1 32 0  0 0 0  {SUCCESS}", NOTHING)
    check("an unexpected ERR_CHUNK is dropped", answered, "X 1 32 4  2", NOTHING)
    check("a message that is neither a call nor a reply is dropped", answered,
          "X 1 32 0  0 0 0  X 2", NOTHING)
    check("the server's end makes no calls", makes_no_calls)
    check("exactly the three dropped messages were unexpected",
          lambda: same_info(requester.id, unexpected_messages=3, bad_headers=requester.malformed,
                            credits_granted=GRANTS, sends_with_invalidate=0, generation=1))
    check("the peer disconnects after the malformed messages", requester.leaves)

    need("the peer connects to rpcvers=1", requester.connects, ONLY_1)
    check("version 1 is answered with rpcvers=1", answered,
          f"{CALL[1]} {CALL_NULL}", f"{REPLY[1]} {SUCCESS}")
    check("ERR_VERS answers version 2 with rpcvers=1", answered,
          f"{CALL[2]} {CALL_NULL}", f"X 2 {GRANTS} 4  1 1 1")
    check("the peer disconnects from rpcvers=1", requester.leaves)
    need("the peer connects to rpcvers=2", requester.connects, ONLY_2)
    check("version 2 is answered with rpcvers=2", answered,
          f"{CALL[2]} {CALL_NULL}", f"{REPLY[2]} {SUCCESS}")
    check("ERR_VERS answers version 1 with rpcvers=2", answered,
          f"{CALL[1]} {CALL_NULL}", f"X 1 {GRANTS} 4  1 2 2")
    check("the peer disconnects from rpcvers=2", requester.leaves)

    need("the peer connects, and allows remote invalidation", requester.connects, BOTH,
         PRIVATE_1024)
    check("a call by chunks among others is answered", requester.chunks_among_others)
    check("a call behind one that waits for chunks is answered first", requester.others_first)
    check("a Long Call with another Read chunk gets PROG_UNAVAIL", requester.reduced_long_call)
    check("the peer that allowed remote invalidation disconnects", requester.leaves)
    check("a Long Call of a peer that serves no RDMA Reads is refused", requester.reads_nothing)
    check("more calls than are granted end at most their connection", requester.at_once)


def makes_no_calls() -> None:
    found = module.write(HOME, "call", f"connection {requester.id} null\n".encode())
    if found == module.DONE:
        fail("the call succeeded")


# Name, outcome of the call, reply. {replies} is the header of a valid reply.
ENDS = [
    ("an error of the header", "EPROTO", "X {version} {peers} 4  2"),
    ("ERR_VERS of other versions", "EPROTONOSUPPORT", "X {version} {peers} 4  1 3 4"),
    ("PROG_UNAVAIL", "ENOTSUP", "{replies} X 1 0  0 0  1"),
    ("PROG_MISMATCH", "ENOTSUP", "{replies} X 1 0  0 0  2 1 1"),
    ("PROG_MISMATCH with the longest verifier", "ENOTSUP",
     "{replies} X 1 0  6 400 " + "0 " * 100 + " 2 1 1"),
    ("PROC_UNAVAIL", "ENOTSUP", "{replies} X 1 0  0 0  3"),
    ("GARBAGE_ARGS", "EINVAL", "{replies} X 1 0  0 0  4"),
    ("SYSTEM_ERR", "EREMOTEIO", "{replies} X 1 0  0 0  5"),
    ("RPC_MISMATCH", "ENOTSUP", "{replies} X 1 1  0 3 3"),
    ("AUTH_ERROR", "EACCES", "{replies} X 1 1  1 5"),
    ("a truncated reply", "EPROTO", "{replies} X 1 0"),
    ("a reply to NULL with results", "EBADMSG", "{replies} " + SUCCESS + " 1"),
    ("a reply in a chunk that was not offered", "EPROTO",
     "{long} 0  0  1 1 0x1234 24 0 0x1000"),
]


def module_as_client(version: int) -> None:
    client = Responder()
    client.speaks(version)
    replies = client.replies
    without_chunks = replies.rstrip().removesuffix("0 0 0")
    other = f"{replies} {SUCCESS}".replace("X", "Y")

    def check_too(name: str, function: Callable[..., object], *arguments: object) -> None:
        check(f"{name}, version {version}", function, *arguments)

    def connected(name: str, words: str) -> None:
        need(f"{name}, version {version}", client.module_connects, OF_PEER,
             f"rpcvers={version} {words}")

    def closed(name: str) -> None:
        check_too(f"the peer closes {name}", lambda: script.peer.close())
        check_too(f"the connection is gone {name}", client.gone)

    connected("the module connects with inv=1", "inv=1")
    check_too("no second call is made before the first reply", client.first_call)
    check_too("a call of the client succeeds", client.outlives, "bad_headers")
    check_too("a grant of no credits counts as one", client.no_credits)
    # In version 2 tools/conformance shows that the client discards the same messages.
    if version == 1:
        check_too("a reply to another call is dropped", client.outlives, "unexpected_messages",
                  other)
        check_too("a duplicate reply is dropped", client.duplicate)
        check_too("a call before the reply is dropped", client.outlives, "unexpected_messages",
                  f"{client.asks} {CALL_NULL}".replace("X", "Y"))
        check_too("errors that answer no call are dropped", client.outlives, "unexpected_messages",
                  f"Y {version} {PEERS} 4  2", f"Y {version} {PEERS} 4  1 1 1",
                  f"Y 3 {PEERS} 4  1 1 1")
        check_too("replies that are too short are dropped", client.outlives, "bad_headers",
                  b"", b"\0", "X 1 9 0",
                  bytes.fromhex("7000000100000001000000090000000000000000000000000000"))
        check_too("malformed replies are dropped", client.outlives, "bad_headers",
                  f"X {version} {PEERS} 99  0 0 0 0", f"X {version} {PEERS} 3  0 0 0 0", replies,
                  f"{replies} {SUCCESS.replace('X', 'Y')}", f"{without_chunks} 2 0 0 {SUCCESS}",
                  f"{without_chunks} 0 1 0x10000000 0 {SUCCESS}",
                  f"{without_chunks} 0 0 1 9 {SUCCESS}",
                  f"X {version} {PEERS} 4  9 0 0 0", f"X 9 {PEERS} 0 0  0 0 0  {SUCCESS}")
    else:
        check_too("an option in the direction of a call is dropped", client.discards_option)
    # The status of RPC does not depend on the version.
    for name, outcome, reply in ENDS if version == 1 else ENDS[:2] + ENDS[-1:]:
        check_too(f"{name}: the call fails with {outcome}", client.ends, outcome,
                  reply.format(version=version, peers=PEERS, replies=replies, long=client.long))
    check_too("no more calls are under way than the peer grants", client.within_credits)
    check_too("ECHO of the client succeeds", client.echo_inline, module.DONE)
    check_too("ECHO of other octets fails with EBADMSG", client.echo_inline, "EBADMSG", bytes(20))
    check_too("a Long Call and a Long Reply of the client", client.by_chunks, False)
    check_too("a Long Call and a Long Reply, with remote invalidation", client.by_chunks, True)
    check_too("a Reply chunk that was not offered fails with EPROTO", client.another_chunk)
    check_too("a call after malformed chunks succeeds", client.outlives, "bad_headers")
    check_too("the memory of a call that is over is gone", client.memory_is_gone)
    closed("after the calls")

    check_too("a first call of 1100 octets is sent by chunks", client.first_is_short)
    connected("the module connects again", "timeout_ms=1500")
    check_too("the first call after connecting again succeeds", client.first_call_answered)
    check_too("a late reply is dropped", client.late)
    check_too("a call with the XID of a lost call gives back no credit", client.not_late)
    check_too("the memory of a Long Call without a reply is gone", client.unanswered_chunks)
    closed("after the late replies")


def connections_of_client() -> None:
    check("NULL has the program that connect names", responder.another_program)
    check("null=0 makes no call", responder.no_null)

    check("a call fails when the peer disconnects", responder.loses,
          lambda: script.peer.close())
    check("a Send to the client that is longer than a Receive ends its connection",
          responder.loses,
          responder.tries_to_send, bytes(5000))
    check("a Send that invalidates an unknown key ends its connection", responder.loses,
          responder.invalidates_nothing)

    for name, port, version in (("ERR_VERS in version 2", 2011, 2),
                                ("ERR_VERS in version 1", 2012, 1)):
        check(f"{name}: the client falls back to version 1", responder.falls_back, port,
              f"X {version} {PEERS} 4  1 1 1")
    for name, port, words, version, message in (
        ("ERR_VERS of versions 3 to 4", 2013, "rpcvers=auto", 2, f"X 2 {PEERS} 4  1 3 4"),
        ("ERR_VERS of versions 2 to 3", 2014, "rpcvers=auto", 2, f"X 2 {PEERS} 4  1 2 3"),
        ("ERR_VERS of no version", 2015, "rpcvers=auto", 2, f"X 2 {PEERS} 4  1 2 1"),
        ("ERR_VERS to rpcvers=2", 2016, "rpcvers=2", 2, f"X 2 {PEERS} 4  1 1 1"),
        ("ERR_VERS to rpcvers=1", 2017, "rpcvers=1", 1, f"X 1 {PEERS} 4  1 2 2"),
        ("BAD_HEADER to the first call", 2018, "rpcvers=auto", 2, f"X 2 {PEERS} 4  2"),
    ):
        check(f"{name}: the first call fails", responder.has_no_version, port, words, version,
              message)
    check("ERR_VERS to each version: the first call fails", responder.refuses_each, 2019)
    check("no reply in version 2: the client connects again in version 1",
          responder.connects_anew, 2021, True)
    check("a disconnect after version 2: the client connects again in version 1",
          responder.connects_anew, 2022, False)


def finish() -> None:
    check("the connection of the module with itself is as it was",
          lambda: same_info(Link.bystander, state="established", generation=1, bad_headers=0,
                            unexpected_messages=0))
    check("every connection and listener is closed", control, HOME, "close", "all")
    script.check_none_left()


set_up()
module_as_server()
for number in 1, 2:
    module_as_client(number)
connections_of_client()
finish()
script.run()
