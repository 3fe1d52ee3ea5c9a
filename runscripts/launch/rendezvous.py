"""The rendezvous: all ranks agree on MASTER_ADDR and MASTER_PORT."""

import os

from . import hosts, ports
from .errors import LaunchError
from .variables import is_number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional

    from .rendezvous_protocol import Answer, LaunchIdentity
    from .reservation import Reservation
    from .variables import Env

# Time for all ranks to join. Launchers start nodes one after the other. A shared file system that
# reads 100 MB/s, like a disk, needs ten seconds for a gigabyte of an image.
START_SECONDS = 60
SECONDS_PER_NODE = 1
SECONDS_PER_GIGABYTE = 10


class Group:
    """The ranks of a launch, or one agent per node; `known` if a launcher started them.

    `device` is the number of this rank's GPU where several can be seen, for rank 0 to compare.
    """

    device = ""

    def __init__(self, rank: int, size: int, neighbours: int, *, known: bool) -> None:
        self.rank = rank
        self.size = size
        self.neighbours = neighbours  # on this node, this one included
        self.known = known

    @property
    def nodes(self) -> int:
        """Estimate the number of nodes, which may have different numbers of ranks."""
        return -(-self.size // self.neighbours)


class RendezvousAddress:
    """The agreed address and port.

    `local` is this rank's own address towards it, and `node` the number of its node. Both are None
    without a rendezvous.
    """

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        self.local: "Optional[str]" = None
        self.node: "Optional[int]" = None


def rendezvous(env: "Env", group: Group, check: "Callable[[], None]") -> RendezvousAddress:
    """Agree with all ranks on the address, or end with one reason on all ranks.

    `check` raises `LaunchError` if this rank cannot start; the other ranks get the reason.
    """
    if group.size == 1:
        check()
        return RendezvousAddress(env.get("MASTER_ADDR", hosts.LOOPBACK), single_port(env))
    if not group.known or env.get("SIFWRIGHT_ROLL_CALL") == "0":
        check()
        return RendezvousAddress(master(env, group), first_port(env, group))
    return join_ranks(env, group, check)


def single_port(env: "Env") -> int:
    """Return a port of a launch with one rank: no other rank has to find it."""
    if env.get("MASTER_PORT") or ports.has_reserved_ports(env):
        return ports.candidates(env)[1][0]
    return ports.free_port()


def first_port(env: "Env", group: Group) -> int:
    listed = ports.candidates(env)[1]
    if not listed:
        raise ports.without_port(group.size)
    return listed[0]


def master(env: "Env", group: Group) -> str:
    """Return the host of rank 0 as the environment says it; else raises `LaunchError`."""
    if env.get("MASTER_ADDR"):
        refuse_loopback(env, group)
        return env["MASTER_ADDR"]
    if env.get(hosts.MASTER_HOST):
        return env[hosts.MASTER_HOST]
    if hosts.has_hosts(env):
        return hosts.first(env)
    if group.nodes == 1:
        return hosts.LOOPBACK
    raise hosts.unknown_master(group.size, group.neighbours)


def refuse_loopback(env: "Env", group: Group) -> None:
    """Refuse a loopback address: each node would wait for rank 0 at its own."""
    if group.known and group.nodes > 1 and hosts.is_loopback(env["MASTER_ADDR"]):
        message = "{} is every node's own address, but the {} ranks are on several nodes: unset it"
        raise LaunchError(message.format(shown(env, "MASTER_ADDR"), group.size))


# --- all ranks ------------------------------------------------------------------------------------


def join_ranks(env: "Env", group: Group, check: "Callable[[], None]") -> RendezvousAddress:
    """Join all ranks. Errors before that are the same on every rank."""
    # Here: they load `socket`, 11 ms that a single process need not pay.
    from .rendezvous_client import Client  # noqa: PLC0415
    from .rendezvous_protocol import LaunchIdentity  # noqa: PLC0415

    host = master(env, group)
    variable, own = ports.candidates(env)
    name = ports.launch_name(env)
    if not own:
        raise ports.without_port(group.size)
    name = name or "{}:{}".format(host, own[0])
    # If MASTER_PORT itself is taken, the ranks join at another port and get the reason.
    listed = list(dict.fromkeys(own + ports.hashed_ports(name)))
    identity = LaunchIdentity(name, group.rank, group.size, listed, start_seconds(env, group))
    if group.rank == 0:
        answer = lead(identity, RankZeroSettings(env, group, host, variable, own), check)
    else:
        at = hosts.LOOPBACK if group.nodes == 1 else host
        identity.problem = problem_of(check)
        identity.device = group.device
        answer = Client(identity, at).join()
    agreed = RendezvousAddress(answer.address, answer.port)
    agreed.local = answer.local
    # Hosts of one name would count as one node.
    agreed.node = answer.node if answer.neighbours == group.neighbours else None
    return agreed


def start_seconds(env: "Env", group: Group) -> float:
    """Return how long rank 0 waits for the others, in seconds."""
    name = "SIFWRIGHT_START_TIMEOUT"
    if name not in env:
        seconds = START_SECONDS + SECONDS_PER_NODE * group.nodes
        return seconds + SECONDS_PER_GIGABYTE * image_size(env) // 10**9
    if not is_number(env[name]) or env[name] == "0":
        raise LaunchError("{} is not a number of seconds".format(shown(env, name)))
    return int(env[name])


def image_size(env: "Env") -> int:
    """Return the size of the image in bytes; 0 outside of one, or where it does not see itself."""
    try:
        return os.stat(env.get("APPTAINER_CONTAINER") or env["SINGULARITY_CONTAINER"]).st_size
    except (KeyError, OSError):
        return 0


def problem_of(check: "Callable[[], None]") -> str:
    try:
        check()
    except LaunchError as error:
        return str(error)
    return ""


class RankZeroSettings:
    """Settings of rank 0: the host, and the ports that a variable names."""

    def __init__(
        self, env: "Env", group: Group, host: str, variable: str, ports_: "List[int]"
    ) -> None:
        self.env = env
        self.group = group
        self.host = host
        self.variable = variable
        self.ports = ports_


def lead(
    identity: "LaunchIdentity", settings: RankZeroSettings, check: "Callable[[], None]"
) -> "Answer":
    """Serve the rendezvous on rank 0, and keep the port for Python."""
    from .rendezvous_protocol import Answer  # noqa: PLC0415
    from .rendezvous_server import Server, reserve_first  # noqa: PLC0415

    listening = reserved = reserve_first(identity.ports)
    address = settings.host
    try:
        check()
        reserved = requested_port(settings, listening)
        address = requested_address(settings)
    except LaunchError as error:
        identity.problem = str(error)
    identity.device = settings.group.device
    answer = Server(identity, listening).serve(Answer(address, reserved.port))
    reserved.hand_over()
    if reserved is not listening:
        listening.give_back()
    return answer


def requested_port(settings: RankZeroSettings, listening: "Reservation") -> "Reservation":
    """Return the reservation of the port that a variable asks for, or `listening`."""
    from .rendezvous_protocol import hostname  # noqa: PLC0415
    from .reservation import reserve  # noqa: PLC0415

    if not settings.variable or listening.port in settings.ports:
        return listening
    for port in settings.ports:
        reserved = reserve(port)
        if reserved:
            return reserved
    message = "{} is in use on {}: {}"
    advice = "unset it, or set it to a free port, for example {}".format(listening.port)
    if settings.variable != "MASTER_PORT":
        advice = "set MASTER_PORT to a free port, for example {}".format(listening.port)
    text = shown(settings.env, settings.variable)
    raise LaunchError(message.format(text, hostname(), advice))


def requested_address(settings: RankZeroSettings) -> str:
    """Return the address for all ranks; raise `LaunchError` if it is not this machine's."""
    from . import network  # noqa: PLC0415
    from .rendezvous_protocol import hostname  # noqa: PLC0415

    env, group = settings.env, settings.group
    if env.get("SIFWRIGHT_INTERFACE") and group.nodes > 1 and "MASTER_ADDR" not in env:
        return network.address_of_interface(env["SIFWRIGHT_INTERFACE"], "SIFWRIGHT_INTERFACE")
    if network.is_own(settings.host):
        return settings.host
    if group.nodes == 1 and "MASTER_ADDR" not in env:
        return hosts.LOOPBACK
    source = "MASTER_ADDR=" if "MASTER_ADDR" in env else "the first host of the launch, "
    message = (
        "rank 0 runs on {}, and {}'{}' is not an address of it ({}): set MASTER_ADDR to the host of"
        " rank 0"
    )
    why = network.why_not_own(settings.host)
    raise LaunchError(message.format(hostname(), source, settings.host, why))
