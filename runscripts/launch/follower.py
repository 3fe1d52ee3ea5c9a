"""The side of every rank but 0 in the roll call."""

import socket
import time

from .errors import EX_UNAVAILABLE, LaunchError
from .rollcall import PROTOCOL, Answer, Wire, hostname

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Set

    from .rollcall import Party

CONNECT_SECONDS = 2.0
WORD_SECONDS = 0.3  # for rank 0's first word, before other doors are tried as well
RESOLVE_SECONDS = 3.0  # for a name server that hiccups
GRACE_SECONDS = 5.0  # rank 0 gives up first, so that its reason reaches everybody
EVERY_DOOR = 4  # so often all doors are tried


class Follower:
    """The side of every other rank.

    A door where somebody listens and says nothing may be rank 0's, busy, or a stranger's: the
    connection stays open and is asked again, while the other doors are tried.
    """

    def __init__(self, party: "Party", host: str) -> None:
        self.party = party
        self.host = host
        self.began = time.monotonic()
        self.deadline = self.began + party.seconds + GRACE_SECONDS
        self.last = "nothing was tried"
        self.unresolved = 0.0  # since when
        self.silent: "Dict[int, Wire]" = {}  # by port
        self.strange: "Set[int]" = set()

    def call(self) -> Answer:
        """Go to rank 0 and do as it says; raises `LaunchError` if it is not found or says stop."""
        pause, attempt = 0.001, 0
        while self.left() > 0 and not self.is_hopeless():
            wire = self.find(attempt)
            if wire:
                return self.wait(wire)
            time.sleep(min(pause, max(0.0, self.left())))
            pause, attempt = min(pause * 1.5, 0.5), attempt + 1
        raise LaunchError(self.explanation(), EX_UNAVAILABLE)

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def is_hopeless(self) -> bool:
        """A name that cannot be resolved for some seconds is wrong, not late."""
        return bool(self.unresolved) and time.monotonic() - self.unresolved > RESOLVE_SECONDS

    def doors(self, attempt: int) -> "List[int]":
        """Return the doors to try now.

        Nobody at the first one: mostly rank 0 has not started yet, seldom it is elsewhere.
        """
        if not self.silent and not self.strange and attempt % EVERY_DOOR != 1:
            return self.party.doors[:1]
        doors = [port for port in self.party.doors if port not in self.silent]
        return sorted(doors, key=lambda port: port in self.strange)

    def find(self, attempt: int) -> "Optional[Wire]":
        """Return the connection to rank 0 of this launch, if it is at one of the doors."""
        for port, wire in list(self.silent.items()):
            if self.is_known(port, wire, 0):
                return wire
        for port in self.doors(attempt):
            try:
                met = self.knock(port)
                self.unresolved = 0.0
            except OSError as error:
                self.note(port, error)
                return None  # no door of that host will do better now
            if met and self.is_known(port, met, WORD_SECONDS):
                return met
        return None

    def knock(self, port: int) -> "Optional[Wire]":
        """Connect and say who this is; None if nobody is there. Raises `OSError`: no way."""
        me = self.party
        try:
            seconds = min(CONNECT_SECONDS, max(0.1, self.left()))
            wire = Wire(socket.create_connection((self.host, port), seconds))
        except ConnectionRefusedError:
            message = "nobody answers at its port {}: rank 0 has not started, or has ended"
            self.last = message.format(me.doors[0])
            return None
        self.silent[port] = wire
        numbers = str(me.rank), str(me.size)
        wire.send(PROTOCOL, me.launch, *numbers, hostname(), me.device, me.problem)
        return wire

    def note(self, port: int, error: OSError) -> None:
        """Remember why there is no way to the host."""
        self.last = describe(error)
        if isinstance(error, socket.gaierror):
            self.unresolved = self.unresolved or time.monotonic()
        else:
            self.unresolved = 0.0
            self.strange.add(port)  # a program that accepts no more connections looks the same

    def is_known(self, port: int, wire: Wire, seconds: float) -> bool:
        """Tell whether rank 0 answers; forget a door where somebody else does."""
        words = wire.line(seconds)
        if words == ["wait"]:
            return True
        if words is not None or wire.ended:
            self.strange.add(port)
            del self.silent[port]
            wire.close()
        self.last = "somebody else answers at its port {}, or nobody speaks there".format(port)
        return False

    def wait(self, wire: Wire) -> Answer:
        """Wait until rank 0 has seen everybody, for which it has as long as we had."""
        words = wire.line(self.party.seconds + GRACE_SECONDS) or [""]
        if words[0] == "go":
            answer = Answer(words[1], int(words[2]))
            answer.local = wire.addresses()[0]
            answer.node, answer.neighbours = int(words[3]), int(words[4])
            return answer
        if words[0] == "stop":
            raise LaunchError(words[1], EX_UNAVAILABLE)
        message = "rank 0 on {} {}: look for its error above"
        how = "ended before all ranks had come" if wire.ended else "came to no decision"
        raise LaunchError(message.format(self.host, how), EX_UNAVAILABLE)

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
