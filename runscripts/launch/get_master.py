"""Print the host (and port) where rank 0 listens: the same answer on every rank.

- get-master [NODELIST]          MASTER_ADDR, else the first host of the list, else 127.0.0.1
- get-master --interface hsn0    the same host's address on that network
- get-master --hosts [NODELIST]  every host of the list, one a line
- get-master --port              MASTER_PORT, else a port for this job step
- get-master --endpoint          both, as HOST:PORT

Without NODELIST the list is that of the Slurm step, else of the Slurm, PBS or LSF job.
"""

import argparse
import os
import sys

from . import hosts, ports
from .errors import LaunchError
from .launchers import FLUX, HYDRA, JSRUN, OPEN_MPI, PALS, find_launcher, local_size
from .variables import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Optional, Tuple

    from .variables import Env


# A preset rank, then the launchers' in the order of find_launcher().
LAUNCHERS = (JSRUN, OPEN_MPI, PALS, FLUX, HYDRA)
RANKS = ("RANK", *(launcher.rank for launcher in LAUNCHERS), "SLURM_PROCID")


def master_addr(env: "Env", nodelist: "Optional[str]") -> str:
    """Return the host of rank 0; raise `LaunchError` if nothing names it."""
    if nodelist is not None:  # a given list means its first host
        return hosts.first(env, nodelist)
    if env.get("MASTER_ADDR"):
        return env["MASTER_ADDR"]
    if env.get("WORLD_SIZE") != "1" and env.get(hosts.MASTER_HOST):
        return env[hosts.MASTER_HOST]
    # One rank talks to no other rank, and a shell in an allocation may not be on its first host.
    if env.get("WORLD_SIZE") != "1" and hosts.has_hosts(env):
        return hosts.first(env)
    ranks, here = sizes(env)
    if ranks > here > 0:
        raise hosts.unknown_master(ranks, here)
    return hosts.LOOPBACK


def sizes(env: "Env") -> "Tuple[int, int]":
    """Return the number of ranks and of those on this node; 0 if unknown."""
    if "WORLD_SIZE" in env:
        here = number(env, "LOCAL_WORLD_SIZE") if "LOCAL_WORLD_SIZE" in env else 0
        return number(env, "WORLD_SIZE"), here
    # A Slurm job has its list, and its batch script speaks for ranks that are not there yet.
    launcher = None if "SLURM_JOB_ID" in env else find_launcher(env)
    return (number(env, launcher.size), local_size(env, launcher)) if launcher else (0, 0)


def master_port(env: "Env") -> int:
    """Return the port; on rank 0, raise `LaunchError` if it is in use."""
    variable, listed = ports.candidates(env)
    # An unknown job may have many ranks.
    ranks = sizes(env)[0] or (2 if listed else 1)
    if ranks == 1 and not variable:
        return ports.free_port()  # no other rank has to find the same port
    if not listed:
        raise ports.without_port(ranks)
    if variable:
        return listed[0]
    if env.get("SIFWRIGHT_SHARED_DIR"):
        from .port_file import published_port  # noqa: PLC0415  # not needed everywhere

        return published_port(env, ports.launch_name(env), listed, own_rank(env))
    refuse_used(env, listed[0])
    return listed[0]


def own_rank(env: "Env") -> int:
    """Return this process's rank; a batch script's is 0, as it speaks for rank 0."""
    return next((number(env, name) for name in RANKS if name in env), 0)


def refuse_used(env: "Env", port: int) -> None:
    """Refuse a port in use, on rank 0: the other ranks would reach another program there."""
    from .reservation import is_free  # noqa: PLC0415  # loads `socket`

    if own_rank(env) == 0 and not is_free(port):
        message = "port {} of this launch is in use on {}: set MASTER_PORT, for example to {}"
        raise LaunchError(message.format(port, os.uname().nodename, ports.free_port()))


def parse_arguments(arguments: "List[str]") -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="get-master", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nodelist", nargs="?", help="a list like nid[001-004],gpu7")
    parser.add_argument(
        "--interface",
        default="",
        help="the master's address on the network of this interface, such as hsn0",
    )
    chosen = parser.add_mutually_exclusive_group()
    for name in ("hosts", "port", "endpoint"):
        chosen.add_argument("--" + name, dest="output", action="store_const", const=name)
    return parser.parse_args(arguments)


def answer(arguments: argparse.Namespace, env: "Env") -> "Iterable[object]":
    """Return the lines to print."""
    if arguments.output == "hosts":
        return hosts.every(env, arguments.nodelist)
    if arguments.output == "port":
        return [master_port(env)]
    address = master_addr(env, arguments.nodelist)
    if arguments.interface:
        from .network import address_on  # noqa: PLC0415  # loads `socket`

        address = address_on(address, arguments.interface)
    if arguments.output == "endpoint":
        return ["{}:{}".format(address, master_port(env))]
    return [address]


def main() -> int:
    """Run the command; return its exit status."""
    arguments = parse_arguments(sys.argv[1:])
    try:
        for line in answer(arguments, dict(os.environ)):
            print(line)
        sys.stdout.flush()
    except LaunchError as error:
        print("get-master: {}".format(error), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `get-master --hosts | head -1` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
