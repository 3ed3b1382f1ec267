#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Calls of the module, many under way at a time, and their outcomes. A peer in user space answers
them in any order, or not at all. The replies are written out here, octet for octet, from
RFC 8166 (version 1) and RFC 5531. FULL=1 adds 2100 clients on the stock kernel."""

# test: stock.rxe
# soak: debug.rxe debug.siw

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator

from lib import module
from lib.hosts import HOME
from lib.ktap import Skip, fail, same, wait_for
from lib.module import DONE, Command, control, info, is_gone, last_error, same_info
from lib.peer import NOTHING, Peer
from lib.script import Script
from lib.wire import octets, segment, split

# Ports of the peer, and of the module.
PORT, SILENT = 2001, 2002
# Credits that the module requests.
CREDITS = 64
# RFC 8797, section 4: sizes of 4096.
PRIVATE = bytes.fromhex("f6ab0e1801000303")

# RFC 5531, section 9.
SUCCESS = "X 1 0  0 0  0"
NO_CHUNKS = "0 0 0"
# The length of the transport header and of the head of an RPC call, before the arguments.
HEAD = 28 + 40

script = Script()
check, need = script.check, script.need


def reply(xid: int, credits: int, words: str = SUCCESS, lists: str = NO_CHUNKS) -> bytes:
    return octets(f"X 1 {credits} 0  {lists}  {words}", xid)


def echo(message: bytes, credits: int = CREDITS) -> bytes:
    """Returns the reply to a call of ECHO."""
    return reply(split(message)[0], credits) + message[HEAD:]


# Name, outcome of a call, and the message that ends it, in the form of version 1.
ENDS = [
    ("ERR_VERS of other versions", "EPROTONOSUPPORT", f"X 1 {CREDITS} 4  1 3 4"),
    ("an error of the header", "EPROTO", f"X 1 {CREDITS} 4  2"),
    ("a reply in memory that was not offered", "EPROTO",
     f"X 1 {CREDITS} 1  0  0  1 1 0x1234 24 0 0x1000"),
    *((name, outcome, f"X 1 {CREDITS} 0  {NO_CHUNKS}  {words}") for name, outcome, words in (
        ("PROG_UNAVAIL", "ENOTSUP", "X 1 0  0 0  1"),
        ("PROG_MISMATCH", "ENOTSUP", "X 1 0  0 0  2 1 1"),
        ("PROG_MISMATCH with the longest verifier", "ENOTSUP",
         f"X 1 0  6 400 {'0 ' * 100} 2 1 1"),
        ("PROC_UNAVAIL", "ENOTSUP", "X 1 0  0 0  3"),
        ("GARBAGE_ARGS", "EINVAL", "X 1 0  0 0  4"),
        ("SYSTEM_ERR", "EREMOTEIO", "X 1 0  0 0  5"),
        ("RPC_MISMATCH", "ENOTSUP", "X 1 1  0 3 3"),
        ("a truncated reply", "EPROTO", "X 1 0"),
        ("a reply to NULL with results", "EBADMSG", f"{SUCCESS} 1"),
    )),
]


class Client:
    """The module as client, and the peer that answers it."""

    id = ""
    version = 1

    @property
    def peer(self) -> Peer:
        return script.peer

    def connects(self, words: str = "") -> None:
        line = f"{script.pair.b.ip4}:{PORT} credits={CREDITS} null=0 {words}"
        line += f" rpcvers={self.version}"
        with Command(script.pair.a.path, "connect", line):
            self.peer.accept(PRIVATE)
        self.id = module.newest("client")
        # The reply to the first call grants all credits that the module requests.
        self.granted(CREDITS)

    def leaves(self) -> None:
        script.close_to_peer(self.id)

    @contextlib.contextmanager
    def connected(self, words: str = "") -> Iterator[None]:
        """Makes a connection for one check, because that check leaves credits taken."""
        self.connects(words)
        yield
        self.leaves()

    def line(self, words: str) -> str:
        return f"connection {self.id} {words}"

    def calling(self, words: str, outcome: str = DONE) -> Command:
        return Command(HOME, "call", self.line(words), outcome)

    def granted(self, credits: int) -> None:
        """Answers a NULL call by a reply that grants that many credits."""
        self.ends(DONE, f"X 1 {credits} 0  {NO_CHUNKS}  {SUCCESS}")

    def sends(self, words: str, xid: int) -> None:
        """Sends a message of version 1 in the version of the connection: version 2 has the
        direction behind the procedure, except in errors (the draft, section 4.2)."""
        message = words.split()
        message[1] = str(self.version)
        if self.version == 2 and message[3] != "4":
            message.insert(4, "1")
        self.peer.send(octets(" ".join(message), xid))

    def ends(self, outcome: str, words: str) -> None:
        """Answers a call by a message, and checks the outcome of the call."""
        with self.calling("null", outcome):
            self.sends(words, split(script.message())[0])

    def messages(self, count: int) -> list[bytes]:
        """Returns the next calls. Checks that their XIDs differ, and that no other call follows."""
        found = [script.message() for _ in range(count)]
        same("different XIDs", count, len({split(message)[0] for message in found}))
        same(f"after {count} calls, the module sent", NOTHING, self.peer.receive(300))
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
            self.peer.send(*map(echo, reversed(messages)))
            self.peer.send(echo(script.message()))
        self.reported(calls=65, replies=65, failure="none", transport="RDMA_MSG", rpc="SUCCESS",
                      results_length=104)
        same("it took a time", True, int(module.call_report()["us"]) > 0)

    def fewer_granted(self) -> None:
        """Checks that of 8 jobs as many are under way as the last reply grants (RFC 8166, section
        3.3.1)."""
        self.granted(3)
        with self.calling("echo size=8 count=10 jobs=8"):
            messages = self.messages(3)
            # The reply to one of three calls grants 1 credit. Two calls are still under way.
            self.peer.send(echo(messages.pop(), 1))
            same("two of one credit, the module sent", NOTHING, self.peer.receive(300))
            self.peer.send(echo(messages.pop(), 1))
            same("one of one credit, the module sent", NOTHING, self.peer.receive(300))
            self.peer.send(echo(messages.pop(), 1))
            messages = self.messages(1)
            self.peer.send(echo(messages.pop(), 64))
            messages = self.messages(6)
            self.peer.send(*map(echo, messages))
        self.reported(calls=10, replies=10)

    def fewer_wanted(self) -> None:
        """Grants more credits than there are jobs."""
        with self.calling("null count=6 jobs=4"):
            messages = self.messages(4)
            self.peer.send(*(reply(split(message)[0], CREDITS) for message in messages))
            messages = self.messages(2)
            self.peer.send(*(reply(split(message)[0], CREDITS) for message in messages))
        self.reported(calls=6, replies=6, results_length=0)

    def one_fails(self) -> None:
        """Checks that no call is begun after a failure, and that the others get their replies."""
        with self.calling("null count=100 jobs=4", "ENOTSUP"):
            first, *others = self.messages(4)
            xid = split(first)[0]
            self.peer.send(reply(xid, CREDITS, "X 1 0  0 0  1"))
            same("after a failure, the module sent", NOTHING, self.peer.receive(300))
            self.peer.send(*(reply(split(message)[0], CREDITS) for message in others))
        self.reported(calls=4, replies=3, xid=f"0x{xid:08x}", rpc="PROG_UNAVAIL",
                      failure="the responder answered: PROG_UNAVAIL")

    def given_up(self, words: str) -> bytes:
        """Returns a call that times out."""
        with self.calling(words, "ETIMEDOUT"):
            return script.message()

    def one_is_given_up(self) -> None:
        """Checks that a call that timed out keeps its credit until it is answered."""
        with self.connected("timeout_ms=4000"):
            self.granted(4)
            with self.calling("null count=4 jobs=4", "ETIMEDOUT"):
                late, *others = self.messages(4)
                self.peer.send(*(reply(split(message)[0], 4) for message in others))
            self.reported(calls=4, replies=3, transport="none", rpc="none",
                          failure="no reply in time", xid=f"0x{split(late)[0]:08x}")
            with self.calling("null count=4 jobs=4"):
                messages = self.messages(3)
                self.peer.send(reply(split(late)[0], 4))
                messages.append(script.message())
                self.peer.send(*(reply(split(message)[0], 4) for message in messages))

    def late_reply_grants(self) -> None:
        """Checks that even the reply to a call that timed out grants credits (RFC 8166, section
        3.3.1)."""
        with self.connected("timeout_ms=4000"):
            self.granted(4)
            late = self.given_up("null")
            self.peer.send(reply(split(late)[0], 2))
            wait_for(10, lambda: info(self.id)["credits_granted"] == "2")
            with self.calling("null count=3 jobs=3"):
                messages = self.messages(2)
                self.peer.send(reply(split(messages.pop())[0], 2))
                messages.append(script.message())
                self.peer.send(*(reply(split(message)[0], 2) for message in messages))

    def late_reply_is_faulty(self, words: str, answer: str) -> None:
        """Checks that only a valid reply to a call that timed out grants credits. The reply returns
        the call's credit all the same."""
        with self.connected("timeout_ms=4000"):
            self.granted(2)
            before = int(info(self.id)["unexpected_messages"])
            late = self.given_up(words)
            self.peer.send(octets(answer, split(late)[0]))
            wait_for(10, lambda: int(info(self.id)["unexpected_messages"]) == before + 1)
            same_info(self.id, credits_granted=2)
            with self.calling("null count=2 jobs=2"):
                self.peer.send(*(reply(split(message)[0], 2) for message in self.messages(2)))

    def late_reply_withdraws(self) -> None:
        """Checks that a reply that can no longer be read takes credits back: the granted number is
        not to be exceeded (RFC 8166, section 3.3.1)."""
        with self.connected("timeout_ms=4000"):
            self.granted(2)
            xid, *_, key, _, high, low = split(self.given_up("null chunks=1"))[:12]
            returned = segment(key, 24, high << 32 | low)
            self.peer.send(octets(f"X 1 1 1  0 0  1 1 {returned}", xid))
            wait_for(10, lambda: info(self.id)["credits_granted"] == "1")

    def late_reply_comes_last(self) -> None:
        """Checks that the latest reply counts, not the one that is read last: the reply to a call
        that timed out follows at once those for which a caller waits."""
        with self.connected("timeout_ms=4000"):
            self.granted(4)
            late = self.given_up("null")
            with self.calling("null"):
                waiting = script.message()
                self.peer.send(reply(split(waiting)[0], 4), reply(split(late)[0], 8))
            same_info(self.id, 10, credits_granted=8)

    def call_with_late_xid(self) -> None:
        """Sends a call that has the XID of a call that timed out. Checks that it is no reply: the
        module's call keeps its credit."""
        with self.connected("timeout_ms=4000"):
            self.granted(1)
            late = split(self.given_up("null"))[0]
            before = int(info(self.id)["unexpected_messages"])
            self.peer.send(octets(f"X 1 7 0  {NO_CHUNKS}  X 0 2 100003 4 0  0 0 0 0", late))
            wait_for(10, lambda: int(info(self.id)["unexpected_messages"]) == before + 1)
            with self.calling("null", "EBUSY"):
                pass
            self.gives_back(late)
            self.granted(CREDITS)

    def memory_is_gone(self) -> None:
        """Checks that the peer can read the memory of a call only until that times out (RFC 8166,
        section 4.4.1). The attempt ends the connection."""
        self.connects("timeout_ms=4000")
        with self.calling("echo size=4400 chunks=1", "ETIMEDOUT"):
            key, _, high, low = split(script.message())[5 + self.version:9 + self.version]
            self.peer.read(key, high << 32 | low, 8)
        try:
            fail(f"the peer still reads {self.peer.read(key, high << 32 | low, 8).hex()}")
        except (OSError, RuntimeError):
            self.peer.close()
        wait_for(10, is_gone, self.id)

    def all_are_given_up(self) -> None:
        """Ends the writer by a signal. Checks that its calls still hold all credits."""
        with self.connected():
            self.granted(2)
            words = self.line("null count=9 jobs=2")
            with subprocess.Popen(["sh", "-c", f"echo {words} >{module.DEBUGFS}/call"],
                                  stderr=subprocess.DEVNULL) as writer:
                messages = self.messages(2)
                writer.send_signal(signal.SIGTERM)
                same("the writer ended by", -signal.SIGTERM, writer.wait(10))
            with self.calling("null", "EBUSY"):
                pass
            self.reported(calls=0, replies=0,
                          failure="all credits are taken by calls without an answer")
            self.peer.send(*(reply(split(message)[0], 2) for message in messages))
            self.granted(2)

    def peer_closes(self) -> None:
        self.connects()
        with self.calling("echo size=2000 count=64 jobs=64", "ECONNRESET"):
            self.messages(64)
            self.peer.close()
        wait_for(10, is_gone, self.id)

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
            self.peer.send(reply(split(script.message())[0], CREDITS, "X 1 1  1 5"))
        self.reported(rpc="AUTH_ERROR 5", transport="RDMA_MSG", results_length=0)

    def no_chunk(self) -> None:
        """Checks that the file `call` shows the error of the transport."""
        with self.calling("null", "EPROTO"):
            self.peer.send(octets(f"X 1 {CREDITS} 4  2", split(script.message())[0]))
        self.reported(transport="ERR_CHUNK", rpc="none",
                      failure="the responder answered: ERR_CHUNK")

    # About: replies that no responder may send.

    def faulty(self, lists: str, reason: str, transport: str) -> None:
        """Sends a reply with chunk lists that it must not have (RFC 8166, sections 4.3 and 6.1)."""
        before = info(self.id)["credits_granted"]
        with self.calling("null", "EPROTO"):
            xid = split(script.message())[0]
            self.peer.send(reply(xid, 7, SUCCESS, lists))
        self.reported(failure=reason, transport=transport, rpc="none")
        same_info(self.id, credits_granted=before)
        if transport == "none":
            self.gives_back(xid)

    def gives_back(self, xid: int) -> None:
        """Answers a call that was given up, so that it keeps no credit."""
        before = int(info(self.id)["unexpected_messages"])
        self.peer.send(reply(xid, CREDITS))
        wait_for(10, lambda: int(info(self.id)["unexpected_messages"]) == before + 1)

    def overtaken(self, lists: str) -> None:
        """Sends such a reply in front of the valid one. Checks that it is discarded: the valid one
        completes the call (RFC 8166, section 4.5)."""
        before = int(info(self.id)["unexpected_messages"])
        with self.calling("null"):
            xid = split(script.message())[0]
            self.peer.send(reply(xid, 7, SUCCESS, lists), reply(xid, CREDITS))
        self.reported(failure="none", transport="RDMA_MSG", rpc="SUCCESS")
        same_info(self.id, credits_granted=CREDITS, unexpected_messages=before + 1)

    def not_returned(self) -> None:
        """Checks that a reply must return the Reply chunk unused (RFC 8166, section 4.3.3), and that
        one without it is accepted and counted."""
        for returned, outcome in (None, DONE), (1, "EPROTO"), (0, DONE):
            with self.calling("null chunks=1", outcome):
                xid, *_, key, length, high, low = split(script.message())[:12]
                lists = NO_CHUNKS
                if returned is not None:
                    lists = f"0 0  1 1 {segment(key, returned, high << 32 | low)}"
                self.peer.send(reply(xid, CREDITS, SUCCESS, lists))
            if outcome != DONE:
                self.reported(failure="the server answered with a reply with another Reply chunk "
                              "than the offered one", transport="none")
                self.gives_back(xid)
        same_info(self.id, deviation="leaves the offered Reply chunk out of replies, 1 so far "
                  "(RFC 8166, section 4.3.3)")

    def another_chunk(self) -> None:
        """Returns a Reply chunk that differs from the offered one: longer, with another key, of two
        segments, or of none."""
        for chunk in ("1 {key} {longer} {at}", "1 0x12345678 24 {at}",
                      "2 {key} 24 {at} 0x12345678 24 {at}", "0"):
            with self.calling("null chunks=1", "EPROTO"):
                found = split(script.message())
                key, length, high, low = found[7 + self.version:11 + self.version]
                chunk = chunk.format(key=key, longer=length + 4, at=f"{high} {low}")
                self.sends(f"X 1 {CREDITS} 1  0 0  1 {chunk}", found[0])

    def no_reply(self) -> None:
        """Checks that only a reply grants credits (RFC 8166, section 3.3.3)."""
        before = info(self.id)["credits_granted"]
        with self.calling("null", "EPROTO"):
            self.peer.send(reply(split(script.message())[0], 7, "X 1 2"))
        same_info(self.id, credits_granted=before)

    def error_of_another_version(self) -> None:
        """Checks that an error of another version than the call is no answer (RFC 8166, section
        4.5)."""
        before = int(info(self.id)["unexpected_messages"])
        with self.calling("null"):
            xid = split(script.message())[0]
            self.peer.send(octets(f"X 2 {CREDITS} 4  2", xid),
                           octets(f"X 2 {CREDITS} 4  3", xid), reply(xid, CREDITS))
        same_info(self.id, unexpected_messages=before + 2)


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


