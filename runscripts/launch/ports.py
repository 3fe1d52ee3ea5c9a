"""The port of the rendezvous."""

from zlib import crc32

from . import hydra
from .errors import LaunchError
from .hosts import started_by_mpirun
from .launchers import FLUX, HYDRA, JSRUN, OPEN_MPI, PALS, SLURM_IDENTITY
from .variables import is_number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

    from .variables import Env

# Above Linux's default ephemeral range, which ends at 60999 (ip-sysctl.rst): no outgoing
# connection gets in the way.
FIRST_PORT, LAST_PORT = 61001, 65535
MAX_PORT = 65535

# Number of ports that are tried for a launch's name. With half of the range in use, one launch in
# 65,000 finds none.
TRIES = 16


def launch_name(env: "Env") -> str:
    """Name this launch alike on every rank and unlike any other launch; empty if unknown."""
    for launcher in (JSRUN, OPEN_MPI, FLUX):
        if launcher.rank in env:
            return joined(env, launcher.identity)
    name = hydra.launch() if HYDRA.local_rank in env else ""
    if name:
        return name
    for names in (SLURM_IDENTITY, PALS.identity, JSRUN.identity):
        if names[0] in env:
            return joined(env, names)
    return ""


def joined(env: "Env", names: "Tuple[str, ...]") -> str:
    """Join the values; nothing if not even the first is known."""
    if not any(env.get(name) for name in names):
        return ""
    return " ".join(env.get(name, "") or "0" for name in names)


def checked_port(env: "Env", name: str, text: str) -> int:
    """Return a port; raises `LaunchError` that names the variable it came from."""
    if not is_number(text) or not 0 < int(text) <= MAX_PORT:
        raise LaunchError("{} is not a port (1 to 65535)".format(shown(env, name)))
    return int(text)


def candidates(env: "Env") -> "Tuple[str, List[int]]":
    """Return the ports of this launch's rendezvous, best first, and the variable that names them.

    The same on every rank. Without a port or a name of the launch in the environment: none.
    """
    if env.get("MASTER_PORT"):
        return "MASTER_PORT", [checked_port(env, "MASTER_PORT", env["MASTER_PORT"])]
    if has_reserved_ports(env):
        return "SLURM_STEP_RESV_PORTS", reserved_ports(env, "SLURM_STEP_RESV_PORTS")
    name = launch_name(env)
    return "", hashed_ports(name) if name else []


def has_reserved_ports(env: "Env") -> bool:
    """Tell whether srun reserved ports for the ranks.

    On HPE Cray EX they are for the start of MPI (PMI_CONTROL_PORT is one of them), which listens
    there later. Below mpirun they are those of the step of its daemons.
    """
    taken = "PMI_CONTROL_PORT" in env or started_by_mpirun(env)
    return bool(env.get("SLURM_STEP_RESV_PORTS")) and not taken


def reserved_ports(env: "Env", name: str) -> "List[int]":
    """Read what `srun --resv-ports` reserved on every node of the step: 12345-12347,12350."""
    ports: "List[int]" = []
    for item in env[name].strip("[]").split(","):
        low, _, high = item.partition("-")
        first = checked_port(env, name, low)
        last = checked_port(env, name, high or low)
        ports += range(first, min(last, first + TRIES) + 1)
    return ports[:TRIES]


def hashed_ports(name: str) -> "List[int]":
    """Return the ports that follow from a launch's name."""
    size = LAST_PORT - FIRST_PORT + 1
    data = name.encode("utf-8", "surrogateescape")
    numbers = [crc32(data + b" %d" % index if index else data) for index in range(TRIES)]
    return list(dict.fromkeys(FIRST_PORT + number % size for number in numbers))


def free_port() -> int:
    """Return a free port.

    It imports `_socket`, the part of `socket` in C. The rest takes 11 ms to load, which every
    process would pay.
    """
    from _socket import socket  # noqa: PLC0415

    probe = socket()
    try:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
    finally:
        probe.close()


def without_port(ranks: int) -> LaunchError:
    """Return the error of a launch without a name."""
    message = (
        "MASTER_PORT is not set, and no variable names the job, so WORLD_SIZE='{}' ranks cannot"
        " derive the same port. Set MASTER_PORT, for example to {}"
    )
    return LaunchError(message.format(ranks, free_port()))
