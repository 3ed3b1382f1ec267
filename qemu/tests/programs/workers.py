#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Uses the module in every way, at random and many at a time, and prints the results.

    workers.py DEBUGFS MODULE TRANSPORT SEED SECONDS WORK STILL FIRST

WORK and STILL are pairs of hosts.sh. WORK loses its devices and its link now and then. STILL has
an NFS server and keeps its devices. Pairs from FIRST on are made and deleted. Each worker is a
process with a random generator of its own, so that it makes the same choices with the same SEED.
How the workers interleave differs, and with it the connections that they find to act on.

Any action may fail with an errno that docs/admin-guide.md has for it. Another errno, and an action
that does not return, end the run: the first line that begins with "failed: " names the action.
"""

import collections
import ctypes
import errno
import mmap
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Container

from lib.hosts import Host, enter

DEBUGFS, MODULE, TRANSPORT, SEED, SECONDS, WORK, STILL, FIRST = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
# The time limit of an action in seconds. Guests are slow.
LIMIT = 100
# A program that has not ended by then is killed.
PATIENCE = 15
PORTS = range(2000, 2006)
CONNECTIONS_MAX = 40
SITES_MAX = 2

# Errors of opening or reading a file of the module while it is made, removed, or gone.
GONE = {"EBUSY", "ENOENT", "ENXIO", "EIO", "ENODEV"}
CONNECT = {
    "EADDRNOTAVAIL", "ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT", "ECONNRESET",
    "ENODEV", "ENOMEM", "ESHUTDOWN",
}
ALLOWED = {
    "connect": CONNECT,
    "listen": {"EADDRINUSE", "EADDRNOTAVAIL", "ENODEV", "ENOMEM"},
    "close": {"ENOENT", "EPERM"},
    "call": {
        "ENOENT", "EPERM", "ENOTCONN", "EOPNOTSUPP", "EBUSY", "ETIMEDOUT", "ECONNRESET", "EPROTO",
        "EPROTONOSUPPORT", "ENOMEM", "ENODEV", "ECONNREFUSED",
    },
    "probe": {"ENOMEM", "ENODEV"},
}


class Shared:
    """Memory that the workers share with their watcher: flags, and for each worker its action, the
    beginning of the action, and its time limit."""

    SLOT = 256
    WORD = struct.Struct("d")
    TEXT = 2 * WORD.size

    def __init__(self, workers: int) -> None:
        self.memory = mmap.mmap(-1, self.SLOT * (workers + 1))

    def flag(self, number: int) -> bool:
        return self.memory[number] != 0

    def set_flag(self, number: int, value: bool) -> None:
        self.memory[number] = value

    def begin(self, worker: int, what: str, limit: float) -> None:
        self.end(worker)
        at = self.SLOT * (worker + 1)
        room = self.SLOT - self.TEXT
        self.memory[at + self.TEXT:at + self.SLOT] = what.encode()[:room].ljust(room, b"\0")
        self.WORD.pack_into(self.memory, at + self.WORD.size, limit)
        # Written last: it tells the watcher that the rest is complete.
        self.WORD.pack_into(self.memory, at, time.monotonic())

    def end(self, worker: int) -> None:
        self.WORD.pack_into(self.memory, self.SLOT * (worker + 1), 0)

    def now(self, worker: int) -> tuple[float, float, str]:
        at = self.SLOT * (worker + 1)
        since, = self.WORD.unpack_from(self.memory, at)
        limit, = self.WORD.unpack_from(self.memory, at + self.WORD.size)
        text = self.memory[at + self.TEXT:at + self.SLOT]
        return since, limit, text.rstrip(b"\0").decode(errors="replace")


# Indices of the flags: all workers end; the module is about to be unloaded.
STOP, LEAVING = 0, 1


class Fault(Exception):
    """A result that is not allowed."""


Site = dict[str, Host]


def hosts_of(number: int) -> Site:
    """Returns the hosts of a pair."""
    return {side: Host(side, number, TRANSPORT) for side in "ab"}


def name_of(error: OSError) -> str:
    name = errno.errorcode.get(error.errno, str(error.errno))
    # Python has another name for this errno.
    return "EOPNOTSUPP" if name == "ENOTSUP" else name


def read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        octets = b""
        while piece := os.read(fd, 65536):
            octets += piece
        return octets
    finally:
        os.close(fd)


class Worker:
    """A process that chooses and does one action after the other."""

    actions: list[tuple[int, str]] = []
    # The longest pause after an action, in seconds.
    pause = 0.02

    def __init__(self, shared: Shared, number: int) -> None:
        self.shared = shared
        self.number = number
        self.random = random.Random(f"{SEED} {number}")
        self.counts: collections.Counter[str] = collections.Counter()
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY)

    def run(self) -> None:
        names = [name for _, name in self.actions]
        weights = [weight for weight, _ in self.actions]
        while not self.shared.flag(STOP):
            name = self.random.choices(names, weights)[0]
            # The choices of an action must not depend on how many the action before it made.
            self.choice = random.Random(self.random.random())
            self.does(name)
            try:
                getattr(self, name)()
                self.counts[name] += 1
            finally:
                os.setns(self.home, os.CLONE_NEWNET)
                self.shared.end(self.number)
            time.sleep(self.choice.uniform(0, self.pause))
        self.last()

    def last(self) -> None:
        """Cleans up for the checks at the end."""

    def does(self, what: str, limit: float = LIMIT) -> None:
        self.shared.begin(self.number, what, limit)

    def sites(self) -> list[int]:
        """Returns the pairs that seem to exist."""
        try:
            with open("/run/races-sites", encoding="ascii") as file:
                more = [int(word) for word in file.read().split()]
        except OSError:
            more = []
        return [int(WORK), int(WORK), int(STILL), *more]

    def site(self) -> Site:
        return hosts_of(self.choice.choice(self.sites()))

    def enter(self, netns: str) -> bool:
        """Moves into a network namespace. Returns False if it is gone."""
        try:
            enter(f"/run/netns/{netns}")
        except OSError:
            # It is deleted, or not mounted yet.
            return False
        return True

    def write(self, file: str, line: str, more: frozenset[str] | set[str] = frozenset()) -> str:
        """Writes one line to a control file. Returns the errno, or 0."""
        self.does(f"{file}: {line}")
        try:
            fd = os.open(f"{DEBUGFS}/{file}", os.O_WRONLY)
        except OSError as error:
            found = name_of(error)
            if found not in GONE:
                raise Fault(f"{file} cannot be opened: {found}") from error
            return found
        try:
            os.write(fd, line.encode())
            self.counts[f"{file}/0"] += 1
            return "0"
        except OSError as error:
            found = name_of(error)
        finally:
            os.close(fd)
        self.counts[f"{file}/{found}"] += 1
        if found not in ALLOWED[file] | set(more) | {"EIO"}:
            try:
                why = read(f"{DEBUGFS}/last_error").decode().strip()
            except OSError:
                why = "?"
            raise Fault(f"'{line}' > {file}: {found} (by now the last error is: {why})")
        return found

    def rows(self, file: str = "connections") -> list[list[str]]:
        try:
            text = read(f"{DEBUGFS}/{file}").decode()
        except OSError as error:
            if name_of(error) not in GONE:
                raise Fault(f"{file} cannot be read: {name_of(error)}") from error
            return []
        return [line.split() for line in text.splitlines()[1:]]

    def listeners(self, hosts: Container[str]) -> list[str]:
        """Returns the addresses with ports of the module's listeners at addresses of `hosts`."""
        known = (row[1] for row in self.rows("listeners"))
        return [address for address in known if address.rpartition(":")[0] in hosts]

    def command(self, *words: str, patience: float = PATIENCE, **more: object) -> int:
        """Runs a program in the present network namespace. The program may fail."""
        self.does(" ".join(words), LIMIT + patience)
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            **more,
        )
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


