"""The hosts of a job, from whichever scheduler says them."""

from .errors import EX_DATAERR, LaunchError
from .hostlist import expand, first_host, parse
from .variables import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable, Iterator, List, Optional, Tuple, TypeVar

    from .hostlist import Element
    from .variables import Env

    T = TypeVar("T")

LOOPBACK = "127.0.0.1"
# Set by job scripts, which can ask the scheduler where a container cannot. Not MASTER_ADDR, which
# would also decide on the network (SIFWRIGHT_INTERFACE).
MASTER_HOST = "SIFWRIGHT_MASTER_HOST"
SLURM_LISTS = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
# One host a line, as often as it has ranks. The order is this because a PBS or LSF job may run in
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

    Open MPI starts its daemons as a step on all nodes but the first. The ranks there inherit that
    step's variables, and those on the first node inherit none.
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
    name, text = slurm_list(env) if nodelist is None else ("node list ", nodelist)
    try:
        elements = parse(text)
        return reader(in_order_of_ranks(env, elements) if nodelist is None else elements)
    except ValueError as error:
        message = "{}'{}' cannot be read: {}; expected is a Slurm list like nid[001-004],gpu7"
        raise LaunchError(message.format(name, text[:200], error), EX_DATAERR) from None


def slurm_list(env: "Env") -> "Tuple[str, str]":
    """Return Slurm's list and what has it: the file that srun takes the order of hosts from."""
    if has_own_order(env):
        return "SLURM_HOSTFILE=", ",".join(dict.fromkeys(hostfile_lines(env)))
    name = nodelist_variable(env)
    return name + "=", env[name]


def has_own_order(env: "Env") -> bool:
    """Tell whether the hosts of the ranks are not in the order of their names."""
    future = "SLURM_HOSTFILE" in env and "SLURM_STEP_ID" not in env  # of a batch script's steps
    arbitrary = future or env.get("SLURM_DISTRIBUTION") == "arbitrary"
    return arbitrary and not started_by_mpirun(env)


def in_order_of_ranks(env: "Env", elements: "List[Element]") -> "List[Element]":
    """Put the hosts of heterogeneous jobs, of which a step has some, by their components."""
    if has_own_order(env) or started_by_mpirun(env):
        return elements
    components = [parse(text) for text in het_components(env)]
    hosts = set(expand(elements)) if components else set()
    used = [part for part in components if first_host(part) in hosts]
    return [element for part in used for element in part] or elements


def hostfile_lines(env: "Env") -> "List[str]":
    """Return the hosts of the file that srun takes its order from: host[*count], with comments."""
    if "SLURM_HOSTFILE" not in env:
        message = (
            "{}, and no SLURM_HOSTFILE says the order of the hosts: set MASTER_ADDR to the host of"
            " rank 0"
        )
        raise LaunchError(message.format(shown(env, "SLURM_DISTRIBUTION")))
    lines = (line.partition("#")[0] for line in read_text(env, "SLURM_HOSTFILE").splitlines())
    return [line.partition("*")[0].strip() for line in lines if line.strip()]


def het_components(env: "Env") -> "Iterator[str]":
    """Yield the lists of a heterogeneous job's components; older Slurms call them packs."""
    kind = "HET" if "SLURM_JOB_NODELIST_HET_GROUP_0" in env else "PACK"
    name, number = "SLURM_JOB_NODELIST_{}_GROUP_{}", 0
    while name.format(kind, number) in env:
        yield env[name.format(kind, number)]
        number += 1


def other_hosts(env: "Env") -> "List[str]":
    """Return the hosts of a PBS or LSF job."""
    name = next((name for name in NODE_FILES if name in env), "LSB_MCPU_HOSTS")
    # "host1 4 host2 4": hosts and their slots in turn.
    listed = read_file(env, name) if name in NODE_FILES else env[name].split()[::2]
    names = unique(env, name, listed)
    # jsrun's jobs begin with the node of the batch script, where no rank runs.
    return names[1:] if "JSM_NAMESPACE_RANK" in env and len(names) > 1 else names


def read_file(env: "Env", name: str) -> "List[str]":
    return read_text(env, name).split()


def read_text(env: "Env", name: str) -> str:
    try:
        with open(env[name], encoding="utf-8") as lines:
            return lines.read()
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