def refused(words: str, reason: str) -> None:
    """Checks that a line is refused, and that `call` still shows the outcome of earlier calls."""
    before = module.read("call")
    found = module.write(HOME, "call", f"{client.line(words)}\n".encode())
    same("the write ended with", "EINVAL", found)
    same("last_error", f"call: {reason}", last_error())
    same("call", before, module.read("call"))


def under_way() -> None:
    need("the module connects for many calls", client.connects)
    check("64 calls under way, answered in reverse order", client.in_reverse)
    check("no more calls under way than the last reply grants", client.fewer_granted)
    check("no more calls under way than there are jobs", client.fewer_wanted)
    check("no call is begun after one of several has failed", client.one_fails)
    check("AUTH_ERROR is reported", client.denied)
    check("ERR_CHUNK is reported", client.no_chunk)
    check("a reply with a Read list is discarded", client.faulty, "1 0 1 4 0 0  0  0  0",
          "the server answered with a reply with a Read list", "none")
    check("a reply with a Write list is refused", client.faulty, "0  1 1 1 4 0 0  0  0",
          "the reply has a Write list, and none was offered", "RDMA_MSG")
    check("a reply with a Reply chunk that was not offered is discarded", client.faulty,
          "0  0  1 1 1 0 0 0",
          "the server answered with a reply with a Reply chunk, where none was offered", "none")
    check("a valid reply behind one with a Read list completes the call", client.overtaken,
          "1 0 1 4 0 0  0  0  0")
    check("a valid reply behind one with a Reply chunk completes the call", client.overtaken,
          "0  0  1 1 1 0 0 0")
    check("a reply without the offered Reply chunk is accepted", client.not_returned)
    check("a message that is no reply grants no credits", client.no_reply)
    check("errors of another version than the call are no answer", client.error_of_another_version)
    check("2100 clients that wait for their first reply delay no other connection", many_first_calls)
    check("the connection of many calls was never lost",
          lambda: same_info(client.id, state="established", generation=1, bad_headers=0))
    check("the connection of many calls is closed", client.leaves)