class Anyone(Worker):
    """Uses the module's files."""

    actions = [
        (8, "connect"), (4, "listen"), (6, "close_connection"), (2, "close_listener"),
        (1, "close_all"), (12, "call"), (2, "probe"), (6, "read_files"), (4, "read_slowly"),
        (3, "interrupt"),
    ]

    def run_quick(self) -> bool:
        """Whether to skip a long action: nine of ten, while the module is to be unloaded."""
        return self.shared.flag(LEAVING) and self.choice.random() < 0.9

    def address(self, site: Site, side: str) -> str:
        if self.choice.random() < 0.15:
            return f"[{site[side].ip6}]"
        return site[side].ip4

    def options(self) -> str:
        choose = self.choice.choice
        words = f"credits={choose([1, 8, 8, 32])}"
        if self.choice.random() < 0.2:
            # A message of RFC 8797, and octets that are none.
            return f"{words} private={choose(['none', '00', 'f6ab0e1801010f07', 'f6ab0e18'])}"
        words += choose(["", f" send={choose([1024, 8192, 262144])}"])
        return f"{words} inv={choose([0, 1])} recv={choose([1024, 4096, 4096, 65536, 262144])}"

    def connect_line(self) -> str:
        choose = self.choice.choice
        site = self.site()
        self.there = site[side := choose("aaab")].netns
        peer = site if self.choice.random() < 0.9 else self.site()
        to = f"{self.address(peer, choose('bbba'))}:{choose(PORTS)}"
        # Mostly at an address with a listener.
        chosen, elsewhere = self.choice.random(), self.choice.random() < 0.2
        hosts = [peer[at].ip4 for at in "ab"] + [f"[{peer[at].ip6}]" for at in "ab"]
        known = self.listeners(hosts)
        if known and not elsewhere:
            to = known[int(chosen * len(known))]
        if self.choice.random() < 0.1:
            # Addresses that no host has, and one that no connection can have.
            to = choose(["10.77.254.99:2000", f"{site['b'].ip4[:-1]}9:2000", "224.0.0.1:2000"])
        words = [to, self.options(), f"timeout_ms={choose([50, 500, 1000, 2000])}"]
        words += choose([[], [], ["reconnect=1"]]) + choose([[], ["reverse=3"]])
        words += choose([[], [], ["null=0"], ["rpcvers=auto"], ["rpcvers=2"]])
        if self.choice.random() < 0.2 and "[" not in to:
            words.append(f"from={site[side].ip4}")
        return " ".join(words)

    def may_connect(self) -> bool:
        return len(self.rows()) < CONNECTIONS_MAX

    def connect(self) -> None:
        line = self.connect_line()
        if self.run_quick() or not self.may_connect() or not self.enter(self.there):
            return
        self.write("connect", line, {"EINVAL", "EAFNOSUPPORT"} if "224." in line else set())

    def listen(self) -> None:
        choose = self.choice.choice
        site = self.site()
        side = choose("bbba")
        at = choose([self.address(site, side), self.address(site, side), "0.0.0.0", "[::]"])
        line = f"{at}:{choose(PORTS)} {self.options()} max={choose([1, 8, 64])}"
        line += choose(["", " reverse=3", " reverse=1 bind=0"])
        if self.run_quick() or not self.enter(site[side].netns):
            return
        if len(self.rows("listeners")) < len(PORTS) * 3:
            self.write("listen", line)

    def close_connection(self) -> None:
        chosen = self.choice.random()
        rows = self.rows()
        if rows:
            number = rows[int(chosen * len(rows))][0]
            self.write("close", f"connection {number}")

    def close_listener(self) -> None:
        chosen = self.choice.random()
        rows = self.rows("listeners")
        if rows:
            self.write("close", f"listener {rows[int(chosen * len(rows))][0]}")

    def close_all(self) -> None:
        # Not often, because it ends the connections of all workers.
        if self.choice.random() < 0.3:
            self.write("close", "all")

    def call_line(self) -> str | None:
        choose = self.choice.choice
        chosen = self.choice.random()
        what = choose([
            "null", "null program=100003 version=3", "echo size=100", "echo size=0 count=20",
            "echo size=3000", "echo size=8192 count=3", "echo size=100 chunks=1 count=5",
            "echo size=100000", "echo size=1048576", "echo size=100 count=50 jobs=8",
            "echo size=8192 count=8 jobs=4",
        ])
        rows = [row for row in self.rows() if row[1] == "module"]
        # A server's end may call where both ends have reverse=.
        if choose([True, True, False]):
            rows = [row for row in rows if row[2] == "client"] or rows
        if not rows:
            return None
        return f"connection {rows[int(chosen * len(rows))][0]} {what}"

    def call(self) -> None:
        line = self.call_line()
        if line and not self.run_quick():
            self.write("call", line)

    def probe_line(self) -> str:
        site = self.site()
        self.there = site["a"].netns
        port = self.choice.choice([*PORTS, 20049])
        words = self.choice.choice(["", "rpcvers=auto", "rpcvers=2", "version=3"])
        options = self.options()
        if TRANSPORT == "siw" and port == 20049:
            # nfsd reads beyond short private data (reports/xprtrdma-private-data.txt).
            options = ""
        return f"{site['b'].ip4}:{port} timeout_ms=1000 {options} {words}"

    def probe(self) -> None:
        line = self.probe_line()
        if self.run_quick() or not self.may_connect() or not self.enter(self.there):
            return
        self.write("probe", line)

    def files(self) -> list[str]:
        found = [f"{DEBUGFS}/{file}" for file in (
            "connections", "listeners", "stats", "history", "last_error", "probe",
        )]
        try:
            numbers = os.listdir(f"{DEBUGFS}/connection")
        except OSError:
            numbers = []
        for number in numbers:
            found += [f"{DEBUGFS}/connection/{number}/{file}" for file in (
                "info", "sent", "received",
            )]
        self.choice.shuffle(found)
        return found

    def read_files(self) -> None:
        for path in self.files():
            self.does(f"read {path}")
            try:
                octets = read(path)
            except OSError as error:
                if name_of(error) not in GONE:
                    raise Fault(f"{path} cannot be read: {name_of(error)}") from error
                continue
            if path.endswith("/info") and octets[:4] != b"id: ":
                raise Fault(f"{path} begins with {octets[:20]!r}")

    def read_slowly(self) -> None:
        """Keeps a file open while its connection ends."""
        rest = self.choice.uniform(0, 0.5)
        closes = self.choice.random() < 0.5
        path = self.files()[0]
        if self.run_quick():
            return
        self.does(f"read {path} slowly")
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError as error:
            if name_of(error) not in GONE:
                raise Fault(f"{path} cannot be opened: {name_of(error)}") from error
            return
        try:
            os.read(fd, 7)
            if closes and "/connection/" in path:
                self.write("close", f"connection {path.split('/')[-2]}")
            time.sleep(rest)
            self.does(f"read {path} again")
            os.lseek(fd, 0, os.SEEK_SET)
            while os.read(fd, 100):
                pass
        except OSError as error:
            if name_of(error) != "EIO":
                raise Fault(f"{path} cannot be read: {name_of(error)}") from error
        finally:
            os.close(fd)

    def interrupt(self) -> None:
        """Sends a signal to a process that writes a command."""
        what = self.choice.choice(["connect", "connect", "call", "probe", "close"])
        how = self.choice.choice([signal.SIGINT, signal.SIGKILL])
        rest = self.choice.choice([0, 0.005, 0.02, 0.1, 0.5]) * self.choice.random()
        line: str | None
        if what == "close":
            rows = self.rows()
            line = f"connection {rows[0][0]}" if rows else "all"
        elif what == "call":
            line = self.call_line()
        else:
            line = getattr(self, f"{what}_line")()
            if not self.enter(self.there):
                return
        if not line or self.run_quick() or not self.may_connect():
            return
        self.does(f"signal {how} for {what}: {line}")
        process = os.fork()
        if process == 0:
            try:
                fd = os.open(f"{DEBUGFS}/{what}", os.O_WRONLY)
                os.write(fd, line.encode())
            except OSError:
                pass
            finally:
                os._exit(0)
        time.sleep(rest)
        os.kill(process, how)
        os.waitpid(process, 0)


