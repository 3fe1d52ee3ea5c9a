"""The command line that starts a job's ranks, as lines of shell."""

import textwrap
from collections.abc import Callable, Iterator
from functools import partial

from sifwright.catalog.model import LauncherOptions
from sifwright.launch import container_engines, job_mpi
from sifwright.launch.model import Job
from sifwright.render import shell


def command(job: Job) -> str:
    """Return the launcher, the program it starts, and its arguments, every word quoted.

    The arguments follow a word of ours in one line. `flux batch` takes a line that begins with
    `flux:` for a directive, even inside of quotes.
    """
    parts = [" ".join(_start(job)), _run(job)]
    wrap = partial(textwrap.wrap, width=96, break_long_words=False, break_on_hyphens=False)
    lines = [line for part in parts for line in wrap(part)]
    return " \\\n  ".join([*lines, " ".join(_script(job))])


def words(job: Job) -> list[str]:
    """Return the launcher and its options, unquoted; [] without a launcher."""
    return list(_LAUNCHERS[job.launcher](job))


def _start(job: Job) -> Iterator[str]:
    yield from map(shell.quote, words(job))
    if job_mpi.exports_by_name(job):
        yield '"${exported[@]}"'
    if job.run_in == "container":
        yield from container_engines.launcher_options(job)


def _run(job: Job) -> str:
    if job.run_in == "host":
        return ""
    if job.site.delivery != "sif":
        return container_engines.command(job)
    words = [*job.site.exec_words, '"$SIF"']
    if job.request.check_program:
        words = ['bash -c "$check_image" check-image "$SIF" "$image_digests"', *words]
    return " ".join(words)


def _script(job: Job) -> Iterator[str]:
    name = "conda-python-distributed"
    yield name if job.run_in == "container" else f'"$RUNSCRIPTS/{name}"'
    if job.torchrun:
        yield f"--nproc-per-node {job.ranks}"
    if job.request.expand_variables:
        yield "--expand-variables"
    yield from map(shell.quote, job.request.arguments)


def _srun(job: Job) -> Iterator[str]:
    # In a job submitted with --export=NONE, srun would bring the ranks none of this script's
    # environment.
    yield from ("srun", "--export=ALL", f"--nodes={job.request.nodes}")
    yield from (f"--ntasks={job.total_tasks}", f"--ntasks-per-node={job.tasks}")
    if job.cpus:
        yield f"--cpus-per-task={job.cpus}"
    if job.site.node.cpu_masks and not job.whole_node:
        yield f"--cpu-bind=mask_cpu:{','.join(job.site.node.cpu_masks)}"
    if name := job_mpi.plugin(job):
        yield f"--mpi={name}"
    yield from _options(job)
    if job.site.rdzv_get_disabled:
        yield "--network=disable_rdzv_get"
    if job.site.job.resv_ports:
        yield "--resv-ports=2"  # Cray's PMI takes the first one for itself
    yield "--kill-on-bad-exit=1"


def _of_mpi(job: Job) -> Iterator[str]:
    return _open_mpi(job) if job_mpi.is_open_mpi(job) else _mpich(job)


def _mpich(job: Job) -> Iterator[str]:
    """Yield words that both MPICH and PALS take; either passes the whole environment."""
    yield from (job.launcher, "-n", str(job.total_tasks), "-ppn", str(job.tasks))
    if "pals" in job.site.offered_pmi(job.launcher):
        # PALS starts a copy of the program, which finds no file beside it. So an engine would miss
        # its configuration, and a run script its helpers. All container jobs of
        # NCAR/hpc-demos@421d838 have this option. The default is in cray/modules/pals/cli.py of
        # Cray-HPE/craycli.
        yield "--no-transfer"
    yield from _options(job)
    if job.site.rdzv_get_disabled:
        yield "--disable_rdzv_get"


def _open_mpi(job: Job) -> Iterator[str]:
    yield from (job.launcher, "-np", str(job.total_tasks), "--bind-to", "none")
    yield from ("--map-by", f"ppr:{job.tasks}:node")  # an allocation may have more slots on a node
    if job.site.scheduler == "local":
        yield "--oversubscribe"  # nobody counts slots here, and there are as many as cores
    yield from _options(job)


def _flux(job: Job) -> Iterator[str]:
    yield from ("flux", "run", f"--nodes={job.request.nodes}", f"--ntasks={job.total_tasks}")
    if job.cpus:
        yield f"--cores-per-task={job.cpus}"
    if job.gpus:
        yield f"--gpus-per-task={job.gpus if job.whole_node else 1}"
    yield from _options(job)
    if job.site.rdzv_get_disabled:
        yield "--setattr=rdzv_get_en=0"


def _options(job: Job) -> tuple[str, ...]:
    options = job.site.launch.get(job.launcher, LauncherOptions())
    return options.task_per_node if job.whole_node else options.task_per_gpu


_LAUNCHERS: dict[str, Callable[[Job], Iterator[str]]] = {
    "srun": _srun,
    "mpiexec": _of_mpi,
    "mpirun": _of_mpi,
    "flux": _flux,
    "local": lambda _: iter(()),
}
