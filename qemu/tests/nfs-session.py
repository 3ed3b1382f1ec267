#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""NFS with the kernel's NFS server, by the file `call`: sessions of NFS 4.1, and equal calls on two
connections. In a session the server recalls a delegation by a call in the reverse direction, and
the module answers. The operations are written out here, word for word, from RFC 8881 and its XDR
(RFC 5662).

The module answers CB_RECALL if the session uses the usual number of the callback program. The
callback channel stays up then. With other numbers the module answers with an error of RPC. The
server then says that the channel has a fault, and makes the same call again, until the session is
destroyed. Its tracepoints show the answer that it received."""

# test: stock.rxe
# soak: debug.rxe debug.siw

import errno
import os
import re
import subprocess
import sys

from lib import module
from lib.hosts import HOME, NfsServer, run
from lib.ktap import Failed, same, wait_for
from lib.module import control, info, is_gone, same_info
from lib.script import Script
from lib.wire import octets, split

# Operations (RFC 8881, section 16.2.3).
CLOSE, DELEGRETURN, GETFH, OPEN, PUTFH, PUTROOTFH = 4, 8, 10, 18, 22, 24
EXCHANGE_ID, CREATE_SESSION, DESTROY_SESSION = 42, 43, 44
SEQUENCE, DESTROY_CLIENTID, RECLAIM_COMPLETE = 53, 57, 58
# RFC 8881, sections 18.16 and 18.46: a wish for a read delegation, and its grant; a fault of the
# callback channel.
READ, WANT_READ_DELEG, OPEN_DELEGATE_READ = 0x1, 0x100, 1
BACKCHANNEL_FAULT = 0x400
# RFC 8881, section 18.36: the session's connection is for callbacks, too; channel_attrs4: the
# padding of headers, the longest request, response and cached response, the numbers of operations
# and of requests, no IRD.
CONN_BACK_CHAN = 2
FORE, BACK = "0 4096 4096 1024 16 4 0", "0 4096 4096 0 2 1 0"

# Credits of the reverse direction. The server's lease, in seconds: longer than any wait here.
REVERSE, LEASE = 4, 90
TRACES = "/sys/kernel/tracing/instances/nfs-session"
EVENTS = "nfsd_cb_setup", "nfsd_cb_recall", "nfsd_cb_seq_status", "nfsd_cb_recall_done"

script = Script()
check, need = script.check, script.need


def opaque(content: bytes) -> bytes:
    """Returns `opaque<>` (RFC 4506, section 4.10)."""
    return len(content).to_bytes(4, "big") + content + bytes(-len(content) % 4)


class Results:
    """The results of a COMPOUND that have not been read, in XDR (RFC 4506)."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def take(self, length: int) -> bytes:
        if length > len(self.content):
            raise Failed(f"{length} octets wanted, {len(self.content)} left of the results")
        taken, self.content = self.content[:length], self.content[length:]
        return taken

    def words(self, count: int) -> list[int]:
        return split(self.take(4 * count))

    def opaque(self) -> bytes:
        length = self.words(1)[0]
        return self.take(length + -length % 4)[:length]

    def operation(self, number: int) -> None:
        """Reads the number of an operation and its status, which has to be NFS4_OK."""
        same("operation and status", [number, 0], self.words(2))


