"""The CPUs this process may use, divided among those who use them."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .launchers import Launcher
    from .variables import Env

MAX_DIGITS = 6


def positive(text: str) -> "Optional[int]":
    good = text.isdigit() and len(text) <= MAX_DIGITS and text[0] != "0"
    return int(text) if good else None


def threads(env: "Env", launcher: "Optional[Launcher]", ranks: int, tasks: int) -> str:
    """Return OMP_NUM_THREADS for `ranks` ranks of this process and `tasks` tasks on the node."""
    if env.get("OMP_NUM_THREADS"):
        return env["OMP_NUM_THREADS"]
    cpus = len(os.sched_getaffinity(0))
    step = launcher is not None and launcher.name == "slurm"
    asked = positive(env.get("SLURM_CPUS_PER_TASK", "")) if step else None
    if asked:
        # What was asked for; less if srun binds the task to less, not more if it does not bind.
        cpus = min(cpus, asked)
    elif not (step and has_own_cpus(env, cpus, tasks)):
        cpus = cpus // tasks
    return str(max(cpus // ranks, 1))


def has_own_cpus(env: "Env", cpus: int, tasks: int) -> bool:
    """--cpu-bind=mask_cpu gives each task a part of the node and sets no SLURM_CPUS_PER_TASK."""
    of_node = positive(env.get("SLURM_CPUS_ON_NODE", ""))
    return of_node is not None and cpus * tasks <= of_node
