"""The CPUs this process may use, divided among those who use them."""

import os

from .variables import is_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .launchers import Launcher
    from .variables import Env


def positive(text: str) -> "Optional[int]":
    return int(text) if is_number(text) and text != "0" else None


def threads(env: "Env", launcher: "Optional[Launcher]", ranks: int, tasks: int) -> str:
    """Return OMP_NUM_THREADS for `ranks` ranks of this process and `tasks` tasks on the node."""
    if env.get("OMP_NUM_THREADS"):
        return env["OMP_NUM_THREADS"]
    cpus = len(os.sched_getaffinity(0))
    step = launcher is not None and launcher.name == "slurm"
    asked = positive(env.get("SLURM_CPUS_PER_TASK", "")) if step else None
    if asked:
        # Use at most the number asked for: srun may bind the task to fewer CPUs, or not at all.
        cpus = min(cpus, asked)
    elif not (launcher and has_own_cpus(env, cpus, tasks)):
        cpus = cpus // tasks
    return str(max(cpus // ranks, 1))


def has_own_cpus(env: "Env", cpus: int, tasks: int) -> bool:
    """Tell whether each task was given a part of the node: all parts together fit on it.

    So it is with mpiexec --cpu-bind, flux run --cores-per-task, and srun --cpu-bind=mask_cpu, which
    sets no SLURM_CPUS_PER_TASK.
    """
    of_node = positive(env.get("SLURM_CPUS_ON_NODE", "")) or os.cpu_count() or 1
    return cpus * tasks <= of_node
