"""Rank 0's side of the rendezvous."""

import resource
import select
import sys
import time

from .errors import EX_UNAVAILABLE, LaunchError
from .rendezvous_protocol import PROTOCOL, Connection, hostname
from .reservation import reserve
from .variables import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Tuple

    from .rendezvous_protocol import Answer, LaunchIdentity
    from .reservation import Reservation

JOIN_FIELDS = 7
FIRST_LINE_SECONDS = 2.0  # for a rank's first line, which it sends at once
TURN_SECONDS = 0.25
OTHER_DESCRIPTORS = 50
NOTICE_SECONDS = 10.0  # until it names the ranks that it waits for
# For the other ranks to join and get the reason of a failed rank: this part of the timeout.
AFTER_PROBLEM_SHARE = 0.25
SHOWN_RANKS = 12


class descriptors:  # noqa: N801  # used like contextlib's functions, which take time to load
    """A context that allows a connection to every rank; Python gets the old limit after it."""

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


class Server:
    """The server of the rendezvous, which listens from the start, even if rank 0 cannot start."""

    def __init__(self, identity: "LaunchIdentity", reservation: "Reservation") -> None:
        self.identity = identity
        self.reservation = reservation
        self.hosts: "Dict[int, str]" = {0: hostname()}
        self.pending: "Dict[Connection, float]" = {}  # with the deadline of their first line
        self.joined: "Dict[int, Connection]" = {}
        self.duplicates: "List[Connection]" = []
        self.devices: "Dict[Tuple[str, str], str]" = {}
        self.problems: "List[str]" = []
        self.began = time.monotonic()
        self.end = self.began + identity.seconds
        self.noticed = False
        self.local: "Optional[str]" = None

    def left(self) -> float:
        """Return the seconds until the timeout; few once a rank has failed."""
        now = time.monotonic()
        if self.problems:
            self.end = min(self.end, now + AFTER_PROBLEM_SHARE * self.identity.seconds)
        return self.end - now

    def missing(self) -> "List[int]":
        return [rank for rank in range(1, self.identity.size) if rank not in self.joined]

    def serve(self, answer: "Answer") -> "Answer":
        """Wait for all ranks and answer them; raise `LaunchError` with the problem."""
        me = self.identity
        with descriptors(me.size):
            self.record("rank 0 on {}".format(hostname()), hostname(), me.device, me.problem)
            while len(self.joined) + len(self.duplicates) < me.size - 1 and self.left() > 0:
                self.accept()
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
        for rank, connection in self.joined.items():
            connection.send("go", answer.address, str(answer.port), *map(str, nodes[rank]))
            connection.close()
        return answer

    def nodes(self) -> "Dict[int, Tuple[int, int]]":
        """Return the number of each rank's node in the order of the ranks, and its ranks."""
        ranks: "Dict[str, List[int]]" = {}
        for rank in range(self.identity.size):
            ranks.setdefault(self.hosts[rank], []).append(rank)
        return {
            rank: (node, len(neighbours))
            for node, neighbours in enumerate(ranks.values())
            for rank in neighbours
        }

    def accept(self) -> None:
        """Accept connections and read first lines, without waiting for any single one."""
        listener = self.reservation.listener
        poll = select.poll()
        for source in (listener, *(connection.sock for connection in self.pending)):
            poll.register(source, select.POLLIN)
        if any(number == listener.fileno() for number, _ in poll.poll(TURN_SECONDS * 1000)):
            connection = Connection(listener.accept()[0])
            self.pending[connection] = time.monotonic() + FIRST_LINE_SECONDS
        for connection, deadline in list(self.pending.items()):
            fields = connection.read_line(0)
            if fields is not None or connection.ended or time.monotonic() > deadline:
                del self.pending[connection]
                self.reply(connection, fields or [])

    def reply(self, connection: Connection, fields: "List[str]") -> None:
        """Keep a rank of this launch; refuse any other program."""
        if len(fields) != JOIN_FIELDS or fields[:2] != [PROTOCOL, self.identity.launch]:
            connection.send("other-launch")
            connection.close()
            return
        trouble = self.join(connection, *fields[2:])
        if trouble:
            self.problems.append(trouble)
            self.duplicates.append(connection)
        connection.send("wait")

    def join(self, connection: Connection, *fields: str) -> str:
        """Record a rank, or return the reason why it cannot join."""
        rank, size, host, device, problem = fields
        who = "rank {} on {}".format(rank, host)
        if size != str(self.identity.size) or not is_number(rank) or not 0 < int(rank) < int(size):
            return "{} has a world size of {}, not {}".format(who, size, self.identity.size)
        before = self.joined.get(int(rank))
        if before and not before.is_closed():
            return "{} joined twice".format(who)
        here, there = connection.addresses()
        if here != there:  # from another machine: the address that reaches it
            self.local = here
        self.joined[int(rank)] = connection
        self.hosts[int(rank)] = host
        self.record(who, host, device, problem)
        return ""

    def record(self, who: str, host: str, device: str, problem: str) -> None:
        """Record the reason why a rank cannot start; a device of two ranks is one, too."""
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
            say(message.format(self.missing_ranks(), self.identity.size, self.identity.seconds))

    def missing_ranks(self) -> str:
        missing = [str(rank) for rank in self.missing()]
        more = ", …" if len(missing) > SHOWN_RANKS else ""
        plural = "s" if len(missing) > 1 else ""
        return "rank{} {}{}".format(plural, ", ".join(missing[:SHOWN_RANKS]), more)

    def find_lost(self) -> None:
        """Record ranks that joined and have ended since."""
        for rank, connection in self.joined.items():
            if connection.is_closed():
                self.problems.append("rank {} ended before the start".format(rank))

    def reason(self) -> str:
        """Return what keeps the launch from starting, or an empty text."""
        self.find_lost()
        if self.problems:
            return "; ".join(self.problems[:3])
        if not self.missing():
            return ""
        message = (
            "{} of {} did not join rank 0 on {} within {:.0f} s. Look for an error of the missing"
            " ranks above. If they only start slowly, set SIFWRIGHT_START_TIMEOUT to more seconds"
        )
        values = self.missing_ranks(), self.identity.size, hostname(), self.identity.seconds
        return message.format(*values)

    def stop(self, reason: str) -> None:
        for connection in (*self.joined.values(), *self.duplicates):
            connection.send("stop", reason)
            connection.close()


def say(message: str) -> None:
    print("conda-python-distributed: {}".format(message), file=sys.stderr, flush=True)


def reserve_first(ports: "List[int]") -> "Reservation":
    """Reserve the first free port; raise `LaunchError` if all are in use."""
    for port in ports:
        reservation = reserve(port)
        if reservation:
            return reservation
    message = "none of the ports {} is free on {}: set MASTER_PORT to one that is"
    raise LaunchError(message.format(", ".join(map(str, ports)), hostname()), EX_UNAVAILABLE)