class Devices(Worker):
    """Removes the devices of a pair, or sets its link down, and restores them."""

    actions = [(3, "device"), (1, "link")]
    pause = 0.5

    def device(self) -> None:
        site = hosts_of(int(WORK))
        side = self.choice.choice("ab")
        rest = self.choice.uniform(0, 0.5)
        self.command("rdma", "link", "delete", site[side].rdma, patience=LIMIT)
        time.sleep(rest)
        self.give_back(site, side)

    def give_back(self, site: Site, side: str) -> None:
        if not self.enter(site[side].netns):
            raise Fault(f"no {site[side].netns}")
        # A device that is being removed may still have the name. The program must not be killed:
        # the kernel would then add a device whose MADs are not handled.
        for _ in range(50):
            if os.path.exists(f"/sys/class/infiniband/{site[side].rdma}"):
                return
            self.command(
                "rdma", "link", "add", site[side].rdma, "type", TRANSPORT, "netdev",
                site[side].device, patience=LIMIT,
            )
            time.sleep(0.1)
        raise Fault(f"{site[side].rdma} does not come back")

    def link(self) -> None:
        site = hosts_of(int(WORK))
        side = self.choice.choice("ab")
        rest = self.choice.uniform(0, 1)
        ip = "ip", "-n", site[side].netns
        device = site[side].device
        self.command(*ip, "link", "set", device, "down")
        time.sleep(rest)
        self.command(*ip, "link", "set", device, "up")
        self.command(*ip, "address", "add", f"{site[side].ip6}/64", "dev", device, "nodad")


