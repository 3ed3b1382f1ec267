# SPDX-License-Identifier: GPL-2.0
"""The common part of the scripts: a pair of hosts, the module, and a peer."""

from lib import hosts, module
from lib.ktap import Checks, Failed, same, wait_for
from lib.messages import split
from lib.peer import CLOSED, Peer


class Script(Checks):
    """The checks of a script that needs a pair, the module and, in most cases, a peer."""

    pair: hosts.Pair
    peer: Peer
    nfs: hosts.NfsServer

    def set_up(self, peer: bool = True) -> None:
        if peer:
            self.skip_unless(hosts.has_rdma_cm, "user space has no rdma_cm: no module rdma_ucm")
        self.need("a pair of hosts", self.begin)
        self.need("the hosts reach each other", self.ping)
        self.need("the module loads for the checks", self.load)
        if peer:
            self.need("the peer starts", self.start_peer)

    def begin(self) -> None:
        self.pair = hosts.pair()
        self.leave("pair", self.pair.number)

    def after(self, left: dict[str, int]) -> None:
        if "pair" in left:
            hosts.end_pair(hosts.Pair(left["pair"]), left["failed"])

    def ping(self) -> None:
        self.pair.a.run("ping", "-c1", "-W5", self.pair.b.ip4)

    def load(self) -> None:
        module.load()
        self.at_end(module.unload)

    def start_peer(self) -> None:
        self.peer = Peer()
        self.at_end(self.peer.end)

    def start_nfs(self) -> None:
        self.nfs = hosts.NfsServer(self.pair)
        self.at_end(self.nfs.end)

    def message(self, milliseconds: int = 10000) -> bytes:
        """Returns the next message of the module, which has to arrive."""
        found = self.peer.next_message(milliseconds)
        if not isinstance(found, bytes):
            raise Failed(f"instead of a message: {found}")
        return found

    def xid(self) -> int:
        """Returns the XID of the next message of the module."""
        return split(self.message())[0]

    def listen(self, port: int, words: str) -> None:
        """Makes the module listen at the second host."""
        module.control(self.pair.b.path, "listen", f"{self.pair.b.ip4}:{port} {words}")

    def connect(self, at: str, to: str, client: str, server: str) -> tuple[str, str]:
        """Makes the module connect with itself: the second host listens at `at`, an address and a
        port of its own, and the first host connects to `to`. Returns the numbers of both ends."""
        module.control(self.pair.b.path, "listen", f"{at} {server}")
        module.control(self.pair.a.path, "connect", f"{to} null=0 {client}")
        port = to.rsplit(":", 1)[1]
        wait_for(10, lambda: [row for row in module.own_rows() if row[6].endswith(f":{port}")
                              and row[2:4] == ["server", "established"]])
        return module.newest("client"), module.newest("server")

    def connect_to_peer(self, port: int, words: str, private: bytes) -> str:
        """Makes the module connect to the peer, which accepts with this private data. Returns the
        number of the connection."""
        line = f"{self.pair.b.ip4}:{port} {words}"
        with module.Command(self.pair.a.path, "connect", line):
            self.peer.accept(private)
        return module.newest("client")

    def close_to_peer(self, number: str) -> None:
        """Closes a connection of the module. The peer answers at the same time, because `close`
        waits for that."""
        with module.Command(hosts.HOME, "close", f"connection {number}"):
            same("the peer received", CLOSED, self.peer.receive(20000))
            self.peer.close()

    def close_by_peer(self, number: str) -> None:
        """Ends a connection of the peer, unless that has happened, and waits for the end of the
        module's."""
        if self.peer.id:
            self.peer.close()
        wait_for(10, module.is_gone, number)

    def check_none_left(self) -> None:
        self.check("no connection of the module is left", wait_for, 10, module.none_live)