class Server(NfsServer):
    """The kernel's NFS server, and its traces."""

    def begin(self) -> None:
        # A tenth of the lease is the time for answers to callbacks.
        self.start(script.pair, LEASE)
        script.at_end(self.end)
        # The server grants no delegations during the grace period of lockd, which is 50 s.
        run(*self.command("echo Y >/proc/fs/lockd/nlm_end_grace"))
        os.mkdir(TRACES)
        script.at_end(os.rmdir, TRACES)
        for event in EVENTS:
            with open(f"{TRACES}/events/nfsd/{event}/enable", "w", encoding="ascii") as file:
                file.write("1")

    def clients(self) -> list[dict[str, str]]:
        """Returns the `info` of each client."""
        text = run(*self.command("cat /proc/fs/nfsd/clients/*/info || :"))
        return [dict(line.split(": ", 1) for line in one.splitlines() if ": " in line)
                for one in text.split("clientid: ")[1:]]

    def callback_state(self) -> str:
        return next((client["callback state"] for client in self.clients()), "no client")

    def traced(self, event: str) -> list[str]:
        """Returns what the trace says of each of these events."""
        with open(f"{TRACES}/trace", encoding="ascii") as file:
            return [line.split(f" {event}: ")[1].strip() for line in file if f" {event}: " in line]

    def forget_traces(self) -> None:
        with open(f"{TRACES}/trace", "w", encoding="ascii"):
            pass


server = Server()


