#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Many clients of the module at a time, each in a thread, over a network that fails.

    write NETNS FILE LINE
        Writes one line to a file. Prints the errno and the milliseconds that it took.
    call NETNS ADDRESS COUNT SECONDS null|all KEY=VALUE...
        COUNT clients connect to ADDRESS and call for SECONDS, at least once: NULL alone, or
        all kinds of calls. With reverse=, their servers make some of the calls. Fails if a
        command has a result that docs/admin-guide.md does not name, or takes longer than it
        says. Prints the results, and at the end: connects, calls, failures, and the slowest
        command in milliseconds.
    agree SECONDS PORT...
        Each client makes a call, or is closed if it has no credit for one. Then succeeds if within
        SECONDS each end has another end with the same negotiated values. Servers at PORTs
        may be left over, and are counted. Fails if there is no connection at the beginning.
"""

import collections
import sys
import threading
import time

from lib import module
from lib.hosts import HOME

# How long the Send of a call may take, in addition to its timeout.
OPERATION_MS = 5000
MARGIN_MS = 4000
# The allowed results of connect over a network that fails.
CONNECT = "0 ETIMEDOUT ECONNREFUSED ECONNRESET EHOSTUNREACH".split()
CALL = "0 ETIMEDOUT ECONNRESET ENOTCONN ENOENT EBUSY".split()
# Also the result of a reverse call before the client has called BIND.
REVERSE = [*CALL, "ENOTSUP"]
# After these results of a call there is no connection.
LOST = "ECONNRESET ENOTCONN ENOENT".split()
KINDS = ["null", "echo size=100", "echo size=1000", "echo size=65536",
         "echo size=100 count=32 jobs=8", "echo size=1048576"]
# How many of its calls a command makes one after the other.
IN_TURN = {"echo size=100 count=32 jobs=8": 4}


def write(netns, file, line):
    """Returns the errno's name and how many milliseconds it took."""
    start = time.monotonic()
    outcome = module.write(netns, file, line.encode())
    return outcome, int(1000 * (time.monotonic() - start))


def own():
    """Returns the module's connections."""
    infos = [module.info(row[0]) for row in module.own_rows()]
    return [one for one in infos if one]


def other_end(number):
    """Returns the number of the server's end of a client's connection, or the client's if the
    server has none."""
    ends = own()
    local = [one["local"] for one in ends if one["id"] == number]
    return next((one["id"] for one in ends if one["remote"] in local), number)


class Load:
    """The clients, and the results of their commands."""

    def __init__(self, netns, address, kinds, keys):
        self.netns, self.address = netns, address
        self.kinds = KINDS if kinds == "all" else [kinds]
        options = dict(key.split("=") for key in keys)
        self.versions = [options.pop("rpcvers", None)]
        if not self.versions[0]:
            self.versions = ["auto", "1", "2"]
        self.keys = " ".join(f"{key}={value}" for key, value in options.items())
        self.timeout_ms = int(options.get("timeout_ms", 5000))
        self.reconnects = options.get("reconnect") == "1"
        self.both = "reverse" in options
        self.outcomes = collections.Counter()
        self.slowest = collections.Counter()
        self.bad = []

    def note(self, what, outcome, took, allowed, limit):
        """Notes the result of a command."""
        self.outcomes[what, outcome] += 1
        self.slowest[what] = max(self.slowest[what], took)
        if outcome not in allowed:
            self.bad.append(f"{what}: {outcome}")
        if took > limit:
            self.bad.append(f"{what}: {outcome} after {took} ms, wanted {limit}")

    def client(self, n, until):
        """Runs one client. Its Send Size identifies it."""
        send = 1024 * (n + 1)
        versions = self.versions[n % len(self.versions)]
        line = f"{self.address} send={send} recv=16384 inv={n % 2} rpcvers={versions} {self.keys}"
        outcome, took = write(self.netns, "connect", line)
        self.note("connect", outcome, took, CONNECT, self.timeout_ms + MARGIN_MS)
        if outcome != "0":
            return
        mine = {"role": "client", "remote": self.address, "local_send_size": str(send)}
        ids = [one["id"] for one in own() if mine.items() <= one.items()]
        calls = 0
        while ids and (calls == 0 or time.monotonic() < until):
            kind = self.kinds[(n + calls) % len(self.kinds)]
            number = other_end(ids[0]) if self.both and calls % 3 == 2 else ids[0]
            reverse = number != ids[0]
            outcome, took = write(self.netns, "call", f"connection {number} {kind}")
            limit = IN_TURN.get(kind, 1) * (self.timeout_ms + OPERATION_MS) + MARGIN_MS
            self.note(f"reverse {kind}" if reverse else kind, outcome, took,
                      REVERSE if reverse else CALL, limit)
            calls += 1
            if outcome in LOST and not self.reconnects:
                return
            if outcome != "0":
                time.sleep(0.2)

    def report(self):
        """Prints the results. Returns whether all were allowed."""
        for what in sorted(self.slowest):
            ends = [f"{n} {of}" for (this, of), n in sorted(self.outcomes.items()) if this == what]
            print(f"{what}: {', '.join(ends)}; at most {self.slowest[what]} ms")
        for line in self.bad:
            print(f"bad: {line}")
        total = self.outcomes.total()
        connects = sum(n for (what, _), n in self.outcomes.items() if what == "connect")
        failed = sum(n for (_, outcome), n in self.outcomes.items() if outcome != "0")
        print(connects, total - connects, failed, max(self.slowest.values()))
        return not self.bad


