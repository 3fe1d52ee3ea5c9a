"""Where the ranks meet: MASTER_ADDR and MASTER_PORT, agreed on by all of them."""

import os

from . import hosts, ports
from .errors import LaunchError
from .variables import is_number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional

    from .reservation import Reservation
    from .rollcall import Answer, Party
    from .variables import Env

# For all ranks to come: launchers start nodes one after the other, and a shared file system that
# has just the speed of a disk (100 MB/s) reads or unpacks a gigabyte of an image in ten seconds.
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
        """About as many as there are: nodes need not have equally many."""
        return -(-self.size // self.neighbours)


class Place:
    """The agreed address and port.

    `local` is this rank's own address on the way there and `node` the number of its node, each None
    where no roll call told.
    """

    def __init__(self, address: str, port: int) -> None:
        self.address = address
        self.port = port
        self.local: "Optional[str]" = None
        self.node: "Optional[int]" = None


def meet(env: "Env", group: Group, check: "Callable[[], None]") -> Place:
    """Agree with all ranks on the place, or end with the reason on all of them.

    `check` raises `LaunchError` if this rank cannot start; the others hear of it.
    """
    if group.size == 1:
        check()
        return Place(env.get("MASTER_ADDR", hosts.LOOPBACK), single_port(env))
    if not group.known or env.get("SIFWRIGHT_ROLL_CALL") == "0":
        check()
        return Place(master(env, group), first_port(env, group))
    return call_roll(env, group, check)


def single_port(env: "Env") -> int:
    """Nobody else has to come to the same port."""
    if env.get("MASTER_PORT") or ports.has_reserved_ports(env):
        return ports.candidates(env)[1][0]
    return ports.free_port()


def first_port(env: "Env", group: Group) -> int:
    found = ports.candidates(env)[1]
    if not found:
        raise ports.without_port(group.size)
    return found[0]


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
    """Each node would wait for rank 0 at its own address."""
    if group.known and group.nodes > 1 and hosts.is_loopback(env["MASTER_ADDR"]):
        message = "{} is every node's own address, but the {} ranks are on several nodes: unset it"
        raise LaunchError(message.format(shown(env, "MASTER_ADDR"), group.size))


# --- the roll call --------------------------------------------------------------------------------


def call_roll(env: "Env", group: Group, check: "Callable[[], None]") -> Place:
    """Hold the roll call. Everything raised before it is raised alike on every rank."""
    # Here: they load `socket`, 11 ms that a single process need not pay.
    from .follower import Follower  # noqa: PLC0415
    from .rollcall import Party  # noqa: PLC0415

    host = master(env, group)
    variable, own = ports.candidates(env)
    name = ports.launch_name(env)
    if not own:
        raise ports.without_port(group.size)
    name = name or "{}:{}".format(host, own[0])
    # A door to meet at where MASTER_PORT itself is taken: then, too, everybody is to hear of it.
    doors = list(dict.fromkeys(own + ports.hashed_ports(name)))
    party = Party(name, group.rank, group.size, doors, start_seconds(env, group))
    if group.rank == 0:
        answer = lead(party, Claim(env, group, host, variable, own), check)
    else:
        at = hosts.LOOPBACK if group.nodes == 1 else host
        party.problem = problem_of(check)
        party.device = group.device
        answer = Follower(party, at).call()
    place = Place(answer.address, answer.port)
    place.local = answer.local
    # Hosts of one name would count as one node.
    place.node = answer.node if answer.neighbours == group.neighbours else None
    return place


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


class Claim:
    """What rank 0 was told to use: the host, and the ports a variable names."""

    def __init__(
        self, env: "Env", group: Group, host: str, variable: str, ports_: "List[int]"
    ) -> None:
        self.env = env
        self.group = group
        self.host = host
        self.variable = variable
        self.ports = ports_


def lead(party: "Party", claim: Claim, check: "Callable[[], None]") -> "Answer":
    """Rank 0: stand at the door, say whether and where to meet, keep the port for Python."""
    from .leader import Leader, open_door  # noqa: PLC0415
    from .rollcall import Answer  # noqa: PLC0415

    door = place = open_door(party.doors)
    address = claim.host
    try:
        check()
        place = claimed_port(claim, door)
        address = claimed_address(claim)
    except LaunchError as error:
        party.problem = str(error)
    party.device = claim.group.device
    answer = Leader(party, door).call(Answer(address, place.port))
    place.hand_over()
    if place is not door:
        door.give_back()
    return answer


def claimed_port(claim: Claim, door: "Reservation") -> "Reservation":
    """Return the reservation of the port that a variable asks for, or that of the door."""
    from .reservation import reserve  # noqa: PLC0415
    from .rollcall import hostname  # noqa: PLC0415

    if not claim.variable or door.port in claim.ports:
        return door
    for port in claim.ports:
        place = reserve(port)
        if place:
            return place
    message = "{} is in use on {}: {}"
    advice = "unset it, or set it to a free port, for example {}".format(door.port)
    if claim.variable != "MASTER_PORT":
        advice = "set MASTER_PORT to a free port, for example {}".format(door.port)
    text = shown(claim.env, claim.variable)
    raise LaunchError(message.format(text, hostname(), advice))


def claimed_address(claim: Claim) -> str:
    """Return the address for everybody, after making sure that it is one of this machine."""
    from . import network  # noqa: PLC0415
    from .rollcall import hostname  # noqa: PLC0415

    env, group = claim.env, claim.group
    if env.get("SIFWRIGHT_INTERFACE") and group.nodes > 1 and "MASTER_ADDR" not in env:
        return network.address_of_interface(env["SIFWRIGHT_INTERFACE"], "SIFWRIGHT_INTERFACE")
    if network.is_own(claim.host):
        return claim.host
    if group.nodes == 1 and "MASTER_ADDR" not in env:
        return hosts.LOOPBACK
    message = (
        "rank 0 runs on {}, and MASTER_ADDR='{}' is not an address of it ({}): set MASTER_ADDR to"
        " the host of rank 0"
    )
    raise LaunchError(message.format(hostname(), claim.host, network.why_not_own(claim.host)))