def ends() -> None:
    for version in 2, 1:
        need(f"the module connects for calls that fail, version {version}", speaks, version)
        # The status of RPC does not depend on the version.
        for name, outcome, words in ENDS if version == 1 else ENDS[:3]:
            check(f"{name}: the call fails with {outcome}, version {version}", client.ends, outcome,
                  words)
        check(f"another Reply chunk than the offered one, version {version}", client.another_chunk)
        check(f"the connection of calls that fail is closed, version {version}", client.leaves)
        check(f"the memory of a call that timed out is gone, version {version}",
              client.memory_is_gone)


def speaks(version: int) -> None:
    client.version = version
    client.connects()


def refused_lines() -> None:
    need("the module connects for lines that are refused", client.connects)
    for line, why in REFUSED:
        check(f"call refuses {line}", refused, line, why)
    check("the connection for lines that are refused is closed", client.leaves)


def given_up() -> None:
    check("a call that timed out keeps its credit", client.one_is_given_up)
    check("the reply to a call that timed out grants credits", client.late_reply_grants)
    for fault, call, answer in (
        ("with a Read list", "null", f"X 1 7 0  1 0 1 4 0 0  0  0  0  {SUCCESS}"),
        ("with a Write list", "null", f"X 1 7 0  0  1 1 1 4 0 0  0  0  {SUCCESS}"),
        ("with a Reply chunk", "null", f"X 1 7 0  0  0  1 1 1 0 0 0  {SUCCESS}"),
        ("in memory that is invalidated", "null chunks=1", "X 1 7 1  0 0  1 1 1 24 0 0"),
    ):
        check(f"a reply {fault} to a call that timed out grants no credits",
              client.late_reply_is_faulty, call, answer)
    check("a reply in memory that is invalidated withdraws credits", client.late_reply_withdraws)
    check("a reply to a call that timed out grants credits after the replies before it",
          client.late_reply_comes_last)
    check("a call with the XID of a call that timed out gives back no credit",
          client.call_with_late_xid)
    check("calls that a signal interrupts keep their credits", client.all_are_given_up)
    check("64 calls under way fail when the peer closes", client.peer_closes)
    check("close does not wait for 64 calls under way", client.closed_meanwhile)


script.set_up()
need("the peer of many calls listens",
     lambda: script.peer.listen(script.pair.b.path, script.pair.b.ip4, PORT))
need("the peer has Receives for 64 calls", lambda: script.peer.receives(72, 4096))
script.group(under_way)
script.group(ends)
script.group(refused_lines)
script.group(given_up)
script.check_none_left()
script.run()