class Namespaces(Worker):
    """Makes and deletes pairs, also with live connections."""

    actions = [(1, "make"), (1, "delete")]
    pause = 1

    def __init__(self, shared: Shared, number: int) -> None:
        super().__init__(shared, number)
        self.alive: list[int] = []
        self.next = int(FIRST)

    def tell(self) -> None:
        with open("/run/races-sites.new", "w", encoding="ascii") as file:
            file.write(" ".join(map(str, self.alive)))
        os.rename("/run/races-sites.new", "/run/races-sites")

    def make(self) -> None:
        # The number is the third octet of an address.
        if len(self.alive) >= SITES_MAX or self.next > 250:
            return
        number = self.next
        self.next += 1
        self.command(
            "bash", "-c", '. ../hosts.sh; use_pair "$1"; pair_make "$1"; s=$?; clean_up; exit $s',
            "make", str(number), patience=LIMIT,
        )
        self.alive.append(number)
        self.tell()

    def delete(self) -> None:
        if not self.alive:
            return
        number = self.choice.choice(self.alive)
        sides = self.choice.choice([["a", "b"], ["b", "a"]])
        rest = self.choice.uniform(0, 1)
        for side in sides:
            # The namespace exists as long as it has a connection or a listener.
            self.command("ip", "netns", "delete", hosts_of(number)[side].netns, patience=LIMIT)
            time.sleep(rest)
        self.alive.remove(number)
        self.tell()

    def last(self) -> None:
        while self.alive:
            self.delete()