class Session:
    """A client with one session, from EXCHANGE_ID to DESTROY_CLIENTID. `security` has the words of
    csa_sec_parms, and `flavor` is their name in the kernel. `error` is what RPC makes of the
    module's answer to `program`, or 0 if that has results."""

    def __init__(self, name: str, program: int, security: str, flavor: str, error: int) -> None:
        self.name, self.program, self.security = name, program, security
        self.flavor, self.error = flavor, error
        self.state, self.status = ("FAULT", BACKCHANNEL_FAULT) if error else ("UP", 0)
        self.id = ""
        self.calls = self.sequence = self.flags = 0
        self.client = self.session = self.handle = self.open = self.delegation = b""
        self.writer: subprocess.Popen | None = None

    def compound(self, *operations: bytes) -> Results:
        """Calls COMPOUND (RFC 8881, section 16.2), which has to succeed. Returns the results of
        its operations."""
        arguments = octets(f"0 1 {len(operations)}") + b"".join(operations)
        control(HOME, "call",
                f"connection {self.id} rpc procedure=1 cred=unix raw={arguments.hex()}")
        self.calls += 1
        results = Results(bytes.fromhex(module.call_report()["results"]))
        head = results.words(3)
        if head != [0, 0, len(operations)]:
            raise Failed(f"COMPOUND: status, length of the tag and results {head}")
        return results

    def in_session(self, *operations: bytes) -> Results:
        """The same with SEQUENCE in front (RFC 8881, section 18.46), always in slot 0."""
        self.sequence += 1
        head = self.session + octets(f"{self.sequence} 0")
        results = self.compound(octets(f"{SEQUENCE}") + head + octets("0 0"), *operations)
        results.operation(SEQUENCE)
        same("session, sequence and slot", head, results.take(24))
        self.flags = results.words(3)[2]
        return results

    def on_file(self, operation: bytes) -> Results:
        results = self.in_session(octets(f"{PUTFH}") + opaque(self.handle), operation)
        results.operation(PUTFH)
        return results

    def is_served(self) -> bool:
        """Whether the server's end is established. siw loses messages that arrive earlier."""
        local = info(self.id)["local"]
        return any(row[1:4] == ["nfs", "server", "established"] and local in row
                   for row in module.rows())

    def begins(self) -> None:
        control(script.pair.a.path, "connect",
                f"{script.pair.b.ip4}:20049 rpcvers=1 null=0 reverse={REVERSE} bind=0")
        self.id = module.newest("client")
        wait_for(10, self.is_served)
        owner = octets("0x01020304 0x05060708") + opaque(self.name.encode())
        results = self.compound(octets(f"{EXCHANGE_ID}") + owner + octets("0 0 0"))
        results.operation(EXCHANGE_ID)
        self.client = results.take(8)
        sequence = results.words(1)
        results = self.compound(octets(f"{CREATE_SESSION}") + self.client + octets(
            f"{sequence[0]} {CONN_BACK_CHAN}  {FORE}  {BACK}  {self.program} {self.security}"))
        results.operation(CREATE_SESSION)
        self.session = results.take(16)
        same("sequence and flags", [*sequence, CONN_BACK_CHAN], results.words(2))
        self.in_session(octets(f"{RECLAIM_COMPLETE} 0")).operation(RECLAIM_COMPLETE)

    def has_callbacks(self) -> None:
        """Checks what the server says of the client and of its callback channel."""
        clients = server.clients()
        same("clients", 1, len(clients))
        same("its name", f'"{self.name}"', clients[0]["name"])
        same("its callback channel", ("UP", f'"{script.pair.a.ip4}:0"'),
             (clients[0]["callback state"], clients[0]["callback address"]))
        setup = server.traced("nfsd_cb_setup")[-1]
        same("its transport and flavor", f"proto=rdma flavor={self.flavor}",
             " ".join(setup.split()[-2:]))
        same_info(self.id, reverse_direction="yes", reverse_inline_calls=0)

    def opens(self) -> None:
        """Opens a file, and gets a read delegation (RFC 8881, section 18.16)."""
        run(*server.command(f"echo begin >/export/{self.name}"))
        results = self.in_session(
            octets(f"{PUTROOTFH}"),
            octets(f"{OPEN} 0 {READ | WANT_READ_DELEG} 0") + self.client + opaque(b"owner") +
            octets("0 0") + opaque(self.name.encode()),
            octets(f"{GETFH}"))
        results.operation(PUTROOTFH)
        results.operation(OPEN)
        self.open = results.take(16)
        results.words(6)
        results.words(results.words(1)[0])
        delegation = results.words(1)[0]
        if delegation != OPEN_DELEGATE_READ:
            raise Failed(f"the delegation has type {delegation}, {results.words(1)}")
        self.delegation = results.take(16)
        results.words(4)
        results.opaque()
        results.operation(GETFH)
        self.handle = results.opaque()
        same("the status of the session", 0, self.flags)

    def was_answered(self) -> bool:
        """Whether the module has answered, and the server has seen that."""
        last = "nfsd_cb_seq_status" if self.error else "nfsd_cb_recall_done"
        return (info(self.id)["reverse_inline_calls"] != "0" and
                server.traced(last) != [] and
                server.callback_state() == self.state)

    def recalled(self) -> None:
        """Checks that the delegation is recalled when the file is written on the server, that the
        module answers, and that its answer arrives."""
        server.forget_traces()
        self.writer = subprocess.Popen(server.command(f"echo end >>/export/{self.name}"))
        wait_for(20, self.was_answered)
        same("the writer ended with", None, self.writer.poll())
        # The server makes identifiers of words in the order of its processor.
        boot, client, number = (int.from_bytes(word, sys.byteorder) for word in (
            self.client[:4], self.client[4:], self.delegation[12:]))
        stateid = (f"client {boot:08x}:{client:08x} "
                   f"stateid {number:08x}:{split(self.delegation)[0]:08x}")
        same("the recall", [f"addr={script.pair.a.ip4}:0 {stateid}"],
             server.traced("nfsd_cb_recall"))
        # The status of CB_SEQUENCE is 1 as long as there are no results of it.
        statuses = {tuple(map(int, re.findall(r"status=(-?\d+)", line)))
                    for line in server.traced("nfsd_cb_seq_status")}
        same("results of RPC and of CB_SEQUENCE", {(-self.error, int(self.error > 0))},
             statuses)
        same("the result of CB_RECALL", [] if self.error else [f"{stateid} status=0"],
             server.traced("nfsd_cb_recall_done"))

    def returns(self) -> None:
        """Returns the delegation (RFC 8881, section 18.6), for which the writer waits."""
        same("the writer ended with", None, self.writer.poll())
        self.on_file(octets(f"{DELEGRETURN}") + self.delegation).operation(DELEGRETURN)
        # After its lease the server would revoke the delegation.
        same("the writer was released with", 0, self.writer.wait(20))
        same("the file has", "begin\nend\n", run(*server.command(f"cat /export/{self.name}")))
        self.on_file(octets(f"{CLOSE} 0") + self.open).operation(CLOSE)
        same("the status of the session", self.status, self.flags)
        if not self.error:
            same_info(self.id, reverse_inline_calls=1)

    def is_destroyed(self) -> None:
        self.compound(octets(f"{DESTROY_SESSION}") + self.session).operation(DESTROY_SESSION)
        before = info(self.id)["reverse_inline_calls"]
        # Callbacks would arrive before the reply to this call.
        control(HOME, "call", f"connection {self.id} null")
        self.calls += 1
        same_info(self.id, state="established", generation=1, inline_calls=self.calls,
                  reverse_inline_calls=before, reverse_chunked_calls=0, bad_headers=0,
                  unexpected_messages=0)
        same("its callback channel", "DOWN", server.callback_state())

    def ends(self) -> None:
        self.compound(octets(f"{DESTROY_CLIENTID}") + self.client).operation(DESTROY_CLIENTID)
        same("clients", [], server.clients())
        control(HOME, "close", f"connection {self.id}")
        wait_for(10, is_gone, self.id)


