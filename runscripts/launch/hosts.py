"""The hosts of a job, from whichever scheduler says them."""

from .errors import EX_DATAERR, LaunchError
from .hostlist import expand, first_host, parse
from .variables import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, List, Optional, TypeVar

    from .variables import Env

    T = TypeVar("T")

LOOPBACK = "127.0.0.1"
# Set by job scripts, which can ask the scheduler where a container cannot. Not MASTER_ADDR, which
# would also decide on the network (SIFWRIGHT_INTERFACE).
MASTER_HOST = "SIFWRIGHT_MASTER_HOST"
SLURM_LISTS = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
# One host a line, as often as it has ranks; in this order because a PBS or LSF job may run in
# something bigger. LSF's also come as words: see other_hosts().
NODE_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")


def is_loopback(address: str) -> bool:
    """Tell whether an address or name leads every machine to itself."""
    return address in ("localhost", "::1") or address.startswith("127.")


def unknown_master(ranks: int, here: int) -> LaunchError:
    """Say that rank 0 may be on another node, and that nothing names it."""
    message = (
        "WORLD_SIZE='{}' is more than LOCAL_WORLD_SIZE='{}', and no node list says where rank 0 is:"
        " set MASTER_ADDR to its host"
    )
    return LaunchError(message.format(ranks, here))


def started_by_mpirun(env: "Env") -> bool:
    """Tell whether the step variables describe something else than the ranks.

    Open MPI starts its daemons as a step on all nodes but the first, and the ranks inherit that
    step's variables there and none here: what they say differs from rank to rank.
    """
    return "OMPI_COMM_WORLD_RANK" in env


def nodelist_variable(env: "Env") -> str:
    """Return the name of the variable that holds Slurm's list, or an empty text."""
    names = SLURM_LISTS[1:] if started_by_mpirun(env) else SLURM_LISTS
    return next((name for name in names if name in env), "")


def has_hosts(env: "Env") -> bool:
    """Tell whether anything in the environment lists the job's hosts."""
    names = (*NODE_FILES, "LSB_MCPU_HOSTS")
    return bool(nodelist_variable(env)) or any(name in env for name in names)


def first(env: "Env", nodelist: "Optional[str]" = None) -> str:
    """Return the first host of the given list, else of the environment's."""
    if nodelist is not None or nodelist_variable(env):
        return read_list(env, nodelist, first_host)
    return next(iter(other_hosts(env)))


def every(env: "Env", nodelist: "Optional[str]" = None) -> "Iterable[str]":
    """Return all hosts in the scheduler's order; this machine's own address without a job."""
    if nodelist is not None or nodelist_variable(env):
        return read_list(env, nodelist, expand)
    return other_hosts(env) if has_hosts(env) else [LOOPBACK]


def read_list(env: "Env", nodelist: "Optional[str]", reader: "Callable[..., T]") -> "T":
    """Apply a reader to the elements of the given list, else of the environment's."""
    variable = "" if nodelist is not None else nodelist_variable(env)
    text = env[variable] if nodelist is None else nodelist
    try:
        return reader(parse(text))
    except ValueError as error:
        name = variable + "=" if variable else "node list "
        message = "{}'{}' cannot be read: {}; expected is a Slurm list like nid[001-004],gpu7"
        raise LaunchError(message.format(name, text[:200], error), EX_DATAERR) from None


def other_hosts(env: "Env") -> "List[str]":
    """Return the hosts of a PBS or LSF job."""
    name = next((name for name in NODE_FILES if name in env), "LSB_MCPU_HOSTS")
    # "host1 4 host2 4": hosts and their slots in turn.
    listed = read_file(env, name) if name in NODE_FILES else env[name].split()[::2]
    names = unique(env, name, listed)
    # jsrun's jobs begin with the node of the batch script, where no rank runs.
    return names[1:] if "JSM_NAMESPACE_RANK" in env and len(names) > 1 else names


def read_file(env: "Env", name: str) -> "List[str]":
    try:
        with open(env[name], encoding="utf-8") as lines:
            return lines.read().split()
    except (OSError, ValueError) as error:
        message = "{} cannot be read ({}): bind that file into the container, or set MASTER_ADDR"
        reason = getattr(error, "strerror", "") or error
        raise LaunchError(message.format(shown(env, name), reason), EX_DATAERR) from None


def unique(env: "Env", name: str, hosts: "List[str]") -> "List[str]":
    """Drop repetitions; raises `LaunchError` for a list that is empty or holds no host names."""
    for host in hosts:
        if not host.replace("-", "").replace(".", "").replace("_", "").isalnum() or host[0] in "-.":
            message = "{} cannot be read: '{}' is not the name of a host"
            raise LaunchError(message.format(shown(env, name), host[:200]), EX_DATAERR)
    if not hosts:
        message = "{} names no host: set MASTER_ADDR".format(shown(env, name))
        raise LaunchError(message, EX_DATAERR)
    return list(dict.fromkeys(hosts))