class Loader(Worker):
    """Unloads and loads the module."""

    actions = [(1, "reload")]
    # While the module is to be unloaded, which takes seconds, the others do little.
    pause = 20

    def loaded(self) -> bool:
        return os.path.exists("/sys/module/rpcrdma_cm")

    def reload(self) -> None:
        observe = self.choice.choice([0, 1, 1])
        rest = self.choice.choice([0, 0, 0.3]) * self.choice.random()
        if self.unload():
            time.sleep(rest)
            self.load(observe)

    def unload(self) -> bool:
        self.does("rmmod")
        end = time.monotonic() + LIMIT / 2
        self.shared.set_flag(LEAVING, True)
        try:
            # O_NONBLOCK, as rmmod does it.
            while libc.delete_module(b"rpcrdma_cm", os.O_NONBLOCK):
                error = ctypes.get_errno()
                if error not in (errno.EBUSY, errno.EAGAIN):
                    raise Fault(f"rmmod: {errno.errorcode[error]}")
                self.counts["rmmod/in use"] += 1
                if time.monotonic() > end:
                    return False
                time.sleep(0.002)
        finally:
            self.shared.set_flag(LEAVING, False)
        return True

    def load(self, observe: int) -> None:
        self.does("insmod")
        fd = os.open(MODULE, os.O_RDONLY)
        result = libc.syscall(313, fd, f"observe={observe}".encode(), 0)
        error = ctypes.get_errno()
        os.close(fd)
        if result:
            raise Fault(f"insmod: {errno.errorcode[error]}")

    def last(self) -> None:
        if not self.loaded():
            self.load(1)


