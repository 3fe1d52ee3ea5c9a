"""The roll call: all ranks of a launch meet at rank 0 before any of them starts Python.

What torch.distributed does without it: a rank that never comes, a master that cannot be reached or
one rank's error leave the others waiting for up to 30 minutes, and a rank of another job that finds
the same port joins in silently. Here everybody says which launch it belongs to and whether it can
start; rank 0 answers `go` with the address and port to use, or `stop` with the reason, to all.

One line each way, fields separated by tabs:

    ->  sifwright-1  launch  rank  size  host  problem
    <-  wait | stranger
    <-  go  address  port  node  neighbours | stop  reason

Rank 0's side is in leader.py, the others' in follower.py.
"""

import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, List, Optional, Tuple

PROTOCOL = "sifwright-1"
MAX_LINE = 8192  # bytes
MAX_FIELD = 1000  # characters
HELLO_SECONDS = 0.5  # for a rank's first line, which it sends at once


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


def read_line(lines: "BinaryIO") -> "List[str]":
    """Return the fields of one line; none if the other side is silent, gone, or too loud."""
    try:
        data = lines.readline(MAX_LINE)
    except OSError:
        return []
    return data.decode("utf-8", "replace")[:-1].split("\t") if data.endswith(b"\n") else []


def send(connection: socket.socket, *fields: str) -> bool:
    line = "\t".join(clean(field) for field in fields) + "\n"
    try:
        connection.sendall(line.encode("utf-8", "replace"))
    except OSError:
        return False
    return True


def address_of(name: "Tuple[str, int]") -> str:
    """Return the address of a socket's end; one for both families shows IPv4 as ::ffff:1.2.3.4."""
    return name[0][len("::ffff:") :] if name[0].startswith("::ffff:") else name[0]


def is_gone(connection: socket.socket) -> bool:
    """Tell whether the other side has closed the connection."""
    connection.settimeout(0)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(HELLO_SECONDS)
