#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Calls of the module, many under way at a time, and their outcomes. A peer in user space answers
them in any order, or not at all. Each check of a rule names its section: of RFC 8166 if it names no
other document. FULL=1 adds 2100 clients on the stock kernel."""

# test: stock.rxe
# soak: debug.rxe debug.siw

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

from lib import module
from lib.hosts import HOME
from lib.ktap import Skip, fail, same, wait_for
from lib.messages import (
    ERR_CHUNK, ERR_INVALID_OPTION, ERR_VERS, GARBAGE_ARGS, PROG_MISMATCH, RDMA_MSG, RDMA_NOMSG,
    REPLY, SYSTEM_ERR, Segment, accepted, error, header, offer, proc_unavail, prog_mismatch,
    prog_unavail, rpc_call, split, success, words, write_chunk,
)
from lib.module import DONE, Command, control, info, last_error, same_info
from lib.peer import NOTHING
from lib.script import Script

# Ports of the peer, and of the module.
PORT, SILENT = 2001, 2002
# Credits that the module requests.
CREDITS = 64
PRIVATE = offer(4096, 4096)
# The length of the transport header and of the head of an RPC call, before the arguments.
HEAD = 28 + 40
# Reasons of reject_stat (RFC 5531, section 9).
RPC_MISMATCH, AUTH_ERROR = 0, 1

script = Script()
check, need = script.check, script.need


def reply(xid: int, credits: int, rpc: bytes = b"", **chunks: object) -> bytes:
    """Returns a reply in version 1: SUCCESS, if nothing else is given."""
    return header(xid, RDMA_MSG, credits=credits, **chunks) + (rpc or success(xid))


def rejected(xid: int, reason: int, *more: int) -> bytes:
    """Returns a rejected reply (RFC 5531, section 9)."""
    return words(xid, REPLY, 1, reason, *more)


def echo(message: bytes, credits: int = CREDITS) -> bytes:
    """Returns the reply to a call of ECHO."""
    return reply(split(message)[0], credits) + message[HEAD:]


# Name, outcome of a call, and the message that ends it, by its XID and version.
ENDS = (
    ("ERR_VERS of other versions (4.5.1)", "EPROTONOSUPPORT",
     lambda xid, version: error(xid, ERR_VERS, 3, 4, credits=CREDITS, version=version)),
    ("an error of the header (4.5)", "EPROTO",
     lambda xid, version: error(xid, ERR_CHUNK, credits=CREDITS, version=version)),
    ("a reply in memory that was not offered (4.3.3)", "EPROTO",
     lambda xid, version: header(xid, RDMA_NOMSG, credits=CREDITS, version=version,
                                 direction=REPLY,
                                 reply=write_chunk([Segment(0x1234, 24, 0x1000)]))),
)
# The same for RPC, whose messages do not depend on the version.
STATUSES = (
    ("PROG_UNAVAIL", "ENOTSUP", prog_unavail),
    ("PROG_MISMATCH", "ENOTSUP", lambda xid: prog_mismatch(xid, 1, 1)),
    ("PROG_MISMATCH with the longest verifier", "ENOTSUP",
     lambda xid: accepted(xid, PROG_MISMATCH, words(1, 1), words(6, 400) + bytes(400))),
    ("PROC_UNAVAIL", "ENOTSUP", proc_unavail),
    ("GARBAGE_ARGS", "EINVAL", lambda xid: accepted(xid, GARBAGE_ARGS)),
    ("SYSTEM_ERR", "EREMOTEIO", lambda xid: accepted(xid, SYSTEM_ERR)),
    ("RPC_MISMATCH", "ENOTSUP", lambda xid: rejected(xid, RPC_MISMATCH, 3, 3)),
    ("a truncated reply", "EPROTO", lambda xid: success(xid)[:12]),
    ("a reply to NULL with results", "EBADMSG", lambda xid: success(xid, words(1))),
)
# Chunk lists that no reply to a call without chunks may have.
READ_LIST = {"reads": [(0, Segment(1, 4, 0))]}
WRITE_LIST = {"writes": [write_chunk([Segment(1, 4, 0)])]}
REPLY_CHUNK = {"reply": write_chunk([Segment(1, 0, 0)])}


class Client:
    """The module as client, and the peer that answers it."""

    id = ""
    version = 1

    def connects(self, keys: str = "") -> None:
        self.id = script.connect_to_peer(
            PORT, f"credits={CREDITS} null=0 {keys} rpcvers={self.version}", PRIVATE)
        # The reply to the first call grants all credits that the module requests.
        self.granted(CREDITS)

    def leaves(self) -> None:
        script.close_to_peer(self.id)

    @contextlib.contextmanager
    def connected(self, keys: str = "") -> Iterator[None]:
        """Makes a connection for one check, because that check leaves credits taken."""
        self.connects(keys)
        yield
        self.leaves()

    def line(self, call: str) -> str:
        return f"connection {self.id} {call}"

    def calling(self, call: str, outcome: str = DONE) -> Command:
        return Command(HOME, "call", self.line(call), outcome)

    def granted(self, credits: int) -> None:
        """Answers a NULL call by a reply that grants that many credits."""
        self.ends(DONE, lambda xid, version: header(
            xid, RDMA_MSG, version=version, direction=REPLY, credits=credits) + success(xid))

    def ends(self, outcome: str, answer: Callable[[int, int], bytes]) -> None:
        """Answers a call by a message, and checks the outcome of the call."""
        with self.calling("null", outcome):
            script.peer.send(answer(script.xid(), self.version))

    def messages(self, count: int) -> list[bytes]:
        """Returns the next calls. Checks that their XIDs differ, and that no other call follows."""
        found = [script.message() for _ in range(count)]
        same("different XIDs", count, len({split(message)[0] for message in found}))
        same(f"after {count} calls, the module sent", NOTHING, script.peer.receive(300))
        return found

    def reported(self, **wanted: object) -> None:
        """Checks keys in the file `call`."""
        found = module.call_report()
        for key, value in wanted.items():
            same(key, str(value), found.get(key, "nothing"))

    # About: many calls.

    def in_reverse(self) -> None:
        """Answers 64 calls in reverse order. Checks that the 65th call waits for a reply."""
        with self.calling("echo size=100 count=65 jobs=64"):
            messages = self.messages(64)
            script.peer.send(*map(echo, reversed(messages)))
            script.peer.send(echo(script.message()))
        self.reported(calls=65, replies=65, failure="none", transport="RDMA_MSG", rpc="SUCCESS",
                      results_length=104)
        same("it took a time", True, int(module.call_report()["us"]) > 0)

    def fewer_granted(self) -> None:
        """Checks that of 8 jobs as many are under way as the last reply grants (section 3.3.1)."""
        self.granted(3)
        with self.calling("echo size=8 count=10 jobs=8"):
            messages = self.messages(3)
            # The reply to one of three calls grants 1 credit. Two calls are still under way. The next
            # replies grant 0 credits, which count as one.
            script.peer.send(echo(messages.pop(), 1))
            same("two of one credit, the module sent", NOTHING, script.peer.receive(300))
            script.peer.send(echo(messages.pop(), 0))
            same("one of one credit, the module sent", NOTHING, script.peer.receive(300))
            same_info(self.id, credits_granted=0)
            script.peer.send(echo(messages.pop(), 0))
            messages = self.messages(1)
            script.peer.send(echo(messages.pop(), 64))
            messages = self.messages(6)
            script.peer.send(*map(echo, messages))
        self.reported(calls=10, replies=10)

    def fewer_wanted(self) -> None:
        """Grants more credits than there are jobs."""
        with self.calling("null count=6 jobs=4"):
            messages = self.messages(4)
            script.peer.send(*(reply(split(message)[0], CREDITS) for message in messages))
            messages = self.messages(2)
            script.peer.send(*(reply(split(message)[0], CREDITS) for message in messages))
        self.reported(calls=6, replies=6, results_length=0)

    def one_fails(self) -> None:
        """Checks that no call is begun after a failure, and that the others get their replies."""
        with self.calling("null count=100 jobs=4", "ENOTSUP"):
            first, *others = self.messages(4)
            xid = split(first)[0]
            script.peer.send(reply(xid, CREDITS, prog_unavail(xid)))
            same("after a failure, the module sent", NOTHING, script.peer.receive(300))
            script.peer.send(*(reply(split(message)[0], CREDITS) for message in others))
        self.reported(calls=4, replies=3, xid=f"0x{xid:08x}", rpc="PROG_UNAVAIL",
                      failure="the responder answered: PROG_UNAVAIL")

    def given_up(self, call: str) -> list[int]:
        """Returns the words of a call that times out."""
        with self.calling(call, "ETIMEDOUT"):
            return split(script.message())

    def one_is_given_up(self) -> None:
        """Checks that a call that timed out keeps its credit until it is answered."""
        with self.connected("timeout_ms=4000"):
            self.granted(4)
            with self.calling("null count=4 jobs=4", "ETIMEDOUT"):
                late, *others = self.messages(4)
                script.peer.send(*(reply(split(message)[0], 4) for message in others))
            self.reported(calls=4, replies=3, transport="none", rpc="none",
                          failure="no reply in time", xid=f"0x{split(late)[0]:08x}")
            with self.calling("null count=4 jobs=4"):
                messages = self.messages(3)
                script.peer.send(reply(split(late)[0], 4))
                messages.append(script.message())
                script.peer.send(*(reply(split(message)[0], 4) for message in messages))

    def late_reply_grants(self) -> None:
        """Checks that even the reply to a call that timed out grants credits (section 3.3.1)."""
        with self.connected("timeout_ms=4000"):
            self.granted(4)
            script.peer.send(reply(self.given_up("null")[0], 2))
            wait_for(10, lambda: info(self.id)["credits_granted"] == "2")
            with self.calling("null count=3 jobs=3"):
                messages = self.messages(2)
                script.peer.send(reply(split(messages.pop())[0], 2))
                messages.append(script.message())
                script.peer.send(*(reply(split(message)[0], 2) for message in messages))

    def late_reply_is_faulty(self, call: str, answer: Callable[[int], bytes]) -> None:
        """Checks that only a valid reply to a call that timed out grants credits. The reply returns
        the call's credit all the same."""
        with self.connected("timeout_ms=4000"):
            self.granted(2)
            with self.one_unexpected():
                script.peer.send(answer(self.given_up(call)[0]))
            same_info(self.id, credits_granted=2)
            with self.calling("null count=2 jobs=2"):
                script.peer.send(*(reply(split(message)[0], 2) for message in self.messages(2)))

    def late_reply_withdraws(self) -> None:
        """Checks that a reply that can no longer be read takes credits back: the granted number is
        not to be exceeded (section 3.3.1)."""
        with self.connected("timeout_ms=4000"):
            self.granted(2)
            found = self.given_up("null chunks=1")
            script.peer.send(header(found[0], RDMA_NOMSG, credits=1,
                                  reply=write_chunk([Segment.at(found, 8)], 24)))
            wait_for(10, lambda: info(self.id)["credits_granted"] == "1")

    def next_is_not_sent(self) -> None:
        """Grants so few credits that the second call of a command cannot be sent. Checks that the
        file `call` does not show the values of the first one beside the failure."""
        with self.connected("timeout_ms=4000"):
            self.granted(2)
            late = self.given_up("null")[0]
            with self.calling("null count=2", "EBUSY"):
                script.peer.send(reply(script.xid(), 1))
            self.reported(calls=1, replies=1, rpc="nothing", xid="nothing",
                          failure="all credits are taken by calls without an answer")
            self.gives_back(late)

    def late_reply_comes_last(self) -> None:
        """Checks that the latest reply counts, not the one that is read last: the reply to a call
        that timed out follows at once those for which a caller waits."""
        with self.connected("timeout_ms=4000"):
            self.granted(4)
            late = self.given_up("null")[0]
            with self.calling("null"):
                script.peer.send(reply(script.xid(), 4), reply(late, 8))
            same_info(self.id, 10, credits_granted=8)

    def call_with_late_xid(self) -> None:
        """Sends a call that has the XID of a call that timed out. Checks that it is no reply: the
        module's call keeps its credit."""
        with self.connected("timeout_ms=4000"):
            self.granted(1)
            late = self.given_up("null")[0]
            with self.one_unexpected():
                script.peer.send(header(late, RDMA_MSG, credits=7) + rpc_call(late))
            with self.calling("null", "EBUSY"):
                pass
            self.gives_back(late)
            self.granted(CREDITS)

    def memory_is_gone(self) -> None:
        """Checks that the peer can read the memory of a call only until that times out (section
        4.4.1). The attempt ends the connection."""
        self.connects("timeout_ms=4000")
        with self.calling("echo size=4400 chunks=1", "ETIMEDOUT"):
            call = Segment.at(split(script.message()), 5 + self.version)
            script.peer.read(call.handle, call.offset, 8)
        with contextlib.suppress(OSError, RuntimeError):
            fail(f"the peer still reads {script.peer.read(call.handle, call.offset, 8).hex()}")
        script.close_by_peer(self.id)

    def all_are_given_up(self) -> None:
        """Ends the writer by a signal. Checks that its calls still hold all credits."""
        with self.connected():
            self.granted(2)
            line = self.line("null count=9 jobs=2")
            with subprocess.Popen(["sh", "-c", f"echo {line} >{module.DEBUGFS}/call"],
                                  stderr=subprocess.DEVNULL) as writer:
                messages = self.messages(2)
                writer.send_signal(signal.SIGTERM)
                same("the writer ended by", -signal.SIGTERM, writer.wait(10))
            with self.calling("null", "EBUSY"):
                pass
            self.reported(calls=0, replies=0,
                          failure="all credits are taken by calls without an answer")
            script.peer.send(*(reply(split(message)[0], 2) for message in messages))
            self.granted(2)

    def peer_closes(self) -> None:
        self.connects()
        with self.calling("echo size=2000 count=64 jobs=64", "ECONNRESET"):
            self.messages(64)
            script.close_by_peer(self.id)

    def closed_meanwhile(self) -> None:
        """Checks that `close` does not wait for replies."""
        self.connects("timeout_ms=600000")
        with self.calling("null count=64 jobs=64", "ECONNRESET"):
            self.messages(64)
            self.leaves()
        self.reported(calls=64, replies=0, failure="the connection was closed")

    # About: replies without results.

    def denied(self) -> None:
        """Checks that the file `call` shows the reason why RPC denied the call."""
        with self.calling("null", "EACCES"):
            xid = script.xid()
            script.peer.send(reply(xid, CREDITS, rejected(xid, AUTH_ERROR, 5)))
        self.reported(rpc="AUTH_ERROR 5", transport="RDMA_MSG", results_length=0)

    def no_chunk(self) -> None:
        """Checks that the file `call` shows the error of the transport."""
        with self.calling("null", "EPROTO"):
            script.peer.send(error(script.xid(), ERR_CHUNK, credits=CREDITS))
        self.reported(transport="ERR_CHUNK", rpc="none",
                      failure="the responder answered: ERR_CHUNK")

    # About: replies that no responder may send.

    @contextlib.contextmanager
    def one_unexpected(self, count: int = 1) -> Iterator[None]:
        """Checks that a message of the peer, or so many, count as unexpected."""
        before = int(info(self.id)["unexpected_messages"])
        yield
        same_info(self.id, 10, unexpected_messages=before + count)

    def faulty(self, chunks: dict[str, object], reason: str, transport: str) -> None:
        """Sends a reply with chunk lists that it must not have."""
        before = info(self.id)["credits_granted"]
        with self.calling("null", "EPROTO"):
            xid = script.xid()
            script.peer.send(reply(xid, 7, **chunks))
        self.reported(failure=reason, transport=transport, rpc="none")
        same_info(self.id, credits_granted=before)
        if transport == "none":
            self.gives_back(xid)

    def gives_back(self, xid: int) -> None:
        """Answers a call that was given up, so that it keeps no credit."""
        with self.one_unexpected():
            script.peer.send(reply(xid, CREDITS))

    def overtaken(self, chunks: dict[str, object]) -> None:
        """Sends such a reply in front of the valid one. Checks that it is discarded: the valid one
        completes the call."""
        with self.one_unexpected(), self.calling("null"):
            xid = script.xid()
            script.peer.send(reply(xid, 7, **chunks), reply(xid, CREDITS))
        self.reported(failure="none", transport="RDMA_MSG", rpc="SUCCESS")
        same_info(self.id, credits_granted=CREDITS)

    def not_returned(self) -> None:
        """Checks that a reply must return the Reply chunk unused, and that one without it is
        accepted and counted."""
        for returned, outcome in (None, DONE), (1, "EPROTO"), (0, DONE):
            with self.calling("null chunks=1", outcome):
                found = split(script.message())
                chunk = b""
                if returned is not None:
                    chunk = write_chunk([Segment.at(found, 8)], returned)
                script.peer.send(reply(found[0], CREDITS, reply=chunk))
            if outcome != DONE:
                self.reported(failure="the server answered with a reply with another Reply chunk "
                              "than the offered one", transport="none")
                self.gives_back(found[0])
        same_info(self.id, deviation="leaves the offered Reply chunk out of replies, 1 so far "
                  "(RFC 8166, section 4.3.3)")

    def another_chunk(self) -> None:
        """Returns a Reply chunk that differs from the offered one: longer, with another key, of two
        segments, or of none."""
        for change in (
            lambda room: [Segment(room.handle, room.length + 4, room.offset)],
            lambda room: [Segment(0x12345678, 24, room.offset)],
            lambda room: [Segment(handle, 24, room.offset) for handle in (room.handle, 0x12345678)],
            lambda room: [],
        ):
            with self.calling("null chunks=1", "EPROTO"):
                found = split(script.message())
                chunk = write_chunk(change(Segment.at(found, 7 + self.version)))
                script.peer.send(header(found[0], RDMA_NOMSG, credits=CREDITS, direction=REPLY,
                                      version=self.version, reply=chunk))

    def no_reply(self) -> None:
        """Checks that only a reply grants credits: reply_stat 2 is none (RFC 5531, section 9)."""
        before = info(self.id)["credits_granted"]
        with self.calling("null", "EPROTO"):
            xid = script.xid()
            script.peer.send(reply(xid, 7, words(xid, REPLY, 2)))
        same_info(self.id, credits_granted=before)

    def error_of_another_version(self) -> None:
        """Checks that an error of another version than the call is no answer."""
        with self.one_unexpected(2), self.calling("null"):
            xid = script.xid()
            script.peer.send(*(error(xid, err, credits=CREDITS, version=2)
                             for err in (ERR_CHUNK, ERR_INVALID_OPTION)), reply(xid, CREDITS))


