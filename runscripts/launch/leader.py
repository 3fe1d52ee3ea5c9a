"""Rank 0's side of the roll call."""

import resource
import select
import sys
import time

from .errors import EX_UNAVAILABLE, LaunchError
from .reservation import reserve
from .rollcall import PROTOCOL, Wire, hostname
from .variables import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from .reservation import Reservation
    from .rollcall import Answer, Party

HELLO_FIELDS = 7
HELLO_SECONDS = 2.0  # for a rank's first line, which it sends at once
TURN_SECONDS = 0.25
OTHER_DESCRIPTORS = 50
NOTICE_SECONDS = 10.0  # until it says for whom it waits
AFTER_PROBLEM_SECONDS = 5.0  # for the others to come and hear of it, once one rank cannot start
SHOWN_RANKS = 12


class descriptors:  # noqa: N801  # used like contextlib's functions, which take time to load
    """Allow a connection to every rank while the roll call lasts; Python gets the limit it had."""

    def __init__(self, ranks: int) -> None:
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft, hard = self.limits
        self.wanted = max(soft, ranks + OTHER_DESCRIPTORS)
        if self.wanted > hard != resource.RLIM_INFINITY:
            message = "rank 0 needs {} open files for {} ranks, but 'ulimit -Hn' is {}: raise it"
            raise LaunchError(message.format(self.wanted, ranks, hard), EX_UNAVAILABLE)

    def __enter__(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.wanted, self.limits[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)


class Leader:
    """Rank 0's side. It stands at a door from the first moment, even with a problem of its own."""

    def __init__(self, party: "Party", door: "Reservation") -> None:
        self.party = party
        self.door = door
        self.hosts: "Dict[int, str]" = {0: hostname()}
        self.newcomers: "Dict[Wire, float]" = {}  # until when they have to say who they are
        self.guests: "Dict[int, Wire]" = {}
        self.doubles: "List[Wire]" = []
        self.devices: "Dict[Tuple[str, str], str]" = {}
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

    def call(self, answer: "Answer") -> "Answer":
        """Wait for all ranks and tell them; raises `LaunchError` with the problem."""
        me = self.party
        with descriptors(me.size):
            self.note("rank 0 on {}".format(hostname()), hostname(), me.device, me.problem)
            while len(self.guests) + len(self.doubles) < me.size - 1 and self.left() > 0:
                self.welcome()
                self.notice()
            reason = self.reason()
            if reason:
                self.stop(reason)
                raise LaunchError(reason, EX_UNAVAILABLE)
            return self.go(answer)

    def go(self, answer: "Answer") -> "Answer":
        answer.local = self.local
        nodes = self.nodes()
        answer.node, answer.neighbours = nodes[0]
        for rank, wire in self.guests.items():
            wire.send("go", answer.address, str(answer.port), *map(str, nodes[rank]))
            wire.close()
        return answer

    def nodes(self) -> "Dict[int, Tuple[int, int]]":
        """Return the number of each rank's node in the order of the ranks, and its ranks."""
        ranks: "Dict[str, List[int]]" = {}
        for rank in range(self.party.size):
            ranks.setdefault(self.hosts[rank], []).append(rank)
        return {
            rank: (node, len(neighbours))
            for node, neighbours in enumerate(ranks.values())
            for rank in neighbours
        }

    def welcome(self) -> None:
        """Hear whoever has something to say; nobody keeps the others waiting."""
        listener = self.door.listener
        poll = select.poll()
        for one in (listener, *(wire.connection for wire in self.newcomers)):
            poll.register(one, select.POLLIN)
        if any(number == listener.fileno() for number, _ in poll.poll(TURN_SECONDS * 1000)):
            wire = Wire(listener.accept()[0])
            self.newcomers[wire] = time.monotonic() + HELLO_SECONDS
        for wire, deadline in list(self.newcomers.items()):
            hello = wire.line(0)
            if hello is not None or wire.ended or time.monotonic() > deadline:
                del self.newcomers[wire]
                self.answer(wire, hello or [])

    def answer(self, wire: Wire, hello: "List[str]") -> None:
        """Keep a rank of this launch; send anybody else away."""
        if len(hello) != HELLO_FIELDS or hello[:2] != [PROTOCOL, self.party.launch]:
            wire.send("stranger")
            wire.close()
            return
        trouble = self.admit(wire, *hello[2:])
        if trouble:
            self.problems.append(trouble)
            self.doubles.append(wire)
        wire.send("wait")

    def admit(self, wire: Wire, *hello: str) -> str:
        """Write down a rank, or return why it cannot be one."""
        rank, size, host, device, problem = hello
        who = "rank {} on {}".format(rank, host)
        if size != str(self.party.size) or not is_number(rank) or not 0 < int(rank) < int(size):
            return "{} says there are {} ranks, not {}".format(who, size, self.party.size)
        before = self.guests.get(int(rank))
        if before and not before.is_gone():
            return "{} is there twice".format(who)
        here, there = wire.addresses()
        if here != there:  # from another machine: this is the way to it
            self.local = here
        self.guests[int(rank)] = wire
        self.hosts[int(rank)] = host
        self.note(who, host, device, problem)
        return ""

    def note(self, who: str, host: str, device: str, problem: str) -> None:
        """Write down why a rank cannot start; a device that two have is a reason, too."""
        if problem:
            self.problems.append("{}: {}".format(who, problem))
        other = self.devices.setdefault((host, device), who) if device else who
        if other != who:
            message = "{} and {} both have LOCAL_RANK='{}', but several GPUs: unset LOCAL_RANK"
            self.problems.append(message.format(other, who, device))

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
        """Notice ranks that came and have ended since."""
        for rank, wire in self.guests.items():
            if wire.is_gone():
                self.problems.append("rank {} ended before the start".format(rank))

    def reason(self) -> str:
        """Return what keeps the launch from starting, or an empty text."""
        self.find_departed()
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

    def stop(self, reason: str) -> None:
        for wire in (*self.guests.values(), *self.doubles):
            wire.send("stop", reason)
            wire.close()


def say(message: str) -> None:
    print("conda-python-distributed: {}".format(message), file=sys.stderr, flush=True)


def open_door(doors: "List[int]") -> "Reservation":
    """Stand at the first port that nobody uses; raises `LaunchError` if all are in use."""
    for port in doors:
        place = reserve(port)
        if place:
            return place
    message = "none of the ports {} is free on {}: set MASTER_PORT to one that is"
    raise LaunchError(message.format(", ".join(map(str, doors)), hostname()), EX_UNAVAILABLE)
