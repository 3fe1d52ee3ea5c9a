"""The roll call: all ranks of a launch meet at rank 0 before any of them starts Python.

What torch.distributed does without it: a rank that never comes, a master that cannot be reached or
one rank's error leave the others waiting for up to 30 minutes, and a rank of another job that finds
the same port joins in silently. Here everybody says which launch it belongs to and whether it can
start; rank 0 answers `go` with the address and port to use, or `stop` with the reason, to all.

One line each way, fields separated by tabs:

    ->  sifwright-1  launch  rank  size  host  device  problem
    <-  wait | stranger
    <-  go  address  port  node  neighbours | stop  reason

Rank 0's side is in leader.py, the others' in follower.py.
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


class Party:
    """What every rank knows of its launch before; `doors` are ports to try in turn."""

    def __init__(
        self, launch: str, rank: int, size: int, doors: "List[int]", seconds: float
    ) -> None:
        self.launch = clean(launch)
        self.rank = rank
        self.size = size
        self.doors = doors
        self.seconds = seconds
        self.device = ""  # the number of its GPU, where several can be seen
        self.problem = ""  # why it cannot start


class Answer:
    """Where to meet, and what rank 0 saw of this rank.

    `local` is the address by which this rank reached the others, or None; `node` is the number of
    its node in the order of the ranks, on which `neighbours` ranks are, itself included.
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


class Wire:
    """One connection of the roll call: lines of fields, each way."""

    def __init__(self, connection: "socket.socket") -> None:
        self.connection = connection
        self.received = b""
        self.ended = False
        connection.settimeout(SEND_SECONDS)

    def send(self, *fields: str) -> bool:
        """Send one line; False if the other side is not there any more."""
        line = "\t".join(clean(field) for field in fields) + "\n"
        try:
            self.connection.sendall(line.encode("utf-8", "replace"))
        except OSError:
            self.ended = True
        return not self.ended

    def line(self, seconds: float) -> "Optional[List[str]]":
        """Return the fields of the next line, or None if none comes in that time.

        A side that has gone, or says too much, has `ended`.
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
        """Tell whether something comes in that time: words, or the end."""
        poll = select.poll()  # select() knows the first 1024 descriptors only
        poll.register(self.connection, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def receive(self) -> None:
        try:
            data = self.connection.recv(MAX_LINE)
        except OSError:
            data = b""
        self.received += data
        self.ended = not data or len(self.received) > MAX_LINE

    def is_gone(self) -> bool:
        """Tell whether the other side, which has nothing to say now, has gone."""
        if not self.ended and self.wait(0):
            self.receive()
        return self.ended

    def addresses(self) -> "Tuple[str, str]":
        """Return this side's and the other side's address."""
        here, there = self.connection.getsockname(), self.connection.getpeername()
        return address_of(here), address_of(there)

    def close(self) -> None:
        self.connection.close()


def address_of(name: "Tuple[str, int]") -> str:
    """Return the address of a socket's end; one for both families shows IPv4 as ::ffff:1.2.3.4."""
    return name[0][len("::ffff:") :] if name[0].startswith("::ffff:") else name[0]
