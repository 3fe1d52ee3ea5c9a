"""Decide a job: how many tasks are started on how many nodes, by whom and with what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from sifwright import jobrules
from sifwright.errors import UsageError

if TYPE_CHECKING:
    from sifwright.model import Site

__all__ = ["Job", "Request", "arrange", "decide"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked of a job; what is empty or None, the site decides.

    `arguments` are the Python script and its arguments. `ranks_per_node` counts what joins the
    process group, whoever starts it. `time` is HH:MM:SS, `signal` is NAME@SECONDS before its end.
    `host_mpi` puts the site's own MPI in place of the image's.
    `built_sif` and `run_scripts` are taken where the job's environment names no others.
    """

    nodes: int
    arguments: tuple[str, ...]
    launcher: str = ""
    engine: str = ""
    ranks_per_node: int | None = None
    time: str = ""
    account: str = ""
    name: str = ""
    signal: str = ""
    sif: str = ""
    environment: str = ""
    host_mpi: bool = False
    built_sif: str = ""
    run_scripts: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job, decided.

    On each node the launcher starts `tasks`; with `torchrun` it is one, which starts the `ranks`,
    otherwise tasks and ranks are the same. `gpus` are those of a node, `cpus` those of a task, 0
    where nobody says. `name` and `time` are the request's, else the script's and the site's.
    """

    site: Site
    request: Request
    engine: str
    launcher: str
    torchrun: bool
    ranks: int
    tasks: int
    gpus: int
    cpus: int
    name: str
    time: str

    @property
    def total_tasks(self) -> int:
        return self.request.nodes * self.tasks

    @property
    def binds(self) -> tuple[str, ...]:
        """What is bound into the container where the job finds it."""
        host = self.site.host_mpi if self.request.host_mpi else None
        return self.site.binds + (host.binds if host else ())

    @property
    def whole_node(self) -> bool:
        """Whether a task has its node to itself, rather than one GPU and its CPUs."""
        return self.tasks == 1 and self.gpus != 1


def decide(site: Site, request: Request) -> Job:
    """Fill in what the request leaves to the site.

    Raises `UsageError` with everything the site or its scheduler would refuse.
    """
    if problems := list(jobrules.problems(site, request)):
        raise UsageError(*problems)
    return arrange(site, request)


def arrange(site: Site, request: Request) -> Job:
    """The same for a request that nobody submits, and that nothing is refused of."""
    ranks = request.ranks_per_node or site.node.gpus or 1
    alone = site.launcher == "local" and request.launcher in ("", "local") and ranks > 1
    torchrun = request.launcher == jobrules.TORCHRUN or alone
    tasks = 1 if torchrun else ranks
    return Job(
        site=site,
        request=request,
        engine=jobrules.engine(site, request),
        launcher=jobrules.launcher(site, request),
        torchrun=torchrun,
        ranks=ranks,
        tasks=tasks,
        # Where nobody says how many there are, as many as ranks will use.
        gpus=site.node.gpus or (0 if site.vendor == "cpu" else ranks),
        cpus=_cpus(site, tasks),
        name=request.name or _name(request.arguments),
        time=request.time or site.job.time,
    )


def _cpus(site: Site, tasks: int) -> int:
    node = site.node
    if tasks > 1 and node.cpus_per_task:
        return node.cpus_per_task
    return node.cpus // tasks


def _name(arguments: tuple[str, ...]) -> str:
    stem = PurePath(arguments[0]).stem
    return stem if jobrules.is_word(stem) else "sifwright"
