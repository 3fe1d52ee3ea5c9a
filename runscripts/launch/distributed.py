"""conda-python-distributed: set up this rank's environment, join the others, become Python."""

import os
import sys

from . import debug, devices, folders, guarding, site_environment
from .errors import EX_UNAVAILABLE, LaunchError
from .hosts import LOOPBACK
from .launchers import find_launcher, local_size, refuse_lost_environment
from .ports import launch_name
from .ranks import NAMES, find_ranks, refuse_empty
from .rendezvous import Group, rendezvous
from .threads import threads
from .variables import is_number, number, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, NoReturn, Optional, Tuple

    from .launchers import Launcher
    from .rendezvous import RendezvousAddress
    from .variables import Env

    Command = Tuple[List[str], Env]

EXPAND = "--expand-variables"
OPTIONS = ("--nproc-per-node", "--nproc_per_node")
MAX_RANKS_DIGITS = 6
HERE = os.path.dirname(os.path.abspath(__file__))
AGENT, EXPANSION = os.path.join(HERE, "agent.py"), os.path.join(HERE, "expansion.py")


def main(arguments: "List[str]") -> "NoReturn":
    """Become Python, or print the reason in one line."""
    try:
        words, env = command(arguments, dict(os.environ))
    except LaunchError as error:
        fail(str(error), error.exit_code)
    except OSError as error:  # of the machine: no socket, no descriptor left
        fail(str(error), EX_UNAVAILABLE)
    except KeyboardInterrupt:
        fail("stopped while waiting for the other ranks", 128 + 2)  # as a shell says SIGINT
    # The very Python that runs this: the environment's, as the activation found it.
    os.execve(sys.executable, [sys.executable, *words], env)  # noqa: S606  # a shell would not exec


def fail(message: str, status: int) -> "NoReturn":
    sys.stderr.write("conda-python-distributed: {}\n".format(message))
    sys.exit(status)


def command(arguments: "List[str]", env: "Env") -> "Command":
    """Return the arguments and the environment of Python; join the other ranks."""
    refuse_empty(env)
    launcher = find_launcher(env)
    wanted, expanding, arguments = options(arguments)
    if wanted is not None:
        return local_ranks(env, launcher, wanted, program(arguments, expanding=expanding))
    words, env = one_rank(env, launcher, arguments)
    return (expanded(words, env) if expanding else words), env


def program(arguments: "List[str]", *, expanding: bool) -> "List[str]":
    """Return the program of torchrun's ranks; torchrun itself knows scripts and -m only."""
    if expanding:
        return [EXPANSION, *arguments]
    if arguments[:1] == ["-c"]:
        return ["--no-python", sys.executable, "-u", *arguments]
    return arguments


def options(arguments: "List[str]") -> "Tuple[Optional[str], bool, List[str]]":
    """Return the ranks per node, if asked for, whether to expand variables, and the rest."""
    wanted, expanding = None, False
    while arguments:
        option, equals, value = arguments[0].partition("=")
        if option in OPTIONS:
            wanted = value if equals else "".join(arguments[1:2])
            arguments = arguments[1 if equals else 2 :]
        elif arguments[0] == EXPAND:
            expanding, arguments = True, arguments[1:]
        else:
            break
    return wanted, expanding, arguments


def expanded(arguments: "List[str]", env: "Env") -> "List[str]":
    """Return the arguments with the values of this rank's variables."""
    from .expansion import expand  # noqa: PLC0415  # loads `re`

    try:
        return expand(arguments, env)
    except ValueError as error:
        raise LaunchError(str(error)) from None


# --- one rank per process -------------------------------------------------------------------------


def one_rank(env: "Env", launcher: "Optional[Launcher]", arguments: "List[str]") -> "Command":
    """Set all ranks' variables; Python gets the arguments as they are."""
    if not launcher and "RANK" not in env:
        refuse_lost_environment(env)
    ranks = find_ranks(env, launcher)
    explain_single_process(env, launcher)
    preset = "LOCAL_RANK" in env
    site_environment.apply(env, one_node=ranks.one_node)
    env.update(ranks.variables())
    # A script for torchrun may read these; Lightning tells by the last one who started its ranks.
    for name, value in ranks.torchrun_variables().items():
        env.setdefault(name, value)
    env.setdefault("TORCHELASTIC_RUN_ID", run_id(env))
    env["OMP_NUM_THREADS"] = threads(env, launcher, 1, ranks.local_world_size)

    neighbours, known = ranks.local_world_size, ranks.launcher is not None
    group = Group(ranks.rank, ranks.world_size, neighbours, known=known)

    def check() -> None:
        env.update(devices.choose(env, ranks, preset=preset))
        if ranks.local_rank == 0:
            devices.warn_without_driver(env)
        group.device = devices.to_compare(env)
        check_node(env, one_node=ranks.one_node)

    agreed = rendezvous(env, group, check)
    settle(env, group, agreed)
    if agreed.node is not None:
        env.setdefault("GROUP_RANK", str(agreed.node))
    if ranks.world_size > 1:
        env.update(guarding.variables(env))
    debug.print_line(env, launcher)
    return arguments, env


