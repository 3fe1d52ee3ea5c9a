"""Rank 0's side of the roll call."""

import resource
import sys
import time
from socket import timeout as TimedOut  # noqa: N812  # an exception, which 3.10 renamed

from .errors import EX_UNAVAILABLE, LaunchError
from .reservation import reserve
from .rollcall import HELLO_SECONDS, PROTOCOL, address_of, hostname, is_gone, read_line, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Dict, List, Optional, Tuple

    from .reservation import Reservation
    from .rollcall import Answer, Party

HELLO_FIELDS = 6
ACCEPT_SECONDS = 0.25
OTHER_DESCRIPTORS = 100
NOTICE_SECONDS = 10.0  # until it says for whom it waits
AFTER_PROBLEM_SECONDS = 5.0  # for the others to come and hear of it, once one rank cannot start
SHOWN_RANKS = 12


class descriptors:  # noqa: N801  # used like contextlib's functions, which take time to load
    """Allow a connection to every rank while the roll call lasts; Python gets the limit it had."""

    def __init__(self, ranks: int) -> None:
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft, hard = self.limits
        wanted = max(soft, ranks + OTHER_DESCRIPTORS)
        self.wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)

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
        self.guests: "Dict[int, socket]" = {}
        self.doubles: "List[socket]" = []
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

    def call(self, problem: str, answer: "Answer") -> "Answer":
        """Wait for all ranks and tell them; raises `LaunchError` with the problem."""
        with descriptors(self.party.size):
            return self.hold(problem, answer)

    def hold(self, problem: str, answer: "Answer") -> "Answer":
        if problem:
            self.problems.append("rank 0 on {}: {}".format(hostname(), problem))
        while len(self.guests) + len(self.doubles) < self.party.size - 1 and self.left() > 0:
            self.welcome()
        self.find_departed()
        reason = self.reason()
        if reason:
            self.stop(reason)
            raise LaunchError(reason, EX_UNAVAILABLE)
        answer.local = self.local
        nodes = self.nodes()
        answer.node, answer.neighbours = nodes[0]
        for rank, connection in self.guests.items():
            node = map(str, nodes[rank])
            send(connection, "go", answer.address, str(answer.port), *node)
            connection.close()
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
        """Take one connection, if one comes within a quarter of a second."""
        self.door.listener.settimeout(ACCEPT_SECONDS)
        try:
            connection, _ = self.door.listener.accept()
        except TimedOut:
            self.notice()
            return
        connection.settimeout(HELLO_SECONDS)
        if not self.admit(connection, read_line(connection.makefile("rb"))):
            send(connection, "stranger")
            connection.close()

    def admit(self, connection: "socket", hello: "List[str]") -> bool:
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
        self.hosts[int(rank)] = host
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

    def stop(self, reason: str) -> None:
        for connection in (*self.guests.values(), *self.doubles):
            send(connection, "stop", reason)
            connection.close()


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
