"""The reservation of a port, from the rendezvous until rank 0's Python ends."""

import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

BACKLOG = 4096  # Linux's own limit (net.core.somaxconn) since 5.4


class Reservation:
    """A reserved port: `listener` serves the rendezvous, `held` stays open for Python."""

    def __init__(self, port: int, held: "List[socket.socket]", listener: socket.socket) -> None:
        self.port = port
        self.held = held
        self.listener = listener

    def hand_over(self) -> None:
        """Stop listening and let the reservation outlive exec.

        The bound socket keeps the port from programs that do not set SO_REUSEADDR. TCPStore of
        torch sets it (through libuv), so TCPStore can listen there.
        """
        self.listener.close()
        for sock in self.held:
            sock.set_inheritable(True)
            sock.detach()

    def give_back(self) -> None:
        for sock in (self.listener, *self.held):
            sock.close()


def reserve(port: int) -> "Optional[Reservation]":
    """Take a port and listen at it; None if it is in use."""
    held: "List[socket.socket]" = []
    try:
        held.append(lock_port(port))
        held.append(bound(port))
        listener = bound(port)
        held.append(listener)
        listener.listen(BACKLOG)
    except OSError:
        for sock in held:
            sock.close()
        return None
    return Reservation(port, held[:2], listener)


def lock_port(port: int) -> socket.socket:
    """Take the name that stands for the port among all launches on this machine.

    SO_REUSEADDR lets two processes bind a port as long as neither listens. An abstract name is in
    the same network namespace as the port. It needs no file, and is free when its process ends.
    """
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind("\0sifwright-port-{}".format(port))
    except OSError:
        lock.close()
        raise
    return lock


def bound(port: int) -> socket.socket:
    """Return a socket at the port on all addresses, of IPv6 too where the machine has it."""
    if os.path.exists("/proc/net/if_inet6") and socket.has_ipv6:
        try:
            return bound_to(socket.AF_INET6, port)
        except OSError as error:
            import errno  # noqa: PLC0415

            if error.errno == errno.EADDRINUSE:
                raise
    return bound_to(socket.AF_INET, port)


def bound_to(family: int, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("", port))
    except OSError:
        sock.close()
        raise
    return sock


def is_free(port: int) -> bool:
    """Tell whether no process uses the port now."""
    reserved = reserve(port)
    if reserved:
        reserved.give_back()
    return reserved is not None
