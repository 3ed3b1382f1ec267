#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""lib/peer.py for scripts in the shell: a peer that is not the module.

Reads commands, and answers each with one line. The second column has the answer:
    listen NETNS ADDRESS PORT             done
    receives COUNT SIZE [AGAIN]           done; later connections post COUNT Receives of SIZE
                                          octets, and the other side retransmits a message that
                                          finds none AGAIN times; 7 is without limit
    accept HEX|none                       the private data of the next request
    connect NETNS ADDRESS PORT HEX|none   the private data of the REP
    storm HOW COUNT [NETNS ADDRESS PORT]  OUTCOME=COUNT... of COUNT attempts: see Storm
    send HEX|empty...                     done; sends all messages at once
    send_padded HEX LENGTH                done; pads the message with zeros
    receive MILLISECONDS                  HEX|empty; none in that time; or closed
    length MILLISECONDS                   the first 8 octets of the message and its length; none;
                                          or closed
    close                                 done; disconnects
After an error the answer is `failed: ` and the reason.
"""

import collections
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from ctypes import byref

from lib.peer import CLOSED, CONNECT_REQUEST, ESTABLISHED, NOTHING, Parameters, Peer, call

# Commands that need no connection.
BEFORE = "listen", "receives", "accept", "connect", "storm"


class Storm:
    """Attempts to connect, one after the other or many at a time.

    HOW is one of:
    orderly    connects, and closes when the connection is established
    vanish     in a process that is killed, before or after the REP arrives
    mute       sends a REQ, and does not read the REP
    ghost      like mute, with the number of a queue pair that does not exist
    flood      connects, and sends messages of any kind
    hold       connects, and keeps the connection
    refuse     rejects requests at the listener
    """

    # How many attempts are under way at a time. Other kinds make one at a time.
    AT_ONCE = {"mute": 4, "ghost": 4, "flood": 16, "hold": 1000}

    def __init__(self, owner: Peer, netns: str = "", host: str = "", port: str = "0") -> None:
        self.owner, self.server = owner, (netns, host, int(port))
        self.outcomes: collections.Counter[str] = collections.Counter()
        self.slowest = 0.0

    def attempts(self, how: str, count: int) -> str:
        at_once = self.AT_ONCE.get(how, 1)
        peers = [Peer() for _ in range(min(at_once, count))]
        for start in range(0, count, at_once):
            getattr(self, how)(peers[:count - start], start)
        words = [f"{outcome}={times}" for outcome, times in self.outcomes.items()]
        return " ".join([*words, f"slowest_ms={self.slowest * 1000:.0f}"])

    def note(self, step: Callable[[], object]) -> bool:
        """Counts the result of the last step of an attempt."""
        start = time.monotonic()
        try:
            step()
            outcome = "established"
        except (OSError, RuntimeError) as error:
            outcome = "_".join(str(error).split())
        self.slowest = max(self.slowest, time.monotonic() - start)
        self.outcomes[outcome] += 1
        return outcome == "established"

    def orderly(self, peers: list[Peer], _: int) -> None:
        peers[0].ask(*self.server, b"")
        self.note(lambda: peers[0].wait(ESTABLISHED))
        peers[0].close()

    def vanish(self, _: list[Peer], number: int) -> None:
        process = os.fork()
        if not process:
            try:
                # The child makes its own Peer: it must not close the objects of its parent.
                child = Peer()
                child.ask(*self.server, b"")
                if number % 2:
                    child.wait(ESTABLISHED)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(process, 0)
        self.outcomes["vanished"] += 1

    def ghost(self, peers: list[Peer], _: int) -> None:
        for peer in peers:
            if peer.id:
                self.leave(peer)
            peer.resolve(*self.server)
            # The other side tells requests apart by this number.
            number = int.from_bytes(os.urandom(3), "big")
            call("rdma_connect", peer.id, byref(Parameters(retry_count=6, qp_num=number)))
            self.outcomes["unanswered"] += 1

    def mute(self, peers: list[Peer], _: int) -> None:
        for peer in peers:
            if peer.queue_pair:
                self.leave(peer)
            peer.ask(*self.server, b"")
            self.outcomes["unanswered"] += 1

    def leave(self, peer: Peer) -> None:
        """Gives an attempt up, and does not read the answer. Waits for the answer, a second at
        most: accepting fails if the peer leaves before that."""
        select.select([peer.channel.contents.fd], [], [], 1)
        peer.leave()

    def flood(self, peers: list[Peer], number: int) -> None:
        # Every other time, the peers post no Receives for replies.
        takes = number // len(peers) % 2 * 64
        for peer in peers:
            peer.receives(takes, 1024)
            peer.ask(*self.server, b"")
        established = [peer for peer in peers if self.note(lambda: peer.wait(ESTABLISHED))]
        for peer in established:
            peer.litter()
        for peer in established:
            # The message may have ended the connection.
            peer.completion(peer.queue_pair.contents.send_cq, 100)
        for peer in peers:
            peer.close()

    def hold(self, peers: list[Peer], _: int) -> None:
        for peer in peers:
            peer.ask(*self.server, b"")
            self.note(lambda: peer.wait(ESTABLISHED))

    def refuse(self, _: list[Peer], number: int) -> None:
        new = self.owner.wait(CONNECT_REQUEST)[0]
        private = os.urandom(number % 149)
        call("rdma_reject", new, private, len(private))
        call("rdma_destroy_id", new)
        self.outcomes["refuses"] += 1


def from_hex(word: str) -> bytes:
    return b"" if word in ("none", "empty") else bytes.fromhex(word)


class Commands:
    """Executes a command."""

    def __init__(self) -> None:
        self.peer = Peer()

    def listen(self, netns: str, host: str, port: str) -> None:
        self.peer.listen(netns, host, int(port))

    def receives(self, *numbers: str) -> None:
        self.peer.receives(*map(int, numbers))

    def accept(self, private: str) -> str:
        return self.peer.accept(from_hex(private)).hex() or "none"

    def connect(self, netns: str, host: str, port: str, private: str) -> str:
        return self.peer.connect(netns, host, int(port), from_hex(private)).hex() or "none"

    def storm(self, how: str, count: str, *server: str) -> str:
        return Storm(self.peer, *server).attempts(how, int(count))

    def send(self, *messages: str) -> None:
        self.peer.send(*map(from_hex, messages))

    def send_padded(self, message: str, length: str) -> None:
        self.peer.send(from_hex(message).ljust(int(length), b"\0"))

    def receive(self, milliseconds: str) -> str:
        found = self.peer.next_message(int(milliseconds))
        return {NOTHING: "none", CLOSED: "closed", b"": "empty"}.get(found) or found.hex()

    def length(self, milliseconds: str) -> str:
        found = self.receive(milliseconds)
        return found if found in ("none", "closed") else f"{found[:16]} {len(found) // 2}"

    def close(self) -> None:
        self.peer.close()

    def answer(self, command: str, *words: str) -> str:
        try:
            if not (self.peer.queue_pair or command in BEFORE):
                raise RuntimeError("not connected")
            return getattr(self, command)(*words) or "done"
        except (OSError, RuntimeError) as error:
            return f"failed: {error}"


commands = Commands()
for line in sys.stdin:
    print(commands.answer(*line.split()), flush=True)