def many_first_calls() -> None:
    """Checks that clients that wait for their first reply do not delay the messages of other
    connections, even if they are more than a work queue runs works at a time (WQ_MAX_ACTIVE, 2048).
    """
    if os.environ["KERNEL"] != "stock" or "FULL" not in os.environ:
        raise Skip("opens 2100 connections: make soak, on the stock kernel")
    count = 2100
    script.listen(SILENT, f"max={count} answer=0 credits=1 send=1024 recv=1024")
    line = f"{script.pair.b.ip4}:{SILENT} credits=1 send=1024 recv=1024 timeout_ms=600000"
    try:
        for _ in range(count):
            control(script.pair.a.path, "connect", line)
        same_info(module.newest("client"), rpc_null="pending")
        client.granted(CREDITS)
    finally:
        numbers = [row[0] for row in module.own_rows() if row[0] != client.id]
        for number in numbers:
            module.write(HOME, "close", f"connection {number}\n".encode())
    wait_for(60, lambda: len(module.own_rows()) == 1)


client = Client()

# Lines that `call` refuses, without "connection ID" in front, each with the word and the reason
# that last_error names.
REFUSED = [
    ("nul", "nul: expected null or echo"),
    ("null jobs=0", "jobs=0: not 1 to 64 calls at a time"),
    ("echo jobs=65", "jobs=65: not 1 to 64 calls at a time"),
    ("null count=0", "count=0: not 1 to 1000000 calls"),
    ("null raw=00", "raw=00: unknown key"),
    ("echo procedure=1", "procedure=1: unknown key"),
    ("rpc procedure=1", "rpc: expected null or echo"),
    ("null version=4294967296", "version=4294967296: not 0 to 4294967295"),
    ("echo size=1048577", "size=1048577: not 0 to 1048576 octets"),
    ("echo size=", "size=: no value"),
    ("echo size=1 size=1", "size=1: given twice"),
]


