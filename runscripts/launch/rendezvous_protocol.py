"""The protocol of the rendezvous: all ranks of a launch join rank 0 before any starts Python.

torch.distributed has no such step. If a rank fails or never starts, the other ranks wait for up to
30 minutes. They also do if the master cannot be reached. A rank of another job that finds the same
port joins silently. Here each rank sends the name of its launch, and whether it can start. Rank 0
answers all ranks: `go` with the address and port to use, or `stop` with the reason.

One line each way, fields separated by tabs:

    ->  sifwright-1  launch  rank  size  host  device  problem
    <-  wait | other-launch
    <-  go  address  port  node  neighbours | stop  reason

Rank 0's side is in rendezvous_server.py, the other ranks' in rendezvous_client.py.
"""

import select
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional, Tuple

PROTOCOL = "sifwright-1"
MAX_LINE = 8192  # bytes
MAX_FIELD = 1000  # characters
SEND_SECONDS = 2.0  # for a short line, which the other side's system takes at once


class LaunchIdentity:
    """A rank and its launch, known before the rendezvous; `ports` are tried in turn."""

    def __init__(
        self, launch: str, rank: int, size: int, ports: "List[int]", seconds: float
    ) -> None:
        self.launch = clean(launch)
        self.rank = rank
        self.size = size
        self.ports = ports
        self.seconds = seconds
        self.device = ""  # the number of its GPU, if several are visible
        self.problem = ""  # the reason if it cannot start


class Answer:
    """The answer of rank 0: address and port to use, and facts of this rank.

    `local` is the address by which this rank reached the others, or None. `node` is the number of
    its node in the order of the ranks. `neighbours` counts the ranks of that node, itself included.
    """

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        self.local: "Optional[str]" = None
        self.node = 0
        self.neighbours = 1


def clean(text: str) -> str:
    """Return a text that fits a field: in one line, without tabs, not too long."""
    return " ".join(text.split())[:MAX_FIELD]


def hostname() -> str:
    return socket.gethostname()


class Connection:
    """A connection of the rendezvous: lines of fields, in both directions."""

    def __init__(self, sock: "socket.socket") -> None:
        self.sock = sock
        self.received = b""
        self.ended = False
        sock.settimeout(SEND_SECONDS)

    def send(self, *fields: str) -> bool:
        """Send one line; return False if the other side has closed."""
        line = "\t".join(clean(field) for field in fields) + "\n"
        try:
            self.sock.sendall(line.encode("utf-8", "replace"))
        except OSError:
            self.ended = True
        return not self.ended

    def read_line(self, seconds: float) -> "Optional[List[str]]":
        """Return the fields of the next line, or None if none comes in that time.

        A side that has closed, or sends too much, has `ended`.
        """
        deadline = time.monotonic() + seconds
        while b"\n" not in self.received and not self.ended:
            if not self.wait(deadline - time.monotonic()):
                return None
            self.receive()
        if b"\n" not in self.received:
            return None
        line, _, self.received = self.received.partition(b"\n")
        return line.decode("utf-8", "replace").split("\t")

    def wait(self, seconds: float) -> bool:
        """Tell whether data or the end arrives in that time."""
        poll = select.poll()  # select() knows the first 1024 descriptors only
        poll.register(self.sock, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def receive(self) -> None:
        try:
            data = self.sock.recv(MAX_LINE)
        except OSError:
            data = b""
        self.received += data
        self.ended = not data or len(self.received) > MAX_LINE

    def is_closed(self) -> bool:
        """Tell whether the other side, which has nothing to send now, has closed."""
        if not self.ended and self.wait(0):
            self.receive()
        return self.ended

    def addresses(self) -> "Tuple[str, str]":
        """Return this side's and the other side's address."""
        here, there = self.sock.getsockname(), self.sock.getpeername()
        return address_of(here), address_of(there)

    def close(self) -> None:
        self.sock.close()


def address_of(name: "Tuple[str, int]") -> str:
    """Return the address of a socket's end; one for both families shows IPv4 as ::ffff:1.2.3.4."""
    return name[0][len("::ffff:") :] if name[0].startswith("::ffff:") else name[0]
