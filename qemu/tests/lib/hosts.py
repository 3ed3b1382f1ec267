# SPDX-License-Identifier: GPL-2.0
"""Hosts inside the guest: network namespaces with an RDMA device. qemu/hosts.sh makes them,
because ip(8) and rdma(8) are for the shell."""

import contextlib
import os
import subprocess
from collections.abc import Iterator

TRANSPORT = os.environ.get("TRANSPORT") or "rxe"
HOSTS = os.path.join(os.path.dirname(__file__), "../../hosts.sh")
# The namespace of the calling thread: each thread has its own.
CURRENT = "/proc/thread-self/ns/net"
HOME = os.open(CURRENT, os.O_RDONLY)


def enter(netns: str | int) -> None:
    """Moves the calling thread into a network namespace: a path, or an open file."""
    if isinstance(netns, int):
        os.setns(netns, os.CLONE_NEWNET)
        return
    fd = os.open(netns, os.O_RDONLY)
    try:
        os.setns(fd, os.CLONE_NEWNET)
    finally:
        os.close(fd)


@contextlib.contextmanager
def entered(netns: str | int, back: int | None = None) -> Iterator[None]:
    """Enters a network namespace for the time of a `with`. At the end enters `back`, or the
    namespace from before."""
    before = os.open(CURRENT, os.O_RDONLY) if back is None else back
    try:
        enter(netns)
        yield
    finally:
        os.setns(before, os.CLONE_NEWNET)
        if back is None:
            os.close(before)


class Host:
    """A network namespace, with names as in qemu/hosts.sh."""

    def __init__(self, side: str, number: int, transport: str = TRANSPORT) -> None:
        last = "ab".index(side) + 1
        self.netns = f"{side}{number}"
        self.path = f"/run/netns/{self.netns}"
        self.device = f"v{side}{number}"
        self.rdma = f"{transport}_{side}{number}"
        self.ip4 = f"10.77.{number}.{last}"
        self.ip6 = f"fd77:{number}::{last}"

    def popen(self, *command: str, **more: object) -> subprocess.Popen:
        """Starts a program on this host."""
        return subprocess.Popen(["nsenter", f"--net={self.path}", *command], **more)

    def run(self, *command: str) -> str:
        """Runs a program on this host and returns its output. Raises RuntimeError if it fails."""
        return run("nsenter", f"--net={self.path}", *command)


def run(*command: str) -> str:
    """Runs a program and returns its output. Raises RuntimeError if it fails."""
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {result.returncode}: {result.stdout}")
    return result.stdout


def shell(script: str, *words: str) -> str:
    """Runs a script that may call the functions of qemu/hosts.sh."""
    return run("bash", "-uc", f'. "$0" && trap \'rm -rf "$scratch"\' EXIT && {{ {script}; }}',
               HOSTS, *words)


class Pair:
    """Two hosts that reach only each other."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.a, self.b = Host("a", number), Host("b", number)


def pair() -> Pair:
    """Returns the pair that an earlier script has kept, or a new one."""
    return Pair(int(shell('pair >&2 && echo "${A#a}"').split()[-1]))


def end_pair(found: Pair, failures: int) -> None:
    """Keeps the pair for the next script, unless this one has failed."""
    shell('failures=$1 && pair_end "$TRANSPORT" "$2"', str(failures), str(found.number))


class NfsServer:
    """The kernel's NFS server in the second host of a pair: `nfs_server` of qemu/hosts.sh."""

    def __init__(self, where: Pair) -> None:
        self.pair = str(where.number)
        script = 'use_pair "$1" && nfs_server >&2 && echo "$nfs_server"'
        self.process = shell(script, self.pair).split()[-1]

    def does(self, command: str) -> None:
        """Runs a command of qemu/hosts.sh."""
        shell(f'use_pair "$1" && nfs_server=$2 && {command}', self.pair, self.process)

    def stop(self) -> None:
        """Ends its connections. `start` makes it serve again."""
        self.does("in_nfs_server rpc.nfsd 0")

    def start(self) -> None:
        self.does("nfs_start")

    def end(self) -> None:
        self.does("nfs_server_end")


def has_rdma_cm() -> bool:
    """Whether programs can use rdma_cm."""
    subprocess.run(["modprobe", "-q", "rdma_ucm"], check=False)
    return os.path.exists("/dev/infiniband/rdma_cm")