def refused(call: str, reason: str) -> None:
    """Checks that a line is refused, and that `call` still shows the outcome of earlier calls."""
    before = module.read("call")
    found = module.write(HOME, "call", f"{client.line(call)}\n".encode())
    same("the write ended with", "EINVAL", found)
    same("last_error", f"call: {reason}", last_error())
    same("call", before, module.read("call"))


def under_way() -> None:
    need("the module connects for many calls", client.connects)
    check("64 calls under way, answered in reverse order (3.3.1)", client.in_reverse)
    check("no more calls under way than the last reply grants (3.3.1)", client.fewer_granted)
    check("no more calls under way than there are jobs", client.fewer_wanted)
    check("no call is begun after one of several has failed", client.one_fails)
    check("AUTH_ERROR is reported (RFC 5531, 9)", client.denied)
    check("ERR_CHUNK is reported (4.5)", client.no_chunk)
    check("a reply with a Read list is discarded (4.3.1)", client.faulty, READ_LIST,
          "the server answered with a reply with a Read list", "none")
    check("a reply with a Write list is refused (6.1)", client.faulty, WRITE_LIST,
          "the reply has a Write list, and none was offered", "RDMA_MSG")
    check("a reply with a Reply chunk that was not offered is discarded (4.3.3)", client.faulty,
          REPLY_CHUNK,
          "the server answered with a reply with a Reply chunk, where none was offered", "none")
    check("a valid reply behind one with a Read list completes the call (4.5)", client.overtaken,
          READ_LIST)
    check("a valid reply behind one with a Reply chunk completes the call (4.5)", client.overtaken,
          REPLY_CHUNK)
    check("a reply without the offered Reply chunk is accepted (4.3.3)", client.not_returned)
    check("a message that is no reply grants no credits (3.3.3)", client.no_reply)
    check("errors of another version than the call are no answer (4.5)",
          client.error_of_another_version)
    check("2100 clients that wait for their first reply delay no other connection",
          many_first_calls)
    check("the connection of many calls was never lost",
          lambda: same_info(client.id, state="established", generation=1, bad_headers=0))
    check("the connection of many calls is closed", client.leaves)