# RFC 7530, sections 15.2 and 16.4: COMPOUND of minor version 0 without a tag, PUTROOTFH, and CREATE of
# the directory "twins" without attributes.
CREATE, NF4DIR, NFS4ERR_EXIST = 6, 2, 17
TWINS = f"0 0 2  {PUTROOTFH}  {CREATE} {NF4DIR} 5 0x7477696e 0x73000000  0 0"


def twin_calls() -> None:
    """Makes the same call on two connections. Checks that the server executes both: the second one
    finds the directory of the first one. The server takes a call for a repetition, and replies from
    a cache, if it knows its XID and its octets of that address, from any port."""
    ends = []
    for status in 0, NFS4ERR_EXIST:
        control(script.pair.a.path, "connect", f"{script.pair.b.ip4}:20049 rpcvers=1 null=0")
        ends.append(module.newest("client"))
        # siw loses messages that arrive before the server's end is established.
        local = info(ends[-1])["local"]
        wait_for(10, lambda at=local: any(
            row[1:4] == ["nfs", "server", "established"] and at in row for row in module.rows()))
        control(HOME, "call",
                f"connection {ends[-1]} rpc procedure=1 cred=unix raw={octets(TWINS).hex()}")
        results = split(bytes.fromhex(module.call_report()["results"]))
        same("COMPOUND, PUTROOTFH and CREATE", [status, 0, 2, PUTROOTFH, 0, CREATE, status],
             results[:7])
    for end in ends:
        control(HOME, "close", f"connection {end}")
        wait_for(10, is_gone, end)


script.set_up(peer=False)
need("the NFS server of the sessions starts", server.begin)
check("the second of two equal calls on two connections is executed (RFC 8167, section 2.4)",
      twin_calls)
for session in (
    Session("NFS4_OK", 0x40000000, "1  0", "none", 0),
    Session("AUTH_NONE", 0x5ffffffe, "1  0", "none", errno.EPFNOSUPPORT),
    Session("AUTH_SYS", 0x5fffffff, "1  1  0 0 0 0 0", "sys", errno.EPFNOSUPPORT),
    # CB_COMPOUND has the number of ECHO, which cannot decode its arguments. Linux turns the answer
    # GARBAGE_ARGS into EIO.
    Session("GARBAGE_ARGS", 0x20008797, "1  0", "none", errno.EIO),
):
    need(f"EXCHANGE_ID and CREATE_SESSION, {session.name}", session.begins)
    check(f"the callback channel is up, {session.name}", session.has_callbacks)
    need(f"OPEN gets a delegation, {session.name}", session.opens)
    check(f"the server recalls it and is answered, {session.name}", session.recalled)
    check(f"DELEGRETURN releases the writer, {session.name}", session.returns)
    check(f"DESTROY_SESSION ends the callbacks, {session.name}", session.is_destroyed)
    check(f"DESTROY_CLIENTID leaves nothing, {session.name}", session.ends)
script.check_none_left()
script.run()