class Foreigners(Worker):
    """Runs peers that are not the module."""

    actions = [(4, "client"), (3, "server"), (1, "rping"), (1, "cmtime")]
    pause = 0.5
    messages = [
        # RFC 8166, section 4.2: NULL of NFS 4 in version 1; the same in version 2; none; too short.
        "00000001000000010000000800000000000000000000000000000000"
        "000000010000000000000002000186a300000004" + "0" * 40,
        "00000002000000020000000800000000", "empty", "f6ab",
    ]

    def __init__(self, shared: Shared, number: int) -> None:
        super().__init__(shared, number)
        self.peer: subprocess.Popen[str] | None = None
        self.listens = False

    def tell(self, line: str) -> str:
        """Sends a command to peer.py, and returns its answer."""
        self.does(f"peer: {line}")
        if not self.peer:
            self.peer = subprocess.Popen(
                ["python3", "-sS", "./programs/peer.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True,
            )
            self.listens = False
        try:
            print(line, file=self.peer.stdin, flush=True)
        except OSError:
            return self.kill("failed: it is dead")
        return self.hear() if not line.startswith("accept") else ""

    def hear(self) -> str:
        # One line at a time, so that Python's buffer is empty: select does not see it.
        if self.peer and select.select([self.peer.stdout], [], [], PATIENCE)[0]:
            said = self.peer.stdout.readline().strip()
            return said or self.kill("failed: it has died")
        return self.kill("failed: it says nothing")

    def kill(self, said: str = "") -> str:
        if self.peer:
            self.peer.kill()
            self.peer.wait()
            self.peer.stdin.close()
            self.peer.stdout.close()
        self.peer = None
        return said

    def leave(self) -> None:
        if self.choice.random() < 0.3:
            self.kill()
        else:
            self.tell("close")

    def private(self) -> str:
        return self.choice.choice(["none", "f6ab0e1801010f07", "f6ab0e1802000000", "00" * 20])

    def client(self) -> None:
        chosen = self.choice.random()
        private = self.private()
        sends = self.choice.sample(self.messages, self.choice.randrange(3))
        hosts = {site["b"].ip4: site["a"].netns for site in map(hosts_of, self.sites())}
        known = self.listeners(hosts)
        if not known:
            return
        host, _, port = known[int(chosen * len(known))].rpartition(":")
        self.tell("receives 8 4096")
        said = self.tell(f"connect /run/netns/{hosts[host]} {host} {port} {private}")
        self.counts["client/connected"] += not said.startswith("failed")
        if said.startswith("failed"):
            return self.leave()
        for message in sends:
            self.tell(f"send {message}")
            self.tell("receive 200")
        self.leave()

    def server(self) -> None:
        # In the pair that is not deleted: a listener keeps its namespace.
        site = hosts_of(int(STILL))
        private = self.private()
        sends = self.choice.sample(self.messages, self.choice.randrange(2))
        if not self.listens:
            said = self.tell(f"listen /run/netns/{site['b'].netns} {site['b'].ip4} 3000")
            if said.startswith("failed"):
                return self.leave()
            self.listens = True
        self.tell(f"receives {self.choice.choice([0, 8])} 4096")
        self.tell(f"accept {private}")
        more = self.choice.choice(["", "null=0", "reconnect=1", "rpcvers=2", "rpcvers=auto"])
        if self.enter(site["a"].netns):
            found = self.write("connect", f"{site['b'].ip4}:3000 timeout_ms=2000 {more}")
            if found != "0":
                self.kill()
                return
        said = self.hear()
        self.counts["server/connected"] += not said.startswith("failed")
        for message in sends:
            self.tell(f"send {message}")
        self.leave()

    def rping(self) -> None:
        # Not with siw, where rping does not end.
        site = self.site()
        port = str(self.choice.choice(PORTS))
        if TRANSPORT != "siw" and self.enter(site["a"].netns):
            self.command("rping", "-c", "-a", site["b"].ip4, "-p", port, "-C", "1", patience=3)

    def cmtime(self) -> None:
        site = self.site()
        port = str(self.choice.choice(PORTS))
        if TRANSPORT != "siw" and self.enter(site["a"].netns):
            self.command("cmtime", "-s", site["b"].ip4, "-p", port, "-c", "4", patience=6)

    def last(self) -> None:
        self.kill()


class Mounts(Worker):
    """Mounts and unmounts by the kernel's NFS client, whose connections are observed."""

    actions = [(1, "mount")]
    pause = 4

    def mount(self) -> None:
        site = hosts_of(int(STILL))
        rest = self.choice.uniform(0, 2)
        version = self.choice.choice(["4.1", "4.2", "3"])
        options = f"proto=rdma,port=20049,vers={version},soft,timeo=100,retrans=2"
        if version == "3":
            options += ",nolock,mountproto=tcp"
        if not self.enter(site["a"].netns):
            return
        source = f"{site['b'].ip4}:{'/export' if version == '3' else '/'}"
        if self.command("mount", "-t", "nfs", "-o", options, source, "/mnt/races", patience=60):
            return
        self.counts["mount/mounted"] += 1
        try:
            with open("/mnt/races/file", "wb") as file:
                file.write(bytes(100000))
        except OSError:
            pass
        time.sleep(rest)
        if self.command("umount", "/mnt/races", patience=60):
            raise Fault("/mnt/races cannot be unmounted")


WORKERS = [Anyone, Anyone, Anyone, Anyone, Devices, Namespaces, Loader, Foreigners, Mounts]


def work(kind: type[Worker], shared: Shared, number: int, counts: int) -> None:
    """Runs a worker in its process."""
    worker = None
    status = 0
    # With Python's own handler, the signal would take effect later.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        worker = kind(shared, number)
        worker.run()
    except Fault as fault:
        print(f"failed: {kind.__name__} {number}: {fault}", flush=True)
        status = 1
    except BaseException:
        print(f"failed: {kind.__name__} {number}: {traceback.format_exc()}", flush=True)
        status = 1
    if worker:
        text = "".join(f"{name} {count}\n" for name, count in worker.counts.items())
        os.write(counts, text.encode())
    os._exit(status)


def stacks(process: int) -> None:
    """Prints the kernel stacks of a process and its children."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(read(f"/proc/{entry}/stat").rsplit(b")", 1)[1].split()[1])
            if process not in (int(entry), parent):
                continue
            command = read(f"/proc/{entry}/cmdline").replace(b"\0", b" ").decode()[:60]
            print(f"# {entry} {command}\n{read(f'/proc/{entry}/stack').decode()}", flush=True)
        except OSError:
            pass


def main() -> None:
    shared = Shared(len(WORKERS))
    read_end, write_end = os.pipe()
    processes = {}
    os.makedirs("/mnt/races", exist_ok=True)
    start = time.monotonic()
    for number, kind in enumerate(WORKERS):
        process = os.fork()
        if process == 0:
            os.close(read_end)
            work(kind, shared, number, write_end)
        processes[process] = number
    os.close(write_end)

    bad = False
    while processes:
        time.sleep(0.2)
        while processes:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            if process in processes:
                bad |= status != 0
                del processes[process]
        if bad or time.monotonic() - start > float(SECONDS):
            shared.set_flag(STOP, True)
        for process, number in processes.items():
            since, limit, what = shared.now(number)
            if not since or time.monotonic() - since < limit:
                continue
            # The worker may have been writing its record: compare once more.
            time.sleep(1)
            if shared.now(number) != (since, limit, what):
                continue
            print(f"failed: {WORKERS[number].__name__} {number} for {limit} s: {what}", flush=True)
            stacks(process)
            # Writes the stacks of all blocked tasks to the kernel's log.
            with open("/proc/sysrq-trigger", "w", encoding="ascii") as file:
                file.write("w")
            for other in processes:
                os.kill(other, signal.SIGKILL)
            sys.exit(2)
    took = time.monotonic() - start

    total: collections.Counter[str] = collections.Counter()
    with open(read_end, encoding="ascii") as file:
        for line in file:
            name, count = line.rsplit(maxsplit=1)
            total[name] += int(count)
    actions = {name: count for name, count in total.items() if "/" not in name}
    detail = {name: count for name, count in total.items() if "/" in name}
    done = sum(actions.values())
    print(f"{done * 60 / took:.0f} actions a minute; outcomes: " + ", ".join(
        f"{name} {count}" for name, count in sorted(detail.items())
    ))
    print(f"tried: races: seed {SEED}, {done} actions in {took:.0f} s (" + ", ".join(
        f"{name} {count}" for name, count in sorted(actions.items())
    ) + ")", flush=True)
    sys.exit(bad)


main()
