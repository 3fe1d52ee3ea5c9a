"""The start of the benchmark: the site's launcher, the allocation, and the container."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sifwright.catalog import site_environment
from sifwright.catalog.model import Site
from sifwright.errors import MachineError, UsageError
from sifwright.host.engines.apptainer import Apptainer
from sifwright.launch import directives, job, job_mpi, launch_command
from sifwright.launch.model import JobRequest
from sifwright.system import processes

SCRIPT = "/runscripts/collectives.py"
# Folder of the results in the container: every base has /mnt, so none needs to be made.
WORK = "/mnt"
_RUN_SCRIPT = "conda-python-distributed"
_LOCAL_RANKS = 2
# Variable with the host of rank 0 if the container cannot ask; MASTER_ADDR comes first.
_MASTER_HOST = "SIFWRIGHT_MASTER_HOST"
_PLACES = ("MASTER_ADDR", _MASTER_HOST)
# Variables of an allocation.
_ALLOCATIONS = {"slurm": "SLURM_JOB_ID", "pbs": "PBS_JOBID", "flux": "FLUX_JOB_ID"}


def require_images(site: Site) -> None:
    """Raise `UsageError` at a site with jobs that run in no image."""
    if "container" in site.run_in:
        return
    message = f"site {site.name} runs jobs on the host only, and the benchmark is in images"
    fix = f"Name one of the host: sifwright check-comm {site.name} --environment DIR"
    raise UsageError.of(message, fix=fix)


def require_environment(environment: str) -> None:
    """Raise `UsageError` if the folder is no environment that can be activated."""
    if not (Path(environment) / "bin/activate").is_file():
        fix = "Name a virtual environment, or 'current' of an installation."
        raise UsageError.of("has no bin/activate", where=f"--environment {environment}", fix=fix)


def shape(
    site: Site, nodes: int, ranks_per_node: int, environ: Mapping[str, str] = os.environ
) -> JobRequest:
    """Return the layout that was asked for (0: not), else the allocation with a rank per GPU.

    Raises `MachineError` outside an allocation, `UsageError` if the ranks cannot be known.
    """
    if site.scheduler == "local":
        return _local_shape(site, nodes, ranks_per_node)
    ranks = ranks_per_node or site.node.gpus
    if not ranks:
        message = f"site {site.name} does not say how many GPUs a node has"
        raise UsageError.of(message, fix="Give --ranks-per-node.")
    _require_allocation(site, layout(nodes or 2, ranks), environ)
    return layout(nodes or _allocated_nodes(site, environ), ranks)


def _local_shape(site: Site, nodes: int, ranks_per_node: int) -> JobRequest:
    if nodes > 1:
        raise UsageError.of(
            f"--nodes {nodes}: site {site.name} has no scheduler, so there is this machine alone",
            fix="Leave --nodes out, or start the ranks yourself with --launch.",
        )
    return layout(1, ranks_per_node or max(site.node.gpus, _LOCAL_RANKS))


def _require_allocation(site: Site, wanted: JobRequest, environ: Mapping[str, str]) -> None:
    """Raise `MachineError` with the command that gets an allocation of that shape."""
    variable = _ALLOCATIONS[site.scheduler]
    if environ.get(variable):
        return
    account = "PROJECT" if site.job.needs_account else ""
    command = directives.interactive(job.arrange_job(site, replace(wanted, account=account)))
    raise MachineError.of(
        f"not inside an allocation: {variable} is not set",
        where=f"site {site.name}",
        fix=f"Get one first, and type the same command there:\n    {command}\n"
        f"    Or write a batch script: sifwright jobscript --site {site.name} --nodes 2 …",
    )


def layout(nodes: int, ranks_per_node: int) -> JobRequest:
    """Return the benchmark's numbers of nodes and ranks."""
    return JobRequest(nodes=nodes, ranks_per_node=ranks_per_node, arguments=(SCRIPT,))


def _allocated_nodes(site: Site, environ: Mapping[str, str]) -> int:
    """Return the nodes of the allocation: Slurm has them in variables, PBS in a file."""
    if site.scheduler == "pbs":
        return len(set(Path(environ["PBS_NODEFILE"]).read_text(encoding="utf-8").split()))
    for name in ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "FLUX_JOB_NNODES"):
        if environ.get(name, "").isdecimal():
            return int(environ[name])
    raise UsageError.of("the allocation does not say how many nodes it has", fix="Give --nodes.")


def launcher(site: Site, wanted: JobRequest, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the site's command that starts a task per rank; [] without a launcher.

    Open MPI passes only variables that are named to other nodes.
    """
    if site.scheduler == "local":
        return []
    arranged = job.arrange_job(site, wanted)
    words = launch_command.words(arranged)
    if job_mpi.exports_by_name(arranged):
        words += [word for name in _PLACES if name in environ for word in ("-x", name)]
    return words


def environment(site: Site, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for the launcher, with the host of rank 0 if it is needed."""
    if set(_PLACES) & set(environ):
        return dict(environ)
    host = _first_of_node_file(environ) if site.scheduler == "pbs" else ""
    if site.scheduler == "flux":
        done = processes.capture(["flux", "hostlist", "--nth=0", "instance"], env=environ)
        host = "" if done.returncode else done.stdout.strip()
    return dict(environ) | ({_MASTER_HOST: host} if host else {})


def _first_of_node_file(environ: Mapping[str, str]) -> str:
    try:
        return next(
            iter(Path(environ.get("PBS_NODEFILE", "")).read_text(encoding="utf-8").split()), ""
        )
    except OSError:
        return ""  # the run script says what is missing


def container(
    engine: Apptainer, site: Site, sif: Path, work_dir: Path, program: Sequence[str]
) -> list[str]:
    """Run a program in the image, `work_dir` being the only folder it can write results to."""
    binds = [word for bind in site.binds if (there := _bind(bind)) for word in ("--bind", there)]
    binds += ["--bind", f"{work_dir.resolve()}:{WORK}"]
    image = str(sif.resolve())
    return [engine.program, "exec", *site.gpu_flags, *binds, image, _RUN_SCRIPT, *program]


def on_host(
    site: Site, environment: str, run_scripts: Path, nodes: int, program: Sequence[str]
) -> list[str]:
    """Run a program of the run scripts in an environment of the host, with the site's variables."""
    variables = site_environment.variables(site, nodes) | dict(site.mpi_environment)
    variables = {name: value for name, value in variables.items() if name not in os.environ}
    variables["WITH_CONDA"] = f"source {Path(environment).absolute()}/bin/activate"
    words = (f"{name}={value}" for name, value in variables.items())
    return ["env", *words, str(run_scripts / _RUN_SCRIPT), *program]


def _bind(text: str) -> str:
    """Return a bind, or '' if its source does not exist: the engine would refuse it."""
    path = os.path.expandvars(text)
    return path if "$" not in path and Path(path.split(":")[0]).exists() else ""