def each(function, arguments):
    """Calls a function in threads, one for each of the arguments, and waits for them."""
    threads = [threading.Thread(target=function, args=one) for one in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def call(netns, address, count, seconds, kinds, *keys):
    """The command `call`."""
    load = Load(netns, address, kinds, keys)
    until = time.monotonic() + float(seconds)
    each(load.client, [(n, until) for n in range(int(count))])
    return load.report()


def difference(one, other):
    """Returns the keys in which the two ends of a connection differ."""
    same = "client_to_server_threshold", "server_to_client_threshold", "remote_invalidation"
    keys = [(key, key) for key in same]
    for name in "send_size", "receive_size", "remote_invalidation":
        keys += [("local_" + name, "peer_" + name), ("peer_" + name, "local_" + name)]
    return [here for here, there in keys if one[here] != other[there]]


def disagreement(ports):
    """Returns the differences between all ends, and the number of servers without a client."""
    ends = own()
    by_addresses = {(end["local"], end["remote"]): end for end in ends}
    wrong, stale = [], 0
    for end in ends:
        name = f"{end['role']} {end['id']}"
        if end["state"] != "established":
            wrong.append(f"{name} is {end['state']} for {end['age_ms']} ms")
            continue
        other = by_addresses.get((end["remote"], end["local"]))
        if other is None and end["role"] == "server" and end["local"].split(":")[-1] in ports:
            stale += 1
        elif other is None:
            wrong.append(f"{name} at {end['local']} has no other end, {end['age_ms']} ms")
        elif other["state"] == "established":
            wrong += [f"{name}: {key}" for key in difference(end, other)]
    return wrong, stale


def learn(number):
    """Makes a client notice whether its server still exists, by a call. Closes a client without
    credits, which cannot call."""
    if write(HOME, "call", f"connection {number} null")[0] == "EBUSY":
        write(HOME, "close", f"connection {number}")


def agree(seconds, *ports):
    """The command `agree`."""
    start = time.monotonic()
    if not own():
        print("no connection is left")
        return False
    each(learn, [(end["id"],) for end in own() if end["role"] == "client"])
    while True:
        wrong, stale = disagreement(ports)
        took = time.monotonic() - start
        if not wrong or took > float(seconds):
            break
        time.sleep(0.2)
    print("\n".join(wrong))
    print(f"{len(own())} ends, {stale} left over, after {took:.1f} s")
    return not wrong


def write_one(netns, file, line):
    """The command `write`."""
    print(*write(netns, file, line))
    return True


commands = {"write": write_one, "call": call, "agree": agree}
sys.exit(not commands[sys.argv[1]](*sys.argv[2:]))
