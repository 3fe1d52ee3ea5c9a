"""The side of every rank but 0 in the roll call."""

import socket
import time

from .errors import EX_UNAVAILABLE, LaunchError
from .rollcall import PROTOCOL, Answer, address_of, hostname, read_line, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, List, Optional, Set, Tuple

    from .rollcall import Party

CONNECT_SECONDS = 2.0  # for a connection to be made, and for rank 0's first word
RESOLVE_SECONDS = 3.0  # for a name server that hiccups
GRACE_SECONDS = 5.0  # rank 0 gives up first, so that its reason reaches everybody
EVERY_DOOR = 4  # so often all doors are tried


class Follower:
    """The side of every other rank."""

    def __init__(self, party: "Party", host: str) -> None:
        self.party = party
        self.host = host
        self.deadline = time.monotonic() + party.seconds + GRACE_SECONDS
        self.began = time.monotonic()
        self.last = "nothing was tried"
        self.unresolved = 0.0  # since when
        self.strange: "Set[int]" = set()  # doors where somebody else answered, or nobody spoke

    def call(self, problem: str) -> Answer:
        """Go to rank 0 and do as it says; raises `LaunchError` if it is not found or says stop."""
        pause, attempt = 0.005, 0
        while time.monotonic() < self.deadline and not self.is_hopeless():
            found = self.find(self.doors(attempt), problem)
            if found:
                return self.wait(*found)
            time.sleep(min(pause, max(0.0, self.deadline - time.monotonic())))
            pause, attempt = min(pause * 1.5, 0.5), attempt + 1
        raise LaunchError(self.explanation(), EX_UNAVAILABLE)

    def is_hopeless(self) -> bool:
        """A name that cannot be resolved for some seconds is wrong, not late."""
        return bool(self.unresolved) and time.monotonic() - self.unresolved > RESOLVE_SECONDS

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
                if isinstance(error, socket.gaierror):
                    self.unresolved = self.unresolved or time.monotonic()
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
            answer = Answer(reply[1], int(reply[2]))
            answer.local, answer.node, answer.neighbours = local, int(reply[3]), int(reply[4])
            return answer
        if reply[:1] == ["stop"]:
            raise LaunchError(reply[1], EX_UNAVAILABLE)
        message = "rank 0 on {} ended before all ranks had come: look for its error above"
        raise LaunchError(message.format(self.host), EX_UNAVAILABLE)

    def explanation(self) -> str:
        message = "rank {} on {} did not reach rank 0 at MASTER_ADDR='{}' within {:.0f} s: {}"
        seconds = time.monotonic() - self.began
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
