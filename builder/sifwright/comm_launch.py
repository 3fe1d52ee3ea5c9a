"""How the benchmark is started: the site's launcher, the allocation, and the container."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright.errors import MachineError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sifwright.engines.apptainer import Apptainer
    from sifwright.model import Site

__all__ = ["SCRIPT", "WORK", "Shape", "container", "launcher", "shape"]

SCRIPT = "/runscripts/collectives.py"
# Where the container sees the folder for results: every base has /mnt, so none needs to be made.
WORK = "/mnt"
_VENDOR_FLAGS = {"amd": ("--rocm",), "nvidia": ("--nv",), "cpu": ()}
_LOCAL_RANKS = 2
# What says that we are in an allocation, and what to type to get one.
_ALLOCATIONS = {
    "slurm": ("SLURM_JOB_ID", "salloc --nodes={nodes} --ntasks-per-node={ranks} …"),
    "pbs": ("PBS_JOBID", "qsub -I -l select={nodes}:mpiprocs={ranks} …"),
    "flux": ("FLUX_JOB_ID", "flux alloc -N {nodes} …"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """How many ranks are started."""

    nodes: int
    ranks_per_node: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


def shape(
    site: Site, nodes: int, ranks_per_node: int, environ: Mapping[str, str] = os.environ
) -> Shape:
    """What was asked for (0: not), else the whole allocation with a rank per GPU.

    Raises `MachineError` outside an allocation, `UsageError` where the ranks cannot be known.
    """
    if site.scheduler == "local":
        return _local_shape(site, nodes, ranks_per_node)
    _require_allocation(site, environ)
    ranks = ranks_per_node or site.node.gpus
    if not ranks:
        raise UsageError.of(
            f"site {site.name} does not say how many GPUs a node has",
            fix="Give --ranks-per-node.",
        )
    return Shape(nodes=nodes or _allocated_nodes(site, environ), ranks_per_node=ranks)


def _local_shape(site: Site, nodes: int, ranks_per_node: int) -> Shape:
    if nodes > 1:
        raise UsageError.of(
            f"--nodes {nodes}: site {site.name} has no scheduler, so there is this machine alone",
            fix="Leave --nodes out, or start the ranks yourself with --launch.",
        )
    ranks = ranks_per_node or max(site.node.gpus, _LOCAL_RANKS)
    return Shape(nodes=1, ranks_per_node=ranks)


def _require_allocation(site: Site, environ: Mapping[str, str]) -> None:
    variable, command = _ALLOCATIONS[site.scheduler]
    if environ.get(variable):
        return
    example = command.format(nodes=2, ranks=site.node.gpus or "N")
    raise MachineError.of(
        f"not inside an allocation: {variable} is not set",
        where=f"site {site.name}",
        fix=f"Get two nodes first ({example}), and type the same command there;\n"
        f"    or write a batch script: sifwright jobscript --site {site.name} --nodes 2 …",
    )


def _allocated_nodes(site: Site, environ: Mapping[str, str]) -> int:
    """Nodes of the allocation: Slurm says it in either variable, PBS in a file."""
    if site.scheduler == "pbs":
        return len(set(Path(environ["PBS_NODEFILE"]).read_text().split()))
    for name in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "FLUX_JOB_NNODES"):
        if environ.get(name, "").isdecimal():
            return int(environ[name])
    raise UsageError.of("the allocation does not say how many nodes it has", fix="Give --nodes.")


def launcher(site: Site, wanted: Shape) -> list[str]:
    """The site's command that starts a task per rank; none without a scheduler."""
    if site.scheduler == "local":
        return []
    options = site.launch.get(site.launcher)
    return [*_STARTS[site.launcher](site, wanted), *(options.task_per_gpu if options else ())]


# The words are those of job scripts (render/launch.py), for tasks with a GPU each.


def _srun(site: Site, wanted: Shape) -> Iterator[str]:
    masks, cpus = site.node.cpu_masks, site.node.cpus_per_task
    yield from ("srun", "--export=ALL", f"--nodes={wanted.nodes}", f"--ntasks={wanted.ranks}")
    yield f"--ntasks-per-node={wanted.ranks_per_node}"
    if cpus:
        yield f"--cpus-per-task={cpus}"
    if len(masks) == wanted.ranks_per_node:
        yield f"--cpu-bind=mask_cpu:{','.join(masks)}"
    if site.rdzv_get_disabled:
        yield "--network=disable_rdzv_get"
    if site.job.resv_ports:
        yield "--resv-ports=2"
    yield "--kill-on-bad-exit=1"


def _mpiexec(site: Site, wanted: Shape) -> Iterator[str]:
    yield from ("mpiexec", "-n", str(wanted.ranks), "-ppn", str(wanted.ranks_per_node))
    if site.rdzv_get_disabled:
        yield "--disable_rdzv_get"


def _mpirun(_: Site, wanted: Shape) -> Iterator[str]:
    yield from ("mpirun", "-np", str(wanted.ranks), "--bind-to", "none")
    yield from ("--map-by", f"ppr:{wanted.ranks_per_node}:node")


def _flux(site: Site, wanted: Shape) -> Iterator[str]:
    yield from ("flux", "run", f"--nodes={wanted.nodes}", f"--ntasks={wanted.ranks}")
    if site.node.cpus_per_task:
        yield f"--cores-per-task={site.node.cpus_per_task}"
    if site.node.gpus:
        yield "--gpus-per-task=1"
    if site.rdzv_get_disabled:
        yield "--setattr=rdzv_get_en=0"


_STARTS: dict[str, Callable[[Site, Shape], Iterator[str]]] = {
    "srun": _srun,
    "mpiexec": _mpiexec,
    "mpirun": _mpirun,
    "flux": _flux,
}


def container(
    engine: Apptainer, site: Site, sif: Path, work: Path, program: Sequence[str]
) -> list[str]:
    """Run a program in the image, `work` being the only folder it can write results to."""
    binds = [word for bind in site.binds if (there := _bind(bind)) for word in ("--bind", there)]
    return [
        engine.program,
        "exec",
        *_VENDOR_FLAGS[site.vendor],
        *binds,
        "--bind",
        f"{work.resolve()}:{WORK}",
        str(sif.resolve()),
        "conda-python-distributed",
        *program,
    ]


def _bind(text: str) -> str:
    """A bind whose source is here: of one that is not, the engine would make an error."""
    path = os.path.expandvars(text)
    return path if "$" not in path and Path(path.split(":")[0]).exists() else ""
