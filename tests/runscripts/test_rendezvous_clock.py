"""Rank 0 after time has passed: a clock of the test, and sockets in one process."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from launch import rendezvous_server
from launch.errors import LaunchError
from launch.rendezvous_protocol import Answer, LaunchIdentity
from launch.rendezvous_server import FIRST_LINE_SECONDS, Server, reserve_first

from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT = 3600


class Clock:
    """A clock that the test moves."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(rendezvous_server, "time", clock)
    return clock


@pytest.fixture
def server(clock: Clock) -> Iterator[Server]:
    """Start rank 0 of four."""
    assert clock.now
    port = free_port()
    identity = LaunchIdentity("job", 0, 4, [port], TIMEOUT)
    server = Server(identity, reserve_first([port]))
    yield server
    server.reservation.give_back()


def connected(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.reservation.port), 60)


def joined(server: Server, rank: int) -> socket.socket:
    guest = connected(server)
    guest.sendall(f"sifwright-1\tjob\t{rank}\t4\thost\t\t\n".encode())
    while rank not in server.joined:
        server.accept()
    assert guest.recv(100) == b"wait\n"
    return guest


def test_rank_that_never_comes_is_named(server: Server, clock: Clock) -> None:
    with joined(server, 1) as first, joined(server, 3) as third:
        clock.now += TIMEOUT
        with pytest.raises(LaunchError, match=r"^rank 2 of 4 did not join .* within 3600 s"):
            server.serve(Answer("127.0.0.1", 1))
        for guest in (first, third):
            assert guest.recv(1000).startswith(b"stop\trank 2 of 4 did not join rank 0")


def test_program_that_sends_byte_after_byte_is_refused(server: Server, clock: Clock) -> None:
    with connected(server) as slow:
        while not server.pending:
            server.accept()
        for _ in range(2):
            clock.now += FIRST_LINE_SECONDS / 2
            slow.sendall(b"x")
            server.accept()
            assert server.pending
        clock.now += 0.1
        server.accept()
        assert slow.recv(100) == b"other-launch\n"


def test_the_others_get_a_quarter_of_the_time_after_a_problem(server: Server) -> None:
    assert server.left() == TIMEOUT
    server.problems.append("any")
    assert server.left() == TIMEOUT / 4