def ends() -> None:
    for version in 2, 1:
        need(f"the module connects for calls that fail, version {version}", speaks, version)
        for name, outcome, answer in ENDS:
            check(f"{name}: the call fails with {outcome}, version {version}", client.ends, outcome,
                  answer)
        check(f"another Reply chunk than the offered one, version {version} (4.3.3)",
              client.another_chunk)
        check(f"the connection of calls that fail is closed, version {version}", client.leaves)
        check(f"the memory of a call that timed out is gone, version {version} (4.4.1)",
              client.memory_is_gone)


def statuses() -> None:
    need("the module connects for replies without results", client.connects)
    for name, outcome, rpc in STATUSES:
        check(f"{name}: the call fails with {outcome} (RFC 5531, 9)", client.ends, outcome,
              lambda xid, _, rpc=rpc: reply(xid, CREDITS, rpc(xid)))
    check("the connection of replies without results is closed", client.leaves)


def speaks(version: int) -> None:
    client.version = version
    client.connects()


def refused_lines() -> None:
    need("the module connects for lines that are refused", client.connects)
    for line, why in REFUSED:
        check(f"call refuses {line}", refused, line, why)
    check("the connection for lines that are refused is closed", client.leaves)


def given_up() -> None:
    check("a call that timed out keeps its credit (3.3.1)", client.one_is_given_up)
    check("the reply to a call that timed out grants credits (3.3.1)", client.late_reply_grants)
    for fault, call, answer in (
        ("with a Read list (4.3.1)", "null", lambda xid: reply(xid, 7, **READ_LIST)),
        ("with a Write list (6.1)", "null", lambda xid: reply(xid, 7, **WRITE_LIST)),
        ("with a Reply chunk (4.3.3)", "null", lambda xid: reply(xid, 7, **REPLY_CHUNK)),
        ("in memory that is invalidated (3.3.1)", "null chunks=1", lambda xid: header(
            xid, RDMA_NOMSG, credits=7, reply=write_chunk([Segment(1, 24, 0)]))),
    ):
        check(f"a reply {fault} to a call that timed out grants no credits",
              client.late_reply_is_faulty, call, answer)
    check("a reply in memory that is invalidated withdraws credits (3.3.1)",
          client.late_reply_withdraws)
    check("a reply to a call that timed out grants credits after the replies before it (3.3.1)",
          client.late_reply_comes_last)
    check("the report shows no call if the one that failed was not sent", client.next_is_not_sent)
    check("a call with the XID of a call that timed out gives back no credit (RFC 8167, 4.1)",
          client.call_with_late_xid)
    check("calls that a signal interrupts keep their credits (3.3.1)", client.all_are_given_up)
    check("64 calls under way fail when the peer closes", client.peer_closes)
    check("close does not wait for 64 calls under way", client.closed_meanwhile)


script.set_up()
need("the peer of many calls listens",
     lambda: script.peer.listen(script.pair.b.path, script.pair.b.ip4, PORT))
need("the peer has Receives for 64 calls", lambda: script.peer.receives(72, 4096))
script.group(under_way)
script.group(ends)
script.group(statuses)
script.group(refused_lines)
script.group(given_up)
script.check_none_left()
script.run()