def run_id(env: "Env") -> str:
    """Return the launch's name as one word."""
    return "-".join(launch_name(env).split()) or "sifwright"


def explain_single_process(env: "Env", launcher: "Optional[Launcher]") -> None:
    """Warn that there is one rank: the user of a batch script may expect more."""
    shell = not launcher and "RANK" not in env and "SLURM_JOB_ID" in env
    if shell and env.get("SLURM_NTASKS", "1") != "1":
        message = "conda-python-distributed: one process, not {}: not started by srun"
        message += " (SLURM_STEP_ID is unset)\n"
        sys.stderr.write(message.format(shown(env, "SLURM_NTASKS")))


def check_node(env: "Env", *, one_node: bool) -> None:
    """Make sure that this node has what the rank needs; raises `LaunchError`."""
    folders.check_temporary(env)
    if devices.vendor(env) == "amd":
        env.update(folders.miopen_cache(env))
    if not one_node:
        from .network import check_interfaces  # noqa: PLC0415  # loads `socket`

        check_interfaces(env)


def settle(env: "Env", group: Group, agreed: "RendezvousAddress") -> None:
    """Set the variables of the rendezvous."""
    env["MASTER_ADDR"], env["MASTER_PORT"] = agreed.address, str(agreed.port)
    if group.nodes > 1 and "GLOO_SOCKET_IFNAME" not in env:
        from .network import gloo_interface  # noqa: PLC0415  # loads `socket`

        env.update(gloo_interface(agreed.local))


# --- one process per node that starts its ranks ---------------------------------------------------


def local_ranks(
    env: "Env", launcher: "Optional[Launcher]", wanted: str, arguments: "List[str]"
) -> "Command":
    """Become the agent of this node: torchrun, with its rendezvous at the common master."""
    if not is_number(wanted) or wanted == "0" or len(wanted) > MAX_RANKS_DIGITS:
        raise LaunchError("--nproc-per-node '{}' is not a positive number".format(wanted))
    refuse_preset_ranks(env)
    refuse_several_tasks(env, launcher)
    explain_single_process(env, launcher)
    node, nodes = (number(env, launcher.rank), number(env, launcher.size)) if launcher else (0, 1)
    site_environment.apply(env, one_node=nodes == 1)
    env["OMP_NUM_THREADS"] = threads(env, launcher, int(wanted), 1)

    def check() -> None:
        devices.check_local_ranks(env, int(wanted))
        devices.warn_without_driver(env)
        check_node(env, one_node=nodes == 1)

    endpoint = agents_rendezvous(env, Group(node, nodes, 1, known=launcher is not None), check)
    if int(wanted) * nodes > 1:
        env.update(guarding.variables(env, of_agent=True))
    debug.print_line(env, launcher)
    return [AGENT, "--nproc-per-node", wanted, *endpoint, *arguments], env


def refuse_preset_ranks(env: "Env") -> None:
    for name in NAMES:
        if name in env:
            message = (
                "{} is preset, but --nproc-per-node numbers the ranks itself: unset it, or leave"
                " --nproc-per-node away"
            )
            raise LaunchError(message.format(shown(env, name)))


def refuse_several_tasks(env: "Env", launcher: "Optional[Launcher]") -> None:
    tasks = local_size(env, launcher) if launcher else 1
    if tasks != 1:
        message = (
            "--nproc-per-node needs one task per node, but there are {} on this one: use srun"
            " --ntasks-per-node=1"
        )
        raise LaunchError(message.format(tasks))


def agents_rendezvous(env: "Env", group: Group, check: "Callable[[], None]") -> "List[str]":
    """Return torchrun's options for the rendezvous of all nodes' agents."""
    if group.size == 1 and "MASTER_PORT" not in env:
        check()
        # torchrun finds a free port itself. By its name the machine might resolve to an address it
        # lacks.
        return ["--standalone", "--local-addr", LOOPBACK]
    agreed = rendezvous(env, group, check)
    options = {
        "--nnodes": str(group.size),
        "--rdzv-backend": "c10d",
        "--rdzv-endpoint": "{}:{}".format(agreed.address, agreed.port),
        # Agents of another launch that find the same port have another id, and are refused.
        "--rdzv-id": run_id(env),
        # Not left to a comparison of names and addresses, which fails where names resolve oddly.
        "--rdzv-conf": "is_host={}".format(int(group.rank == 0)),
    }
    if agreed.local:
        options["--local-addr"] = agreed.local
    settle(env, group, agreed)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        del env[name]  # the agent's store has an address and port of its own
    return [word for option in options.items() for word in option]
