"""The side of every rank but 0 in the rendezvous."""

import socket
import time

from .errors import EX_UNAVAILABLE, LaunchError
from .rendezvous_protocol import PROTOCOL, Answer, Connection, hostname

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Set

    from .rendezvous_protocol import LaunchIdentity

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 0.3  # for rank 0's first answer, before other ports are tried as well
RESOLVE_SECONDS = 3.0  # for a name server that fails for a moment
GRACE_SECONDS = 5.0  # rank 0 times out first, so that its reason reaches all ranks
ALL_PORTS_EVERY = 4  # attempts; the other ones try the first port only


class Client:
    """A client of the rendezvous.

    A silent listener may be rank 0, busy, or another program. So its connection stays open and is
    read again, while the other ports are tried.
    """

    def __init__(self, identity: "LaunchIdentity", host: str) -> None:
        self.identity = identity
        self.host = host
        self.began = time.monotonic()
        self.deadline = self.began + identity.seconds + GRACE_SECONDS
        self.last = "nothing was tried"
        self.unresolved = 0.0  # since when
        self.silent: "Dict[int, Connection]" = {}  # by port
        self.foreign: "Set[int]" = set()

    def join(self) -> Answer:
        """Join rank 0 and return its answer; raise `LaunchError` if there is none, or `stop`."""
        pause, attempt = 0.001, 0
        while self.left() > 0 and not self.is_hopeless():
            connection = self.find(attempt)
            if connection:
                return self.wait(connection)
            time.sleep(min(pause, max(0.0, self.left())))
            pause, attempt = min(pause * 1.5, 0.5), attempt + 1
        raise LaunchError(self.explanation(), EX_UNAVAILABLE)

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def is_hopeless(self) -> bool:
        """Tell whether the name could not be resolved for some seconds: it is wrong, not late."""
        return bool(self.unresolved) and time.monotonic() - self.unresolved > RESOLVE_SECONDS

    def ports_to_try(self, attempt: int) -> "List[int]":
        """Return the ports to try now.

        If no process listens at the first port, rank 0 has mostly not started yet.
        """
        if not self.silent and not self.foreign and attempt % ALL_PORTS_EVERY != 1:
            return self.identity.ports[:1]
        ports = [port for port in self.identity.ports if port not in self.silent]
        return sorted(ports, key=lambda port: port in self.foreign)

    def find(self, attempt: int) -> "Optional[Connection]":
        """Return the connection to rank 0 of this launch, if it listens at one of the ports."""
        for port, connection in list(self.silent.items()):
            if self.is_rank_zero(port, connection, 0):
                return connection
        for port in self.ports_to_try(attempt):
            try:
                connected = self.connect(port)
                self.unresolved = 0.0
            except OSError as error:
                self.record(port, error)
                return None  # no port of that host will do better now
            if connected and self.is_rank_zero(port, connected, ANSWER_SECONDS):
                return connected
        return None

    def connect(self, port: int) -> "Optional[Connection]":
        """Connect and send this rank; None if the port is closed. Raise `OSError` if no route."""
        me = self.identity
        try:
            seconds = min(CONNECT_SECONDS, max(0.1, self.left()))
            connection = Connection(socket.create_connection((self.host, port), seconds))
        except ConnectionRefusedError:
            message = "no process listens at its port {}: rank 0 has not started, or has ended"
            self.last = message.format(me.ports[0])
            return None
        self.silent[port] = connection
        numbers = str(me.rank), str(me.size)
        connection.send(PROTOCOL, me.launch, *numbers, hostname(), me.device, me.problem)
        return connection

    def record(self, port: int, error: OSError) -> None:
        """Remember the reason why the host cannot be reached."""
        self.last = describe(error)
        if isinstance(error, socket.gaierror):
            self.unresolved = self.unresolved or time.monotonic()
        else:
            self.unresolved = 0.0
            self.foreign.add(port)  # a program that accepts no more connections looks the same

    def is_rank_zero(self, port: int, connection: Connection, seconds: float) -> bool:
        """Tell whether rank 0 answers; forget a port where another program does."""
        words = connection.read_line(seconds)
        if words == ["wait"]:
            return True
        if words is not None or connection.ended:
            self.foreign.add(port)
            del self.silent[port]
            connection.close()
        self.last = "another program listens at its port {}, or rank 0 is busy".format(port)
        return False

    def wait(self, connection: Connection) -> Answer:
        """Wait until all ranks have joined rank 0, which may take as long as this rank had."""
        words = connection.read_line(self.identity.seconds + GRACE_SECONDS) or [""]
        if words[0] == "go":
            answer = Answer(words[1], int(words[2]))
            answer.local = connection.addresses()[0]
            answer.node, answer.neighbours = int(words[3]), int(words[4])
            return answer
        if words[0] == "stop":
            raise LaunchError(words[1], EX_UNAVAILABLE)
        message = "rank 0 on {} {}: look for its error above"
        how = "ended before all ranks joined" if connection.ended else "did not decide in time"
        raise LaunchError(message.format(self.host, how), EX_UNAVAILABLE)

    def explanation(self) -> str:
        message = "rank {} on {} did not reach rank 0 at MASTER_ADDR='{}' within {:.0f} s: {}"
        seconds = time.monotonic() - self.began
        return message.format(self.identity.rank, hostname(), self.host, seconds, self.last)


def describe(error: OSError) -> str:
    """Return the reason why a host cannot be reached, and the advice."""
    if isinstance(error, socket.gaierror):
        return "this name cannot be resolved ({})".format(error.strerror)
    if isinstance(error, socket.timeout):
        return (
            "it does not answer: it is down, or a firewall or the wrong network is in between."
            " SIFWRIGHT_INTERFACE chooses the network"
        )
    return "{}".format(error.strerror or error)
