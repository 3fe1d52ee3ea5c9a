"""The roll call: all ranks of a launch meet at rank 0 before any of them starts Python.

What torch.distributed does without it: a rank that never comes, a master that cannot be reached or
one rank's error leave the others waiting for up to 30 minutes, and a rank of another job that finds
the same port joins in silently. Here everybody says which launch it belongs to and whether it can
start; rank 0 answers `go` with the address and port to use, or `stop` with the reason, to all.

One line each way, fields separated by tabs:

    sifwright-1  launch  rank  size  host  problem      ->
                                                        <-  wait | stranger
                                                        <-  go  address  port | stop  reason
"""

import socket
import time

from .errors import EX_UNAVAILABLE, LaunchError
from .reservation import reserve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Dict, List, Optional, Set, Tuple

    from .reservation import Reservation

PROTOCOL = "sifwright-1"
HELLO_FIELDS = 6
MAX_LINE = 2048  # bytes
CONNECT_SECONDS = 2.0  # for a connection to be made, and for rank 0's first word
HELLO_SECONDS = 0.5  # for a rank's first line, which it sends at once
GRACE_SECONDS = 5.0  # rank 0 gives up first, so that its reason reaches everybody
NOTICE_SECONDS = 10.0  # until rank 0 says for whom it waits
AFTER_PROBLEM_SECONDS = 5.0  # for the others to come and hear of it, once one rank cannot start
SHOWN_RANKS = 12
EVERY_DOOR = 4  # so often all doors are tried


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
    """Where to meet; `local` is the address by which this rank reached the others, or None."""

    def __init__(self, address: str, port: int, local: "Optional[str]") -> None:
        self.address = address
        self.port = port
        self.local = local


def clean(text: str) -> str:
    return " ".join(text.split())


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
        connection.sendall(line.encode())
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


# --- rank 0 ---------------------------------------------------------------------------------------


class Host:
    """Rank 0's side. It stands at a door from the first moment, even with a problem of its own."""

    def __init__(self, party: Party, door: "Reservation") -> None:
        self.party = party
        self.door = door
        self.guests: "Dict[int, socket.socket]" = {}
        self.doubles: "List[socket.socket]" = []
        self.problems: "List[str]" = []
        self.began = time.monotonic()
        self.end = self.began + party.seconds
        self.noticed = False
        self.local: "Optional[str]" = None

    def left(self) -> float:
        """Seconds until the end of the roll call; few once it is known to fail."""
        now = time.monotonic()
        if self.problems:
            self.end = min(self.end, now + AFTER_PROBLEM_SECONDS)
        return self.end - now

    def missing(self) -> "List[int]":
        return [rank for rank in range(1, self.party.size) if rank not in self.guests]

    def call(self, problem: str, answer: Answer) -> Answer:
        """Wait for all ranks and tell them; raises `LaunchError` with the first problem."""
        if problem:
            self.problems.append("rank 0 on {}: {}".format(hostname(), problem))
        while len(self.guests) + len(self.doubles) < self.party.size - 1 and self.left() > 0:
            self.welcome()
        self.find_departed()
        reason = self.reason()
        if reason:
            self.tell("stop", reason)
            raise LaunchError(reason, EX_UNAVAILABLE)
        answer.local = self.local
        self.tell("go", answer.address, str(answer.port))
        return answer

    def welcome(self) -> None:
        """Take one connection, if one comes within a quarter of a second."""
        self.door.listener.settimeout(0.25)
        try:
            connection, _ = self.door.listener.accept()
        except socket.timeout:
            self.notice()
            return
        connection.settimeout(HELLO_SECONDS)
        if not self.admit(connection, read_line(connection.makefile("rb"))):
            send(connection, "stranger")
            connection.close()

    def admit(self, connection: socket.socket, hello: "List[str]") -> bool:
        """Keep a rank of this launch; False for anybody else."""
        if len(hello) != HELLO_FIELDS or hello[:2] != [PROTOCOL, self.party.launch]:
            return False
        rank, size, host, problem = hello[2:]
        who = "rank {} on {}".format(rank, host)
        if size != str(self.party.size) or not rank.isdigit() or not 0 < int(rank) < int(size):
            message = "{} says there are {} ranks, not {}"
            self.problems.append(message.format(who, size, self.party.size))
            self.doubles.append(connection)
            return send(connection, "wait")
        if int(rank) in self.guests and not is_gone(self.guests[int(rank)]):
            self.problems.append("{} is there twice".format(who))
            self.doubles.append(connection)
            return send(connection, "wait")
        if problem:
            self.problems.append("{}: {}".format(who, problem))
        here, there = address_of(connection.getsockname()), address_of(connection.getpeername())
        if here != there:  # from another machine: this is the way to it
            self.local = here
        self.guests[int(rank)] = connection
        return send(connection, "wait")

    def notice(self) -> None:
        if not self.noticed and time.monotonic() - self.began > NOTICE_SECONDS:
            self.noticed = True
            message = "waiting for {} of {} ({:.0f} s at most)"
            say(message.format(self.who_is_missing(), self.party.size, self.party.seconds))

    def who_is_missing(self) -> str:
        missing = [str(rank) for rank in self.missing()]
        more = ", …" if len(missing) > SHOWN_RANKS else ""
        plural = "s" if len(missing) > 1 else ""
        return "rank{} {}{}".format(plural, ", ".join(missing[:SHOWN_RANKS]), more)

    def find_departed(self) -> None:
        """Notice a rank that came and has ended since."""
        for rank, connection in self.guests.items():
            if is_gone(connection):
                self.problems.append("rank {} ended before the start".format(rank))

    def reason(self) -> str:
        """Return what keeps the launch from starting, or an empty text."""
        if self.problems:
            return "; ".join(self.problems[:3])
        if not self.missing():
            return ""
        message = (
            "{} of {} did not come within {:.0f} s to rank 0 on {}: look for an error of theirs"
            " above; if they only start slowly, set SIFWRIGHT_START_TIMEOUT to more seconds"
        )
        names = self.who_is_missing(), self.party.size, self.party.seconds, hostname()
        return message.format(*names)

    def tell(self, *fields: str) -> None:
        for connection in (*self.guests.values(), *self.doubles):
            send(connection, *fields)
            connection.close()


