"""Who started this process: the variables by which each launcher is known."""

from .errors import LaunchError
from .variables import below, number, shown, together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

    from .variables import Env


class Launcher:
    """A launcher's names for what every rank must know; an empty name: it does not say.

    `identity` are the variables that together name one launch, alike on every rank.
    """

    def __init__(
        self,
        name: str,
        ranks: "Tuple[str, str]",
        local: "Tuple[str, str]",
        node: str = "",
        identity: "Tuple[str, ...]" = (),
    ) -> None:
        self.name = name
        self.rank, self.size = ranks
        self.local_rank, self.local_size = local
        self.node = node
        self.identity = identity


SLURM_IDENTITY = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")


def _step(size: str) -> Launcher:
    # Slurm's local size comes from SLURM_STEP_TASKS_PER_NODE. A requeued job keeps its id, and its
    # old processes may still hold the port.
    return Launcher(
        "slurm",
        ("SLURM_PROCID", size),
        ("SLURM_LOCALID", ""),
        "SLURM_NODEID",
        SLURM_IDENTITY,
    )


# jsrun sets Open MPI's variables as well; its own say more.
JSRUN = Launcher(
    "jsrun",
    ("JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"),
    ("JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"),
    identity=("LSB_JOBID", "PMIX_NAMESPACE"),
)
OPEN_MPI = Launcher(
    "openmpi",
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    # PMIx, which starts Open MPI's ranks from version 4 on, has a name for each launch.
    identity=("PMIX_NAMESPACE",),
)
# HPE's mpiexec. PALS_NRANKS and PALS_PPN are what a user asked mpiexec for, not what it did.
PALS = Launcher(
    "pals",
    ("PALS_RANKID", "PMI_SIZE"),
    ("PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE"),
    "PALS_NODEID",
    ("PBS_JOBID", "PALS_APID"),
)
FLUX = Launcher(
    "flux",
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("FLUX_TASK_LOCAL_ID", ""),
    # The path names the instance too, in which the job's id is unique.
    identity=("FLUX_JOB_ID_PATH", "FLUX_JOB_ID"),
)
HYDRA = Launcher(
    "mpich",
    ("PMI_RANK", "PMI_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "HYDRA_BSTRAP_NODE_ID",  # Intel MPI's
)


def find_launcher(env: "Env") -> "Optional[Launcher]":
    """Return the launcher with variables that describe this process, or None.

    An mpirun inside a Slurm job leaves Slurm's variables in the ranks' environment. They are those
    of the batch script, or of the step that runs its daemons. So does a Flux instance of Slurm. The
    launcher that was started last comes first. Raises `LaunchError` for half-set variables.
    """
    for launcher in (JSRUN, OPEN_MPI, FLUX):
        if launcher.rank in env or launcher.size in env:
            return checked(env, launcher)
    # `srun --mpi=pmi2` sets PMI_RANK and PMI_SIZE as well, but no local numbers.
    if HYDRA.local_rank in env and (HYDRA.rank in env or HYDRA.size in env):
        return checked(env, HYDRA)
    if in_slurm_step(env):
        # SLURM_STEP_NUM_TASKS counts this step. In a step that keeps the environment, such as
        # salloc's, SLURM_NTASKS is the whole allocation's (env_array_for_step in env.c).
        step = "SLURM_STEP_NUM_TASKS" in env
        return checked(env, _step("SLURM_STEP_NUM_TASKS" if step else "SLURM_NTASKS"))
    # After Slurm: its plugin for HPE Cray EX (--mpi=cray_shasta) sets PALS_* too.
    if PALS.rank in env:
        return checked(env, PALS if PALS.size in env else pals_without_size(env))
    if HYDRA.rank in env or HYDRA.size in env:
        return checked(env, HYDRA)
    return None


def pals_without_size(env: "Env") -> Launcher:
    """Put the size into the environment, which PALS on some machines (Aurora) does not do.

    Not from PALS_NRANKS: that is what a user asked of some mpiexec.
    """
    from .hosts import other_hosts  # noqa: PLC0415  # seldom needed

    size = 0
    if "PALS_LOCAL_SIZE" in env and "PBS_NODEFILE" in env:
        size = number(env, "PALS_LOCAL_SIZE") * len(other_hosts(env))
    if size <= number(env, "PALS_RANKID"):
        message = "{} is set without PMI_SIZE, and nothing else says how many ranks there are"
        raise LaunchError(message.format(shown(env, "PALS_RANKID")))
    env["PMI_SIZE"] = str(size)
    return PALS


# Processes that start ranks, by name; each sets variables that say so.
STARTERS = ("hydra_pmi_proxy", "orted", "prted", "flux-shell")


def refuse_lost_environment(env: "Env") -> None:
    """Refuse to be one of many single processes that do not know of each other.

    That is what `apptainer exec --cleanenv` makes of a launch: every rank would train alone, and
    say nothing. Raises `LaunchError`. Where a container hides processes (--pid), nothing shows.
    """
    from .processes import above  # noqa: PLC0415  # single processes only

    if any(
        name.startswith(("SLURM_", "PMI_", "PMIX_", "OMPI_COMM_WORLD_", "FLUX_")) for name in env
    ):
        return
    for process in above():
        if process.name in STARTERS or is_step_of_slurm(process.words()[0]):
            message = (
                "{} started this process, but none of its variables is here, so no rank would know"
                " of the others. Leave --cleanenv away, or set RANK=0 and WORLD_SIZE=1 for a single"
                " process"
            )
            raise LaunchError(message.format(process.words()[0] or process.name))


def is_step_of_slurm(command: str) -> bool:
    """Tell whether that is a step's slurmstepd: "slurmstepd: [12.0]", and not a batch script's."""
    step = command.rpartition(".")[2].rstrip("] ")
    return command.startswith("slurmstepd: [") and step.isdigit()


def checked(env: "Env", launcher: Launcher) -> Launcher:
    """Refuse a rank without a size, or one that is not below it."""
    together(env, launcher.rank, launcher.size)
    below(env, launcher.rank, launcher.size)
    return launcher


def in_slurm_step(env: "Env") -> bool:
    """Tell whether srun started this process.

    Only srun sets SLURM_STEP_ID. A batch script has SLURM_PROCID=0 and SLURM_NTASKS=16 and is still
    one process. A shell of salloc has SLURM_NTASKS and no SLURM_PROCID. Both are single processes,
    or rank 0 would wait for ever for the other fifteen. Without any job, SLURM_PROCID was set by
    hand: believe it.
    """
    if "SLURM_STEP_ID" in env or "SLURM_STEPID" in env:
        return True
    if "SLURM_PROCID" not in env:
        return False
    if "SLURM_JOB_ID" not in env:
        return True
    if env["SLURM_PROCID"] != "0":
        message = "{} is set without SLURM_STEP_ID: only srun starts such a task, and it sets both"
        raise LaunchError(message.format(shown(env, "SLURM_PROCID")))
    return False


def local_size(env: "Env", launcher: Launcher) -> int:
    """Return the number of tasks on this node; raises `LaunchError` if nothing says it."""
    if "LOCAL_WORLD_SIZE" in env:
        return number(env, "LOCAL_WORLD_SIZE")
    if number(env, launcher.size) == 1:
        return 1
    if launcher is PALS and "PALS_LOCAL_SIZE" in env:
        return number(env, "PALS_LOCAL_SIZE")  # newer PALS set it, and no PMI_LOCAL_SIZE
    if launcher.local_size:
        return number(env, launcher.local_size)
    if launcher.name == "flux":
        return flux_tasks_on_this_node(env, launcher)
    return slurm_tasks_on_this_node(env, launcher)


def flux_tasks_on_this_node(env: "Env", launcher: Launcher) -> int:
    """Divide evenly, as Flux does; nothing in a task's environment says more."""
    tasks, nodes = number(env, launcher.size), number(env, "FLUX_JOB_NNODES")
    if not nodes or tasks % nodes:
        message = "{} on {} nodes: set LOCAL_WORLD_SIZE to the number of tasks on each node"
        raise LaunchError(message.format(shown(env, launcher.size), shown(env, "FLUX_JOB_NNODES")))
    return tasks // nodes


def slurm_tasks_on_this_node(env: "Env", launcher: Launcher) -> int:
    """Take the step's list, else what was asked for, else the only node."""
    if "SLURM_STEP_TASKS_PER_NODE" in env:
        node = number(env, "SLURM_NODEID") if "SLURM_NODEID" in env else 0
        return tasks_of_node(env, node)
    if "SLURM_NTASKS_PER_NODE" in env:
        return number(env, "SLURM_NTASKS_PER_NODE")
    if env.get("SLURM_NNODES", "1") == "1":
        return number(env, launcher.size)
    message = (
        "SLURM_STEP_TASKS_PER_NODE is not set, {}: set LOCAL_WORLD_SIZE to the number of tasks on"
        " each node"
    )
    raise LaunchError(message.format(shown(env, "SLURM_NNODES")))


def tasks_of_node(env: "Env", node: int) -> int:
    """Read the run-length coded list: "2(x3),1" is 2, 2, 2 and 1 tasks."""
    import re  # noqa: PLC0415  # costs 5 ms

    name = "SLURM_STEP_TASKS_PER_NODE"
    seen = 0
    for entry in env[name].split(","):
        match = re.match(r"([1-9][0-9]{0,8})(?:\(x([1-9][0-9]{0,8})\))?\Z", entry)
        if not match:
            message = "{} cannot be read: expected is a list like 2(x3),1".format(shown(env, name))
            raise LaunchError(message)
        seen += int(match.group(2) or 1)
        if node < seen:
            return int(match.group(1))
    message = "{} is not among the nodes of {}"
    raise LaunchError(message.format(shown(env, "SLURM_NODEID"), shown(env, name)))
