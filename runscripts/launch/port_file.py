"""A port that rank 0 chose, published for the other ranks in a folder that all of them see."""

import os
import time

from .errors import EX_UNAVAILABLE, LaunchError
from .variables import is_number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Optional

    from .variables import Env

VARIABLE = "SIFWRIGHT_SHARED_DIR"
WAIT_SECONDS = 30.0
PAUSE_SECONDS = 0.05
ASKING_SECONDS = 1.0


def published_port(env: "Env", launch: str, ports: "List[int]", rank: int) -> int:
    """Return the port of this launch; rank 0 chooses a free one, once, and the others wait for it.

    The launch's name (job, step, restart) is the file's, so that no other launch reads it. A
    second call returns the same port, or raises if another program has taken it since.
    """
    path = "{}/sifwright-port-{}".format(env[VARIABLE], "-".join(launch.split()).replace("/", "-"))
    if rank == 0:
        earlier = read(path)
        publish(env, path, still_free(earlier) if earlier else free(ports))
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        port = read(path)
        if port is not None:
            return port
        time.sleep(PAUSE_SECONDS)
    message = "rank 0 published no port in {} within {:.0f} s: do all nodes see the same folder?"
    raise LaunchError(message.format(shown(env, VARIABLE), WAIT_SECONDS), EX_UNAVAILABLE)


def still_free(port: int) -> int:
    """Return the port that was published before; raise `LaunchError` if it is in use now.

    Other calls of this launch at the same moment use the port as well, for a short time.
    """
    from .reservation import is_free  # noqa: PLC0415  # loads `socket`

    deadline = time.monotonic() + ASKING_SECONDS
    while time.monotonic() < deadline:
        if is_free(port):
            return port
        time.sleep(PAUSE_SECONDS)
    return free([port])


def free(ports: "List[int]") -> int:
    """Return the first free port; raise `LaunchError` if all are in use."""
    from .reservation import is_free  # noqa: PLC0415  # loads `socket`

    for port in ports:
        if is_free(port):
            return port
    message = "none of the ports {} is free: set MASTER_PORT to one that is"
    raise LaunchError(message.format(", ".join(map(str, ports))), EX_UNAVAILABLE)


def read(path: str) -> "Optional[int]":
    """Return the published port, or None as long as there is none."""
    try:
        with open(path, encoding="ascii") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                raise LaunchError("{} belongs to another user: remove it".format(path))
            text = file.read().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LaunchError("{} cannot be read: {}".format(path, error.strerror)) from None
    return int(text) if is_number(text) else None


def publish(env: "Env", path: str, port: int) -> None:
    """Write the file whole; if another process did so at the same moment, keep its port."""
    part = "{}.{}.{}".format(path, os.uname().nodename, os.getpid())
    try:
        with open(part, "w", encoding="ascii") as file:
            file.write("{}\n".format(port))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(part, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(part)
    except OSError as error:
        message = "{} cannot be written: {}".format(shown(env, VARIABLE), error.strerror)
        raise LaunchError(message) from None