def say(message: str) -> None:
    import sys  # noqa: PLC0415

    print("conda-python-distributed: {}".format(message), file=sys.stderr, flush=True)


def open_door(doors: "List[int]") -> "Reservation":
    """Stand at the first port that nobody uses; raises `LaunchError` if all are in use."""
    for port in doors:
        place = reserve(port)
        if place:
            return place
    message = "none of the ports {} is free on {}: set MASTER_PORT to one that is"
    raise LaunchError(message.format(", ".join(map(str, doors)), hostname()), EX_UNAVAILABLE)


# --- the other ranks ------------------------------------------------------------------------------


class Guest:
    """The side of every other rank."""

    def __init__(self, party: Party, host: str) -> None:
        self.party = party
        self.host = host
        self.deadline = time.monotonic() + party.seconds + GRACE_SECONDS
        self.last = "nothing was tried"
        self.strange: "Set[int]" = set()  # doors where somebody else answered, or nobody spoke

    def call(self, problem: str) -> Answer:
        """Go to rank 0 and do as it says; raises `LaunchError` if it is not found or says stop."""
        pause, attempt = 0.005, 0
        while time.monotonic() < self.deadline:
            found = self.find(self.doors(attempt), problem)
            if found:
                return self.wait(*found)
            time.sleep(min(pause, max(0.0, self.deadline - time.monotonic())))
            pause, attempt = min(pause * 1.5, 0.5), attempt + 1
        raise LaunchError(self.explanation(), EX_UNAVAILABLE)

    def doors(self, attempt: int) -> "List[int]":
        """Return the doors to try now.

        Nobody at the first one: mostly rank 0 has not started yet, seldom it is elsewhere.
        """
        if not self.strange and attempt % EVERY_DOOR != 1:
            return self.party.doors[:1]
        return sorted(self.party.doors, key=lambda port: port in self.strange)

    def find(self, doors: "List[int]", problem: str) -> "Optional[Tuple[socket.socket, BinaryIO]]":
        """Return a connection to rank 0 of this launch, if it stands at one of the doors."""
        for port in doors:
            try:
                connection = socket.create_connection((self.host, port), CONNECT_SECONDS)
            except ConnectionRefusedError:
                self.last = "nobody answers at its port {}: rank 0 has not started, or has ended"
                self.last = self.last.format(self.party.doors[0])
                continue
            except OSError as error:
                self.last = describe(error)
                return None  # no door of that host will do better
            lines = connection.makefile("rb")
            if self.is_known(connection, lines, problem):
                return connection, lines
            self.last = "somebody else answers at its port {}".format(port)
            connection.close()
            if port not in self.strange:
                self.strange.add(port)
                return self.find(self.doors(0), problem)
        return None

    def is_known(self, connection: socket.socket, lines: "BinaryIO", problem: str) -> bool:
        party = self.party
        fields = (PROTOCOL, party.launch, str(party.rank), str(party.size), hostname(), problem)
        return send(connection, *fields) and read_line(lines) == ["wait"]

    def wait(self, connection: socket.socket, lines: "BinaryIO") -> Answer:
        """Wait until rank 0 has seen everybody."""
        connection.settimeout(max(1.0, self.deadline - time.monotonic()))
        local = address_of(connection.getsockname())
        reply = read_line(lines)
        connection.close()
        if reply[:1] == ["go"]:
            return Answer(reply[1], int(reply[2]), local)
        if reply[:1] == ["stop"]:
            raise LaunchError(reply[1], EX_UNAVAILABLE)
        message = "rank 0 on {} ended before all ranks had come: look for its error above"
        raise LaunchError(message.format(self.host), EX_UNAVAILABLE)

    def explanation(self) -> str:
        message = "rank {} on {} did not reach rank 0 at MASTER_ADDR='{}' within {:.0f} s: {}"
        seconds = self.party.seconds + GRACE_SECONDS
        return message.format(self.party.rank, hostname(), self.host, seconds, self.last)


def describe(error: OSError) -> str:
    """Say what is wrong with the way to a host, and what to look at."""
    if isinstance(error, socket.gaierror):
        return "this name cannot be resolved ({})".format(error.strerror)
    if isinstance(error, socket.timeout):
        return (
            "it does not answer: it is down, or a firewall or the wrong network is in between"
            " (SIFWRIGHT_INTERFACE chooses the network)"
        )
    return "{}".format(error.strerror or error)
